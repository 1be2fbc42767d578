//! Whose a sector is that the media lost: the map alone knows, and the page that says so may lie elsewhere.
//!
//! Its chunk cannot be emptied before that is known, and as many such chunks as there are spare ones would end changes. So while
//! free chunks are short all pages are looked through, one at a time beyond what memory may hold, for all such sectors at once;
//! then their chunks can be emptied, the lost sectors as such. What no page names lay on a page that was lost, and nobody needs it.
//! Deliberately not here: what is made of a lost sector (`super::super::copy`).

use super::super::store::{Blocks, OxBlock};
use super::pages::PageNumber;
use super::reads::Room;
use crate::ox::Store;
use crate::ox::state::Ending;
use ocssd_ftl::{ChunkIndex, Mapped, PhysicalAddress};
use ocssd_lightnvm::Buffers;
use std::collections::{BTreeMap, BTreeSet};

/// Sectors whose blocks are looked for, or were found and not copied yet, at most (chosen: some kilobytes; what is beyond is
/// found again when these are).
const SECTORS_MAX: usize = 1024;

/// Sectors that the media lost, and what is known of them.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// They are looked for in the next pass.
    wanted: BTreeSet<PhysicalAddress>,
    pass: Option<Pass>,
    /// The block of each that was found.
    found: BTreeMap<PhysicalAddress, u64>,
    /// Chunks that have some beyond the bound.
    beyond: BTreeSet<ChunkIndex>,
}

/// All pages are looked through.
#[derive(Clone, Debug)]
struct Pass {
    next: PageNumber,
    left: BTreeSet<PhysicalAddress>,
    /// Chunks that can be emptied once it is over.
    chunks: BTreeSet<ChunkIndex>,
    /// Every page until now could be read: what was not found is of no block.
    is_whole: bool,
}

impl Owners {
    /// True if this page is looked through next.
    pub fn awaits(&self, page: PageNumber) -> bool {
        self.pass.as_ref().is_some_and(|pass| pass.next == page)
    }

    /// The block of a sector that was looked for.
    pub fn found(&self, place: PhysicalAddress) -> Option<u64> {
        self.found.get(&place).copied()
    }

    /// Nothing is in a chunk any more.
    fn forget(&mut self, chunk: ChunkIndex, places: std::ops::Range<PhysicalAddress>) {
        let is_there = |place: &PhysicalAddress| places.contains(place);
        self.wanted.retain(|place| !is_there(place));
        self.found.retain(|place, _| !is_there(place));
        self.beyond.remove(&chunk);
        if let Some(pass) = &mut self.pass {
            pass.left.retain(|place| !is_there(place));
            pass.chunks.remove(&chunk);
        }
    }
}

impl OxBlock {
    /// Nobody knows whose this sector of a chunk is: the chunk stays as it is until that is found.
    pub(in super::super) fn look_for_owner(&mut self, place: PhysicalAddress) {
        let chunk = self.space.shape.chunk_of(place).0;
        assert!(self.space.live.is_valid(place), "{place:?} is nobody's, and looked for");
        self.space.set_stuck(chunk);
        let owners = &mut self.cache().owners;
        if owners.wanted.len() + owners.found.len() < SECTORS_MAX {
            owners.wanted.insert(place);
        } else {
            owners.beyond.insert(chunk);
        }
        self.work_due = true;
    }

    /// The block of a lost sector, if it is known.
    pub(in super::super) fn owner_of_lost(&self, place: PhysicalAddress) -> Option<u64> {
        let found = || self.store.cache.as_ref().and_then(|cache| cache.owners.found(place));
        self.store.l2p.find(place).or_else(found)
    }

    /// Goes on with looking for them, if free chunks are short. True if anything was done.
    pub(super) fn find_owners(&mut self, buffers: &Buffers) -> bool {
        let is_over = self.ending != Ending::No && Blocks::is_idle(self);
        if is_over || self.refuses_changes().is_some() {
            return false;
        }
        if self.cache().owners.pass.is_none() && self.is_short_of_chunks() {
            self.begin_pass();
        }
        let mut any = false;
        while let Some(next) = self.next_to_look_through() {
            let has_failed = self.cache().failed.remove(&next).is_some();
            if !has_failed && !self.is_nowhere(next) && !self.has_page(next, Room::Beyond, buffers) {
                return any;
            }
            self.look_through(next, has_failed);
            any = true;
        }
        any | self.end_pass()
    }

