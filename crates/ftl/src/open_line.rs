//! A line being written: how far each of its chunks is, and which takes the next unit.
//!
//! Units are taken in stripe order: a batch of WS_OPT sectors or several times that on a parallel unit, then the next group's
//! (as Linux's pblk); one that is still busy waits its turn without holding up the others, unless pblk's strict order is asked
//! for. Each chunk is a head, data, and a tail, written in order. `active` limits how many parallel units are written at a
//! time: a group of them is filled before the next begins (FAST'17 section 5.3, "active write PUs"). Deliberately not here:
//! commands, data.

use crate::instance_geometry::{LineId, UnitIndex};
use crate::tag::SectorTag;
use crate::tail::ENTRY_BYTES;
use crate::write_buffer::BufferUnitId;
use ocssd_base::usize_of;
use std::collections::VecDeque;

/// Sizes every chunk of an instance shares, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLayout {
    /// The least a write takes: WS_OPT. The head is one unit.
    pub unit: u32,
    /// Most that a write of data takes: one unit or several. A chunk where no such is left takes no more data, and is filled
    /// up.
    pub batch: u32,
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
        self.data_left(0)
    }

    /// Data a chunk takes that is written up to `pointer`.
    const fn data_left(&self, pointer: u32) -> u32 {
        // The head lies before all data.
        let from = if pointer < self.unit { self.unit } else { pointer };
        let left = self.data_end().saturating_sub(from);
        left - left % self.batch
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
pub enum LineContent {
    /// The chunk's head.
    Head,
    /// Data.
    Data,
    /// What is left before the tail, and too little for data.
    Padding,
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
    pub piece: LineContent,
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
    /// The drive itself failed under a write to it: nothing follows, and nothing more of it can be read.
    refused: bool,
    /// Its head was lost to the media and must be written again, behind what is there.
    headless: bool,
    /// A head of it is on media.
    headed: bool,
    /// Was written in part before this mount: its tags are not all known, and its tail is filled instead.
    resumed: bool,
    /// Tags of its sectors, as its tail will list them.
    tags: Vec<u8>,
    /// Buffer units acknowledged and not readable yet, with where they begin and end.
    unreadable: VecDeque<(u32, u32, BufferUnitId)>,
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
    /// Units whose tail is due, or what fills them up to it, each once.
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
            if layout.data_left(pointer) > 0 {
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
        self.layout.data_left(self.chunks[unit.index()].pointer)
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
        let takes_data = self.layout.data_left(chunk.pointer) > 0;
        assert!(!chunk.ended && takes_data, "a unit without room waits for data");
        if chunk.in_flight >= self.turns.depth {
            assert!(self.turns.strict, "a busy unit waits only in strict order");
            return None;
        }
        let piece = if chunk.pointer == 0 || chunk.headless { LineContent::Head } else { LineContent::Data };
        Some(Write { unit, sector: chunk.pointer, piece })
    }

    /// The next tail that is due, with the tags it lists; none of a chunk that was begun before this mount, whose tail
    /// must be filled. Or what fills a chunk up to its tail, because it is too little for data.
    #[must_use]
    pub fn next_tail(&self) -> Option<(Write, Option<&[u8]>)> {
        let unit = *self.tails.front()?;
        let chunk = &self.chunks[unit.index()];
        let tags = (!chunk.resumed).then_some(chunk.tags.as_slice());
        let piece =
            if chunk.pointer < self.layout.data_end() { LineContent::Padding } else { LineContent::Tail };
        Some((Write { unit, sector: chunk.pointer, piece }, tags))
    }

    /// A write was given out, with the tags of its sectors (none for a tail).
    pub fn issued(&mut self, write: Write, sectors: u32, tags: &[u8]) {
        let queue = match write.piece {
            LineContent::Padding | LineContent::Tail => &mut self.tails,
            LineContent::Head | LineContent::Data => &mut self.waiting,
        };
        assert_eq!(queue.pop_front(), Some(write.unit), "a unit was written out of turn");
        let (turns, layout) = (self.turns, self.layout);
        let chunk = &mut self.chunks[write.unit.index()];
        assert_eq!(chunk.pointer, write.sector, "a write does not start at the chunk's pointer");
        let left_before = layout.data_left(chunk.pointer);
        chunk.pointer += sectors;
        assert!(chunk.pointer <= layout.sectors, "a chunk is written beyond its end");
        chunk.in_flight += 1;
        self.in_flight += 1;
        if write.piece == LineContent::Tail {
            return;
        }
        if layout.tail > 0 && !chunk.resumed {
            assert_eq!(tags.len(), usize_of(sectors) * ENTRY_BYTES, "every sector has a tag");
            if chunk.tags.is_empty() {
                chunk.tags.reserve_exact(usize_of(layout.data_end()) * ENTRY_BYTES);
            }
            chunk.tags.extend_from_slice(tags);
        }
        chunk.headless &= write.piece != LineContent::Head;
        let left = layout.data_left(chunk.pointer);
        let takes_more = left > 0;
        let may_wait = turns.strict || chunk.in_flight < turns.depth;
        match write.piece {
            // In strict order the heads of all units go first: data behind each would wait for one head after the other.
            LineContent::Head if takes_more && turns.strict => self.waiting.push_back(write.unit),
            // The data that the head was written for follows on the same unit.
            LineContent::Head if takes_more && may_wait => self.waiting.push_front(write.unit),
            LineContent::Data if takes_more && may_wait => self.waiting.push_back(write.unit),
            _ => {}
        }
        // A second head takes room as well, and what is no whole batch any more cannot be used.
        let taken = u64::from(left_before - left);
        assert!(self.room >= taken, "more data than room");
        self.room -= taken;
        if left_before > 0 && !takes_more {
            self.active -= 1;
            self.activate();
        }
    }

    /// A write was acknowledged. `buffer_unit` says of which data, if it was data; `readable` is told every
    /// buffer unit that can be read now.
    pub fn acknowledged(
        &mut self,
        write: Write,
        sectors: u32,
        buffer_unit: Option<BufferUnitId>,
        readable: impl FnMut(BufferUnitId),
    ) {
        let chunk = &mut self.chunks[write.unit.index()];
        chunk.headed |= write.piece == LineContent::Head;
        if let Some(buffer_unit) = buffer_unit {
            chunk.unreadable.push_back((write.sector, write.sector + sectors, buffer_unit));
        }
        self.programmed(write.unit, write.sector + sectors, readable);
    }

    /// The media failed a write. With `closed` the chunk takes no more; else its pointer moved past the write.
    pub fn failed(&mut self, write: Write, sectors: u32, closed: bool, readable: impl FnMut(BufferUnitId)) {
        let left = self.data_left(write.unit);
        let (from, end) = (usize_of(write.sector), usize_of(write.sector + sectors));
        let chunk = &mut self.chunks[write.unit.index()];
        chunk.headless |= write.piece == LineContent::Head;
        if let Some(tags) = chunk.tags.get_mut(from * ENTRY_BYTES..end * ENTRY_BYTES) {
            for tag in tags.chunks_exact_mut(ENTRY_BYTES) {
                tag.copy_from_slice(&SectorTag::PAD.to_list_entry());
            }
        }
        if closed && !chunk.ended {
            chunk.ended = true;
            chunk.closed_early = true;
            self.room -= u64::from(left);
            self.unfinished -= 1;
            self.waiting.retain(|&unit| unit != write.unit);
            self.tails.retain(|&unit| unit != write.unit);
            if left > 0 {
                self.active -= 1;
            }
        }
        self.programmed(write.unit, write.sector + sectors, readable);
        self.activate();
    }

    /// The drive itself failed, and stored nothing of a write. The chunk is as it was before, and gets no more writes: what
    /// lies at its pointer is not known here any more.
    pub fn refused(&mut self, write: Write) {
        let chunk = &mut self.chunks[write.unit.index()];
        assert!(chunk.in_flight > 0, "a write to unit {} ended twice", write.unit.0);
        assert!(write.sector < chunk.pointer, "a write failed that was not given out");
        chunk.refused = true;
        chunk.in_flight -= 1;
        self.in_flight -= 1;
    }

    /// A write to `unit` is over, whichever way.
    fn programmed(&mut self, unit: UnitIndex, end: u32, mut readable: impl FnMut(BufferUnitId)) {
        let (layout, turns) = (self.layout, self.turns);
        let chunk = &mut self.chunks[unit.index()];
        assert!(chunk.in_flight > 0, "a write to unit {} ended twice", unit.0);
        let was_busy = chunk.in_flight >= turns.depth && !turns.strict;
        chunk.in_flight -= 1;
        self.in_flight -= 1;
        chunk.acknowledged = chunk.acknowledged.max(end);
        let limit = if chunk.closed_early { u32::MAX } else { layout.readable(chunk.acknowledged) };
        while let Some((.., buffer_unit)) = chunk.unreadable.pop_front_if(|&mut (_, end, _)| end <= limit) {
            readable(buffer_unit);
        }
        if chunk.ended || chunk.refused {
            return;
        }
        if layout.data_left(chunk.pointer) > 0 {
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

    /// The buffer unit that was programmed at a sector which cannot be read yet, and which of its sectors that is; none of sectors
    /// that can be read or were not programmed. Cost: a pass over the buffer units of the read window.
    #[must_use]
    pub fn unreadable(&self, unit: UnitIndex, sector: u32) -> Option<(BufferUnitId, u32)> {
        let waiting = &self.chunks[unit.index()].unreadable;
        let &(start, _, buffer_unit) =
            waiting.iter().find(|&&(start, end, _)| (start..end).contains(&sector))?;
        Some((buffer_unit, sector - start))
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
mod tests;
