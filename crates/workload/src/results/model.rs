//! A finished run as plain data. The engine fills it; `json`, `table` and `series` show it.

use std::fmt;

use ocssd_base::Nanos;

use super::depth::{BatchCounts, DepthCounts};
use super::direction::DirectionStats;
use super::histogram_log::HistogramLog;
use super::interval::SeriesOptions;
use super::iolog::Recording;
use super::latency::LatencyStats;
use super::percentile::PercentileList;
use super::priorities::PriorityStats;
use super::rounds::RoundsReport;
use super::steady::SteadyReport;
use super::tail::Tail;
use crate::job::Logs;

/// The clock that latencies and rates of a run were measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Simulated time: the same on every machine.
    Virtual,
    /// Real time of the machine that ran it.
    Wall,
}

impl ClockKind {
    /// The word for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Wall => "wall",
        }
    }
}

/// One line of a description: of the drive, or of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
}

impl Row {
    /// A line from its two parts.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// How far behind their model replies were in wall time; virtual time has none.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// A reply later than this counts as late.
    pub threshold: Nanos,
    /// Replies later than the threshold.
    pub late: u64,
    /// Delays of all replies, on time or not.
    pub delay: LatencyStats,
}

/// What the checks of a run concluded. Reasons are sentences for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was found against the numbers.
    #[default]
    Pass,
    /// The numbers need the caution stated.
    Warn(Vec<String>),
    /// The numbers must not be used as they are.
    Fail(Vec<String>),
    /// It was ended from outside: the numbers are of a shorter run than was asked for. The first reason says by whom and when;
    /// what else is against them follows.
    Interrupted(Vec<String>),
}

impl Verdict {
    /// One word: `pass`, `warn`, `fail` or `interrupted`.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn(_) => "warn",
            Self::Fail(_) => "fail",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// Why it is not `pass`.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        match self {
            Self::Pass => &[],
            Self::Warn(reasons) | Self::Fail(reasons) | Self::Interrupted(reasons) => reasons,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome())?;
        for (index, reason) in self.reasons().iter().enumerate() {
            write!(f, "{}{reason}", if index == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

/// What a workload of another interface came to that asked beside the jobs; shown as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct BesideResult {
    /// For programs.
    pub object: serde_json::Value,
    /// For people, in lines that fit a terminal.
    pub text: String,
    /// What forbids the numbers of it, as a sentence.
    pub against: Option<String>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Version of this program, without prefix: `0.1.0`.
    pub version: String,
    /// When the run started, in seconds since 1970 UTC; `None` keeps the output the same on every run.
    pub started_unix_secs: Option<u64>,
    /// The clock of all times below.
    pub clock: ClockKind,
    /// The seed of all randomness.
    pub seed: u64,
    /// The command line that runs the same again.
    pub rerun_command: String,
    /// The machine and its software.
    pub environment: Vec<Row>,
    /// The drive, its firmware (target) and its options.
    pub drive: Vec<Row>,
    /// What limited the jobs, one sentence for each target.
    pub limits: Vec<String>,
    /// What the slowest reads and writes waited for, where the drive knows.
    pub tails: Vec<Tail>,
    /// Sentences the reader must know, for example options accepted without effect.
    pub notes: Vec<String>,
    /// Options of the job file's `[global]` section, name and value as written.
    pub global_options: Vec<(String, String)>,
    /// Jobs in the order they were declared; `numjobs` clones are jobs of their own.
    pub jobs: Vec<JobResult>,
    /// Workloads that asked beside the jobs.
    pub beside: Vec<BesideResult>,
    /// Hash of everything that happened, in virtual time; equal for equal runs.
    pub trace_hash: Option<u64>,
    /// Lateness of the emulator, in wall time.
    pub lateness: Option<Lateness>,
    /// Counters of the drive, for example per parallel unit; shown as they are.
    pub counters: Option<serde_json::Value>,
    /// What the checks concluded.
    pub verdict: Verdict,
}

/// fio's three data directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Data from the drive.
    Read,
    /// Data to the drive.
    Write,
    /// Deallocation; on zoned drives, reset.
    Trim,
}

impl Direction {
    /// All of them, in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// fio's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }

    /// fio's number in log files: 0, 1, 2.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Trim => 2,
        }
    }
}

/// Flushes of one job (fio's `sync`).
#[derive(Clone, Debug, Default)]
pub struct SyncStats {
    /// Flushes completed.
    pub total_ios: u64,
    /// Their latencies.
    pub lat: LatencyStats,
}

/// Processor use of one job; in virtual time, of its virtual processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Time in user code.
    pub user: Nanos,
    /// Time in the system.
    pub system: Nanos,
    /// Context switches.
    pub context_switches: u64,
    /// Page faults that read from storage.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl CpuUse {
    /// Adds the use of another job of the group.
    pub fn merge(&mut self, other: &Self) {
        self.user += other.user;
        self.system += other.system;
        self.context_switches += other.context_switches;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
    }
}

/// Which latencies get percentiles, and which percentiles.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileOptions {
    /// fio's `slat_percentiles`, by default off.
    pub slat: bool,
    /// fio's `clat_percentiles`, by default on.
    pub clat: bool,
    /// fio's `lat_percentiles`, by default off.
    pub lat: bool,
    /// fio's `percentile_list`.
    pub list: PercentileList,
}

impl Default for PercentileOptions {
    fn default() -> Self {
        Self { slat: false, clat: true, lat: false, list: PercentileList::default() }
    }
}

