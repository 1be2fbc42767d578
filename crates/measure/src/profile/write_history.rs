//! Random writes over time, in small steps: how throughput and the tail change while a drive comes to rest.
//!
//! Whoever runs the rounds shows each job to a [`WriteHistory`] from time to time; it keeps what happened since the last look as a
//! [`Interval`]. When there are too many, each two become one and it looks half as often. Deliberately not here: pictures.

use super::device_under_test::Look;
use super::record::{as_f64, carried};
use super::timeline::DriveState;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::CounterValue;
use ocssd_workload::results::{Histogram, bucket_value};
use ocssd_workload::run::Tally;

/// What happened between two looks at one job.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// When it ended, on the clock of the profile.
    pub ended: Nanos,
    /// How long it was.
    pub took: Nanos,
    /// I/Os that ended in it.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their latencies.
    pub latency: Histogram,
    /// What the translation layer did; `None` of real drives.
    pub inside: Option<Inside>,
}

/// What a translation layer did in an interval, or since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Sectors moved by garbage collection.
    pub collected_sectors: u64,
    /// Lines that were reset.
    pub lines_erased: u64,
    /// Checkpoints of its map.
    pub checkpoints: u64,
}

impl Inside {
    /// From the counters of a drive; `None` if its translation layer has none of these.
    fn of(state: &DriveState) -> Option<Self> {
        let count = |name: &str| {
            state.counters.iter().find_map(|counter| match counter.value {
                CounterValue::Count(count) if counter.name == name => Some(count),
                _ => None,
            })
        };
        Some(Self {
            collected_sectors: count("gc_written_sectors")?,
            lines_erased: count("lines_erased")?,
            checkpoints: count("checkpoints").unwrap_or_default(),
        })
    }

    const fn since(self, before: Self) -> Self {
        Self {
            collected_sectors: self.collected_sectors.saturating_sub(before.collected_sectors),
            lines_erased: self.lines_erased.saturating_sub(before.lines_erased),
            checkpoints: self.checkpoints.saturating_sub(before.checkpoints),
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            collected_sectors: self.collected_sectors + other.collected_sectors,
            lines_erased: self.lines_erased + other.lines_erased,
            checkpoints: self.checkpoints + other.checkpoints,
        }
    }
}

impl Interval {
    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        as_f64(self.bytes) / self.took.as_secs_f64()
    }

    /// The 99th percentile in nanoseconds, if ten samples lie beyond it.
    #[must_use]
    pub fn p99_ns(&self) -> Option<f64> {
        carried(&self.latency, 99.0)
    }

    /// Both as one.
    fn join(mut self, later: &Self) -> Self {
        self.latency.merge(&later.latency);
        Self {
            ended: later.ended,
            took: self.took + later.took,
            ios: self.ios + later.ios,
            bytes: self.bytes + later.bytes,
            latency: self.latency,
            inside: self.inside.zip(later.inside).map(|(early, late)| early.plus(late)),
        }
    }
}

/// Beats in order of time.
#[derive(Clone, Debug, Default)]
pub struct WriteHistory {
    interval: Nanos,
    intervals: Vec<Interval>,
    last: Option<Last>,
}

/// How things stood at the last look.
#[derive(Clone, Debug)]
struct Last {
    at: Nanos,
    tally: Tally,
    inside: Option<Inside>,
}

/// Most intervals (chosen: two for each that a picture shows; a histogram each, 4 MB in all).
const INTERVALS_MAX: usize = 240;
/// Least time between two looks (chosen: a few programs of flash).
const INTERVAL_MIN: Nanos = Nanos::from_millis(1);

impl WriteHistory {
    /// Nothing has happened; looks come `interval` apart or more.
    #[must_use]
    pub fn new(interval: Nanos) -> Self {
        Self { interval: interval.max(INTERVAL_MIN), intervals: Vec::new(), last: None }
    }

    /// Another job begins, which counts from nothing.
    pub fn begin_job(&mut self) {
        self.last = None;
    }

