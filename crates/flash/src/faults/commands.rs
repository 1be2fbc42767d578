//! Commands that fail as such: something between host and media did, and nothing was done.
//!
//! No sector is to blame, and none was changed: the status is one that the specifications allow on the command, whatever its
//! addresses. A flush that fails does not wait, and what it should have covered stays in the cache on its way to the media.
//! Deliberately not here: what the media fail (`faults`).

use super::{FaultKind, ScheduledFault, chance};
use crate::Flash;
use crate::config::FaultConfig;
use crate::exec::OperationKind;
use ocssd_base::Prng;
use ocssd_lightnvm::{ChunkId, Status};
use std::collections::VecDeque;

/// What kind of command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedOp {
    /// A read.
    Read,
    /// A write or a copy.
    Write,
    /// A reset.
    Reset,
    /// A flush.
    Flush,
}

impl FailedOp {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Reset, Self::Flush];

    /// The kind of an operation.
    pub(crate) const fn of(kind: &OperationKind<'_>) -> Self {
        match kind {
            OperationKind::Read(_) => Self::Read,
            OperationKind::Write { .. } | OperationKind::Copy(_) => Self::Write,
            OperationKind::Reset => Self::Reset,
            OperationKind::Flush => Self::Flush,
        }
    }

    /// The statuses the specifications allow on such a command though the host did nothing wrong, but for those that say what
    /// became of a sector or chunk (NVMe base 1.4 section 4.6.1 and figures of Read, Write, Flush and Dataset Management;
    /// OCSSD 2.0 section 3.4). A flush moves no data, and a reset neither.
    #[must_use]
    pub const fn statuses(self) -> &'static [Status] {
        match self {
            Self::Read => &[
                Status::DATA_TRANSFER_ERROR,
                Status::INTERNAL_ERROR,
                Status::ABORT_REQUESTED,
                Status::TRANSIENT_TRANSPORT_ERROR,
                Status::NAMESPACE_NOT_READY,
                Status::GUARD_CHECK_ERROR,
                Status::ACCESS_DENIED,
            ],
            Self::Write => &[
                Status::DATA_TRANSFER_ERROR,
                Status::INTERNAL_ERROR,
                Status::ABORT_REQUESTED,
                Status::TRANSIENT_TRANSPORT_ERROR,
                Status::CAPACITY_EXCEEDED,
                Status::NAMESPACE_NOT_READY,
                Status::WRITE_TO_READ_ONLY,
                Status::GUARD_CHECK_ERROR,
                Status::ACCESS_DENIED,
            ],
            Self::Reset => &[
                Status::INTERNAL_ERROR,
                Status::ABORT_REQUESTED,
                Status::NAMESPACE_NOT_READY,
                Status::WRITE_TO_READ_ONLY,
                Status::ACCESS_DENIED,
            ],
            Self::Flush => &[Status::INTERNAL_ERROR, Status::ABORT_REQUESTED, Status::NAMESPACE_NOT_READY],
        }
    }

    const fn rate(self, config: &FaultConfig) -> u32 {
        match self {
            Self::Read => config.failed_read,
            Self::Write => config.failed_write,
            Self::Reset => config.failed_reset,
            Self::Flush => config.failed_flush,
        }
    }
}

impl Flash {
    /// Whether commands that are sent from now on fail as such, by rate or by schedule; what is scheduled waits. A simulator that
    /// promises how often in a row one command fails says so before the try in which it is carried out.
    pub const fn let_commands_fail(&mut self, may: bool) {
        self.faults.commands.spared = !may;
    }
}

/// Failed commands remembered for whoever asks (chosen: more than are in flight between two questions).
const NEWS_MAX: usize = 256;

/// Which commands fail.
#[derive(Clone, Debug)]
pub(crate) struct FailedCommands {
    prng: Prng,
    /// Rates by [`FailedOp`], in the order of [`FailedOp::ALL`].
    rates: [u32; 4],
    /// Any can fail.
    any: bool,
    /// None does for now.
    spared: bool,
    /// Those that did so far.
    failed: u64,
    /// The latest of them that nobody was told of.
    news: VecDeque<(FailedOp, Status)>,
}

impl FailedCommands {
    pub(crate) fn new(config: &FaultConfig, prng: &Prng) -> Self {
        let rates = FailedOp::ALL.map(|op| op.rate(config));
        let any = rates.iter().any(|&rate| rate > 0);
        Self {
            prng: prng.split("failed commands"),
            rates,
            any,
            spared: false,
            failed: 0,
            news: VecDeque::new(),
        }
    }

    /// Nothing fails by rate any more.
    pub(crate) fn stop(&mut self) {
        (self.rates, self.any) = ([0; 4], false);
    }

    /// One is scheduled: commands are looked at.
    pub(crate) const fn expect(&mut self) {
        self.any = true;
    }

    /// True if a command can fail.
    pub(crate) const fn can(&self) -> bool {
        self.any && !self.spared
    }

    /// Commands that failed so far.
    pub(crate) const fn count(&self) -> u64 {
        self.failed
    }

    /// The latest of them that were not told yet, oldest first.
    pub(crate) fn take_news(&mut self) -> impl Iterator<Item = (FailedOp, Status)> + use<> {
        std::mem::take(&mut self.news).into_iter()
    }

    /// The status a command ends with; none if it is carried out. `scheduled` are the faults asked for, `names` says whether
    /// the command names a chunk.
    pub(crate) fn outcome(
        &mut self,
        op: FailedOp,
        scheduled: &mut Vec<ScheduledFault>,
        names: impl Fn(ChunkId) -> bool,
    ) -> Option<Status> {
        let place = FailedOp::ALL.iter().position(|&of| of == op).expect("every kind is listed");
        let asked = |fault: &ScheduledFault| match fault.kind {
            FaultKind::Failed(of, status) if of == op => {
                (op == FailedOp::Flush || names(fault.chunk)).then_some(status)
            }
            _ => None,
        };
        let found = scheduled.iter().enumerate().find_map(|(index, fault)| Some((index, asked(fault)?)));
        let status = if let Some((index, status)) = found {
            scheduled[index].times -= 1;
            if scheduled[index].times == 0 {
                scheduled.remove(index);
            }
            status
        } else {
            let rate = self.rates[place];
            if rate == 0 || !self.prng.chance(chance(rate.into())) {
                return None;
            }
            let statuses = op.statuses();
            let index = self.prng.below(u64::try_from(statuses.len()).expect("a few"));
            statuses[usize::try_from(index).expect("below a length")]
        };
        assert!(!status.is_success(), "a command fails with a success");
        self.failed += 1;
        if self.news.len() == NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back((op, status));
        Some(status)
    }
}
