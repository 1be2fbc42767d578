//! Benchmarks of the simulator itself: work per second of processor time, in virtual time, on one core.
//!
//! Each prints JSON lines `{"bench", "metric", "value", "unit"}` and a hash of what was done, so that runs of different
//! commits can be compared. `cargo xtask bench` repeats them and keeps the raw lines. The drive, target, job engine,
//! statistics, stamps and assertions are those of `ocssd run`. For profilers, `--ios=N` runs N I/Os instead: the difference
//! of two such runs is what the I/Os cost, without what comes before them; `--chunks=N` gives units of N chunks, a
//! drive that is soon full, and `--sectors=N` chunks of N sectors; and `--before=N` runs only the first N of the jobs that come
//! before a benchmark's own.

mod cpu;
mod flushes;
#[cfg(target_os = "linux")]
#[path = "../heap.rs"]
mod heap;
mod keys;
mod mount;
mod tables;
mod world;
mod zones;

use ocssd_base::Nanos;
use ocssd_engine::VirtualClock;
use std::process::ExitCode;
use world::{Setting, World};

/// A job, and what is measured of it.
struct Bench {
    name: &'static str,
    job: &'static str,
    /// I/Os, or sectors per I/O times I/Os.
    sectors_per_io: u64,
    unit: &'static str,
    setting: Setting,
}

/// The raw drive.
const RAW: Setting = Setting {
    preset: "westlake",
    sectors_per_chunk: None,
    chunks_per_pu: None,
    target: "linear",
    before: &[],
};
/// pblk on the same drive.
const PBLK: Setting = Setting { target: "pblk", ..RAW };
/// Zones one chunk of every unit wide on the same drive.
const ZNS: Setting = Setting { target: "zns", ..RAW };
/// The same, written before, so that zones are reset and written again: the drive has the memory for what is beside sectors.
const ZNS_WRITTEN: Setting =
    Setting { before: &["[w]\nioengine=libaio\nrw=write\nbs=64k\niodepth=64\nsize=64g\n"], ..ZNS };
/// pblk with as many lines, in chunks of a sixteenth, so that it fits memory; filled, because a block never written is
/// as good as spare, and then written one and a half times over at random, so that garbage collection is in its steady
/// state.
const PBLK_AGED: Setting = Setting {
    before: &[
        "[w]\nioengine=libaio\nrw=write\nbs=64k\niodepth=64\nsize=100%\n",
        "[w]\nioengine=libaio\nrw=randwrite\nbs=4k\niodepth=256\nsize=100%\nio_size=100%\nnorandommap\n",
        "[w]\nioengine=libaio\nrw=randwrite\nbs=4k\niodepth=256\nsize=100%\nio_size=50%\nrandseed=2\nnorandommap\n",
    ],
    sectors_per_chunk: Some(256),
    ..PBLK
};

/// ox-block on a drive of 19 GiB, written over one and a half times at random: each write is a transaction, and commits that come
/// together share pages of the log.
const OX_AGED: Setting =
    Setting { target: "ox-block", sectors_per_chunk: Some(256), chunks_per_pu: Some(150), ..PBLK_AGED };

