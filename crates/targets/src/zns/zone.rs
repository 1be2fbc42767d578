//! A zone: its state, how far it is written, and where its blocks lie.
//!
//! A zone's write units are counted from its start. A *segment* is a run of them over which the striping is regular: unit
//! `start + k` lies in column `k mod width`, as the `k / width`-th unit from where that column begins in its chunk. A zone that
//! nothing disturbs has one segment for each chunk it has on a unit. Where something does (a write that failed, a mount that
//! found columns written to different lengths), a new segment begins. Deliberately not here: how segments are kept (`segments`)
//! and planned (`stripe`).

use super::columns::Column;
use super::segments::{Run, Segment, Segments, UnitOfZone};
use ocssd_base::{Divisor, SlabKey, usize_of};
use ocssd_ftl::ChunkIndex;
use ocssd_lightnvm::interface::zoned::ZoneState;

/// In place of blocks in a row: the zone is full.
const FINISHED: u32 = u32::MAX;
/// In place of a writer: there is none.
const NO_WRITER: u32 = u32::MAX;

/// A zone. `written` and `state` are what requests see; `since`, what it held when it became full, and `segments` what is logged.
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
    /// Of a full zone the blocks it held then, else those it had at the last mount.
    held: u32,
    /// [`FINISHED`], or those of them before the first one that was never written.
    in_row: u32,
    /// Where they lie.
    pub segments: Segments,
    /// Who writes it, or [`NO_WRITER`].
    writer: u32,
}

const _: () = assert!(size_of::<Zone>() == 56, "a zone costs more memory than it should");

impl Zone {
    /// An empty zone.
    pub fn empty() -> Self {
        Self {
            state: ZoneState::Empty,
            written: 0,
            reads: 0,
            since: 0,
            held: 0,
            in_row: 0,
            segments: Segments::none(),
            writer: NO_WRITER,
        }
    }

    /// Who writes it.
    #[inline(always)]
    pub fn writer(&self) -> Option<SlabKey> {
        (self.writer != NO_WRITER).then_some(SlabKey(self.writer))
    }

    /// It is written by somebody, or by nobody any more.
    pub fn set_writer(&mut self, writer: Option<SlabKey>) {
        assert!(writer != Some(SlabKey(NO_WRITER)), "there are as many writers as there can be zones");
        self.writer = writer.map_or(NO_WRITER, |key| key.0);
    }

    /// Blocks it had at the last mount, if it is not full: older tails that go beyond these are of what that mount did not find.
    pub fn shown(&self) -> u32 {
        if self.in_row == FINISHED { 0 } else { self.held }
    }

    /// Those of them before the first one that was never written: older tails of a row do not count behind it.
    pub fn in_row(&self) -> u32 {
        if self.in_row == FINISHED { 0 } else { self.in_row }
    }

    /// A mount found so many blocks, and so many in a row; of a full zone it looks for none.
    pub fn found(&mut self, shown: u32, in_row: u32) {
        assert!(in_row <= shown && self.in_row != FINISHED, "a row of {in_row} in {shown} blocks");
        (self.held, self.in_row) = (shown, in_row);
    }

    /// Where a unit lies.
    pub fn place(&self, at: UnitOfZone, unit: u32) -> Column {
        self.segments.of(at).place(at, unit)
    }

    /// The same, where `per_width` most likely divides by the columns of a segment.
    #[inline(always)]
    pub fn place_by(&self, at: UnitOfZone, unit: u32, per_width: Divisor) -> Column {
        self.segments.of(at).place_by(at, unit, per_width)
    }

    /// Which column of the last segment a unit lies in; of a unit before it any.
    pub fn last_column(&self, at: UnitOfZone) -> usize {
        let Some(last) = self.segments.last() else { return 0 };
        usize_of(at.saturating_sub(last.start)) % last.columns.len().max(1)
    }

    /// Blocks it held when it became full.
    #[inline(always)]
    pub fn finished_at(&self) -> Option<u32> {
        (self.in_row == FINISHED).then_some(self.held)
    }

    /// It takes no more, and holds so many blocks, in units of `unit`. Columns without a unit are dropped.
    pub fn finish_at(&mut self, blocks: u32, unit: u32) {
        assert!(
            self.finished_at().is_none(),
            "a zone is finished twice, at {} and {blocks} blocks",
            self.held
        );
        (self.held, self.in_row) = (blocks, FINISHED);
        self.drop_columns_behind(blocks.div_ceil(unit));
    }

    /// It holds so many units, and columns without one of them are none of it.
    pub fn drop_columns_behind(&mut self, units: UnitOfZone) {
        self.segments.narrow(units);
    }

    /// Segments end before unit `at`: what lies behind in their columns is none of it.
    pub fn cut(&mut self, at: UnitOfZone) {
        assert!(self.finished_at().is_none(), "a finished zone is cut at unit {at}");
        self.segments.keep_before(at);
        if at > 0 {
            self.segments.push(Segment::new(at, &[]));
        }
    }

    /// True if nothing was planned since a mount found its end, in units of `unit`: what it holds can be read. Segments end
    /// where a unit moved, too, and there it does not follow.
    pub fn is_as_mounted(&self, unit: u32) -> bool {
        self.segments.last().is_none_or(|last| last.columns.is_empty() && last.start == self.shown() / unit)
    }

    /// It is empty from now on.
    pub fn clear(&mut self, since: u64) {
        assert!(since >= self.since, "a zone goes back from {} to {since}", self.since);
        self.since = since;
        (self.held, self.in_row) = (0, 0);
        self.segments = Segments::none();
    }

    /// Adds a column to the last segment, or begins one.
    ///
    /// # Errors
    /// If segments and columns do not follow each other.
    pub fn add_column(&mut self, start: UnitOfZone, index: u32, column: Column) -> Result<(), ()> {
        if index == 0 {
            if self.segments.last().is_some_and(|last| last.start > start) {
                return Err(());
            }
            // A segment that begins where nothing was written yet may be planned anew.
            self.segments.keep_before(start);
            if self.segments.is_empty() && start > 0 {
                return Err(());
            }
            self.segments.push(Segment::new(start, &[column]));
            return Ok(());
        }
        let is_next = |last: Run<'_>| last.start == start && last.columns.len() == usize_of(index);
        self.segments.last().filter(|&last| is_next(last)).ok_or(())?;
        self.segments.widen_last(column);
        Ok(())
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
        let mut zone = Zone::empty();
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
        assert_eq!((zone.segments.of(0).end(UNIT, 24), zone.segments.of(12).end(UNIT, 48)), (12, 24));
        assert_eq!([12, 15, 16].map(|at| zone.last_column(at)), [0, 1, 0]);
        assert_eq!((zone.last_column(3), Zone::empty().last_column(7)), (0, 0), "any");
    }

    #[test]
    fn a_unit_that_moves_leaves_the_others_where_they_are() {
        for at in 0..15 {
            let mut moved = zone();
            moved.segments.move_unit(at, column(99, 8), UNIT);
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
        assert_eq!(
            (finished_at.segments.of(12).columns.len(), finished_at.place(12, UNIT)),
            (1, column(9, 0))
        );
        let mut cut = zone();
        cut.cut(5);
        assert!(!cut.is_as_mounted(UNIT), "a unit moved, and no mount looked since");
        cut.found(5 * UNIT + 1, 5 * UNIT + 1);
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
