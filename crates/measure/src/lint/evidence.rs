//! What a result says, whatever its format. Everything may be unknown.
//!
//! Rates and means are floats, because that is what results print; integers stay integers. Deliberately not here: judging.

use crate::storage::Surroundings;
use std::collections::BTreeMap;

/// One result file.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The file's name, for findings.
    pub name: String,
    /// What it was.
    pub format: Format,
    /// What was measured: one entry for each job fio lists, or each row of a table.
    pub cells: Vec<Cell>,
    /// What the kernel counted on its disks, all of them together, if the result says.
    pub disk: Option<DiskCounters>,
    /// What only our own results say.
    pub own: Option<OwnRun>,
    /// What was odd while reading, for people.
    pub notes: Vec<String>,
}

/// The format of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Ours: fio's JSON with a key `ocssd`.
    Ocssd,
    /// fio's JSON or JSON+, with its version as printed.
    Fio(String),
    /// A table: published numbers, few fields.
    Table,
}

impl Format {
    /// The word for people.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Ocssd => "ocssd result".to_owned(),
            Self::Fio(version) => format!("fio result ({version})"),
            Self::Table => "table".to_owned(),
        }
    }
}

/// One measured point: a job, or a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its name, unique for people only.
    pub name: String,
    /// Cells of one series were measured together, one parameter varied; `None` may stand beside anything.
    pub series: Option<String>,
    /// Cells of one group ran at the same time.
    pub group: u64,
    /// Everything that says which workload this is, but for mix and depth. Equal texts are equal workloads.
    pub workload: String,
    /// Reads among reads and writes, in percent, as asked for.
    pub read_percent: Option<f64>,
    /// Random or sequential.
    pub order: Option<Order>,
    /// Bytes of one I/O, if all have the same.
    pub block_bytes: Option<u64>,
    /// I/Os that were said to be outstanding: depth times jobs.
    pub outstanding: Option<u64>,
    /// The I/O engine's name, as fio has it.
    pub engine: Option<String>,
    /// Whether the page cache was to be passed by.
    pub direct: Option<bool>,
    /// Whether requests came by the clock and not by completions.
    pub open_loop: Option<bool>,
    /// I/Os per second asked for, if any.
    pub rate_iops: Option<f64>,
    /// Requests came at random times, so that a short run has more or fewer than asked for.
    pub is_poisson: bool,
    /// Whether the latency target or a think time changed the load while it ran.
    pub throttled_by: Option<String>,
    /// Bytes the job may touch.
    pub footprint_bytes: Option<u64>,
    /// Whether what is read was written before.
    pub mapped: Option<bool>,
    /// Reads verified content.
    pub verifies: Option<bool>,
    /// Seconds not measured before measuring began.
    pub ramp: Option<bool>,
    /// Longest measured time of a direction, in seconds.
    pub runtime_secs: Option<f64>,
    /// Processor time of the job, user and system, in percent of its run time.
    pub cpu_percent: Option<f64>,
    /// The engine asks for completions in a loop, so that it is always busy.
    pub polls: Option<bool>,
    /// Whether the result shows a steady state.
    pub steady: Option<Steady>,
    /// The unit bandwidth was given in, in the words of the source.
    pub bandwidth_unit: Option<String>,
    /// I/O by direction; a table has one entry for all of it.
    pub sides: Vec<Side>,
    /// Syncs, which take time but are no reads or writes.
    pub sync: Option<SyncWork>,
    /// `errno` of what ended the job, 0 if nothing did.
    pub error: Option<u64>,
    /// I/Os that failed and that the job survived (fio's `continue_on_error`).
    pub survived: Option<u64>,
    /// What our own results say of the job.
    pub own_verify: Option<(u64, u64)>,
}

/// Random or sequential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Random offsets.
    Random,
    /// One after the other.
    Sequential,
}

/// What the I/Os of a [`Side`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// All together, as tables have it.
    All,
}

impl SideKind {
    /// The word for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Trim => "trims",
            Self::All => "I/Os",
        }
    }
}

/// What was measured in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The direction.
    pub kind: SideKind,
    /// I/Os.
    pub ios: Option<u64>,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Half of the 95 % confidence interval of that, over the result's own samples.
    pub iops_half_width: Option<f64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Bytes per second, as printed.
    pub bytes_per_second: Option<f64>,
    /// Measured time in seconds.
    pub runtime_secs: Option<f64>,
    /// I/Os that were given up.
    pub dropped: Option<u64>,
    /// Latency from start to completion.
    pub latency: Latency,
}

