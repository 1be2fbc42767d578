//! A line being written: how far each of its chunks is, and which takes the next unit.
//!
//! Units are taken in stripe order: WS_OPT sectors on a parallel unit, then the next group's (`pblk.md` 1.1); one that
//! is still busy waits its turn without holding up the others, unless pblk's strict order is asked for. Each chunk is a
//! head, data, and a tail, written in order. `active` limits how many parallel units are written at a time: a group of
//! them is filled before the next begins (FAST'17 section 5.3, "active write PUs"). Deliberately not here: commands, data.

use crate::frames::FrameId;
use crate::place::{LineId, UnitIndex};
use crate::tag::SectorTag;
use crate::tail::ENTRY_BYTES;
use ocssd_base::usize_of;
use std::collections::VecDeque;

/// Sizes every chunk of an instance shares, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLayout {
    /// What a write takes: WS_OPT. The head is one unit.
    pub unit: u32,
    /// The chunk.
    pub sectors: u32,
    /// What its tail takes, 0 if it has none.
    pub tail: u32,
    /// Sectors that must follow one before it can be read.
    pub mw_cunits: u32,
}

impl ChunkLayout {
    /// Where data ends.
    #[must_use]
    pub const fn data_end(&self) -> u32 {
        self.sectors - self.tail
    }

    /// Data a chunk takes.
    #[must_use]
    pub const fn data_sectors(&self) -> u32 {
        self.sectors - self.tail - self.unit
    }

    /// How many sectors of a chunk can be read once `acknowledged` are written.
    #[must_use]
    pub const fn readable(&self, acknowledged: u32) -> u32 {
        if acknowledged >= self.sectors { self.sectors } else { acknowledged.saturating_sub(self.mw_cunits) }
    }
}

/// How a line's units take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Writes in flight to a unit.
    pub depth: u32,
    /// A busy unit holds up those after it (pblk's single writer).
    pub strict: bool,
    /// Units written at a time; all of them if it is as many as there are.
    pub active: u32,
}

/// What a unit's next write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The chunk's head.
    Head,
    /// Data.
    Data,
    /// The chunk's tail.
    Tail,
}

/// A write to give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// To which unit.
    pub unit: UnitIndex,
    /// From which sector of its chunk.
    pub sector: u32,
    /// What.
    pub piece: Piece,
}

#[derive(Clone, Debug, Default)]
struct OpenChunk {
    /// Next sector to write.
    pointer: u32,
    /// Sectors acknowledged, from the start.
    acknowledged: u32,
    in_flight: u32,
    /// Takes no more writes: full, or the drive closed it.
    ended: bool,
    /// Was closed before its end: all below its pointer can be read.
    closed_early: bool,
    /// Its head was lost to the media and must be written again, behind what is there.
    headless: bool,
    /// A head of it is on media.
    headed: bool,
    /// Was written in part before this mount: its tags are not all known, and its tail is filled instead.
    resumed: bool,
    /// Tags of its sectors, as its tail will list them.
    tags: Vec<u8>,
    /// Frames acknowledged and not readable yet, with where they end.
    unreadable: VecDeque<(u32, FrameId)>,
}

/// The line.
#[derive(Clone, Debug)]
pub struct OpenLine {
    line: LineId,
    layout: ChunkLayout,
    turns: Turns,
    chunks: Vec<OpenChunk>,
    /// Active units that take data now, in order, each once; in strict order also those that are busy.
    waiting: VecDeque<UnitIndex>,
    /// Units with data left whose group has not begun, in stripe order.
    later: VecDeque<UnitIndex>,
    /// Active units with data left.
    active: u32,
    /// Units whose tail is due, each once.
    tails: VecDeque<UnitIndex>,
    /// Sectors of data not given out.
    room: u64,
    in_flight: u32,
    unfinished: u32,
}

impl OpenLine {
    /// A line with nothing written, on the units named, in stripe order.
    ///
    /// # Panics
    /// If no unit is named.
    #[must_use]
    pub fn new(line: LineId, layout: ChunkLayout, turns: Turns, all_units: u32, order: &[UnitIndex]) -> Self {
        let starts: Vec<(UnitIndex, u32)> = order.iter().map(|&unit| (unit, 0)).collect();
        Self::resume(line, layout, turns, all_units, &starts)
    }

