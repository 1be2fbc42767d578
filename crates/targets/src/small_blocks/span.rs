//! Where a request of small blocks lies on the sectors of the inner target.
//!
//! Deliberately not here: what is done there.

use std::ops::Range;

/// A part of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// Which sector.
    pub sector: u64,
    /// First block of the part, counted from the sector's start.
    pub first: u32,
    /// Blocks of the part: fewer than a sector has.
    pub count: u32,
    /// Where the part begins, in blocks of the request.
    pub offset: u32,
}

/// A request's blocks as sectors: at most one edge on each side, whole sectors between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Sectors touched.
    first: u64,
    end: u64,
    /// Blocks of the first sector that come before the request.
    before: u32,
    /// Blocks of the last sector that come after it.
    after: u32,
    per_sector: u32,
}

impl Span {
    /// `count` blocks from `block` on, `per_sector` to a sector.
    ///
    /// # Panics
    /// If there are no blocks.
    pub fn new(block: u64, count: u32, per_sector: u32) -> Self {
        assert!(count > 0, "a request without blocks lies nowhere");
        let (per, end) = (u64::from(per_sector), block + u64::from(count));
        let small = |blocks: u64| u32::try_from(blocks).expect("less than a sector has");
        let (first, last) = (block / per, end.div_ceil(per));
        Self { first, end: last, before: small(block % per), after: small(last * per - end), per_sector }
    }

    /// Sectors touched.
    pub const fn sectors(&self) -> Range<u64> {
        self.first..self.end
    }

    /// It begins where a sector begins, so its whole sectors lie on those of the host's buffer.
    pub const fn is_aligned(&self) -> bool {
        self.before == 0
    }

    /// Nothing of it is a part of a sector.
    pub const fn is_whole(&self) -> bool {
        self.before == 0 && self.after == 0
    }

    /// The parts of sectors at its ends; one if both are in the same sector.
    pub fn edges(&self) -> [Option<Edge>; 2] {
        let edge = |sector, first, count, offset| {
            assert!((1..self.per_sector).contains(&count), "an edge of {count} blocks");
            Some(Edge { sector, first, count, offset })
        };
        if self.is_whole() {
            return [None, None];
        }
        if self.end - self.first == 1 {
            return [edge(self.first, self.before, self.per_sector - self.before - self.after, 0), None];
        }
        let head = if self.before == 0 {
            None
        } else {
            edge(self.first, self.before, self.per_sector - self.before, 0)
        };
        let last = self.end - 1;
        let tail = if self.after == 0 {
            None
        } else {
            edge(last, 0, self.per_sector - self.after, self.offset_of(last))
        };
        [head, tail]
    }

    /// Sectors all of whose blocks it has.
    pub fn whole_sectors(&self) -> Range<u64> {
        let first = self.first + u64::from(self.before > 0);
        let end = self.end - u64::from(self.after > 0);
        first..end.max(first)
    }

    /// Where a sector begins, in blocks of the request; the first one may begin before it.
    fn offset_of(&self, sector: u64) -> u32 {
        assert!(sector > self.first || self.before == 0, "the first sector begins before the request");
        let blocks = (sector - self.first) * u64::from(self.per_sector) - u64::from(self.before);
        u32::try_from(blocks).expect("a request has fewer than 2^32 blocks")
    }

    /// Of `count` sectors from `sector` on: how many blocks come before the request's, how many are the request's, and
    /// which of its blocks is the first.
    pub fn covered(&self, sector: u64, count: u32) -> (u32, u32, u32) {
        let end = sector + u64::from(count);
        assert!(sector >= self.first && end <= self.end, "sectors outside of the request");
        let skip = if sector == self.first { self.before } else { 0 };
        let cut = if end == self.end { self.after } else { 0 };
        let offset = if sector == self.first { 0 } else { self.offset_of(sector) };
        (skip, count * self.per_sector - skip - cut, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_a_request_is_in_one_edge_or_one_whole_sector() {
        for per in [2_u32, 8] {
            for block in 0..u64::from(2 * per) {
                for count in 1..4 * per {
                    let span = Span::new(block, count, per);
                    let wide = u64::from(per);
                    let mut found: Vec<(u32, u64)> = Vec::new();
                    for edge in span.edges().into_iter().flatten() {
                        let at = |i: u32| edge.sector * wide + u64::from(edge.first + i);
                        found.extend((0..edge.count).map(|i| (edge.offset + i, at(i))));
                    }
                    for sector in span.whole_sectors() {
                        let (skip, blocks, offset) = span.covered(sector, 1);
                        assert_eq!((skip, blocks), (0, per), "{block} + {count}");
                        found.extend((0..per).map(|i| (offset + i, sector * wide + u64::from(i))));
                    }
                    found.sort_unstable();
                    let expected: Vec<_> = (0..count).map(|i| (i, block + u64::from(i))).collect();
                    assert_eq!(found, expected, "{block} + {count} of {per}");
                }
            }
        }
    }

    #[test]
    fn what_sectors_cover_is_told_in_blocks_of_the_request() {
        let span = Span::new(13, 22, 8);
        assert_eq!((span.sectors(), span.whole_sectors()), (1..5, 2..4));
        assert_eq!(span.covered(1, 4), (5, 22, 0));
        assert_eq!(span.covered(2, 2), (0, 16, 3));
        assert_eq!(span.covered(3, 2), (0, 11, 11));
        let inside = Span::new(13, 2, 8);
        assert_eq!(inside.edges(), [Some(Edge { sector: 1, first: 5, count: 2, offset: 0 }), None]);
        assert!(inside.whole_sectors().is_empty());
    }
}