/// The issues' figures: random reads at depth 64, and 64 KiB sequential vector writes, on the 128-unit Westlake.
const BENCHES: [Bench; 13] = [
    Bench {
        name: "rand_read_4k_qd64",
        job: "[r]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=64\nsize=8g\nnorandommap\ntime_based\nruntime=3600\n\
              number_ios=3000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: RAW,
    },
    Bench {
        name: "seq_write_64k_qd64",
        job: "[w]\nioengine=libaio\nrw=write\nbs=64k\niodepth=64\nsize=64g\n",
        sectors_per_io: 16,
        unit: "sectors/cpu-s",
        setting: RAW,
    },
    Bench {
        name: "mixed_70_30_qd64",
        job: "[m]\nioengine=libaio\nrw=randrw\nrwmixread=70\nbs=4k,64k\niodepth=64\nsize=16g\nnorandommap\ntime_based\n\
              runtime=3600\nnumber_ios=1000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: RAW,
    },
    Bench {
        name: "generator_null_4k_qd64",
        job: "[n]\nioengine=null\nrw=randread\nbs=4k\niodepth=64\nsize=8g\nnorandommap\nnumber_ios=3000000\ntime_based\n\
              runtime=3600\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: Setting { target: "null", ..RAW },
    },
    Bench {
        name: "pblk_seq_write_64k",
        job: "[w]\nioengine=libaio\nrw=write\nbs=64k\niodepth=64\nsize=64g\n",
        sectors_per_io: 16,
        unit: "sectors/cpu-s",
        setting: PBLK,
    },
    Bench {
        name: "pblk_rand_read_4k_qd64",
        job: "[r]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=64\nsize=8g\nnorandommap\ntime_based\nruntime=3600\n\
              number_ios=3000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: PBLK,
    },
    Bench {
        name: "zns_seq_write_64k",
        job: "[w]\nioengine=libaio\nrw=write\nbs=64k\niodepth=64\nsize=64g\n",
        sectors_per_io: 16,
        unit: "sectors/cpu-s",
        setting: ZNS_WRITTEN,
    },
    Bench {
        name: "zns_rand_read_4k_qd64",
        job: "[r]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=64\nsize=8g\nnorandommap\ntime_based\nruntime=3600\n\
              number_ios=3000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: ZNS,
    },
    Bench {
        name: "pblk_rand_write_4k_steady",
        job: "[w]\nioengine=libaio\nrw=randwrite\nbs=4k\niodepth=256\nsize=100%\nnorandommap\ntime_based\nruntime=36000\n\
              number_ios=5000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: PBLK_AGED,
    },
    Bench {
        name: "ox_rand_read_4k_qd64",
        job: "[r]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=64\nsize=8g\nnorandommap\ntime_based\nruntime=3600\n\
              number_ios=3000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: Setting { target: "ox-block", ..RAW },
    },
    Bench {
        name: "ox_rand_write_4k_steady",
        job: "[w]\nioengine=libaio\nrw=randwrite\nbs=4k\niodepth=64\nsize=100%\nnorandommap\ntime_based\nruntime=36000\n\
              number_ios=2000000\n",
        sectors_per_io: 1,
        unit: "io/cpu-s",
        setting: OX_AGED,
    },
    Bench {
        name: "ox_rand_write_64k_steady",
        job: "[w]\nioengine=libaio\nrw=randwrite\nbs=64k\niodepth=64\nsize=100%\nnorandommap\ntime_based\nruntime=36000\n\
              number_ios=200000\n",
        sectors_per_io: 16,
        unit: "sectors/cpu-s",
        setting: OX_AGED,
    },
    Bench {
        name: "ox_rand_write_1m_steady",
        job: "[w]\nioengine=libaio\nrw=randwrite\nbs=1m\niodepth=16\nsize=100%\nnorandommap\ntime_based\nruntime=36000\n\
              number_ios=10000\n",
        sectors_per_io: 256,
        unit: "sectors/cpu-s",
        setting: OX_AGED,
    },
];

fn report(bench: &str, metric: &str, value: f64, unit: &str) {
    println!("{}", serde_json::json!({ "bench": bench, "metric": metric, "value": value, "unit": unit }));
}

/// Sectors a target with garbage collection has written.
#[derive(Clone, Copy)]
struct Written {
    user: u64,
    moved: u64,
    padded: u64,
    meta: u64,
    /// Of it, the log of targets that have one.
    log: u64,
}