    /// A line written before: each unit that can still be written, and up to which sector it is.
    #[must_use]
    pub fn resume(
        line: LineId,
        layout: ChunkLayout,
        turns: Turns,
        all_units: u32,
        order: &[(UnitIndex, u32)],
    ) -> Self {
        assert!(turns.depth > 0 && turns.active > 0, "at least one write to at least one unit");
        // What is not named takes no more writes, and can be read as far as it was written.
        let ended = OpenChunk { ended: true, closed_early: true, ..OpenChunk::default() };
        let mut open = Self {
            line,
            layout,
            turns,
            chunks: vec![ended; usize_of(all_units)],
            waiting: VecDeque::with_capacity(order.len()),
            later: VecDeque::with_capacity(order.len()),
            active: 0,
            tails: VecDeque::with_capacity(order.len()),
            room: 0,
            in_flight: 0,
            unfinished: u32::try_from(order.len()).expect("fewer units than 2^32"),
        };
        for &(unit, pointer) in order {
            assert!(
                pointer < layout.sectors && pointer.is_multiple_of(layout.unit),
                "a chunk cannot go on there"
            );
            open.chunks[unit.index()] = OpenChunk {
                pointer,
                acknowledged: pointer,
                resumed: pointer > 0,
                headed: pointer > 0,
                ..OpenChunk::default()
            };
            open.room += u64::from(open.data_left(unit));
            if pointer < layout.data_end() {
                open.later.push_back(unit);
            } else {
                open.tails.push_back(unit);
            }
        }
        open.activate();
        open
    }

    /// Sectors of data a unit's chunk still takes.
    fn data_left(&self, unit: UnitIndex) -> u32 {
        let pointer = self.chunks[unit.index()].pointer.max(self.layout.unit);
        self.layout.data_end().saturating_sub(pointer)
    }

    /// Lets the next group of units take turns once the one before took all its data.
    fn activate(&mut self) {
        while self.active == 0 && !self.later.is_empty() {
            let count = usize_of(self.turns.active).min(self.later.len());
            self.waiting.extend(self.later.drain(..count));
            self.active = u32::try_from(count).expect("fewer units than 2^32");
        }
    }

    /// Which line it is.
    #[must_use]
    pub const fn line(&self) -> LineId {
        self.line
    }