/// fio's `latency_target` and its companions, and the depth it settled on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Queue depth at the end: `iodepth`, unless a target changed it (`latency_depth`).
    pub depth: u32,
    /// The target; zero without one (`latency_target`). fio prints it in nanoseconds.
    pub target: Nanos,
    /// Share of I/Os that must meet it, in percent (`latency_percentile`).
    pub percentile: f64,
    /// Length of an attempt (`latency_window`). fio prints it in microseconds.
    pub window: Nanos,
}

impl Default for LatencyTarget {
    fn default() -> Self {
        Self { depth: 1, target: Nanos::ZERO, percentile: 100.0, window: Nanos::ZERO }
    }
}

/// What verification found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyStats {
    /// Blocks compared.
    pub checked: u64,
    /// Blocks that did not hold what was written.
    pub failed: u64,
}

/// One job of a finished run.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// fio's `jobname`.
    pub name: String,
    /// fio's `groupid`, from 0; jobs of a group stand next to each other.
    pub group: u32,
    /// Whether the group is reported as one job (fio's `group_reporting`).
    pub group_reporting: bool,
    /// The job's own options, name and value as written.
    pub options: Vec<(String, String)>,
    /// fio's `description`; empty without one.
    pub description: String,
    /// The same workload for fio itself.
    pub fio_command: String,
    /// Reads.
    pub read: DirectionStats,
    /// Writes.
    pub write: DirectionStats,
    /// Trims.
    pub trim: DirectionStats,
    /// Flushes.
    pub sync: SyncStats,
    /// Open loop only: latency from the intended start of each I/O, all directions together.
    pub response: Option<LatencyStats>,
    /// Depths at submission.
    pub iodepth_level: DepthCounts,
    /// I/Os per submitting call.
    pub iodepth_submit: BatchCounts,
    /// I/Os per reaping call.
    pub iodepth_complete: BatchCounts,
    /// Processor use.
    pub cpu: CpuUse,
    /// From the start of the job to its end.
    pub run_time: Nanos,
    /// From the start of the run to the end of the job; fio's `elapsed`.
    pub elapsed: Nanos,
    /// `errno` of the error that ended the job, or zero.
    pub error: u32,
    /// `errno` of the first error survived under `continue_on_error`; `None` without that option.
    pub first_error: Option<u32>,
    /// Errors in all directions, flushes and verification.
    pub error_count: u64,
    /// Set if the job verifies.
    pub verify: Option<VerifyStats>,
    /// Queue depth and latency target.
    pub latency_target: LatencyTarget,
    /// Which percentiles are reported.
    pub percentiles: PercentileOptions,
    /// Set if I/Os have priorities of their own, or logs say them.
    pub priorities: Option<PriorityStats>,
    /// Set if the job is judged for steady state; of a group that is judged together, in its last job.
    pub steady: Option<SteadyReport>,
    /// The same for a job that is judged by rounds.
    pub rounds: Option<RoundsReport>,
    /// The logs it asks for.
    pub logs: Logs,
    /// Histograms over time, if they are logged.
    pub histogram_log: Option<HistogramLog>,
    /// The I/O it issued, if it is recorded.
    pub recording: Option<Recording>,
}

impl JobResult {
    /// A job that has done nothing yet, with all memory that recording needs.
    ///
    /// # Panics
    /// If the interval of `series` is zero.
    #[must_use]
    pub fn new(name: impl Into<String>, series: SeriesOptions) -> Self {
        Self {
            name: name.into(),
            group: 0,
            group_reporting: false,
            options: Vec::new(),
            description: String::new(),
            fio_command: String::new(),
            read: DirectionStats::new(series),
            write: DirectionStats::new(series),
            trim: DirectionStats::new(series),
            sync: SyncStats::default(),
            response: None,
            iodepth_level: DepthCounts::default(),
            iodepth_submit: BatchCounts::default(),
            iodepth_complete: BatchCounts::default(),
            cpu: CpuUse::default(),
            run_time: Nanos::ZERO,
            elapsed: Nanos::ZERO,
            error: 0,
            first_error: None,
            error_count: 0,
            verify: None,
            latency_target: LatencyTarget::default(),
            percentiles: PercentileOptions::default(),
            priorities: None,
            steady: None,
            rounds: None,
            logs: Logs::default(),
            histogram_log: None,
            recording: None,
        }
    }

    /// The statistics of one direction.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &DirectionStats {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// The statistics of all directions, in fio's order.
    #[must_use]
    pub fn directions(&self) -> [&DirectionStats; 3] {
        Direction::ALL.map(|direction| self.direction(direction))
    }

    /// The statistics of one direction, to record into.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut DirectionStats {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_one_line_with_its_reasons() {
        let warned = Verdict::Warn(vec!["short run".into(), "cold cache".into()]);
        assert_eq!(warned.to_string(), "warn: short run; cold cache");
        assert_eq!(Verdict::Pass.to_string(), "pass");
    }

    #[test]
    fn each_direction_records_into_its_own_statistics() {
        let mut job = JobResult::new("j", SeriesOptions::default());
        for (errors, direction) in (1..).zip(Direction::ALL) {
            job.direction_mut(direction).errors = errors;
        }
        assert_eq!((job.read.errors, job.write.errors, job.trim.errors), (1, 2, 3));
        assert_eq!(Direction::ALL.map(|direction| job.direction(direction).errors), [1, 2, 3]);
    }
}
