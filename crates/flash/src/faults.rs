//! Which operations of the media fail: seeded rates that grow with wear, and an explicit schedule.
//!
//! A sector that cannot be read stays so until its chunk is reset, because whether it fails is a hash of where it is and
//! which life of the chunk it belongs to, not a fresh draw. Deliberately not here: what a failure does (`exec`).

mod commands;
mod transient;

pub use commands::FailedOp;

use crate::addresses::AddressList;
use crate::config::{Config, FaultConfig};
use commands::FailedCommands;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::{ChunkId, Ppa, Status};
use std::collections::BTreeMap;
use transient::TransientReads;

/// A kind of fault that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A write unit fails and is skipped (2F0h).
    WriteNextUnit,
    /// The chunk closes at a write (2F1h).
    EarlyClose,
    /// A sector cannot be read (281h).
    UnrecoveredRead,
    /// A sector reads with High ECC (2D0h).
    HighEcc,
    /// A reset fails and the chunk goes offline (2C0h).
    ResetFailure,
    /// An operation takes longer by the configured spike.
    LatencySpike,
    /// A command of this kind that names the chunk, or any flush, ends with this status, and nothing is done.
    Failed(FailedOp, Status),
    /// A sector cannot be read this time (281h), and nothing is lost.
    TransientRead,
}

/// A fault at a given place, for a number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledFault {
    /// What happens.
    pub kind: FaultKind,
    /// In which chunk.
    pub chunk: ChunkId,
    /// At which sector; `None` for the first operation that fits.
    pub sector: Option<u32>,
    /// How often.
    pub times: u32,
}

/// What a sector's read comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    Fine,
    HighEcc,
    /// Not this time.
    Transient,
    /// Another sector came back, and the drive does not know.
    Misdirected,
    Unrecovered,
}

/// What a unit's write comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Fine,
    NextUnit,
    EarlyClose,
}

/// The faults of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    config: FaultConfig,
    seed: u64,
    prng: Prng,
    scheduled: Vec<ScheduledFault>,
    /// Sectors that need a retry, and in how many reads more.
    weak: BTreeMap<Ppa, u32>,
    commands: FailedCommands,
    transient: TransientReads,
    misdirected: TransientReads,
    may_misdirect: bool,
    reads_fail: bool,
    writes_fail: bool,
    spikes: u64,
}

/// Parts per billion as a chance in 2^32.
fn chance(parts_per_billion: u64) -> u64 {
    (parts_per_billion << 32) / 1_000_000_000
}

/// The rate at a wear index: new media to worn-out media with the square of wear, as raw bit error rates grow faster
/// than linearly with cycles. The square is chosen; no vendor publishes a curve for these drives.
fn rate_at(new: u32, worn: u32, wear_index: u8) -> u64 {
    let wear = u64::from(wear_index);
    let growth = u64::from(worn.saturating_sub(new)) * wear * wear / (255 * 255);
    u64::from(new) + growth
}

impl Faults {
    pub(crate) fn new(config: &Config) -> Self {
        let prng = Prng::new(config.seed).split("faults");
        let faults = config.faults;
        let reads =
            [faults.unrecovered_read, faults.unrecovered_read_worn, faults.high_ecc, faults.high_ecc_worn];
        Self {
            config: faults,
            seed: prng.clone().next_u64(),
            commands: FailedCommands::new(&faults, &prng),
            transient: TransientReads::new(faults.transient_read, &prng),
            misdirected: TransientReads::new(faults.misdirected_read, &prng.split("misdirected")),
            may_misdirect: true,
            prng,
            scheduled: Vec::new(),
            weak: BTreeMap::new(),
            reads_fail: reads.iter().any(|&rate| rate > 0)
                || faults.transient_read > 0
                || faults.misdirected_read > 0,
            writes_fail: faults.write_next_unit > 0 || faults.early_close > 0,
            spikes: 0,
        }
    }

    /// Nothing fails any more.
    pub(crate) fn stop(&mut self) {
        self.config = FaultConfig::default();
        self.scheduled.clear();
        self.weak.clear();
        self.commands.stop();
        self.transient.stop();
        self.misdirected.stop();
        (self.reads_fail, self.writes_fail) = (false, false);
    }

