//! A set of positions that take turns: which of 128 write next is found by words, not by looking at each.
//!
//! Deliberately not here: what a position is.

use ocssd_base::usize_of;

/// Positions of a word.
const WORD: usize = 64;

/// A set of positions, from 0 on.
#[derive(Clone, Debug)]
pub(crate) struct PositionSet {
    words: Vec<u64>,
}

impl PositionSet {
    /// A set of positions below `count`: none, or all.
    pub fn new(count: usize, has_all: bool) -> Self {
        let mut set = Self { words: vec![0; count.div_ceil(WORD)] };
        if has_all {
            (0..count).for_each(|position| set.set(position, true));
        }
        set
    }

    /// A position is in the set from now on, or not.
    pub fn set(&mut self, position: usize, is_in: bool) {
        let word = &mut self.words[position / WORD];
        let bit = 1 << (position % WORD);
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// True of a position in the set.
    pub fn contains(&self, position: usize) -> bool {
        self.words[position / WORD] >> (position % WORD) & 1 == 1
    }

    /// The first position from `from` on, before `end`, that is in this set, or in another of as many.
    pub fn first_within(&self, other: Option<&Self>, from: usize, end: usize) -> Option<usize> {
        let mut at = from;
        while at < end {
            let index = at / WORD;
            let beside = other.map_or(0, |other| other.words[index]);
            let left = (self.words[index] | beside) >> (at % WORD);
            if left != 0 {
                let found = at + usize_of(left.trailing_zeros());
                return (found < end).then_some(found);
            }
            at = (index + 1) * WORD;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeSet;

    #[test]
    fn the_first_is_that_of_a_naive_set() {
        for seed in 0..200 {
            let mut prng = Prng::new(seed);
            let count = usize::try_from(1 + prng.below(200)).unwrap();
            let mut position =
                |below: usize| usize::try_from(prng.below(u64::try_from(below).unwrap())).unwrap();
            let (mut set, mut beside) =
                (PositionSet::new(count, seed % 2 == 0), PositionSet::new(count, false));
            let mut model: BTreeSet<usize> = (0..if seed % 2 == 0 { count } else { 0 }).collect();
            let mut model_beside = BTreeSet::new();
            for _ in 0..300 {
                let (at, is_in) = (position(count), position(4) == 0);
                set.set(at, is_in);
                if is_in {
                    model.insert(at)
                } else {
                    model.remove(&at)
                };
                let at = position(count);
                beside.set(at, true);
                model_beside.insert(at);
                let (from, end) = (position(count), position(count + 1));
                let first = |of: &BTreeSet<usize>| of.iter().copied().find(|at| (from..end).contains(at));
                assert_eq!(set.first_within(None, from, end), first(&model), "seed {seed}");
                let both = &model | &model_beside;
                assert_eq!(set.first_within(Some(&beside), from, end), first(&both), "seed {seed}");
                assert_eq!(set.contains(at), model.contains(&at), "seed {seed}");
            }
        }
    }
}
