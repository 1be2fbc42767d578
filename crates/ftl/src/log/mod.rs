//! A write-ahead log: what transactions changed, in pages of a write unit, in the order in which it becomes true.
//!
//! [`Log`] takes the entries of one transaction at a time, groups the commits that wait (DeWitt et al., SIGMOD 1984) into
//! pages, and says up to which page everything is durable. `page` is a page on media: magic, instance,
//! generation, number, checksum. [`Replay`] puts pages that were found into the order they were written in, ends at the
//! first gap, and gives whole transactions. A page number (LSN) is never used twice for what was read back: each mount
//! writes a generation of its own, and a page of an older generation behind the end of the log is none of it. Each page says
//! up to where the log was durable when it was written, so that a replay that ends earlier knows that the media lost pages.
//!
//! The owner writes pages where it likes: a page is found by its number, not by its place, so a page that the media
//! failed is written again elsewhere, and pages are striped over any units and read back all together. It may be written
//! twice, so that one page that the media lose afterwards does not end the log. Deliberately not here: places, commands,
//! what entries mean.

mod entry;
mod page;
mod replay;
#[cfg(test)]
mod tests;

pub use entry::{Count, ENTRY_BYTES, LogEntry, Record, TransactionId};
pub use page::{Generation, HEADER_BYTES, LogPage, Lsn, PageError, used_bytes};
pub use replay::{Replay, ReplayError, Replayed, Transaction};

use crate::head::InstanceId;
use ocssd_base::usize_of;
use std::collections::{BTreeMap, VecDeque};

/// Pages from the oldest that is not on media to the youngest that is given out, at most (chosen: more than are written at a
/// time). Whatever the media fail, numbers of pages that lie in one chunk one after the other go back by less than this, so
/// that recovery may search a chunk for where it must begin to read.
pub const PAGES_AHEAD_MAX: u32 = 16;

/// What a log is made of.
#[derive(Clone, Copy, Debug)]
pub struct LogConfig {
    /// Whose log it is.
    pub instance: InstanceId,
    /// The generation of its pages: higher than that of any page written before.
    pub generation: Generation,
    /// The number of its first page: higher than that of any page that was read back.
    pub first: Lsn,
    /// The oldest page that recovery may need: the first, or one of a generation before.
    pub tail: Lsn,
    /// Bytes of a page: whole sectors of a write unit.
    pub page_bytes: u32,
    /// Pages written at a time.
    pub depth: u32,
    /// Times each page is written: with two, one that the media lose costs nothing.
    pub copies: u32,
    /// Pages that are not truncated, at most: beyond, [`Log::has_room`] says no.
    pub pages_max: u32,
}

/// One of the copies of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCopy {
    /// The page.
    pub lsn: Lsn,
    /// Which of its copies, from 0.
    pub copy: u32,
}

/// The log of one mount, while it is written.
#[derive(Clone, Debug)]
pub struct Log<E = LogEntry> {
    config: LogConfig,
    /// Entries of a page.
    per_page: usize,
    /// The page being filled.
    filling: Vec<E>,
    filling_lsn: Lsn,
    /// Pages that are full and were not given out.
    full: VecDeque<(Lsn, Vec<E>)>,
    /// The page given out last, while copies of it are still to be given out, and how many.
    again: Option<(LogPage<E>, u32)>,
    /// Pages given out and not written, and how many copies of each are not.
    in_flight: BTreeMap<Lsn, u32>,
    /// Pages before this one are on media.
    durable: Lsn,
    /// The oldest page that is still needed.
    tail: Lsn,
}

