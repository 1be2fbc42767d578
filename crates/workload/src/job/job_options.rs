//! Every setting of one job that the engine carries out, typed and resolved.
//!
//! There is a field exactly for the rows of class *implemented* in the option table; an option that is only noted or
//! refused has none. Deliberately not here: the target's size, so amounts stay as [`Amount`].

use ocssd_base::Nanos;

use super::check::{ContinueOnError, SyncMode, Verify};
use super::ioengine::IoEngine;
use super::iolog::{IologAction, ReplayOptions};
use super::pattern::{
    Amount, BlockSizes, ByDirection, Distribution, ExitWhat, FileSet, Operations, Order, Pattern,
    RateProcess, SubmitMode, ThinkTime, ZoneMode,
};
use super::priority::PriorityOptions;
use super::steady::SteadyOptions;
use std::sync::Arc;

/// fio's default `percentile_list`, as `fio --cmdhelp=percentile_list` prints it.
pub const DEFAULT_PERCENTILES: [f64; 17] =
    [1., 5., 10., 20., 30., 40., 50., 60., 70., 80., 90., 95., 99., 99.5, 99.9, 99.95, 99.99];

/// fio `latency_target` and its companions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTargetOptions {
    /// The latency that must be kept; zero: the depth is `iodepth` throughout.
    pub target: Nanos,
    /// How long a depth is tried (`latency_window`).
    pub window: Nanos,
    /// Percent of I/Os that must keep the target, above 0, at most 100 (`latency_percentile`).
    pub percentile: f64,
    /// Go on following the target once the depth is found (`latency_run`).
    pub run: bool,
}

impl Default for LatencyTargetOptions {
    fn default() -> Self {
        Self { target: Nanos::ZERO, window: Nanos::ZERO, percentile: 100.0, run: false }
    }
}

/// fio `exitall` and `exit_what`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitOptions {
    /// When this job ends, so do others.
    pub all: bool,
    /// Which others those are.
    pub what: ExitWhat,
}

/// fio `percentile_list`, and the latencies it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileChoice {
    /// 1 to 20 numbers above 0, at most 100, ascending.
    pub list: Vec<f64>,
    /// Report percentiles of completion latency.
    pub clat: bool,
    /// Report percentiles of total latency.
    pub lat: bool,
    /// Report percentiles of submission latency.
    pub slat: bool,
}

impl Default for PercentileChoice {
    fn default() -> Self {
        Self { list: DEFAULT_PERCENTILES.to_vec(), clat: true, lat: false, slat: false }
    }
}

/// What fio would call its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNames {
    /// Given as `filename`.
    pub names: Vec<String>,
    /// Where they would be (`directory`), for clones in turn.
    pub directories: Vec<String>,
    /// How they are named without `filename` (`filename_format`); `None`: fio's default.
    pub format: Option<String>,
}

/// fio `rate_min`, `rate_iops_min` and `rate_cycle`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateFloor {
    /// Least bandwidth in bytes per second.
    pub bytes: ByDirection<Option<u64>>,
    /// Least I/Os per second.
    pub ios: ByDirection<Option<u64>>,
    /// Over how long the two are averaged, above zero; fio's default is a second.
    pub cycle: Nanos,
}

impl Default for RateFloor {
    fn default() -> Self {
        Self { bytes: ByDirection::all(None), ios: ByDirection::all(None), cycle: Nanos::from_secs(1) }
    }
}

/// fio `flow` and its companions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOptions {
    /// Weight among the jobs of a flow, at most 1000; 0 is in no flow (`flow`).
    pub weight: u32,
    /// Which flow (`flow_id`).
    pub id: u32,
    /// How long a job waits that is ahead of its share; zero: until others catch up (`flow_sleep`).
    pub sleep: Nanos,
}

/// fio `read_iolog` and its companions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replays {
    /// Names of the logs, one per clone in turn (`read_iolog`).
    pub names: Vec<String>,
    /// How they are taken.
    pub options: ReplayOptions,
    /// Their content, as many as names; empty without any.
    pub logs: Vec<Arc<[IologAction]>>,
}

/// fio `buffer_compress_percentage` and `buffer_compress_chunk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressOptions {
    /// Percent of a buffer that compresses, at most 100; `None`: not asked for.
    pub percentage: Option<u8>,
    /// Bytes of one random and compressible part; 0 is a whole block; fio's default is 512.
    pub chunk: u64,
}

impl Default for CompressOptions {
    fn default() -> Self {
        Self { percentage: None, chunk: 512 }
    }
}

