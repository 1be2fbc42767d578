//! What is needed in each chunk, in grains of 64 bytes, and which pages have parts there.
//!
//! The names of a chunk's pages are listed as they come, as differences of a byte or three each, and the list goes when the
//! chunk is reset; names whose pages have moved on are still on it. Garbage collection asks it whose parts it has to move.
//! Deliberately not here: where in the chunk they are (`page_map`).

use super::extent::{Extent, Grid, Spot, grains};
use crate::ox::space::Live;
use ocssd_ftl::{ChunkIndex, InstanceGeometry};
use ocssd_lightnvm::interface::log_structured::PageId;
use std::collections::BTreeSet;

/// The names that came to a chunk.
#[derive(Clone, Debug, Default)]
struct Residents {
    /// Differences, low seven bits first, the highest bit set of all bytes but the last.
    bytes: Vec<u8>,
    last: u64,
}

impl Residents {
    fn add(&mut self, page: PageId) {
        // Differences of either sign are short.
        let difference = page.0.wrapping_sub(self.last);
        let folded = difference << 1 ^ if difference >> 63 == 1 { u64::MAX } else { 0 };
        let mut rest = folded;
        while rest >= 0x80 {
            self.bytes.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest.to_le_bytes()[0]);
        self.last = page.0;
    }

    fn names(&self) -> BTreeSet<PageId> {
        let (mut names, mut page, mut folded, mut shift) = (BTreeSet::new(), 0_u64, 0_u64, 0);
        for &byte in &self.bytes {
            folded |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                let difference = folded >> 1 ^ if folded & 1 == 1 { u64::MAX } else { 0 };
                page = page.wrapping_add(difference);
                names.insert(PageId(page));
                (folded, shift) = (0, 0);
            }
        }
        names
    }
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    grains: u64,
    last_change: u64,
    residents: Residents,
}

/// What is needed, chunk by chunk.
#[derive(Clone, Debug)]
pub struct LiveGrains {
    grid: Grid,
    chunks: Vec<Chunk>,
    total: u64,
}

impl LiveGrains {
    /// Nothing is.
    pub fn new(shape: &InstanceGeometry, grid: Grid) -> Self {
        let chunks = usize::try_from(shape.chunks()).expect("32 bits fit an index");
        Self { grid, chunks: vec![Chunk::default(); chunks], total: 0 }
    }

    /// How spots lie in the instance.
    pub const fn grid(&self) -> Grid {
        self.grid
    }

    /// A part of a page is needed. Gives its chunk.
    pub fn add(&mut self, page: PageId, part: Extent) -> ChunkIndex {
        let at = self.grid.chunk(part.spot);
        let chunk = &mut self.chunks[at.index()];
        chunk.grains += u64::from(grains(part.bytes));
        self.total += u64::from(grains(part.bytes));
        assert!(part.bytes > 0, "page {} has an empty part", page.0);
        assert_eq!(self.grid.chunk(Spot(part.end().0 - 1)), at, "{part:?} leaves its chunk");
        assert!(chunk.grains <= self.grid.per_chunk, "chunk {} has more parts than room", at.0);
        chunk.residents.add(page);
        at
    }

    /// A part is not needed any more. Gives its chunk.
    pub fn remove(&mut self, part: Extent, now: u64) -> ChunkIndex {
        let at = self.grid.chunk(part.spot);
        let chunk = &mut self.chunks[at.index()];
        let of_part = u64::from(grains(part.bytes));
        assert!(chunk.grains >= of_part, "chunk {} has less than {part:?}", at.0);
        assert!(chunk.last_change <= now, "time runs backwards in chunk {}", at.0);
        chunk.grains -= of_part;
        chunk.last_change = now;
        assert!(self.total >= of_part, "the total is less than {part:?}");
        self.total -= of_part;
        at
    }

    /// A part that lay in a chunk lies in another now; its page was listed there.
    pub fn relocated(&mut self, page: PageId, from: Extent, to: Extent, now: u64) {
        assert_eq!(grains(from.bytes), grains(to.bytes), "{from:?} grew when it was moved");
        self.remove(from, now);
        self.add(page, to);
    }

    /// The pages that came to a chunk, in order.
    pub fn residents(&self, chunk: ChunkIndex) -> BTreeSet<PageId> {
        self.chunks[chunk.index()].residents.names()
    }

    /// Grains of all chunks.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> u64 {
        let lists: usize = self.chunks.iter().map(|chunk| chunk.residents.bytes.capacity()).sum();
        u64::try_from(lists + self.chunks.capacity() * size_of::<Chunk>()).expect("an index")
    }
}

impl Live for LiveGrains {
    fn count(&self, chunk: ChunkIndex) -> u64 {
        self.chunks[chunk.index()].grains
    }

    fn per_chunk(&self) -> u64 {
        self.grid.per_chunk
    }

    fn per_sector(&self) -> u64 {
        u64::from(self.grid.per_sector)
    }

    fn last_change(&self, chunk: ChunkIndex) -> u64 {
        self.chunks[chunk.index()].last_change
    }

    fn clear(&mut self, chunk: ChunkIndex) {
        let chunk = std::mem::take(&mut self.chunks[chunk.index()]);
        assert!(self.total >= chunk.grains, "the total is less than a chunk has");
        self.total -= chunk.grains;
    }

    fn check(&self) {
        let sum: u64 = self.chunks.iter().map(|chunk| chunk.grains).sum();
        assert_eq!(sum, self.total, "grains are counted wrong");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, PuId};

    #[test]
    fn names_come_back_whatever_their_distance() {
        let mut residents = Residents::default();
        let names = [5, 6, 7, 0, u64::MAX, 1 << 63, 3, 3, u64::MAX - 1];
        names.iter().for_each(|&page| residents.add(PageId(page)));
        assert_eq!(residents.names(), names.into_iter().map(PageId).collect());
        let mut neighbours = Residents::default();
        (1_000..2_000).for_each(|page| neighbours.add(PageId(page)));
        assert!(neighbours.bytes.len() < 1_010, "{} bytes for 1000 neighbours", neighbours.bytes.len());
    }

    #[test]
    fn grains_are_counted_by_chunk() {
        let shape = InstanceGeometry::new(&Geometry::example(1, 1, 3, 8, 4), &[PuId(0)]);
        let mut live = LiveGrains::new(&shape, Grid::new(&shape, 4_096));
        let part = Extent { spot: Spot(512), bytes: 65 };
        assert_eq!(live.add(PageId(1), part), ChunkIndex(1));
        assert_eq!((live.count(ChunkIndex(1)), live.total()), (2, 2));
        assert_eq!((live.per_sector(), live.of_sectors(3), live.per_chunk()), (64, 192, 512));
        let there = Extent { spot: Spot(3), bytes: 65 };
        live.relocated(PageId(1), part, there, 5);
        assert_eq!((live.count(ChunkIndex(0)), live.count(ChunkIndex(1))), (2, 0));
        assert_eq!(live.last_change(ChunkIndex(1)), 5);
        live.check();
        live.clear(ChunkIndex(0));
        assert!(live.total() == 0 && live.residents(ChunkIndex(0)).is_empty());
    }
}
