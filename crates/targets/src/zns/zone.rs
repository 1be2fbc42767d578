//! A zone: its state, how far it is written, and where its blocks lie.
//!
//! A zone's write units are counted from its start. A *segment* is a run of them over which the striping is regular: unit
//! `start + k` lies in column `k mod width`, as the `k / width`-th unit from where that column begins in its chunk. A zone that
//! nothing disturbs has one segment for each chunk it has on a unit. Where something does (a write that failed, a mount that
//! found columns written to different lengths), a new segment begins. Deliberately not here: how segments are planned
//! (`stripe`).

use ocssd_base::{Divisor, SlabKey, usize_of};
use ocssd_ftl::ChunkIndex;
use ocssd_lightnvm::interface::zoned::ZoneState;

/// A write unit of a zone, from its start.
pub type UnitOfZone = u32;

/// The part of a chunk that a segment uses: from a sector on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The chunk.
    pub chunk: ChunkIndex,
    /// Where the column begins.
    pub sector: u32,
}

const _: () = assert!(size_of::<Column>() == 8, "a column is what a chunk costs in memory");

/// A run of units with regular striping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first unit; it ends where the next segment begins, or where a column is full.
    pub start: UnitOfZone,
    /// Its columns, in the order of its units.
    pub columns: Box<[Column]>,
}

impl Segment {
    /// Where a unit lies, in units of `unit` sectors.
    pub fn place(&self, at: UnitOfZone, unit: u32) -> Column {
        let (nth, width) = self.nth_of(at);
        self.place_in(nth / width, nth % width, unit)
    }

    /// The same, where `per_width` most likely divides by its columns.
    #[inline(always)]
    fn place_by(&self, at: UnitOfZone, unit: u32, per_width: Divisor) -> Column {
        let (nth, width) = self.nth_of(at);
        if per_width.value() != u64::from(width) {
            return self.place_in(nth / width, nth % width, unit);
        }
        let (row, column) = per_width.div_rem_u32(nth);
        self.place_in(row, column, unit)
    }

    /// Which of its units a unit is, and its columns.
    #[inline(always)]
    fn nth_of(&self, at: UnitOfZone) -> (u32, u32) {
        assert!(at >= self.start, "unit {at} is before the segment of unit {}", self.start);
        let width = u32::try_from(self.columns.len()).expect("fewer columns than 2^32");
        assert!(width > 0, "unit {at} is behind the end of what was planned");
        (at - self.start, width)
    }

    #[inline(always)]
    fn place_in(&self, row: u32, column: u32, unit: u32) -> Column {
        let Column { chunk, sector } = self.columns[usize_of(column)];
        Column { chunk, sector: sector + row * unit }
    }

    /// The unit after the last for which every column has room, of chunks of `chunk` sectors.
    pub fn end(&self, unit: u32, chunk: u32) -> UnitOfZone {
        assert!(self.columns.iter().all(|column| column.sector <= chunk), "a column begins behind its chunk");
        let rows = self.columns.iter().map(|column| (chunk - column.sector) / unit).min().unwrap_or(0);
        self.start + rows * u32::try_from(self.columns.len()).expect("fewer columns than 2^32")
    }

    /// The part from `at` on.
    pub fn after(&self, at: UnitOfZone, unit: u32) -> Self {
        let width = u32::try_from(self.columns.len()).expect("fewer columns than 2^32");
        Self { start: at, columns: (at..at + width).map(|at| self.place(at, unit)).collect() }
    }
}

/// Not finished.
const UNFINISHED: u32 = u32::MAX;

/// A zone. `written` and `state` are what requests see; `since`, `finished_at` and `segments` what is logged.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// Blocks that were taken since its last reset; of a finished zone those before that.
    pub written: u32,
    /// Reads of it in flight: it is not reset before they are over.
    pub reads: u32,
    /// Blocks written to the instance before its last reset: what is not younger is of an earlier life.
    pub since: u64,
    /// Blocks it held when it became full; [`UNFINISHED`] before.
    finished_at: u32,
    /// Blocks it had at the last mount: older tails that go beyond these are of what that mount did not find.
    pub shown: u32,
    /// Those of them before the first one that was never written: older tails of a row do not count behind it.
    pub in_row: u32,
    /// Where they lie.
    pub segments: Vec<Segment>,
    /// Who writes it.
    pub writer: Option<SlabKey>,
}

const _: () = assert!(size_of::<Zone>() <= 64, "a zone costs more memory than it should");

