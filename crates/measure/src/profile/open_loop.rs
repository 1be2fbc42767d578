//! Latency against load when requests come by the clock: the open loop.
//!
//! A closed loop makes its next request when one has ended, so it asks a slow drive less, and counts the worst moments once where
//! users would have met them many times (coordinated omission). Here 4 KiB random reads come at random times (Poisson), at
//! shares of the most that the depth sweep did, and latency counts from when each was due. `Session` runs it after the cells;
//! without a depth sweep there is none. Deliberately not here: the schedule of arrivals, which is `workload`'s
//! (`rate_process=poisson`), and pictures.

use super::cell::Cell;
use super::device_under_test::{Done, TestError};
use super::explain::{depth_curve, time_word};
use super::file_under_test::iops;
use super::record::{SAMPLES_BEYOND, as_f64, carried};
use super::schedule::{Effort, OVERHEAD, RUN_MAX, RUN_MIN, shuffled};
use super::session::{OPEN_PERCENT, Session, as_u64, kept, u128_as_f64};
use super::statistics::Mean;
use ocssd_base::{Nanos, Prng};
use ocssd_workload::results::{JobResult, LatencyStats};
use serde_json::Value;

/// One load.
#[derive(Clone, Debug)]
pub struct OpenPoint {
    /// The load in percent of the most that a closed loop did.
    pub share_percent: u32,
    /// Reads that came each second.
    pub asked_iops: u64,
    /// Reads that ended each second.
    pub iops: Mean,
    /// Mean latency in nanoseconds, from when a read was due.
    pub mean_ns: Mean,
    /// The part of that before it was begun: in the queue of this program, or because it woke late.
    pub late_ns: Mean,
    /// Latencies of all repetitions, from when each read was due.
    pub latency: LatencyStats,
}

impl OpenPoint {
    /// A percentile in nanoseconds, if ten samples lie beyond it.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        carried(self.latency.histogram(), percent)
    }

    /// True if fewer reads ended than came: the load is more than the drive can do, and latency grows as long as it lasts.
    #[must_use]
    pub fn fell_behind(&self) -> bool {
        self.iops.value < KEPT * as_f64(self.asked_iops)
    }
}

/// One run at one load.
#[derive(Clone, Debug)]
pub struct OpenRun {
    /// Index of its point.
    pub point: usize,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// When it began, on the device's clock.
    pub began: Nanos,
    /// Reads that came each second.
    pub asked_iops: u64,
    /// Reads that ended each second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean latency from when a read was due, and from when it was begun, in nanoseconds.
    pub mean_ns: f64,
    /// The second of these.
    pub begun_mean_ns: f64,
    /// Processor time of this program for each I/O in nanoseconds; `None` in virtual time.
    pub cpu_ns_per_io: Option<f64>,
    /// As fio's JSON has a job, and what our own part of a result says of it.
    pub job: Value,
    /// The second of these.
    pub own: Value,
    latency: LatencyStats,
}

/// Loads in percent of the most (chosen: evenly where little waits, closer where the curve bends).
const SHARES: [u32; 7] = [10, 25, 50, 65, 80, 90, 95];
const SHARES_QUICK: [u32; 4] = [25, 50, 75, 90];
/// Less than this share of what came is falling behind (chosen: a Poisson process of 10 000 is 2 % off less often than once in
/// twenty).
const KEPT: f64 = 0.98;
/// Reads outstanding at most: those that come beyond wait, and their waiting counts (chosen: the deepest of the sweep).
pub(super) const OPEN_DEPTH: u32 = 256;
/// The reads.
pub(super) const OPEN_CELL: Cell = Cell::random(4096, 100, OPEN_DEPTH);

/// How long each run takes, and how often each load is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    run: Nanos,
    repetitions: u32,
}

impl Pace {
    /// Spreads runs at `points` loads over `time`; repetitions are given up before runs become too short.
    fn new(points: usize, repetitions: u32, time: Nanos) -> Self {
        let mut repetitions = repetitions.max(1);
        let each = |repetitions: u32| Nanos(time.0 / (as_u64(points) * u64::from(repetitions)));
        while repetitions > 1 && each(repetitions) < RUN_MIN + OVERHEAD * 2 {
            repetitions -= 1;
        }
        let run = Nanos(each(repetitions).saturating_since(OVERHEAD).0 / 11 * 10).clamp(RUN_MIN, RUN_MAX);
        Self { run, repetitions }
    }
}

impl Session<'_> {
    /// Measures every load, if the depth sweep says how much the drive does.
    pub(super) fn open_loop(&mut self) -> Result<(), TestError> {
        let curve = depth_curve(&self.profile);
        let most = curve.iter().map(|point| point.iops).fold(0.0, f64::max);
        if curve.len() < 3 || OPEN_CELL.bytes_in_flight() > self.device.bounds().bytes {
            return Ok(());
        }
        let shares: &[u32] = if self.asked.effort == Effort::Quick { &SHARES_QUICK } else { &SHARES };
        let rates: Vec<u64> = shares.iter().map(|&share| rate(most, share)).collect();
        let wanted = self.asked.repetitions.unwrap_or(self.asked.effort.repetitions());
        let pace = Pace::new(shares.len(), wanted, self.share(OPEN_PERCENT));
        self.begin("open loop");
        let result = self.open_runs(&rates, pace);
        let runs = &self.profile.open_runs;
        self.profile.open =
            (0..).zip(shares).filter_map(|(index, &share)| summary(index, share, runs)).collect();
        result
    }

    /// Every load once before any is measured again, each time in another random order.
    fn open_runs(&mut self, rates: &[u64], pace: Pace) -> Result<(), TestError> {
        let mut prng = Prng::new(self.seed).split("open loop");
        let all = as_u64(rates.len()) * u64::from(pace.repetitions);
        let mut done = 0;
        for repetition in 0..pace.repetitions {
            for point in shuffled(rates.len(), &mut prng) {
                let rate = rates[point];
                let each = pace.run + Nanos(pace.run.0 / 10) + OVERHEAD;
                let what = format!("open loop, run {} of {all}: {rate} reads each second", done + 1);
                self.say(what, each * (all - done));
                let name = format!("open-{rate}-r{}", repetition + 1);
                let setting = self.setting(name, OPEN_DEPTH, pace.run, Nanos(pace.run.0 / 10));
                let began = self.gone();
                let Done { mut result, cpu_ns_per_io, .. } = self.job(&OPEN_CELL.open_job(&setting, rate))?;
                result.group = u32::try_from(self.profile.runs.len() + self.profile.open_runs.len())
                    .expect("fewer than 2^32 runs");
                let run = record((point, repetition), (began, rate), result, self.seed);
                self.profile.open_runs.push(OpenRun { cpu_ns_per_io, ..run });
                done += 1;
            }
        }
        Ok(())
    }
}

