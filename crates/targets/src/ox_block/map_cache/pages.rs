//! Pages of the map: which are in memory, which changed there, and where each lies on media.
//!
//! A page is in memory or not; if it is, it may have changed since it was written; and it may be on its way to media, in a buffer
//! unit or programmed and not logged, in which case it is not written again before that is over. Who leaves memory is found as a
//! clock does. Deliberately not here: entries (`ocssd_ftl::L2p`, a shard for each page), reads and writes.

use crate::ox::write_buffer::BufferUnitId;
use ocssd_base::usize_of;
use ocssd_ftl::{PhysicalAddress, ShardSize};
use std::collections::BTreeMap;

/// Nothing of a page is on media: all of it is nowhere unless memory has it.
const NO_HOME: u64 = u64::MAX;

/// A page of the map, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageNumber(pub u32);

impl PageNumber {
    pub fn index(self) -> usize {
        usize_of(self.0)
    }
}

/// A page on its way to media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    pub buffer_unit: BufferUnitId,
    /// Which sector of the buffer unit it is.
    pub offset: u32,
    /// Where it was programmed.
    pub place: Option<PhysicalAddress>,
}

/// What memory knows of a page.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_here: bool,
    /// It changed since it was written.
    is_changed: bool,
    /// It was looked up since the clock passed.
    is_used: bool,
    /// It was read for whoever looks it up first.
    is_fresh: bool,
    /// It is read, or waits to be.
    is_asked: bool,
    /// Transactions that are ready to be logged, or are and did not change it yet.
    pins: u32,
}

/// What the clock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It left memory: its entries are on media.
    Gone(PageNumber),
    /// It must be written before.
    ToWrite(PageNumber),
}

/// All pages.
#[derive(Clone, Debug)]
pub struct MapPages {
    size: ShardSize,
    /// Places on media, in order of pages.
    homes: Vec<u64>,
    states: Vec<State>,
    /// Pages in memory, in no order, and where the clock stands.
    here: Vec<PageNumber>,
    hand: usize,
    asked: usize,
    writing: BTreeMap<PageNumber, Writing>,
    /// Pages that may be in memory beside those that the front of each queue needs.
    most: usize,
}

impl MapPages {
    /// Pages of `size` blocks each for `blocks` blocks: nothing of any is on media or in memory.
    pub fn new(blocks: u64, size: ShardSize, most: usize) -> Self {
        let count = pages_of(blocks, size);
        assert!(count > 0 && most > 0, "{count} pages, of which {most} may be in memory");
        Self {
            size,
            homes: vec![NO_HOME; usize_of(count)],
            states: vec![State::default(); usize_of(count)],
            here: Vec::new(),
            hand: 0,
            asked: 0,
            writing: BTreeMap::new(),
            most,
        }
    }

