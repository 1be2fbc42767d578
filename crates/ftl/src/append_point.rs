//! Where a stream's next unit goes: chunks that are written side by side, over any set of units.
//!
//! The set may be all units, one group's, or one unit; `width` says how many chunks are written at a time. Positions take
//! turns, so that units are striped over chunks; a position that is busy, or finds no chunk, is passed over. A chunk is
//! opened when its turn comes. A write that the media failed leaves a hole: what it carried goes to the next place, like
//! any other. What was programmed is held until it can be read (MW_CUNITS). Deliberately not here: which chunks are free
//! (`chunk_pool`), data, commands.

use crate::instance_geometry::{ChunkIndex, UnitIndex};
use crate::open_chunk::OpenChunk;
use crate::position_set::PositionSet;
use ocssd_base::usize_of;

/// How a stream is written.
#[derive(Clone, Copy, Debug)]
pub struct AppendConfig {
    /// Sectors of a chunk.
    pub chunk_sectors: u32,
    /// Sectors that must follow one before it can be read.
    pub mw_cunits: u32,
    /// Chunks written at a time, 1..= the units of the set.
    pub width: u32,
    /// Writes in flight to a chunk.
    pub depth: u32,
}

/// A place for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Append {
    /// The chunk.
    pub chunk: ChunkIndex,
    /// The first sector of it.
    pub sector: u32,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOutcome<T> {
    /// It is on media; the owner keeps this until it can be read.
    Written(T),
    /// It is not, and the chunk goes on behind it (write next unit).
    Lost,
    /// It is not, and the drive closed the chunk where the write began.
    Closed,
    /// The drive itself failed and stored nothing: the chunk is as it was, and gets no more writes.
    Refused,
}

/// What the owner is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendEvent<T> {
    /// This can be read from media now.
    Readable(T),
    /// The chunk is written to its end, or closed, and nothing to it is in flight.
    Closed(ChunkIndex),
}

/// Where a stream is written. `T` is what the owner keeps of a write until it can be read.
#[derive(Clone, Debug)]
pub struct AppendPoint<T> {
    config: AppendConfig,
    units: Vec<UnitIndex>,
    /// As many as the width. Of as many as there are units, each is one unit's.
    positions: Vec<Option<OpenChunk<T>>>,
    /// Positions without a chunk.
    empty: PositionSet,
    /// Positions whose chunk takes a write now.
    taking: PositionSet,
    /// Which position a chunk is at, in order.
    at: Vec<(ChunkIndex, usize)>,
    /// Full or closed chunks with writes in flight.
    ending: Vec<OpenChunk<T>>,
    turn: usize,
    in_flight: usize,
    /// Sectors that the chunks at positions still take.
    room: u64,
}

impl<T: Copy> AppendPoint<T> {
    /// A stream with no chunk open, on these units, in stripe order.
    ///
    /// # Panics
    /// If there is no unit, or the width or depth is none that can be.
    #[must_use]
    pub fn new(config: AppendConfig, units: &[UnitIndex]) -> Self {
        assert!(config.depth > 0 && config.chunk_sectors > 0, "{config:?} writes nothing");
        assert!((1..=units.len()).contains(&usize_of(config.width)), "{config:?} on {} units", units.len());
        Self {
            config,
            units: units.to_vec(),
            positions: (0..config.width).map(|_| None).collect(),
            empty: PositionSet::new(usize_of(config.width), true),
            taking: PositionSet::new(usize_of(config.width), false),
            at: Vec::with_capacity(usize_of(config.width)),
            ending: Vec::new(),
            turn: 0,
            in_flight: 0,
            room: 0,
        }
    }

    /// The units a position may open a chunk on.
    fn units_of(&self, position: usize) -> &[UnitIndex] {
        if self.positions.len() == self.units.len() { &self.units[position..=position] } else { &self.units }
    }

    /// The place for a write of `sectors`, which counts as given out. `open` is asked for a free chunk on one of some units.
    /// `None` if every position is busy, or none finds a chunk.
    ///
    /// # Panics
    /// If the chunks are no multiple of it.
    pub fn next(
        &mut self,
        sectors: u32,
        open: impl FnMut(&[UnitIndex]) -> Option<ChunkIndex>,
    ) -> Option<Append> {
        let mut open = open;
        self.next_among(sectors, &mut open, true, |_, _| true, |open, units| open(units))
    }