/// A share of the most, as whole reads each second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate of I/Os above zero and far below 2^53"
)]
fn rate(most: f64, share_percent: u32) -> u64 {
    ((most * f64::from(share_percent) / 100.0).round() as u64).max(1)
}

fn record(
    (point, repetition): (usize, u32),
    (began, asked_iops): (Nanos, u64),
    result: JobResult,
    seed: u64,
) -> OpenRun {
    let latency = result.response.clone().unwrap_or_default();
    let begun = &result.read.lat;
    let mean = |stats: &LatencyStats| u128_as_f64(stats.sum_ns()) / as_f64(stats.count().max(1));
    let (mean_ns, begun_mean_ns, rate) = (mean(&latency), mean(begun), iops(&result));
    let bytes_per_second = as_f64(result.read.io_bytes) / result.run_time.as_secs_f64().max(1e-9);
    let (job, own) = kept(result, seed);
    OpenRun {
        point,
        repetition,
        began,
        asked_iops,
        iops: rate,
        bytes_per_second,
        mean_ns,
        begun_mean_ns,
        cpu_ns_per_io: None,
        job,
        own,
        latency,
    }
}

fn summary(point: usize, share_percent: u32, runs: &[OpenRun]) -> Option<OpenPoint> {
    let own: Vec<&OpenRun> = runs.iter().filter(|run| run.point == point).collect();
    let of = |number: fn(&OpenRun) -> f64| Mean::of(&own.iter().map(|run| number(run)).collect::<Vec<_>>());
    let mut latency = LatencyStats::default();
    own.iter().for_each(|run| latency.merge(&run.latency));
    Some(OpenPoint {
        share_percent,
        asked_iops: own.first()?.asked_iops,
        iops: of(|run| run.iops),
        mean_ns: of(|run| run.mean_ns),
        late_ns: of(|run| (run.mean_ns - run.begun_mean_ns).max(0.0)),
        latency,
    })
}

/// What the loads say together, as a sentence; `None` if too few were kept up with.
pub(super) fn sentence(points: &[OpenPoint], closed: impl Fn(f64) -> Option<f64>) -> Option<String> {
    let kept: Vec<&OpenPoint> = points.iter().filter(|point| !point.fell_behind()).collect();
    let (first, last) = (kept.first()?, kept.last()?);
    if kept.len() < 2 {
        return None;
    }
    let words = |point: &OpenPoint| {
        let tail = point.percentile(99.0).map_or_else(
            || format!("fewer than {SAMPLES_BEYOND:.0} samples beyond the 99th percentile"),
            |nanos| format!("99 % take less than {}", time_word(nanos)),
        );
        format!(
            "at {} % of the most ({} a second) {} on average, {tail}",
            point.share_percent,
            point.asked_iops,
            time_word(point.mean_ns.value)
        )
    };
    let beside = closed(last.iops.value).map_or_else(String::new, |nanos| {
        let why = if nanos < last.mean_ns.value {
            "it waits with its next read until one has ended, and so never meets a queue it did not make"
        } else {
            "it keeps as many waiting as its depth says, however few would do"
        };
        format!(" A closed loop shows {} at that throughput: {why}.", time_word(nanos))
    });
    let behind = points.len() - kept.len();
    let behind = match behind {
        0 => String::new(),
        count => format!(
            " What could not be done, {count} of {} loads, has latency that says only how long it lasted.",
            points.len()
        ),
    };
    Some(format!(
        "If reads come at random times whether or not earlier ones have ended, as users' do, they take {}; {}.{beside}{behind}",
        words(first),
        words(last)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_kept_and_repetitions_go_first() {
        for (seconds, repetitions) in [(60, 5), (6, 3), (3, 3), (2, 2), (1, 1)] {
            let time = Nanos::from_secs(seconds);
            let pace = Pace::new(4, 5.min(if seconds == 60 { 5 } else { 3 }), time);
            assert_eq!(pace.repetitions, repetitions, "{seconds} s");
            let each = pace.run + Nanos(pace.run.0 / 10) + OVERHEAD;
            assert!(each * (4 * u64::from(repetitions)) <= time || repetitions == 1, "{seconds} s: {pace:?}");
        }
        assert_eq!(Pace::new(7, 3, Nanos::ZERO), Pace { run: RUN_MIN, repetitions: 1 });
    }

    #[test]
    fn a_load_is_a_share_of_the_most_and_never_nothing() {
        assert_eq!((rate(1000.4, 50), rate(1000.0, 95), rate(0.1, 10)), (500, 950, 1));
    }
}
