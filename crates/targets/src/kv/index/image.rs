//! How a checkpoint has the index: entries of pages that lie nowhere else, and where the others lie.
//!
//! Entries are as pages have them, in order. A reference to a page on media has 15 bytes and its lower bound: entries since the
//! last reference 4, address 6, bytes 4, bytes of the lower bound 1. Sixteen bytes come before the references: keys, and their
//! bytes. A page leaves memory only if its reference is no longer than its entries, so both together are never longer than all
//! entries. Deliberately not here: sections (`kv::checkpoint`).

use super::page::{Page, next_entry};
use super::{Index, PagePlace, Slot};

/// Bytes before the references.
const HEADER_BYTES: usize = 16;

/// Bytes of a reference to a page with this lower bound.
pub const fn reference_bytes(lower: &[u8]) -> usize {
    15 + lower.len()
}

fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

impl Index {
    /// Entries that lie nowhere else, and references to the pages of the others.
    pub fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let unplaced = self.slots.iter().filter(|(_, slot)| slot.place.is_none());
        // A list that grows would be moved again and again, and be half empty.
        let mut entries = Vec::with_capacity(unplaced.map(|(_, slot)| slot.page().bytes()).sum());
        let mut references = Vec::new();
        references.extend_from_slice(&self.keys.to_le_bytes());
        references.extend_from_slice(&self.key_bytes.to_le_bytes());
        let mut since = 0_u32;
        for (lower, slot) in self.slots.iter() {
            let Some(place) = slot.place else {
                slot.page().encode(&mut entries);
                since += u32::try_from(slot.page().len()).expect("a page is short");
                continue;
            };
            references.extend_from_slice(&std::mem::take(&mut since).to_le_bytes());
            assert!(place.at < 1 << 48, "{place:?} does not fit 6 bytes");
            references.extend_from_slice(&place.at.to_le_bytes()[..6]);
            references.extend_from_slice(&place.bytes.to_le_bytes());
            references.push(u8::try_from(lower.len()).expect("a key has at most 255 bytes"));
            references.extend_from_slice(lower);
        }
        let all = u64::try_from(entries.len() + references.len() - HEADER_BYTES).expect("it fits memory");
        assert!(all <= self.entry_bytes(), "{all} bytes of entries and references are too many");
        (entries, references)
    }

    /// The index in these bytes; `None` if they are none. Without references, as a checkpoint that knows none has it, the entries
    /// are all.
    pub fn decode<'b>(mut entries: &'b [u8], references: Option<&'b [u8]>, page_bytes: u32) -> Option<Self> {
        let mut index = Self::new(page_bytes);
        let mut building = Building { index: &mut index, page: entries, bytes: 0, last: None };
        if let Some(references) = references {
            let (header, mut references) = references.split_at_checked(HEADER_BYTES)?;
            while !references.is_empty() {
                let (fixed, rest) = references.split_at_checked(15)?;
                let (lower, rest) = rest.split_at_checked(usize::from(fixed[14]))?;
                for _ in 0..number(&fixed[..4]) {
                    entries = building.entry(entries)?;
                }
                let bytes = u32::try_from(number(&fixed[10..14])).expect("four bytes");
                building.reference(lower, PagePlace { at: number(&fixed[4..10]), bytes, image: 0 })?;
                references = rest;
            }
            while !entries.is_empty() {
                entries = building.entry(entries)?;
            }
            building.end();
            let counted = (number(&header[..8]), number(&header[8..]));
            if index.is_whole() && counted != (index.keys, index.key_bytes) {
                return None;
            }
            (index.keys, index.key_bytes) = counted;
            return Some(index);
        }
        while !entries.is_empty() {
            entries = building.entry(entries)?;
        }
        building.end();
        Some(index)
    }
}

/// An index while it is read.
struct Building<'a, 'b> {
    index: &'a mut Index,
    /// Entries from the first of a page that is not full.
    page: &'b [u8],
    /// Bytes of them that belong to the page.
    bytes: usize,
    last: Option<&'b [u8]>,
}

impl<'b> Building<'_, 'b> {
    /// Takes an entry: those behind it.
    fn entry(&mut self, entries: &'b [u8]) -> Option<&'b [u8]> {
        let (key, rest) = next_entry(entries)?;
        if self.last.is_some_and(|last| last >= key) {
            return None;
        }
        // Pages a quarter empty, so that the next keys divide few.
        let length = entries.len() - rest.len();
        if self.bytes > 0 && self.bytes + length > self.index.page_bytes / 4 * 3 {
            self.end();
        }
        assert_eq!(self.page.len() - self.bytes, entries.len(), "an entry is not behind the one before");
        self.bytes += length;
        self.index.keys += 1;
        self.index.key_bytes += u64::try_from(key.len()).expect("short");
        self.last = Some(key);
        Some(rest)
    }

    /// Takes a reference.
    fn reference(&mut self, lower: &'b [u8], place: PagePlace) -> Option<()> {
        if self.last.is_some_and(|last| last >= lower) {
            return None;
        }
        self.end();
        self.put(lower, Slot { here: None, place: Some(place) });
        self.index.missing += 1;
        self.last = Some(lower);
        Some(())
    }

    /// The page at hand is complete.
    fn end(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let (entries, rest) = self.page.split_at(std::mem::take(&mut self.bytes));
        self.page = rest;
        let page = Page::of_sorted(entries);
        let is_first =
            self.index.slots.len() == 1 && self.index.is_whole() && self.index.slot(&[]).page().len() == 0;
        let lower = if is_first { Vec::new() } else { page.key(0).to_vec() };
        self.put(&lower, Slot::of(page, None));
    }

    fn put(&mut self, lower: &[u8], slot: Slot) {
        self.index.resident_bytes += slot.cost();
        if lower.is_empty() {
            let before = std::mem::replace(self.index.slot_mut(&[]), slot);
            self.index.resident_bytes -= before.cost();
        } else {
            self.index.slots.insert(lower.into(), slot);
        }
        assert!(lower.is_empty() || self.index.slots.len() > 1, "an index without its first page");
    }
}
