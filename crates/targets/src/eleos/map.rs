//! What transactions do to pages and sessions, while the instance runs and in replay; and how these lie in a checkpoint.
//!
//! A move of garbage collection is applied only where the page still has what was moved; replay decides the same, because it
//! meets the same order. Deliberately not here: when a transaction is true (`ox::commit`).

use super::change::What;
use super::entry::Entry;
use super::extent::{Extent, GRAIN_BYTES, Grid, Spot, grains};
use super::live::LiveGrains;
use super::page_map::PageMap;
use super::sizes::{MAP_ENTRY_BYTES, SESSION_BYTES};
use super::store::Eleos;
use crate::ox::canary::Canary;
use crate::ox::store::Image;
use ocssd_ftl::checkpoint::{SectionName, Sections};
use ocssd_ftl::{InstanceGeometry, PhysicalAddress};
use ocssd_lightnvm::interface::log_structured::{PageId, SessionId, Wsn};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as BTreeEntry;

/// The section of pages: name and part, in order; a page with several parts has as many rows.
const PAGES: SectionName = *b"pages   ";
/// The section of sessions: name and how far each is.
const SESSIONS: SectionName = *b"sessions";

/// What recovery knows of pages and sessions.
#[derive(Clone, Debug)]
pub struct Recovered {
    grid: Grid,
    pub pages: PageMap,
    pub sessions: BTreeMap<SessionId, Wsn>,
}

/// Pages and sessions as a checkpoint has them.
pub fn encode(pages: &PageMap, sessions: &BTreeMap<SessionId, Wsn>) -> Image {
    let bytes = usize::try_from(pages.pages() * MAP_ENTRY_BYTES).expect("the map fits memory");
    let mut of_pages = Vec::with_capacity(bytes);
    pages.for_each(|page, parts| {
        for part in parts {
            of_pages.extend_from_slice(&page.0.to_le_bytes());
            of_pages.extend_from_slice(&(part.spot.0 << 24 | u64::from(part.bytes)).to_le_bytes());
        }
    });
    let row = |(session, wsn): (&SessionId, &Wsn)| [session.0.to_le_bytes(), wsn.0.to_le_bytes()].concat();
    vec![(PAGES, of_pages), (SESSIONS, sessions.iter().flat_map(row).collect())]
}

fn pairs(bytes: &[u8], what: &str) -> Result<Vec<(u64, u64)>, String> {
    assert_eq!(MAP_ENTRY_BYTES, SESSION_BYTES, "both kinds of rows are pairs");
    let (rows, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(format!(
            "rows of {what} of 16 bytes were expected, but {} bytes were found",
            bytes.len()
        ));
    }
    let half =
        |row: &[u8; 16], at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"));
    Ok(rows.iter().map(|row| (half(row, 0), half(row, 8))).collect())
}

/// Pages and sessions out of a checkpoint.
///
/// # Errors
/// A sentence, if there are none, or a page lies beyond the instance.
pub fn decode(sections: &Sections, grid: Grid, shape: &InstanceGeometry) -> Result<Recovered, String> {
    let of = |name| sections.get(name).map_err(|error| error.to_string());
    let mut recovered = Recovered::new(grid);
    let mut last = None;
    for (page, part) in pairs(of(PAGES)?, "pages")? {
        let bytes = u32::try_from(part & 0xFF_FFFF).expect("24 bits");
        let (page, extent) = (PageId(page), Extent { spot: Spot(part >> 24), bytes });
        if bytes == 0 || !fits(extent, grid, shape) {
            return Err(format!("page {} lies at {extent:?}, which is no place of the instance", page.0));
        }
        if last == Some(page) {
            recovered.pages.append(page, extent);
        } else {
            recovered.pages.begin(page, extent, &mut |_| {});
        }
        last = Some(page);
    }
    let sessions = pairs(of(SESSIONS)?, "sessions")?;
    recovered.sessions = sessions.into_iter().map(|(name, wsn)| (SessionId(name), Wsn(wsn))).collect();
    Ok(recovered)
}

