//! What the machines count: every sector written, by the paper's five causes and users' beside them, and what is read on their
//! own.
//!
//! The causes are those of CIDR 2020 section 3.2: garbage collection, the log, checkpoints, the map, bad media. A map that is all
//! in memory causes none. Deliberately not here: how it is printed.

use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counters since mount, in sectors unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OxStats {
    /// Transactions committed for users.
    pub transactions: u64,
    /// Data programmed for users, padding not counted.
    pub data_written: u64,
    /// Fill of data units.
    pub padded: u64,
    /// Copies programmed by garbage collection.
    pub gc_written: u64,
    /// Read by garbage collection.
    pub gc_read: u64,
    /// Copies that came too late: a user had written the block.
    pub gc_lost_races: u64,
    /// Chunks that garbage collection emptied.
    pub victims: u64,
    /// Pages of the log, in sectors.
    pub log_written: u64,
    /// Pages of checkpoints, in sectors.
    pub checkpoint_written: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Pages of the map that were programmed, one sector each.
    pub map_written: u64,
    /// Pages of the map that were read.
    pub map_read: u64,
    /// Written once more, because the media failed a write.
    pub rewritten: u64,
    /// Read once more, because the media failed a read.
    pub read_again: u64,
    /// Chunks reset.
    pub resets: u64,
    /// Everything programmed: the causes above, added up where the commands are sent.
    pub programmed: u64,
}

impl OxStats {
    /// What the causes come to; equals [`OxStats::programmed`].
    pub const fn causes(&self) -> u64 {
        let data = self.data_written + self.padded + self.gc_written;
        data + self.log_written + self.checkpoint_written + self.map_written + self.rewritten
    }

    /// All of them, with a line about each.
    pub fn counters(&self) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        vec![
            count("transactions", "Transactions of users that were committed.", self.transactions),
            count("data_written_sectors", "Users' sectors programmed.", self.data_written),
            count("padded_sectors", "Sectors programmed to fill write units.", self.padded),
            count("gc_written_sectors", "Sectors garbage collection programmed.", self.gc_written),
            count("gc_read_sectors", "Sectors garbage collection read.", self.gc_read),
            count("gc_lost_races", "Copies a user's write came before.", self.gc_lost_races),
            count("victims", "Chunks garbage collection emptied.", self.victims),
            count("log_written_sectors", "Sectors of the log programmed.", self.log_written),
            count(
                "checkpoint_written_sectors",
                "Sectors of checkpoints programmed.",
                self.checkpoint_written,
            ),
            count("checkpoints", "Checkpoints completed.", self.checkpoints),
            count("map_written_sectors", "Pages of the map programmed, a sector each.", self.map_written),
            count("map_read_sectors", "Pages of the map read, a sector each.", self.map_read),
            count(
                "rewritten_sectors",
                "Sectors programmed again after the media failed them.",
                self.rewritten,
            ),
            count("read_again_sectors", "Sectors read again after the media failed them.", self.read_again),
            count("resets", "Chunks reset.", self.resets),
            count("programmed_sectors", "Sectors programmed for any reason.", self.programmed),
        ]
    }
}
