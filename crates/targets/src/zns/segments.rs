//! The segments of a zone: runs of its units, each with columns of its own over which they are striped.
//!
//! Most zones have one row of segments (`columns`), which takes no memory but its columns. Deliberately not here: when segments
//! begin (`stripe`), what finishing and cutting a zone make of them (`zone`).

use super::columns::{Column, Columns, Row};
use ocssd_base::{Divisor, usize_of};
use ocssd_ftl::ChunkIndex;
use std::iter::once;

/// A write unit of a zone, from its start.
pub type UnitOfZone = u32;

/// A run of units with regular striping, and its columns.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its first unit; it ends where the next segment begins, or where a column is full.
    pub start: UnitOfZone,
    columns: Row,
}

impl Segment {
    /// One that begins with unit `start`, over these columns in the order of its units.
    pub fn new(start: UnitOfZone, columns: &[Column]) -> Self {
        Self { start, columns: Row::one(columns.iter().copied()) }
    }

    /// Its columns.
    pub fn columns(&self) -> Columns<'_> {
        self.as_run().columns
    }

    /// A look at it.
    pub fn as_run(&self) -> Run<'_> {
        self.columns.nth(self.start, 0)
    }
}

/// A look at a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run<'a> {
    /// Its first unit.
    pub start: UnitOfZone,
    /// Its columns.
    pub columns: Columns<'a>,
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
        let Column { chunk, sector } = self.columns.get(usize_of(column));
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
        let columns: Vec<Column> = (at..at + self.width()).map(|at| self.place(at, unit)).collect();
        Segment::new(at, &columns)
    }

    /// The same segment, to be kept.
    fn owned(self) -> Segment {
        Segment { start: self.start, columns: Row::one(self.columns.iter()) }
    }

    /// The same with so many columns at most.
    fn narrowed(self, units: u32) -> Segment {
        let columns: Vec<Column> = self.columns.iter().take(usize_of(units)).collect();
        Segment::new(self.start, &columns)
    }
}

/// All segments of a zone, in order; the first begins with its first unit.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// The first of them; no column if there is no segment.
    first: Row,
    /// Those behind. A vector in a box: few zones have any, and a zone without pays for a pointer.
    #[expect(clippy::box_collection, reason = "eight bytes in each zone in place of twenty-four")]
    rest: Option<Box<Vec<LaterRow>>>,
}

/// A row behind the first.
#[derive(Clone, Debug)]
struct LaterRow {
    start: UnitOfZone,
    row: Row,
}

const _: () = assert!(size_of::<Segments>() == 24, "segments cost each zone more memory than they should");

impl Segments {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    fn rest(&self) -> &[LaterRow] {
        self.rest.as_ref().map_or(&[], |rest| &rest[..])
    }

    /// Every row, and where it begins.
    fn rows(&self) -> impl Iterator<Item = (UnitOfZone, &Row)> {
        let first = (!self.first.is_empty()).then_some((0, &self.first));
        first.into_iter().chain(self.rest().iter().map(|later| (later.start, &later.row)))
    }

    /// Segments there are.
    pub fn len(&self) -> usize {
        self.rows().map(|(_, row)| usize_of(row.count())).sum()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Run<'_>> {
        self.rows().flat_map(|(start, row)| row.runs(start))
    }

