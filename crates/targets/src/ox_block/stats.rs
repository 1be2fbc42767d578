//! What users did to a block device.
//!
//! Deliberately not here: what the machines do (`ox::stats`).

use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counters since mount, in sectors but for the last four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStats {
    /// Read by users.
    pub user_read: u64,
    /// Of these, from the write buffer.
    pub read_cached: u64,
    /// Of these, never written or discarded.
    pub read_empty: u64,
    /// Written by users.
    pub user_written: u64,
    /// Discarded or zeroed by users.
    pub user_discarded: u64,
    /// Sectors users could not read.
    pub read_failed: u64,
    /// Transactions over several requests that were given up because chunks went bad.
    pub given_way: u64,
    /// Looks of reads and transactions at pages of the map that were in memory.
    pub map_hits: u64,
    /// And at those that were read for it.
    pub map_misses: u64,
    /// Pages of the map that the media lost.
    pub map_lost: u64,
}

impl BlockStats {
    /// All of them, with a line about each.
    pub fn counters(&self) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        vec![
            count("user_read_sectors", "Sectors users read.", self.user_read),
            count("read_cached_sectors", "Of these, from the write buffer.", self.read_cached),
            count("read_empty_sectors", "Of these, never written or discarded.", self.read_empty),
            count("user_written_sectors", "Sectors users wrote.", self.user_written),
            count("user_discarded_sectors", "Sectors users discarded or zeroed.", self.user_discarded),
            count("read_failed_sectors", "Sectors users could not read.", self.read_failed),
            count(
                "transactions_given_way",
                "Transactions over several requests given up because chunks went bad.",
                self.given_way,
            ),
            count("map_cache_hits", "Looks at pages of the map that were in memory.", self.map_hits),
            count("map_cache_misses", "Looks at pages of the map that were read for it.", self.map_misses),
            count("map_pages_lost", "Pages of the map that the media lost.", self.map_lost),
        ]
    }
}
