//! The instance: its parts, and what they have in common.
//!
//! Deliberately not here: procedures; each has a file of its own.

use super::buffer_units::BufferUnits;
use super::canary::Canary;
use super::extension::Extensions;
use super::flight::Purpose;
use super::level::Levelling;
use super::options::Options;
use super::requests::Requests;
use super::reset::Resets;
use super::retry::Retries;
use super::sizes::Sizes;
use super::space::{Role, Space};
use super::stats::ZnsStats;
use super::stop::Flush;
use super::tails::Tails;
use super::writer::Writer;
use super::zone::Zone;
use crate::chunk_wear::ChunkWear;
use crate::flight::Flight;
use crate::journal::Journal;
use ocssd_base::{Divisor, Nanos, Slab, SlabKey, usize_of};
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{Append, AppendConfig, ChunkUse};
use ocssd_lightnvm::interface::zoned::{ZoneGeometry, ZoneState};
use ocssd_lightnvm::{Addresses, Ppa, Status};
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

/// Zones on an open-channel drive.
#[derive(Clone, Debug)]
pub struct Zns {
    pub(super) options: Options,
    pub(super) sizes: Sizes,
    pub(super) geometry: ZoneGeometry,
    /// To divide by addresses of a zone, by blocks of a unit, and by the columns of a zone that nothing disturbed.
    pub(super) per_zone: Divisor,
    pub(super) per_unit: Divisor,
    pub(super) per_width: Divisor,
    /// The drive resets open chunks.
    pub(super) early_reset: bool,
    /// The drive has a limit on open chunks, so that none is left open.
    pub(super) has_open_limit: bool,
    /// Units of a group of the drive, for the order of stripes.
    pub(super) group_units: u32,
    pub(super) zones: Vec<Zone>,
    pub(super) extensions: Extensions,
    /// Zones with a random write area.
    pub(super) areas: BTreeSet<u32>,
    /// Open zones, the one opened first in front.
    pub(super) open: Vec<u32>,
    /// Open and closed zones.
    pub(super) active: u32,
    pub(super) writers: Slab<Writer>,
    /// All of them, in the order of their turns.
    pub(super) turns: VecDeque<SlabKey>,
    pub(super) buffer_units: BufferUnits,
    pub(super) requests: Requests,
    pub(super) flight: Flight<Purpose>,
    pub(super) retries: Retries,
    pub(super) tails: Tails,
    pub(super) space: Space,
    /// Chunks that are being filled to their end.
    pub(super) filling: VecDeque<ocssd_ftl::ChunkIndex>,
    /// Those of them that are being written.
    pub(super) padded: BTreeSet<ocssd_ftl::ChunkIndex>,
    /// Those of both that are reset then.
    pub(super) reset_after_padding: BTreeSet<ocssd_ftl::ChunkIndex>,
    /// How often chunks were reset.
    pub(super) wear: ChunkWear<u32>,
    /// Content that is moved for wear.
    pub(super) levelling: Levelling,
    /// Buffers of padding, a unit each, that no command has.
    pub(super) padding: Vec<ocssd_lightnvm::BufId>,
    pub(super) journal: Journal,
    /// Somebody waits for the log to be durable up to here.
    pub(super) log_awaited: Lsn,
    /// Something waits for room in the log.
    pub(super) log_is_full: bool,
    /// Requests that are over once the log is durable, in the order of its pages.
    pub(super) waits: VecDeque<(Lsn, SlabKey)>,
    pub(super) flushes: VecDeque<Flush>,
    /// A shutdown was asked for.
    pub(super) shutdown: Option<SlabKey>,
    pub(super) is_shut_down: bool,
    pub(super) changes: Changes,
    /// Blocks written to the instance, ever.
    pub(super) sequence: u64,
    /// The same when it was mounted.
    pub(super) mounted: u64,
    /// Chunks that are being reset.
    pub(super) resets: Resets,
    /// The instance is being mounted: nothing but its checkpoint and resets go on.
    pub(super) is_mounting: bool,
    /// Zones that became read only and nobody was told of, each once.
    pub(super) changed: VecDeque<u32>,
    pub(super) work_due: bool,
    pub(super) now: Nanos,
    pub(super) stats: ZnsStats,
}

impl Zns {
    /// True if this bug is planted in the instance.
    #[inline]
    pub(super) fn has_canary(&self, canary: Canary) -> bool {
        self.options.has_canary(canary)
    }

    /// The status of what would change something; none while changes are taken.
    pub(super) const fn refuses_changes(&self) -> Option<Status> {
        match self.changes {
            Changes::Taken => None,
            Changes::NoSpare => Some(Status::ZONE_IS_READ_ONLY),
            Changes::DriveFailed(status) => Some(status),
        }
    }

    /// Chunks that are not bad.
    pub(super) fn good_chunks(&self) -> u32 {
        self.space.good() + self.space.good_metadata().map_or(0, |(good, _)| good)
    }

    /// Good chunks below which changes may be refused: as many more than there are as the log and checkpoints lack in their lines.
    pub(super) fn chunks_needed(&self) -> u32 {
        let of_zones = self.sizes.chunks_needed;
        match self.space.good_metadata() {
            None => of_zones,
            Some((good, needed)) if good < needed => of_zones.max(self.space.good()) + needed,
            Some((good, _)) => of_zones + good,
        }
    }

    pub(super) fn zone(&self, zone: u32) -> &Zone {
        &self.zones[usize_of(zone)]
    }

    pub(super) fn zone_mut(&mut self, zone: u32) -> &mut Zone {
        &mut self.zones[usize_of(zone)]
    }

