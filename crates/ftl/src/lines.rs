//! The lines of an instance: what each is used for, which of its chunks are bad, and which to write next.
//!
//! States: free (reset or not) -> open -> closed -> free again; bad when no chunk of it is left. The free line that was
//! reset least is taken first, the one freed earlier among equals, so that wear spreads without moving cold data; for cold
//! data a worn one can be taken. Deliberately not here: how far an open line is written (`open_line`), which sectors are
//! valid (`valid_map`), moving cold data so that its lines wear too (`wear`).

use crate::Stream;
use crate::instance_geometry::{InstanceGeometry, LineId, UnitIndex};
use crate::tag::Sequence;
use ocssd_base::usize_of;
use std::collections::BTreeSet;

/// The generation of a line: counts every line opened on the instance, from 1. Zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineSequence(pub u64);

/// What a line is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// For nothing.
    Free {
        /// Its good chunks are reset.
        was_reset: bool,
    },
    /// Its chunks are being reset.
    Erasing,
    /// Being written.
    Open,
    /// Written.
    Closed,
    /// No chunk of it can be used any more.
    Bad,
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// What it is used for.
    pub state: LineState,
    /// Its generation, while open or closed.
    pub sequence: LineSequence,
    /// Which stream wrote it.
    pub stream: Stream,
    /// Reads in flight to it: it is not reset under them.
    pub readers: u32,
    /// The newest write when it was opened.
    pub opened_at: Sequence,
    /// Sectors that went to it, fill and metadata not counted.
    pub data_sectors: u64,
    /// How often it was reset by this instance, as far as that is known: see [`Lines::restore_free`].
    pub resets: u32,
    /// Chunks of it that can be written.
    pub good_chunks: u32,
    /// Chunks of it whose head is written: each names the instance.
    pub heads: u32,
}

/// All lines.
#[derive(Clone, Debug)]
pub struct Lines {
    units: u32,
    lines: Vec<Line>,
    /// A bit per chunk, line by line.
    bad: Vec<u64>,
    /// Free lines by wear, then by when they became free.
    free: BTreeSet<(u32, u64, LineId)>,
    /// Good chunks of the lines in that list: users' every write asks for it.
    free_chunks: u32,
    freed: u64,
    next_sequence: LineSequence,
}

impl Lines {
    /// The lines of a shape, all free and not reset. `is_bad` names the chunks that cannot be used.
    #[must_use]
    pub fn new(shape: &InstanceGeometry, is_bad: impl Fn(LineId, UnitIndex) -> bool) -> Self {
        let units = shape.units();
        let chunks = usize_of(shape.lines()) * usize_of(units);
        let fresh = Line {
            state: LineState::Free { was_reset: false },
            sequence: LineSequence(0),
            stream: Stream(0),
            readers: 0,
            opened_at: Sequence(0),
            data_sectors: 0,
            resets: 0,
            good_chunks: units,
            heads: 0,
        };
        let mut lines = Self {
            units,
            lines: vec![fresh; usize_of(shape.lines())],
            bad: vec![0; chunks.div_ceil(64)],
            free: BTreeSet::new(),
            free_chunks: shape.lines() * units,
            freed: 0,
            next_sequence: LineSequence(1),
        };
        // All at once, in order: a tree is made of a sorted list faster than entry by entry.
        lines.free = (0..shape.lines()).map(|line| (0, u64::from(line) + 1, LineId(line))).collect();
        lines.freed = u64::from(shape.lines());
        for line in (0..shape.lines()).map(LineId) {
            for unit in (0..units).map(UnitIndex).filter(|&unit| is_bad(line, unit)) {
                lines.mark_bad(line, unit);
            }
        }
        lines
    }

    fn bit(&self, line: LineId, unit: UnitIndex) -> (usize, u64) {
        assert!(unit.0 < self.units, "unit {} is beyond the instance", unit.0);
        let chunk = line.index() * usize_of(self.units) + unit.index();
        (chunk / 64, 1 << (chunk % 64))
    }

