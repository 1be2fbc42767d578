//! What every block may hold: the last durable version, or anything written after it.

use std::collections::{BTreeSet, VecDeque};

/// A version of a block: the number of the write, 0 for zeroes.
pub type Version = u64;

/// The oracle.
#[derive(Clone)]
pub struct Oracle {
    /// Per block, oldest first: the first may be the durable one, the last is what a read must give now.
    versions: Vec<VecDeque<(u64, Version)>>,
    /// Blocks that may hold any of their versions: a write of them was refused half-way, or the media lost them.
    unsure: BTreeSet<u64>,
    /// Counts every change, so that a flush knows which came before it.
    pub moment: u64,
}

impl Oracle {
    pub fn new(blocks: u64) -> Self {
        let versions = vec![VecDeque::from([(0, 0)]); usize::try_from(blocks).expect("few")];
        Self { versions, unsure: BTreeSet::new(), moment: 0 }
    }

    fn of(&mut self, block: u64) -> &mut VecDeque<(u64, Version)> {
        &mut self.versions[usize::try_from(block).expect("few")]
    }

    /// A change was sent: it may be there after a power cut from now on.
    pub fn sent(&mut self, block: u64, version: Version) {
        self.moment += 1;
        let moment = self.moment;
        self.of(block).push_back((moment, version));
    }

    /// A change was made whole: what the block holds is known again.
    pub fn made(&mut self, block: u64) {
        self.unsure.remove(&block);
    }

    /// A change was refused: the block may have been changed all the same.
    pub fn refused(&mut self, block: u64) {
        self.unsure.insert(block);
    }

    /// A block's changes up to `moment` are durable.
    pub fn durable_block(&mut self, block: u64, moment: u64) {
        if self.unsure.contains(&block) {
            return;
        }
        let versions = self.of(block);
        while versions.len() > 1 && versions[1].0 <= moment {
            versions.pop_front();
        }
    }

    /// A read gave `found`: that must be the last version, or any of a block nobody is sure of.
    pub fn read(&mut self, block: u64, found: Version) -> Result<(), String> {
        let unsure = self.unsure.contains(&block);
        let versions = self.of(block);
        let last = *versions.back().expect("never empty");
        let fits =
            if unsure { versions.iter().any(|&(_, version)| version == found) } else { last.1 == found };
        if !fits {
            return Err(format!("block {block} holds version {found} of {versions:?}, unsure: {unsure}"));
        }
        if unsure {
            versions.push_back((last.0, found));
            self.unsure.remove(&block);
        }
        Ok(())
    }

    /// After a power cut: what was found must be allowed, and is the durable version from now on.
    pub fn settle(&mut self, block: u64, found: Version) -> Result<(), String> {
        self.unsure.remove(&block);
        let versions = self.of(block);
        if !versions.iter().any(|&(_, version)| version == found) {
            return Err(format!("block {block} holds version {found}, but may hold only {versions:?}"));
        }
        *versions = VecDeque::from([(0, found)]);
        Ok(())
    }
}