    /// How chunks of zones are written.
    pub(super) const fn append_config(&self) -> AppendConfig {
        AppendConfig {
            chunk_sectors: self.sizes.chunk,
            mw_cunits: self.sizes.mw_cunits,
            width: self.sizes.width,
            depth: self.options.writes_per_unit,
        }
    }

    /// A run of sectors of a chunk, as the drive calls it.
    pub(super) fn run_at(&self, at: Append, count: u32) -> Addresses {
        assert!(at.sector + count <= self.sizes.chunk, "a run of {count} at {at:?} leaves its chunk");
        Addresses::Run { first: Ppa::new(self.space.shape.chunk_id(at.chunk), at.sector), count }
    }

    /// The writer of a zone, made if it has none.
    pub(super) fn writer_of(&mut self, zone: u32) -> SlabKey {
        if let Some(key) = self.zone(zone).writer() {
            return key;
        }
        // A reset of the zone may be in the log and not on media, and the next life must not be taken for the last.
        let log = &self.journal.log;
        let wait = if log.is_pending() { log.end() } else { Lsn(0) };
        let fresh = Writer { tail_wait: wait, bound: wait, ..Writer::new(zone, self.sizes.zone_units) };
        let key = self.writers.insert(fresh);
        let key = key.unwrap_or_else(|_| unreachable!("there is a place for each zone"));
        self.zone_mut(zone).set_writer(Some(key));
        self.turns.push_back(key);
        key
    }

    /// A writer has nothing to do any more.
    pub(super) fn remove_writer(&mut self, key: SlabKey) {
        let writer = self.writers.remove(key);
        assert!(
            writer.is_settled() && writer.queue.is_empty(),
            "the writer of zone {} is at work",
            writer.zone
        );
        let is_free = writer.chunks_of_tails().next().is_none();
        assert!(is_free, "tails of zone {} are left behind", writer.zone);
        self.zone_mut(writer.zone).set_writer(None);
        self.turns.retain(|&other| other != key);
    }

    /// Changes the state a zone shows, and what is counted of it.
    pub(super) fn set_state(&mut self, zone: u32, state: ZoneState) {
        let before = std::mem::replace(&mut self.zone_mut(zone).state, state);
        if before.is_active() != state.is_active() {
            self.active = if state.is_active() { self.active + 1 } else { self.active - 1 };
        }
        if before.is_open() && !state.is_open() {
            self.open.retain(|&other| other != zone);
        } else if !before.is_open() && state.is_open() {
            self.open.push(zone);
        }
        if !state.is_active() && !self.has_canary(Canary::AreaKept) {
            self.areas.remove(&zone);
        }
        assert!(self.active <= self.sizes.zone_count, "{} zones are active", self.active);
        assert!(usize_of(self.sizes.open_max) >= self.open.len(), "{} zones are open", self.open.len());
    }

    /// Memory of the zone table: what zones cost the host beside buffers and those that write them.
    pub(super) fn table_bytes(&self) -> u64 {
        let segments = self.zones.iter().map(|zone| zone.segments.heap_bytes()).sum::<usize>();
        u64::try_from(self.zones.len() * size_of::<Zone>() + segments).expect("an index")
    }

    /// Asserts every invariant of the whole state.
    pub(super) fn check_all(&self) {
        self.flight.check();
        self.space.check();
        self.journal.check();
        self.buffer_units.check();
        self.requests.check();
        self.check_zones();
        self.check_levelling();
        let is_taken = self.refuses_changes().is_none();
        self.extensions.check(|zone| is_taken && self.zone(zone).writer().is_none());
        let held: usize = self.writers.iter().map(|(_, writer)| writer.held.len()).sum();
        assert_eq!(held, self.buffer_units.in_use(), "a buffer unit is in use and held by no zone");
        assert!(u32::try_from(self.areas.len()).is_ok_and(|areas| areas <= self.sizes.areas_max));
        let lives = |&zone: &u32| self.zone(zone).writer().is_some() || !is_taken;
        assert!(self.areas.iter().all(lives), "a zone has an area and nobody writes it");
        assert_eq!(self.stats.causes(), self.stats.programmed, "a program has no cause: {:?}", self.stats);
    }

    fn check_zones(&self) {
        let active = self.zones.iter().filter(|zone| zone.state.is_active()).count();
        assert_eq!(u32::try_from(active), Ok(self.active), "active zones are counted wrong");
        let mut owner: Vec<Option<u32>> = vec![None; usize_of(self.space.shape.chunks())];
        for (number, zone) in (0..).zip(&self.zones) {
            assert!(zone.written <= self.sizes.capacity(), "zone {number} holds more than it can");
            assert!(zone.segments.iter().is_sorted_by_key(|run| run.start), "zone {number} is out of order");
            assert_eq!(
                zone.state.is_open(),
                self.open.contains(&number),
                "zone {number} is {:?}",
                zone.state
            );
            for chunk in zone.chunks() {
                let other = owner[chunk.index()].replace(number);
                assert!(
                    other.is_none_or(|other| other == number),
                    "chunk {} is of zones {other:?} and {number}",
                    chunk.0
                );
                assert_eq!(
                    self.space.role(chunk),
                    Role::Data,
                    "chunk {} of zone {number} is not its",
                    chunk.0
                );
                let of = self.space.usage(chunk);
                assert!(
                    !matches!(of, ChunkUse::Free | ChunkUse::Dead),
                    "chunk {} of zone {number} is {of:?}",
                    chunk.0
                );
            }
            if let Some(key) = zone.writer() {
                let writer = self.writers.get(key);
                assert_eq!(writer.zone, number, "a writer is of another zone");
                writer.check(self.sizes.unit, &self.append_config());
            }
        }
    }
}