/// True if a part lies within the instance.
fn fits(extent: Extent, grid: Grid, shape: &InstanceGeometry) -> bool {
    extent.bytes > 0 && extent.end().0 <= shape.places() * u64::from(grid.per_sector)
}

impl Recovered {
    /// Nothing.
    pub fn new(grid: Grid) -> Self {
        Self { grid, pages: PageMap::default(), sessions: BTreeMap::new() }
    }

    /// Makes a transaction true; false, and nothing, if it names what the instance does not have.
    pub fn replay(&mut self, entries: &[Entry], shape: &InstanceGeometry, moves_stale: bool) -> bool {
        let is_sound = |entry: &Entry| match *entry {
            Entry::First(_, extent) | Entry::Next(_, extent) => fits(extent, self.grid, shape),
            Entry::Moved(_, extent, to) => {
                fits(extent, self.grid, shape) && fits(Extent { spot: to, ..extent }, self.grid, shape)
            }
            Entry::Deleted(_) | Entry::Session(..) | Entry::Closed(_) => true,
            Entry::Commit(..) => false,
        };
        if !entries.iter().all(is_sound) {
            return false;
        }
        for entry in entries {
            match *entry {
                Entry::First(page, extent) => self.pages.begin(page, extent, &mut |_| {}),
                Entry::Next(page, extent) => drop(self.pages.append(page, extent)),
                Entry::Deleted(page) => self.pages.remove(page, &mut |_| {}),
                Entry::Moved(page, extent, to) => {
                    let is_moved = self.pages.relocate(page, extent, to);
                    if moves_stale && !is_moved {
                        self.pages.begin(page, Extent { spot: to, ..extent }, &mut |_| {});
                    }
                }
                Entry::Session(session, wsn) => drop(self.sessions.insert(session, wsn)),
                Entry::Closed(session) => drop(self.sessions.remove(&session)),
                Entry::Commit(..) => unreachable!("it was refused above"),
            }
        }
        true
    }

    /// Forgets pages of which a part lies where `keep` is false.
    pub fn retain(&mut self, keep: &dyn Fn(PhysicalAddress) -> bool) {
        let grid = self.grid;
        let is_kept = |part: &Extent| {
            let (first, byte) = grid.place(part.spot);
            (0..grid.sectors(byte, part.bytes))
                .all(|sector| keep(PhysicalAddress(first.0 + u64::from(sector))))
        };
        let mut gone = Vec::new();
        self.pages.for_each(|page, parts| {
            if !parts.iter().all(is_kept) {
                gone.push(page);
            }
        });
        gone.into_iter().for_each(|page| self.pages.remove(page, &mut |_| {}));
    }

    /// What it needs in each chunk.
    pub fn live(&self, shape: &InstanceGeometry) -> LiveGrains {
        let mut live = LiveGrains::new(shape, self.grid);
        self.pages.for_each(|page, parts| {
            for &part in parts {
                live.add(page, part);
            }
        });
        live
    }
}

impl Eleos {
    /// How spots lie in the instance.
    pub(super) const fn grid(&self) -> Grid {
        self.space.live.grid()
    }

    /// A transaction is true.
    pub(super) fn apply_entries(&mut self, entries: &[Entry]) {
        for entry in entries {
            match *entry {
                Entry::First(page, extent) => {
                    let mut old = std::mem::take(&mut self.store.old);
                    self.store.map.begin(page, extent, &mut |part| old.push(part));
                    self.forget_parts(old);
                    self.part_is_true(page, extent);
                }
                Entry::Next(page, extent) => {
                    let is_there = self.store.map.append(page, extent);
                    assert!(is_there, "page {} goes on before it begins", page.0);
                    self.part_is_true(page, extent);
                }
                Entry::Deleted(page) => {
                    let mut old = std::mem::take(&mut self.store.old);
                    self.store.map.remove(page, &mut |part| old.push(part));
                    self.forget_parts(old);
                }
                Entry::Moved(page, from, to) => self.apply_move(page, from, to),
                Entry::Session(session, wsn) => {
                    self.store.durable_sessions.insert(session, wsn);
                    self.change_is_durable();
                }
                Entry::Closed(session) => {
                    self.store.durable_sessions.remove(&session);
                    self.change_is_durable();
                }
                Entry::Commit(..) => unreachable!("a commit is no change"),
            }
        }
    }

