//! Pages leave memory, as far as it holds more than it may; one that changed is written before.
//!
//! A page goes to a buffer unit of the map's own stream; when that was programmed, where it lies is logged, before transactions
//! that wait for pages. Until this is durable it is not written again. Some room is kept free, so that pages are read before they
//! are waited for. Deliberately not here: buffer units' ways to media (`ox::program`).

use super::super::store::{Owner, OxBlock, Slot};
use super::emptied::Emptied;
use super::pages::{Leaving, MapPages, PageNumber};
use super::{MapCache, page_codec};
use crate::ox::canary::Canary;
use crate::ox::write_buffer::BufferUnitId;
use ocssd_base::usize_of;
use ocssd_ftl::PhysicalAddress;
use ocssd_ftl::log::LogEntry;
use ocssd_lightnvm::Buffers;

/// Room that is kept free for pages to be read ahead (chosen: as many as are read at a time, of a small cache an eighth), and
/// never more than there are pages that memory has no room for: a map that fits stays.
fn kept_free(pages: &MapPages) -> usize {
    let beyond = usize_of(pages.count()).saturating_sub(pages.most());
    let kept = (pages.most() / 8).min(super::reads::AHEAD_MAX).min(beyond);
    assert!(kept < pages.most(), "all {} slots are kept free", pages.most());
    kept
}

impl OxBlock {
    /// Lets pages leave. True if any did.
    pub(super) fn let_pages_leave(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        loop {
            let may_write = self.may_write_pages();
            let MapCache { pages, reading, emptied, front, owners, .. } = self.cache();
            if pages.taken() <= pages.most() - kept_free(pages) {
                return any;
            }
            let is_read = |page| reading.is_some_and(|(first, last)| (first..=last).contains(&page));
            let is_changed_next = |page| front.as_ref().is_some_and(|front| front.needs(page));
            let stays = |page| {
                is_read(page)
                    || is_changed_next(page)
                    || emptied.as_ref().is_some_and(|emptied| emptied.awaits(page))
                    || owners.awaits(page)
            };
            match pages.next_leaving(may_write, stays) {
                Some(Leaving::Gone(page)) => self.store.l2p.forget_shard(page.index()),
                Some(Leaving::ToWrite(page)) => self.write_page(page, buffers),
                None => return any | self.close_leaving_pages(),
            }
            any = true;
        }
    }

    /// A buffer unit of pages that memory has no room for goes out in part, but not while pages of a chunk that is emptied are
    /// still read: these fill it. Going out with what has come so far, they would take as many write units elsewhere as the chunk
    /// gives back, or more. True if one does.
    fn close_leaving_pages(&mut self) -> bool {
        let is_filled_on = self.cache().emptied.as_ref().is_some_and(Emptied::has_pages_left);
        !is_filled_on && self.close_partial_pages()
    }

    /// True if a page that changed may be written: what is kept is for pages that leave a chunk which is to be reset.
    fn may_write_pages(&self) -> bool {
        self.space.map_left() > self.sizes.map_keep && self.has_buffer_unit_for_page()
    }

    /// True if a buffer unit has room for a page.
    pub(super) fn has_buffer_unit_for_page(&self) -> bool {
        let stream = self.buffer.map_stream();
        let has_room = self.buffer.free(stream) > 0 || self.buffer.partial(stream) > 0;
        has_room && self.refuses_changes().is_none()
    }

