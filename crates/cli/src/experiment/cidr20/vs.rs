//! LightLSM beside tables on block targets: one tree, one drive, and what each target makes of it.
//!
//! Deliberately not here: the pictures and what is judged (`vs_report`).

use super::super::catalogue::Experiment;
use super::super::data::Data;
use super::super::lab::Lab;
use super::database::{self, Counted, Ran, SMALLER, Setup};
use super::ground::Ground;
use super::vs_report;
use ocssd_base::Nanos;
use ocssd_workload::lsm::Phase;
use ocssd_workload::results::LatencyStats;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "lightlsm-vs",
    aliases: &[],
    title: "An LSM tree on raw flash and on block devices",
    source: "CIDR 2020, sections 1 and 4 (a log on a log)",
    claim: "Where a table has whole chunks, the media write what the tree writes and nothing else: no garbage is collected below a tree \
            that collects its own.",
    method: "The drive of cidr20-f5 with half of its chunks (8 groups of 4 units, 32 chunks of 1.5 MiB each, write units of 96 KiB in \
             2 ms), and the tree in virtual time at RocksDB's sizes divided by 16: memtables and tables of 4 MiB, level 1 of \
             16 MiB, blocks of 4 KiB, filters, no log. 4 threads: fillrandom, compactions end, overwrite, compactions end, then \
             readwhilewriting, 16,384 gets a thread beside 10 MiB/s of puts. The tables lie on lightlsm (horizontal H, vertical V), or \
             on table-block, which is lightlsm's tables and journal on a block target. HR and VR are H and V on a drive that \
             resets open chunks. The host is that of docs/workload.md: processors take what was measured once of a real db_bench, \
             the same for all. tree and media are bytes for each byte put, from the first overwrite until compactions ended; below \
             is media over tree; garbage is the part of it that is written for the space of what was deleted (filled and collected), rest \
             is metadata, which chunks and tables made smaller have more of. commands (of the target to the drive) and block_requests (to the block target) are counted for each put: \
             they are the host's work that differs, and no time is charged for them.",
    paper: include_str!("../../../../../experiments/lightlsm-vs/paper.csv"),
    run,
    report: vs_report::report,
    why: vs_report::why,
};

/// Chunks of each unit (chosen: the largest database fits the target that promises least).
const CHUNKS: u32 = 32;
/// Tables that each target keeps (chosen: a large database never has more).
const TABLES_MAX: &str = "192";

/// The drive's DRAM is written out in spells, as fast17-f8 has it; at once it does what pblk does, to the digit, for tables on
/// blocks ask pblk for nothing that a drive would not do by itself.
const DESTAGE_PERCENT: &str = "50";

/// What a database lies on, by name, and whether the drive resets open chunks.
fn grounds() -> [(&'static str, Ground, bool); 7] {
    let on_flash =
        |placement| Ground::new("lightlsm").with("placement", placement).with("tables_max", TABLES_MAX);
    let on_blocks = |over| Ground::new("table-block").with("over", over).with("tables_max", TABLES_MAX);
    [
        ("H", on_flash("horizontal"), false),
        ("V", on_flash("vertical"), false),
        ("HR", on_flash("horizontal"), true),
        ("VR", on_flash("vertical"), true),
        ("pblk", on_blocks("pblk"), false),
        ("block_ssd", on_blocks("block_ssd").with("over.destage_percent", DESTAGE_PERCENT), false),
        ("ox-block", on_blocks("ox-block"), false),
    ]
}

/// A database: its keys, with values of 1 KiB, and how large its tables are before they are made smaller.
struct Database {
    name: &'static str,
    keys: u64,
    table_bytes: u64,
}

/// 13 % and 18 % of the media are keys and values; `wide` has tables of the paper's size, which are a chunk of every unit.
const DATABASES: [Database; 3] = [
    Database { name: "small", keys: 196_608, table_bytes: 64 << 20 },
    Database { name: "large", keys: 262_144, table_bytes: 64 << 20 },
    Database { name: "wide", keys: 131_072, table_bytes: 768 << 20 },
];

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["target", "database", "metric"]);
    let databases = lab.size.pick(&DATABASES[..1], &DATABASES[..]);
    lab.expect(databases.len() * grounds().len());
    for database in databases {
        let keys = lab.size.pick(database.keys / 8, database.keys);
        for (target, ground, has_early_reset) in grounds() {
            lab.point(&format!("{target}, {} database", database.name));
            let flags = flags(keys, database.table_bytes);
            let setup = Setup { ground, chunks_per_unit: CHUNKS, has_early_reset, flags };
            let ran = database::run(&setup, lab.seed)?;
            push(&mut Rows { data: &mut data, target, database: database.name }, &ran, keys);
        }
    }
    Ok(data)
}

