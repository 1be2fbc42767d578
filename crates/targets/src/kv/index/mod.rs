//! Where each key's value is: keys in the order of their bytes, packed into pages, with the first key of each page above them.
//!
//! A page holds entries, each a key with 11 bytes, so a listing by prefix reads what lies side by side. All first keys are in
//! memory; a page is, or it lies on media, or both. Whoever asks for a key says so before ([`Index::want`]), and learns which page
//! has to be read. A page that changes is the page on media no more; which those were is told ([`Index::take_released`]).
//! Deliberately not here: reading and writing pages (`kv::index_pages`), and how checkpoints have them (`image`).

mod directory;
mod image;
mod page;
#[cfg(test)]
mod tests;

pub use page::{ENTRY_BYTES, Found, Location, next_entry};

use super::key_bytes::KeyBytes;
use directory::Directory;
use ocssd_base::usize_of;
use page::Page;
use std::hint::black_box;

/// Bytes of a page before it is divided, if all pages stay in memory (chosen: a binary search touches few cache lines, and the
/// tree above stays a hundredth of the keys).
pub const PAGE_BYTES: u32 = 4096;
/// The same if they may leave it (chosen: a change of a key costs a page on media sooner or later, and a read takes a sector
/// whatever it brings).
pub const PAGE_BYTES_BOUNDED: u32 = 1024;
/// Slots looked at for one whose page may leave, at a time (chosen: a bound of work; the next look goes on behind them).
const LOOKED_AT_MAX: usize = 512;

/// Where a page lies on media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// The byte of the instance its record begins at.
    pub at: u64,
    /// Bytes of its entries.
    pub bytes: u32,
    /// Checkpoints begun before it was written: later ones may name it.
    pub image: u32,
}

/// Who needs pages to stay until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The first request.
    Request,
    /// The unit of which garbage collection moves records.
    Copy,
    /// The buffer unit that gets another place.
    BufferUnit,
}

/// A page in memory.
#[derive(Clone, Debug, Default)]
struct Resident {
    page: Page,
    is_used: bool,
    /// It was read for somebody who did not look at it yet.
    is_awaited: bool,
    /// By need: the number of who asked for it last.
    needed: [u64; 3],
}

/// A page, wherever it is.
#[derive(Clone, Debug)]
struct Slot {
    here: Option<Box<Resident>>,
    /// Where it lies on media as it is.
    place: Option<PagePlace>,
}

impl Slot {
    fn of(page: Page, like: Option<&Resident>) -> Self {
        let like = like.map_or_else(Resident::default, |like| Resident { page: Page::default(), ..*like });
        Self { here: Some(Box::new(Resident { page, ..like })), place: None }
    }

    fn page(&self) -> &Page {
        &self.here.as_ref().expect("a page is asked for before it is looked at").page
    }

    fn cost(&self) -> usize {
        self.here.as_ref().map_or(0, |resident| resident.page.cost())
    }

    /// The page changes from now on: the one on media is another.
    fn change(&mut self, released: &mut Vec<PagePlace>) -> &mut Page {
        released.extend(self.place.take());
        &mut self.here.as_mut().expect("a page is asked for before it changes").page
    }
}

/// All keys.
#[derive(Clone, Debug)]
pub struct Index {
    /// By a key that is not above any of the page, and above all of the page before; the first one is empty.
    slots: Directory<Slot>,
    page_bytes: usize,
    keys: u64,
    key_bytes: u64,
    /// Pages that are not in memory.
    missing: usize,
    /// Bytes of memory of those that are.
    resident_bytes: usize,
    /// Where the search for a page that may leave goes on.
    hand: KeyBytes,
    /// Who needs pages now, by need: counted.
    needing: [u64; 3],
    released: Vec<PagePlace>,
}

