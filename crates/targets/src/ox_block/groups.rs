//! In which group a block lies, and in which garbage is collected: for whoever measures which requests meet garbage collection.
//!
//! Deliberately not here: which groups are marked, and when (`ox::collect`).

use super::store::OxBlock;
use ocssd_ftl::Mapped;

impl OxBlock {
    /// Groups the instance has units of, counted densely in the order of its units.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.space.pool.groups()
    }

    /// The group in which a block lies on media; `None` if it lies nowhere, or memory does not have its page of the map. Cost: a
    /// look into the map.
    ///
    /// # Panics
    /// If there is no such block.
    #[must_use]
    pub fn group_of(&self, block: u64) -> Option<u32> {
        let Mapped::Media(place) = self.store.l2p.get(block) else { return None };
        if self.is_lost(place) {
            return None;
        }
        let group = self.space.pool.group_of(self.space.shape.chunk_of(place).0);
        assert!(group < self.groups(), "block {block} lies in group {group} of {}", self.groups());
        Some(group)
    }

    /// True while garbage is collected in a group: users' new writes avoid it.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn is_collected(&self, group: u32) -> bool {
        self.space.is_marked(group)
    }
}
