//! What a profile has found: every run, every cell over its repetitions, and how the drive came to rest.

use super::cell::Cell;
use super::open_loop::{OpenPoint, OpenRun};
use super::statistics::Mean;
use super::timeline::Timeline;
use super::write_history::WriteHistory;
use super::writers::WritersCurve;
use crate::storage::{Attestation, Surroundings};
use ocssd_base::Nanos;
use ocssd_workload::job::RoundRule;
use ocssd_workload::results::{ClockKind, Histogram, JobResult, LatencyStats, Row};
use ocssd_workload::run::{RoundsState, Window};
use serde_json::Value;

/// One run of one cell.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Index of its cell.
    pub cell: usize,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// When it began, on the device's clock.
    pub began: Nanos,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean latency in nanoseconds.
    pub mean_ns: f64,
    /// Processor time of this program for each I/O in nanoseconds; `None` in virtual time.
    pub cpu_ns_per_io: Option<f64>,
    /// As fio's JSON has a job, and what our own part of a result says of it.
    pub job: Value,
    /// The second of these.
    pub own: Value,
}

/// A cell over its repetitions.
#[derive(Clone, Debug)]
pub struct CellRecord {
    /// The cell.
    pub cell: Cell,
    /// I/Os per second.
    pub iops: Mean,
    /// Bytes per second.
    pub bytes_per_second: Mean,
    /// Mean latency in nanoseconds.
    pub mean_ns: Mean,
    /// Processor time of this program for each I/O in nanoseconds; `None` in virtual time.
    pub cpu_ns_per_io: Option<Mean>,
    /// Latencies of all repetitions and directions together.
    pub latency: LatencyStats,
}

impl CellRecord {
    /// A percentile in nanoseconds, if there are samples enough to say: ten beyond it.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        carried(self.latency.histogram(), percent)
    }
}

/// A percentile in nanoseconds, if ten samples lie beyond it.
pub(super) fn carried(latencies: &Histogram, percent: f64) -> Option<f64> {
    let enough = as_f64(latencies.count()) * (100.0 - percent) / 100.0 >= SAMPLES_BEYOND;
    enough.then(|| latencies.percentile(percent)).flatten().map(|value| as_f64(value.0))
}

/// Samples beyond a percentile that carry it (rule L11 of the linter).
pub const SAMPLES_BEYOND: f64 = 10.0;

#[expect(clippy::cast_precision_loss, reason = "counts and latencies are far below 2^53")]
pub(super) const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// Throughput over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Length of an interval.
    pub interval: Nanos,
    /// Bytes per second in each.
    pub bytes_per_second: Vec<f64>,
}

impl Series {
    /// Of a job's writes.
    #[must_use]
    pub fn of_writes(result: &JobResult) -> Self {
        let series = &result.write.series;
        let seconds = series.interval().as_secs_f64();
        let rates = series.complete().iter().map(|interval| as_f64(interval.bytes) / seconds).collect();
        Self { interval: series.interval(), bytes_per_second: rates }
    }
}

/// How everything was written once, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct FillRecord {
    /// Bytes written.
    pub bytes: u64,
    /// Bytes that were to be written.
    pub wanted: u64,
    /// Time it took.
    pub took: Nanos,
    /// Over time.
    pub series: Series,
}

impl FillRecord {
    /// Bytes per second over all of it.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        as_f64(self.bytes) / self.took.as_secs_f64().max(1e-9)
    }
}

/// How random writes came to rest.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundsRecord {
    /// The rule.
    pub rule: RoundRule,
    /// Whether it is called steady.
    pub state: RoundsState,
    /// I/Os per second of each round.
    pub iops: Vec<f64>,
    /// Length of a round.
    pub round: Nanos,
    /// Bytes written in all.
    pub written: u64,
    /// The last window, once it was full.
    pub window: Option<Window>,
}

impl RoundsRecord {
    /// True if the rule holds and the volume was written.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.state == RoundsState::Steady
    }

    /// The first round, and the mean of the last window: what lasts.
    #[must_use]
    pub fn burst_and_sustained(&self) -> Option<(f64, f64)> {
        Some((*self.iops.first()?, self.window?.mean))
    }
}

/// Everything.
#[derive(Clone, Debug)]
pub struct Profile {
    /// When it began, in seconds since 1970 UTC.
    pub started_unix_secs: Option<u64>,
    /// Whose time it was measured in.
    pub clock: ClockKind,
    /// The seed of all randomness.
    pub seed: u64,
    /// What was measured.
    pub description: Vec<Row>,
    /// The machine.
    pub environment: Vec<Row>,
    /// Bytes that were used.
    pub bytes: u64,
    /// Filling, if anything was written.
    pub fill: Option<FillRecord>,
    /// Random writes until steady, if anything was written.
    pub rounds: Option<RoundsRecord>,
    /// Random writes over that time, in small steps.
    pub history: WriteHistory,
    /// Runs in the order they were made.
    pub runs: Vec<RunRecord>,
    /// Cells that have a run, in the order of the schedule.
    pub cells: Vec<CellRecord>,
    /// The open loop, by rising load; none unless the depth sweep was measured.
    pub open: Vec<OpenPoint>,
    /// Its runs in the order they were made.
    pub open_runs: Vec<OpenRun>,
    /// Runs of cells that were planned.
    pub planned: usize,
    /// How long each was measured.
    pub run: Nanos,
    /// I/Os per second that the program itself can do.
    pub ceiling_iops: Option<f64>,
    /// What the system saw.
    pub attestation: Option<Attestation>,
    /// Heat, link and other users before and after; `None` of a virtual drive.
    pub surroundings: Option<(Surroundings, Surroundings)>,
    /// Rate of the drive's link, if it is known.
    pub link_bytes_per_second: Option<u64>,
    /// What the profile did when, in order: the name of a phase and its beginning.
    pub phases: Vec<(&'static str, Nanos)>,
    /// Bytes of a sector of a virtual drive.
    pub sector_bytes: Option<u32>,
    /// What happened inside the drive; `None` of real ones.
    pub timeline: Option<Timeline>,
    /// Throughput by writers, one curve for each write buffer; of virtual drives whose buffer can be chosen.
    pub writers: Vec<WritersCurve>,
    /// Why it ended early, if it did.
    pub ended_early: Option<String>,
    /// It ended early because somebody asked for it.
    pub is_interrupted: bool,
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// How long it took.
    pub took: Nanos,
}

impl Profile {
    /// The record of a cell.
    #[must_use]
    pub fn find(&self, cell: Cell) -> Option<&CellRecord> {
        self.cells.iter().find(|record| record.cell == cell)
    }
}
