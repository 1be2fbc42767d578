//! Histograms of completion latency over run time: fio's `write_hist_log` with `log_hist_msec`.
//!
//! A line is `ms, direction, block size, bin, bin, ...`: the I/Os of one direction in one interval, in 1856 bins or
//! fewer (`log_hist_coarseness`). The time is the end of the interval; the block size is the mean of the interval's
//! I/Os; an interval without I/O has no line. Unlike fio, the last, incomplete interval is kept, so that the lines of a
//! file add up to the whole run.

use std::fmt::Write;

use ocssd_base::Nanos;

use super::direction::DirectionStats;
use super::histogram::{BUCKET_COUNT, Histogram};
use super::model::Direction;

/// One direction in one interval; buckets without I/O are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// The end of the interval, as run time.
    pub at: Nanos,
    /// The direction.
    pub direction: Direction,
    /// Mean bytes of an I/O.
    pub block_bytes: u64,
    /// Bucket number and count, rising.
    pub bins: Vec<(usize, u64)>,
}

/// The rows of one job, and what it takes to make the next.
#[derive(Clone, Debug)]
pub struct HistogramLog {
    coarseness: u32,
    rows: Vec<HistogramRow>,
    last: Vec<Last>,
}

/// A direction at the end of the interval before.
#[derive(Clone, Debug, Default)]
struct Last {
    histogram: Histogram,
    ios: u64,
    bytes: u64,
}

impl HistogramLog {
    /// An empty log whose lines have a bin for 2 to the power of `coarseness` buckets, at most 6.
    ///
    /// # Panics
    /// If the coarseness is above 6.
    #[must_use]
    pub fn new(coarseness: u32) -> Self {
        assert!(coarseness <= 6, "fio's histograms are merged 64 buckets at a time at most");
        Self { coarseness, rows: Vec::new(), last: vec![Last::default(); 3] }
    }

    /// Closes an interval at run time `at`, given the totals of the directions. Cost: one pass over the buckets of each
    /// direction that did anything; nothing per I/O.
    pub fn close_interval(&mut self, at: Nanos, totals: [&DirectionStats; 3]) {
        for ((direction, stats), last) in Direction::ALL.into_iter().zip(totals).zip(&mut self.last) {
            // Latencies that were recorded whole become completion latencies in the end; until then they are these.
            let stats_of = if stats.clat.count() > 0 { &stats.clat } else { &stats.lat };
            let now = stats_of.histogram();
            if now.count() == last.histogram.count() {
                continue;
            }
            let ios = (stats.total_ios - last.ios).max(1);
            let block_bytes = (stats.io_bytes - last.bytes) / ios;
            let bins = now.since(&last.histogram);
            *last = Last { histogram: now.clone(), ios: stats.total_ios, bytes: stats.io_bytes };
            self.rows.push(HistogramRow { at, direction, block_bytes, bins });
        }
    }

    /// All rows, oldest first.
    #[must_use]
    pub fn rows(&self) -> &[HistogramRow] {
        &self.rows
    }

    /// Forgets what was logged, for a job whose measuring starts again.
    pub fn clear(&mut self) {
        *self = Self::new(self.coarseness);
    }

    /// The lines, as fio writes them.
    #[must_use]
    pub fn content(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut merged = vec![0_u64; BUCKET_COUNT >> self.coarseness];
            for &(bucket, count) in &row.bins {
                merged[bucket >> self.coarseness] += count;
            }
            let (ms, direction) = (row.at.0 / 1_000_000, row.direction.number());
            write!(text, "{ms}, {direction}, {}", row.block_bytes).expect("a string takes all text");
            for count in merged {
                write!(text, ", {count}").expect("a string takes all text");
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{SeriesOptions, bucket_index};

    #[test]
    fn rows_hold_what_was_done_since_the_one_before() {
        let mut stats = [0, 1, 2].map(|_| DirectionStats::new(SeriesOptions::default()));
        let mut log = HistogramLog::new(0);
        let record =
            |stats: &mut DirectionStats, latency| stats.record_whole(Nanos(1), 8_192, Nanos(latency));
        record(&mut stats[0], 10);
        record(&mut stats[0], 1_000);
        log.close_interval(Nanos::from_millis(100), stats.each_ref());
        log.close_interval(Nanos::from_millis(200), stats.each_ref());
        record(&mut stats[0], 10);
        record(&mut stats[1], 20);
        log.close_interval(Nanos::from_millis(300), stats.each_ref());
        let rows: Vec<_> =
            log.rows().iter().map(|row| (row.at.0 / 1_000_000, row.direction, row.bins.clone())).collect();
        let expected = [
            (100, Direction::Read, vec![(10, 1), (bucket_index(1_000), 1)]),
            (300, Direction::Read, vec![(10, 1)]),
            (300, Direction::Write, vec![(20, 1)]),
        ];
        assert_eq!(rows, expected);
        let first = log.content().lines().next().map(str::to_owned).expect("a line");
        assert_eq!(first.split(", ").count(), 3 + BUCKET_COUNT);
        assert!(first.starts_with("100, 0, 8192, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0"), "{first}");
    }

    #[test]
    fn coarser_lines_have_fewer_bins_and_the_same_sum() {
        for coarseness in 0..=6 {
            let mut stats = [0, 1, 2].map(|_| DirectionStats::new(SeriesOptions::default()));
            for latency in [1, 70, 5_000, 1 << 40] {
                stats[2].record_whole(Nanos(1), 4_096, Nanos(latency));
            }
            let mut log = HistogramLog::new(coarseness);
            log.close_interval(Nanos::from_millis(1), stats.each_ref());
            let text = log.content();
            let bins: Vec<u64> =
                text.trim().split(", ").skip(3).map(|bin| bin.parse().expect("a count")).collect();
            assert_eq!((bins.len(), bins.iter().sum::<u64>()), (1_856 >> coarseness, 4), "{coarseness}");
        }
    }
}
