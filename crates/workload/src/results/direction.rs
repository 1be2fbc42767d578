//! What one job did in one direction: reads, writes or trims.

use ocssd_base::Nanos;

use super::interval::{IntervalSeries, SeriesOptions};
use super::latency::LatencyStats;

/// The three latencies of one I/O, as fio defines them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoTimes {
    /// From the start of the I/O to its submission.
    pub slat: Nanos,
    /// From submission to completion.
    pub clat: Nanos,
    /// From start to completion.
    pub lat: Nanos,
}

/// Counters, latencies and the series over time of one direction. About 190 KiB, all of it allocated by `new`.
#[derive(Clone, Debug)]
pub struct DirectionStats {
    /// I/Os completed without error.
    pub total_ios: u64,
    /// Bytes completed without error.
    pub io_bytes: u64,
    /// How long the job worked in this direction; rates are over this time. Set by [`DirectionStats::finish`].
    pub runtime: Nanos,
    /// I/Os that completed with fewer bytes than asked for.
    pub short_ios: u64,
    /// I/Os given up, for example after their deadline.
    pub drop_ios: u64,
    /// I/Os that completed with an error. They are in no latency.
    pub errors: u64,
    /// Submission latencies.
    pub slat: LatencyStats,
    /// Completion latencies.
    pub clat: LatencyStats,
    /// Total latencies.
    pub lat: LatencyStats,
    /// Bandwidth, I/O rate and mean latencies over run time.
    pub series: IntervalSeries,
}

impl Default for DirectionStats {
    fn default() -> Self {
        Self::new(SeriesOptions::default())
    }
}

impl DirectionStats {
    /// Nothing done yet, measured from `options.start` on.
    ///
    /// # Panics
    /// If the interval of `options` is zero.
    #[must_use]
    pub fn new(options: SeriesOptions) -> Self {
        Self {
            total_ios: 0,
            io_bytes: 0,
            runtime: Nanos::ZERO,
            short_ios: 0,
            drop_ios: 0,
            errors: 0,
            slat: LatencyStats::default(),
            clat: LatencyStats::default(),
            lat: LatencyStats::default(),
            series: IntervalSeries::new(options),
        }
    }

    /// Counts one I/O that completed without error at run time `now`. Cost: O(1), no allocation.
    #[inline]
    pub fn record(&mut self, now: Nanos, bytes: u64, times: IoTimes) {
        self.total_ios += 1;
        self.io_bytes += bytes;
        self.slat.record(times.slat);
        self.clat.record(times.clat);
        self.lat.record(times.lat);
        let interval = self.series.at(now);
        interval.ios += 1;
        interval.bytes += bytes;
        interval.slat_ns_sum += times.slat.0;
        interval.clat_ns_sum += times.clat.0;
        interval.lat_ns_sum += times.lat.0;
    }

    /// As [`DirectionStats::record`] for an I/O whose submission took no time: completion latency is total latency. It is
    /// recorded once, and becomes all three when [`DirectionStats::finish`] is called; all I/Os or none are recorded so.
    #[inline(always)]
    pub fn record_whole(&mut self, now: Nanos, bytes: u64, lat: Nanos) {
        self.total_ios += 1;
        self.io_bytes += bytes;
        self.lat.record(lat);
        let interval = self.series.at(now);
        interval.ios += 1;
        interval.bytes += bytes;
        interval.clat_ns_sum += lat.0;
        interval.lat_ns_sum += lat.0;
    }

    /// Ends measuring at run time `now`: closes intervals and, if anything was done, sets `runtime`.
    ///
    /// fio reports no runtime for a direction without I/O, and so does this.
    pub fn finish(&mut self, now: Nanos) {
        self.series.advance(now);
        if self.lat.count() > 0 && self.clat.count() == 0 {
            self.clat.merge(&self.lat);
            self.slat.record_many(Nanos::ZERO, self.lat.count());
        }
        assert_eq!(self.clat.count(), self.lat.count(), "some I/Os were recorded whole and others in parts");
        if self.total_ios + self.errors > 0 {
            self.runtime = now.saturating_since(self.series.start());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(lat: u64) -> IoTimes {
        IoTimes { slat: Nanos(1), clat: Nanos(lat - 1), lat: Nanos(lat) }
    }

    #[test]
    fn an_io_counts_everywhere_once() {
        let mut stats = DirectionStats::default();
        stats.record(Nanos::from_millis(500), 4_096, times(10));
        stats.record(Nanos::from_millis(1_500), 4_096, times(30));
        stats.finish(Nanos::from_secs(2));
        assert_eq!((stats.total_ios, stats.io_bytes, stats.runtime), (2, 8_192, Nanos::from_secs(2)));
        assert_eq!(
            (stats.slat.count(), stats.clat.max(), stats.lat.min()),
            (2, Some(Nanos(29)), Some(Nanos(10)))
        );
        let lat_sums: Vec<u64> = stats.series.complete().iter().map(|interval| interval.lat_ns_sum).collect();
        assert_eq!(lat_sums, [10, 30]);
    }

    #[test]
    fn an_io_recorded_whole_has_all_three_latencies_in_the_end() {
        let (mut whole, mut parts) = (DirectionStats::default(), DirectionStats::default());
        for lat in [10, 30, 7_000] {
            let times = IoTimes { slat: Nanos::ZERO, clat: Nanos(lat), lat: Nanos(lat) };
            whole.record_whole(Nanos(lat), 4_096, Nanos(lat));
            parts.record(Nanos(lat), 4_096, times);
        }
        whole.finish(Nanos::from_secs(1));
        parts.finish(Nanos::from_secs(1));
        let seen = |stats: &DirectionStats| {
            let of = |stats: &LatencyStats| {
                (stats.count(), stats.min(), stats.max(), stats.mean_ns(), stats.stddev_ns())
            };
            (of(&stats.slat), of(&stats.clat), of(&stats.lat), stats.series.complete().to_vec())
        };
        assert_eq!(seen(&whole), seen(&parts));
    }

    #[test]
    fn a_direction_without_io_has_no_runtime() {
        let mut stats = DirectionStats::default();
        stats.finish(Nanos::from_secs(2));
        assert_eq!(stats.runtime, Nanos::ZERO);
    }

    #[test]
    fn time_before_the_start_is_not_run_time() {
        let start = Nanos::from_secs(5);
        let mut stats = DirectionStats::new(SeriesOptions { start, ..SeriesOptions::default() });
        stats.record(Nanos::from_secs(6), 512, times(10));
        stats.finish(Nanos::from_secs(7));
        assert_eq!((stats.runtime, stats.series.complete().len()), (Nanos::from_secs(2), 2));
    }
}
