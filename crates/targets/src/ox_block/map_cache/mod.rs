//! A map larger than memory: pages of entries on media, of which a bounded number is in memory (`map_cache_bytes`).
//!
//! A page is a sector, and its number goes on where the blocks' end: when one is written, that is a transaction as any other, and
//! replay finds where it lies. It says up to which transaction it is true; replay applies to it what is younger. Pages lie in
//! chunks of their own. A checkpoint has where each page lies, and those that changed since they were written.
//!
//! Memory holds `map_cache_bytes` of pages, and beside them at most those of one read and one transaction: they are let in before
//! the read is looked up, and before the transaction is logged, so that neither is ever seen in part. `pages` knows what is where,
//! `reads` brings pages in, `pins` keeps those that transactions need, `writes` lets them leave, `emptied` gives chunks of theirs
//! back, `owners` finds whose a lost sector is, `image` is what a checkpoint has of them, `recover` what a mount makes of that,
//! `page_codec` a page as it lies on media.
//! Deliberately not here: the entries (`ocssd_ftl::L2p`, a shard for each page), and what they mean (`super::map`).

mod emptied;
mod image;
mod owners;
mod page_codec;
mod pages;
mod pins;
mod reads;
mod recover;
mod writes;

use super::store::OxBlock;
use crate::ox::options::Options;
use crate::ox::write_buffer::BufferUnitId;
use emptied::Emptied;
use ocssd_base::usize_of;
use ocssd_ftl::{InstanceGeometry, L2p, PhysicalAddress, ShardSize};
use ocssd_lightnvm::{Buffers, Geometry, Status};
use owners::Owners;
use pages::MapPages;
pub use pages::{PageNumber, pages_of};
use pins::Front;
use reads::PageReads;
pub use recover::{BlockMap, MAP};
use std::collections::BTreeMap;

/// Pages that memory holds at least (chosen: of a page for each of a read, a transaction, a chunk that is emptied, and one more).
const PAGES_MIN: u64 = 4;
/// Pages of a transaction at most, for which memory has room beside the bound: those of 1 MiB of sectors that lie on a page each.
pub const TRANSACTION_PAGES_MAX: u64 = 256;

/// A map in pages.
#[derive(Clone, Debug)]
pub struct MapCache {
    pub(super) pages: MapPages,
    reads: PageReads,
    /// Pages that could not be read for another reason than that the media lost them, until somebody was told.
    failed: BTreeMap<PageNumber, Status>,
    /// The first and the last page of the read in front.
    reading: Option<(PageNumber, PageNumber)>,
    /// Pages of the transaction in front that is to be logged.
    front: Option<Front>,
    /// The chunk that pages leave so that it can be reset.
    emptied: Option<Emptied>,
    /// Lost sectors whose blocks only pages elsewhere know.
    owners: Owners,
}

impl MapCache {
    /// A map of these pages; buffers are taken now.
    pub fn new(pages: MapPages, buffers: &mut Buffers) -> Self {
        Self {
            pages,
            reads: PageReads::new(buffers),
            failed: BTreeMap::new(),
            reading: None,
            front: None,
            emptied: None,
            owners: Owners::default(),
        }
    }
}

/// The place that stands for what was lost with its page: one behind all that there are.
pub const fn lost_place(shape_places: u64) -> PhysicalAddress {
    PhysicalAddress(shape_places)
}

/// Bytes of an entry on media: as `ocssd_ftl::L2p` decides for the places there are and the lost one.
pub fn entry_bytes(shape: &InstanceGeometry) -> u32 {
    if shape.places() + 1 < 1 << 32 { 4 } else { 8 }
}

/// A map of so many blocks, all nowhere.
pub fn new_l2p(shape: &InstanceGeometry, blocks: u64, size: ShardSize) -> L2p {
    let l2p = L2p::with_shards(blocks, shape.places() + 1, 0, size);
    assert_eq!(l2p.entry_bytes(), entry_bytes(shape), "entries of another width were counted with");
    l2p
}

/// Bytes of the entries of a page of a map.
fn page_bytes(l2p: &L2p, page: PageNumber) -> usize {
    let blocks = l2p.shard_sectors(page.index());
    usize::try_from(blocks.end - blocks.start).expect("a page is small") * usize_of(l2p.entry_bytes())
}

