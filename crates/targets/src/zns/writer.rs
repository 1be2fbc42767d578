//! Who writes a zone: what waits for it, the buffer units it has, the chunks that are open for it, and how far it is durable.
//!
//! A zone has one while anything of it is not settled: while it is active, and until all of a full one can be read from media.
//! Deliberately not here: commands, other zones.

use super::area::Area;
use super::buffer_units::BufferUnitId;
use super::held_units::HeldUnits;
use super::segments::UnitOfZone;
use ocssd_base::SlabKey;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{Append, AppendConfig, ChunkIndex, OpenChunk};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is done to a zone, in the order in which it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneOp {
    /// Blocks to be written.
    Write(SlabKey),
    /// A read that must see what was asked for before it.
    Read(SlabKey),
    /// It becomes empty.
    Reset(SlabKey),
    /// It becomes full.
    Finish(SlabKey),
    /// It becomes offline.
    Offline(SlabKey),
    /// Its descriptor gets an extension.
    Describe(SlabKey),
    /// It gets a random write area.
    OpenArea(SlabKey),
    /// A part of its area is committed.
    Commit(SlabKey),
}

impl ZoneOp {
    /// The request it is of.
    pub const fn request(self) -> SlabKey {
        let (Self::Write(request)
        | Self::Read(request)
        | Self::Reset(request)
        | Self::Finish(request)
        | Self::Offline(request)
        | Self::Describe(request)
        | Self::OpenArea(request)
        | Self::Commit(request)) = self;
        request
    }
}

/// How much of a zone is to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Blocks before this one.
    pub blocks: u32,
    /// Versions of blocks of its area up to this one.
    pub version: u64,
}

/// What an open chunk holds until it can be read: a buffer unit, or padding.
pub type HeldBufferUnit = Option<BufferUnitId>;

/// Parts of a unit that were made durable in tails.
#[derive(Clone, Debug, Default)]
pub struct TailState {
    /// Blocks before this one are in tails, as far as they are not on media in their own place.
    pub end: u32,
    /// The same, once what is on its way has been programmed.
    pub sent: u32,
    /// Pages on their way.
    pub pages: u32,
    /// One of them failed.
    pub has_failed: bool,
    /// The chunks of tails that hold them.
    pub chunks: Vec<ChunkIndex>,
    /// Those that hold them until what they hold is written anew.
    pub old: Vec<ChunkIndex>,
    /// Blocks before this one are in the old ones.
    pub goal: u32,
}

/// The writer of a zone.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Which zone.
    pub zone: u32,
    /// What waits.
    pub queue: VecDeque<ZoneOp>,
    /// Blocks of the zone that are in buffer units, or were.
    pub admitted: u32,
    /// The buffer unit that is being filled.
    pub filling: Option<BufferUnitId>,
    /// Buffer units to be written, in order.
    pub ready: VecDeque<BufferUnitId>,
    /// Buffer units that the media failed, by unit.
    pub failed: BTreeMap<UnitOfZone, BufferUnitId>,
    /// Buffer units that have a new place, and wait for the log to say so.
    pub moved: VecDeque<(BufferUnitId, Append)>,
    /// Every buffer unit, by unit, from its first block until it can be read from media.
    pub held: HeldUnits,
    /// The first unit that was given no place.
    pub next: UnitOfZone,
    /// The first unit behind the segment at hand.
    pub end: UnitOfZone,
    /// The first unit that will never be written.
    pub limit: UnitOfZone,
    /// The chunks of the segment at hand, in the order of its columns.
    pub columns: Vec<OpenChunk<HeldBufferUnit>>,
    /// Chunks of segments before that are not over.
    pub ended: Vec<OpenChunk<HeldBufferUnit>>,
    /// Writes in flight, of buffer units and padding.
    pub in_flight: u32,
    /// Every unit before this one is on media.
    pub programmed: UnitOfZone,
    /// Units behind that are, too.
    pub beyond: BTreeSet<UnitOfZone>,
    /// Nothing is given out before the log is durable up to here.
    pub wait: Lsn,
    /// No tail is given out before the log is durable up to here: it says when the zone's life began.
    pub tail_wait: Lsn,
    /// Once the log is durable up to here, a mount finds all that was given out.
    pub bound: Lsn,
    /// Parts of units.
    pub tail: TailState,
    /// Somebody waits for the blocks before this one to be durable.
    pub awaited: u32,
    /// Writes that are answered when durable, and the blocks before which that must be.
    pub waiters: VecDeque<(u32, SlabKey)>,
    /// The random write area; its buffer units are held, and neither filling nor ready.
    pub area: Option<Box<Area>>,
    /// Nothing is written behind what is: what remains is made readable.
    pub is_ending: bool,
    /// The log has that it is full.
    pub is_finished: bool,
    /// The zone is read only: buffer units that have no place are kept for reads.
    pub is_given_up: bool,
}

