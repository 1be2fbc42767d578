//! Blocks of transactions over several requests that were programmed, and are not true yet: valid, and in no map.
//!
//! A transaction may stay open for as long as its host likes, while all that was written beside its blocks dies. So garbage
//! collection moves them as it moves others: a block that was copied while its transaction is open is at the other place from then
//! on, without the log, which knows nothing of it; of one that is being committed the log says that it moved, behind the commit.
//! If they had to stay where they were, each could keep a chunk, and the room that is reserved for them is that of sectors.
//! Deliberately not here: blocks of a request's own transaction, which hold their chunk for as long as a write takes.

use super::store::OxBlock;
use crate::ox::commit::{Commit, Logged};
use ocssd_ftl::PhysicalAddress;
use ocssd_ftl::log::LogEntry;

impl OxBlock {
    /// A block of a transaction lies at a place: it is needed, though no map says so.
    pub(super) fn uncommitted_at(&mut self, place: PhysicalAddress) {
        assert!(!self.space.live.is_valid(place), "{place:?} has a block already, and is programmed");
        self.store.transactions.uncommitted += 1;
        self.validate(place, 1);
        self.space.unpin(self.space.shape.chunk_of(place).0, 1);
    }

    /// A block of a transaction that lay at a place is not needed.
    pub(super) fn forget_uncommitted(&mut self, place: PhysicalAddress) {
        assert!(self.space.live.is_valid(place), "{place:?} had no block of a transaction");
        self.ends_uncommitted(1);
        self.invalidate(place);
    }

    /// So many of these blocks are true, or not needed.
    pub(super) fn ends_uncommitted(&mut self, count: u32) {
        let left = &mut self.store.transactions.uncommitted;
        assert!(*left >= u64::from(count), "{count} blocks of transactions end, of {left}");
        *left -= u64::from(count);
    }

    /// A copy of a sector was programmed at `to`. True if it is a block of an open transaction, which lies there from now on.
    pub(super) fn move_uncommitted(&mut self, lba: u64, from: PhysicalAddress, to: PhysicalAddress) -> bool {
        let mut of_open =
            self.store.transactions.open.values_mut().filter_map(|open| open.blocks.get_mut(&lba));
        let Some(block) = of_open.find(|block| block.place == Some(from)) else { return false };
        block.place = Some(to);
        let source = self.space.shape.chunk_of(from).0;
        assert!(source != self.space.shape.chunk_of(to).0, "chunk {} is copied to itself", source.0);
        self.uncommitted_at(to);
        self.forget_uncommitted(from);
        self.space.let_go(source);
        self.work_due = true;
        true
    }

    /// The block that lies at a place, if it is of a transaction that is not true yet. Cost: all blocks of these.
    pub(super) fn uncommitted_block(&self, place: PhysicalAddress) -> Option<u64> {
        let transactions = &self.store.transactions;
        if transactions.uncommitted == 0 {
            return None;
        }
        let mut of_open = transactions.open.values().flat_map(|open| &open.blocks);
        if let Some((&lba, _)) = of_open.find(|(_, block)| block.place == Some(place)) {
            return Some(lba);
        }
        let logged = self.logged.iter().map(Logged::entries);
        let ready = self.commits.iter().map(|Commit { entries, .. }| entries.as_slice());
        let mut entries = logged.chain(ready).flatten();
        entries.find_map(|entry| match *entry {
            LogEntry::Write { lba, place: first, count } => {
                let offset = place.0.checked_sub(first.0).filter(|&offset| offset < u64::from(count));
                offset.map(|offset| lba + offset)
            }
            _ => None,
        })
    }
}