    /// Blocks of a page.
    pub const fn size(&self) -> ShardSize {
        self.size
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.homes.len()).expect("fewer pages than 2^32")
    }

    /// The page of a block.
    pub fn page_of(&self, block: u64) -> PageNumber {
        let page = PageNumber(u32::try_from(block >> self.size.bits()).expect("fewer pages than 2^32"));
        assert!(page.index() < self.homes.len(), "block {block} is on {page:?} of {}", self.homes.len());
        page
    }

    fn state(&mut self, page: PageNumber) -> &mut State {
        &mut self.states[page.index()]
    }

    /// True if the entries of a page are in memory.
    pub fn is_here(&self, page: PageNumber) -> bool {
        self.states[page.index()].is_here
    }

    pub fn is_changed(&self, page: PageNumber) -> bool {
        self.states[page.index()].is_changed
    }

    pub fn is_asked(&self, page: PageNumber) -> bool {
        self.states[page.index()].is_asked
    }

    /// A page that is in memory is looked up: true if it was read for that.
    pub fn look_up(&mut self, page: PageNumber) -> bool {
        let state = self.state(page);
        assert!(state.is_here, "{page:?} is looked up and is not in memory");
        state.is_used = true;
        std::mem::take(&mut state.is_fresh)
    }

    /// Where a page lies that is durable.
    pub fn home(&self, page: PageNumber) -> Option<PhysicalAddress> {
        let home = self.homes[page.index()];
        (home != NO_HOME).then_some(PhysicalAddress(home))
    }

    /// A page lies somewhere else from now on: where it was before.
    pub fn move_home(&mut self, page: PageNumber, to: PhysicalAddress) -> Option<PhysicalAddress> {
        assert!(to.0 != NO_HOME, "{page:?} moves to no place");
        let before = self.home(page);
        assert!(before != Some(to), "{page:?} is written over itself");
        self.homes[page.index()] = to.0;
        before
    }

    /// Nothing of a page is on media.
    pub fn forget_home(&mut self, page: PageNumber) {
        assert!(self.home(page).is_some(), "nothing of {page:?} is on media");
        self.homes[page.index()] = NO_HOME;
    }

    /// A page that did not change leaves memory; false if it must stay. Of one that came last.
    pub fn leave(&mut self, page: PageNumber) -> bool {
        let may_leave = self.here.last() == Some(&page) && !self.is_changed(page);
        if may_leave {
            self.here.pop();
            self.state(page).is_here = false;
        }
        may_leave
    }

    /// Places of pages on media, with their pages.
    pub fn homes(&self) -> impl Iterator<Item = (PageNumber, PhysicalAddress)> {
        let all = (0..).map(PageNumber).zip(&self.homes);
        all.filter(|&(_, &home)| home != NO_HOME).map(|(page, &home)| (page, PhysicalAddress(home)))
    }

    /// A page on its way to media.
    pub fn writing(&self, page: PageNumber) -> Option<Writing> {
        self.writing.get(&page).copied()
    }

    /// All of them.
    pub fn all_writing(&self) -> impl Iterator<Item = (PageNumber, Writing)> {
        self.writing.iter().map(|(&page, &writing)| (page, writing))
    }

    /// A page that changed is on its way, as it is now.
    pub fn begin_write(&mut self, page: PageNumber, buffer_unit: BufferUnitId, offset: u32) {
        assert!(self.is_here(page), "{page:?} is written and is not in memory");
        let before = self.writing.insert(page, Writing { buffer_unit, offset, place: None });
        assert!(before.is_none(), "{page:?} is written twice at a time: {before:?}");
        self.state(page).is_changed = false;
    }

    /// A page was programmed, and is to be logged.
    pub fn programmed(&mut self, page: PageNumber, place: PhysicalAddress) {
        let writing = self.writing.get_mut(&page).expect("it was on its way");
        assert!(writing.place.is_none(), "{page:?} was programmed twice: {writing:?}");
        writing.place = Some(place);
    }

    /// A page that was programmed is durable.
    pub fn end_write(&mut self, page: PageNumber) {
        let writing = self.writing.remove(&page);
        assert!(
            writing.is_some_and(|writing| writing.place.is_some()),
            "{page:?} was not programmed: {writing:?}"
        );
    }

    /// The entries of a page are in memory from now on.
    pub fn arrived(&mut self, page: PageNumber, is_fresh: bool) {
        self.here.push(page);
        let state = self.state(page);
        assert!(!state.is_here && state.pins == 0, "{page:?} is in memory twice");
        // The clock passes it once, so that who asked for it finds it.
        (state.is_here, state.is_fresh, state.is_used) = (true, is_fresh, true);
    }

    /// A page is read from now on.
    pub fn ask(&mut self, page: PageNumber) {
        assert!(!self.is_here(page) && !self.is_asked(page), "{page:?} is read, and there or read already");
        self.state(page).is_asked = true;
        self.asked += 1;
    }

    /// A page is read no more.
    pub fn answered(&mut self, page: PageNumber) {
        assert!(self.is_asked(page) && self.asked > 0, "{page:?} was not asked for");
        self.state(page).is_asked = false;
        self.asked -= 1;
    }

    /// Pages in memory and on their way there.
    pub const fn taken(&self) -> usize {
        self.here.len() + self.asked
    }

    /// Pages in memory.
    pub const fn here(&self) -> usize {
        self.here.len()
    }

    /// Pages that may be in memory beside those that the front of each queue needs.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// Entries of a page changed.
    pub fn changed(&mut self, page: PageNumber) {
        let state = self.state(page);
        assert!(state.is_here, "{page:?} changed and is not in memory");
        state.is_changed = true;
    }

    /// A page must stay.
    pub fn pin(&mut self, page: PageNumber) {
        let state = self.state(page);
        assert!(state.is_here, "{page:?} must stay and is not in memory");
        state.pins += 1;
    }

    /// One reason less.
    pub fn unpin(&mut self, page: PageNumber) {
        let state = self.state(page);
        assert!(state.pins > 0, "{page:?} is held by nobody");
        state.pins -= 1;
    }

    /// No transaction will change anything.
    pub fn unpin_all(&mut self) {
        self.states.iter_mut().for_each(|state| state.pins = 0);
    }

    /// The next page that may leave memory, as a clock finds it: of those that were not looked up for a round. A page that changed
    /// may be written if `may_write` says so. None if there is none within two rounds.
    pub fn next_leaving(&mut self, may_write: bool, stays: impl Fn(PageNumber) -> bool) -> Option<Leaving> {
        for _ in 0..2 * self.here.len() {
            self.hand = if self.hand < self.here.len() { self.hand } else { 0 };
            let page = self.here[self.hand];
            let is_writing = self.writing.contains_key(&page);
            let state = self.state(page);
            assert!(state.is_here, "the clock has {page:?}, which is not in memory");
            let may_leave = state.pins == 0 && !std::mem::take(&mut state.is_used) && !stays(page);
            if may_leave && !state.is_changed {
                (state.is_here, state.is_fresh) = (false, false);
                self.here.swap_remove(self.hand);
                return Some(Leaving::Gone(page));
            }
            if may_leave && may_write && !is_writing {
                // It leaves when the clock is asked again.
                return Some(Leaving::ToWrite(page));
            }
            self.hand += 1;
        }
        None
    }

    /// Asserts what holds between calls. Cost: all pages.
    pub fn check(&self) {
        assert_eq!(self.states.iter().filter(|state| state.is_here).count(), self.here.len());
        assert_eq!(self.states.iter().filter(|state| state.is_asked).count(), self.asked);
        assert!(self.here.iter().all(|&page| self.is_here(page)), "a page is listed that is not in memory");
        let is_gone_and_pinned = |state: &State| !state.is_here && (state.pins > 0 || state.is_changed);
        assert!(!self.states.iter().any(is_gone_and_pinned), "a page left that must stay, or that changed");
    }
}