impl Writer {
    /// The writer of an empty zone of `limit` units.
    pub fn new(zone: u32, limit: UnitOfZone) -> Self {
        Self {
            zone,
            queue: VecDeque::new(),
            admitted: 0,
            filling: None,
            ready: VecDeque::new(),
            failed: BTreeMap::new(),
            moved: VecDeque::new(),
            held: HeldUnits::default(),
            next: 0,
            end: 0,
            limit,
            columns: Vec::new(),
            ended: Vec::new(),
            in_flight: 0,
            programmed: 0,
            beyond: BTreeSet::new(),
            wait: Lsn(0),
            tail_wait: Lsn(0),
            bound: Lsn(0),
            tail: TailState::default(),
            awaited: 0,
            waiters: VecDeque::new(),
            area: None,
            is_ending: false,
            is_finished: false,
            is_given_up: false,
        }
    }

    /// Blocks before this one survive a power cut once the log is durable up to [`Self::bound`]; of units of `unit` blocks.
    pub fn durable(&self, unit: u32) -> u32 {
        // Of a unit that is not whole a mount knows only once the zone is finished.
        let is_part = self.programmed * unit > self.admitted && !self.is_finished;
        let programmed = if is_part { self.programmed - 1 } else { self.programmed };
        let whole = programmed * unit;
        let durable = if self.tail.end > whole && (self.tail.end - 1) / unit == programmed {
            self.tail.end
        } else {
            whole
        };
        durable.min(self.admitted)
    }

    /// All that was taken of it. What was taken before it had its area is on media.
    pub fn goal(&self) -> Goal {
        match &self.area {
            Some(area) => Goal { blocks: 0, version: area.newest() },
            None => Goal { blocks: self.admitted, version: 0 },
        }
    }

    /// Somebody waits for a goal. True if nobody did before.
    pub fn wait_for(&mut self, goal: Goal) -> bool {
        let is_later = goal.blocks > self.awaited;
        self.awaited = self.awaited.max(goal.blocks);
        self.area.as_mut().is_some_and(|area| area.wait_for(goal.version)) || is_later
    }

    /// True if a goal survives a power cut once the log is durable up to [`Self::bound`].
    pub fn has_reached(&self, goal: Goal, unit: u32) -> bool {
        self.durable(unit) >= goal.blocks
            && self.area.as_ref().is_none_or(|area| area.is_durable(goal.version))
    }

    /// True if a request waits for blocks to be durable.
    pub fn has_waiters(&self) -> bool {
        !self.waiters.is_empty() || self.area.as_ref().is_some_and(|area| !area.waiters.is_empty())
    }

    /// The requests that wait for blocks to be durable; they wait no more.
    pub fn take_waiters(&mut self) -> Vec<SlabKey> {
        let of_area = self.area.iter_mut().flat_map(|area| area.waiters.drain(..));
        self.waiters
            .drain(..)
            .map(|(_, request)| request)
            .chain(of_area.map(|(_, request)| request))
            .collect()
    }

    /// A unit is on media.
    pub fn on_programmed(&mut self, at: UnitOfZone) {
        assert!(
            at >= self.programmed && self.beyond.insert(at),
            "unit {at} of zone {} was programmed twice",
            self.zone
        );
        while self.beyond.remove(&self.programmed) {
            self.programmed += 1;
        }
        assert!(self.programmed <= self.next, "more of zone {} was programmed than was given out", self.zone);
    }

    /// True if a unit is on media in its place, whether all before it are or not.
    pub fn is_on_media(&self, at: UnitOfZone) -> bool {
        at < self.programmed || self.beyond.contains(&at)
    }

    /// An open chunk of it. Where nothing disturbed the zone it is the column of that number of the segment at hand; else it is
    /// looked for.
    pub fn chunk_mut(&mut self, chunk: ChunkIndex, column: usize) -> &mut OpenChunk<HeldBufferUnit> {
        if self.columns.get(column).is_some_and(|open| open.chunk() == chunk) {
            return &mut self.columns[column];
        }
        let open = self.columns.iter_mut().chain(&mut self.ended).find(|open| open.chunk() == chunk);
        open.unwrap_or_else(|| panic!("chunk {} is not open for zone {}", chunk.0, self.zone))
    }

