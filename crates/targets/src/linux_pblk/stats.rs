//! What an instance counts.

use super::format::WaCounters;
use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counts since the mount; but for what Linux counted, which is since the instance was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxPblkStats {
    /// Sectors written, as the newest end metadata say.
    pub counters: WaCounters,
    /// Blocks read.
    pub user_read: u64,
    /// Of these, nowhere.
    pub read_empty: u64,
    /// Sectors the media could not give.
    pub read_failed: u64,
    /// Sectors beside which another block is named.
    pub read_corrupt: u64,
    /// Requests that would have changed something.
    pub refused: u64,
}

impl LinuxPblkStats {
    /// As every target shows them.
    pub(super) fn show(&self, mapped: u64) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        let WaCounters { user, gc, pad } = self.counters;
        vec![
            Counter {
                name: "mapped_blocks",
                about: "blocks that are somewhere",
                value: CounterValue::Gauge(mapped),
            },
            count("user_read_sectors", "blocks read", self.user_read),
            count("empty_read_sectors", "blocks read that are nowhere", self.read_empty),
            count("failed_read_sectors", "sectors the media could not give", self.read_failed),
            count("corrupt_read_sectors", "sectors beside which another block is named", self.read_corrupt),
            count("refused_requests", "requests that would have changed something", self.refused),
            count("linux_user_written_sectors", "sectors Linux wrote for users", user),
            count("linux_gc_written_sectors", "sectors Linux's garbage collection wrote", gc),
            count("linux_padding_sectors", "sectors Linux wrote as padding", pad),
        ]
    }
}
