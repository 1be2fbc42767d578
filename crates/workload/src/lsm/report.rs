//! What was measured: by benchmark, and over time.
//!
//! Deliberately not here: how it is shown (`cli`).

use super::throttle::Cause;
use crate::results::LatencyStats;
use ocssd_base::Nanos;

/// What happened within an interval of a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Puts that ended.
    pub puts: u64,
    /// Gets that ended, and records that a `readseq` came to.
    pub reads: u64,
    /// Time in which the write queue was held up by the rate.
    pub delayed: Nanos,
    /// Time in which it was stopped.
    pub stopped: Nanos,
    /// Most tables of level 0.
    pub level0_max: usize,
}

/// Bytes of work behind the puts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of keys and values that were put.
    pub put_bytes: u64,
    /// Tables that flushes wrote, and their bytes.
    pub flushes: u64,
    /// Their bytes.
    pub flushed_bytes: u64,
    /// Compactions that merged.
    pub compactions: u64,
    /// Compactions that only moved a table.
    pub moves: u64,
    /// Bytes of records compactions took in.
    pub compaction_read_bytes: u64,
    /// Bytes of tables compactions wrote.
    pub compaction_written_bytes: u64,
}

impl Work {
    /// What was written for each byte that was put: by flushes and compactions, 0 without puts.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn amplification(&self) -> f64 {
        let written = self.flushed_bytes + self.compaction_written_bytes;
        if self.put_bytes == 0 { 0.0 } else { written as f64 / self.put_bytes as f64 }
    }
}

/// A benchmark.
#[derive(Clone, Debug)]
pub struct Phase {
    /// As `db_bench` calls it.
    pub name: &'static str,
    /// When it began.
    pub began: Nanos,
    /// When its last operation ended.
    pub ended: Nanos,
    /// From when a thread began a put until it could go on.
    pub puts: LatencyStats,
    /// The same of gets.
    pub gets: LatencyStats,
    /// Records that `readseq` came to.
    pub scanned: u64,
    /// Blocks that gets read because a filter was wrong.
    pub filter_wrong: u64,
    /// Time in which the write queue was stopped, by cause.
    pub stopped: [Nanos; 3],
    /// Time in which it was held up by the rate, by cause.
    pub delayed: [Nanos; 3],
    /// The lowest rate of puts that were slowed down, in bytes a second; none if none were.
    pub rate_min: Option<u64>,
    /// What went on behind.
    pub work: Work,
    /// An entry for each interval.
    pub series: Vec<Point>,
    interval: Nanos,
}

impl Phase {
    pub(super) fn new(name: &'static str, began: Nanos, interval: Nanos) -> Self {
        Self {
            name,
            began,
            ended: began,
            puts: LatencyStats::default(),
            gets: LatencyStats::default(),
            scanned: 0,
            filter_wrong: 0,
            stopped: [Nanos::ZERO; 3],
            delayed: [Nanos::ZERO; 3],
            rate_min: None,
            work: Work::default(),
            series: Vec::new(),
            interval,
        }
    }

    /// How long it took.
    #[must_use]
    pub fn took(&self) -> Nanos {
        self.ended.saturating_since(self.began)
    }

    /// Operations that ended.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.puts.count() + self.gets.count() + self.scanned
    }

    /// The point of the series that `at` lies in.
    pub(super) fn point(&mut self, at: Nanos) -> &mut Point {
        let nth = at.saturating_since(self.began).0 / self.interval.0;
        let nth = usize::try_from(nth).expect("a series fits memory");
        if self.series.len() <= nth {
            self.series.resize(nth + 1, Point::default());
        }
        &mut self.series[nth]
    }

    /// The write queue did not go on between two times.
    pub(super) fn stall(&mut self, (from, to): (Nanos, Nanos), cause: Cause, is_stop: bool) {
        let all = if is_stop { &mut self.stopped } else { &mut self.delayed };
        all[cause as usize] += to.saturating_since(from);
        let mut at = from.max(self.began);
        while at < to {
            let nth = at.saturating_since(self.began).0 / self.interval.0;
            let end = (self.began + self.interval * (nth + 1)).min(to);
            let point = self.point(at);
            *(if is_stop { &mut point.stopped } else { &mut point.delayed }) += end.saturating_since(at);
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_spread_over_the_intervals_it_lasts() {
        let mut phase = Phase::new("fillseq", Nanos(100), Nanos(10));
        phase.stall((Nanos(105), Nanos(123)), Cause::Level0, true);
        phase.stall((Nanos(123), Nanos(124)), Cause::Memtables, false);
        let stopped: Vec<u64> = phase.series.iter().map(|point| point.stopped.0).collect();
        assert_eq!(stopped, [5, 10, 3]);
        assert_eq!(phase.stopped, [Nanos(0), Nanos(18), Nanos(0)]);
        assert_eq!((phase.delayed[0], phase.series[2].delayed), (Nanos(1), Nanos(1)));
    }
}
