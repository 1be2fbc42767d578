//! The instance: its parts, and what they have in common.
//!
//! Deliberately not here: procedures; each has a file of its own.

use super::canary::Canary;
use super::catalog::Catalog;
use super::change::Number;
use super::commit::{Awaited, EditJob, SyncJob};
use super::flight::Purpose;
use super::meetings::Meetings;
use super::options::Options;
use super::placement::Placer;
use super::read::Reads;
use super::requests::Requests;
use super::shelf::Shelf;
use super::sizes::Sizes;
use super::space::Space;
use super::stats::LightLsmStats;
use crate::flight::Flight;
use crate::journal::Journal;
use ocssd_base::SlabKey;
use ocssd_ftl::AppendConfig;
use ocssd_lightnvm::{BufId, Geometry, Status};
use std::collections::{BTreeSet, VecDeque};

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

/// Tables and logs on raw flash.
#[derive(Clone, Debug)]
pub struct LightLsm {
    pub(super) options: Options,
    pub(super) sizes: Sizes,
    pub(super) geometry: Geometry,
    pub(super) append: AppendConfig,
    pub(super) shelf: Shelf,
    /// What the log says there is.
    pub(super) catalog: Catalog,
    pub(super) space: Space,
    pub(super) placer: Placer,
    pub(super) journal: Journal,
    pub(super) requests: Requests,
    pub(super) reads: Reads,
    pub(super) flight: Flight<Purpose>,
    /// Those with something to take in, to write or to make durable.
    pub(super) busy: BTreeSet<Number>,
    /// Appends, in the order in which they were taken, whose chunks are not reserved.
    pub(super) unreserved: VecDeque<(Number, SlabKey)>,
    /// Edits that are not logged, in order.
    pub(super) edits: VecDeque<EditJob>,
    /// Who waits for bytes of logs to be logged.
    pub(super) syncs: Vec<SyncJob>,
    /// Logs with bytes that somebody waits for.
    pub(super) syncing: BTreeSet<Number>,
    /// What is logged and not durable, in order.
    pub(super) awaited: VecDeque<Awaited>,
    /// Deletions that are durable, of what is still read or written.
    pub(super) leaving: Vec<Number>,
    /// Units of padding that are not on their way.
    pub(super) paddings: Vec<BufId>,
    pub(super) shutdown: Option<SlabKey>,
    pub(super) is_shut_down: bool,
    pub(super) changes: Changes,
    pub(super) next_number: u64,
    pub(super) resets: usize,
    pub(super) closings: usize,
    /// The instance is being mounted: nothing but its checkpoint goes on.
    pub(super) is_mounting: bool,
    /// A procedure may go on, whichever.
    pub(super) work_due: bool,
    /// Only reads may go on.
    pub(super) reads_due: bool,
    pub(super) stats: LightLsmStats,
    pub(super) meetings: Meetings,
}

impl LightLsm {
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

    /// Something of it is to be done.
    pub(super) fn wake(&mut self, number: Number) {
        self.busy.insert(number);
        self.work_due = true;
    }

    /// Asserts what was programmed, and why: everything that was sent to the drive has a cause, again only what failed, and
    /// nothing so that a chunk can be reset, so that the write amplification of collection is 1.0.
    fn check_programs(&self) {
        let (stats, sent) = (&self.stats, self.flight.written());
        assert_eq!(stats.causes(), sent, "a program has no cause: {stats:?}");
        assert!(stats.rewritten <= stats.failed, "what did not fail was written again: {stats:?}");
        let written = stats.content_written;
        assert_eq!(
            stats.copied, 0,
            "collection's write amplification is not 1.0: it copied beside {written} sectors of content"
        );
    }

    /// Asserts every invariant of the whole state.
    pub(super) fn check_all(&self) {
        self.flight.check();
        self.space.check();
        self.journal.check();
        self.catalog.check();
        self.requests.check();
        self.shelf.check(&self.sizes);
        let objects = || self.shelf.objects.values();
        let reserved: u32 = objects().map(|object| object.reserved).sum();
        assert_eq!(reserved, self.space.reserved(), "reservations are counted wrong");
        let chunks: Vec<u32> = objects().flat_map(|object| &object.chunks).map(|chunk| chunk.0).collect();
        let distinct: BTreeSet<u32> = chunks.iter().copied().collect();
        assert_eq!(distinct.len(), chunks.len(), "two tables share a chunk");
        assert_eq!(
            chunks.len() as u64,
            u64::from(self.space.content_chunks()),
            "chunks of tables are counted wrong"
        );
        self.check_programs();
        for (number, record) in self.catalog.iter() {
            let object = self.shelf.get(number);
            assert!(!object.is_gone, "number {} is in the log's catalog and gone", number.0);
            assert_eq!(object.name, record.name, "number {} has two names", number.0);
        }
    }
}
