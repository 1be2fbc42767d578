//! A number for each name, in 8 bytes where names are neighbours.
//!
//! Names are kept in leaves of 256 neighbours: a few as a sorted list, more as an array. Leaves that follow each other from name 0
//! on, as those of a page table do, are found by an index, others by a tree; when leaves come in between, those of the tree follow.
//! Memory: 8 bytes a name where names are dense; some 100 where each stands alone. Deliberately not here: what a number means.

use std::collections::BTreeMap;

/// Names of a leaf.
const LEAF_PAGES: usize = 256;
/// Names from which on a leaf is an array (chosen: its list would be half as long).
const FEW_MAX: usize = 64;
/// The number of a name that has none.
pub const NOTHING: u64 = u64::MAX;

#[derive(Clone, Debug)]
enum Leaf {
    /// Names within the leaf, in order, each with its number.
    Few(Vec<(u8, u64)>),
    /// A number for each name, and how many names have one.
    All(Box<[u64; LEAF_PAGES]>, u32),
}

impl Leaf {
    fn get(&self, name: u8) -> u64 {
        match self {
            Self::Few(list) => {
                list.binary_search_by_key(&name, |&(name, _)| name).map_or(NOTHING, |at| list[at].1)
            }
            Self::All(array, _) => array[usize::from(name)],
        }
    }

    fn set(&mut self, name: u8, number: u64) {
        match self {
            Self::Few(list) => match list.binary_search_by_key(&name, |&(name, _)| name) {
                Ok(at) if number == NOTHING => drop(list.remove(at)),
                Ok(at) => list[at].1 = number,
                Err(_) if number == NOTHING => {}
                Err(at) => {
                    list.insert(at, (name, number));
                    if list.len() > FEW_MAX {
                        let mut array = Box::new([NOTHING; LEAF_PAGES]);
                        list.iter().for_each(|&(name, number)| array[usize::from(name)] = number);
                        let count = u32::try_from(list.len()).expect("at most 256");
                        *self = Self::All(array, count);
                    }
                }
            },
            Self::All(array, count) => {
                let before = std::mem::replace(&mut array[usize::from(name)], number);
                *count += u32::from(before == NOTHING && number != NOTHING);
                *count -= u32::from(before != NOTHING && number == NOTHING);
            }
        }
    }

    const fn is_empty(&self) -> bool {
        match self {
            Self::Few(list) => list.is_empty(),
            Self::All(_, count) => *count == 0,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Few(list) => list.capacity() * size_of::<(u8, u64)>(),
            Self::All(..) => size_of::<[u64; LEAF_PAGES]>(),
        }
    }
}

/// Leaves that may be found by an index before any is there, and for each that is (chosen: an index that is filled to a quarter
/// takes as much memory as a tree).
const NEAR_MIN: usize = 64;
const NEAR_PER_LEAF: usize = 4;

/// Numbers by name.
#[derive(Clone, Debug, Default)]
pub struct Leaves {
    /// Every leaf before this list's end, empty ones too.
    near: Vec<Leaf>,
    /// Leaves behind it, none of them empty.
    far: BTreeMap<u64, Leaf>,
    /// Leaves that are not empty.
    count: usize,
}

/// The leaf of a name, and the name within it.
const fn split(name: u64) -> (u64, u8) {
    (name >> 8, name.to_le_bytes()[0])
}

/// Which of the near leaves it is, if there are so many.
fn near_index(leaf: u64, end: usize) -> Option<usize> {
    usize::try_from(leaf).ok().filter(|&index| index < end)
}

impl Leaves {
    /// The number of a name. Cost: two cache misses where names are dense.
    pub fn get(&self, name: u64) -> u64 {
        let (leaf, within) = split(name);
        let found = match near_index(leaf, self.near.len()) {
            Some(index) => self.near.get(index),
            None => self.far.get(&leaf),
        };
        found.map_or(NOTHING, |leaf| leaf.get(within))
    }