impl Index {
    /// No keys; a page has up to so many bytes of entries.
    pub fn new(page_bytes: u32) -> Self {
        let slot = Slot::of(Page::default(), None);
        Self {
            page_bytes: usize_of(page_bytes),
            keys: 0,
            key_bytes: 0,
            missing: 0,
            resident_bytes: slot.cost(),
            slots: Directory::new(slot),
            hand: KeyBytes::default(),
            needing: [1; 3],
            released: Vec::new(),
        }
    }

    /// Keys.
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of all entries, as a checkpoint has them.
    pub fn entry_bytes(&self) -> u64 {
        self.key_bytes + self.keys * u64::try_from(ENTRY_BYTES).expect("small")
    }

    /// Bytes of memory of pages that are there.
    pub fn resident_bytes(&self) -> u64 {
        u64::try_from(self.resident_bytes).expect("memory fits 64 bits")
    }

    /// Bytes of memory, those of the tree of pages estimated.
    pub fn memory_bytes(&self) -> u64 {
        let slot = size_of::<KeyBytes>() + size_of::<Slot>() + size_of::<u64>();
        let above: usize = self.slots.iter().map(|(first, _)| first.elsewhere_bytes() + slot).sum();
        self.resident_bytes() + u64::try_from(above).expect("memory fits 64 bits")
    }

    /// True if all pages are in memory.
    pub const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Pages, and those of them that are not in memory.
    pub fn pages(&self) -> (usize, usize) {
        (self.slots.len(), self.missing)
    }

    fn slot(&self, key: &[u8]) -> &Slot {
        self.slots.get(self.slots.find(key))
    }

    fn slot_mut(&mut self, key: &[u8]) -> &mut Slot {
        self.slots.get_mut(self.slots.find(key))
    }

    /// The page with exactly this lower bound.
    fn page_with(&self, lower: &[u8]) -> &Slot {
        let at = self.slots.find(lower);
        assert_eq!(self.slots.lower(at)[..], *lower, "a page is asked for that is gone");
        self.slots.get(at)
    }

    /// Somebody is about to ask for a key: the page that has to be read first, if there is one. It stays until
    /// [`Index::needs_no_more`].
    pub fn want(&mut self, key: &[u8], need: Need) -> Option<PagePlace> {
        let number = self.needing[need_index(need)];
        let slot = self.slot_mut(key);
        match &mut slot.here {
            Some(resident) => {
                (resident.is_used, resident.is_awaited) = (true, false);
                resident.needed[need_index(need)] = number;
                None
            }
            None => Some(slot.place.expect("a page is somewhere")),
        }
    }

    /// True if the page of a key is in memory, for somebody who looks at it at once.
    pub fn is_here(&mut self, key: &[u8]) -> bool {
        let resident = self.slot_mut(key).here.as_mut();
        resident.is_some_and(|resident| {
            resident.is_used = true;
            true
        })
    }

    /// Who needed pages is done with them.
    pub const fn needs_no_more(&mut self, need: Need) {
        self.needing[need_index(need)] += 1;
    }

