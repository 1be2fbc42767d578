//! What an instance counts.
//!
//! Deliberately not here: how it is printed, and gauges of the moment (`target`).

use ocssd_lightnvm::counter::{Counter, CounterValue};

/// Counters since mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvStats {
    /// Values stored, those of batches counted.
    pub stores: u64,
    /// Bytes of their keys and values.
    pub stored_bytes: u64,
    /// Keys deleted.
    pub deletes: u64,
    /// Retrieves.
    pub retrieves: u64,
    /// Of these, answered from the write buffer.
    pub retrieves_buffered: u64,
    /// Reads of the media that retrieves took.
    pub retrieve_reads: u64,
    /// Reads of users that passed requests that waited.
    pub reads_passed: u64,
    /// Changes that waited for deletions to be on media, whose room they need.
    pub waited_for_room: u64,
    /// Records, or pieces, that could not be read.
    pub read_failed: u64,
    /// Reads tried once more.
    pub read_again: u64,
    /// Bytes of records written for users.
    pub user_written_bytes: u64,
    /// Bytes of records moved by garbage collection.
    pub gc_written_bytes: u64,
    /// Bytes of pages of the index written, those moved by garbage collection counted.
    pub index_written_bytes: u64,
    /// Reads of pages of the index.
    pub index_reads: u64,
    /// Of these, for retrieves.
    pub retrieve_index_reads: u64,
    /// Bytes read by garbage collection.
    pub gc_read_bytes: u64,
    /// Bytes of units that hold no record.
    pub padded_bytes: u64,
    /// Units written, those of failed writes counted.
    pub units: u64,
    /// Units written again because the media failed them.
    pub units_again: u64,
    /// Chunks that garbage collection chose.
    pub victims: u64,
    /// Chunks emptied because they lagged in wear.
    pub wear_moves: u64,
    /// Bytes of records that lived in them.
    pub wear_moved_bytes: u64,
    /// Values that garbage collection found lost.
    pub lost: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Checkpoints given up because a unit they name had to be written elsewhere.
    pub checkpoints_given_up: u64,
    /// Bytes of checkpoints.
    pub checkpoint_bytes: u64,
    /// Chunks reset.
    pub resets: u64,
}

impl KvStats {
    /// All of them, with a line about each.
    #[must_use]
    pub fn counters(&self) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        let per_get = (self.retrieves > 0)
            .then(|| ratio(self.retrieve_reads + self.retrieve_index_reads, self.retrieves));
        let records = self.user_written_bytes + self.gc_written_bytes + self.index_written_bytes;
        let written = records + self.padded_bytes + self.checkpoint_bytes;
        let amplification = (self.stored_bytes > 0).then(|| ratio(written, self.stored_bytes));
        vec![
            count("stores", "Values stored, those of batches counted.", self.stores),
            count("stored_bytes", "Bytes of keys and values stored.", self.stored_bytes),
            count("deletes", "Keys deleted.", self.deletes),
            count("retrieves", "Values retrieved, in whole or in part.", self.retrieves),
            count("retrieves_buffered", "Of these, from the write buffer.", self.retrieves_buffered),
            count("retrieve_reads", "Reads of the media that retrieves took.", self.retrieve_reads),
            count(
                "reads_passed",
                "Retrieves, exists and lists that passed requests that waited.",
                self.reads_passed,
            ),
            count(
                "waited_for_room",
                "Changes that waited for deletions to be on media, whose room they need.",
                self.waited_for_room,
            ),
            count("read_failed", "Records or pieces that could not be read.", self.read_failed),
            count("read_again", "Reads tried once more.", self.read_again),
            count("user_written_bytes", "Bytes of records written for users.", self.user_written_bytes),
            count("gc_written_bytes", "Bytes of records moved by garbage collection.", self.gc_written_bytes),
            count("index_written_bytes", "Bytes of pages of the index written.", self.index_written_bytes),
            count("index_reads", "Pages of the index read.", self.index_reads),
            count("retrieve_index_reads", "Of these, for retrieves.", self.retrieve_index_reads),
            count("gc_read_bytes", "Bytes read by garbage collection.", self.gc_read_bytes),
            count("padded_bytes", "Bytes of units that hold no record.", self.padded_bytes),
            count("units", "Write units written for records.", self.units),
            count("units_again", "Of these, again because the media failed them.", self.units_again),
            count("victims", "Chunks that garbage collection chose.", self.victims),
            count("wear_moves", "Chunks emptied because they lagged in wear.", self.wear_moves),
            count("wear_moved_bytes", "Bytes of records that lived in these.", self.wear_moved_bytes),
            count("lost_values", "Values or pieces that garbage collection found lost.", self.lost),
            count("checkpoints", "Checkpoints completed.", self.checkpoints),
            count("checkpoints_given_up", "Checkpoints begun again.", self.checkpoints_given_up),
            count("checkpoint_bytes", "Bytes of checkpoints.", self.checkpoint_bytes),
            count("resets", "Chunks reset.", self.resets),
            Counter {
                name: "media_reads_per_retrieve",
                about: "Reads of the media for each retrieve.",
                value: CounterValue::Ratio(per_get),
            },
            Counter {
                name: "write_amplification",
                about: "Bytes written to media for each byte of keys and values stored.",
                value: CounterValue::Ratio(amplification),
            },
        ]
    }
}

/// A quotient of counts, for people.
fn ratio(of: u64, by: u64) -> f64 {
    // In thousandths, exactly: far below what a float holds.
    let thousandths = u128::from(of) * 1000 / u128::from(by);
    f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_told_in_thousandths() {
        for (of, by, expected) in [(0, 7, 0.0), (3, 2, 1.5), (1, 3, 0.333), (2_000, 1, 2_000.0)] {
            assert!((ratio(of, by) - expected).abs() < 1e-9, "{of} by {by}: {}", ratio(of, by));
        }
    }
}
