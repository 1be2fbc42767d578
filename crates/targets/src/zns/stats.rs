//! What an instance counts: every sector it writes, by cause, and what the host asked beside it.
//!
//! Deliberately not here: how it is printed.

use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counters since mount, in sectors unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZnsStats {
    /// Read by the host.
    pub user_read: u64,
    /// Of these, from the write buffer.
    pub read_cached: u64,
    /// Of these, behind a write pointer.
    pub read_empty: u64,
    /// Written by the host.
    pub user_written: u64,
    /// The host's blocks programmed in their own place.
    pub data_written: u64,
    /// Padding of the last unit of a zone, and behind it so that it can be read.
    pub padded: u64,
    /// The host's blocks programmed in tails.
    pub tail_written: u64,
    /// Padding of pages of tails.
    pub tail_padded: u64,
    /// Padding that closes chunks nobody writes.
    pub filled: u64,
    /// Written to other chunks, because those they were in lagged in wear.
    pub wear_moved: u64,
    /// Chunks whose content was moved so.
    pub wear_moves: u64,
    /// Copied at mount, because a zone had too many chunks.
    pub copied: u64,
    /// Pages of the log.
    pub log_written: u64,
    /// Entries of the log.
    pub log_entries: u64,
    /// Pages of checkpoints.
    pub checkpoint_written: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Written once more, because the media failed a write.
    pub rewritten: u64,
    /// Read once more, because the media failed a read.
    pub read_again: u64,
    /// The host could not read.
    pub read_failed: u64,
    /// Chunks reset.
    pub resets: u64,
    /// Zones reset.
    pub zone_resets: u64,
    /// Zones finished before they were written to their end.
    pub zones_finished: u64,
    /// Zones whose descriptor got an extension.
    pub extensions_set: u64,
    /// Zones that became read only, because no chunk was left for them.
    pub zones_given_up: u64,
    /// Everything programmed since the mount: the causes above, added up where the commands are sent.
    pub programmed: u64,
}

impl ZnsStats {
    /// What the causes come to; equals [`ZnsStats::programmed`].
    pub const fn causes(&self) -> u64 {
        let data = self.data_written + self.padded + self.tail_written + self.tail_padded + self.filled;
        data + self.log_written + self.checkpoint_written + self.rewritten + self.wear_moved
    }

    /// All of them, with a line about each.
    pub fn counters(&self) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        vec![
            count("user_read_sectors", "Sectors the host read.", self.user_read),
            count("read_cached_sectors", "Of these, from the write buffer.", self.read_cached),
            count("read_empty_sectors", "Of these, behind a write pointer.", self.read_empty),
            count("user_written_sectors", "Sectors the host wrote.", self.user_written),
            count("data_written_sectors", "The host's sectors programmed in their place.", self.data_written),
            count("padded_sectors", "Padding at the end of zones.", self.padded),
            count("tail_written_sectors", "The host's sectors programmed in tails.", self.tail_written),
            count("tail_padded_sectors", "Padding of pages of tails.", self.tail_padded),
            count("filled_sectors", "Padding that closed chunks.", self.filled),
            count("wear_moved_sectors", "Sectors moved for the wear of their chunks.", self.wear_moved),
            count("wear_moves", "Chunks whose content was moved so.", self.wear_moves),
            count("copied_sectors", "Sectors copied at the mount, so that zones fit.", self.copied),
            count("log_written_sectors", "Sectors of the log programmed.", self.log_written),
            count("log_entries", "Entries of the log.", self.log_entries),
            count(
                "checkpoint_written_sectors",
                "Sectors of checkpoints programmed.",
                self.checkpoint_written,
            ),
            count("checkpoints", "Checkpoints completed.", self.checkpoints),
            count(
                "rewritten_sectors",
                "Sectors programmed again after the media failed them.",
                self.rewritten,
            ),
            count("read_again_sectors", "Sectors read again after the media failed them.", self.read_again),
            count("read_failed_sectors", "Sectors the host could not read.", self.read_failed),
            count("resets", "Chunks reset.", self.resets),
            count("zone_resets", "Zones reset.", self.zone_resets),
            count("zones_finished", "Zones finished before their end.", self.zones_finished),
            count("extensions_set", "Zones whose descriptor got an extension.", self.extensions_set),
            count("zones_given_up", "Zones that became read only for want of chunks.", self.zones_given_up),
            count("programmed_sectors", "Sectors programmed for any reason.", self.programmed),
        ]
    }
}