    /// As [`Self::next`], but passes over positions whose chunk is not among those that `may` names; both procedures are given
    /// `space`. Unless `may_open`, no chunk is asked for: then only positions that have one are looked at.
    ///
    /// # Panics
    /// As [`Self::next`].
    pub fn next_among<S>(
        &mut self,
        sectors: u32,
        space: &mut S,
        may_open: bool,
        may: impl Fn(&S, ChunkIndex) -> bool,
        open: impl Fn(&mut S, &[UnitIndex]) -> Option<ChunkIndex>,
    ) -> Option<Append> {
        assert!(self.config.chunk_sectors.is_multiple_of(sectors), "{sectors} sectors do not divide a chunk");
        let count = self.positions.len();
        for (from, end) in [(self.turn, count), (0, self.turn)] {
            let mut next = from;
            while let Some(position) = self.taking.first_within(may_open.then_some(&self.empty), next, end) {
                next = position + 1;
                if self.empty.contains(position)
                    && let Some(chunk) = open(space, self.units_of(position))
                {
                    self.adopt_at(position, chunk, 0);
                }
                let is_named = |open: &OpenChunk<T>| may(space, open.chunk);
                if self.taking.contains(position) && self.positions[position].as_ref().is_some_and(is_named) {
                    self.turn = next % count;
                    return Some(self.give(position, sectors));
                }
            }
        }
        None
    }

    /// The next place of the chunk at a position.
    fn give(&mut self, position: usize, sectors: u32) -> Append {
        let chunk = self.positions[position].as_mut().expect("it was found open");
        let place = chunk.give(sectors, &self.config);
        self.room -= u64::from(sectors);
        if chunk.pointer == self.config.chunk_sectors {
            self.end_at(position);
        } else {
            self.look_at(position);
        }
        self.in_flight += 1;
        place
    }

    /// Looks whether the chunk at a position takes a write.
    fn look_at(&mut self, position: usize) {
        let depth = usize_of(self.config.depth);
        let takes = |open: &OpenChunk<T>| open.in_flight() < depth && !open.is_refused;
        self.taking.set(position, self.positions[position].as_ref().is_some_and(takes));
    }

    /// The chunk at a position takes no more.
    fn end_at(&mut self, position: usize) {
        let open = self.positions[position].take().expect("a position has a chunk");
        self.room -= u64::from(self.config.chunk_sectors - open.pointer);
        self.at.retain(|&(chunk, _)| chunk != open.chunk);
        self.ending.push(open);
        self.empty.set(position, true);
        self.taking.set(position, false);
    }

    /// Where a chunk that takes more is.
    fn position_of(&self, chunk: ChunkIndex) -> Option<usize> {
        let found = self.at.binary_search_by_key(&chunk, |&(chunk, _)| chunk);
        found.ok().map(|index| self.at[index].1)
    }

    fn find(&self, chunk: ChunkIndex) -> Option<&OpenChunk<T>> {
        match self.position_of(chunk) {
            Some(position) => self.positions[position].as_ref(),
            None => self.ending.iter().find(|open| open.chunk == chunk),
        }
    }

    fn adopt_at(&mut self, position: usize, chunk: ChunkIndex, pointer: u32) {
        assert!(self.positions[position].is_none(), "a position has two chunks");
        assert!(pointer < self.config.chunk_sectors, "chunk {} is full", chunk.0);
        assert!(!self.has(chunk), "chunk {} is opened twice", chunk.0);
        self.positions[position] = Some(OpenChunk::new(chunk, pointer));
        self.room += u64::from(self.config.chunk_sectors - pointer);
        let before = self.at.partition_point(|&(other, _)| other < chunk);
        self.at.insert(before, (chunk, position));
        self.empty.set(position, false);
        self.look_at(position);
    }

    /// Goes on with a chunk that was written up to `pointer` before, all of which can be read. False if there is no position
    /// for it.
    pub fn adopt(&mut self, chunk: ChunkIndex, unit: UnitIndex, pointer: u32) -> bool {
        let is_of = |position: &usize| self.units_of(*position).contains(&unit);
        let free =
            (0..self.positions.len()).filter(is_of).find(|&position| self.positions[position].is_none());
        if let Some(position) = free {
            self.adopt_at(position, chunk, pointer);
        }
        free.is_some()
    }

