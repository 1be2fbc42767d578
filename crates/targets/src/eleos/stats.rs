//! What hosts did to a page store.
//!
//! Deliberately not here: what the machines do (`ox::stats`).

use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counters since mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageStats {
    /// Flushes taken.
    pub flushes: u64,
    /// Flushes that were sent again.
    pub resends: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Pages deleted.
    pub pages_deleted: u64,
    /// Bytes of pages written.
    pub bytes_written: u64,
    /// Bytes copied into memory of the target's own before they go to buffer units: of stages, and of flushes that may be answered
    /// first.
    pub copied: u64,
    /// Pages read.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Parts that came from memory.
    pub read_cached: u64,
    /// Sectors read from media for them.
    pub read_sectors: u64,
    /// Sectors that could not be read.
    pub read_failed: u64,
}

impl PageStats {
    /// All of them, with a line about each.
    pub fn counters(&self) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        vec![
            count("flushes", "Flushes taken.", self.flushes),
            count("flushes_sent_again", "Flushes that were applied before.", self.resends),
            count("pages_written", "Pages written.", self.pages_written),
            count("pages_deleted", "Pages deleted.", self.pages_deleted),
            count("page_bytes_written", "Bytes of pages written.", self.bytes_written),
            count(
                "content_copied_bytes",
                "Bytes of flushes copied before they go to buffer units.",
                self.copied,
            ),
            count("page_reads", "Pages read.", self.reads),
            count("page_bytes_read", "Bytes of pages read.", self.read_bytes),
            count("page_parts_cached", "Parts of pages that came from memory.", self.read_cached),
            count("page_sectors_read", "Sectors read for pages.", self.read_sectors),
            count("read_failed_sectors", "Sectors that could not be read.", self.read_failed),
        ]
    }
}
