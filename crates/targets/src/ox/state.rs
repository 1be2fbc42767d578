//! The instance: its parts, and what they have in common.
//!
//! Deliberately not here: procedures; each has a file of its own.

use super::canary::Canary;
use super::collect::GarbageCollection;
use super::commit::{Commit, Logged};
use super::flight::Purpose;
use super::group_commit::GroupCommit;
use super::options::Options;
use super::retry::Retries;
use super::sizes::Sizes;
use super::space::Space;
use super::stats::OxStats;
use super::store::Store;
use super::write_buffer::{BufferUnitId, WriteBuffer};
use crate::flight::Flight;
use crate::journal::{Journal, PageKind};
use ocssd_base::Nanos;
use ocssd_ftl::log::{Lsn, TransactionId};
use ocssd_ftl::{AppendPoint, ChunkIndex};
use ocssd_lightnvm::{Buffers, Command, Completion, Status};
use std::collections::VecDeque;

/// Whether an instance takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// It does.
    Taken,
    /// So many chunks are bad that there is no room for more.
    NoSpare,
    /// The drive itself failed, with this status.
    DriveFailed(Status),
}

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// None was asked for.
    No,
    /// It was asked for.
    Asked,
    /// It is over.
    Over,
}

/// An FTL of these machines.
#[derive(Clone, Debug)]
pub struct Ox<S: Store> {
    pub(crate) options: Options,
    pub(crate) sizes: Sizes,
    pub(crate) sector_bytes: u32,
    pub(crate) store: S,
    pub(crate) space: Space<S::Live>,
    /// Where data go, by stream: users', then garbage collection's by group.
    pub(crate) data_points: Vec<AppendPoint<BufferUnitId>>,
    pub(crate) buffer: WriteBuffer<S::Slot>,
    pub(crate) flight: Flight<Purpose<S::Read>>,
    /// Sectors of transactions that are not in the log.
    pub(crate) gathered: u64,
    /// Transactions that wait for room in the log.
    pub(crate) commits: VecDeque<Commit<S>>,
    /// Transactions that need nothing but room in the log, and come before the others: others wait for what they make true.
    pub(crate) urgent: VecDeque<Commit<S>>,
    /// Transactions in the log that are not durable.
    pub(crate) logged: VecDeque<Logged<S>>,
    pub(crate) group_commit: GroupCommit,
    pub(crate) journal: Journal<S::Entry>,
    pub(crate) gc: GarbageCollection,
    pub(crate) retries: Retries<S::Read>,
    pub(crate) ending: Ending,
    pub(crate) changes: Changes,
    /// Sectors of data written to the instance, ever.
    pub(crate) sequence: u64,
    /// The newest transaction that is true.
    pub(crate) applied: TransactionId,
    /// The newest of which the log is on media, all before it too.
    pub(crate) durable: TransactionId,
    pub(crate) resets: usize,
    /// The instance is being mounted: nothing but its checkpoint goes on.
    pub(crate) is_mounting: bool,
    pub(crate) work_due: bool,
    pub(crate) now: Nanos,
    pub(crate) stats: OxStats,
}

impl<S: Store> Ox<S> {
    /// True if this bug is planted in the instance.
    #[inline]
    pub(crate) fn has_canary(&self, canary: Canary) -> bool {
        self.options.has_canary(canary)
    }

    /// The status of what would change something; none while changes are taken.
    pub(crate) const fn refuses_changes(&self) -> Option<Status> {
        match self.changes {
            Changes::Taken => None,
            Changes::NoSpare => Some(Status::WRITE_TO_READ_ONLY),
            Changes::DriveFailed(status) => Some(status),
        }
    }

    /// Sectors of transactions that may be on their way: for as many there is room beside all that is mapped, so that each can
    /// be committed before what it replaces is let go of.
    pub(crate) fn gathered_max(&self) -> u64 {
        let beyond = self.space.pool.good().saturating_sub(self.sizes.chunks_needed);
        u64::from(self.sizes.gathered) + u64::from(beyond) * u64::from(self.sizes.chunk)
    }