    /// A page goes to a buffer unit.
    pub(super) fn write_page(&mut self, page: PageNumber, buffers: &mut Buffers) {
        let stream = self.buffer.map_stream();
        let (buffer_unit, room) = self.buffer.filling(stream).expect("it was looked at");
        assert!(room > 0, "a full buffer unit is being filled");
        let lba = self.sizes.blocks + u64::from(page.0);
        let (buffer, at) = self.buffer.push(buffer_unit, Slot { lba, owner: Owner::Page }, 1);
        let (first, bytes) = (self.blocks_of(page).start, self.page_bytes(page));
        let sector = buffers.whole_mut(buffer, at, 1);
        sector.fill(0xFF);
        self.store.l2p.encode(first, &mut sector[..bytes], |_, slot| unreachable!("{slot:?} is no place"));
        page_codec::encode(page, self.applied, (buffer, at), buffers);
        self.buffer.close_if_full(stream);
        self.cache().pages.begin_write(page, buffer_unit, at);
        self.work_due = true;
    }

    /// A buffer unit that nothing fills goes out, if pages in it must be durable before anything can go on. True if it does.
    pub(super) fn close_partial_pages(&mut self) -> bool {
        let stream = self.buffer.map_stream();
        let is_idle = self.data_points.last().is_some_and(|point| point.in_flight() == 0);
        let is_due = is_idle && self.buffer.partial(stream) > 0 && self.buffer.ready(stream) == 0;
        if is_due {
            self.buffer.close(stream);
        }
        is_due
    }

    /// A buffer unit of pages was programmed: the entries that say where they lie.
    pub(in super::super) fn pages_programmed_at(
        &mut self,
        buffer_unit: BufferUnitId,
        place: PhysicalAddress,
    ) -> Vec<LogEntry> {
        let is_early = self.has_canary(Canary::PageFreedEarly);
        let slots: Vec<Slot> = self.buffer.slots(buffer_unit).to_vec();
        let mut entries: Vec<LogEntry> = Vec::with_capacity(slots.len());
        for (Slot { lba, .. }, place) in
            slots.into_iter().zip(place.0..).map(|(slot, place)| (slot, PhysicalAddress(place)))
        {
            let page = self.page_at(lba);
            self.cache().pages.programmed(page, place);
            entries.push(LogEntry::Write { lba, place, count: 1 });
            if is_early && let Some(home) = self.cache().pages.home(page) {
                self.reset_early(home);
            }
        }
        entries
    }

    /// The bug that is planted: what a page leaves is let go of before it is durable where the page lies now.
    fn reset_early(&mut self, home: PhysicalAddress) {
        if self.space.live.is_valid(home) {
            self.invalidate(home);
        }
    }

    fn page_at(&self, lba: u64) -> PageNumber {
        assert!(lba >= self.sizes.blocks, "block {lba} is no page");
        PageNumber(u32::try_from(lba - self.sizes.blocks).expect("fewer pages than 2^32"))
    }

    /// It is true that a page lies at a place.
    pub(in super::super) fn page_is_at(&mut self, lba: u64, place: PhysicalAddress) {
        let (page, chunk) = (self.page_at(lba), self.space.shape.chunk_of(place).0);
        assert!(usize_of(page.0) < self.store.l2p.shard_count(), "{page:?} is beyond the map");
        self.validate(place, 1);
        self.space.unpin(chunk, 1);
        let cache = self.cache();
        cache.pages.end_write(page);
        let before = cache.pages.move_home(page, place);
        if let Some(before) = before.filter(|&before| self.space.live.is_valid(before)) {
            self.invalidate(before);
        }
        self.look_at(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_ftl::ShardSize;

    /// Slots that are kept free of a cache of `most` pages for a map of 1000.
    fn kept(most: usize) -> usize {
        let size = ShardSize::new(32).expect("a power of two");
        kept_free(&MapPages::new(32 * 1000, size, most))
    }

    #[test]
    fn a_cache_keeps_no_more_slots_free_than_there_are_pages_elsewhere() {
        assert_eq!([4, 64, 512, 900].map(kept), [0, 8, 64, 64], "as much as is read ahead, or an eighth");
        assert_eq!([970, 999].map(kept), [30, 1], "as many as are not in memory");
        assert_eq!([1000, 1001, usize::MAX].map(kept), [0, 0, 0], "all of the map stays");
    }
}