    /// The last.
    pub fn last(&self) -> Option<Run<'_>> {
        match self.rest().last() {
            Some(later) => Some(later.row.last(later.start)),
            None => (!self.is_empty()).then(|| self.first.last(0)),
        }
    }

    /// The one a unit is in.
    #[inline(always)]
    pub fn of(&self, at: UnitOfZone) -> Run<'_> {
        let Some(rest) = &self.rest else { return self.first.of(0, at) };
        match rest.partition_point(|later| later.start <= at) {
            0 => self.first.of(0, at),
            next => rest[next - 1].row.of(rest[next - 1].start, at),
        }
    }

    /// What lies in a chunk lies in another now, from the same sectors on.
    pub fn replace(&mut self, from: ChunkIndex, to: ChunkIndex) {
        self.first.replace(from, to);
        self.rest.iter_mut().flat_map(|rest| rest.iter_mut()).for_each(|later| later.row.replace(from, to));
    }

    /// The last row, and where it begins.
    fn last_row(&mut self) -> (UnitOfZone, &mut Row) {
        let last = self.rest.as_mut().and_then(|rest| rest.last_mut());
        last.map_or((0, &mut self.first), |later| (later.start, &mut later.row))
    }

    /// Adds one behind the others.
    pub fn push(&mut self, segment: Segment) {
        let Some(last) = self.last().map(|last| last.start) else {
            let (start, width) = (segment.start, segment.columns().len());
            assert!(
                start == 0 && width > 0,
                "the first segment begins with unit {start} and has {width} columns"
            );
            self.first = segment.columns;
            return;
        };
        assert!(segment.start > last, "a segment of unit {} is behind that of {last}", segment.start);
        let (start, row) = self.last_row();
        if row.join(start, &segment) {
            return;
        }
        let rest = self.rest.get_or_insert_default();
        // Most zones have few, and keep them as long as they hold anything.
        rest.reserve_exact(1);
        rest.push(LaterRow { start: segment.start, row: segment.columns });
    }

    /// Only those are left that begin before a unit.
    pub fn keep_before(&mut self, at: UnitOfZone) {
        if at == 0 {
            *self = Self::none();
        } else if let Some(rest) = &mut self.rest {
            rest.retain(|later| later.start < at);
            self.rest.take_if(|rest| rest.is_empty());
        }
        if !self.is_empty() {
            let (start, row) = self.last_row();
            let count = row.runs(start).take_while(|run| run.start < at).count();
            row.keep(u32::try_from(count).expect("fewer segments than 2^32"));
        }
        assert!(!self.is_empty() || self.rest.is_none(), "there is a second segment and no first");
    }

    /// The last has one column more.
    pub fn widen_last(&mut self, column: Column) {
        if self.last_row().1.widen(column) {
            return;
        }
        let last = self.last().expect("there is a segment to be widened");
        let columns: Vec<Column> = last.columns.iter().chain(once(column)).collect();
        let segment = Segment::new(last.start, &columns);
        self.keep_before(segment.start);
        self.push(segment);
    }

    /// None has more columns than units, of which there are so many in all.
    pub fn narrow(&mut self, units: UnitOfZone) {
        self.keep_before(units);
        let ends = self.iter().skip(1).map(|run| run.start).chain(once(units));
        let narrowed: Self = self.iter().zip(ends).map(|(run, end)| run.narrowed(end - run.start)).collect();
        assert_eq!(narrowed.len(), self.len(), "a segment is lost where they are narrowed to {units} units");
        *self = narrowed;
    }

    /// Unit `at` goes elsewhere: the segment it is in is cut around it.
    pub fn move_unit(&mut self, at: UnitOfZone, to: Column, unit: u32) {
        let old = self.of(at);
        assert!(!old.columns.is_empty(), "unit {at} moves, and lies nowhere");
        let mut all: Vec<Segment> = Vec::with_capacity(self.len() + 2);
        all.extend(self.iter().filter(|run| run.start < at).map(Run::owned));
        all.push(Segment::new(at, &[to]));
        if self.iter().all(|run| run.start != at + 1) {
            all.push(old.after(at + 1, unit));
        }
        all.extend(self.iter().filter(|run| run.start > at).map(Run::owned));
        assert!(all.is_sorted_by_key(|segment| segment.start), "segments are out of order");
        *self = all.into_iter().collect();
    }

    /// Bytes beside the zone itself.
    pub fn heap_bytes(&self) -> usize {
        let rest = self.rest.as_ref();
        self.rows().map(|(_, row)| row.heap_bytes()).sum::<usize>()
            + rest.map_or(0, |rest| size_of::<Vec<LaterRow>>() + rest.capacity() * size_of::<LaterRow>())
    }
}

impl PartialEq for Segments {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
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

    /// Segments as a plain list.
    type List = Vec<(UnitOfZone, Vec<Column>)>;