/// Which logs a job asks for. A name is a prefix, but for `iolog`; an empty one stands for the job's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// `write_bw_log`.
    pub bw: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`.
    pub lat: Option<String>,
    /// `write_hist_log`.
    pub hist: Option<String>,
    /// `write_iolog`: the whole name.
    pub iolog: Option<String>,
    /// Names carry the job's number (`per_job_logs`); else jobs with the same prefix share a file.
    pub per_job: bool,
    /// Lines are of one priority each, and say which (`log_prio`).
    pub priority: bool,
    /// Milliseconds averaged into one log line; 0 logs every second (`log_avg_msec`).
    pub avg_msec: u64,
    /// Milliseconds per histogram; 0 logs none (`log_hist_msec`).
    pub hist_msec: u64,
    /// A logged bin is 2 to this power of the histogram's, at most 6 (`log_hist_coarseness`).
    pub hist_coarseness: u32,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            bw: None,
            iops: None,
            lat: None,
            hist: None,
            iolog: None,
            per_job: true,
            priority: false,
            avg_msec: 0,
            hist_msec: 0,
            hist_coarseness: 0,
        }
    }
}

/// fio `zone_reset_threshold` and `zone_reset_frequency`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResetRule {
    /// Share of the region that must be written before zones are reset, 0 to 1.
    pub threshold: f64,
    /// Resets per write, 0 to 1; 0 is never.
    pub frequency: f64,
}

/// The settings of one job. Names are fio's; the defaults are fio's.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOptions {
    /// Free text for the report.
    pub description: Option<String>,
    /// What is done, in which order.
    pub rw: Pattern,
    /// From `bs`, `bsrange` and `bssplit`; default 4096 bytes.
    pub block_sizes: ByDirection<BlockSizes>,
    /// Alignment of drawn offsets in bytes; `None`: the smallest block size.
    pub blockalign: ByDirection<Option<u64>>,
    /// I/Os in flight per clone, 1 to 65 536; already 1 if the engine named is a synchronous one.
    pub iodepth: u32,
    /// Identical clones of this job, 1 to 4096; making them is the engine's work.
    pub numjobs: u32,
    /// The region used; `None`: to the end of the target.
    pub size: Option<Amount>,
    /// How much I/O is done; `None`: as much as `size`.
    pub io_size: Option<Amount>,
    /// Where the region starts.
    pub offset: Amount,
    /// Added to `offset` once per clone number.
    pub offset_increment: Amount,
    /// Equal files that the region is made of.
    pub file_set: FileSet,
    /// What fio would call its files; the target stands for them.
    pub files: FileNames,
    /// What the fio engine named is run on.
    pub ioengine: IoEngine,
    /// Stop after this long.
    pub runtime: Option<Nanos>,
    /// Repeat the workload until `runtime` is over; `runtime` is then present.
    pub time_based: bool,
    /// Run this long before measuring.
    pub ramp_time: Nanos,
    /// Wait this long before starting.
    pub startdelay: Nanos,
    /// How many times the job is run, at least 1.
    pub loops: u32,
    /// Stop after this many I/Os.
    pub number_ios: Option<u64>,
    /// Report all clones and jobs of a group as one.
    pub group_reporting: bool,
    /// This job starts a reporting group.
    pub new_group: bool,
    /// This job starts when all earlier ones have ended.
    pub stonewall: bool,
    /// The name of the earlier job that must end first.
    pub wait_for: Option<String>,
    /// Who ends when this job does.
    pub exit: ExitOptions,
    /// Who submits.
    pub submit_mode: SubmitMode,
    /// The seed of the job's draws; `None`: the run's.
    pub randseed: Option<u64>,
    /// Without a `randseed`, every run draws the same (`randrepeat`, `allrandrepeat`).
    pub randrepeat: bool,
    /// Random offsets may repeat before all blocks were used.
    pub norandommap: bool,
    /// How random offsets are drawn.
    pub random_distribution: Distribution,
    /// Percent of a random workload that is random, per direction, 0 to 100; the rest continues sequentially.
    pub percentage_random: ByDirection<u8>,
    /// Percent of a mixed workload that is reads, 0 to 100.
    pub rwmixread: u8,
    /// Bandwidth cap in bytes per second.
    pub rate: ByDirection<Option<u64>>,
    /// Cap in I/Os per second.
    pub rate_iops: ByDirection<Option<u64>>,
    /// How capped I/O is spaced.
    pub rate_process: RateProcess,
    /// Least rates, else the job fails.
    pub rate_floor: RateFloor,
    /// The latency whose depth is searched.
    pub latency: LatencyTargetOptions,
    /// When the job is steady, and ends.
    pub steady: SteadyOptions,
    /// Which I/Os have which priority.
    pub priority: PriorityOptions,
    /// How it shares I/Os with other jobs.
    pub flow: FlowOptions,
    /// The recorded I/O that it replays.
    pub replay: Replays,
    /// Pauses.
    pub thinktime: ThinkTime,
    /// A flush after every this many writes; 0 is never.
    pub fsync: u32,
    /// As `fsync`; on a block target the same command.
    pub fdatasync: u32,
    /// A flush at the end of the job.
    pub end_fsync: bool,
    /// What a write promises.
    pub sync: SyncMode,
    /// What is verified.
    pub verify: Option<Verify>,
    /// Whether a verifying pass follows the writes.
    pub do_verify: bool,
    /// 1 to 512 bytes, or empty.
    pub verify_pattern: Vec<u8>,
    /// End the job at the first block that does not verify.
    pub verify_fatal: bool,
    /// Verify after every this many writes.
    pub verify_backlog: Option<u64>,
    /// 1 to 512 bytes that buffers repeat, or empty. Wins over `zero_buffers`.
    pub buffer_pattern: Vec<u8>,
    /// Buffers are all zeroes.
    pub zero_buffers: bool,
    /// Buffers get new content for every write.
    pub refill_buffers: bool,
    /// How much of a buffer compresses.
    pub buffer_compress: CompressOptions,
    /// The logs asked for.
    pub logs: Logs,
    /// Which percentiles are reported.
    pub percentiles: PercentileChoice,
    /// How zones are treated.
    pub zonemode: ZoneMode,
    /// Bytes per zone; `None`: the target's own. With [`ZoneMode::Strided`]: bytes transferred in a zone.
    pub zonesize: Option<u64>,
    /// Bytes of a zone that can be written; `None`: all.
    pub zonecapacity: Option<u64>,
    /// With [`ZoneMode::Strided`]: bytes of a zone; `None`: `zonesize`.
    pub zonerange: Option<u64>,
    /// With [`ZoneMode::Strided`]: bytes between zones.
    pub zoneskip: u64,
    /// Zones of a target written at the same time by all its jobs; 0 is no bound but `job_max_open_zones`.
    pub max_open_zones: u32,
    /// Zones one clone writes at the same time; 0 is as many as `max_open_zones`, or one.
    pub job_max_open_zones: u32,
    /// Reads may go above a zone's write pointer.
    pub read_beyond_wp: bool,
    /// When zones are reset before they are full.
    pub zone_reset: ResetRule,
    /// After which errors the job goes on.
    pub continue_on_error: ContinueOnError,
}

impl JobOptions {
    /// True if the report or a log says I/Os' priorities.
    #[must_use]
    pub fn says_priorities(&self) -> bool {
        self.priority.are_drawn() || self.logs.priority
    }

    /// True if a cap says when I/Os may start.
    #[must_use]
    pub fn is_rated(&self) -> bool {
        let none = ByDirection::all(None);
        self.rate != none || self.rate_iops != none
    }
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            description: None,
            rw: Pattern { operations: Operations::Read, order: Order::Sequential { skip_bytes: 0 } },
            block_sizes: ByDirection::all(BlockSizes::Fixed(4096)),
            blockalign: ByDirection::all(None),
            iodepth: 1,
            numjobs: 1,
            size: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            file_set: FileSet::default(),
            files: FileNames::default(),
            ioengine: IoEngine::default(),
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            startdelay: Nanos::ZERO,
            loops: 1,
            number_ios: None,
            group_reporting: false,
            new_group: false,
            stonewall: false,
            wait_for: None,
            exit: ExitOptions::default(),
            submit_mode: SubmitMode::default(),
            randseed: None,
            randrepeat: true,
            norandommap: false,
            random_distribution: Distribution::Uniform,
            percentage_random: ByDirection::all(100),
            rwmixread: 50,
            rate: ByDirection::all(None),
            rate_iops: ByDirection::all(None),
            rate_process: RateProcess::Linear,
            rate_floor: RateFloor::default(),
            latency: LatencyTargetOptions::default(),
            steady: SteadyOptions::default(),
            priority: PriorityOptions::default(),
            flow: FlowOptions::default(),
            replay: Replays::default(),
            thinktime: ThinkTime { pause: Nanos::ZERO, blocks: 1 },
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            sync: SyncMode::None,
            verify: None,
            do_verify: true,
            verify_pattern: Vec::new(),
            verify_fatal: false,
            verify_backlog: None,
            buffer_pattern: Vec::new(),
            zero_buffers: false,
            refill_buffers: false,
            buffer_compress: CompressOptions::default(),
            logs: Logs::default(),
            percentiles: PercentileChoice::default(),
            zonemode: ZoneMode::None,
            zonesize: None,
            zonecapacity: None,
            zonerange: None,
            zoneskip: 0,
            max_open_zones: 0,
            job_max_open_zones: 0,
            read_beyond_wp: false,
            zone_reset: ResetRule::default(),
            continue_on_error: ContinueOnError::default(),
        }
    }
}
