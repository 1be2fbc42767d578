//! The segments of a zone: runs of its units, each with columns of its own over which they are striped.
//!
//! Most zones have one segment, which takes no memory but its columns. Deliberately not here: when segments begin (`stripe`), what
//! finishing and cutting a zone make of them (`zone`).

use ocssd_base::{Divisor, usize_of};
use ocssd_ftl::ChunkIndex;
use std::iter::once;

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

/// A run of units with regular striping, and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first unit; it ends where the next segment begins, or where a column is full.
    pub start: UnitOfZone,
    /// Its columns, in the order of its units.
    pub columns: Box<[Column]>,
}

impl Segment {
    /// A look at it.
    pub fn as_run(&self) -> Run<'_> {
        Run { start: self.start, columns: &self.columns }
    }
}

/// A look at a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// Its first unit.
    pub start: UnitOfZone,
    /// Its columns.
    pub columns: &'a [Column],
}

impl Run<'_> {
    /// Where a unit lies, in units of `unit` sectors.
    pub fn place(&self, at: UnitOfZone, unit: u32) -> Column {
        let (nth, width) = self.nth_of(at);
        self.place_in(nth / width, nth % width, unit)
    }

    /// The same, where `per_width` most likely divides by its columns.
    #[inline(always)]
    pub fn place_by(&self, at: UnitOfZone, unit: u32, per_width: Divisor) -> Column {
        let (nth, width) = self.nth_of(at);
        if per_width.value() != u64::from(width) {
            return self.place_in(nth / width, nth % width, unit);
        }
        let (row, column) = per_width.div_rem_u32(nth);
        self.place_in(row, column, unit)
    }

    /// Columns it has.
    #[inline(always)]
    pub fn width(&self) -> u32 {
        u32::try_from(self.columns.len()).expect("fewer columns than 2^32")
    }

    /// Which of its units a unit is, and its columns.
    #[inline(always)]
    fn nth_of(&self, at: UnitOfZone) -> (u32, u32) {
        assert!(at >= self.start, "unit {at} is before the segment of unit {}", self.start);
        let width = self.width();
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
        self.start + rows * self.width()
    }

    /// The part from `at` on.
    fn after(&self, at: UnitOfZone, unit: u32) -> Segment {
        Segment { start: at, columns: (at..at + self.width()).map(|at| self.place(at, unit)).collect() }
    }
}

/// All segments of a zone, in order; the first begins with its first unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Columns of the first; none if there is no segment.
    first: Box<[Column]>,
    /// The others. A vector in a box: few zones have any, and a zone without pays for a pointer.
    #[expect(clippy::box_collection, reason = "eight bytes in each zone in place of twenty-four")]
    rest: Option<Box<Vec<Segment>>>,
}

const _: () = assert!(size_of::<Segments>() == 24, "segments cost each zone more memory than they should");

impl Segments {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    fn rest(&self) -> &[Segment] {
        self.rest.as_ref().map_or(&[], |rest| &rest[..])
    }

    /// Segments there are.
    pub fn len(&self) -> usize {
        usize::from(!self.first.is_empty()) + self.rest().len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Run<'_>> + Clone {
        let first = (!self.first.is_empty()).then_some(Run { start: 0, columns: &self.first });
        first.into_iter().chain(self.rest().iter().map(Segment::as_run))
    }

