//! Who changes a sector when: changes of the same sector happen one after the other, in the order they came.
//!
//! Between the read and the write of a merge nothing else may change the sector. So a change waits for every earlier one
//! that touches one of its sectors; only whole changes follow each other at once, because the inner target takes them in
//! order. Deliberately not here: reads, which wait for nobody, and what a change is.

use ocssd_base::SlabKey;
use std::ops::Range;

/// A change that is not over.
#[derive(Clone, Debug)]
struct Entry {
    key: SlabKey,
    sectors: Range<u64>,
    /// No part of a sector: nothing is read before it is written.
    is_whole: bool,
    /// Nothing holds it up any more.
    has_begun: bool,
    /// Earlier changes it waits for.
    blockers: u32,
}

impl Entry {
    fn touches(&self, other: &Self) -> bool {
        self.sectors.start < other.sectors.end && other.sectors.start < self.sectors.end
    }

    /// Whether a later change has to wait for this one as it is now.
    fn holds_up(&self, later: &Self) -> bool {
        self.touches(later) && !(self.is_whole && self.has_begun && later.is_whole)
    }
}

/// All changes in the order they came. Every call costs a look at all of them.
#[derive(Clone, Debug)]
pub(super) struct Order {
    entries: Vec<Entry>,
}

impl Order {
    /// For at most `capacity` changes at once.
    pub fn new(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity) }
    }

    /// A change came; true if it may begin now.
    pub fn arrive(&mut self, key: SlabKey, sectors: Range<u64>, is_whole: bool) -> bool {
        assert!(!sectors.is_empty(), "a change of nothing waits for nobody");
        assert!(self.entries.len() < self.entries.capacity(), "more changes than places");
        let mut entry = Entry { key, sectors, is_whole, has_begun: false, blockers: 0 };
        let blockers = self.entries.iter().filter(|earlier| earlier.holds_up(&entry)).count();
        entry.blockers = u32::try_from(blockers).expect("as many as requests");
        entry.has_begun = blockers == 0;
        self.entries.push(entry);
        blockers == 0
    }

    /// A change is over; `begin` is called for each that may begin now, oldest first.
    pub fn leave(&mut self, key: SlabKey, mut begin: impl FnMut(SlabKey)) {
        let place = self.entries.iter().position(|entry| entry.key == key);
        let place = place.expect("a change ends that never came");
        let over = self.entries.remove(place);
        assert!(over.has_begun && over.blockers == 0, "a change ended that had not begun");
        // Whole ones stopped waiting for this one when it began.
        self.release(place, &mut begin, |entry| over.touches(entry) && !(over.is_whole && entry.is_whole));
    }

    /// Takes one blocker from every change from `from` on for which `waited` holds.
    fn release(&mut self, from: usize, begin: &mut impl FnMut(SlabKey), waited: impl Fn(&Entry) -> bool) {
        let mut begun: Vec<usize> = Vec::new();
        for place in from..self.entries.len() {
            let entry = &mut self.entries[place];
            if waited(entry) {
                assert!(entry.blockers > 0, "change {} waited for nobody", entry.key.0);
                entry.blockers -= 1;
                if entry.blockers == 0 {
                    begun.push(place);
                }
            }
        }
        for place in begun {
            self.begin(place, begin);
        }
    }

    /// A change begins after it had waited; later whole ones need not wait for it any more if it is whole.
    fn begin(&mut self, place: usize, begin: &mut impl FnMut(SlabKey)) {
        let entry = &mut self.entries[place];
        assert!(!std::mem::replace(&mut entry.has_begun, true), "a change begins twice");
        let entry = entry.clone();
        begin(entry.key);
        if entry.is_whole {
            self.release(place + 1, begin, |later| later.is_whole && entry.touches(later));
        }
    }

    /// Changes that are not over.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Asserts that who waits has someone to wait for, and who does not has begun.
    pub fn check(&self) {
        for (place, entry) in self.entries.iter().enumerate() {
            let blockers = self.entries[..place].iter().filter(|earlier| earlier.holds_up(entry)).count();
            assert_eq!(u32::try_from(blockers), Ok(entry.blockers), "blockers of change {}", entry.key.0);
            assert_eq!(entry.has_begun, blockers == 0, "change {} has begun", entry.key.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    fn leave(order: &mut Order, key: u32) -> Vec<u32> {
        let mut begun = Vec::new();
        order.leave(SlabKey(key), |key| begun.push(key.0));
        order.check();
        begun
    }

    #[test]
    fn changes_of_a_sector_follow_each_other_and_others_do_not_wait() {
        let mut order = Order::new(8);
        assert!(order.arrive(SlabKey(0), 5..6, false));
        assert!(!order.arrive(SlabKey(1), 5..6, false));
        assert!(!order.arrive(SlabKey(2), 4..7, true), "it waits for both");
        assert!(!order.arrive(SlabKey(3), 6..9, false), "behind the one that waits, though sector 6 is free");
        assert!(order.arrive(SlabKey(4), 0..4, true));
        order.check();
        assert_eq!(leave(&mut order, 0), [1]);
        assert_eq!(leave(&mut order, 1), [2]);
        assert_eq!(leave(&mut order, 2), [3]);
        assert_eq!((leave(&mut order, 3), leave(&mut order, 4), order.len()), (vec![], vec![], 0));
    }

    #[test]
    fn whole_changes_follow_at_once_but_not_past_one_that_waits() {
        let mut order = Order::new(8);
        assert!(order.arrive(SlabKey(0), 0..8, true));
        assert!(order.arrive(SlabKey(1), 0..8, true), "the inner target keeps their order");
        assert!(!order.arrive(SlabKey(2), 3..4, false), "a merge waits for both");
        assert!(!order.arrive(SlabKey(3), 3..5, true));
        assert!(!order.arrive(SlabKey(4), 4..6, true), "it would pass the one before it");
        order.check();
        assert_eq!(leave(&mut order, 1), [0; 0]);
        assert_eq!(leave(&mut order, 0), [2]);
        assert_eq!(leave(&mut order, 2), [3, 4]);
    }

    #[test]
    fn whatever_comes_everyone_begins_once_and_in_order() {
        for seed in 0..30 {
            let mut prng = Prng::new(seed);
            let mut order = Order::new(12);
            let (mut active, mut waiting): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            let mut next = 0;
            for _ in 0..400 {
                let room = active.len() + waiting.len() < 12;
                if room && (active.is_empty() || prng.below(2) == 0) {
                    let first = prng.below(6);
                    let sectors = first..first + 1 + prng.below(3);
                    let free = order.arrive(SlabKey(next), sectors, prng.below(2) == 0);
                    if free {
                        active.push(next)
                    } else {
                        waiting.push(next)
                    }
                    next += 1;
                } else {
                    let chosen = usize::try_from(prng.below(active.len() as u64)).expect("few");
                    let key = active.swap_remove(chosen);
                    for begun in leave(&mut order, key) {
                        let place = waiting.iter().position(|&other| other == begun);
                        waiting.remove(place.unwrap_or_else(|| panic!("seed {seed}: {begun} begins twice")));
                        active.push(begun);
                    }
                }
                order.check();
                assert!(!active.is_empty() || waiting.is_empty(), "seed {seed}: all wait for each other");
            }
        }
    }
}
