//! What every block may hold: the last durable version, or anything written after it.

use std::collections::VecDeque;

/// A version of a block: the number of the write, 0 for zeroes.
pub type Version = u64;

/// The oracle.
#[derive(Clone)]
pub struct Oracle {
    /// Per block, oldest first: the first may be the durable one, the last is what a read must give now.
    versions: Vec<VecDeque<(u64, Version)>>,
    /// Counts every change, so that a flush knows which came before it.
    pub moment: u64,
}

impl Oracle {
    pub fn new(blocks: u64) -> Self {
        Self { versions: vec![VecDeque::from([(0, 0)]); usize::try_from(blocks).expect("few")], moment: 0 }
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

    /// Everything up to `moment` is durable.
    pub fn durable(&mut self, moment: u64) {
        for versions in &mut self.versions {
            while versions.len() > 1 && versions[1].0 <= moment {
                versions.pop_front();
            }
        }
    }

    /// A block's changes up to `moment` are durable.
    pub fn durable_block(&mut self, block: u64, moment: u64) {
        let versions = self.of(block);
        while versions.len() > 1 && versions[1].0 <= moment {
            versions.pop_front();
        }
    }

    /// What a read must give.
    pub fn now(&self, block: u64) -> Version {
        self.versions[usize::try_from(block).expect("few")].back().expect("never empty").1
    }

    /// After a power cut: what was found must be allowed, and is the durable version from now on.
    pub fn settle(&mut self, block: u64, found: Version) -> Result<(), String> {
        let versions = self.of(block);
        if !versions.iter().any(|&(_, version)| version == found) {
            return Err(format!("block {block} holds version {found}, but may hold only {versions:?}"));
        }
        *versions = VecDeque::from([(0, found)]);
        Ok(())
    }
}