    /// Gives a name a number, or none ([`NOTHING`]).
    pub fn set(&mut self, name: u64, number: u64) {
        let (leaf, within) = split(name);
        if near_index(leaf, self.near.len()).is_none() {
            self.reach(leaf);
        }
        let near = near_index(leaf, self.near.len());
        let entry = match near {
            Some(index) => &mut self.near[index],
            None => self.far.entry(leaf).or_insert_with(|| Leaf::Few(Vec::new())),
        };
        let was_empty = entry.is_empty();
        entry.set(within, number);
        match (was_empty, entry.is_empty()) {
            (true, false) => self.count += 1,
            (false, true) => {
                // The array of a leaf is given back.
                *entry = Leaf::Few(Vec::new());
                assert!(self.count > 0, "leaf {leaf} is emptied, and none is there");
                self.count -= 1;
            }
            _ => {}
        }
        if near.is_none() && self.far.get(&leaf).is_some_and(Leaf::is_empty) {
            self.far.remove(&leaf);
        }
    }

    /// Makes the index reach a leaf, if it is filled well enough then: the tree's leaves before it follow.
    fn reach(&mut self, leaf: u64) {
        let most = NEAR_MIN + NEAR_PER_LEAF * self.count;
        let Some(index) = near_index(leaf, most) else { return };
        assert!(index >= self.near.len(), "leaf {leaf} is reached already");
        let before = self.near.len();
        self.near.resize_with(index + 1, || Leaf::Few(Vec::new()));
        let behind = self.far.split_off(&(leaf + 1));
        for (other, entry) in std::mem::replace(&mut self.far, behind) {
            let other = near_index(other, self.near.len()).expect("it is before the leaf that is reached");
            assert!(other >= before, "leaf {other} is in the tree, and the index reaches it");
            self.near[other] = entry;
        }
    }

    /// Tells of every name with a number, in order.
    pub fn for_each(&self, mut each: impl FnMut(u64, u64)) {
        for (leaf, of) in (0..).zip(&self.near).chain(self.far.iter().map(|(&leaf, of)| (leaf, of))) {
            for within in (0..=u8::MAX).filter(|_| !of.is_empty()) {
                let number = of.get(within);
                if number != NOTHING {
                    each(leaf << 8 | u64::from(within), number);
                }
            }
        }
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> usize {
        let leaves: usize = self.near.iter().chain(self.far.values()).map(Leaf::bytes).sum();
        // A node of the tree holds 11 entries and is two thirds full.
        let nodes = self.far.len() * (size_of::<(u64, Leaf)>() * 3 / 2);
        leaves + nodes + self.near.capacity() * size_of::<Leaf>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    /// Random names, near each other and far, against a plain tree.
    #[test]
    fn numbers_are_as_in_a_tree_also_when_the_index_comes_to_reach_far_leaves() {
        for seed in 0..40 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let (mut leaves, mut model) = (Leaves::default(), BTreeMap::new());
            // Leaves 300 on are beyond the index at first, and within it when many are there.
            let spread = [256 * 20, 256 * 400, 256 * 4000, u64::MAX][usize::try_from(seed % 4).expect("few")];
            for nth in 0..4_000 {
                let name = if prng.below(20) == 0 { prng.below(u64::MAX) } else { prng.below(spread) };
                if prng.below(3) == 0 {
                    let known = model.keys().nth(usize::try_from(prng.below(50)).expect("few")).copied();
                    leaves.set(known.unwrap_or(name), NOTHING);
                    model.remove(&known.unwrap_or(name));
                } else {
                    leaves.set(name, nth);
                    model.insert(name, nth);
                }
                assert_eq!(leaves.get(name), model.get(&name).copied().unwrap_or(NOTHING));
            }
            let mut all = Vec::new();
            leaves.for_each(|name, number| all.push((name, number)));
            assert_eq!(all, model.clone().into_iter().collect::<Vec<_>>());
            model.keys().for_each(|&name| leaves.set(name, NOTHING));
            assert_eq!((leaves.count, leaves.far.len()), (0, 0));
        }
    }

    #[test]
    fn names_far_from_each_other_make_no_long_index() {
        let mut leaves = Leaves::default();
        for name in 1..1000 {
            leaves.set(name << 32, name);
        }
        assert!(leaves.memory_bytes() < 200 * 1000, "{} bytes", leaves.memory_bytes());
        for name in (0..100_000).rev() {
            leaves.set(name, name);
        }
        assert!(leaves.memory_bytes() < 200 * 1000 + 10 * 100_000, "{} bytes", leaves.memory_bytes());
        assert!(leaves.near.len() > 380, "the index has {} leaves", leaves.near.len());
    }
}
