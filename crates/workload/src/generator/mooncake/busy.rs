//! Blocks that have a request without an answer: any number of retrieves, or one change.
//!
//! Deliberately not here: which requests there are.

use ocssd_lightnvm::Tag;
use std::collections::BTreeMap;

/// The requests outstanding, by tag, and how many each block has: few, as many as the host's depth.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    requests: BTreeMap<u32, (u64, bool)>,
    retrieves: BTreeMap<u64, u32>,
    changes: BTreeMap<u64, u32>,
}

impl Busy {
    /// Whether a request of this block may begin.
    pub fn may(&self, block: u64, changes: bool) -> bool {
        let waits_for_retrieves = changes && self.retrieves.contains_key(&block);
        !waits_for_retrieves && !self.changes.contains_key(&block)
    }

    /// A request begins.
    pub fn begin(&mut self, tag: Tag, block: u64, changes: bool) {
        assert!(self.may(block, changes), "block {block} has a request that this one must wait for");
        let twice = self.requests.insert(tag.0, (block, changes));
        assert!(twice.is_none(), "{tag:?} is outstanding already");
        *self.of(changes).entry(block).or_default() += 1;
    }

    /// It was answered.
    pub fn end(&mut self, tag: Tag) {
        let (block, changes) = self.requests.remove(&tag.0).expect("a reply answers an outstanding request");
        let counts = self.of(changes);
        let count = counts.get_mut(&block).expect("its block is counted");
        *count -= 1;
        if *count == 0 {
            counts.remove(&block);
        }
    }

    /// Nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    const fn of(&mut self, changes: bool) -> &mut BTreeMap<u64, u32> {
        if changes { &mut self.changes } else { &mut self.retrieves }
    }
}
