//! Bandwidth, I/O rate and mean latency over run time: one entry per interval, in bounded memory.
//!
//! When the series is full its entries are added in pairs and the interval doubles, so a run of any length keeps
//! between 1 800 and 3 600 entries and never allocates after the start.

use ocssd_base::Nanos;

/// Most entries a series keeps: one hour of seconds (chosen; fio's own logs are unbounded). Even, for pairing.
pub const SERIES_ENTRIES_MAX: usize = 3_600;

const _: () = assert!(SERIES_ENTRIES_MAX.is_multiple_of(2), "a full series is halved by adding pairs");

/// When a series starts and how long its first intervals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// Run time at which measuring starts, for example the end of `ramp_time`.
    pub start: Nanos,
    /// Length of an interval (fio: `bwavgtime`, `iopsavgtime`, `log_avg_msec`), above zero. Default 1 s.
    pub interval: Nanos,
}

impl Default for SeriesOptions {
    fn default() -> Self {
        Self { start: Nanos::ZERO, interval: Nanos::from_secs(1) }
    }
}

/// What completed in one interval. Sums fit: an interval of a day with 10 million I/Os per second of 1 ms is 2^60.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Completed I/Os.
    pub ios: u64,
    /// Completed bytes.
    pub bytes: u64,
    /// Sum of submission latencies in nanoseconds.
    pub slat_ns_sum: u64,
    /// Sum of completion latencies in nanoseconds.
    pub clat_ns_sum: u64,
    /// Sum of total latencies in nanoseconds.
    pub lat_ns_sum: u64,
}

impl Interval {
    fn plus(self, other: Self) -> Self {
        Self {
            ios: self.ios + other.ios,
            bytes: self.bytes + other.bytes,
            slat_ns_sum: self.slat_ns_sum + other.slat_ns_sum,
            clat_ns_sum: self.clat_ns_sum + other.clat_ns_sum,
            lat_ns_sum: self.lat_ns_sum + other.lat_ns_sum,
        }
    }
}

/// The intervals of one direction of one job.
#[derive(Clone, Debug)]
pub struct IntervalSeries {
    start: Nanos,
    interval: Nanos,
    complete: Vec<Interval>,
    current: Interval,
    current_end: Nanos,
}

impl IntervalSeries {
    /// An empty series with all its memory.
    ///
    /// # Panics
    /// If the interval is zero.
    #[must_use]
    pub fn new(options: SeriesOptions) -> Self {
        assert!(options.interval > Nanos::ZERO, "an interval takes time");
        Self {
            start: options.start,
            interval: options.interval,
            complete: Vec::with_capacity(SERIES_ENTRIES_MAX),
            current: Interval::default(),
            current_end: options.start + options.interval,
        }
    }

    /// The interval that `now` falls into, to be added to. `now` is run time and does not go back; if it does, the
    /// newest interval is returned. Cost: one comparison, except once per interval.
    #[inline]
    pub(super) fn at(&mut self, now: Nanos) -> &mut Interval {
        if now >= self.current_end {
            self.advance(now);
        }
        &mut self.current
    }

    /// Closes every interval that ended at `now` or before, with or without I/O in it.
    #[cold]
    pub(super) fn advance(&mut self, now: Nanos) {
        while now >= self.current_end {
            self.complete.push(std::mem::take(&mut self.current));
            if self.complete.len() == SERIES_ENTRIES_MAX {
                self.halve();
            }
            self.current_end += self.interval;
        }
    }

    /// Adds entries in pairs and doubles the interval; what is full stays aligned with the start.
    fn halve(&mut self) {
        for index in 0..SERIES_ENTRIES_MAX / 2 {
            self.complete[index] = self.complete[2 * index].plus(self.complete[2 * index + 1]);
        }
        self.complete.truncate(SERIES_ENTRIES_MAX / 2);
        self.interval = self.interval * 2;
    }

    /// Length of an interval now: the chosen one, or that times a power of two.
    #[must_use]
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// Run time at which the first interval starts.
    #[must_use]
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// All complete intervals, from the start on, including those without I/O.
    #[must_use]
    pub fn complete(&self) -> &[Interval] {
        &self.complete
    }

    /// The interval under way, which is shorter than the others.
    #[must_use]
    pub fn current(&self) -> Interval {
        self.current
    }

    /// Bandwidth samples in KiB/s: fio's `bw_min` to `bw_samples`.
    #[must_use]
    pub fn bandwidth(&self) -> IntervalSummary {
        self.summary(|interval| interval.bytes, 1_024)
    }

    /// I/O rate samples per second: fio's `iops_min` to `iops_samples`.
    #[must_use]
    pub fn iops(&self) -> IntervalSummary {
        self.summary(|interval| interval.ios, 1)
    }

