//! Chunks of pages are given back: the one with the fewest is left by all of them.
//!
//! A page that is not in memory is read, and each is written to a place of its own, as those are that leave memory: a chunk's pages
//! become true elsewhere one buffer unit at a time. Deliberately not here: when a chunk is reset (`ox::space`).

use super::super::store::OxBlock;
use super::pages::PageNumber;
use super::reads::Room;
use crate::ox::space::Role;
use crate::ox::state::Ending;
use ocssd_ftl::{ChunkIndex, ChunkUse};
use ocssd_lightnvm::Buffers;
use std::collections::VecDeque;

/// Pages of a chunk that are read at a time beyond what memory may hold (chosen: they are written at once).
const READ_MAX: usize = 8;

/// A chunk that pages leave.
#[derive(Clone, Debug)]
pub struct Emptied {
    chunk: ChunkIndex,
    left: VecDeque<PageNumber>,
}

impl Emptied {
    /// True while pages of the chunk are still to go to buffer units.
    pub fn has_pages_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// True of a page that is read so that it can be written.
    pub fn awaits(&self, page: PageNumber) -> bool {
        self.left.iter().take(READ_MAX).any(|&other| other == page)
    }
}

impl OxBlock {
    /// Goes on with the chunk that pages leave, or chooses one if chunks for them are short. True if anything was done.
    pub(super) fn empty_page_chunk(&mut self, buffers: &mut Buffers) -> bool {
        if self.refuses_changes().is_some() || self.ending == Ending::Over {
            return false;
        }
        let Some(mut emptied) = self.cache().emptied.take().or_else(|| self.next_page_chunk()) else {
            return false;
        };
        let is_left = self.space.live_count(emptied.chunk) == 0;
        if is_left || self.space.pool.get(emptied.chunk) != ChunkUse::Closed {
            return true;
        }
        let any = self.write_pages_of(&mut emptied, buffers);
        let closed = emptied.left.is_empty() && self.close_partial_pages();
        self.cache().emptied = Some(emptied);
        any | closed
    }

    /// The chunk with the fewest pages, if there are few chunks left for them.
    fn next_page_chunk(&self) -> Option<Emptied> {
        if self.space.map_left() > self.sizes.map_keep + 1 {
            return None;
        }
        let space = &self.space;
        let is_one = |&(chunk, of): &(ChunkIndex, ChunkUse)| {
            of == ChunkUse::Closed && space.role(chunk) == Role::Map && space.pins(chunk) == 0
        };
        let closed = space.pool.iter().filter(is_one).map(|(chunk, _)| chunk);
        let chunk = closed.min_by_key(|&chunk| space.live_count(chunk))?;
        assert!(space.live_count(chunk) > 0, "chunk {} has no page, and is not dead", chunk.0);
        let is_full = space.live_count(chunk) == u64::from(self.sizes.chunk);
        (!is_full).then(|| Emptied { chunk, left: self.pages_in(chunk) })
    }

    /// Pages that lie in a chunk. Cost: all pages.
    fn pages_in(&self, chunk: ChunkIndex) -> VecDeque<PageNumber> {
        let cache = self.store.cache.as_ref().expect("the map is in pages");
        let homes = cache.pages.homes().filter(|&(_, place)| self.space.shape.chunk_of(place).0 == chunk);
        homes.map(|(page, _)| page).collect()
    }

    /// The next pages of a chunk that are to leave it: each is written, or asked for. True if any was written.
    fn write_pages_of(&mut self, emptied: &mut Emptied, buffers: &mut Buffers) -> bool {
        let (mut any, mut at) = (false, 0);
        while at < READ_MAX && self.has_buffer_unit_for_page() {
            let Some(&page) = emptied.left.get(at) else { break };
            let pages = &self.cache().pages;
            let (home, writing) = (pages.home(page), pages.writing(page));
            let is_there = home.is_some_and(|home| self.space.shape.chunk_of(home).0 == emptied.chunk);
            self.cache().failed.remove(&page);
            // It left, or is about to.
            let has_left = !is_there || writing.is_some();
            if !has_left && !self.has_page(page, Room::Beyond, buffers) {
                at += 1;
                continue;
            }
            if !has_left {
                self.write_page(page, buffers);
            }
            emptied.left.remove(at);
            any = true;
        }
        any
    }
}
