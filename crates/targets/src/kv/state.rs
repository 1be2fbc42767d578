//! The instance: its parts, and what they have in common.
//!
//! Deliberately not here: procedures; each has a file of its own.

use super::buffer_units::{BufferUnitId, BufferUnits};
use super::canary::Canary;
use super::change::Taking;
use super::checkpoint::CheckpointState;
use super::collect::GarbageCollection;
use super::copy_budget::CopyBudget;
use super::flight::Purpose;
use super::index::{Found, Index, Location};
use super::index_pages::{IndexPages, page_record_bytes};
use super::long_values::LongValues;
use super::options::Options;
use super::queue::Queue;
use super::read::Reads;
use super::record::{RECORD_HEADER_BYTES, UnitNumber};
use super::released::{Released, Room};
use super::sizes::Sizes;
use super::space::Space;
use super::stage::Stage;
use super::stats::KvStats;
use crate::chunk_wear::ChunkWear;
use crate::flight::Flight;
use ocssd_base::Nanos;
use ocssd_ftl::{AppendPoint, ChunkIndex, InstanceId, PhysicalAddress, UnitIndex};
use ocssd_lightnvm::interface::StageId;
use ocssd_lightnvm::interface::key_value::KvReply;
use ocssd_lightnvm::{Status, Tag};
use std::collections::{BTreeMap, VecDeque};

/// Whether an instance takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// It does.
    Taken,
    /// So many chunks are bad that there is no room for more.
    NoSpare,
    /// The media lost a page of the index.
    IndexLost,
    /// The drive itself failed, with this status.
    DriveFailed(Status),
}

/// Where the streams are written.
#[derive(Clone, Debug)]
pub(super) struct Points {
    /// By stream.
    pub streams: [AppendPoint<BufferUnitId>; 4],
    pub checkpoint: AppendPoint<()>,
}

/// A reply that waits until everything up to a sequence is durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub until: u64,
    pub reply: KvReply,
}

/// A key-value target.
#[derive(Clone, Debug)]
pub struct Kv {
    pub(super) options: Options,
    pub(super) sizes: Sizes,
    pub(super) instance: InstanceId,
    pub(super) index: Index,
    pub(super) pages: IndexPages,
    pub(super) long: LongValues,
    pub(super) space: Space,
    pub(super) points: Points,
    pub(super) buffer_units: BufferUnits,
    pub(super) flight: Flight<Purpose>,
    pub(super) queue: Queue,
    /// The first request, if it is a change under way.
    pub(super) taking: Option<Taking>,
    pub(super) stages: BTreeMap<StageId, Stage>,
    /// The request whose content is being staged.
    pub(super) appending: Option<Tag>,
    pub(super) waiters: VecDeque<Waiter>,
    pub(super) reads: Reads,
    pub(super) replies: VecDeque<KvReply>,
    /// Bytes of all keys and values.
    pub(super) user_bytes: u64,
    /// Bytes of records that keys need.
    pub(super) kept_bytes: u64,
    /// Of what promises less now, what a power cut may bring back.
    pub(super) released: Released,
    /// The last sequence that was given to a record.
    pub(super) sequence: u64,
    /// The last number that was given to a unit.
    pub(super) number: UnitNumber,
    /// Bytes of records written since the last checkpoint began.
    pub(super) written: u64,
    pub(super) checkpoint: CheckpointState,
    pub(super) gc: GarbageCollection,
    /// How often chunks were reset, if wear is levelled.
    pub(super) wear: ChunkWear<()>,
    /// A shutdown was asked for.
    pub(super) shutdown: Option<Tag>,
    pub(super) is_shut_down: bool,
    pub(super) changes: Changes,
    /// Chunks of each unit that are being reset, where there is one.
    pub(super) resets: BTreeMap<UnitIndex, u32>,
    /// The instance is being mounted: nothing but its checkpoint goes on.
    pub(super) is_mounting: bool,
    /// What may be copied of long values before the host looks at others.
    pub(super) copies: CopyBudget,
    pub(super) work_due: bool,
    pub(super) now: Nanos,
    pub(super) stats: KvStats,
}

/// Bytes of a record.
pub(super) fn record_bytes(key: usize, payload: u32) -> u32 {
    u32::try_from(RECORD_HEADER_BYTES + key).expect("a key is short") + payload
}

impl Kv {
    /// True if this bug is planted in the instance.
    #[inline]
    pub(super) fn has_canary(&self, canary: Canary) -> bool {
        self.options.has_canary(canary)
    }

    /// The status of what would change something; none while changes are taken.
    pub(super) const fn refuses_changes(&self) -> Option<Status> {
        match self.changes {
            Changes::Taken => None,
            Changes::NoSpare | Changes::IndexLost => Some(Status::WRITE_TO_READ_ONLY),
            Changes::DriveFailed(status) => Some(status),
        }
    }