impl<E: Record> Log<E> {
    /// A log without a page.
    ///
    /// # Panics
    /// If a page has no room for two entries, or none may be in flight.
    #[must_use]
    pub fn new(config: LogConfig) -> Self {
        let per_page = (usize_of(config.page_bytes).saturating_sub(HEADER_BYTES)) / ENTRY_BYTES;
        assert!(per_page >= 2, "a log page of {} bytes", config.page_bytes);
        assert!(config.copies > 0, "a log that is not written");
        assert!(config.depth > 0 && config.pages_max > config.depth, "a log without room: {config:?}");
        assert!(config.depth <= PAGES_AHEAD_MAX, "{} pages are written at a time", config.depth);
        assert!(config.tail <= config.first, "a log whose oldest page is none yet: {config:?}");
        Self {
            config,
            per_page,
            filling: Vec::with_capacity(per_page),
            filling_lsn: config.first,
            full: VecDeque::new(),
            again: None,
            in_flight: BTreeMap::new(),
            durable: config.first,
            tail: config.tail,
        }
    }

    /// Entries a page holds.
    #[must_use]
    pub const fn entries_per_page(&self) -> usize {
        self.per_page
    }

    /// True if a transaction of so many entries, its commit counted, fits before the log must be truncated.
    #[must_use]
    pub fn has_room(&self, entries: usize) -> bool {
        let pages = (self.filling.len() + entries).div_ceil(self.per_page);
        let pages = u64::try_from(pages).expect("an index");
        self.filling_lsn.0 + pages <= self.tail.0 + u64::from(self.config.pages_max)
    }

    /// Adds a transaction: its entries, then its commit. Gives the pages its first and its last entry are in: it is durable
    /// once [`Log::durable`] is beyond the last.
    ///
    /// # Panics
    /// If there is no room, or one of the entries is a commit.
    pub fn append(&mut self, transaction: TransactionId, entries: &[E]) -> (Lsn, Lsn) {
        assert!(self.has_room(entries.len() + 1), "a transaction is logged without room");
        let count = Count::try_from(entries.len()).expect("a transaction has fewer entries than 2^32");
        let first = self.filling_lsn;
        for &entry in entries {
            assert!(entry.as_commit().is_none(), "a commit within a transaction");
            self.push(entry);
        }
        let last = self.push(E::commit(transaction, count));
        assert!(first <= last && self.filling_lsn >= last, "page numbers go back");
        (first, last)
    }

    fn push(&mut self, entry: E) -> Lsn {
        let lsn = self.filling_lsn;
        self.filling.push(entry);
        if self.filling.len() == self.per_page {
            self.close();
        }
        lsn
    }

    fn close(&mut self) {
        assert!(!self.filling.is_empty(), "an empty log page is closed");
        let page = std::mem::replace(&mut self.filling, Vec::with_capacity(self.per_page));
        self.full.push_back((self.filling_lsn, page));
        self.filling_lsn = self.filling_lsn.next();
    }

    /// True if [`Log::take_page`] would give a page: a full one while fewer than the depth are in flight, and none is
    /// [`PAGES_AHEAD_MAX`] behind it, or with nothing in flight what was gathered meanwhile.
    #[must_use]
    pub fn has_page(&self) -> bool {
        let next = self.next_fresh();
        let is_near = next.0 < self.durable.0 + u64::from(PAGES_AHEAD_MAX);
        let has_place = is_near && self.in_flight.len() < usize_of(self.config.depth);
        self.again.is_some()
            || has_place && (!self.full.is_empty() || self.in_flight.is_empty() && !self.filling.is_empty())
    }

    fn next_fresh(&self) -> Lsn {
        self.full.front().map_or(self.filling_lsn, |page| page.0)
    }

    /// What [`Log::take_page`] would give.
    #[must_use]
    pub fn next_to_take(&self) -> LogCopy {
        match &self.again {
            Some((page, left)) => LogCopy { lsn: page.lsn, copy: self.config.copies - left },
            None => LogCopy { lsn: self.next_fresh(), copy: 0 },
        }
    }

