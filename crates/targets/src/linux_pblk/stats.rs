//! What an instance counts.

use super::format::WaCounters;
use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counts since the mount; but for what Linux counted, which is since the instance was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxPblkStats {
    /// Sectors written since the instance was made, by Linux and here: the newest end metadata say how many were before.
    pub counters: WaCounters,
    /// Blocks written and discarded by users.
    pub user_written: u64,
    /// Of these, written as zeroes because they were discarded, or were to be zeroes.
    pub zeroed: u64,
    /// Blocks read.
    pub user_read: u64,
    /// Of these, nowhere.
    pub read_empty: u64,
    /// Of these, from the buffer.
    pub read_cached: u64,
    /// Sectors the media could not give.
    pub read_failed: u64,
    /// Sectors that could not be read, and were read again.
    pub read_again: u64,
    /// Sectors beside which another block is named.
    pub read_corrupt: u64,
    /// Requests that would have changed something, where nothing is to be changed.
    pub refused: u64,
    /// Flushes, and writes that had to be durable.
    pub flushes: u64,
    /// Times a write waited for a free line.
    pub waits_for_line: u64,
    /// Times a write waited for the buffer.
    pub waits_for_buffer: u64,
    /// Units written, metadata and padding among them.
    pub units_written: u64,
    /// Units the media did not take.
    pub write_failed: u64,
    /// Chunks that could not be reset.
    pub reset_failed: u64,
    /// Sectors garbage collection could not read.
    pub read_failed_gc: u64,
    /// Lines opened.
    pub lines_opened: u64,
    /// Lines emptied.
    pub lines_collected: u64,
    /// Lines reset.
    pub lines_reset: u64,
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
            count("user_written_sectors", "blocks written by users", self.user_written),
            count("zeroed_sectors", "blocks written as zeroes that were discarded", self.zeroed),
            count("empty_read_sectors", "blocks read that are nowhere", self.read_empty),
            count("cached_read_sectors", "blocks read from the buffer", self.read_cached),
            count("failed_read_sectors", "sectors the media could not give", self.read_failed),
            count("read_again", "sectors read again because the first try failed", self.read_again),
            count("corrupt_read_sectors", "sectors beside which another block is named", self.read_corrupt),
            count("failed_gc_read_sectors", "sectors garbage collection could not read", self.read_failed_gc),
            count("refused_requests", "requests that would have changed something", self.refused),
            count("flushes", "flushes, and writes that had to be durable", self.flushes),
            count("line_waits", "times a write waited for a free line", self.waits_for_line),
            count("buffer_waits", "times a write waited for the buffer", self.waits_for_buffer),
            count("units_written", "units written, metadata and padding among them", self.units_written),
            count("failed_units", "units the media did not take", self.write_failed),
            count("failed_resets", "chunks that could not be reset", self.reset_failed),
            count("lines_opened", "lines opened", self.lines_opened),
            count("lines_collected", "lines emptied by garbage collection", self.lines_collected),
            count("lines_erased", "lines reset", self.lines_reset),
            count("life_user_sectors", "sectors written for users since the instance was made", user),
            count("life_gc_sectors", "sectors garbage collection wrote since the instance was made", gc),
            count("life_padding_sectors", "sectors of padding since the instance was made", pad),
        ]
    }
}