    fn part_is_true(&mut self, page: PageId, extent: Extent) {
        let chunk = self.space.live.add(page, extent);
        self.space.changed(chunk);
        self.space.unpin(chunk, 1);
        self.look_at(chunk);
    }

    fn apply_move(&mut self, page: PageId, from: Extent, to: Spot) {
        let (source, chunk) = (self.grid().chunk(from.spot), self.grid().chunk(to));
        assert!(from.bytes > 0, "nothing of page {} is moved", page.0);
        assert!(source != chunk, "chunk {} is copied to itself", chunk.0);
        self.space.unpin(chunk, 1);
        if self.store.map.relocate(page, from, to) {
            self.space.live.relocated(page, from, Extent { spot: to, ..from }, self.applied.0);
            self.space.changed(source);
            self.space.changed(chunk);
        } else {
            self.stats.gc_lost_races += 1;
        }
        self.space.let_go(source);
        self.look_at(chunk);
        self.look_at(source);
    }

    /// Parts that a page had are not needed any more. Their list is kept for the next.
    fn forget_parts(&mut self, mut old: Vec<Extent>) {
        for part in old.drain(..) {
            let chunk = self.space.live.remove(part, self.applied.0);
            self.space.changed(chunk);
            if self.space.live_count(chunk) == 0 {
                self.look_at(chunk);
            }
        }
        assert!(self.store.old.is_empty(), "parts of two pages are forgotten at once");
        self.store.old = old;
    }

    /// The oldest change is durable: what it holds in memory is not needed any more.
    fn change_is_durable(&mut self) {
        let (number, change) = self.store.changes.pop();
        assert!(
            number > self.store.answerable || self.has_canary(Canary::AnsweredBeforeCommit),
            "{number:?}"
        );
        for row in &change.rows {
            if let BTreeEntry::Occupied(newest) = self.store.newest.entry(row.page)
                && newest.get().number == number
            {
                newest.remove();
            }
        }
        let session = self.store.sessions.get_mut(&change.session);
        if let (What::Flushed(wsn), Some(session)) = (change.what, session)
            && session.life == change.life
        {
            assert!(session.durable < wsn && wsn <= session.applied, "{session:?} went to {wsn:?}");
            session.durable = wsn;
        }
    }

    /// Asserts what must hold between calls. Cost: all pages.
    pub(super) fn check_pages(&self) {
        let store = &self.store;
        store.map.check();
        store.changes.check();
        let mut by_chunk = BTreeMap::<u32, u64>::new();
        store.map.for_each(|_, parts| {
            for part in parts {
                *by_chunk.entry(self.grid().chunk(part.spot).0).or_default() += u64::from(grains(part.bytes));
            }
        });
        assert_eq!(by_chunk.values().sum::<u64>(), self.space.live.total(), "pages and grains disagree");
        for (&chunk, &count) in &by_chunk {
            let found = self.space.live_count(ocssd_ftl::ChunkIndex(chunk));
            assert_eq!(found, count, "chunk {chunk} has other grains than its pages");
        }
        let (mut pages, mut bytes) = (store.map.pages(), store.map.live_bytes());
        for (&page, newest) in &store.newest {
            let before = store.map.bytes(page);
            pages = pages + u64::from(newest.bytes > 0) - u64::from(before.is_some());
            bytes = bytes + u64::from(newest.bytes) - u64::from(before.unwrap_or(0));
            assert!(newest.number > store.changes.durable(), "page {} is held for a durable flush", page.0);
        }
        assert!(
            store.sessions.values().all(|session| session.durable <= session.applied),
            "a session goes back"
        );
        assert_eq!((pages, bytes), (store.pages, store.bytes), "what is stored is counted wrong");
    }
}

const _: () = assert!(GRAIN_BYTES == 64, "a checkpoint counts in grains of 64 bytes");
