//! Pages on a simulated disk and in the memory above it.
//!
//! A page that was written lies in memory until a sync writes it. A page that a sync failed to write stays in memory and is
//! taken for written, as Linux does it: reads find it, the next sync passes it over, and it is gone with the memory.
//! Deliberately not here: which calls fail (`faults`).

use ocssd_base::Prng;
use std::collections::BTreeMap;

/// Bytes of a page, as of the operating system's.
pub(super) const PAGE_BYTES: usize = 4096;
/// The same as an offset.
const PAGE: u64 = 4096;

type Bytes = Box<[u8; PAGE_BYTES]>;

/// A page in memory that differs from the disk's, or may.
#[derive(Clone, Debug)]
struct Cached {
    bytes: Bytes,
    /// The next sync writes it.
    is_dirty: bool,
}

/// What is on the disk of what was not synced, after a crash of the host or a sync that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsynced {
    /// Nothing of it.
    #[default]
    Lost,
    /// Each page or not.
    InPart,
}

/// The pages of a file. What is in neither map is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    stored: BTreeMap<u64, Bytes>,
    cached: BTreeMap<u64, Cached>,
    /// Pages the file has, on the disk or in memory.
    allocated: u64,
}

fn zeros() -> Bytes {
    Box::new([0; PAGE_BYTES])
}

/// The part of a page from byte `at` of the file on: the page, where in it, and how many of `length` bytes.
fn part(at: u64, length: usize) -> (u64, usize, usize) {
    let within = usize::try_from(at % PAGE).expect("within a page");
    (at / PAGE, within, length.min(PAGE_BYTES - within))
}

impl Disk {
    /// Reads all of `bytes` from byte `at` on.
    pub(super) fn read(&self, mut bytes: &mut [u8], mut at: u64) {
        while !bytes.is_empty() {
            let (page, within, count) = part(at, bytes.len());
            let (place, rest) = bytes.split_at_mut(count);
            match self.page(page) {
                Some(from) => place.copy_from_slice(&from[within..within + count]),
                None => place.fill(0),
            }
            (bytes, at) = (rest, at + u64::try_from(count).expect("at most a page"));
        }
    }

    fn page(&self, page: u64) -> Option<&Bytes> {
        let cached = self.cached.get(&page).map(|cached| &cached.bytes);
        cached.or_else(|| self.stored.get(&page))
    }

    /// Writes as much of `bytes` from byte `at` on as there are pages for: how many bytes.
    pub(super) fn write(&mut self, bytes: &[u8], at: u64, pages_max: Option<u64>) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let from = at + u64::try_from(done).expect("a length fits 64 bits");
            let (page, within, count) = part(from, bytes.len() - done);
            let is_new = self.page(page).is_none();
            if is_new && pages_max.is_some_and(|most| self.allocated >= most) {
                break;
            }
            self.allocated += u64::from(is_new);
            let stored = &self.stored;
            let cached = self.cached.entry(page).or_insert_with(|| {
                let bytes = stored.get(&page).cloned().unwrap_or_else(zeros);
                Cached { bytes, is_dirty: true }
            });
            cached.is_dirty = true;
            cached.bytes[within..within + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
        done
    }

    /// True if a sync has something to write.
    pub(super) fn is_dirty(&self) -> bool {
        self.cached.values().any(|cached| cached.is_dirty)
    }

    /// Writes all that waits for it.
    pub(super) fn sync(&mut self) {
        self.write_back(|_| true);
        self.cached.retain(|_, cached| !cached.is_dirty);
    }

    /// Writes what `left` and `prng` say of what waits for it, and takes the rest for written.
    pub(super) fn fail_sync(&mut self, left: Unsynced, prng: &mut Prng) {
        let written = self.write_back(|_| left == Unsynced::InPart && prng.below(2) == 0);
        for page in written {
            self.cached.remove(&page);
        }
        self.cached.values_mut().for_each(|cached| cached.is_dirty = false);
    }

    /// Lets go of what is taken for written.
    pub(super) fn drop_clean(&mut self) {
        self.cached.retain(|_, cached| cached.is_dirty);
        self.count();
    }

    /// The host crashed, and is up again.
    pub(super) fn crash(&mut self, unsynced: Unsynced, prng: &mut Prng) {
        if unsynced == Unsynced::InPart {
            self.write_back(|_| prng.below(2) == 0);
        }
        self.cached.clear();
        self.count();
    }

    /// Writes the dirty pages for which `is_written` is true, and names them.
    fn write_back(&mut self, mut is_written: impl FnMut(u64) -> bool) -> Vec<u64> {
        let mut written = Vec::new();
        for (&page, cached) in self.cached.iter().filter(|(_, cached)| cached.is_dirty) {
            if is_written(page) {
                self.stored.insert(page, cached.bytes.clone());
                written.push(page);
            }
        }
        written
    }

    /// Counts the file's pages anew.
    fn count(&mut self) {
        let only_cached = self.cached.keys().filter(|page| !self.stored.contains_key(page)).count();
        let pages = self.stored.len() + only_cached;
        self.allocated = u64::try_from(pages).expect("a length fits 64 bits");
    }

    /// Pages of the file that take room.
    pub(super) const fn allocated(&self) -> u64 {
        self.allocated
    }
}
