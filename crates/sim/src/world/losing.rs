//! Pages of a key-value target's index that the media lose.
//!
//! Deliberately not here: when (`run`), and what that excuses (`kv`).

use super::World;
use crate::contract::Contract;
use ocssd_base::usize_of;
use ocssd_lightnvm::{ChunkId, Device, Ppa};
use ocssd_targets::kv::{PageOnMedia, pages_on_media};
use std::collections::BTreeMap;

/// A page, and the first sector of the write unit it lies in.
type Found = (Ppa, PageOnMedia);

impl<C: Contract> World<C> {
    /// A sector of a page of the first target's index cannot be read any more: of the newest page with its first key, which as a
    /// rule is the one that counts. Nothing happens if no page lies on media.
    pub fn lose_index_page(&mut self, place: u64) {
        let pages: Vec<Found> = self.index_pages().into_values().collect();
        let Some(count) = u64::try_from(pages.len()).ok().filter(|&count| count > 0) else { return };
        let (unit, page) = &pages[usize::try_from(place % count).expect("an index")];
        let bytes = self.device().geometry().sector_bytes;
        let sector = |byte: usize| u32::try_from(byte).expect("within a unit") / bytes;
        let (first, last) = (sector(page.bytes.start), sector(page.bytes.end - 1));
        let nth = u32::try_from((place >> 32) % u64::from(last - first + 1)).expect("few");
        let at = Ppa::new(unit.chunk, unit.sector + first + nth);
        self.device_mut().inner_mut().lose_sector(at);
        self.tell_harm();
    }

    /// The newest page of each first key.
    fn index_pages(&mut self) -> BTreeMap<Vec<u8>, Found> {
        let geometry = self.device().geometry().clone();
        let units = self.instances[0].units.clone();
        let per_unit = geometry.chunks_per_pu;
        let mut newest: BTreeMap<Vec<u8>, Found> = BTreeMap::new();
        for chunk in units.iter().flat_map(|unit| unit.0 * per_unit..(unit.0 + 1) * per_unit).map(ChunkId) {
            let sectors = self.device_mut().inner_mut().contents(chunk);
            for (nth, unit) in (0..).zip(sectors.chunks(usize_of(geometry.ws_opt))) {
                let at = Ppa::new(chunk, nth * geometry.ws_opt);
                for page in pages_on_media(&unit.concat()).into_iter().flatten() {
                    let is_newer =
                        newest.get(&page.first).is_none_or(|(_, other)| other.sequence < page.sequence);
                    if is_newer {
                        newest.insert(page.first.clone(), (at, page));
                    }
                }
            }
        }
        newest
    }
}
