//! The columns of segments in memory: four bytes for each that begins with its chunk, as nearly all do.
//!
//! A *row* is a segment, or several that follow each other regularly: each over as many chunks as the one before, from their
//! first sectors on, as far from it as that one is from its own. So are those of a zone that takes several chunks of each of its
//! units. Deliberately not here: rows that follow each other (`segments`).

use super::segments::{Run, Segment, UnitOfZone};
use ocssd_base::usize_of;
use ocssd_ftl::ChunkIndex;

/// The part of a chunk that a segment uses: from a sector on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The chunk.
    pub chunk: ChunkIndex,
    /// Where the column begins.
    pub sector: u32,
}

/// In the first word of a row: chunks and sectors follow by turns.
const PLACED: u32 = 1 << 31;
/// In the first word of a row: it says how wide several segments are and how many units each of their columns has, and chunks
/// follow.
const REGULAR: u32 = 1 << 30;
/// Bits of that word for units of a column (chosen: chunks of 96 GiB); those above are for the width, up to 1 023.
const UNITS_BITS: u32 = 20;
const WIDTH_BITS: u32 = REGULAR.ilog2() - UNITS_BITS;

/// A look at the columns of one segment.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// Chunks, from their first sectors on.
    Whole(&'a [u32]),
    /// Chunks and sectors by turns.
    Placed(&'a [[u32; 2]]),
}

impl<'a> Columns<'a> {
    /// Columns there are.
    #[inline(always)]
    pub const fn len(self) -> usize {
        match self {
            Self::Whole(chunks) => chunks.len(),
            Self::Placed(pairs) => pairs.len(),
        }
    }

    /// True if there is none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline(always)]
    pub const fn get(self, nth: usize) -> Column {
        let [chunk, sector] = match self {
            Self::Whole(chunks) => [chunks[nth], 0],
            Self::Placed(pairs) => pairs[nth],
        };
        Column { chunk: ChunkIndex(chunk), sector }
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Column> + Clone + use<'a> {
        (0..self.len()).map(move |nth| self.get(nth))
    }
}

impl PartialEq for Columns<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// Segments that follow each other regularly, or one, or the end of those before, which has no column.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Chunks of one segment, if neither [`PLACED`] nor [`REGULAR`] is in the first.
    words: Box<[u32]>,
}

const _: () = assert!(size_of::<Row>() == 16, "a row costs each zone more memory than it should");

impl Row {
    /// The columns of one segment.
    pub fn one(columns: impl Iterator<Item = Column> + Clone) -> Self {
        let is_fit = |column: Column| column.chunk.0 < REGULAR;
        assert!(columns.clone().all(is_fit), "a chunk is named by more than 30 bits");
        if columns.clone().all(|column| column.sector == 0) {
            return Self { words: columns.map(|column| column.chunk.0).collect() };
        }
        let pairs = columns.flat_map(|column| [column.chunk.0, column.sector]);
        Self { words: std::iter::once(PLACED).chain(pairs).collect() }
    }

    /// True if it has no column.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Width, distance and chunks of segments that follow each other.
    #[inline(always)]
    fn regular(&self) -> Option<(u32, u32, &[u32])> {
        let (&first, chunks) = self.words.split_first()?;
        let width = (first & !REGULAR) >> UNITS_BITS;
        let apart = width * (first & ((1 << UNITS_BITS) - 1));
        (first & (REGULAR | PLACED) == REGULAR).then_some((width, apart, chunks))
    }

    /// The first word of segments that are so wide and so far apart; none if that does not fit it.
    fn regular_head(width: u32, apart: u32) -> Option<u32> {
        assert!(width > 0 && apart > 0, "segments over {width} columns are {apart} units apart");
        let units = apart / width;
        let fits = width >> WIDTH_BITS == 0 && units >> UNITS_BITS == 0 && units * width == apart;
        fits.then_some(REGULAR | width << UNITS_BITS | units)
    }

    /// Segments it has.
    pub fn count(&self) -> u32 {
        let count = |(width, _, chunks): (u32, u32, &[u32])| chunks.len().div_ceil(usize_of(width));
        u32::try_from(self.regular().map_or(1, count)).expect("fewer segments than 2^32")
    }