impl Zone {
    /// An empty zone.
    pub const EMPTY: Self = Self {
        state: ZoneState::Empty,
        written: 0,
        reads: 0,
        since: 0,
        finished_at: UNFINISHED,
        shown: 0,
        in_row: 0,
        segments: Vec::new(),
        writer: None,
    };

    /// Where a unit lies.
    pub fn place(&self, at: UnitOfZone, unit: u32) -> Column {
        self.segment_of(at).place(at, unit)
    }

    /// The same, where `per_width` most likely divides by the columns of a segment.
    #[inline(always)]
    pub fn place_by(&self, at: UnitOfZone, unit: u32, per_width: Divisor) -> Column {
        self.segment_of(at).place_by(at, unit, per_width)
    }

    #[inline(always)]
    fn segment_of(&self, at: UnitOfZone) -> &Segment {
        if let [only] = &self.segments[..] {
            return only;
        }
        let next = self.segments.partition_point(|segment| segment.start <= at);
        assert!(next > 0, "unit {at} lies nowhere");
        &self.segments[next - 1]
    }

    /// Which column of the last segment a unit lies in; of a unit before it any.
    pub fn last_column(&self, at: UnitOfZone) -> usize {
        let Some(last) = self.segments.last() else { return 0 };
        usize_of(at.saturating_sub(last.start)) % last.columns.len().max(1)
    }

    /// Blocks it held when it became full.
    pub fn finished_at(&self) -> Option<u32> {
        (self.finished_at != UNFINISHED).then_some(self.finished_at)
    }

    /// It takes no more, and holds so many blocks, in units of `unit`. Columns without a unit are dropped.
    pub fn finish_at(&mut self, blocks: u32, unit: u32) {
        assert!(blocks != UNFINISHED, "a zone of 2^32 blocks");
        assert!(
            self.finished_at == UNFINISHED,
            "a zone is finished twice, at {} and {blocks} blocks",
            self.finished_at
        );
        self.finished_at = blocks;
        self.drop_columns_behind(blocks.div_ceil(unit));
    }

    /// It holds so many units, and columns without one of them are none of it.
    pub fn drop_columns_behind(&mut self, units: UnitOfZone) {
        self.segments.retain(|segment| segment.start < units);
        let mut end = units;
        for segment in self.segments.iter_mut().rev() {
            let count = usize_of(end - segment.start);
            end = segment.start;
            if count < segment.columns.len() {
                segment.columns = segment.columns[..count].into();
            }
        }
    }

    /// Segments end before unit `at`: what lies behind in their columns is none of it.
    pub fn cut(&mut self, at: UnitOfZone) {
        assert!(self.finished_at().is_none(), "a finished zone is cut at unit {at}");
        self.segments.retain(|segment| segment.start < at);
        if at > 0 {
            self.segments.push(Segment { start: at, columns: Box::new([]) });
        }
    }

    /// True if nothing was planned since a mount found its end, in units of `unit`: what it holds can be read. Segments end
    /// where a unit moved, too, and there it does not follow.
    pub fn is_as_mounted(&self, unit: u32) -> bool {
        assert!(self.in_row <= self.shown, "a row of {} in {} blocks", self.in_row, self.shown);
        self.segments.last().is_none_or(|last| last.columns.is_empty() && last.start == self.shown / unit)
    }

    /// It is empty from now on.
    pub fn clear(&mut self, since: u64) {
        assert!(since >= self.since, "a zone goes back from {} to {since}", self.since);
        self.since = since;
        (self.finished_at, self.shown, self.in_row) = (UNFINISHED, 0, 0);
        self.segments = Vec::new();
    }

    /// Adds a column to the last segment, or begins one.
    ///
    /// # Errors
    /// If segments and columns do not follow each other.
    pub fn add_column(&mut self, start: UnitOfZone, index: u32, column: Column) -> Result<(), ()> {
        if index == 0 {
            // A segment that begins where nothing was written yet may be planned anew.
            self.segments.pop_if(|last| last.start == start);
            if self.segments.last().is_some_and(|last| last.start > start) {
                return Err(());
            }
            // Most zones have one, or one for each chunk of a unit, and keep them as long as they hold anything.
            self.segments.reserve_exact(1);
            self.segments.push(Segment { start, columns: Box::new([column]) });
            return Ok(());
        }
        let last = self.segments.last_mut().filter(|last| last.start == start).ok_or(())?;
        if last.columns.len() != usize_of(index) {
            return Err(());
        }
        let mut columns = std::mem::take(&mut last.columns).into_vec();
        columns.push(column);
        last.columns = columns.into_boxed_slice();
        Ok(())
    }

