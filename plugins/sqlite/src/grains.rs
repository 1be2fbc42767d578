//! Which grains of a volume are free.
//!
//! What a file gave up may still be named by its record on media until the next flush; it is free after that. Deliberately
//! not here: records.

use crate::record::{Extent, Record};
use std::ops::Range;

/// The grains of a volume.
#[derive(Clone, Debug)]
pub struct Grains {
    is_used: Vec<bool>,
    /// Given up since the last flush.
    pending: Vec<Extent>,
    /// Where the last search ended.
    cursor: usize,
}

fn range(extent: Extent) -> Range<usize> {
    let number = |grain| usize::try_from(grain).expect("a grain's number");
    number(extent.first)..number(extent.first) + number(extent.count)
}

impl Grains {
    /// So many, all free.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let count = usize::try_from(count).expect("a drive's blocks are counted in memory");
        Self { is_used: vec![false; count], pending: Vec::new(), cursor: 0 }
    }

    /// A file of the volume has these.
    ///
    /// # Errors
    /// If another has one of them.
    pub fn take(&mut self, record: &Record) -> Result<(), u32> {
        for grain in record.extents.iter().flat_map(|&extent| range(extent)) {
            if std::mem::replace(&mut self.is_used[grain], true) {
                return Err(u32::try_from(grain).expect("it is a number of a record"));
            }
        }
        Ok(())
    }

    /// Up to `wanted` grains that lie together, behind `after` if they are free there. `None` if none is free.
    pub fn find(&mut self, wanted: usize, after: Option<u32>) -> Option<Range<u32>> {
        let total = self.is_used.len();
        let from = after.map_or(self.cursor, |after| usize::try_from(after).expect("a grain's number"));
        let first = (0..total).map(|nth| (from + nth) % total).find(|&grain| !self.is_used[grain])?;
        let count = (first..total).take(wanted.max(1)).take_while(|&grain| !self.is_used[grain]).count();
        self.is_used[first..first + count].fill(true);
        self.cursor = (first + count) % total;
        let number = |grain| u32::try_from(grain).expect("a volume has fewer than 2^32 grains");
        Some(number(first)..number(first + count))
    }

    /// Taken and not used after all: no record names them.
    pub fn return_unused(&mut self, grains: Extent) {
        self.is_used[range(grains)].fill(false);
    }

    /// A file gives these up; they are free after the next flush.
    pub fn give_up(&mut self, extents: &[Extent]) {
        self.pending.extend_from_slice(extents);
    }

    /// No record on media names what was given up any more.
    pub fn flushed(&mut self) {
        for extent in std::mem::take(&mut self.pending) {
            self.is_used[range(extent)].fill(false);
        }
    }

    /// True if a flush would free something.
    #[must_use]
    pub const fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How many are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.is_used.iter().filter(|&&is_used| !is_used).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_lie_together_and_are_free_after_a_flush() {
        let mut grains = Grains::new(8);
        assert_eq!(grains.find(3, None), Some(0..3));
        assert_eq!(grains.find(2, None), Some(3..5));
        grains.give_up(&[Extent { first: 0, count: 2 }]);
        assert_eq!((grains.free(), grains.find(9, Some(3)), grains.find(1, None)), (3, Some(5..8), None));
        assert!(grains.has_pending());
        grains.flushed();
        assert_eq!((grains.has_pending(), grains.find(9, Some(5))), (false, Some(0..2)));
        let record = Record { extents: vec![Extent { first: 1, count: 1 }], ..Record::default() };
        assert_eq!(grains.take(&record), Err(1));
    }
}