    /// The segment a unit is in, of a row that begins with `start`, or the last before it.
    #[inline(always)]
    pub fn of(&self, start: UnitOfZone, at: UnitOfZone) -> Run<'_> {
        if self.words.first().is_none_or(|first| first & (PLACED | REGULAR) == 0) {
            return Run { start, columns: Columns::Whole(&self.words) };
        }
        let Some((_, apart, _)) = self.regular() else { return self.nth(start, 0) };
        self.nth(start, ((at - start) / apart).min(self.count() - 1))
    }

    /// A segment of a row that begins with `start`.
    pub fn nth(&self, start: UnitOfZone, nth: u32) -> Run<'_> {
        assert!(nth < self.count(), "segment {nth} of a row of {}", self.count());
        if let Some((width, apart, chunks)) = self.regular() {
            let columns = chunks.chunks(usize_of(width)).nth(usize_of(nth)).expect("there are so many");
            return Run { start: start + nth * apart, columns: Columns::Whole(columns) };
        }
        let columns = match &self.words[..] {
            &[first, ref pairs @ ..] if first & PLACED > 0 => Columns::Placed(pairs.as_chunks().0),
            chunks => Columns::Whole(chunks),
        };
        Run { start, columns }
    }

    /// Each segment of a row that begins with `start`.
    pub fn runs(&self, start: UnitOfZone) -> impl Iterator<Item = Run<'_>> {
        (0..self.count()).map(move |nth| self.nth(start, nth))
    }

    /// The last.
    pub fn last(&self, start: UnitOfZone) -> Run<'_> {
        self.nth(start, self.count() - 1)
    }

    /// Takes a segment behind its own, if it follows regularly. `start` is where the row begins.
    pub fn join(&mut self, start: UnitOfZone, segment: &Segment) -> bool {
        let (Columns::Whole(front), Columns::Whole(new)) = (self.nth(start, 0).columns, segment.columns())
        else {
            return false;
        };
        let last = self.last(start);
        let apart = self.regular().map_or(segment.start - start, |(_, apart, _)| apart);
        let follows = segment.start == last.start + apart && last.columns.len() == front.len();
        if !follows || new.is_empty() || new.len() > front.len() {
            return false;
        }
        let width = u32::try_from(front.len()).expect("fewer columns than 2^32");
        let Some(head) = Self::regular_head(width, apart) else { return false };
        let (_, _, chunks) = self.regular().unwrap_or((width, apart, front));
        self.words = [&[head], chunks, new].concat().into();
        assert!(self.count() > 1, "a segment joined none");
        true
    }

    /// The last segment has one column more, if that makes it no less regular.
    pub fn widen(&mut self, column: Column) -> bool {
        let is_whole = |first: &u32| first & PLACED == 0;
        let has_room = self.regular().is_none_or(|(width, _, chunks)| chunks.len() % usize_of(width) > 0);
        if column.sector > 0 || !has_room || !self.words.first().is_some_and(is_whole) {
            return false;
        }
        assert!(column.chunk.0 < REGULAR, "chunk {} is named by more than 30 bits", column.chunk.0);
        let mut words = std::mem::take(&mut self.words).into_vec();
        words.push(column.chunk.0);
        self.words = words.into_boxed_slice();
        true
    }

    /// Only its first segments are left: so many, of those that it has.
    pub fn keep(&mut self, count: u32) {
        assert!(count > 0 && count <= self.count(), "{count} segments of {} are kept", self.count());
        if count == self.count() {
            return;
        }
        let Some((width, apart, chunks)) = self.regular() else { return };
        let kept = &chunks[..chunks.len().min(usize_of(count * width))];
        let head = Self::regular_head(width, apart).filter(|_| count > 1);
        self.words = head.into_iter().chain(kept.iter().copied()).collect();
        assert_eq!(self.count(), count, "another number of segments is kept");
    }

    /// What lies in a chunk lies in another now, from the same sectors on.
    pub fn replace(&mut self, from: ChunkIndex, to: ChunkIndex) {
        assert!(to.0 < REGULAR, "chunk {} is named by more than 30 bits", to.0);
        let (skipped, step) = match self.words.first() {
            Some(first) if first & PLACED > 0 => (1, 2),
            Some(first) if first & REGULAR > 0 => (1, 1),
            _ => (0, 1),
        };
        let chunks = self.words.iter_mut().skip(skipped).step_by(step);
        chunks.filter(|chunk| **chunk == from.0).for_each(|chunk| *chunk = to.0);
    }

    /// Bytes beside the row itself.
    pub const fn heap_bytes(&self) -> usize {
        size_of_val::<[u32]>(&*self.words)
    }
}
