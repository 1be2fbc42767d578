//! What a checkpoint has of a map in pages: where each lies, and the entries of those that changed since they were written.
//!
//! A page in a buffer unit that was not programmed counts as changed: where it will lie is not known. All of it is as of the
//! checkpoint's transaction. Deliberately not here: how a mount reads it (`recover`).

use super::super::store::OxBlock;
use super::MapCache;
use super::pages::{PageNumber, Writing};
use crate::ox::canary::Canary;
use crate::ox::store::Image;
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::SectionName;
use ocssd_lightnvm::Buffers;

/// The section of where pages lie: blocks of a page, then a place for each, all-ones for none; 64 bits each, little-endian.
pub const HOMES: SectionName = *b"mapplace";
/// The section of pages that changed: the number of each, 32 bits, and its entries.
pub const CHANGED: SectionName = *b"mappages";
/// Bytes of a number of the first section, and of a page's number in the second.
const HOME_BYTES: u64 = 8;
const NUMBER_BYTES: u64 = 4;

/// Bytes of both sections, if all of `count` pages of `page` bytes changed.
pub const fn bytes_of(count: u64, page: u64) -> u64 {
    HOME_BYTES * (count + 1) + count * (NUMBER_BYTES + page)
}

impl OxBlock {
    /// The sections of a checkpoint that begins now.
    pub(in super::super) fn image_of_pages(&self, cache: &MapCache, buffers: &Buffers) -> Image {
        let pages = &cache.pages;
        let mut homes = pages.size().sectors().to_le_bytes().to_vec();
        let mut changed = Vec::new();
        for page in (0..pages.count()).map(PageNumber) {
            let writing = pages.writing(page);
            let programmed = writing.and_then(|writing| writing.place);
            let home = programmed.or_else(|| pages.home(page)).map_or(u64::MAX, |place| place.0);
            homes.extend_from_slice(&home.to_le_bytes());
            let in_buffer_unit = writing.filter(|writing| writing.place.is_none());
            if pages.is_changed(page) || in_buffer_unit.is_some() && pages.is_here(page) {
                changed.extend_from_slice(&page.0.to_le_bytes());
                let (first, from) = (self.blocks_of(page).start, changed.len());
                changed.resize(from + self.page_bytes(page), 0);
                self.store
                    .l2p
                    .encode(first, &mut changed[from..], |_, slot| unreachable!("{slot:?} is no place"));
            } else if let Some(Writing { buffer_unit, offset, .. }) = in_buffer_unit
                && !self.has_canary(Canary::PageLeftOut)
            {
                changed.extend_from_slice(&page.0.to_le_bytes());
                changed.extend_from_slice(self.in_buffer_unit(page, (buffer_unit, offset), buffers));
            }
        }
        assert_eq!(homes.len(), 8 * (usize_of(pages.count()) + 1), "a place for each page");
        vec![(HOMES, homes), (CHANGED, changed)]
    }
}