    /// Rates per second of `amount / unit`, rounded down. Like fio, intervals without I/O are no samples.
    fn summary(&self, amount: fn(&Interval) -> u64, unit: u64) -> IntervalSummary {
        let rates: Vec<u64> = (self.complete.iter().map(amount).filter(|&amount| amount > 0))
            .map(|amount| rate_per_second(amount, self.interval) / unit)
            .collect();
        IntervalSummary::of(&rates)
    }
}

/// `amount` per `span` as a rate per second, rounded down; zero for no time.
pub(super) fn rate_per_second(amount: u64, span: Nanos) -> u64 {
    if span == Nanos::ZERO {
        return 0;
    }
    let rate = u128::from(amount) * 1_000_000_000 / u128::from(span.0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Moments of a rate over the intervals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalSummary {
    /// The smallest sample; zero without samples.
    pub min: u64,
    /// The largest sample.
    pub max: u64,
    /// Mean of the samples.
    pub mean: f64,
    /// Sum of squared distances from the mean.
    pub squares: f64,
    /// Number of samples.
    pub samples: u64,
}

impl IntervalSummary {
    #[expect(clippy::cast_precision_loss, reason = "a rate below 2^53 per second")]
    fn of(rates: &[u64]) -> Self {
        let (Some(&min), Some(&max)) = (rates.iter().min(), rates.iter().max()) else {
            return Self::default();
        };
        let mean = rates.iter().map(|&rate| rate as f64).sum::<f64>() / rates.len() as f64;
        let squares = rates.iter().map(|&rate| (rate as f64 - mean).powi(2)).sum();
        Self { min, max, mean, squares, samples: u64::try_from(rates.len()).expect("at most 3600") }
    }

    /// Adds another job of the same group as fio does under `group_reporting`: rates run side by side, so minima,
    /// maxima and means add up; samples and squares add up too.
    pub fn add(&mut self, other: &Self) {
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
        self.samples += other.samples;
    }

    /// The sample standard deviation (N-1); zero below two samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
    pub fn stddev(&self) -> f64 {
        match self.samples {
            0 | 1 => 0.0,
            samples => (self.squares / (samples - 1) as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(interval: u64) -> IntervalSeries {
        IntervalSeries::new(SeriesOptions { start: Nanos(100), interval: Nanos(interval) })
    }

    #[test]
    fn an_interval_includes_its_start_and_not_its_end() {
        let mut series = series(10);
        for now in [100, 109, 110, 119, 120] {
            series.at(Nanos(now)).ios += 1;
        }
        let ios: Vec<u64> = series.complete().iter().map(|interval| interval.ios).collect();
        assert_eq!((ios, series.current().ios), (vec![2, 2], 1));
    }

    #[test]
    fn a_time_that_goes_back_counts_in_the_newest_interval() {
        let mut series = series(10);
        series.at(Nanos(125)).ios += 1;
        series.at(Nanos(101)).ios += 1;
        assert_eq!(series.current().ios, 2);
    }

    #[test]
    fn a_full_series_doubles_its_interval_and_loses_nothing() {
        let mut series = series(10);
        let memory = series.complete.as_ptr();
        let steps = 10 * 3_600 * 5;
        for step in 0..steps {
            series.at(Nanos(100 + step)).ios += 1;
        }
        assert_eq!(series.interval(), Nanos(80));
        assert!(series.complete().iter().all(|interval| interval.ios == 80));
        let total = series.complete().iter().map(|interval| interval.ios).sum::<u64>() + series.current().ios;
        assert_eq!(total, steps);
        assert_eq!(series.complete.as_ptr(), memory, "a series never allocates again");
    }

    #[test]
    fn a_long_silence_keeps_the_series_bounded_and_aligned() {
        let mut series = series(10);
        series.at(Nanos(100)).ios += 1;
        series.at(Nanos(1 << 50)).ios += 1;
        assert!(series.complete().len() < SERIES_ENTRIES_MAX);
        assert_eq!((series.complete()[0].ios, series.current().ios), (1, 1));
        let entries = u64::try_from(series.complete().len()).unwrap();
        assert_eq!(series.current_end, Nanos(100) + series.interval() * (entries + 1));
    }

    #[test]
    fn intervals_without_io_are_no_samples() {
        let mut series = series(1_000_000_000);
        series.at(Nanos(100)).bytes += 4_096;
        series.at(Nanos::from_secs(3)).bytes += 8_192;
        series.advance(Nanos::from_secs(4));
        let summary = series.bandwidth();
        assert_eq!((summary.min, summary.max, summary.samples), (4, 8, 2));
        assert!((summary.mean - 6.0).abs() < 1e-12);
        assert!((summary.stddev() - 8.0_f64.sqrt()).abs() < 1e-12);
    }
}