    pub(crate) fn schedule(&mut self, fault: ScheduledFault) {
        assert!(fault.times > 0, "a fault that never happens was scheduled");
        if let FaultKind::Failed(_, status) = fault.kind {
            assert!(!status.is_success(), "a command is to fail with a success");
            self.commands.expect();
        }
        self.scheduled.push(fault);
    }

    pub(crate) fn is_scheduled(&self, chunk: ChunkId) -> bool {
        let mut weak = self.weak.range(Ppa::new(chunk, 0)..);
        let is_weak = weak.next().is_some_and(|(at, _)| at.chunk == chunk);
        is_weak || self.scheduled.iter().any(|fault| fault.chunk == chunk)
    }

    /// A sector needs a retry in so many reads, or until its chunk is reset.
    pub(crate) fn weaken(&mut self, at: Ppa, reads: u32) {
        assert!(reads > 0, "a sector that needs no retry is weak");
        self.weak.insert(at, reads);
    }

    /// The chunk was reset: none of its sectors is weak.
    pub(crate) fn chunk_reset(&mut self, chunk: ChunkId) {
        let of_chunk = |(at, _): (&Ppa, &u32)| (at.chunk == chunk).then_some(*at);
        while let Some(at) = self.weak.range(Ppa::new(chunk, 0)..).next().and_then(of_chunk) {
            self.weak.remove(&at);
        }
    }

    fn is_weak(&mut self, at: Ppa) -> bool {
        let Some(reads) = self.weak.get_mut(&at) else { return false };
        *reads -= 1;
        if *reads == 0 {
            self.weak.remove(&at);
        }
        true
    }

    /// True if a read of a chunk without marks and scheduled faults can fail, or take longer.
    pub(crate) const fn can_meet_reads(&self) -> bool {
        self.reads_fail || self.config.latency_spike > 0 || self.config.failed_read > 0
    }

    /// True if a read of an unmarked chunk can fail at all.
    pub(crate) const fn reads_can_fail(&self) -> bool {
        self.reads_fail
    }

    pub(crate) const fn writes_can_fail(&self) -> bool {
        self.writes_fail
    }

    /// True if a command can fail as such.
    pub(crate) const fn commands_can_fail(&self) -> bool {
        self.commands.can()
    }

    /// The status a command ends with before anything of it is done; none if it is carried out.
    pub(crate) fn command_outcome(&mut self, op: FailedOp, addresses: &AddressList<'_>) -> Option<Status> {
        let names = |chunk| addresses.runs().any(|run| run.first.chunk == chunk);
        self.commands.outcome(op, &mut self.scheduled, names)
    }

    /// Commands that failed as such.
    pub(crate) const fn commands_failed(&self) -> u64 {
        self.commands.count()
    }

    /// The latest of them that were not told yet.
    pub(crate) fn take_failed_commands(&mut self) -> impl Iterator<Item = (FailedOp, Status)> + use<> {
        self.commands.take_news()
    }

    /// Takes a scheduled fault of this kind for `count` sectors from `first` on.
    fn take(&mut self, kind: FaultKind, first: Ppa, count: u32) -> bool {
        let covers = |sector| (first.sector..first.sector + count).contains(&sector);
        let fits = |fault: &ScheduledFault| {
            fault.kind == kind && fault.chunk == first.chunk && fault.sector.is_none_or(covers)
        };
        let Some(index) = self.scheduled.iter().position(fits) else { return false };
        self.scheduled[index].times -= 1;
        if self.scheduled[index].times == 0 {
            self.scheduled.remove(index);
        }
        true
    }