    /// Loads what searches for these keys will look at: one after the other they would wait for memory, together they wait once.
    pub fn touch<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let pages: Vec<(&Page, &[u8])> = keys
            .filter_map(|key| self.slot(key).here.as_ref().map(|resident| (&resident.page, key)))
            .collect();
        // No step of a loop waits for what another one loads.
        let loaded = pages.iter().fold(0, |all, (page, _)| all ^ page.len());
        let loaded = pages.iter().fold(loaded, |all, (page, _)| all ^ page.touch());
        black_box(pages.iter().fold(loaded, |all, (page, key)| all ^ usize::from(page.find(key).is_some())));
    }

    /// What is known of a key, whose page is in memory.
    pub fn get(&self, key: &[u8]) -> Option<Found> {
        let page = self.slot(key).page();
        page.find(key).map(|entry| page.found_at(entry))
    }

    /// A key is there from now on; what was known of it before. Its page is in memory.
    pub fn set(&mut self, key: &[u8], found: Found) -> Option<Found> {
        let Self { slots, released, .. } = self;
        let slot = slots.get_mut(slots.find(key));
        let cost = slot.cost();
        let page = slot.change(released);
        if let Some(entry) = page.find(key) {
            let before = page.found_at(entry);
            page.put(entry, found);
            return Some(before);
        }
        page.insert(page.search(key).expect_err("it was not found"), key, found);
        let uppers = if page.bytes() > self.page_bytes { page.divide(self.page_bytes) } else { Vec::new() };
        let here = slot.here.as_deref();
        let uppers: Vec<Slot> = uppers.into_iter().map(|page| Slot::of(page, here)).collect();
        self.resident_bytes = self.resident_bytes - cost + slot.cost();
        for upper in uppers {
            self.resident_bytes += upper.cost();
            let first = KeyBytes::from(upper.page().key(0));
            self.slots.insert(first, upper);
        }
        self.keys += 1;
        self.key_bytes += u64::try_from(key.len()).expect("short");
        None
    }

    /// A key is not there any more; what was known of it. Its page is in memory.
    pub fn remove(&mut self, key: &[u8]) -> Option<Found> {
        let Self { slots, released, .. } = self;
        let at = slots.find(key);
        // What is on an empty page is on the one before from then on, which must be there for whoever asks for it next.
        let may_go = slots.before(at).is_some_and(|before| slots.get(before).here.is_some());
        let slot = slots.get_mut(at);
        let entry = slot.page().find(key)?;
        let cost = slot.cost();
        let page = slot.change(released);
        let before = page.found_at(entry);
        page.remove(entry);
        let is_left = page.len() > 0 || !may_go;
        self.resident_bytes = self.resident_bytes - cost + if is_left { slot.cost() } else { 0 };
        if !is_left {
            self.slots.remove(at);
        }
        assert!(self.keys > 0, "a key was removed from an index of none");
        assert!(
            self.key_bytes >= u64::try_from(key.len()).expect("short"),
            "bytes of keys are counted wrong"
        );
        self.keys -= 1;
        self.key_bytes -= u64::try_from(key.len()).expect("short");
        Some(before)
    }

    /// Keys from one on, in order, as far as pages are in memory.
    ///
    /// # Panics
    /// Beyond that.
    pub fn from<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = (&'a [u8], Found)> {
        self.slots_from(key).flat_map(move |(_, slot)| {
            let page = slot.page();
            let begin = page.search(key).unwrap_or_else(|entry| entry);
            (begin..page.len()).map(move |entry| (page.key(entry), page.found(entry)))
        })
    }

    /// Keys with a prefix from one on, in order, as far as [`Index::want_listed`] asked for their pages.
    pub fn listed<'a>(&'a self, from: &'a [u8], prefix: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let slots = self.slots_from(from).take_while(|(lower, _)| !is_beyond(lower, from, prefix));
        let keys = slots.flat_map(move |(_, slot)| {
            let page = slot.page();
            let begin = page.search(from).unwrap_or_else(|entry| entry);
            (begin..page.len()).map(move |entry| page.key(entry))
        });
        // Keys with a prefix lie side by side, from the first that is not before it on.
        keys.take_while(move |key| key.starts_with(prefix))
    }

    fn slots_from(&self, key: &[u8]) -> impl Iterator<Item = (&KeyBytes, &Slot)> {
        self.slots.pairs_from(self.slots.find(key))
    }

    /// Pages that a listing of keys with a prefix has to read, `most` of them at most, from a key on and until keys of `room` bytes
    /// are there. Those that are in memory stay.
    pub fn want_listed(&mut self, from: &[u8], prefix: &[u8], room: usize, most: usize) -> Vec<PagePlace> {
        let number = self.needing[need_index(Need::Request)];
        let (mut missing, mut bytes) = (Vec::new(), 0);
        for (lower, slot) in self.slots.pairs_from_mut(self.slots.find(from)) {
            if is_beyond(lower, from, prefix) || bytes > room || missing.len() == most {
                break;
            }
            let Some(resident) = &mut slot.here else {
                missing.push(slot.place.expect("a page is somewhere"));
                continue;
            };
            (resident.is_used, resident.is_awaited) = (true, false);
            resident.needed[need_index(Need::Request)] = number;
            let page = &resident.page;
            let begin = page.search(from).unwrap_or_else(|entry| entry);
            bytes += (begin..page.len()).map(|entry| page.key(entry).len()).sum::<usize>();
        }
        missing
    }

    /// A page was read. False if these bytes are no page; one that is not needed any more is forgotten. If it `is_awaited`, it
    /// stays until somebody wants it again.
    pub fn arrived(&mut self, place: PagePlace, bytes: &[u8], is_awaited: bool) -> bool {
        let Some(page) = Page::decode(bytes) else { return false };
        let cost = page.cost();
        let slot = self.slot_mut(page.key(0));
        if slot.here.is_none() && slot.place.is_some_and(|other| other.at == place.at) {
            slot.here = Some(Box::new(Resident { page, is_used: true, is_awaited, needed: [0; 3] }));
            self.resident_bytes += cost;
            assert!(self.missing > 0, "a page arrived that was not missing");
            self.missing -= 1;
        }
        true
    }

    /// True if the page with this first key lies there.
    pub fn is_page_at(&self, first: &[u8], at: u64) -> bool {
        self.slot(first).place.is_some_and(|place| place.at == at)
    }

    /// The page with this first key lies somewhere else from now on: where it lay.
    pub fn page_moved(&mut self, first: &[u8], to: PagePlace) -> PagePlace {
        let from = self.slot_mut(first).place.replace(to).expect("it lay on media");
        assert!(from.at != to.at && from.bytes == to.bytes, "{from:?} moves to {to:?}");
        from
    }

    /// Takes a page from memory, of those that were not used for long: one that lies on media is gone, of another its lower bound
    /// is told if it may be written. `None` if there is none among the next.
    pub fn next_leaving(&mut self, may_write: bool) -> Option<Leaving> {
        let mut left = LOOKED_AT_MAX.min(2 * self.slots.len());
        while left > 0 {
            let (hand, mut is_empty) = (std::mem::take(&mut self.hand), false);
            for (lower, slot) in self.slots.pairs_from_mut(self.slots.find(&hand)).skip(1) {
                if left == 0 {
                    self.hand = lower.clone();
                    return None;
                }
                left -= 1;
                let Some(resident) = &mut slot.here else { continue };
                let is_needed = resident.needed.iter().zip(&self.needing).any(|(of, now)| of == now);
                if is_needed || resident.is_awaited || std::mem::take(&mut resident.is_used) {
                    continue;
                }
                if resident.page.len() == 0 {
                    self.resident_bytes -= slot.cost();
                    self.released.extend(slot.place.take());
                    (is_empty, self.hand) = (true, lower.clone());
                    break;
                }
                if slot.place.is_some() {
                    self.resident_bytes -= slot.cost();
                    (slot.here, self.hand) = (None, lower.clone());
                    self.missing += 1;
                    return Some(Leaving::Gone);
                }
                if may_write && resident.page.bytes() >= image::reference_bytes(lower) {
                    self.hand = lower.clone();
                    return Some(Leaving::ToWrite(lower.clone()));
                }
            }
            if is_empty {
                self.slots.remove(self.slots.find(&self.hand));
                return Some(Leaving::Gone);
            }
            // The first page, whose lower bound is empty, stays: it is behind no hand.
            left = left.saturating_sub(1);
        }
        None
    }

    /// The entries of a page that is about to leave, as media have them.
    pub fn encode_page(&self, lower: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.page_with(lower).page().encode(&mut out);
        assert!(!out.is_empty(), "a page without keys is written");
        out
    }

    /// A page was written, and leaves.
    pub fn left(&mut self, lower: &[u8], place: PagePlace) {
        let at = self.slots.find(lower);
        assert_eq!(self.slots.lower(at)[..], *lower, "a page that is written is gone");
        let slot = self.slots.get_mut(at);
        assert!(slot.place.is_none(), "a page was written that lies on media already, at {:?}", slot.place);
        assert_eq!(u32::try_from(slot.page().bytes()), Ok(place.bytes), "another page was written");
        self.resident_bytes -= slot.cost();
        *slot = Slot { here: None, place: Some(place) };
        self.missing += 1;
        assert!(self.missing < self.slots.len(), "the first page left, too");
    }

    /// The pages on media that are none any more, since this was asked last.
    pub fn take_released(&mut self) -> Vec<PagePlace> {
        std::mem::take(&mut self.released)
    }

    /// Pages in memory whose places are named are none on media any more.
    pub fn release_pages(&mut self, is_named: impl Fn(PagePlace) -> bool) {
        for slot in self.slots.slots_mut().filter(|slot| slot.here.is_some()) {
            self.released.extend(slot.place.take_if(|place| is_named(*place)));
        }
    }

    /// The same, which stay to be taken.
    pub fn released(&self) -> impl Iterator<Item = PagePlace> {
        self.released.iter().copied()
    }

    /// Where all pages lie that lie on media.
    pub fn places(&self) -> impl Iterator<Item = PagePlace> {
        self.slots.iter().map(|(_, slot)| slot).filter_map(|slot| slot.place)
    }

    /// Every entry in memory.
    pub fn resident(&self) -> impl Iterator<Item = (&[u8], Found)> {
        self.slots.iter().map(|(_, slot)| slot).filter(|slot| slot.here.is_some()).flat_map(|slot| {
            let page = slot.page();
            (0..page.len()).map(move |entry| (page.key(entry), page.found(entry)))
        })
    }

    /// Asserts that keys are in order and counted.
    pub fn check(&self) {
        let keys: Vec<&[u8]> = self.resident().map(|(key, _)| key).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys are out of order");
        let bytes: usize = keys.iter().map(|key| key.len()).sum();
        let found = (u64::try_from(keys.len()).expect("short"), u64::try_from(bytes).expect("short"));
        let is_right = if self.is_whole() {
            found == (self.keys, self.key_bytes)
        } else {
            found.0 <= self.keys && found.1 <= self.key_bytes
        };
        assert!(is_right, "keys and their bytes are counted wrong: {found:?}");
        self.slots.check();
        for (first, slot) in self.slots.iter() {
            assert!(slot.here.is_some() || slot.place.is_some(), "a page is nowhere");
            let is_in_order =
                slot.here.is_none() || slot.page().len() == 0 || slot.page().key(0) >= &first[..];
            assert!(is_in_order, "a key is on the wrong page");
        }
        let cost: usize = self.slots.iter().map(|(_, slot)| slot).map(Slot::cost).sum();
        assert_eq!(cost, self.resident_bytes, "memory of pages is counted wrong");
        let missing = self.slots.iter().map(|(_, slot)| slot).filter(|slot| slot.here.is_none()).count();
        assert_eq!(missing, self.missing, "missing pages are counted wrong");
    }
}

/// What becomes of a page that leaves memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It lies on media, and is gone.
    Gone,
    /// The one with this lower bound must be written before.
    ToWrite(KeyBytes),
}

/// True if no key from this lower bound on has the prefix, which `from` has.
fn is_beyond(lower: &[u8], from: &[u8], prefix: &[u8]) -> bool {
    lower > from && !lower.starts_with(prefix)
}

const fn need_index(need: Need) -> usize {
    match need {
        Need::Request => 0,
        Need::Copy => 1,
        Need::BufferUnit => 2,
    }
}