    /// The next sequence.
    pub(super) const fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The sector a byte of the instance lies in, and which of its bytes that is.
    pub(super) fn place_of(&self, at: u64) -> (PhysicalAddress, u32) {
        let sector = u64::from(self.sizes.sector_bytes);
        assert!(at / sector < self.space.shape.places(), "byte {at} is beyond the instance");
        (PhysicalAddress(at / sector), u32::try_from(at % sector).expect("below the bytes of a sector"))
    }

    /// The chunk a byte of the instance lies in.
    pub(super) fn chunk_of(&self, at: u64) -> ChunkIndex {
        self.space.shape.chunk_of(self.place_of(at).0).0
    }

    /// Bytes of records that a value takes under a key.
    pub(super) fn kept_of(&self, key: usize, bytes: u32) -> u64 {
        self.sizes.kept_of(key, bytes)
    }

    /// A key holds something else from now on, or nothing.
    pub(super) fn put(&mut self, key: &[u8], found: Option<Found>) {
        let length = u64::try_from(key.len()).expect("a key is short");
        assert!(!key.is_empty(), "an empty key has a value");
        let most = self.sizes.promised.value_bytes_max;
        assert!(found.is_none_or(|found| found.bytes <= most), "{found:?} is longer than {most} bytes");
        let room_before = self.room();
        let before = match found {
            Some(found) => {
                self.user_bytes += length + u64::from(found.bytes);
                self.kept_bytes += self.kept_of(key.len(), found.bytes);
                self.index.set(key, found)
            }
            None => self.index.remove(key),
        };
        if let Some(before) = before {
            self.user_bytes -= length + u64::from(before.bytes);
            self.kept_bytes -= self.kept_of(key.len(), before.bytes);
            self.forget(key.len(), before);
        }
        self.released.add(self.sequence, room_before.beyond(self.room()));
    }

    /// What all keys take.
    pub(super) fn room(&self) -> Room {
        Room { user: self.user_bytes, kept: self.kept_bytes, index: self.index.entry_bytes() }
    }

    /// What a key held is not needed any more.
    fn forget(&mut self, key: usize, found: Found) {
        match found.location {
            Location::Record(at) => self.forget_record(at, record_bytes(key, found.bytes)),
            Location::Long(value) => self.forget_long(value),
            Location::Lost => {}
        }
    }

    pub(super) fn forget_long(&mut self, value: u64) {
        for piece in self.long.remove(value) {
            if let Some(at) = piece.at {
                self.forget_record(at, record_bytes(0, piece.bytes));
            }
        }
    }

    pub(super) fn forget_record(&mut self, at: u64, bytes: u32) {
        assert!(bytes <= self.sizes.record_bytes_max, "a record of {bytes} bytes dies");
        let chunk = self.chunk_of(at);
        self.space.subtract(chunk, u64::from(bytes), self.sequence);
        self.work_due = true;
    }

    /// Asserts every invariant of the whole state.
    pub(super) fn check_all(&self) {
        self.flight.check();
        self.index.check();
        self.space.check();
        self.buffer_units.check();
        self.points.streams.iter().for_each(AppendPoint::check);
        self.points.checkpoint.check();
        let (mut user, mut kept, mut live) = (0, 0, 0);
        for (key, found) in self.index.resident() {
            user += u64::try_from(key.len()).expect("short") + u64::from(found.bytes);
            kept += self.kept_of(key.len(), found.bytes);
            match found.location {
                Location::Record(_) => live += u64::from(record_bytes(key.len(), found.bytes)),
                Location::Long(value) => assert!(
                    self.long.is_whole(value, found.bytes),
                    "key {key:02X?} holds value {value} of {} bytes, which is not whole",
                    found.bytes
                ),
                Location::Lost => {}
            }
        }
        let pieces = self.long.iter().filter(|(_, piece)| piece.at.is_some());
        live += pieces.map(|(_, piece)| u64::from(record_bytes(0, piece.bytes))).sum::<u64>();
        let dying: u64 = self.pages.dying().map(|(_, bytes)| bytes).sum();
        let released = self.index.released().map(|place| u64::from(page_record_bytes(place))).sum::<u64>();
        let pages = self.index.places().map(|place| u64::from(page_record_bytes(place))).sum::<u64>();
        assert_eq!(pages + released + dying, self.pages.live_bytes(), "bytes of pages are counted wrong");
        live += self.pages.live_bytes();
        if self.index.is_whole() {
            assert_eq!((user, kept), (self.user_bytes, self.kept_bytes), "bytes of users are counted wrong");
            assert_eq!(live, self.space.live_total(), "live bytes are not those that the index needs");
        } else {
            // Of what is not in memory nothing is known here.
            assert!(user <= self.user_bytes && kept <= self.kept_bytes, "bytes of users are counted wrong");
            assert!(live <= self.space.live_total(), "live bytes are fewer than the index needs");
        }
        let is_ordered = self.waiters.iter().is_sorted_by_key(|waiter| waiter.until);
        assert!(is_ordered, "replies wait out of order");
    }
}