    fn list_free(&mut self, line: LineId) {
        self.freed += 1;
        let Line { resets, good_chunks, .. } = self.lines[line.index()];
        let listed = self.free.insert((resets, self.freed, line));
        assert!(listed, "line {} was free twice", line.0);
        self.free_chunks += good_chunks;
    }

    /// Its entry in the list of free lines, if it is there. Cost: a pass over lines as worn.
    fn listed(&self, line: LineId) -> Option<(u32, u64, LineId)> {
        let resets = self.lines[line.index()].resets;
        let as_worn = (resets, 0, LineId(0))..=(resets, u64::MAX, LineId(u32::MAX));
        self.free.range(as_worn).find(|entry| entry.2 == line).copied()
    }

    fn unlist_free(&mut self, line: LineId) {
        let known = self.listed(line).is_some_and(|entry| self.free.remove(&entry));
        assert!(known, "free line {} was not listed", line.0);
        self.free_chunks -= self.lines[line.index()].good_chunks;
    }

    /// How many lines there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.lines.len()).expect("fewer lines than 2^32")
    }

    /// Lines that can be opened.
    #[must_use]
    pub fn free_count(&self) -> u32 {
        u32::try_from(self.free.len()).expect("fewer lines than 2^32")
    }

    /// Good chunks of lines that can be opened.
    #[must_use]
    pub fn free_chunks(&self) -> u32 {
        assert!(self.free_chunks >= self.free_count(), "a line without a good chunk is free");
        self.free_chunks
    }

    /// A line.
    #[must_use]
    pub fn get(&self, line: LineId) -> &Line {
        &self.lines[line.index()]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (LineId, &Line)> {
        (0..).map(LineId).zip(&self.lines)
    }

    /// The generation the next line to be opened will have.
    #[must_use]
    pub const fn next_sequence(&self) -> LineSequence {
        self.next_sequence
    }

    /// True if a chunk cannot be used.
    #[must_use]
    pub fn is_bad(&self, line: LineId, unit: UnitIndex) -> bool {
        let (word, bit) = self.bit(line, unit);
        self.bad[word] & bit != 0
    }

    /// A chunk cannot be used from now on. A free line without chunks left is bad.
    pub fn mark_bad(&mut self, line: LineId, unit: UnitIndex) {
        let (word, bit) = self.bit(line, unit);
        if self.bad[word] & bit != 0 {
            return;
        }
        self.bad[word] |= bit;
        // A line that was taken and waits to be reset is free, but not listed.
        self.free_chunks -= u32::from(self.listed(line).is_some());
        let entry = &mut self.lines[line.index()];
        assert!(entry.good_chunks > 0, "line {} has fewer than no chunks", line.0);
        entry.good_chunks -= 1;
        if entry.good_chunks == 0 && matches!(entry.state, LineState::Free { .. }) {
            self.unlist_free(line);
            self.lines[line.index()].state = LineState::Bad;
        }
    }

    /// Takes the free line that was reset least. It must then be reset, if it is not, or opened.
    pub fn take_free(&mut self) -> Option<LineId> {
        let (_, _, line) = self.free.pop_first()?;
        assert!(
            matches!(self.lines[line.index()].state, LineState::Free { .. }),
            "a listed line is not free"
        );
        self.free_chunks -= self.lines[line.index()].good_chunks;
        Some(line)
    }

    /// Takes a free line for data that will stay: the most worn one below the most worn of all lines, whose wear grows only
    /// when every free line is as worn. Cost: a pass over the lines.
    pub fn take_free_worn(&mut self) -> Option<LineId> {
        let most = self.most_resets();
        let worn = self.free.range(..(most, 0, LineId(0))).next_back().copied();
        let Some(entry) = worn else { return self.take_free() };
        let known = self.free.remove(&entry);
        assert!(known && entry.0 < most, "a line of {} resets of {most} is not listed", entry.0);
        self.free_chunks -= self.lines[entry.2.index()].good_chunks;
        Some(entry.2)
    }

    /// Resets of the most worn line that can still be used; 0 if there is none. Cost: a pass over the lines.
    #[must_use]
    pub fn most_resets(&self) -> u32 {
        let usable = self.lines.iter().filter(|line| line.state != LineState::Bad);
        usable.map(|line| line.resets).max().unwrap_or(0)
    }

    /// Resets of the least worn line that can still be used; 0 if there is none. Cost: a pass over the lines.
    #[must_use]
    pub fn least_resets(&self) -> u32 {
        let usable = self.lines.iter().filter(|line| line.state != LineState::Bad);
        usable.map(|line| line.resets).min().unwrap_or(0)
    }

    /// The resets of a taken or closed line begin.
    pub fn erasing(&mut self, line: LineId) {
        let entry = &mut self.lines[line.index()];
        assert!(
            matches!(entry.state, LineState::Free { .. } | LineState::Closed),
            "line {} is reset while it is {:?}",
            line.0,
            entry.state
        );
        assert_eq!(entry.readers, 0, "line {} is reset under a read", line.0);
        entry.state = LineState::Erasing;
    }

    /// The resets of a line are done: it is free, or bad if no chunk is left.
    pub fn was_reset(&mut self, line: LineId) {
        let entry = &mut self.lines[line.index()];
        assert_eq!(entry.state, LineState::Erasing, "line {} was not being reset", line.0);
        entry.resets += 1;
        entry.sequence = LineSequence(0);
        entry.data_sectors = 0;
        entry.heads = 0;
        if entry.good_chunks == 0 {
            entry.state = LineState::Bad;
        } else {
            entry.state = LineState::Free { was_reset: true };
            self.list_free(line);
        }
    }

    /// Opens a taken, reset line for a stream.
    pub fn open(&mut self, line: LineId, stream: Stream, newest: Sequence) -> LineSequence {
        let sequence = self.next_sequence;
        self.next_sequence.0 += 1;
        let entry = &mut self.lines[line.index()];
        assert_eq!(
            entry.state,
            LineState::Free { was_reset: true },
            "line {} is opened before it is reset",
            line.0
        );
        entry.state = LineState::Open;
        entry.sequence = sequence;
        entry.stream = stream;
        entry.opened_at = newest;
        entry.data_sectors = 0;
        sequence
    }

    /// A line that a mount left open is written on. One without data yet is as young as its first.
    pub fn gone_on(&mut self, line: LineId, newest: Sequence) {
        let entry = &mut self.lines[line.index()];
        assert_eq!(entry.state, LineState::Open, "line {} is written on but is not open", line.0);
        assert!(entry.opened_at <= newest, "line {} was opened after all writes", line.0);
        if entry.data_sectors == 0 {
            entry.opened_at = newest;
        }
    }

    /// Data went to an open line.
    pub fn add_data(&mut self, line: LineId, sectors: u32) {
        let entry = &mut self.lines[line.index()];
        assert_eq!(entry.state, LineState::Open, "data went to line {} which is not open", line.0);
        entry.data_sectors += u64::from(sectors);
    }

    /// The head of one more chunk of an open line is written.
    pub fn head_written(&mut self, line: LineId) {
        let entry = &mut self.lines[line.index()];
        assert_eq!(entry.state, LineState::Open, "a head went to line {} which is not open", line.0);
        entry.heads += 1;
        assert!(entry.heads <= self.units, "{} heads were written to {} units", entry.heads, self.units);
    }

    /// An open line is written to its end.
    pub fn close(&mut self, line: LineId) {
        let entry = &mut self.lines[line.index()];
        assert_eq!(entry.state, LineState::Open, "line {} is closed but was not open", line.0);
        entry.state = LineState::Closed;
    }

    /// A read of the line begins.
    pub fn begin_read(&mut self, line: LineId) {
        self.begin_reads(line, 1);
    }

    /// As [`Self::begin_read`], of so many sectors.
    pub fn begin_reads(&mut self, line: LineId, sectors: u32) {
        assert!(sectors > 0, "nothing of line {} is read", line.0);
        let entry = &mut self.lines[line.index()];
        assert!(
            matches!(entry.state, LineState::Open | LineState::Closed),
            "line {} is read while it is {:?}",
            line.0,
            entry.state
        );
        entry.readers += sectors;
    }

    /// A read of the line ended.
    #[inline]
    pub fn end_read(&mut self, line: LineId) {
        self.end_reads(line, 1);
    }

    /// As [`Self::end_read`], of so many sectors.
    #[inline]
    pub fn end_reads(&mut self, line: LineId, sectors: u32) {
        let entry = &mut self.lines[line.index()];
        assert!(entry.readers >= sectors, "a read of line {} ended twice", line.0);
        entry.readers -= sectors;
    }

    /// What was found at mount: a line in use, of this generation. Later generations will be larger.
    ///
    /// # Panics
    /// If the line is not free.
    pub fn restore(&mut self, line: LineId, found: Line) {
        self.unlist_free(line);
        let good_chunks = self.lines[line.index()].good_chunks;
        assert!(matches!(found.state, LineState::Open | LineState::Closed), "only lines in use are restored");
        self.next_sequence = self.next_sequence.max(LineSequence(found.sequence.0 + 1));
        self.lines[line.index()] = Line { good_chunks, ..found };
    }

    /// What was found at mount of a free line: whether it is reset, and how often it was, as far as that is known. Among
    /// lines as worn its place stays.
    ///
    /// # Panics
    /// If the line is not free.
    pub fn restore_free(&mut self, line: LineId, was_reset: bool, resets: u32) {
        let entry @ (_, freed, _) = self.listed(line).expect("a free line is listed");
        let found = &mut self.lines[line.index()];
        assert!(matches!(found.state, LineState::Free { .. }), "line {} is {:?}", line.0, found.state);
        found.state = LineState::Free { was_reset };
        found.resets = resets;
        let moved = self.free.remove(&entry) && self.free.insert((resets, freed, line));
        assert!(moved, "free line {} was listed twice", line.0);
    }

    /// What was found at mount of a line without a good chunk: how often it was reset, as far as that is known. It does not count
    /// while the line is bad ([`Self::most_resets`]), but a drive that reported chunks of it as bad may be wrong, and a later mount
    /// find it good.
    ///
    /// # Panics
    /// If the line is not bad.
    pub fn restore_bad(&mut self, line: LineId, resets: u32) {
        let found = &mut self.lines[line.index()];
        assert!(found.state == LineState::Bad, "line {} is {:?}", line.0, found.state);
        found.resets = resets;
    }

    /// No generation up to this one is given again.
    pub fn skip_sequences(&mut self, used: LineSequence) {
        self.next_sequence = self.next_sequence.max(LineSequence(used.0 + 1));
    }

    /// Asserts that the list of free lines agrees with the states; `taken` free lines wait to be reset.
    pub fn check(&self, taken: usize) {
        let free = self.lines.iter().filter(|line| matches!(line.state, LineState::Free { .. })).count();
        assert_eq!(free, self.free.len() + taken, "free lines and their list disagree");
        let chunks: u32 = self.free.iter().map(|entry| self.get(entry.2).good_chunks).sum();
        assert_eq!(self.free_chunks, chunks, "good chunks of free lines are counted wrong");
        for (id, line) in self.iter() {
            let bad = (0..self.units).filter(|&unit| self.is_bad(id, UnitIndex(unit))).count();
            assert_eq!(usize_of(self.units - line.good_chunks), bad, "line {} counts its chunks wrong", id.0);
            assert!(line.sequence < self.next_sequence, "line {} is of a generation to come", id.0);
        }
    }
}

#[cfg(test)]
mod tests;
