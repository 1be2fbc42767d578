//! The line being written: its units in the order of Linux's format, one after the other.
//!
//! A line is its start metadata, data, and its end metadata. The start is on its own until it is acknowledged, and the end
//! waits for all before it. In between each parallel unit takes one write at a time, and a busy one holds up those after it,
//! as Linux does: what a power cut leaves is a run from the line's start, but for what was in flight. The list of addresses
//! grows with the data. Sectors that MW_CUNITS hides are told when they can be read. Deliberately not here: commands and
//! content.

use super::format::{Emeta, LineLayout, LineOffset, LineParts, Position, lba_list_mut};
use ocssd_base::usize_of;
use ocssd_ftl::{BufferUnitId, LineId, UnitIndex};
use std::collections::VecDeque;

/// What a unit of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineContent {
    /// The start metadata.
    Smeta,
    /// Data, or padding in its place.
    Data,
    /// So many units of the end metadata are before this one.
    Emeta(u32),
    /// Nothing: the line could not be begun, and its first chunk is filled, because an open chunk cannot be reset.
    Padding,
}

/// A write to give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitWrite {
    /// What.
    pub piece: LineContent,
    /// Where in the line.
    pub offset: LineOffset,
}

/// The chunk at a position.
#[derive(Clone, Debug, Default)]
struct Column {
    is_busy: bool,
    /// The drive closed it early: it takes no more, and all of it can be read.
    has_ended: bool,
    /// Sectors acknowledged, from its start.
    acknowledged: u32,
    /// Buffer units acknowledged and not readable yet, with where they end.
    unreadable: VecDeque<(u32, BufferUnitId)>,
}

/// The line.
#[derive(Clone, Debug)]
pub struct OpenLine {
    line: LineId,
    prev_id: Option<u32>,
    layout: LineLayout,
    parts: LineParts,
    mw_cunits: u32,
    units: Vec<UnitWrite>,
    next: usize,
    in_flight: u32,
    is_started: bool,
    is_damaged: bool,
    /// The drive itself failed under a write: nothing follows.
    is_refused: bool,
    columns: Vec<Column>,
    /// The end metadata: the list of addresses as it grows, all else when they are written.
    emeta: Vec<u8>,
    named: u64,
}

impl OpenLine {
    /// A line of reset chunks with these parts, after `prev_id`.
    #[must_use]
    pub fn new(
        line: LineId,
        prev_id: Option<u32>,
        layout: &LineLayout,
        parts: LineParts,
        mw_cunits: u32,
    ) -> Self {
        let start = std::iter::once(UnitWrite { piece: LineContent::Smeta, offset: parts.smeta });
        let data = parts.data_units(layout).map(|offset| UnitWrite { piece: LineContent::Data, offset });
        let end = (0..).zip(parts.emeta_units(layout));
        let end = end.map(|(index, offset)| UnitWrite { piece: LineContent::Emeta(index), offset });
        let units: Vec<UnitWrite> = start.chain(data).chain(end).collect();
        assert!(units.len() > 2, "line {} has no room for data", line.0);
        let mut emeta = vec![0; layout.emeta_bytes()];
        lba_list_mut(layout, &mut emeta).fill([0xFF; 8]);
        Self {
            line,
            prev_id,
            mw_cunits,
            units,
            next: 0,
            in_flight: 0,
            is_started: false,
            is_damaged: false,
            is_refused: false,
            columns: vec![Column::default(); usize_of(layout.units())],
            emeta,
            named: 0,
            layout: layout.clone(),
            parts,
        }
    }

    /// A line that a power cut left, written up to its unit number `next` without a gap; `named` are the addresses in it.
    #[must_use]
    pub fn resumed(mut self, next: usize, named: &[(LineOffset, u64)]) -> Self {
        assert!(self.next == 0 && (1..=self.units.len()).contains(&next), "a line goes on at unit {next}");
        (self.next, self.is_started) = (next, true);
        for unit in 0..next {
            let offset = self.units[unit].offset;
            let (_, sector) = self.layout.split(offset);
            let end = sector + self.layout.unit;
            self.column(offset).acknowledged = end;
        }
        for &(offset, lba) in named {
            lba_list_mut(&self.layout, &mut self.emeta)[usize_of(offset.0)] = lba.to_le_bytes();
        }
        self.named = u64::try_from(named.len()).expect("fewer than a line's sectors");
        assert!(named.len() < usize_of(self.layout.sectors()), "line {} names too much", self.line.0);
        self
    }