    /// Looks whether a chunk is needed any more.
    pub(crate) fn look_at(&mut self, chunk: ChunkIndex) {
        let early = self.has_canary(Canary::ResetBeforeDurable);
        // What is true is durable, but where transactions are true as soon as they are logged.
        let is_ahead = self.applied > self.durable;
        let until = if is_ahead && !early { self.journal.log.end() } else { Lsn(0) };
        self.space.look(chunk, until, self.journal.oldest());
        self.work_due = true;
    }

    /// Lets every procedure go on until none can.
    pub(crate) fn work(&mut self, buffers: &mut Buffers) {
        while std::mem::take(&mut self.work_due) || self.give_up() {
            let mut any = S::serve(self, buffers);
            any |= S::tend(self, buffers);
            if self.refuses_changes().is_none() {
                any |= S::admit(self, buffers);
                any |= self.commit(buffers);
                any |= self.collect();
                any |= self.program(buffers);
                any |= self.write_log(buffers);
                any |= self.write_checkpoint(buffers);
                any |= self.reset();
            }
            any |= S::answer_durable(self);
            any |= self.shut_down();
            self.work_due |= any;
        }
    }

    /// The next command for the device.
    pub(crate) fn next_command(&mut self, buffers: &mut Buffers) -> Option<Command> {
        if !self.flight.has_next() && self.work_due {
            self.work(buffers);
        }
        self.flight.take()
    }

    /// A command ended.
    pub(crate) fn completed(&mut self, now: Nanos, mut completion: Completion, buffers: &mut Buffers) {
        let Some(purpose) = self.flight.end(now, &mut completion, buffers) else { return };
        match purpose {
            // Whether there is more to do the store knows.
            Purpose::Own(read) => return S::read_done(self, read, &completion, buffers),
            Purpose::Retry { number } => self.retry_done(number, &completion, buffers),
            Purpose::BufferUnit { buffer_unit, at } => self.buffer_unit_done(buffer_unit, at, &completion),
            Purpose::LogPage { page } => self.page_done(PageKind::Log, page, &completion),
            Purpose::CheckpointPage { page } => self.page_done(PageKind::Checkpoint, page, &completion),
            Purpose::Collect { read } => self.collected(read, &completion, buffers),
            Purpose::Reset { chunk } => self.reset_done(chunk, &completion),
        }
        self.work_due = true;
    }

    /// Asserts every invariant of the whole state.
    pub(crate) fn check_all(&self) {
        self.flight.check();
        self.space.check();
        self.journal.check();
        self.buffer.check();
        self.data_points.iter().for_each(AppendPoint::check);
        S::check(self);
        assert_eq!(self.stats.causes(), self.stats.programmed, "a program has no cause: {:?}", self.stats);
        assert!(
            self.applied <= self.journal.last_transaction(),
            "transactions are true that were not logged"
        );
        assert!(self.ending != Ending::Over || !self.has_commits(), "an instance ended with work to do");
        let is_ordered = self.logged.iter().map(|one| one.id).is_sorted();
        assert!(is_ordered, "transactions are logged out of order");
    }

    /// The state in words, for whoever looks for a bug.
    pub(crate) fn summary_of_parts(&self) -> String {
        format!(
            "{:?}; {} free chunks of {} good, {} owed, {} spare, {} dead; {} sectors gathered, {} to be logged, {} in the log; \
             log {:?}; checkpoint being written: {}; {} commands; {:?}",
            self.changes,
            self.space.pool.free(),
            self.space.pool.good(),
            self.space.owed(),
            self.space.spare(),
            self.space.dead_count(),
            self.gathered,
            self.commits.len() + self.urgent.len(),
            self.logged.len(),
            {
                let log = &self.journal.log;
                (log.tail(), log.durable(), log.next())
            },
            self.journal.is_writing(),
            self.flight.len(),
            self.stats,
        )
    }
}
