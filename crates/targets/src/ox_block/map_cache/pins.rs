//! A transaction is logged when all pages that it changes are in memory, and they stay until it changed them.
//!
//! So it becomes true at once, as in a map that is all in memory. Pages of the transaction in front may be more than memory has
//! room for; those of others wait for room. Deliberately not here: what becomes of the entries (`super::super::map`).

use super::super::store::OxBlock;
use super::TRANSACTION_PAGES_MAX;
use super::pages::{MapPages, PageNumber};
use super::reads::{AHEAD_MAX, Room};
use ocssd_ftl::log::LogEntry;
use ocssd_lightnvm::Buffers;

/// The transaction in front: its pages, and whether each is in memory and stays.
#[derive(Clone, Debug)]
pub struct Front {
    pages: Vec<(PageNumber, bool)>,
    /// Those that stay.
    pinned: usize,
}

impl Front {
    /// True of a page of the transaction.
    pub fn needs(&self, page: PageNumber) -> bool {
        self.pages.binary_search_by_key(&page, |&(own, _)| own).is_ok()
    }
}

/// Pages that entries change, each once, in order.
fn pages_of_entries(pages: &MapPages, entries: &[LogEntry]) -> Vec<PageNumber> {
    let range = |entry: &LogEntry| match *entry {
        LogEntry::Write { lba, count, .. }
        | LogEntry::Move { lba, count, .. }
        | LogEntry::Discard { lba, count } => {
            assert!(count > 0, "{entry:?} changes nothing");
            (pages.page_of(lba), pages.page_of(lba + u64::from(count) - 1))
        }
        LogEntry::Commit { .. } | LogEntry::Owner { .. } => unreachable!("{entry:?} is no change"),
    };
    let mut found: Vec<PageNumber> = Vec::new();
    for (first, last) in entries.iter().map(range) {
        found.extend((first.0..=last.0).map(PageNumber));
    }
    found.sort_unstable();
    found.dedup();
    found
}

impl OxBlock {
    /// True if the pages of the transaction in front are in memory, and stay; if not they are asked for.
    pub(in super::super) fn has_pages_of_front(&mut self, buffers: &Buffers) -> bool {
        let Some(cache) = &mut self.store.cache else { return true };
        let entries = &self.commits.front().expect("one is in front").entries;
        let fresh = || Front {
            pages: pages_of_entries(&cache.pages, entries).into_iter().map(|page| (page, false)).collect(),
            pinned: 0,
        };
        let mut front = cache.front.take().unwrap_or_else(fresh);
        let is_taken = |pages: &MapPages, page| pages.is_here(page) || pages.is_asked(page);
        let mut own = front.pages.iter().filter(|&&(page, _)| is_taken(&cache.pages, page)).count();
        for index in 0..front.pages.len() {
            let (page, is_pinned) = front.pages[index];
            if is_pinned {
                continue;
            }
            let before = self.cache().pages.taken();
            let is_here = self.has_page_of_front(page, own, buffers);
            own += self.cache().pages.taken() - before;
            if !is_here {
                continue;
            }
            self.look_page_up(page);
            self.cache().pages.pin(page);
            front.pages[index].1 = true;
            front.pinned += 1;
        }
        let is_ready = front.pinned == front.pages.len();
        if !is_ready {
            self.cache().front = Some(front);
            self.ask_ahead_of_commits(buffers);
        }
        is_ready
    }

    /// The front may have pages beyond the bound as long as all others keep to it.
    fn has_page_of_front(&mut self, page: PageNumber, own: usize, buffers: &Buffers) -> bool {
        let cache = self.cache();
        assert!(own <= cache.pages.taken(), "{own} pages of the front of {} in all", cache.pages.taken());
        let others = cache.pages.taken() - own;
        let room = if others <= cache.pages.most() { Room::Beyond } else { Room::Within };
        // Nobody is told: it is tried again.
        cache.failed.remove(&page);
        self.has_page(page, room, buffers)
    }

    fn ask_ahead_of_commits(&mut self, buffers: &Buffers) {
        let cache = self.store.cache.as_ref().expect("the map is in pages");
        if cache.pages.taken() >= cache.pages.most() {
            return;
        }
        let ahead = self.commits.iter().skip(1).take(AHEAD_MAX);
        let pages: Vec<PageNumber> = ahead
            .flat_map(|commit| pages_of_entries(&cache.pages, &commit.entries))
            .take(AHEAD_MAX)
            .collect();
        for page in pages {
            self.has_page(page, Room::Within, buffers);
        }
    }

    /// Blocks that a transaction may discard.
    pub(in super::super) fn discard_blocks_max(&self) -> u32 {
        let page = |cache: &super::MapCache| cache.pages.size().sectors() * TRANSACTION_PAGES_MAX;
        self.store
            .cache
            .as_ref()
            .map_or(u32::MAX, |cache| u32::try_from(page(cache)).expect("a page is small"))
    }

    /// A transaction changed its pages: they may leave.
    pub(in super::super) fn pages_changed(&mut self, entries: &[LogEntry]) {
        let Some(cache) = &mut self.store.cache else { return };
        for page in pages_of_entries(&cache.pages, entries) {
            cache.pages.changed(page);
            cache.pages.unpin(page);
        }
    }

    /// No transaction will be logged any more.
    pub(in super::super) fn forget_pins(&mut self) {
        if let Some(cache) = &mut self.store.cache {
            cache.front = None;
            cache.pages.unpin_all();
        }
    }
}