/// Blocks of a page, and pages in memory, as the options say; `None` if all of the map is in memory.
///
/// # Errors
/// A sentence, if there can be no such pages.
pub fn page_size(
    geometry: &Geometry,
    shape: &InstanceGeometry,
    options: &Options,
) -> Result<Option<(ShardSize, usize)>, String> {
    let Some(cache) = options.map_cache_bytes else {
        return match options.map_page_bytes {
            None => Ok(None),
            Some(_) => {
                Err("map_page_bytes is of a map that is in memory in part: give map_cache_bytes too"
                    .to_owned())
            }
        };
    };
    let (entry, sector) = (entry_bytes(shape), geometry.sector_bytes);
    let bytes = options.map_page_bytes.unwrap_or(sector);
    let size = ShardSize::new(bytes / entry).filter(|_| bytes <= sector && bytes.is_multiple_of(entry));
    let size = size.ok_or_else(|| {
        format!(
            "map_page_bytes should be a power of two from {} to {sector}, a sector, but is {bytes}: choose one of these",
            32 * entry
        )
    })?;
    let least = PAGES_MIN * u64::from(bytes);
    if cache < least {
        return Err(format!(
            "map_cache_bytes should be at least {least}, {PAGES_MIN} pages of the map of {bytes} bytes each, but is {cache}: \
             raise it, or leave it out so that all of the map is in memory"
        ));
    }
    Ok(Some((size, usize::try_from(cache / u64::from(bytes)).unwrap_or(usize::MAX))))
}

/// What a map of `blocks` blocks in pages takes: sectors on media, and bytes of a checkpoint if all of them changed.
pub fn demand(shape: &InstanceGeometry, blocks: u64, size: ShardSize) -> (u64, u64) {
    let count = u64::from(pages_of(blocks, size));
    let page = size.sectors() * u64::from(entry_bytes(shape));
    (count, image::bytes_of(count, page))
}

impl OxBlock {
    /// True of the place that stands for what was lost with its page.
    pub(super) fn is_lost(&self, place: PhysicalAddress) -> bool {
        place == lost_place(self.space.shape.places())
    }

    /// The map in pages. Only where there is one.
    fn cache(&mut self) -> &mut MapCache {
        self.store.cache.as_mut().expect("the map is in pages")
    }

    /// Goes on with pages of the map. True if anything was done.
    pub(super) fn tend_pages(&mut self, buffers: &mut Buffers) -> bool {
        if self.store.cache.is_none() || self.is_mounting {
            return false;
        }
        let mut any = self.find_owners(buffers) | self.empty_page_chunk(buffers);
        any |= self.let_pages_leave(buffers);
        any | self.send_page_reads()
    }

    /// The blocks of a page.
    fn blocks_of(&self, page: PageNumber) -> std::ops::Range<u64> {
        self.store.l2p.shard_sectors(page.index())
    }

    /// Bytes of the entries of a page.
    fn page_bytes(&self, page: PageNumber) -> usize {
        page_bytes(&self.store.l2p, page)
    }

    /// The entries of a page that is in a buffer unit.
    fn in_buffer_unit<'a>(
        &self,
        page: PageNumber,
        (buffer_unit, offset): (BufferUnitId, u32),
        buffers: &'a Buffers,
    ) -> &'a [u8] {
        let all = buffers.whole(self.buffer.buffer(buffer_unit), offset, 1);
        &all[..self.page_bytes(page)]
    }

    /// True if pages can only go on when the log is durable.
    pub(super) fn pages_wait_for_log(&self) -> bool {
        self.store.cache.as_ref().is_some_and(|cache| {
            let is_full = cache.pages.taken() > cache.pages.most();
            cache.front.is_some() || cache.emptied.is_some() || is_full
        })
    }

    /// Asserts what must hold between calls.
    pub(super) fn check_pages(&self, cache: &MapCache) {
        cache.pages.check();
        self.check_owners(&cache.owners);
        let is_valid = |place| self.space.live.is_valid(place);
        assert!(cache.pages.homes().all(|(_, place)| is_valid(place)), "a page lies where nothing is valid");
        for (page, writing) in cache.pages.all_writing().filter(|(_, writing)| writing.place.is_none()) {
            let slot = self.buffer.slots(writing.buffer_unit).get(usize_of(writing.offset));
            let lba = self.sizes.blocks + u64::from(page.0);
            assert!(
                slot.is_some_and(|slot| slot.lba == lba),
                "{page:?} should be in a buffer unit, but is {slot:?}"
            );
        }
        self.store.l2p.for_each_media(|block, place| {
            assert!(
                self.is_lost(place) || is_valid(place),
                "block {block} is at {place:?}, which is not valid"
            );
        });
    }
}
