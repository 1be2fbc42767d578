//! The instance: its parts, and what they have in common.
//!
//! Deliberately not here: procedures; each has a file of its own.

use super::canary::Canary;
use super::checkpoint::CheckpointState;
use super::collect::Collector;
use super::commit::{Commit, Logged, Part};
use super::flight::Purpose;
use super::options::Options;
use super::page_io::PageIo;
use super::requests::Requests;
use super::retry::Retries;
use super::sizes::Sizes;
use super::space::Space;
use super::stats::OxStats;
use super::write_buffer::{FrameId, WriteBuffer};
use crate::flight::Flight;
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_ftl::log::{Log, Lsn, TransactionId};
use ocssd_ftl::{AppendPoint, ChunkIndex, InstanceId, L2p};
use ocssd_lightnvm::Status;
use std::collections::VecDeque;

/// Whether an instance takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// It does.
    Taken,
    /// So many chunks are bad that there is no room for more.
    NoSpare,
    /// The drive itself failed, with this status.
    DriveFailed(Status),
}

/// Where the streams are written.
#[derive(Clone, Debug)]
pub(super) struct Points {
    /// By stream: users', then garbage collection's by group.
    pub data: Vec<AppendPoint<FrameId>>,
    pub log: AppendPoint<()>,
    pub checkpoint: AppendPoint<()>,
}

/// A block device whose requests are transactions.
#[derive(Clone, Debug)]
pub struct OxBlock {
    pub(super) options: Options,
    pub(super) sizes: Sizes,
    pub(super) block_bytes: u32,
    pub(super) instance: InstanceId,
    /// The generation of this mount.
    pub(super) generation: u64,
    pub(super) l2p: L2p,
    pub(super) space: Space,
    pub(super) points: Points,
    pub(super) buffer: WriteBuffer,
    pub(super) requests: Requests,
    pub(super) flight: Flight<Purpose>,
    /// Transactions whose data are on their way.
    pub(super) parts: Slab<Part>,
    /// The transaction whose blocks are being taken into the buffer.
    pub(super) open_part: Option<SlabKey>,
    /// Blocks of transactions that are not in the log.
    pub(super) gathered: u64,
    /// Transactions that wait for room in the log.
    pub(super) commits: VecDeque<Commit>,
    /// Transactions in the log that are not durable.
    pub(super) logged: VecDeque<Logged>,
    pub(super) log: Log,
    pub(super) log_io: PageIo<Lsn>,
    pub(super) checkpoint: CheckpointState,
    pub(super) collector: Collector,
    pub(super) retries: Retries,
    /// Flushes, and the page before which everything must be durable.
    pub(super) flushes: VecDeque<(Lsn, SlabKey)>,
    /// A shutdown was asked for.
    pub(super) shutdown: Option<SlabKey>,
    pub(super) is_shut_down: bool,
    pub(super) changes: Changes,
    /// Blocks written to the instance, ever.
    pub(super) sequence: u64,
    pub(super) last_transaction: TransactionId,
    pub(super) applied: TransactionId,
    pub(super) resets: usize,
    /// The instance is being mounted: nothing but its checkpoint goes on.
    pub(super) is_mounting: bool,
    pub(super) work_due: bool,
    pub(super) now: Nanos,
    pub(super) stats: OxStats,
}

impl OxBlock {
    /// True if this bug is planted in the instance.
    #[inline]
    pub(super) fn has_canary(&self, canary: Canary) -> bool {
        self.options.has_canary(canary)
    }

    /// The status of what would change something; none while changes are taken.
    pub(super) const fn refuses_changes(&self) -> Option<Status> {
        match self.changes {
            Changes::Taken => None,
            Changes::NoSpare => Some(Status::WRITE_TO_READ_ONLY),
            Changes::DriveFailed(status) => Some(status),
        }
    }

    /// Looks whether a chunk is needed any more.
    pub(super) fn look_at(&mut self, chunk: ChunkIndex) {
        let early = self.has_canary(Canary::ResetBeforeDurable);
        let until = if early { Lsn(0) } else { self.log.end() };
        let oldest = self.checkpoint.oldest_serial();
        self.space.look(chunk, until, self.log.tail(), oldest);
        self.work_due = true;
    }

    /// Asserts every invariant of the whole state.
    pub(super) fn check_all(&self) {
        self.space.check();
        self.l2p.check();
        self.log.check();
        self.buffer.check();
        self.requests.check();
        self.points.data.iter().for_each(AppendPoint::check);
        self.points.log.check();
        self.points.checkpoint.check();
        assert_eq!(self.l2p.count_mapped(), self.space.valid.total(), "map and valid sectors disagree");
        self.l2p.for_each_media(|lba, place| {
            assert!(self.space.valid.is_valid(place), "block {lba} is at {place:?}, which is not valid");
        });
        assert_eq!(self.stats.causes(), self.stats.programmed, "a program has no cause: {:?}", self.stats);
        let is_ordered = self.logged.iter().map(|one| one.id).is_sorted();
        assert!(is_ordered, "transactions are logged out of order");
    }
}