    fn narrow(list: &mut List, units: u32) {
        list.retain(|(start, _)| *start < units);
        let mut end = units;
        for (start, columns) in list.iter_mut().rev() {
            columns.truncate(usize_of(end - *start));
            end = *start;
        }
    }

    fn assert_same(segments: &Segments, list: &List) {
        let plain = |run: Run<'_>| (run.start, run.columns.iter().collect::<Vec<Column>>());
        assert!(segments.iter().map(plain).eq(list.iter().cloned()), "{segments:?} of {list:?}");
        assert_eq!((segments.len(), segments.is_empty()), (list.len(), list.is_empty()));
        assert_eq!(segments.last().map(plain), list.last().cloned());
        let of = |at| list.iter().rev().find(|(start, _)| *start <= at).cloned();
        assert!((0..60).all(|at| list.is_empty() || Some(plain(segments.of(at))) == of(at)), "{list:?}");
        let all = list.iter().map(|(start, columns)| Segment::new(*start, columns));
        assert_eq!(*segments, all.collect());
    }

    /// Random changes against a plain list; most segments follow regularly, so that rows have several.
    #[test]
    fn segments_are_those_of_a_plain_list() {
        let mut regular = 0;
        for seed in 0..400 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let mut below = |most: u64| u32::try_from(prng.below(most)).expect("small");
            let width = 1 + below(3);
            let apart = width * (1 + below(3)) + u32::from(below(4) == 0);
            let (mut list, mut segments) = (List::new(), Segments::none());
            for step in 0..60 {
                let odd = |below: &mut dyn FnMut(u64) -> u32| below(8) == 0;
                let last = list.last().map_or(0, |(start, _)| start + apart + u32::from(odd(&mut below)));
                let sector = u32::from(odd(&mut below));
                match below(9) {
                    0..=3 => {
                        let width =
                            if odd(&mut below) { below(3) + u32::from(list.is_empty()) } else { width };
                        let columns: Vec<Column> =
                            (0..width).map(|nth| column(9 * step + nth, sector)).collect();
                        segments.push(Segment::new(last, &columns));
                        list.push((last, columns));
                    }
                    4 if !list.is_empty() => {
                        list.last_mut().expect("there is one").1.push(column(9 * step, sector));
                        segments.widen_last(column(9 * step, sector));
                    }
                    5 if odd(&mut below) => {
                        let at = below(u64::from(last) + 8);
                        list.retain(|(start, _)| *start < at);
                        segments.keep_before(at);
                    }
                    6 if !list.is_empty() && odd(&mut below) => {
                        let units = 1 + below(u64::from(last) + 2);
                        narrow(&mut list, units);
                        segments.narrow(units);
                    }
                    7 => {
                        let (from, to) = (ChunkIndex(9 * below(60)), ChunkIndex(600 + step));
                        let all = list.iter_mut().flat_map(|(_, columns)| columns);
                        all.filter(|column| column.chunk == from).for_each(|column| column.chunk = to);
                        segments.replace(from, to);
                    }
                    _ => {}
                }
                regular += usize::from(segments.rows().any(|(_, row)| row.count() > 2));
                assert_same(&segments, &list);
            }
        }
        assert!(regular > 1000, "a row of three segments or more stood {regular} times");
    }

    #[test]
    fn a_column_costs_four_bytes_where_segments_are_regular() {
        let chunks = |from: u32| [column(from, 0), column(from + 1, 0)];
        let mut segments: Segments = Segment::new(0, &chunks(7)).into();
        assert_eq!(segments.heap_bytes(), 8);
        (1..16).for_each(|nth| segments.push(Segment::new(nth * 12, &chunks(nth * 2))));
        assert_eq!((segments.heap_bytes(), segments.rest().len()), (4 + 16 * 8, 0), "a word, and chunks");
        segments.keep_before(1);
        assert_eq!(segments.heap_bytes(), 8);
        segments.push(Segment::new(3, &[]));
        assert_eq!(segments.heap_bytes(), 8 + 24 + 24, "the end of what was planned");
        let placed: Segments = Segment::new(0, &[column(7, 0), column(8, 24)]).into();
        assert_eq!(placed.heap_bytes(), 4 + 16, "where a column begins is kept for all of its segment");
    }
}