    /// Nothing of it waits to be given out, or is on its way.
    pub fn is_quiet(&self) -> bool {
        self.in_flight == 0
            && self.ready.is_empty()
            && self.failed.is_empty()
            && self.moved.is_empty()
            && self.tail.pages == 0
    }

    /// Every block that was taken is on media in its place, or never will be.
    pub fn is_all_programmed(&self) -> bool {
        let waits = !self.ready.is_empty() || !self.failed.is_empty() || !self.moved.is_empty();
        let is_over = self.programmed == self.next || self.is_given_up && self.in_flight == 0;
        is_over && !waits && self.filling.is_none() && self.tail.pages == 0
    }

    /// Nothing is in memory that is not on media, and nothing waits.
    pub fn is_settled(&self) -> bool {
        self.is_quiet() && self.held.is_empty()
    }

    /// The runs of blocks that should go to tails, in order, none across a border of units.
    pub fn wanted_tails(&self, unit: u32) -> Vec<(u32, u32)> {
        if self.tail.pages > 0 || !self.failed.is_empty() {
            return Vec::new();
        }
        match &self.area {
            Some(area) => area.wanted(self.admitted, unit),
            None if self.wants_tail(unit) => {
                vec![((self.admitted / unit * unit).max(self.tail.end), self.admitted)]
            }
            None => Vec::new(),
        }
    }

    /// What a part of it counts for in a chunk of tails.
    pub fn counted(&self, from: u32, to: u32) -> u32 {
        if self.area.is_some() { to - from } else { 1 }
    }

    /// The chunks of tails it needs, once for whatever counts.
    pub fn chunks_of_tails(&self) -> impl Iterator<Item = ChunkIndex> {
        let of_area = self.area.iter().flat_map(|area| area.chunks());
        self.tail.chunks.iter().copied().chain(of_area)
    }

    /// True if the part of a unit should go to tails.
    pub fn wants_tail(&self, unit: u32) -> bool {
        let Some(begin) = self.filling.map(|_| self.admitted / unit * unit) else { return false };
        self.tail.pages == 0 && self.awaited > self.tail.end.max(begin) && self.failed.is_empty()
    }

    /// True if what tails hold is on media in its own place. What is written anew lies in the old ones until the new ones have all
    /// of it. The last unit of a zone that is finished early is not whole, and tails have it until the zone is finished.
    pub fn needs_no_tails(&self, unit: u32) -> bool {
        let in_tails = self.tail.end.max(self.tail.goal);
        !self.is_ending && self.tail.pages == 0 && in_tails <= self.programmed * unit
    }

    /// True if what of a unit is in tails can be written anew: it is in a buffer unit, and that is not under way.
    pub fn may_write_tail_anew(&self, unit: u32) -> bool {
        if let Some(area) = &self.area {
            return self.tail.pages == 0 && !area.is_writing_anew();
        }
        let begin = self.admitted / unit * unit;
        // The chunks of tails hold what units before it had in an area, too, until these were programmed.
        let is_under_way =
            self.tail.pages > 0 || !self.tail.old.is_empty() || self.programmed < self.admitted / unit;
        self.filling.is_some() && !is_under_way && self.tail.end > begin
    }

    /// What of a unit is in tails is to be written anew: the chunks that hold it are wanted.
    pub fn write_tail_anew(&mut self, unit: u32) {
        if !self.may_write_tail_anew(unit) {
            return;
        }
        let begin = self.admitted / unit * unit;
        let tail = &mut self.tail;
        tail.old = std::mem::take(&mut tail.chunks);
        tail.goal = tail.end;
        (tail.end, tail.sent) = (begin, begin);
        self.awaited = self.awaited.max(tail.goal);
    }

