//! Which blocks a store of bounded size has, and which go first: those used least recently.
//!
//! Deliberately not here: requests.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u32,
    used: u64,
}

/// The blocks.
#[derive(Clone, Debug)]
pub struct Kept {
    bytes_max: u64,
    bytes: u64,
    blocks: BTreeMap<u64, Block>,
    /// By when they were used.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    /// The first use of the prompt that is being looked at: its blocks stay.
    of_prompt: u64,
}

impl Kept {
    /// None, of at most so many bytes.
    pub const fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, blocks: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0, of_prompt: 0 }
    }

    /// Another prompt is looked at.
    pub const fn begin(&mut self) {
        self.of_prompt = self.uses;
    }

    /// Uses a block: its bytes, if it is there.
    pub fn touch(&mut self, block: u64) -> Option<u32> {
        let found = self.blocks.get_mut(&block)?;
        self.by_use.remove(&found.used);
        found.used = self.uses;
        self.by_use.insert(self.uses, block);
        self.uses += 1;
        Some(found.bytes)
    }

    /// Adds a block that is not there; the blocks that make room for it, oldest first. `None` if only blocks of the same prompt
    /// could: then nothing changes.
    pub fn add(&mut self, block: u64, bytes: u32) -> Option<Vec<u64>> {
        assert!(!self.blocks.contains_key(&block), "block {block} is there");
        let (mut evicted, mut left) = (Vec::new(), self.bytes + u64::from(bytes));
        for (&used, &old) in &self.by_use {
            if left <= self.bytes_max || used >= self.of_prompt {
                break;
            }
            evicted.push(old);
            left -= u64::from(self.blocks[&old].bytes);
        }
        if left > self.bytes_max {
            return None;
        }
        for old in &evicted {
            let gone = self.blocks.remove(old).expect("it was found by its use");
            self.by_use.remove(&gone.used);
        }
        self.bytes = left;
        self.blocks.insert(block, Block { bytes, used: self.uses });
        self.by_use.insert(self.uses, block);
        self.uses += 1;
        Some(evicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_least_recently_goes_first_but_nothing_of_the_same_prompt() {
        let mut kept = Kept::new(30);
        kept.begin();
        for block in 1..=3 {
            assert_eq!(kept.add(block, 10), Some(vec![]), "{block}");
        }
        kept.begin();
        assert_eq!((kept.touch(1), kept.touch(4)), (Some(10), None));
        assert_eq!(kept.add(4, 5), Some(vec![2]));
        assert_eq!(kept.add(5, 15), Some(vec![3]));
        assert_eq!(kept.add(6, 1), None, "1, 4 and 5 are of the same prompt");
        kept.begin();
        assert_eq!(kept.add(6, 30), Some(vec![1, 4, 5]));
        assert_eq!(kept.add(7, 31), None, "longer than all");
        assert_eq!(kept.touch(6), Some(30));
    }
}