    /// A write is over. Tells what can be read now, and whether the chunk is closed.
    ///
    /// # Panics
    /// If it was not given out, or ended before.
    pub fn programmed(&mut self, at: Append, outcome: ProgramOutcome<T>, events: &mut Vec<AppendEvent<T>>) {
        assert!(self.in_flight > 0, "a write was programmed that was not given out");
        self.in_flight -= 1;
        let config = self.config;
        let position = self.position_of(at.chunk);
        let open = match position {
            Some(position) => self.positions[position].as_mut(),
            None => self.ending.iter_mut().find(|open| open.chunk == at.chunk),
        };
        let open = open.expect("a write was programmed in a chunk that is not open");
        open.programmed(&config, at.sector, outcome, events);
        let is_closed = open.is_closed;
        match position {
            Some(position) if is_closed => self.end_at(position),
            Some(position) => self.look_at(position),
            None => {}
        }
        if let Some(ended) = self.ending.iter().position(OpenChunk::has_ended) {
            let open = self.ending.swap_remove(ended);
            assert!(!open.is_holding(), "a closed chunk cannot be read");
            events.push(AppendEvent::Closed(open.chunk));
        }
    }

    fn chunks(&self) -> impl Iterator<Item = &OpenChunk<T>> {
        self.positions.iter().flatten().chain(&self.ending)
    }

    /// True if the chunk is open here, or has writes in flight.
    #[must_use]
    pub fn has(&self, chunk: ChunkIndex) -> bool {
        self.find(chunk).is_some()
    }

    /// What was programmed at a sector that cannot be read yet, and which of its sectors that is.
    #[must_use]
    pub fn held(&self, at: Append) -> Option<(T, u32)> {
        self.find(at.chunk)?.held_at(at.sector)
    }