    pub(crate) fn read_outcome(&mut self, at: Ppa, cycles: u32, wear_index: u8) -> ReadOutcome {
        if self.take(FaultKind::UnrecoveredRead, at, 1) {
            return ReadOutcome::Unrecovered;
        }
        if self.take(FaultKind::HighEcc, at, 1) || self.is_weak(at) {
            return ReadOutcome::HighEcc;
        }
        if self.take(FaultKind::TransientRead, at, 1) {
            return ReadOutcome::Transient;
        }
        if !self.reads_fail {
            return ReadOutcome::Fine;
        }
        if self.transient.fails(at) {
            return ReadOutcome::Transient;
        }
        if self.may_misdirect && self.misdirected.fails(at) {
            return ReadOutcome::Misdirected;
        }
        let place = (u64::from(at.chunk.0) << 32) | u64::from(at.sector);
        // Mixed before the life comes in: else a chunk's sectors would draw the same numbers in every life, moved around.
        let mixed = Prng::new(self.seed ^ place).next_u64();
        let draw = Prng::new(mixed ^ u64::from(cycles)).next_u64();
        let config = &self.config;
        let lost = chance(rate_at(config.unrecovered_read, config.unrecovered_read_worn, wear_index));
        let weak = chance(rate_at(config.high_ecc, config.high_ecc_worn, wear_index));
        if draw >> 32 < lost {
            ReadOutcome::Unrecovered
        } else if draw & 0xFFFF_FFFF < weak {
            ReadOutcome::HighEcc
        } else {
            ReadOutcome::Fine
        }
    }

    pub(crate) fn write_outcome(&mut self, first: Ppa, count: u32) -> WriteOutcome {
        if self.take(FaultKind::EarlyClose, first, count) {
            return WriteOutcome::EarlyClose;
        }
        if self.take(FaultKind::WriteNextUnit, first, count) {
            return WriteOutcome::NextUnit;
        }
        if !self.writes_fail {
            return WriteOutcome::Fine;
        }
        if self.prng.chance(chance(self.config.early_close.into())) {
            WriteOutcome::EarlyClose
        } else if self.prng.chance(chance(self.config.write_next_unit.into())) {
            WriteOutcome::NextUnit
        } else {
            WriteOutcome::Fine
        }
    }

    pub(crate) fn reset_fails(&mut self, chunk: ChunkId) -> bool {
        let asked = self.take(FaultKind::ResetFailure, Ppa::new(chunk, 0), 1);
        asked || (self.config.reset_failure > 0 && self.prng.chance(chance(self.config.reset_failure.into())))
    }

    pub(crate) const fn let_reads_be_misdirected(&mut self, may: bool) {
        self.may_misdirect = may;
    }

    /// True if a reset in the array stays half done when the power goes. Drawn from `prng` only where such things happen.
    pub(crate) fn leaves_reset_half_done(&self, prng: &mut Prng) -> bool {
        let rate = self.config.half_reset;
        rate > 0 && prng.chance(chance(rate.into()))
    }

    /// True if a unit torn by a power cut takes the one before it along. Drawn as above.
    pub(crate) fn takes_pair_along(&self, prng: &mut Prng) -> bool {
        let rate = self.config.paired_loss;
        rate > 0 && prng.chance(chance(rate.into()))
    }

    /// Extra time of an array operation.
    pub(crate) fn delay(&mut self, chunk: ChunkId, first: u32, count: u32, scheduled: bool) -> Nanos {
        let asked = scheduled && self.take(FaultKind::LatencySpike, Ppa::new(chunk, first), count.max(1));
        let rate = self.config.latency_spike;
        if asked || (rate > 0 && self.prng.chance(chance(rate.into()))) {
            self.spikes += 1;
            self.config.spike
        } else {
            Nanos::ZERO
        }
    }

    /// Array operations that took so much longer.
    pub(crate) const fn spikes(&self) -> u64 {
        self.spikes
    }
}

/// Whether a chunk left the factory bad.
pub(crate) fn is_factory_bad(config: &Config, prng: &mut Prng) -> bool {
    config.faults.factory_bad > 0 && prng.chance(chance(config.faults.factory_bad.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_grow_from_new_to_worn_with_the_square_of_wear() {
        assert_eq!(rate_at(10, 1010, 0), 10);
        assert_eq!(rate_at(10, 1010, 255), 1010);
        assert_eq!(rate_at(0, 1000, 128), 251);
        assert_eq!(rate_at(50, 10, 255), 50);
    }

    #[test]
    fn a_billion_parts_per_billion_is_always() {
        assert_eq!(chance(1_000_000_000), 1 << 32);
        assert_eq!(chance(0), 0);
    }
}
