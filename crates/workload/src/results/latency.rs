//! Latencies of one kind: a histogram, and the exact moments a histogram loses.

use ocssd_base::Nanos;

use super::histogram::Histogram;

/// All that is kept of one kind of latency (fio's `slat_ns`, `clat_ns` or `lat_ns`).
///
/// Mean and deviation come from exact integer sums, so merging is exact and order does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyStats {
    histogram: Histogram,
    min: Nanos,
    max: Nanos,
    sum: u128,
    sum_of_squares: u128,
}

impl Default for LatencyStats {
    fn default() -> Self {
        Self { histogram: Histogram::default(), min: Nanos::MAX, max: Nanos::ZERO, sum: 0, sum_of_squares: 0 }
    }
}

impl LatencyStats {
    /// Adds one latency. Cost: a handful of instructions, one cache line of the histogram, no allocation.
    ///
    /// # Panics
    /// If the sum of squares leaves 128 bits: 2^64 latencies of 4 s, or 2^32 of three days.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.histogram.record(latency);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        let wide = u128::from(latency.0);
        self.sum += wide;
        self.sum_of_squares += wide * wide;
    }

    /// Records the same latency `count` times.
    pub fn record_many(&mut self, latency: Nanos, count: u64) {
        if count > 0 {
            self.histogram.record_many(latency, count);
            self.min = self.min.min(latency);
            self.max = self.max.max(latency);
            let wide = u128::from(latency.0);
            self.sum += wide * u128::from(count);
            self.sum_of_squares += wide * wide * u128::from(count);
        }
    }

    /// Adds all latencies of `other`. The result equals recording both into one.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// How many latencies were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.count()
    }

    /// The sum of all latencies in nanoseconds, exact.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The distribution.
    #[must_use]
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// The smallest latency, exact; `None` without samples.
    #[must_use]
    pub fn min(&self) -> Option<Nanos> {
        (self.count() > 0).then_some(self.min)
    }

    /// The largest latency, exact; `None` without samples.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        (self.count() > 0).then_some(self.max)
    }

    /// The arithmetic mean in nanoseconds; zero without samples, as fio prints it.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "reports show at most 15 digits")]
    pub fn mean_ns(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }

    /// The sample standard deviation (N-1) in nanoseconds; zero below two samples, as fio prints it.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "reports show at most 15 digits")]
    pub fn stddev_ns(&self) -> f64 {
        let count = self.count();
        if count < 2 {
            return 0.0;
        }
        // The large parts cancel in integers, around the mean rounded down; only the small remainder is a float.
        let wide = u128::from(count);
        let (mean, rest) = (self.sum / wide, self.sum % wide);
        let around_mean = (self.sum_of_squares - mean * self.sum) - mean * rest;
        let deviation = around_mean as f64 - (rest as f64).powi(2) / count as f64;
        (deviation.max(0.0) / (count - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    fn stats(values: &[u64]) -> LatencyStats {
        let mut stats = LatencyStats::default();
        values.iter().for_each(|&value| stats.record(Nanos(value)));
        stats
    }

    #[test]
    fn moments_are_those_of_the_sample() {
        let cases: [(&[u64], f64, f64); 5] = [
            (&[], 0.0, 0.0),
            (&[7], 7.0, 0.0),
            (&[2, 4, 4, 4, 5, 5, 7, 9], 5.0, (32.0_f64 / 7.0).sqrt()),
            (&[1, 2], 1.5, 0.5_f64.sqrt()),
            (&[1_000_000_000_000, 1_000_000_000_001, 1_000_000_000_002], 1_000_000_000_001.0, 1.0),
        ];
        for (values, mean, stddev) in cases {
            let stats = stats(values);
            assert!((stats.mean_ns() - mean).abs() < 1e-9, "mean of {values:?}: {}", stats.mean_ns());
            assert!((stats.stddev_ns() - stddev).abs() < 1e-9, "stddev of {values:?}: {}", stats.stddev_ns());
        }
    }

    #[test]
    fn without_samples_there_is_no_smallest_or_largest() {
        assert_eq!((stats(&[]).min(), stats(&[]).max()), (None, None));
        assert_eq!((stats(&[3, 9]).min(), stats(&[3, 9]).max()), (Some(Nanos(3)), Some(Nanos(9))));
    }

    #[test]
    fn merging_equals_recording_all_in_one() {
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let values: Vec<u64> = (0..500).map(|_| prng.next_u64() >> (10 + prng.below(50))).collect();
            let (left, right) = values.split_at(usize::try_from(prng.below(500)).unwrap());
            let mut merged = stats(left);
            merged.merge(&stats(right));
            assert_eq!(merged, stats(&values), "seed {seed}");
        }
    }
}