    /// Sectors of data it still takes.
    #[must_use]
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// Everything is written and acknowledged.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.unfinished == 0 && self.in_flight == 0
    }

    /// Writes not acknowledged.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// True if no head of a unit's chunk is on media: what lies in the chunk would not be found after a power cut.
    #[must_use]
    pub fn is_headless(&self, unit: UnitIndex) -> bool {
        !self.chunks[unit.index()].headed
    }

    /// The next write if data is at hand: a head, then data.
    #[must_use]
    pub fn next_data(&self) -> Option<Write> {
        let unit = *self.waiting.front()?;
        let chunk = &self.chunks[unit.index()];
        assert!(!chunk.ended && chunk.pointer < self.layout.data_end(), "a unit without room waits for data");
        if chunk.in_flight >= self.turns.depth {
            assert!(self.turns.strict, "a busy unit waits only in strict order");
            return None;
        }
        let piece = if chunk.pointer == 0 || chunk.headless { Piece::Head } else { Piece::Data };
        Some(Write { unit, sector: chunk.pointer, piece })
    }

    /// The next tail that is due, with the tags it lists; none of a chunk that was begun before this mount, whose tail
    /// must be filled.
    #[must_use]
    pub fn next_tail(&self) -> Option<(Write, Option<&[u8]>)> {
        let unit = *self.tails.front()?;
        let chunk = &self.chunks[unit.index()];
        let tags = (!chunk.resumed).then_some(chunk.tags.as_slice());
        Some((Write { unit, sector: chunk.pointer, piece: Piece::Tail }, tags))
    }

    /// A write was given out, with the tags of its sectors (none for a tail).
    pub fn issued(&mut self, write: Write, sectors: u32, tags: &[u8]) {
        let queue = if write.piece == Piece::Tail { &mut self.tails } else { &mut self.waiting };
        assert_eq!(queue.pop_front(), Some(write.unit), "a unit was written out of turn");
        let (turns, layout) = (self.turns, self.layout);
        let chunk = &mut self.chunks[write.unit.index()];
        assert_eq!(chunk.pointer, write.sector, "a write does not start at the chunk's pointer");
        let takes_room = write.piece == Piece::Data || write.piece == Piece::Head && chunk.pointer > 0;
        chunk.pointer += sectors;
        assert!(chunk.pointer <= layout.sectors, "a chunk is written beyond its end");
        chunk.in_flight += 1;
        self.in_flight += 1;
        if write.piece == Piece::Tail {
            return;
        }
        if layout.tail > 0 && !chunk.resumed {
            assert_eq!(tags.len(), usize_of(sectors) * ENTRY_BYTES, "every sector has a tag");
            if chunk.tags.is_empty() {
                chunk.tags.reserve_exact(usize_of(layout.data_end()) * ENTRY_BYTES);
            }
            chunk.tags.extend_from_slice(tags);
        }
        chunk.headless &= write.piece != Piece::Head;
        let takes_more = chunk.pointer < layout.data_end();
        let may_wait = turns.strict || chunk.in_flight < turns.depth;
        match write.piece {
            // In strict order the heads of all units go first: data behind each would wait for one head after the other.
            Piece::Head if takes_more && turns.strict => self.waiting.push_back(write.unit),
            // The data that the head was written for follows on the same unit.
            Piece::Head if takes_more && may_wait => self.waiting.push_front(write.unit),
            Piece::Data if takes_more && may_wait => self.waiting.push_back(write.unit),
            _ => {}
        }
        if takes_room {
            assert!(self.room >= u64::from(sectors), "more data than room");
            self.room -= u64::from(sectors);
        }
        if !takes_more {
            self.active -= 1;
            self.activate();
        }
    }

    /// A write was acknowledged. `frame` was it data of one; `readable` is told every frame that can be read now.
    pub fn acknowledged(
        &mut self,
        write: Write,
        sectors: u32,
        frame: Option<FrameId>,
        readable: impl FnMut(FrameId),
    ) {
        let chunk = &mut self.chunks[write.unit.index()];
        chunk.headed |= write.piece == Piece::Head;
        if let Some(frame) = frame {
            chunk.unreadable.push_back((write.sector + sectors, frame));
        }
        self.landed(write.unit, write.sector + sectors, readable);
    }

    /// The media failed a write. With `closed` the chunk takes no more; else its pointer moved past the write.
    pub fn failed(&mut self, write: Write, sectors: u32, closed: bool, readable: impl FnMut(FrameId)) {
        let data_end = self.layout.data_end();
        let (from, end) = (usize_of(write.sector), usize_of(write.sector + sectors));
        let chunk = &mut self.chunks[write.unit.index()];
        chunk.headless |= write.piece == Piece::Head;
        if let Some(tags) = chunk.tags.get_mut(from * ENTRY_BYTES..end * ENTRY_BYTES) {
            for tag in tags.chunks_exact_mut(ENTRY_BYTES) {
                tag.copy_from_slice(&SectorTag::PAD.to_list_entry());
            }
        }
        if closed && !chunk.ended {
            chunk.ended = true;
            chunk.closed_early = true;
            let had_data_left = chunk.pointer < data_end;
            self.room -= u64::from(self.data_left(write.unit));
            self.unfinished -= 1;
            self.waiting.retain(|&unit| unit != write.unit);
            self.tails.retain(|&unit| unit != write.unit);
            if had_data_left {
                self.active -= 1;
            }
        }
        self.landed(write.unit, write.sector + sectors, readable);
        self.activate();
    }

    /// A write to `unit` is over, whichever way.
    fn landed(&mut self, unit: UnitIndex, end: u32, mut readable: impl FnMut(FrameId)) {
        let (layout, turns) = (self.layout, self.turns);
        let chunk = &mut self.chunks[unit.index()];
        assert!(chunk.in_flight > 0, "a write to unit {} ended twice", unit.0);
        let was_busy = chunk.in_flight >= turns.depth && !turns.strict;
        chunk.in_flight -= 1;
        self.in_flight -= 1;
        chunk.acknowledged = chunk.acknowledged.max(end);
        let limit = if chunk.closed_early { u32::MAX } else { layout.readable(chunk.acknowledged) };
        while let Some((_, frame)) = chunk.unreadable.pop_front_if(|&mut (at, _)| at <= limit) {
            readable(frame);
        }
        if chunk.ended {
            return;
        }
        if chunk.pointer < layout.data_end() {
            if was_busy {
                self.waiting.push_back(unit);
            }
        } else if chunk.in_flight == 0 && chunk.pointer == layout.sectors {
            chunk.ended = true;
            self.unfinished -= 1;
        } else if chunk.in_flight == 0 {
            self.tails.push_back(unit);
        }
    }

    /// Sectors of a unit's chunk that can be read.
    #[must_use]
    pub fn readable(&self, unit: UnitIndex) -> u32 {
        let chunk = &self.chunks[unit.index()];
        if chunk.closed_early { self.layout.sectors } else { self.layout.readable(chunk.acknowledged) }
    }

    /// The frame that landed at a sector which cannot be read yet, and which of its sectors that is; none of sectors that can
    /// be read or did not land. Cost: a pass over the frames of the read window.
    #[must_use]
    pub fn unreadable(&self, unit: UnitIndex, sector: u32) -> Option<(FrameId, u32)> {
        let waiting = &self.chunks[unit.index()].unreadable;
        let &(end, frame) =
            waiting.iter().find(|&&(end, _)| (end - self.layout.unit..end).contains(&sector))?;
        Some((frame, sector + self.layout.unit - end))
    }

    /// How far a unit's chunk is written.
    #[must_use]
    pub fn pointer(&self, unit: UnitIndex) -> u32 {
        self.chunks[unit.index()].pointer
    }

    /// True if a unit's chunk takes no more writes.
    #[must_use]
    pub fn has_ended(&self, unit: UnitIndex) -> bool {
        self.chunks[unit.index()].ended
    }

    /// Asserts that counts agree with the chunks.
    pub fn check(&self) {
        let in_flight: u32 = self.chunks.iter().map(|chunk| chunk.in_flight).sum();
        assert_eq!(in_flight, self.in_flight, "line {} counts its writes wrong", self.line.0);
        let open = self.chunks.iter().filter(|chunk| !chunk.ended).count();
        assert_eq!(usize_of(self.unfinished), open, "line {} counts its chunks wrong", self.line.0);
        let units = (0..).map(UnitIndex).take(self.chunks.len());
        let left: Vec<u32> =
            units.filter(|&unit| !self.has_ended(unit)).map(|unit| self.data_left(unit)).collect();
        let room: u64 = left.iter().copied().map(u64::from).sum();
        assert_eq!(room, self.room, "line {} counts its room wrong", self.line.0);
        let with_data = left.iter().filter(|&&sectors| sectors > 0).count();
        assert_eq!(
            usize_of(self.active) + self.later.len(),
            with_data,
            "a unit of line {} was lost",
            self.line.0
        );
        assert!(self.waiting.len() <= usize_of(self.active), "a unit of line {} waits twice", self.line.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    const LAYOUT: ChunkLayout = ChunkLayout { unit: 4, sectors: 40, tail: 4, mw_cunits: 8 };

    fn units(count: u32) -> Vec<UnitIndex> {
        (0..count).map(UnitIndex).collect()
    }

    /// Gives out and acknowledges writes in random order until nothing is left; returns data units in order of issue.
    fn run(open: &mut OpenLine, seed: u64, fail: u64) -> Vec<Write> {
        let mut prng = Prng::new(seed);
        let tags = vec![2; 4 * ENTRY_BYTES];
        let (mut flying, mut data, mut frames, mut readable) = (Vec::new(), Vec::new(), 0, Vec::new());
        loop {
            let tail = open.next_tail().map(|(write, _)| write);
            let next = tail.or_else(|| open.next_data());
            if let Some(write) = next.filter(|_| prng.below(3) > 0) {
                open.issued(write, 4, &tags);
                let frame = (write.piece == Piece::Data).then_some(FrameId(frames));
                frames += 1;
                data.extend(frame.map(|_| write));
                flying.push((write, frame));
            } else if !flying.is_empty() {
                let pick =
                    usize::try_from(prng.below(u64::try_from(flying.len()).expect("few"))).expect("few");
                // The writes of a chunk end in order.
                let unit = flying[pick].0.unit;
                let first =
                    flying.iter().position(|(write, _)| write.unit == unit).expect("it is one of them");
                let (write, frame) = flying.remove(first);
                if prng.below(100) < fail {
                    open.failed(write, 4, prng.below(2) == 0, |frame| readable.push(frame));
                } else {
                    open.acknowledged(write, 4, frame, |frame| readable.push(frame));
                }
            } else if next.is_none() {
                break;
            }
            open.check();
        }
        assert!(open.is_finished(), "seed {seed}: the line never ends");
        assert_eq!(open.room(), 0, "seed {seed}");
        data
    }

    #[test]
    fn a_line_is_written_in_stripes_and_every_frame_becomes_readable() {
        let turns = Turns { depth: 2, strict: true, active: 3 };
        let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 3, &units(3));
        let data = run(&mut open, 1, 0);
        assert_eq!(data.len(), 3 * 8);
        let order: Vec<u32> = data.iter().take(6).map(|write| write.unit.0).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn what_landed_within_the_read_window_is_found_in_its_frame_until_it_can_be_read() {
        let turns = Turns { depth: 2, strict: false, active: 1 };
        let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 1, &units(1));
        let unit = UnitIndex(0);
        for (number, readable) in [(0, 0), (1, 0), (2, 4), (3, 8)] {
            let write = open.next_data().expect("a head, then data");
            open.issued(write, 4, &[2; 4 * ENTRY_BYTES]);
            assert_eq!(open.unreadable(unit, write.sector), None, "it did not land");
            let frame = (write.piece == Piece::Data).then_some(FrameId(number));
            open.acknowledged(write, 4, frame, |frame| {
                assert_eq!(frame, FrameId(1), "the rest is too young")
            });
            assert_eq!(open.readable(unit), readable);
        }
        assert_eq!(open.unreadable(unit, 7), None, "it can be read");
        assert_eq!(open.unreadable(unit, 8), Some((FrameId(2), 0)));
        assert_eq!(open.unreadable(unit, 15), Some((FrameId(3), 3)));
        assert_eq!(open.unreadable(unit, 16), None, "nothing was written there");
    }

    #[test]
    fn in_strict_order_no_head_waits_for_the_one_before() {
        let turns = Turns { depth: 1, strict: true, active: 4 };
        let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 4, &units(4));
        let mut given = Vec::new();
        while let Some(write) = open.next_data() {
            open.issued(write, 4, &[2; 4 * ENTRY_BYTES]);
            given.push((write.unit.0, write.piece));
        }
        assert_eq!(given, [(0, Piece::Head), (1, Piece::Head), (2, Piece::Head), (3, Piece::Head)]);
    }

    #[test]
    fn active_units_are_filled_before_the_next() {
        let turns = Turns { depth: 1, strict: false, active: 2 };
        let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 5, &units(5));
        let data = run(&mut open, 2, 0);
        let groups: Vec<u32> = data.iter().map(|write| write.unit.0 / 2).collect();
        assert!(groups.is_sorted(), "{groups:?}");
        assert_eq!(data.len(), 5 * 8);
    }

    #[test]
    fn a_head_that_failed_is_written_again_behind_what_was_sent() {
        let turns = Turns { depth: 2, strict: false, active: 1 };
        let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 1, &units(1));
        let tags = vec![2; 4 * ENTRY_BYTES];
        let head = open.next_data().expect("a head");
        open.issued(head, 4, &tags);
        let data = open.next_data().expect("data");
        assert_eq!((head.piece, data.piece, data.sector), (Piece::Head, Piece::Data, 4));
        open.issued(data, 4, &tags);
        open.failed(head, 4, false, |_| {});
        assert!(open.is_headless(head.unit));
        let again = open.next_data().expect("the head again");
        assert_eq!((again.piece, again.sector), (Piece::Head, 8));
        open.issued(again, 4, &tags);
        open.check();
        assert_eq!(open.room(), 36 - 4 - 4 - 4, "a second head takes the room of data");
        open.acknowledged(data, 4, None, |_| {});
        assert!(open.is_headless(head.unit));
        open.acknowledged(again, 4, None, |_| {});
        assert!(!open.is_headless(head.unit));
        assert_eq!(open.next_data().map(|write| (write.piece, write.sector)), Some((Piece::Data, 12)));
        open.check();
    }

    #[test]
    fn failing_chunks_leave_a_line_that_ends_all_the_same() {
        for seed in 0..200 {
            let turns = Turns {
                depth: 1 + u32::try_from(seed % 3).expect("small"),
                strict: seed % 2 == 0,
                active: 2,
            };
            let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 4, &units(4));
            run(&mut open, seed, 10);
        }
    }

    #[test]
    fn a_resumed_chunk_goes_on_where_it_was_and_its_tail_is_filled() {
        let turns = Turns { depth: 2, strict: false, active: 4 };
        let starts = [(UnitIndex(1), 8), (UnitIndex(2), 36), (UnitIndex(3), 0)];
        let mut open = OpenLine::resume(LineId(0), LAYOUT, turns, 4, &starts);
        assert_eq!(open.room(), 28 + 32);
        assert_eq!(open.next_tail().map(|(write, tags)| (write.sector, tags)), Some((36, None)));
        assert_eq!(run(&mut open, 3, 0).len(), 7 + 8);
    }
}
