//! What an instance counts: everything pblk's sysfs gave (Linux `pblk-sysfs.c`), and waits and streams beside it.
//!
//! Deliberately not here: how it is printed.

use super::waits::LongWaits;

/// Counters since mount. Sectors unless named otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PblkStats {
    /// Read by users.
    pub user_read: u64,
    /// Of these, from the write buffer.
    pub read_cached: u64,
    /// Of these, never written or discarded.
    pub read_empty: u64,
    /// Reads the media failed (`read_failed`).
    pub read_failed: u64,
    /// Sectors that could not be read, or held something else, and were read again.
    pub read_again: u64,
    /// Reads the media called weak (`read_high_ecc`).
    pub read_high_ecc: u64,
    /// Reads whose content did not match its checksum or was another block's.
    pub read_corrupt: u64,
    /// Reads that had to wait until more was written behind them.
    pub read_parked: u64,
    /// Written by users.
    pub user_written: u64,
    /// Discarded or zeroed by users.
    pub user_discarded: u64,
    /// Flushes and writes with FUA.
    pub flushes: u64,
    /// Moved by garbage collection.
    pub gc_written: u64,
    /// Read by garbage collection.
    pub gc_read: u64,
    /// Of these, dead when they arrived.
    pub gc_dead: u64,
    /// Reads of garbage collection the media failed (`read_failed_gc`).
    pub read_failed_gc: u64,
    /// Padding.
    pub padded: u64,
    /// How often a unit was filled with so many sectors (`padding_dist`); the last counts whole units.
    pub padding_dist: Vec<u64>,
    /// Heads, tails, what fills a chunk up to its tail, and checkpoints.
    pub meta_written: u64,
    /// Sectors superseded before they were written.
    pub superseded: u64,
    /// Write units sent, by buffer units of one or several.
    pub units_written: u64,
    /// Buffer units acknowledged.
    pub units_programmed: u64,
    /// Writes the media failed (`write_failed`).
    pub write_failed: u64,
    /// Chunks that could not be reset (`reset_failed`).
    pub reset_failed: u64,
    /// Lines opened.
    pub lines_opened: u64,
    /// Lines reset.
    pub lines_reset: u64,
    /// Lines emptied by garbage collection.
    pub victims: u64,
    /// Valid sectors in them.
    pub victim_valid: u64,
    /// Lines moved for their wear, those of checkpoints included.
    pub wear_moves: u64,
    /// Valid sectors in them.
    pub wear_moved: u64,
    /// Times users had to wait until a line was moved for its wear.
    pub waits_for_wear: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Shards of the map they wrote.
    pub map_shards_written: u64,
    /// Shards of the map they left where an older one has them.
    pub map_shards_kept: u64,
    /// Times the oldest write found the buffer full.
    pub waits_for_buffer: u64,
    /// Times it was not its turn by the limiter.
    pub waits_for_limiter: u64,
    /// Times users waited for a checkpoint, so that a mount has no more to read than was written between two.
    pub waits_for_checkpoint: u64,
    /// Writes that waited long, by what for.
    pub long_waits: LongWaits,
    /// Times a stream needed a line and none was free.
    pub waits_for_line: u64,
    /// Times nothing could go on and requests were answered with errors instead.
    pub gave_up: u64,
}

impl PblkStats {
    /// A unit was closed with so many sectors of padding.
    pub fn padding(&mut self, sectors: u32) {
        self.padded += u64::from(sectors);
        let place = usize::try_from(sectors).expect("32 bits fit an index");
        assert!(place <= 64, "{sectors} sectors of padding in one unit");
        if self.padding_dist.len() <= place {
            self.padding_dist.resize(place + 1, 0);
        }
        self.padding_dist[place] += 1;
    }

    /// Sectors of data and padding programmed for each one a user wrote; metadata and what the media failed are not counted.
    /// What was superseded in the buffer is programmed as padding in its place. `None` before any.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a quotient for people; 2^53 sectors are 32 EiB")]
    pub fn write_amplification(&self) -> Option<f64> {
        let all = self.user_written + self.gc_written + self.padded;
        (self.user_written > 0).then(|| all as f64 / self.user_written as f64)
    }

    /// What of it is for wear levelling. `None` before anything was written.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a quotient for people; 2^53 sectors are 32 EiB")]
    pub fn wear_amplification(&self) -> Option<f64> {
        assert!(self.wear_moves > 0 || self.wear_moved == 0, "sectors of no line were moved");
        (self.user_written > 0).then(|| self.wear_moved as f64 / self.user_written as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_is_counted_by_how_much_of_a_unit_it_was() {
        let mut stats = PblkStats::default();
        [3, 0, 64, 3].into_iter().for_each(|sectors| stats.padding(sectors));
        assert_eq!((stats.padded, stats.padding_dist.len()), (70, 65));
        let found: Vec<(usize, u64)> =
            stats.padding_dist.iter().copied().enumerate().filter(|entry| entry.1 > 0).collect();
        assert_eq!(found, [(0, 1), (3, 2), (64, 1)]);
    }

    #[test]
    fn amplification_is_what_is_programmed_for_each_sector_a_user_wrote() {
        let mut stats = PblkStats { gc_written: 30, padded: 20, ..PblkStats::default() };
        assert_eq!((stats.write_amplification(), stats.wear_amplification()), (None, None));
        stats.user_written = 100;
        (stats.wear_moves, stats.wear_moved) = (1, 25);
        assert_eq!((stats.write_amplification(), stats.wear_amplification()), (Some(1.5), Some(0.25)));
    }
}