    /// Asserts what must hold between calls.
    pub fn check(&self, unit: u32, config: &AppendConfig) {
        assert!(
            self.durable(unit) <= self.admitted,
            "more of zone {} is durable than was written",
            self.zone
        );
        assert!(self.programmed <= self.next, "more of zone {} was programmed than was given out", self.zone);
        let flying: usize = self.columns.iter().chain(&self.ended).map(OpenChunk::in_flight).sum();
        assert_eq!(
            u32::try_from(flying),
            Ok(self.in_flight),
            "writes to zone {} are counted wrong",
            self.zone
        );
        for open in &self.columns {
            assert!(open.pointer() <= config.chunk_sectors, "chunk {} is overfull", open.chunk().0);
        }
        assert!(
            self.area.is_none() || self.filling.is_none(),
            "zone {} has an area, and is filled in order",
            self.zone
        );
        let is_held = self
            .ready
            .iter()
            .chain(&self.filling)
            .all(|&buffer_unit| self.held.from(0).any(|(_, held)| held == buffer_unit));
        self.held.check();
        assert!(is_held, "a buffer unit of zone {} is not held", self.zone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_is_what_was_programmed_without_a_gap_and_the_tail_right_behind() {
        let mut writer = Writer { admitted: 30, next: 7, ..Writer::new(3, 100) };
        assert_eq!(writer.durable(4), 0);
        writer.on_programmed(1);
        assert_eq!((writer.programmed, writer.durable(4)), (0, 0));
        writer.on_programmed(0);
        assert_eq!((writer.programmed, writer.durable(4)), (2, 8));
        writer.tail.end = 11;
        assert_eq!(writer.durable(4), 11, "a part of the third unit");
        writer.tail.end = 30;
        assert_eq!(writer.durable(4), 8, "a part of a unit behind one that was not programmed");
        (2..7).for_each(|at| writer.on_programmed(at));
        assert_eq!(writer.durable(4), 30, "the tail is right behind what was programmed now");
        (writer.next, writer.tail.end) = (8, 29);
        writer.on_programmed(7);
        assert_eq!(writer.durable(4), 29, "a unit that is not whole counts once the zone is finished");
        writer.is_finished = true;
        assert_eq!(writer.durable(4), 30);
    }

    #[test]
    fn a_part_goes_to_tails_only_if_somebody_waits_for_it() {
        let mut writer = Writer {
            admitted: 10,
            next: 2,
            programmed: 2,
            filling: Some(BufferUnitId(1)),
            ..Writer::new(3, 100)
        };
        for (awaited, end, expected) in
            [(0, 0, false), (8, 0, false), (9, 0, true), (10, 9, true), (10, 10, false)]
        {
            (writer.awaited, writer.tail.end) = (awaited, end);
            assert_eq!(writer.wants_tail(4), expected, "{awaited} awaited, {end} in tails");
        }
        (writer.awaited, writer.tail.chunks) = (0, vec![ChunkIndex(7)]);
        writer.write_tail_anew(4);
        assert_eq!((writer.tail.end, writer.tail.goal, &writer.tail.old), (8, 10, &vec![ChunkIndex(7)]));
        assert!(writer.wants_tail(4), "all of the unit is written anew");
        assert!(!writer.may_write_tail_anew(4), "that is under way, and must not begin again");
        writer.filling = None;
        assert!(!writer.wants_tail(4), "whole units go to their own place");
    }

    #[test]
    fn a_tail_is_written_anew_once_all_before_it_is_in_place_and_nothing_of_it_is_under_way() {
        let sound = Writer {
            admitted: 10,
            next: 2,
            programmed: 2,
            filling: Some(BufferUnitId(1)),
            tail: TailState { end: 9, sent: 9, chunks: vec![ChunkIndex(7)], ..TailState::default() },
            ..Writer::new(3, 100)
        };
        assert!(sound.may_write_tail_anew(4));
        let not = |why: &str, change: fn(&mut Writer)| {
            let mut writer = sound.clone();
            change(&mut writer);
            assert!(!writer.may_write_tail_anew(4), "{why}");
        };
        not("a page is on its way", |writer| writer.tail.pages = 1);
        not("it lies in old chunks still", |writer| writer.tail.old = vec![ChunkIndex(6)]);
        not("a unit before it is not in place", |writer| writer.programmed = 1);
        not("it is in no buffer unit", |writer| writer.filling = None);
        not("nothing of the unit is in tails", |writer| writer.tail.end = 8);
    }

    #[test]
    fn tails_are_needed_until_what_they_hold_is_in_place_though_it_is_being_written_anew() {
        for begin in [0, 8] {
            let mut writer = Writer {
                admitted: begin + 2,
                next: begin / 4,
                programmed: begin / 4,
                filling: Some(BufferUnitId(1)),
                tail: TailState { end: begin + 2, chunks: vec![ChunkIndex(7)], ..TailState::default() },
                ..Writer::new(3, 100)
            };
            assert!(!writer.needs_no_tails(4), "block {begin} is in its tail only");
            writer.write_tail_anew(4);
            assert_eq!(writer.tail.old, [ChunkIndex(7)]);
            assert!(!writer.needs_no_tails(4), "block {begin} is in its old tail only");
            writer.tail.pages = 1;
            writer.programmed += 1;
            assert!(!writer.needs_no_tails(4), "a page is on its way");
            writer.tail.pages = 0;
            assert!(writer.needs_no_tails(4), "the unit of block {begin} is in place");
            writer.is_ending = true;
            assert!(!writer.needs_no_tails(4), "it may not be whole");
        }
    }
}
