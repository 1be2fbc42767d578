//! Every setting of one job that the engine carries out, typed and resolved.
//!
//! There is a field exactly for the rows of class *implemented* in the option table; an option that is only noted or
//! refused has none. Deliberately not here: the target's size, so amounts stay as [`Amount`].

use ocssd_base::Nanos;

use super::check::{ContinueOnError, SyncMode, Verify};
use super::ioengine::IoEngine;
use super::pattern::{
    Amount, BlockSizes, ByDirection, Distribution, Operations, Order, Pattern, RateProcess, ThinkTime,
    ZoneMode,
};

/// fio's default `percentile_list`, as `fio --cmdhelp=percentile_list` prints it.
pub const DEFAULT_PERCENTILES: [f64; 17] =
    [1., 5., 10., 20., 30., 40., 50., 60., 70., 80., 90., 95., 99., 99.5, 99.9, 99.95, 99.99];

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
    /// Names given as `filename`, for the report only; the target stands for the file.
    pub filenames: Vec<String>,
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
    /// When this job ends, so do all others of its group.
    pub exitall: bool,
    /// The seed of the job's draws; `None`: the run's.
    pub randseed: Option<u64>,
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
    /// File name prefix of the bandwidth log; an empty one stands for the job's name.
    pub write_bw_log: Option<String>,
    /// File name prefix of the IOPS log; an empty one stands for the job's name.
    pub write_iops_log: Option<String>,
    /// File name prefix of the latency logs; an empty one stands for the job's name.
    pub write_lat_log: Option<String>,
    /// Milliseconds averaged into one log line; 0 logs every I/O.
    pub log_avg_msec: u64,
    /// 1 to 20 numbers above 0, at most 100, ascending.
    pub percentile_list: Vec<f64>,
    /// Report percentiles of completion latency.
    pub clat_percentiles: bool,
    /// Report percentiles of total latency.
    pub lat_percentiles: bool,
    /// Report percentiles of submission latency.
    pub slat_percentiles: bool,
    /// How zones are treated.
    pub zonemode: ZoneMode,
    /// Bytes per zone; `None`: the target's own.
    pub zonesize: Option<u64>,
    /// Zones written at the same time; 0 is one.
    pub max_open_zones: u32,
    /// After which errors the job goes on.
    pub continue_on_error: ContinueOnError,
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
            filenames: Vec::new(),
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
            exitall: false,
            randseed: None,
            norandommap: false,
            random_distribution: Distribution::Uniform,
            percentage_random: ByDirection::all(100),
            rwmixread: 50,
            rate: ByDirection::all(None),
            rate_iops: ByDirection::all(None),
            rate_process: RateProcess::Linear,
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
            write_bw_log: None,
            write_iops_log: None,
            write_lat_log: None,
            log_avg_msec: 0,
            percentile_list: DEFAULT_PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            zonemode: ZoneMode::None,
            zonesize: None,
            max_open_zones: 0,
            continue_on_error: ContinueOnError::default(),
        }
    }
}
