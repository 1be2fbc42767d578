//! Which page a key is on: pages by their lower bounds, in order, in groups of a few hundred.
//!
//! A search compares the first eight bytes of bounds as numbers that lie side by side, and looks at whole bounds only where these
//! are equal: first among the groups, then in one. A page more or less moves the bounds of a group. Deliberately not here: what a
//! page holds.

use crate::kv::key_bytes::{KeyBytes, first_word};

/// Pages of a group at most (chosen: the numbers of one are a page of memory, and to make room for one more costs as much as some
/// searches).
const GROUP_MAX: usize = 512;

/// Pages side by side.
#[derive(Clone, Debug)]
struct Group<S> {
    /// The first eight bytes of each lower bound.
    words: Vec<u64>,
    lowers: Vec<KeyBytes>,
    slots: Vec<S>,
}

impl<S> Group<S> {
    fn pairs(&self, from: usize) -> impl Iterator<Item = (&KeyBytes, &S)> {
        self.lowers[from..].iter().zip(&self.slots[from..])
    }

    fn pairs_mut(&mut self, from: usize) -> impl Iterator<Item = (&KeyBytes, &mut S)> {
        self.lowers[from..].iter().zip(&mut self.slots[from..])
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    group: usize,
    nth: usize,
}

/// Pages in the order of their lower bounds, of which the first is empty: so every key is on one.
#[derive(Clone, Debug)]
pub struct Directory<S> {
    /// The first eight bytes of the first bound of each group.
    heads: Vec<u64>,
    groups: Vec<Group<S>>,
    pages: usize,
}

/// How many of so many bounds in order are not above a key. `word` gives the first bytes of one, `lower` all of them.
fn not_above<'a>(
    key: &[u8],
    count: usize,
    word: impl Fn(usize) -> u64,
    lower: impl Fn(usize) -> &'a [u8],
) -> usize {
    let first = first_word(key);
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        let found = word(middle);
        let is_above = found > first || found == first && lower(middle) > key;
        (low, high) = if is_above { (low, middle) } else { (middle + 1, high) };
    }
    low
}

impl<S> Directory<S> {
    /// One page, for all keys.
    pub fn new(slot: S) -> Self {
        let group = Group { words: vec![0], lowers: vec![KeyBytes::default()], slots: vec![slot] };
        Self { heads: vec![0], groups: vec![group], pages: 1 }
    }

    /// Pages.
    pub const fn len(&self) -> usize {
        self.pages
    }

    /// The page that a key is on. Cost: a dozen comparisons of numbers for a thousand pages.
    pub fn find(&self, key: &[u8]) -> At {
        let (heads, groups) = (&self.heads, &self.groups);
        let before = not_above(key, heads.len(), |nth| heads[nth], |nth| &groups[nth].lowers[0]);
        assert!(before > 0, "the first bound is empty");
        let Group { words, lowers, .. } = &groups[before - 1];
        let nth = not_above(key, words.len(), |nth| words[nth], |nth| &lowers[nth]);
        assert!(nth > 0, "a group begins with its least bound");
        At { group: before - 1, nth: nth - 1 }
    }

    /// A page.
    pub fn get(&self, at: At) -> &S {
        &self.groups[at.group].slots[at.nth]
    }

    /// A page, to change.
    pub fn get_mut(&mut self, at: At) -> &mut S {
        &mut self.groups[at.group].slots[at.nth]
    }

    /// The lower bound of a page.
    pub fn lower(&self, at: At) -> &KeyBytes {
        &self.groups[at.group].lowers[at.nth]
    }

    /// The page before one; `None` of the first.
    pub fn before(&self, At { group, nth }: At) -> Option<At> {
        match nth.checked_sub(1) {
            Some(nth) => Some(At { group, nth }),
            None => group.checked_sub(1).map(|group| At { group, nth: self.groups[group].slots.len() - 1 }),
        }
    }

    /// Pages from one on, in order, with their bounds.
    pub fn pairs_from(&self, at: At) -> impl Iterator<Item = (&KeyBytes, &S)> {
        let (first, rest) = self.groups[at.group..].split_first().expect("a page is in a group");
        first.pairs(at.nth).chain(rest.iter().flat_map(|group| group.pairs(0)))
    }

    /// The same, to change.
    pub fn pairs_from_mut(&mut self, at: At) -> impl Iterator<Item = (&KeyBytes, &mut S)> {
        let (first, rest) = self.groups[at.group..].split_first_mut().expect("a page is in a group");
        first.pairs_mut(at.nth).chain(rest.iter_mut().flat_map(|group| group.pairs_mut(0)))
    }

    /// All pages with their bounds.
    pub fn iter(&self) -> impl Iterator<Item = (&KeyBytes, &S)> {
        self.groups.iter().flat_map(|group| group.pairs(0))
    }