fn flags(keys: u64, table_bytes: u64) -> String {
    format!(
        "--benchmarks=fillrandom,waitforcompaction,overwrite,waitforcompaction,readwhilewriting --threads=4 --num={keys} \
         --reads=16384 --key_size=16 --value_size=1024 --bloom_bits=10 --write_buffer_size={} --target_file_size_base={} \
         --max_bytes_for_level_base={} --max_background_compactions=4 --compaction_readahead_size={} \
         --benchmark_write_rate_limit={}",
        (64 << 20) / SMALLER,
        table_bytes / SMALLER,
        (256 << 20) / SMALLER,
        (2 << 20) / SMALLER,
        10 << 20,
    )
}

/// Where the rows of a point go.
struct Rows<'a> {
    data: &'a mut Data,
    target: &'static str,
    database: &'static str,
}

impl Rows<'_> {
    fn push(&mut self, metric: &str, value: f64, unit: &str, note: &str) {
        self.data.push(&[self.target, self.database, metric], value, unit, note);
    }

    fn push_latency(&mut self, what: &str, latency: &LatencyStats) {
        for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p999", 99.9)] {
            let at = latency.histogram().percentile(percent).map_or(0.0, |time| time.0 as f64 / 1e3);
            self.push(&format!("{what}_{name}"), at, "us", "");
        }
    }
}

fn push(rows: &mut Rows<'_>, ran: &Ran, keys: u64) {
    let [fill, _, overwrite, after, beside] = ran.lsm.phases() else { unreachable!("five benchmarks") };
    let rate = |phase: &Phase, latency: &LatencyStats| latency.count() as f64 / phase.took().as_secs_f64();
    rows.push("fillrandom", rate(fill, &fill.puts), "IOPS", "");
    let all = |times: &[Nanos; 3]| times.iter().map(|time| time.as_secs_f64()).sum::<f64>();
    let took = overwrite.took().as_secs_f64();
    let note = format!(
        "{took:.2} s: stopped {:.0} %, slowed down {:.0} %; compactions end {:.2} s later",
        all(&overwrite.stopped) / took * 100.0,
        all(&overwrite.delayed) / took * 100.0,
        after.took().as_secs_f64()
    );
    rows.push("overwrite", rate(overwrite, &overwrite.puts), "IOPS", &note);
    rows.push_latency("put", &overwrite.puts);
    rows.push("gets", rate(beside, &beside.gets), "IOPS", "");
    rows.push_latency("get", &beside.gets);
    rows.push("puts_beside", rate(beside, &beside.puts), "IOPS", "");
    push_bytes(rows, ran);
    push_space(rows, ran, keys);
}

/// What was written from the beginning of overwrite until the compactions after it ended.
fn push_bytes(rows: &mut Rows<'_>, ran: &Ran) {
    let [_, _, overwrite, after, _] = ran.lsm.phases() else { unreachable!("five benchmarks") };
    let (from, to) = (&ran.begun[2], &ran.begun[4]);
    let since = |of: fn(&Counted) -> u64| (of(to) - of(from)) as f64;
    let put = overwrite.work.put_bytes as f64;
    let written = |phase: &Phase| (phase.work.flushed_bytes + phase.work.compaction_written_bytes) as f64;
    let tree = written(overwrite) + written(after);
    let media = since(Counted::programmed) * 4_096.0;
    rows.push("tree", tree / put, "x", "");
    rows.push("media", media / put, "x", "");
    rows.push("below", media / tree, "x", "");
    let filled = since(|counted| counted.filled) * 4_096.0;
    rows.push("filled", filled / put, "x", "deleted chunks that are written to their end to be reset");
    let collected = since(|counted| counted.collected) * 4_096.0;
    rows.push("collected", collected / put, "x", "copied by garbage collection");
    rows.push(
        "garbage",
        (filled + collected) / tree * 100.0,
        "%",
        "of what the tree writes: filled and collected",
    );
    let rest = (media - tree - filled - collected) / tree * 100.0;
    rows.push(
        "rest",
        rest,
        "%",
        "of what the tree writes: heads and tails of chunks, logs, checkpoints, padding",
    );
    let puts = overwrite.puts.count() as f64;
    rows.push("commands", since(|counted| counted.commands) / puts, "x", "to the drive, for each put");
    rows.push(
        "block_requests",
        since(|counted| counted.block_requests) / puts,
        "x",
        "to the block target, for each put",
    );
}

/// What the media hold after the last get.
fn push_space(rows: &mut Rows<'_>, ran: &Ran, keys: u64) {
    let capacity = ran.limits().capacity_bytes as f64;
    rows.push(
        "capacity",
        capacity / ran.media_bytes() as f64 * 100.0,
        "%",
        "of the media are promised to tables",
    );
    let (live, unfilled) = (ran.counter("table_bytes_live"), ran.counter("unfilled_bytes"));
    let note = format!("{:.0} MiB in {} tables", live / 1_048_576.0, ran.counter("tables"));
    rows.push("space", live / (keys * 1_040) as f64, "x", &note);
    rows.push("unfilled", unfilled / (unfilled + live) * 100.0, "%", "of the chunks or extents of tables");
}