    /// Looks at a job, if it is time; the profile began at `origin` on the job's clock.
    pub fn see(&mut self, origin: Nanos, look: &dyn Look) {
        let at = look.now().saturating_since(origin);
        if self.last.as_ref().is_some_and(|last| at < last.at + self.interval) {
            return;
        }
        let inside = look.drive().as_ref().and_then(Inside::of);
        let now = Last { at, tally: look.tally(), inside };
        if let Some(before) = self.last.replace(now.clone()) {
            self.intervals.push(between(&before, &now));
        }
        if self.intervals.len() > INTERVALS_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let pairs = self.intervals.chunks(2);
        self.intervals = pairs
            .map(|pair| pair[1..].iter().fold(pair[0].clone(), |early, late| early.join(late)))
            .collect();
        self.interval = self.interval * 2;
    }

    /// All intervals.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

fn between(before: &Last, now: &Last) -> Interval {
    let mut latency = Histogram::default();
    for (bucket, count) in now.tally.latency.since(&before.tally.latency) {
        latency.record_many(Nanos(bucket_value(bucket)), count);
    }
    Interval {
        ended: now.at,
        took: now.at.saturating_since(before.at),
        ios: now.tally.ios - before.tally.ios,
        bytes: now.tally.bytes - before.tally.bytes,
        latency,
        inside: now.inside.zip(before.inside).map(|(now, before)| now.since(before)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::block::Counter;

    /// A job that does an I/O of 4 KiB each millisecond, in as many microseconds as milliseconds have gone.
    struct Job {
        gone: u64,
        before: u64,
    }

    impl Look for Job {
        fn now(&self) -> Nanos {
            Nanos::from_millis(self.before + self.gone)
        }

        fn tally(&self) -> Tally {
            let mut latency = Histogram::default();
            (0..self.gone).for_each(|one| latency.record(Nanos::from_micros(one)));
            Tally { ios: self.gone, bytes: self.gone * 4096, latency }
        }

        fn drive(&self) -> Option<DriveState> {
            let count = |name, value| Counter { name, about: "", value: CounterValue::Count(value) };
            let all = self.before + self.gone;
            let counters = vec![count("gc_written_sectors", all * 3), count("lines_erased", all / 10)];
            Some(DriveState { counters, ..DriveState::default() })
        }
    }

    #[test]
    fn a_beat_is_what_happened_since_the_last_look_and_none_reaches_over_two_jobs() {
        let mut history = WriteHistory::new(Nanos::from_millis(10));
        for before in [0, 100] {
            history.begin_job();
            (0..100).for_each(|gone| history.see(Nanos::ZERO, &Job { gone, before }));
        }
        assert_eq!(history.intervals().len(), 18);
        for interval in history.intervals() {
            assert_eq!(
                (interval.ios, interval.bytes, interval.took),
                (10, 40960, Nanos::from_millis(10)),
                "{interval:?}"
            );
            assert_eq!(interval.inside.map(|inside| inside.collected_sectors), Some(30));
            assert_eq!(interval.p99_ns(), None, "ten samples carry no percentile");
            assert!((interval.bytes_per_second() - 4_096_000.0).abs() < 1e-6);
        }
    }

    #[test]
    fn a_long_time_is_kept_in_few_beats_and_nothing_is_lost() {
        let mut history = WriteHistory::new(Nanos::ZERO);
        (0..2000).for_each(|gone| history.see(Nanos::ZERO, &Job { gone, before: 0 }));
        let intervals = history.intervals();
        assert!(
            intervals.len() <= INTERVALS_MAX && intervals.len() > INTERVALS_MAX / 3,
            "{}",
            intervals.len()
        );
        let all: u64 = intervals.iter().map(|interval| interval.ios).sum();
        let end = intervals.last().map(|interval| interval.ended);
        assert_eq!(Some(Nanos::from_millis(all)), end, "an I/O for each millisecond until the last look");
    }
}