impl Written {
    /// What it has written so far; `None` if it counts nothing of the kind.
    fn so_far(world: &World<VirtualClock>) -> Option<Self> {
        Some(Self {
            user: world.counter("user_written_sectors")?,
            moved: world.counter("gc_written_sectors")?,
            padded: world.counter("padded_sectors")?,
            meta: world.counter("meta_written_sectors").or_else(|| {
                let own = ["checkpoint_written_sectors", "log_written_sectors", "map_written_sectors"];
                own.iter().map(|name| world.counter(name)).sum()
            })?,
            log: world.counter("log_written_sectors").unwrap_or(0),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            user: self.user - before.user,
            moved: self.moved - before.moved,
            padded: self.padded - before.padded,
            meta: self.meta - before.meta,
            log: self.log - before.log,
        }
    }

    /// Prints at what write amplification a benchmark ran: of data, and with heads, tails and checkpoints. Nothing if users
    /// wrote nothing.
    #[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
    fn report(self, bench: &str, spent: Nanos) {
        if self.user == 0 {
            // Reads change nothing, so there is nothing to log, and no garbage.
            assert_eq!((self.log, self.moved), (0, 0), "{bench} wrote nothing: sectors of log, and moved");
            return;
        }
        let (user, all) = (self.user as f64, (self.user + self.moved + self.padded + self.meta) as f64);
        report(bench, "moved_per_written", self.moved as f64 / user, "sectors");
        report(bench, "write_amplification", (self.user + self.moved + self.padded) as f64 / user, "of data");
        report(bench, "write_amplification_all", all / user, "with metadata");
        if self.log > 0 {
            report(bench, "log_per_written", self.log as f64 / user, "sectors");
        }
        report(bench, "programmed", all / spent.as_secs_f64(), "sectors/cpu-s");
        report(bench, "per_programmed", spent.0 as f64 / all, "ns");
    }
}

/// What the command line asks for.
struct Asked {
    /// I/Os of each benchmark with a job, instead of its own number.
    ios: Option<u64>,
    /// Chunks of each unit, instead of the preset's.
    chunks: Option<u32>,
    /// Sectors of a chunk.
    sectors: Option<u32>,
    /// Jobs to run before, at most.
    before: usize,
    /// Options of the target, name and value.
    options: Vec<(String, String)>,
    /// Names of benchmarks; none for all.
    chosen: Vec<String>,
}

/// Reads the command line.
///
/// # Errors
/// A sentence, if something in it is neither `--ios=N`, `--chunks=N`, `--sectors=N`, `--before=N`, `--set=NAME=VALUE` nor a
/// benchmark.
fn asked(arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let (ios, chunks, sectors, before) = (None, None, None, usize::MAX);
    let mut asked = Asked { ios, chunks, sectors, before, options: Vec::new(), chosen: Vec::new() };
    let names: Vec<&str> = BENCHES
        .iter()
        .map(|bench| bench.name)
        .chain([
            "memory",
            "wall_read_qd1",
            mount::NAME,
            mount::NAME_CUT,
            tables::NAME,
            keys::NAME,
            keys::NAME_MOUNT,
            flushes::NAME,
            zones::NAME,
        ])
        .collect();
    for argument in arguments {
        let number = |text: &str| {
            let number = text.parse::<u64>().ok().filter(|&number| number > 0);
            number.ok_or_else(|| format!("{argument}: a number above 0 was expected after the ="))
        };
        if let Some(ios) = argument.strip_prefix("--ios=") {
            asked.ios = Some(number(ios)?);
        } else if let Some(chunks) = argument.strip_prefix("--chunks=") {
            asked.chunks = Some(u32::try_from(number(chunks)?).map_err(|_| format!("{argument}: too many"))?);
        } else if let Some(sectors) = argument.strip_prefix("--sectors=") {
            asked.sectors =
                Some(u32::try_from(number(sectors)?).map_err(|_| format!("{argument}: too many"))?);
        } else if let Some(before) = argument.strip_prefix("--before=") {
            asked.before = usize::try_from(number(before)?).map_err(|_| format!("{argument}: too many"))?;
        } else if let Some((name, value)) =
            argument.strip_prefix("--set=").and_then(|option| option.split_once('='))
        {
            asked.options.push((name.to_owned(), value.to_owned()));
        } else if names.contains(&argument.as_str()) {
            asked.chosen.push(argument);
        } else {
            return Err(format!(
                "{argument} is no benchmark; there are {}, and the options --ios=N, --chunks=N, --sectors=N, \
                 --before=N and --set=NAME=VALUE for the target",
                names.join(", ")
            ));
        }
    }
    Ok(asked)
}

#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
fn main() -> ExitCode {
    let Asked { ios, chunks, sectors, before, options, chosen } = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(2);
        }
    };
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|other| other == name);
    // First, while nothing else has grown the process.
    if is_chosen("memory") {
        memory();
    }
    for bench in BENCHES.iter().filter(|bench| is_chosen(bench.name)) {
        let limit = ios.map_or_else(String::new, |ios| format!("number_ios={ios}\n"));
        let jobs = bench.setting.before;
        let setting = Setting {
            chunks_per_pu: chunks.or(bench.setting.chunks_per_pu),
            sectors_per_chunk: sectors.or(bench.setting.sectors_per_chunk),
            before: &jobs[..before.min(jobs.len())],
            ..bench.setting
        };
        let mut world = World::new(&setting, &options, &format!("{}{limit}", bench.job));
        let written = Written::so_far(&world);
        let before = cpu::thread_time();
        let ios = world.measure();
        let spent = cpu::thread_time() - before;
        let work = (ios * bench.sectors_per_io) as f64;
        report(bench.name, "rate", work / spent.as_secs_f64(), bench.unit);
        report(bench.name, "per_io", spent.0 as f64 / ios as f64, "ns");
        if let (Some(before), Some(after)) = (written, Written::so_far(&world)) {
            after.since(before).report(bench.name, spent);
        }
        report(bench.name, "hash", (world.hash() >> 11) as f64, "of the trace, upper 53 bits");
    }
    if is_chosen(mount::NAME) {
        mount::measure();
    }
    if is_chosen(mount::NAME_CUT) {
        mount::measure_cut();
    }
    if is_chosen(tables::NAME) {
        tables::measure();
    }
    if is_chosen(keys::NAME) {
        keys::measure(ios, &options);
    }
    if is_chosen(keys::NAME_MOUNT) {
        keys::measure_mount(ios);
    }
    if is_chosen(flushes::NAME) {
        flushes::measure(ios, &options);
    }
    if is_chosen(zones::NAME) {
        zones::measure(ios);
    }
    if is_chosen("wall_read_qd1") {
        wall_read_latency();
    }
    ExitCode::SUCCESS
}