    /// Gives the next page to be written, encoded into `out`.
    ///
    /// # Panics
    /// If `out` is not a page.
    pub fn take_page(&mut self, out: &mut [u8]) -> Option<LogCopy> {
        assert_eq!(out.len(), usize_of(self.config.page_bytes), "a log page of another size");
        if !self.has_page() {
            return None;
        }
        let taken = self.next_to_take();
        if let Some((page, copies)) = self.again.take() {
            page::encode(&page, out);
            self.again = (copies > 1).then_some((page, copies - 1));
            return Some(taken);
        }
        if self.full.is_empty() {
            self.close();
        }
        let (lsn, entries) = self.full.pop_front().expect("it was looked at");
        let LogConfig { instance, generation, copies, .. } = self.config;
        let page = LogPage { instance, generation, lsn, durable: Some(self.durable), entries };
        page::encode(&page, out);
        self.again = (copies > 1).then_some((page, copies - 1));
        let before = self.in_flight.insert(lsn, copies);
        assert!(before.is_none() && lsn >= self.durable, "page {} is written twice", lsn.0);
        assert!(lsn.0 - self.durable.0 < u64::from(PAGES_AHEAD_MAX), "page {} is too far ahead", lsn.0);
        assert_eq!(lsn, taken.lsn, "another page was taken than was announced");
        Some(taken)
    }

    /// A copy of a page is on media, wherever that is.
    ///
    /// # Panics
    /// If it was not in flight.
    pub fn on_written(&mut self, lsn: Lsn) {
        let copies = self.in_flight.get_mut(&lsn).unwrap_or_else(|| panic!("page {} ended twice", lsn.0));
        *copies -= 1;
        if *copies == 0 {
            self.in_flight.remove(&lsn);
        }
        let first = self.in_flight.first_key_value().map(|(&lsn, _)| lsn);
        let oldest = [first, self.full.front().map(|page| page.0)];
        let next = oldest.into_iter().flatten().min().unwrap_or(self.filling_lsn);
        assert!(next >= self.durable, "what was durable is not any more");
        self.durable = next;
    }

    /// Every page before this one is on media.
    #[must_use]
    pub const fn durable(&self) -> Lsn {
        self.durable
    }

    /// Once [`Log::durable`] has come so far, everything added by now is on media.
    #[must_use]
    pub const fn end(&self) -> Lsn {
        if self.filling.is_empty() { self.filling_lsn } else { self.filling_lsn.next() }
    }

    /// True if a page is being filled.
    #[must_use]
    pub const fn is_filling(&self) -> bool {
        !self.filling.is_empty()
    }

    /// True if a page waits that takes no more.
    #[must_use]
    pub fn has_full_page(&self) -> bool {
        !self.full.is_empty()
    }

    /// The page that the next entry goes to.
    #[must_use]
    pub const fn next(&self) -> Lsn {
        self.filling_lsn
    }

    /// The oldest page that is still needed.
    #[must_use]
    pub const fn tail(&self) -> Lsn {
        self.tail
    }

    /// Pages written or being filled since the truncation.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.filling_lsn.0 - self.tail.0
    }

    /// True if something was added that is not on media.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.filling.is_empty() || !self.full.is_empty() || !self.in_flight.is_empty()
    }

    /// Pages before `lsn` are not needed any more: a checkpoint has what they say.
    ///
    /// # Panics
    /// If one of them is not on media, or the tail would go back.
    pub fn truncate(&mut self, lsn: Lsn) {
        assert!(self.tail <= lsn, "the tail of the log goes back");
        assert!(lsn <= self.durable, "page {} is truncated before it is on media", lsn.0);
        self.tail = lsn;
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        assert!(self.tail <= self.durable && self.durable <= self.filling_lsn, "{:?}", self.config);
        let numbered = self.full.iter().map(|page| page.0);
        assert!(numbered.is_sorted(), "full pages are out of order");
        let first = self.in_flight.first_key_value().map(|(&lsn, _)| lsn);
        let oldest = first.or(self.full.front().map(|page| page.0));
        assert!(oldest.is_none_or(|oldest| oldest >= self.durable), "a page in flight is called durable");
        assert!(self.pages() <= u64::from(self.config.pages_max), "the log outgrew its bound");
    }
}
