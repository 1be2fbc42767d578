//! What an instance counts: every sector it writes, by cause, and what hosts asked for beside it.
//!
//! Deliberately not here: how it is printed.

use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counters since mount, in sectors unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LightLsmStats {
    /// Bytes hosts appended to tables.
    pub table_bytes: u64,
    /// Bytes hosts appended to logs.
    pub log_bytes: u64,
    /// Bytes hosts read.
    pub read_bytes: u64,
    /// Sectors read of media for them.
    pub read_sectors: u64,
    /// Bytes of them that were in memory.
    pub read_cached_bytes: u64,
    /// Edits that were logged.
    pub edits: u64,
    /// Tables published.
    pub published: u64,
    /// Tables and logs deleted.
    pub deleted: u64,
    /// Sectors of units of content programmed.
    pub content_written: u64,
    /// Sectors of padding behind content, so that it can be read.
    pub padded: u64,
    /// Sectors of padding that close chunks of what was deleted, because the drive resets closed chunks only.
    pub closed_by_padding: u64,
    /// Sectors of the log.
    pub log_written: u64,
    /// Sectors of checkpoints.
    pub checkpoint_written: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Written once more, because the media failed a write.
    pub rewritten: u64,
    /// Read once more, because the media failed a read.
    pub read_again: u64,
    /// Reads of hosts that failed.
    pub read_failed: u64,
    /// Chunks reset.
    pub resets: u64,
    /// Sectors of programs that the media failed.
    pub failed: u64,
    /// Sectors of content that was on media already when it was programmed, as a collector copies what is alive. There is no
    /// collector, for no two tables share a chunk, and `check` asserts that there are none.
    pub copied: u64,
}

impl LightLsmStats {
    /// What the causes come to: all that was sent to the drive to be programmed.
    pub const fn causes(&self) -> u64 {
        let content = self.content_written + self.padded + self.closed_by_padding + self.copied;
        content + self.log_written + self.checkpoint_written + self.rewritten
    }

    /// All of them, with a line about each. `programmed` sectors were sent to the drive.
    pub fn counters(&self, programmed: u64) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        vec![
            count("table_bytes", "Bytes appended to tables.", self.table_bytes),
            count("log_bytes", "Bytes appended to logs.", self.log_bytes),
            count("read_bytes", "Bytes read by hosts.", self.read_bytes),
            count("read_sectors", "Sectors read of media for them.", self.read_sectors),
            count("read_cached_bytes", "Bytes read that were in memory.", self.read_cached_bytes),
            count("edits", "Edits that were logged.", self.edits),
            count("published_tables", "Tables published.", self.published),
            count("deleted_tables", "Tables and logs deleted.", self.deleted),
            count("content_written_sectors", "Sectors of tables and logs programmed.", self.content_written),
            count(
                "padded_sectors",
                "Sectors programmed behind content, so that it can be read.",
                self.padded,
            ),
            count(
                "closed_by_padding_sectors",
                "Sectors programmed to close chunks of what was deleted.",
                self.closed_by_padding,
            ),
            count("log_written_sectors", "Sectors of the log programmed.", self.log_written),
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
            count("read_failed", "Reads of hosts that failed.", self.read_failed),
            count("resets", "Chunks reset.", self.resets),
            count("program_failed_sectors", "Sectors of programs that the media failed.", self.failed),
            count(
                "gc_copied_sectors",
                "Sectors programmed though they were on media: copies of a garbage collection.",
                self.copied,
            ),
            count("programmed_sectors", "Sectors programmed for any reason.", programmed),
        ]
    }
}
