//! Static wear levelling: the content of a chunk that lags in wear is moved to a worn one, and the log says so at once.
//!
//! One chunk is moved at a time, unit by unit, each to the same place in the other chunk, so that all the zone's table changes is a
//! number; what the zone has not in the chunk is padding. Only chunks of full zones are moved, which change by a reset alone: a
//! zone that is reset meanwhile ends the move. When all is written, and no read of the zone is in flight, the log has the new
//! chunk, and the old one dies once that is durable. A power cut before leaves the new chunk unused.
//!
//! Deliberately not here: which chunk, and how often (`chunk_wear`).

use super::canary::Canary;
use super::flight::Purpose;
use super::journal;
use super::program::pad;
use super::segments::UnitOfZone;
use super::space::Role;
use super::state::Zns;
use crate::chunk_wear::Lagging;
use crate::read_again::TRIES;
use ocssd_base::usize_of;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{Append, ChunkIndex, ChunkUse, UnitIndex};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Status};
use std::collections::BTreeMap;

/// What a move waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The next unit, or the end.
    Ready,
    /// A unit is being read, for the so-manieth time.
    Reading(u32),
    /// A unit was read, or is padding.
    Filled,
    /// It is being written.
    Writing,
}

/// A chunk's content on its way to another.
#[derive(Clone, Debug)]
struct Move {
    zone: u32,
    /// Since when the zone lives.
    since: u64,
    from: ChunkIndex,
    to: ChunkIndex,
    /// The zone's units in the chunk, by sector.
    units: BTreeMap<u32, UnitOfZone>,
    /// Where the next unit goes.
    at: u32,
    step: Step,
}

/// The move under way, and its buffer.
#[derive(Clone, Debug, Default)]
pub struct Levelling {
    /// A write unit; none where nothing is moved.
    buffer: Option<BufId>,
    current: Option<Move>,
}

impl Levelling {
    /// Nothing is under way; a buffer of `unit` sectors is taken if anything will be.
    pub fn new(is_wanted: bool, unit: u32, buffers: &mut Buffers) -> Self {
        Self { buffer: is_wanted.then(|| buffers.take(unit)), current: None }
    }
}

impl Zns {
    /// Goes on with what is moved for wear, or begins. True if anything was done.
    pub(super) fn level(&mut self, buffers: &mut Buffers) -> bool {
        let Some(buffer) = self.levelling.buffer else { return false };
        let Some(current) = &self.levelling.current else {
            let is_wanted = !self.has_canary(Canary::WearIgnored);
            let may_begin = self.shutdown.is_none() && !self.is_shut_down && is_wanted;
            return may_begin && self.wear.is_due() && self.begin_move();
        };
        let (step, at) = (current.step, current.at);
        match step {
            Step::Reading(_) | Step::Writing => false,
            Step::Ready | Step::Filled if !self.is_move_wanted() => {
                self.end_move();
                true
            }
            Step::Ready if at >= self.sizes.chunk => self.commit_move(),
            Step::Ready | Step::Filled if !self.flight.has_room(1) => false,
            Step::Ready => {
                self.fill_unit(buffer, buffers);
                true
            }
            Step::Filled => {
                self.write_unit(buffer);
                true
            }
        }
    }

    fn moved(&mut self) -> &mut Move {
        self.levelling.current.as_mut().expect("a chunk is being moved")
    }

    /// True as long as the content that is moved is that of its zone, and nobody wants to leave.
    fn is_move_wanted(&self) -> bool {
        let current = self.levelling.current.as_ref().expect("a chunk is being moved");
        let zone = self.zone(current.zone);
        let is_same = zone.since == current.since;
        let is_there = zone.chunks().any(|chunk| chunk == current.from);
        is_same
            && is_there
            && zone.writer().is_none()
            && zone.finished_at().is_some()
            && self.shutdown.is_none()
    }