    /// Nothing of it is in flight.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.in_flight == 0
    }

    /// Which line it is.
    #[must_use]
    pub const fn line(&self) -> LineId {
        self.line
    }

    /// The line opened before it.
    #[must_use]
    pub const fn prev_id(&self) -> Option<u32> {
        self.prev_id
    }

    /// Where its parts lie.
    #[must_use]
    pub const fn parts(&self) -> &LineParts {
        &self.parts
    }

    /// A write failed, or its end could not be written: Linux may not be able to use it.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Everything is written and acknowledged.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.next == self.units.len() && self.in_flight == 0 && !self.is_refused
    }

    /// Addresses in its list.
    #[must_use]
    pub const fn named(&self) -> u64 {
        self.named
    }

    /// The end metadata, to be completed when the first unit of them is written.
    pub fn emeta_mut(&mut self) -> &mut [u8] {
        &mut self.emeta
    }

    /// The end metadata.
    #[must_use]
    pub fn emeta(&self) -> &[u8] {
        &self.emeta
    }

    fn column(&mut self, offset: LineOffset) -> &mut Column {
        let (position, _) = self.layout.split(offset);
        &mut self.columns[usize_of(position.0)]
    }

    /// The parallel unit of an offset, and the sector of its chunk.
    #[must_use]
    pub fn place(&self, offset: LineOffset) -> (UnitIndex, u32) {
        let (position, sector) = self.layout.split(offset);
        (self.layout.unit_at(position), sector)
    }

    /// The next write, if it can go out now.
    #[must_use]
    pub fn next(&self) -> Option<UnitWrite> {
        let write = *self.units.get(self.next)?;
        let (position, _) = self.layout.split(write.offset);
        let column = &self.columns[usize_of(position.0)];
        assert!(!column.has_ended, "a chunk of line {} that takes no more is written", self.line.0);
        let may_go = self.is_started || write.piece == LineContent::Smeta;
        assert!(may_go || self.in_flight > 0, "line {} stands still", self.line.0);
        (may_go && !column.is_busy).then_some(write)
    }

    /// The next write was given out; `lbas` are the addresses of its sectors, if it is data.
    pub fn issued(&mut self, write: UnitWrite, lbas: impl Iterator<Item = Option<u64>>) {
        assert_eq!(self.next(), Some(write), "a unit of line {} is written out of turn", self.line.0);
        let list = lba_list_mut(&self.layout, &mut self.emeta);
        for (place, lba) in list[usize_of(write.offset.0)..].iter_mut().zip(lbas) {
            let Some(lba) = lba else { continue };
            assert_eq!(write.piece, LineContent::Data, "only data have addresses");
            *place = lba.to_le_bytes();
            self.named += 1;
        }
        self.column(write.offset).is_busy = true;
        self.in_flight += 1;
        self.next += 1;
        self.skip_ended();
    }

    /// Passes over units of chunks that take no more. Without all its units the end is no end.
    fn skip_ended(&mut self) {
        while let Some(write) = self.units.get(self.next) {
            let (position, _) = self.layout.split(write.offset);
            if !self.columns[usize_of(position.0)].has_ended {
                return;
            }
            self.is_damaged = true;
            self.next += 1;
        }
    }

    /// A write was acknowledged. `buffer_unit` says of which data, if it was data; `readable` is told every
    /// buffer unit that can be read now.
    pub fn acknowledged(
        &mut self,
        write: UnitWrite,
        buffer_unit: Option<BufferUnitId>,
        readable: impl FnMut(BufferUnitId),
    ) {
        self.is_started |= write.piece == LineContent::Smeta;
        let (_, sector) = self.layout.split(write.offset);
        let end = sector + self.layout.unit;
        let column = self.column(write.offset);
        assert!(column.acknowledged == sector, "the media skipped a part of a chunk");
        if let Some(buffer_unit) = buffer_unit {
            column.unreadable.push_back((end, buffer_unit));
        }
        self.programmed(write, readable);
    }

    /// The media failed a write. With `closed` the chunk takes no more; else its pointer moved past the write. A line
    /// whose start failed takes no data.
    pub fn failed(&mut self, write: UnitWrite, closed: bool, readable: impl FnMut(BufferUnitId)) {
        self.is_damaged = true;
        let range = usize_of(write.offset.0)..usize_of(write.offset.0 + self.layout.unit);
        if write.piece == LineContent::Data {
            for place in &mut lba_list_mut(&self.layout, &mut self.emeta)[range] {
                self.named -= u64::from(*place != [0xFF; 8]);
                *place = [0xFF; 8];
            }
        }
        self.column(write.offset).has_ended |= closed;
        if write.piece == LineContent::Smeta {
            assert_eq!(self.next, 1, "line {} was written on before it was begun", self.line.0);
            let (first, _) = self.layout.split(self.parts.smeta);
            let layout = &self.layout;
            self.units.retain(|unit| layout.split(unit.offset).0 == first);
            self.units.iter_mut().for_each(|unit| unit.piece = LineContent::Padding);
            self.is_started = true;
        }
        self.programmed(write, readable);
        self.skip_ended();
    }

    /// The drive itself failed, and stored nothing of a write. The line gets no more writes.
    pub fn refused(&mut self, write: UnitWrite) {
        self.is_refused = true;
        let column = self.column(write.offset);
        assert!(column.is_busy, "a write to {:?} ended twice", write.offset);
        column.is_busy = false;
        assert!(self.in_flight > 0, "more writes of line {} ended than were sent", self.line.0);
        self.in_flight -= 1;
    }

    /// A write is over, whichever way.
    fn programmed(&mut self, write: UnitWrite, mut readable: impl FnMut(BufferUnitId)) {
        let (chunk, window) = (self.layout.chunk, self.mw_cunits);
        let (_, sector) = self.layout.split(write.offset);
        let end = sector + self.layout.unit;
        let column = self.column(write.offset);
        assert!(column.is_busy, "a write to {:?} ended twice", write.offset);
        column.is_busy = false;
        column.acknowledged = end;
        let is_closed = column.has_ended || end == chunk;
        let limit = if is_closed { u32::MAX } else { end.saturating_sub(window) };
        while let Some((_, buffer_unit)) = column.unreadable.pop_front_if(|&mut (at, _)| at <= limit) {
            readable(buffer_unit);
        }
        assert!(self.in_flight > 0, "more writes of line {} ended than were sent", self.line.0);
        self.in_flight -= 1;
    }

    /// Sectors of a chunk that can be read, from its start.
    #[must_use]
    pub fn readable(&self, position: Position) -> u32 {
        let column = &self.columns[usize_of(position.0)];
        let is_closed = column.has_ended || column.acknowledged == self.layout.chunk;
        if is_closed { self.layout.chunk } else { column.acknowledged.saturating_sub(self.mw_cunits) }
    }

    /// Asserts that counts agree with the chunks.
    pub fn check(&self) {
        let busy = self.columns.iter().filter(|column| column.is_busy).count();
        assert_eq!(usize_of(self.in_flight), busy, "line {} counts its writes wrong", self.line.0);
        let sectors = (0..self.layout.sectors()).map(LineOffset);
        let is_full = self.next == self.units.len();
        let named = sectors.filter(|&at| Emeta::lba(&self.layout, &self.emeta, at).is_some()).count();
        assert!(
            is_full || u64::try_from(named) == Ok(self.named),
            "line {} counts its blocks wrong",
            self.line.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, PuId};

    /// Two units of 16 sectors, written by four.
    fn open(mw_cunits: u32) -> OpenLine {
        let units: Vec<PuId> = (0..2).map(PuId).collect();
        let layout = LineLayout::new(&Geometry::example(1, 2, 40, 16, 4), &units).expect("Linux takes it");
        let parts = LineParts::new(&layout, |_| false).expect("it is used");
        OpenLine::new(LineId(3), Some(2), &layout, parts, mw_cunits)
    }

    /// Gives out the next write, as data of these blocks.
    fn issue(open: &mut OpenLine, lbas: &[u64]) -> UnitWrite {
        let write = open.next().expect("it can go out");
        open.issued(write, lbas.iter().map(|&lba| Some(lba)));
        write
    }

    #[test]
    fn the_start_goes_alone_and_a_busy_unit_holds_up_the_rest() {
        let mut open = open(0);
        let start = issue(&mut open, &[]);
        assert_eq!((start.piece, open.next()), (LineContent::Smeta, None), "nothing goes beside it");
        open.acknowledged(start, None, |_| ());
        let first = issue(&mut open, &[1, 2]);
        let second = issue(&mut open, &[3]);
        assert_eq!((first.offset, second.offset), (LineOffset(4), LineOffset(8)));
        assert_eq!(open.next(), None, "both units are busy");
        open.acknowledged(second, None, |_| ());
        assert_eq!(open.next(), None, "the next is the first one's");
        open.acknowledged(first, None, |_| ());
        assert_eq!(open.next().map(|write| write.offset), Some(LineOffset(12)));
        assert_eq!(open.named(), 3);
        open.check();
    }

    #[test]
    fn all_of_a_line_is_written_once_and_buffer_units_become_readable_behind_the_window() {
        let mut open = open(4);
        let (mut written, mut readable) = (Vec::new(), Vec::new());
        for buffer_unit in 0.. {
            let Some(write) = open.next() else { break };
            open.issued(write, std::iter::empty());
            written.push(write.offset.0);
            let buffer_unit = (write.piece == LineContent::Data).then_some(BufferUnitId(buffer_unit));
            open.acknowledged(write, buffer_unit, |buffer_unit| readable.push(buffer_unit.0));
            open.check();
        }
        assert_eq!(written, (0..8).map(|unit| unit * 4).collect::<Vec<_>>());
        assert_eq!(readable.len(), 6, "every buffer unit can be read once the line is full: {readable:?}");
        assert!(open.is_finished() && !open.is_damaged());
    }

    #[test]
    fn what_failed_is_in_no_list_and_a_closed_chunk_takes_no_more() {
        let mut open = open(0);
        let start = issue(&mut open, &[]);
        open.acknowledged(start, None, |_| ());
        let lost = issue(&mut open, &[1, 2]);
        open.failed(lost, false, |_| ());
        assert_eq!((open.named(), open.is_damaged()), (0, true));
        let lost = issue(&mut open, &[3]);
        open.failed(lost, true, |_| ());
        let mut left = 0;
        while let Some(write) = open.next() {
            assert_eq!(open.place(write.offset).0, UnitIndex(1), "the other chunk is closed");
            open.issued(write, std::iter::empty());
            open.acknowledged(write, None, |_| ());
            left += 1;
        }
        assert!(open.is_finished());
        assert_eq!(left, 3, "of the four units of the second chunk one was written before");
    }

    #[test]
    fn a_line_that_cannot_be_begun_takes_no_data() {
        for (closed, left) in [(false, 3), (true, 0)] {
            let mut open = open(0);
            let start = issue(&mut open, &[]);
            open.failed(start, closed, |_| ());
            let mut fill = 0;
            while let Some(write) = open.next() {
                assert_eq!((write.piece, open.place(write.offset).0), (LineContent::Padding, UnitIndex(0)));
                open.issued(write, std::iter::empty());
                open.acknowledged(write, None, |_| ());
                fill += 1;
            }
            assert!(open.is_finished() && open.is_damaged());
            assert_eq!(fill, left, "closed: {closed}");
        }
    }
}