    /// The next page of a pass.
    fn next_to_look_through(&mut self) -> Option<PageNumber> {
        let cache = self.cache();
        let Pass { next, left, .. } = cache.owners.pass.as_ref()?;
        (!left.is_empty() && next.0 < cache.pages.count()).then_some(*next)
    }

    /// True of a page of which nothing is anywhere.
    fn is_nowhere(&mut self, page: PageNumber) -> bool {
        let pages = &self.cache().pages;
        !pages.is_here(page) && pages.home(page).is_none() && pages.writing(page).is_none()
    }

    fn begin_pass(&mut self) {
        let cache = self.cache();
        if cache.owners.wanted.is_empty() && cache.owners.beyond.is_empty() {
            return;
        }
        let left = std::mem::take(&mut cache.owners.wanted);
        let mut chunks = std::mem::take(&mut cache.owners.beyond);
        chunks.extend(left.iter().map(|&place| self.space.shape.chunk_of(place).0));
        let pass = Pass { next: PageNumber(0), left, chunks, is_whole: true };
        self.cache().owners.pass = Some(pass);
    }

    /// A page is in memory, or has nothing, or cannot be read.
    fn look_through(&mut self, page: PageNumber, has_failed: bool) {
        let blocks = self.blocks_of(page);
        let Self { store, .. } = self;
        let owners = &mut store.cache.as_mut().expect("the map is in pages").owners;
        let pass = owners.pass.as_mut().expect("a page is looked through in a pass");
        assert_eq!(pass.next, page, "pages are looked through out of order");
        pass.next.0 += 1;
        pass.is_whole &= !has_failed;
        for block in blocks.filter(|_| !has_failed) {
            if let Mapped::Media(place) = store.l2p.get(block)
                && pass.left.remove(&place)
            {
                owners.found.insert(place, block);
            }
        }
    }

    /// A pass is over, once garbage collection has left its chunks: what was not found is of no block, and these can be emptied.
    /// True if it is.
    fn end_pass(&mut self) -> bool {
        let Some(pass) = self.cache().owners.pass.take() else { return false };
        if pass.chunks.iter().any(|&chunk| self.gc.has(chunk)) {
            self.cache().owners.pass = Some(pass);
            return false;
        }
        let orphans = pass.left.iter().filter(|_| pass.is_whole);
        for &place in orphans.filter(|&&place| self.space.live.is_valid(place)).collect::<Vec<_>>() {
            assert!(self.store.stats.map_lost > 0, "{place:?} is valid and of no block");
            self.invalidate(place);
        }
        let shape = self.space.shape.clone();
        let wanted = &self.cache().owners.wanted;
        // Others of a chunk's sectors may have been met meanwhile: the next pass is theirs.
        let has_more: BTreeSet<ChunkIndex> = wanted.iter().map(|&place| shape.chunk_of(place).0).collect();
        for &chunk in pass.chunks.difference(&has_more) {
            self.space.can_be_emptied(chunk);
        }
        true
    }

    /// Asserts what must hold between calls.
    pub(super) fn check_owners(&self, owners: &Owners) {
        let left = owners.pass.iter().flat_map(|pass| &pass.left);
        for &place in owners.wanted.iter().chain(left) {
            let chunk = self.space.shape.chunk_of(place).0;
            assert!(self.space.is_stuck(chunk), "{place:?} is looked for, and chunk {} is emptied", chunk.0);
        }
        let count = owners.wanted.len() + owners.found.len();
        assert!(count <= 2 * SECTORS_MAX, "{count} lost sectors are known of");
    }

    /// A chunk was reset: what was known of its sectors is over.
    pub(in super::super) fn forget_owners_in(&mut self, chunk: ChunkIndex) {
        let first = self.space.shape.first_place(chunk);
        let end = PhysicalAddress(first.0 + u64::from(self.sizes.chunk));
        if let Some(cache) = &mut self.store.cache {
            cache.owners.forget(chunk, first..end);
        }
    }
}