    /// Begins to move a chunk that lags. True if it did.
    fn begin_move(&mut self) -> bool {
        let half = self.zones.len() / 2;
        let looked_at = if self.has_canary(Canary::WearLooksAtHalf) { half } else { self.zones.len() };
        let Self { wear, zones, .. } = self;
        let of_full = |(number, zone): (u32, &super::zone::Zone)| {
            let is_full = zone.finished_at().is_some() && zone.writer().is_none();
            let chunks: Vec<ChunkIndex> = if is_full { zone.chunks().collect() } else { Vec::new() };
            chunks.into_iter().map(move |chunk| Lagging { owner: number, chunk })
        };
        let Some(Lagging { owner: number, chunk: from }) =
            wear.next(|| (0..).zip(&zones[..looked_at]).flat_map(of_full))
        else {
            return false;
        };
        // It may have changed since it was found.
        let zone = &self.zones[usize_of(number)];
        let is_full = zone.finished_at().is_some() && zone.writer().is_none();
        let is_its = zone.chunks().any(|chunk| chunk == from);
        if !is_full || !is_its || !self.wear.lags(from) || self.space.usage(from) != ChunkUse::Closed {
            return true;
        }
        let (since, blocks) = (zone.since, zone.finished_at().unwrap_or(0));
        let unit = self.sizes.unit;
        let places = (0..blocks.div_ceil(unit)).map(|at| (at, zone.place(at, unit)));
        let units: BTreeMap<u32, UnitOfZone> =
            places.filter(|(_, place)| place.chunk == from).map(|(at, place)| (place.sector, at)).collect();
        let Some(to) = self.open_worn(number, from) else {
            self.wear.put_off();
            return false;
        };
        assert!(!units.is_empty(), "chunk {} of full zone {number} has no unit of it", from.0);
        self.wear.moving();
        self.levelling.current =
            Some(Move { zone: number, since, from, to, units, at: 0, step: Step::Ready });
        true
    }

    /// Opens the most worn free chunk that content can be moved to: on a unit that has no other column beside it, and worn by
    /// half the bound more. None is taken that the target itself needs.
    fn open_worn(&mut self, number: u32, from: ChunkIndex) -> Option<ChunkIndex> {
        let bound = self.wear.bound().expect("without a bound nothing is moved");
        let Self { zones, space, wear, .. } = self;
        let stripes = zones[usize_of(number)].segments.iter();
        let beside: Vec<UnitIndex> = stripes
            .filter(|segment| segment.columns.iter().any(|column| column.chunk == from))
            .flat_map(|segment| segment.columns.iter().filter(|column| column.chunk != from))
            .map(|column| space.unit_of(column.chunk))
            .collect();
        let units = (0..space.shape.units()).map(UnitIndex).filter(|unit| !beside.contains(unit));
        let units: Vec<UnitIndex> = units.collect();
        let least = wear.resets(from) + bound / 2;
        space.open_worn(&units, |chunk| Some(wear.resets(chunk)).filter(|&resets| resets > least))
    }

    /// The next unit is read, or padding.
    fn fill_unit(&mut self, buffer: BufId, buffers: &mut Buffers) {
        let unit = self.sizes.unit;
        let current = self.moved();
        let (from, at) = (current.from, current.at);
        let Some(&of_zone) = current.units.get(&at) else {
            current.step = Step::Filled;
            pad(buffer, 0, unit, buffers);
            return;
        };
        current.step = Step::Reading(1);
        self.read_unit(from, at, of_zone, buffer);
    }

    fn read_unit(&mut self, from: ChunkIndex, sector: u32, of_zone: UnitOfZone, buffer: BufId) {
        let count = self.blocks_in(of_zone).next_multiple_of(self.sizes.page);
        assert!((1..=self.sizes.unit).contains(&count), "{count} sectors of unit {of_zone} are moved");
        let addresses = self.run_at(Append { chunk: from, sector }, count);
        self.flight.send(Purpose::MoveRead, Op::Read, addresses, Some(buffer), 0);
    }

    /// Blocks that the zone which is moved has in one of its units.
    fn blocks_in(&mut self, of_zone: UnitOfZone) -> u32 {
        let number = self.moved().zone;
        let blocks = self.zone(number).finished_at().unwrap_or(self.sizes.capacity());
        (blocks - (of_zone * self.sizes.unit).min(blocks)).clamp(1, self.sizes.unit)
    }