    /// Chunks written at a time.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.config.width
    }

    /// Writes in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// True if a chunk is open, and takes more.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.positions.iter().any(Option::is_some)
    }

    /// Sectors that open chunks still take.
    #[must_use]
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        let flying: usize = self.chunks().map(OpenChunk::in_flight).sum();
        assert_eq!(flying, self.in_flight, "writes in flight are counted wrong");
        let left = |open: &OpenChunk<T>| u64::from(self.config.chunk_sectors - open.pointer);
        let room: u64 = self.positions.iter().flatten().map(left).sum();
        assert_eq!(room, self.room, "sectors that chunks take are counted wrong");
        assert!(self.at.is_sorted(), "chunks are listed out of order");
        assert_eq!(self.at.len(), self.positions.iter().flatten().count(), "a chunk is not listed");
        for (position, open) in self.positions.iter().enumerate() {
            let depth = usize_of(self.config.depth);
            let takes = open.as_ref().is_some_and(|open| open.in_flight() < depth && !open.is_refused);
            assert_eq!(self.taking.contains(position), takes, "position {position} is taken for another");
            assert_eq!(
                self.empty.contains(position),
                open.is_none(),
                "position {position} is taken for empty"
            );
        }
        for open in self.chunks() {
            assert!(
                open.acknowledged <= open.pointer,
                "chunk {} was programmed more than it was given",
                open.chunk.0
            );
            assert!(
                open.in_flight() <= usize_of(self.config.depth),
                "chunk {} has too many writes",
                open.chunk.0
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::{BTreeMap, BTreeSet};

    const CHUNK: u32 = 24;
    const UNIT: u32 = 4;

    fn units(count: u32) -> Vec<UnitIndex> {
        (0..count).map(UnitIndex).collect()
    }

    fn point(width: u32, count: u32, mw_cunits: u32, depth: u32) -> AppendPoint<u64> {
        AppendPoint::new(AppendConfig { chunk_sectors: CHUNK, mw_cunits, width, depth }, &units(count))
    }

    /// What a naive owner knows of a chunk: every write, and how it ended.
    #[derive(Default)]
    struct Model {
        writes: BTreeMap<u32, Option<ProgramOutcome<u64>>>,
        is_closed: bool,
    }

    impl Model {
        /// Sectors from the start all of whose writes are over.
        fn done(&self) -> u32 {
            let over = self.writes.values().take_while(|outcome| outcome.is_some()).count();
            u32::try_from(over).expect("small") * UNIT
        }

        fn readable(&self, mw_cunits: u32) -> u32 {
            let done = self.done();
            if self.is_closed || done == CHUNK { done } else { done.saturating_sub(mw_cunits) }
        }
    }

    /// A random owner: writes are programmed in any order, fail, close chunks; chunks run out now and then.
    #[test]
    fn places_are_in_order_striped_and_readable_as_a_naive_model_says() {
        for seed in 0..200 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let count = 1 + u32::try_from(prng.below(5)).expect("small");
            let width = 1 + u32::try_from(prng.below(u64::from(count))).expect("small");
            let mw_cunits = UNIT * u32::try_from(prng.below(4)).expect("small");
            let depth = 1 + u32::try_from(prng.below(3)).expect("small");
            run(&mut prng, point(width, count, mw_cunits, depth), mw_cunits, (width, depth));
        }
    }

    fn run(prng: &mut Prng, mut point: AppendPoint<u64>, mw_cunits: u32, (width, depth): (u32, u32)) {
        let (mut opened, mut tokens) = (0, 0);
        let mut chunks: BTreeMap<ChunkIndex, Model> = BTreeMap::new();
        let mut flying: Vec<Append> = Vec::new();
        let mut readable: BTreeSet<u64> = BTreeSet::new();
        assert_eq!(point.width(), width);
        for _ in 0..400 {
            let has_free = prng.below(4) > 0;
            if prng.below(2) == 0 {
                let place = point.next(UNIT, |_| {
                    has_free.then(|| {
                        opened += 1;
                        ChunkIndex(opened)
                    })
                });
                if let Some(place) = place {
                    let model = chunks.entry(place.chunk).or_default();
                    let before = u32::try_from(model.writes.len()).expect("small");
                    assert_eq!(place.sector, before * UNIT, "a chunk is written in order");
                    model.writes.insert(place.sector, None);
                    let open = model.writes.values().filter(|outcome| outcome.is_none()).count();
                    assert!(open <= usize_of(depth), "{open} writes to a chunk");
                    flying.push(place);
                }
            } else if !flying.is_empty() {
                let at =
                    usize::try_from(prng.below(u64::try_from(flying.len()).expect("small"))).expect("small");
                let place = flying.swap_remove(at);
                programmed(prng, &mut point, (&mut chunks, &mut readable), place, &mut tokens);
            }
            point.check();
            let taking = chunks.values().filter(|one| !one.is_closed && one.writes.len() < 6).count();
            assert!(taking <= usize_of(width), "{taking} chunks are open");
            check_held(&point, &chunks, &readable, mw_cunits);
        }
    }

    fn programmed(
        prng: &mut Prng,
        point: &mut AppendPoint<u64>,
        (chunks, readable): (&mut BTreeMap<ChunkIndex, Model>, &mut BTreeSet<u64>),
        place: Append,
        tokens: &mut u64,
    ) {
        *tokens += 1;
        let model = chunks.get_mut(&place.chunk).expect("it was opened");
        let outcome = match prng.below(12) {
            0 => ProgramOutcome::Lost,
            1 => ProgramOutcome::Closed,
            _ if model.is_closed => ProgramOutcome::Closed,
            _ => ProgramOutcome::Written(*tokens),
        };
        model.writes.insert(place.sector, Some(outcome));
        model.is_closed |= outcome == ProgramOutcome::Closed;
        let mut events = Vec::new();
        point.programmed(place, outcome, &mut events);
        for event in events {
            match event {
                AppendEvent::Readable(token) => assert!(readable.insert(token), "told twice"),
                AppendEvent::Closed(chunk) => {
                    let model = &chunks[&chunk];
                    assert!(model.is_closed || model.writes.len() == 6, "chunk {} is not full", chunk.0);
                    assert!(model.writes.values().all(Option::is_some), "chunk {} is written", chunk.0);
                }
            }
        }
    }

    fn check_held(
        point: &AppendPoint<u64>,
        chunks: &BTreeMap<ChunkIndex, Model>,
        readable: &BTreeSet<u64>,
        mw_cunits: u32,
    ) {
        for (&chunk, model) in chunks {
            for (&sector, outcome) in &model.writes {
                let Some(ProgramOutcome::Written(token)) = outcome else { continue };
                let can_read = sector + UNIT <= model.readable(mw_cunits);
                assert_eq!(readable.contains(token), can_read, "sector {sector} of chunk {}", chunk.0);
                let held = point.held(Append { chunk, sector: sector + 1 });
                assert_eq!(held, (!can_read).then_some((*token, 1)));
            }
        }
    }

    #[test]
    fn positions_take_turns_and_a_set_of_one_unit_has_one() {
        let mut wide = point(3, 3, 0, 2);
        let mut asked = Vec::new();
        let places: Vec<Append> = (0..6)
            .map(|_| {
                wide.next(UNIT, |units| {
                    asked.push(units.to_vec());
                    Some(ChunkIndex(10 + units[0].0))
                })
                .expect("there is room")
            })
            .collect();
        let expected = [(10, 0), (11, 0), (12, 0), (10, 4), (11, 4), (12, 4)];
        assert_eq!(places.iter().map(|at| (at.chunk.0, at.sector)).collect::<Vec<_>>(), expected);
        assert_eq!(asked, [[UnitIndex(0)], [UnitIndex(1)], [UnitIndex(2)]], "each position is of one unit");
        assert_eq!(wide.next(UNIT, |_| None), None, "all are busy");
        let mut narrow = point(1, 1, 0, 9);
        let one: Vec<Option<Append>> = (0..3).map(|_| narrow.next(UNIT, |_| Some(ChunkIndex(7)))).collect();
        assert!(
            one.iter()
                .zip([0, 4, 8])
                .all(|(at, sector)| *at == Some(Append { chunk: ChunkIndex(7), sector }))
        );
    }

    #[test]
    fn a_unit_without_a_chunk_is_passed_over_and_a_failure_goes_to_the_next_place() {
        let mut point = point(2, 2, 0, 1);
        let only_second = |units: &[UnitIndex]| (units[0] == UnitIndex(1)).then_some(ChunkIndex(1));
        let first = point.next(UNIT, only_second).expect("the second unit has one");
        assert_eq!(first, Append { chunk: ChunkIndex(1), sector: 0 });
        assert_eq!(point.next(UNIT, only_second), None);
        let mut events = Vec::new();
        point.programmed(first, ProgramOutcome::Lost, &mut events);
        let again = point.next(UNIT, only_second).expect("the chunk goes on");
        assert_eq!(again, Append { chunk: ChunkIndex(1), sector: UNIT });
        point.programmed(again, ProgramOutcome::Closed, &mut events);
        assert_eq!(events, [AppendEvent::Closed(ChunkIndex(1))]);
        assert!(!point.is_open() && point.room() == 0);
    }

    #[test]
    fn a_drive_that_fails_leaves_what_was_programmed_held() {
        let mut point = point(1, 1, 4, 2);
        let mut open = |_: &[UnitIndex]| Some(ChunkIndex(3));
        let places: Vec<Append> = (0..2).map(|_| point.next(UNIT, &mut open).expect("it is open")).collect();
        let mut events = Vec::new();
        point.programmed(places[0], ProgramOutcome::Written(7), &mut events);
        point.programmed(places[1], ProgramOutcome::Refused, &mut events);
        assert_eq!(events, [], "nothing follows that would make it readable");
        assert_eq!(point.held(places[0]), Some((7, 0)));
        assert_eq!(point.next(UNIT, open), None);
    }

    #[test]
    fn a_chunk_of_an_earlier_mount_goes_on_where_it_was() {
        let mut point = point(1, 3, 8, 2);
        assert!(point.adopt(ChunkIndex(5), UnitIndex(2), 16) && !point.adopt(ChunkIndex(6), UnitIndex(1), 4));
        assert_eq!(point.room(), 8);
        let place = point.next(UNIT, |_| None).expect("it is open");
        assert_eq!(place, Append { chunk: ChunkIndex(5), sector: 16 });
    }
}