/// A read at depth 1 in real time against the same in virtual time: what the machine adds to the model.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
fn wall_read_latency() {
    const JOB: &str = "[r]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=1\nsize=2g\nnorandommap\ntime_based\n\
                       runtime=2\n";
    let p50 = |result: &ocssd_workload::results::JobResult| {
        result.read.clat.histogram().percentile(50.0).expect("a run with reads").0 as f64
    };
    let mut model = World::new(&RAW, &[], JOB);
    model.measure();
    let (model, _) = model.into_result();
    let mut wall = World::new(&RAW, &[], JOB).on_wall_clock();
    wall.measure();
    let (wall, lateness) = wall.into_result();
    let late = lateness.expect("a wall clock counts its lateness");
    report("wall_read_qd1", "model_p50", p50(&model), "ns");
    report("wall_read_qd1", "wall_p50", p50(&wall), "ns");
    report("wall_read_qd1", "error_of_p50", (p50(&wall) / p50(&model) - 1.0) * 100.0, "percent");
    report("wall_read_qd1", "late_p50", late.p50.0 as f64, "ns");
    report("wall_read_qd1", "late_p99", late.p99.0 as f64, "ns");
}

/// What an empty 2 TB drive takes, and what a written TiB adds.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
fn memory() {
    let before = cpu::resident_bytes();
    let mut world = World::new(&RAW, &[], "[w]\nioengine=libaio\nrw=write\nbs=256k\niodepth=64\nsize=64g\n");
    let empty = cpu::resident_bytes() - before;
    report("memory", "empty_2tb_drive", empty as f64 / f64::from(1 << 20), "MiB");
    world.measure();
    let written = cpu::resident_bytes() - before - empty;
    report("memory", "per_written_tib", written as f64 * 16.0 / f64::from(1 << 30), "GiB");
    assert!(world.now() > Nanos::ZERO, "time passed");
}
