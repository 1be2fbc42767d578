//! What is needed in each chunk: valid sectors, by bits.
//!
//! Deliberately not here: which chunk is emptied, and when one is reset (`ox`).

use super::store::OxBlock;
use crate::ox::space::Live;
use ocssd_ftl::{ChunkIndex, LineId, PhysicalAddress, ValidMap};

/// A chunk as a row of the map of valid sectors.
const fn row(chunk: ChunkIndex) -> LineId {
    LineId(chunk.0)
}

impl Live for ValidMap {
    fn count(&self, chunk: ChunkIndex) -> u64 {
        Self::count(self, row(chunk))
    }

    fn per_chunk(&self) -> u64 {
        self.sectors_per_line()
    }

    fn per_sector(&self) -> u64 {
        1
    }

    fn last_change(&self, chunk: ChunkIndex) -> u64 {
        self.last_invalidated(row(chunk))
    }

    fn clear(&mut self, chunk: ChunkIndex) {
        self.clear_line(row(chunk));
    }

    fn check(&self) {
        Self::check(self);
    }
}

impl OxBlock {
    /// Places are the newest versions of something from now on.
    pub(super) fn validate(&mut self, first: PhysicalAddress, count: u32) {
        assert!(count > 0, "nothing at {first:?} becomes valid");
        self.space.live.set_run(first, u64::from(count));
        self.space.changed(self.space.shape.chunk_of(first).0);
    }

    /// A place is not needed any more.
    pub(super) fn invalidate(&mut self, place: PhysicalAddress) {
        let chunk = ChunkIndex(self.space.live.clear(place, self.applied.0).0);
        self.space.changed(chunk);
        if self.space.live_count(chunk) == 0 {
            self.look_at(chunk);
        }
    }

    /// The next run of valid sectors of a chunk.
    pub(super) fn next_valid_run(
        &self,
        chunk: ChunkIndex,
        from: PhysicalAddress,
        most: u32,
    ) -> Option<(PhysicalAddress, u32)> {
        let (first, count) = self.space.live.next_run(row(chunk), from, u64::from(most))?;
        Some((first, u32::try_from(count).expect("no more than was asked for")))
    }
}