impl Side {
    /// Nothing known.
    #[must_use]
    pub fn new(kind: SideKind) -> Self {
        Self {
            kind,
            ios: None,
            iops: None,
            iops_half_width: None,
            bytes: None,
            bytes_per_second: None,
            runtime_secs: None,
            dropped: None,
            latency: Latency::default(),
        }
    }
}

/// Latencies of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Mean from start to completion, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Mean from submission to completion (fio's `clat`), in nanoseconds.
    pub clat_mean_ns: Option<f64>,
    /// Mean of submission (fio's `slat`), in nanoseconds.
    pub slat_mean_ns: Option<f64>,
    /// Whether the source says that its latency is from start to completion.
    pub is_whole: Option<bool>,
    /// Samples.
    pub samples: Option<u64>,
    /// Percentiles.
    pub percentiles: Option<Percentiles>,
    /// Latencies are given as whole nanoseconds.
    pub is_in_ns: Option<bool>,
}

impl Latency {
    /// The median, else the mean: what a typical I/O took, in nanoseconds, and the word for it.
    #[must_use]
    pub fn typical_ns(&self) -> Option<(f64, &'static str)> {
        let median = self.percentiles.as_ref().and_then(|list| list.at(50.0));
        median.map(|value| (value, "p50")).or_else(|| self.mean_ns.map(|value| (value, "mean")))
    }
}

/// Percentiles of a latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// They are of `clat`, without submission.
    pub is_of_clat: bool,
    /// In thousandths of a percent, with nanoseconds.
    pub values: BTreeMap<u64, f64>,
}

impl Percentiles {
    /// The value at `percent`, if it is in the list.
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<f64> {
        thousandths(percent).and_then(|key| self.values.get(&key).copied())
    }
}

/// A percentile as the key of [`Percentiles::values`].
pub(super) fn thousandths(percent: f64) -> Option<u64> {
    format!("{:.0}", percent * 1_000.0).parse().ok()
}

/// fio's `sync` object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncWork {
    /// Syncs.
    pub count: u64,
    /// Their mean latency in nanoseconds.
    pub mean_ns: f64,
}

/// fio's `steadystate` object.
#[derive(Clone, Debug, PartialEq)]
pub enum Steady {
    /// The result was not asked to be steady.
    NotAsked,
    /// It was asked.
    Asked {
        /// The criterion, as printed.
        criterion: String,
        /// Whether it was met.
        attained: bool,
    },
}

/// What the kernel counted on the disks of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Reads the disks completed.
    pub read_ios: u64,
    /// Reads that were merged into those.
    pub read_merges: u64,
    /// Writes the disks completed.
    pub write_ios: u64,
    /// Writes that were merged into those.
    pub write_merges: u64,
    /// Bytes read, where fio prints sectors.
    pub read_bytes: Option<u64>,
    /// Bytes written, where fio prints sectors.
    pub write_bytes: Option<u64>,
}

/// Which clock a run of ours used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Simulated time.
    Virtual,
    /// Real time.
    Wall,
}

/// What only our results say of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnRun {
    /// The clock.
    pub clock: Option<Clock>,
    /// Replies, and those taken late (wall clock).
    pub late: Option<(u64, u64)>,
    /// Capacity of the drive in bytes.
    pub capacity_bytes: Option<u64>,
    /// Sectors read from the drive, and those of them that its cache answered.
    pub sectors_read: Option<(u64, u64)>,
    /// Shortest time in which the drive's media can be read, in nanoseconds.
    pub media_read_ns: Option<u64>,
    /// The run's own verdict, unless it is `pass`, with its reasons.
    pub bad_verdict: Option<String>,
    /// What only profiles say.
    pub profile: Option<OwnProfile>,
}

/// What only results of `ocssd profile` say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnProfile {
    /// What the system saw of the I/O; `None` of a virtual drive.
    pub attested: Option<Attested>,
    /// I/Os per second the program did on nothing.
    pub ceiling_iops: Option<f64>,
    /// Rate of the drive's link in bytes per second.
    pub link_bytes_per_second: Option<f64>,
    /// How the surroundings were before and after; `None` of a virtual drive, and of results that do not say.
    pub surroundings: Option<(Surroundings, Surroundings)>,
    /// Whether random writes were steady before cells were measured, and a sentence about it; `None` if nothing was written.
    pub rest: Option<(bool, String)>,
}

/// Bytes read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub written_bytes: u64,
}

/// What was asked of the system, and what it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Attested {
    /// Asked for.
    pub asked: Moved,
    /// Counted for the process at the storage layer. Buffered writes are counted there too.
    pub process: Option<Moved>,
    /// Counted at the disk, everybody's.
    pub disk: Option<Moved>,
    /// Share of the file in the page cache.
    pub resident_share: Option<f64>,
}