/// Pages of `size` blocks that a map of `blocks` has.
pub fn pages_of(blocks: u64, size: ShardSize) -> u32 {
    u32::try_from(blocks.div_ceil(size.sectors())).expect("fewer pages than 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(most: usize) -> MapPages {
        MapPages::new(32 * 9 + 1, ShardSize::new(32).expect("the smallest"), most)
    }

    #[test]
    fn the_clock_passes_what_was_looked_up_and_what_must_stay() {
        let mut pages = pages(4);
        assert_eq!((pages.count(), pages.page_of(32 * 9)), (10, PageNumber(9)));
        for page in (0..4).map(PageNumber) {
            pages.arrived(page, true);
        }
        assert!(pages.look_up(PageNumber(0)), "it was read for this");
        assert!(!pages.look_up(PageNumber(0)), "it was there");
        pages.pin(PageNumber(1));
        pages.changed(PageNumber(2));
        assert_eq!(pages.next_leaving(false, |_| false), Some(Leaving::Gone(PageNumber(0))));
        assert_eq!(pages.next_leaving(true, |_| false), Some(Leaving::Gone(PageNumber(3))));
        assert_eq!(pages.next_leaving(true, |_| false), Some(Leaving::ToWrite(PageNumber(2))));
        pages.begin_write(PageNumber(2), BufferUnitId(7), 3);
        pages.changed(PageNumber(2));
        assert_eq!(pages.next_leaving(true, |_| false), None, "it is written already, and changed since");
        pages.programmed(PageNumber(2), PhysicalAddress(40));
        assert_eq!(pages.writing(PageNumber(2)).and_then(|writing| writing.place), Some(PhysicalAddress(40)));
        assert_eq!(pages.move_home(PageNumber(2), PhysicalAddress(40)), None);
        pages.end_write(PageNumber(2));
        assert_eq!(pages.next_leaving(true, |_| false), Some(Leaving::ToWrite(PageNumber(2))));
        pages.unpin(PageNumber(1));
        assert_eq!(pages.next_leaving(false, |page| page == PageNumber(1)), None);
        assert_eq!(pages.next_leaving(false, |_| false), Some(Leaving::Gone(PageNumber(1))));
        assert_eq!(
            (pages.here(), pages.homes().collect::<Vec<_>>()),
            (1, vec![(PageNumber(2), PhysicalAddress(40))])
        );
        pages.check();
    }

    #[test]
    fn a_page_that_is_asked_for_counts_until_it_is_answered() {
        let mut pages = pages(2);
        pages.ask(PageNumber(5));
        assert_eq!((pages.taken(), pages.here(), pages.is_asked(PageNumber(5))), (1, 0, true));
        pages.answered(PageNumber(5));
        pages.arrived(PageNumber(5), false);
        assert_eq!((pages.taken(), pages.here(), pages.most()), (1, 1, 2));
        pages.check();
    }
}