    /// A unit was read: each block must be the zone's.
    pub(super) fn move_read(&mut self, completion: &Completion, buffers: &mut Buffers) {
        let buffer = self.levelling.buffer.expect("something is moved");
        let current = self.moved();
        let (number, from, at) = (current.zone, current.from, current.at);
        let Step::Reading(tries) = current.step else { panic!("a unit was read that nobody asked for") };
        let of_zone = *current.units.get(&at).expect("padding is not read");
        if !self.is_move_wanted() {
            self.moved().step = Step::Ready;
            return;
        }
        let count = self.blocks_in(of_zone);
        let first = self.geometry.start_of(number) + u64::from(of_zone * self.sizes.unit);
        let is_good = (0..count).all(|offset| {
            let status = completion.status_of(offset);
            Self::judge_sector(status, first + u64::from(offset), (buffer, offset), buffers).is_ok()
        });
        if is_good {
            pad(buffer, count, self.sizes.unit, buffers);
            self.moved().step = Step::Filled;
        } else if tries < TRIES {
            self.stats.read_again += u64::from(count);
            self.moved().step = Step::Reading(tries + 1);
            self.read_unit(from, at, of_zone, buffer);
        } else {
            // It stays where it is: a host that reads it is told what is lost.
            self.wear.cannot_move(from);
            self.end_move();
        }
    }

    fn write_unit(&mut self, buffer: BufId) {
        let unit = self.sizes.unit;
        let current = self.moved();
        current.step = Step::Writing;
        let at = Append { chunk: current.to, sector: current.at };
        self.stats.programmed += u64::from(unit);
        self.stats.wear_moved += u64::from(unit);
        let addresses = self.run_at(at, unit);
        self.flight.send(Purpose::MoveWrite, Op::Write { fua: true }, addresses, Some(buffer), 0);
    }

    /// A unit was written to where it goes.
    pub(super) fn move_written(&mut self, completion: &Completion) {
        let (status, unit, chunk) = (completion.status, self.sizes.unit, self.sizes.chunk);
        if status.is_drive_failure() {
            return self.stop(status);
        }
        let current = self.moved();
        assert_eq!(current.step, Step::Writing, "a unit was written that nobody moves");
        // A drive that fails a write closes the chunk, or leaves it where it can be written next.
        let goes_on = status.is_success() || status == Status::WRITE_NEXT_UNIT;
        current.at = if goes_on { current.at + unit } else { chunk };
        current.step = Step::Ready;
        let (to, is_over) = (current.to, current.at >= chunk);
        if is_over {
            self.space.close(to);
        }
        if !status.is_success() {
            self.end_move();
        }
    }

    /// The zone's content is in the new chunk. False if it must wait.
    fn commit_move(&mut self) -> bool {
        let (number, from, to) = {
            let current = self.moved();
            (current.zone, current.from, current.to)
        };
        if self.zone(number).reads > 0 || !self.has_room_for_zone(number) {
            return false;
        }
        self.levelling.current = None;
        let before: Vec<ChunkIndex> = self.zone(number).chunks().collect();
        self.zone_mut(number).segments.replace(from, to);
        let entries = journal::whole(number, self.zone(number));
        let end = self.log_change(&entries);
        self.await_log(end);
        let until = if self.has_canary(Canary::MovedBeforeLogged) { Lsn(0) } else { end };
        let zone = std::mem::replace(self.zone_mut(number), super::zone::Zone::empty());
        assert!(zone.chunks().all(|chunk| chunk != from), "zone {number} has the chunk it left");
        self.let_go(&before, &zone, until);
        *self.zone_mut(number) = zone;
        self.stats.wear_moves += 1;
        true
    }

    /// What was moved stays where it was: the new chunk is let go of.
    pub(super) fn end_move(&mut self) {
        let Some(Move { to, at, step, .. }) = self.levelling.current.take() else { return };
        assert!(!matches!(step, Step::Writing), "a move ends with a write under way");
        if self.space.usage(to) == ChunkUse::Open {
            if at == 0 {
                self.space.leave_unwritten(to);
            } else {
                self.space.leave(to, at);
            }
        }
        self.space.die(to, Lsn(0));
        self.work_due = true;
    }

    /// True if a move holds a chunk and nothing of it is in flight.
    pub(super) fn may_end_move(&self) -> bool {
        self.levelling
            .current
            .as_ref()
            .is_some_and(|current| matches!(current.step, Step::Ready | Step::Filled))
    }

    /// Asserts what must hold between calls.
    pub(super) fn check_levelling(&self) {
        let Some(Move { zone, from, to, at, .. }) = &self.levelling.current else { return };
        assert!(from != to, "chunk {} of zone {zone} moves to itself", from.0);
        assert_eq!(self.space.role(*to), Role::Data, "chunk {} takes what is moved", to.0);
        let of = self.space.usage(*to);
        let is_whole = *at >= self.sizes.chunk;
        assert!(
            of == if is_whole { ChunkUse::Closed } else { ChunkUse::Open },
            "chunk {} is {of:?} at {at}",
            to.0
        );
    }
}