    /// The last.
    pub fn last(&self) -> Option<Run<'_>> {
        self.iter().next_back()
    }

    /// The one a unit is in.
    #[inline(always)]
    pub fn of(&self, at: UnitOfZone) -> Run<'_> {
        let first = Run { start: 0, columns: &self.first };
        let Some(rest) = &self.rest else { return first };
        let next = rest.partition_point(|segment| segment.start <= at);
        if next == 0 { first } else { rest[next - 1].as_run() }
    }

    /// Columns, to be changed where they are.
    pub fn columns_mut(&mut self) -> impl Iterator<Item = &mut Column> {
        let rest = self.rest.iter_mut().flat_map(|rest| rest.iter_mut());
        self.first.iter_mut().chain(rest.flat_map(|segment| &mut segment.columns))
    }

    /// Adds one behind the others.
    pub fn push(&mut self, segment: Segment) {
        if self.is_empty() {
            assert!(
                segment.start == 0 && !segment.columns.is_empty(),
                "the first segment begins with unit {} and has {} columns",
                segment.start,
                segment.columns.len()
            );
            self.first = segment.columns;
            return;
        }
        let last = self.last().expect("there is one").start;
        assert!(segment.start > last, "a segment of unit {} is behind that of {last}", segment.start);
        let rest = self.rest.get_or_insert_default();
        // Most zones have few, and keep them as long as they hold anything.
        rest.reserve_exact(1);
        rest.push(segment);
    }

    /// Only those are left that begin before a unit.
    pub fn keep_before(&mut self, at: UnitOfZone) {
        if at == 0 {
            *self = Self::none();
        } else if let Some(rest) = &mut self.rest {
            rest.retain(|segment| segment.start < at);
            self.rest.take_if(|rest| rest.is_empty());
        }
        assert!(!self.is_empty() || self.rest.is_none(), "there is a second segment and no first");
    }

    /// The last has one column more.
    pub fn widen_last(&mut self, column: Column) {
        assert!(!self.is_empty(), "there is no segment to be widened");
        let last = self.rest.as_mut().and_then(|rest| rest.last_mut());
        let columns = last.map_or(&mut self.first, |last| &mut last.columns);
        let mut widened = std::mem::take(columns).into_vec();
        widened.push(column);
        *columns = widened.into_boxed_slice();
    }

    /// None has more columns than units, of which there are so many in all.
    pub fn narrow(&mut self, units: UnitOfZone) {
        self.keep_before(units);
        let mut end = units;
        let rest = self.rest.iter_mut().flat_map(|rest| rest.iter_mut().rev());
        for Segment { start, columns } in rest {
            narrow_to(columns, end - *start);
            end = *start;
        }
        narrow_to(&mut self.first, end);
    }

    /// Unit `at` goes elsewhere: the segment it is in is cut around it.
    pub fn move_unit(&mut self, at: UnitOfZone, to: Column, unit: u32) {
        let old = self.of(at);
        assert!(!old.columns.is_empty(), "unit {at} moves, and lies nowhere");
        let mut all: Vec<Segment> = Vec::with_capacity(self.len() + 2);
        let owned = |run: Run<'_>| Segment { start: run.start, columns: run.columns.into() };
        all.extend(self.iter().filter(|run| run.start < at).map(owned));
        all.push(Segment { start: at, columns: Box::new([to]) });
        if self.iter().all(|run| run.start != at + 1) {
            all.push(old.after(at + 1, unit));
        }
        all.extend(self.iter().filter(|run| run.start > at).map(owned));
        assert!(all.is_sorted_by_key(|segment| segment.start), "segments are out of order");
        *self = all.into_iter().collect();
    }

    /// Bytes beside columns and the zone itself.
    pub fn heap_bytes(&self) -> usize {
        self.rest
            .as_ref()
            .map_or(0, |rest| size_of::<Vec<Segment>>() + rest.capacity() * size_of::<Segment>())
    }
}

fn narrow_to(columns: &mut Box<[Column]>, units: u32) {
    if usize_of(units) < columns.len() {
        *columns = columns[..usize_of(units)].into();
    }
}

impl FromIterator<Segment> for Segments {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        let mut all = Self::none();
        segments.into_iter().for_each(|segment| all.push(segment));
        all
    }
}

impl From<Segment> for Segments {
    fn from(segment: Segment) -> Self {
        once(segment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    fn column(chunk: u32, sector: u32) -> Column {
        Column { chunk: ChunkIndex(chunk), sector }
    }

    /// Random changes against a plain list.
    #[test]
    fn segments_are_those_of_a_plain_list() {
        for seed in 0..200 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let mut below = |most: u64| u32::try_from(prng.below(most)).expect("small");
            let (mut list, mut segments) = (Vec::<Segment>::new(), Segments::none());
            for step in 0..60 {
                let last = list.last().map_or(0, |last| last.start + 1 + below(4));
                match below(5) {
                    0 | 1 => {
                        let width = below(3) + u32::from(list.is_empty());
                        let columns = (0..width).map(|nth| column(step, nth)).collect();
                        let segment = Segment { start: last, columns };
                        list.push(segment.clone());
                        segments.push(segment);
                    }
                    2 if !list.is_empty() => {
                        let last = list.last_mut().expect("there is one");
                        last.columns = last.columns.iter().copied().chain([column(99, step)]).collect();
                        segments.widen_last(column(99, step));
                    }
                    3 => {
                        let at = below(u64::from(last) + 8);
                        list.retain(|segment| segment.start < at);
                        segments.keep_before(at);
                    }
                    _ if !list.is_empty() => {
                        let units = 1 + below(u64::from(last) + 2);
                        list.retain(|segment| segment.start < units);
                        let mut end = units;
                        for segment in list.iter_mut().rev() {
                            let kept = segment.columns.len().min(usize_of(end - segment.start));
                            segment.columns = segment.columns[..kept].into();
                            end = segment.start;
                        }
                        segments.narrow(units);
                    }
                    _ => {}
                }
                assert!(segments.iter().eq(list.iter().map(Segment::as_run)), "{segments:?} of {list:?}");
                assert_eq!((segments.len(), segments.is_empty()), (list.len(), list.is_empty()));
                let of = |at| list.iter().rev().find(|segment| segment.start <= at).map(Segment::as_run);
                assert!((0..40).all(|at| list.is_empty() || Some(segments.of(at)) == of(at)), "{list:?}");
                assert_eq!(segments, list.iter().cloned().collect());
                let columns = list.iter().map(|segment| segment.columns.len()).sum::<usize>();
                assert_eq!(segments.columns_mut().count(), columns);
            }
        }
    }

    #[test]
    fn one_segment_costs_nothing_beside_its_columns() {
        let one: Segments = Segment { start: 0, columns: Box::new([column(1, 0)]) }.into();
        assert_eq!(one.heap_bytes(), 0);
        let mut two = one.clone();
        two.push(Segment { start: 3, columns: Box::new([]) });
        assert_eq!(two.heap_bytes(), 24 + 24);
        two.keep_before(3);
        assert_eq!((two.heap_bytes(), two), (0, one));
    }
}