    /// Unit `at` goes elsewhere: the segment it is in is cut around it.
    pub fn move_unit(&mut self, at: UnitOfZone, to: Column, unit: u32) {
        let index = self.segments.partition_point(|segment| segment.start <= at);
        assert!(index > 0, "unit {at} lies nowhere");
        let old = &self.segments[index - 1];
        assert!(!old.columns.is_empty(), "unit {at} moves, and lies nowhere");
        let ends_here = self.segments.get(index).is_some_and(|next| next.start == at + 1);
        let rest = (!ends_here).then(|| old.after(at + 1, unit));
        let single = Segment { start: at, columns: Box::new([to]) };
        let from = if old.start == at { index - 1 } else { index };
        self.segments.splice(from..index, std::iter::once(single).chain(rest));
        assert!(self.segments.is_sorted_by_key(|segment| segment.start), "segments are out of order");
    }

    /// Every chunk it has, some of them more than once.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkIndex> {
        self.segments.iter().flat_map(|segment| segment.columns.iter().map(|column| column.chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u32 = 4;

    fn column(chunk: u32, sector: u32) -> Column {
        Column { chunk: ChunkIndex(chunk), sector }
    }

    fn zone() -> Zone {
        let mut zone = Zone::EMPTY;
        for (start, index, at) in
            [(0, 0, column(7, 0)), (0, 1, column(8, 0)), (12, 0, column(9, 0)), (12, 1, column(8, 24))]
        {
            zone.add_column(start, index, at).expect("columns in order");
        }
        zone
    }

    #[test]
    fn units_are_striped_over_the_columns_of_their_segment() {
        let zone = zone();
        let expected = [
            (0, column(7, 0)),
            (1, column(8, 0)),
            (5, column(8, 8)),
            (12, column(9, 0)),
            (15, column(8, 28)),
        ];
        assert!(expected.iter().all(|&(at, place)| zone.place(at, UNIT) == place));
        for width in 1..5 {
            let per_width = Divisor::new(width);
            assert!(expected.iter().all(|&(at, place)| zone.place_by(at, UNIT, per_width) == place));
        }
        assert_eq!((zone.segments[0].end(UNIT, 24), zone.segments[1].end(UNIT, 48)), (12, 24));
        assert_eq!([12, 15, 16].map(|at| zone.last_column(at)), [0, 1, 0]);
        assert_eq!((zone.last_column(3), Zone::EMPTY.last_column(7)), (0, 0), "any");
    }

    #[test]
    fn a_unit_that_moves_leaves_the_others_where_they_are() {
        for at in 0..15 {
            let mut moved = zone();
            moved.move_unit(at, column(99, 8), UNIT);
            for other in 0..16 {
                let expected = if other == at { column(99, 8) } else { zone().place(other, UNIT) };
                assert_eq!(moved.place(other, UNIT), expected, "unit {other} after {at} moved");
            }
        }
    }

    #[test]
    fn a_finished_zone_has_no_column_without_a_unit_and_a_cut_one_goes_on_anew() {
        let mut finished_at = zone();
        finished_at.finish_at(13 * UNIT - 1, UNIT);
        assert_eq!((finished_at.segments[1].columns.len(), finished_at.place(12, UNIT)), (1, column(9, 0)));
        let mut cut = zone();
        cut.cut(5);
        assert!(!cut.is_as_mounted(UNIT), "a unit moved, and no mount looked since");
        cut.shown = 5 * UNIT + 1;
        assert!(cut.is_as_mounted(UNIT) && !zone().is_as_mounted(UNIT));
        assert_eq!((cut.place(4, UNIT), cut.segments.len()), (zone().place(4, UNIT), 2));
        cut.add_column(5, 0, column(3, 0)).expect("it goes on");
        assert_eq!((cut.place(5, UNIT), cut.segments.len()), (column(3, 0), 2));
        cut.cut(0);
        assert!(cut.segments.is_empty());
    }

    #[test]
    fn columns_that_do_not_follow_are_refused() {
        let mut zone = zone();
        for (start, index) in [(5, 0), (12, 3), (13, 1)] {
            assert_eq!(
                zone.add_column(start, index, column(1, 0)),
                Err(()),
                "column {index} of unit {start}"
            );
        }
        zone.finish_at(9, UNIT);
        assert_eq!(
            (zone.finished_at(), zone.chunks().count()),
            (Some(9), 2),
            "the second segment held nothing"
        );
        zone.clear(70);
        assert_eq!((zone.since, zone.finished_at(), zone.chunks().count()), (70, None, 0));
    }
}