    /// All pages, to change.
    pub fn slots_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.groups.iter_mut().flat_map(|group| &mut group.slots)
    }

    /// A page with a bound of its own. Cost: a group is moved, and now and then divided.
    pub fn insert(&mut self, lower: KeyBytes, slot: S) {
        let At { group, nth } = self.find(&lower);
        let of = &mut self.groups[group];
        assert!(of.lowers[nth] < lower, "two pages begin with one key");
        of.words.insert(nth + 1, first_word(&lower));
        of.lowers.insert(nth + 1, lower);
        of.slots.insert(nth + 1, slot);
        self.pages += 1;
        if of.slots.len() > GROUP_MAX {
            let half = of.slots.len() / 2;
            let upper = Group {
                words: of.words.split_off(half),
                lowers: of.lowers.split_off(half),
                slots: of.slots.split_off(half),
            };
            self.heads.insert(group + 1, upper.words[0]);
            self.groups.insert(group + 1, upper);
        }
    }

    /// A page is gone; its keys are on the one before.
    pub fn remove(&mut self, At { group, nth }: At) {
        assert!(group > 0 || nth > 0, "the first page goes");
        let of = &mut self.groups[group];
        of.words.remove(nth);
        of.lowers.remove(nth);
        of.slots.remove(nth);
        self.pages -= 1;
        match of.words.first() {
            Some(&word) => self.heads[group] = word,
            None => {
                self.groups.remove(group);
                self.heads.remove(group);
            }
        }
    }

    /// Asserts that bounds are in order.
    pub fn check(&self) {
        let lowers: Vec<&KeyBytes> = self.iter().map(|(lower, _)| lower).collect();
        assert_eq!(lowers.len(), self.pages, "pages are counted wrong");
        assert!(lowers.is_sorted_by(|low, high| low < high), "bounds are out of order");
        assert!(lowers.first().is_some_and(|first| first.is_empty()), "some keys are on no page");
        assert_eq!(self.heads.len(), self.groups.len(), "groups are counted wrong");
        for (head, group) in self.heads.iter().zip(&self.groups) {
            let words: Vec<u64> = group.lowers.iter().map(|lower| first_word(lower)).collect();
            assert_eq!((words.first(), &words), (Some(head), &group.words), "first bytes are noted wrong");
            assert!(group.slots.len() <= GROUP_MAX, "a group of {} pages", group.slots.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    /// Keys of which many begin with the same eight bytes.
    fn drawn(prng: &mut Prng) -> Vec<u8> {
        let prefix: &[u8] = if prng.below(2) == 0 { b"a common prefix" } else { b"" };
        let tail = prng.next_u64().to_be_bytes();
        let length = usize::try_from(prng.below(5)).expect("short");
        [prefix, &tail[..length]].concat()
    }

    #[test]
    fn a_key_is_on_the_page_that_a_sorted_map_finds() {
        let seed = 7;
        let mut prng = Prng::new(seed);
        let (mut directory, mut model) = (Directory::new(0), BTreeMap::from([(Vec::new(), 0)]));
        for round in 1..6_000 {
            let key = drawn(&mut prng);
            let expected = model.range(..=key.clone()).next_back().expect("the first bound is empty");
            let at = directory.find(&key);
            assert_eq!((directory.lower(at).to_vec(), *directory.get(at)), (expected.0.clone(), *expected.1));
            let before = model.range(..expected.0.clone()).next_back().map(|(_, &page)| page);
            assert_eq!(directory.before(at).map(|at| *directory.get(at)), before, "seed {seed}, {round}");
            let is_bound = *expected.0 == key;
            if is_bound && !key.is_empty() && prng.below(3) > 0 {
                directory.remove(at);
                model.remove(&key);
            } else if !is_bound && (round < 3_000 || prng.below(4) == 0) {
                directory.insert(KeyBytes::from(&key[..]), round);
                model.insert(key, round);
            }
            if round % 500 == 0 {
                directory.check();
                let all = directory.iter().map(|(lower, &page)| (lower.to_vec(), page));
                assert!(all.eq(model.iter().map(|(lower, &page)| (lower.clone(), page))), "seed {seed}");
            }
        }
        assert!(directory.groups.len() > 2, "{} pages are in one group", directory.len());
        let at = directory.find(b"a common prefix");
        let lower = directory.lower(at).to_vec();
        assert!(
            directory.pairs_from(at).map(|(_, &page)| page).eq(model.range(lower..).map(|(_, &page)| page))
        );
        assert_eq!(directory.pairs_from_mut(at).count(), directory.pairs_from(at).count());
    }

    #[test]
    fn groups_that_are_empty_are_gone() {
        let mut directory = Directory::new(());
        for key in 0..2_000_u32 {
            directory.insert(KeyBytes::from(&(key + 1).to_be_bytes()[..]), ());
        }
        assert!(directory.groups.len() > 3);
        for key in 0..2_000_u32 {
            let at = directory.find(&(key + 1).to_be_bytes());
            directory.remove(at);
        }
        directory.check();
        assert_eq!((directory.len(), directory.groups.len()), (1, 1));
    }
}
