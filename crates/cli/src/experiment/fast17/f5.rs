//! Figure 5: reads beside writes, by the number of units written at a time.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::{Lab, Size};
use super::super::world::{Instance, World};
use super::{gigabytes, mean_ms};
use anyhow::Context;
use ocssd_flash::presets;
use ocssd_report::{Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Verdict};
use ocssd_workload::results::JobResult;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "fast17-f5",
    aliases: &[],
    title: "Reads beside writes, by the number of units written at a time",
    source: "FAST 2017, figure 5 and its text",
    claim: "The fewer parallel units are written at a time, the less reads suffer: at 128 units reads and writes both lose \
            about half and the mean read latency doubles; at 4 units the 99th percentile of 4 KiB reads is 2 us above the mean.",
    method: "Westlake, one pblk (faithful mode: the paper's FTL) over all units with active_units as the figure's axis. Writes: 256 KiB sequential \
             at depth 1 (the paper's reference of 3.94 GB/s at 0.06 ms is that depth). Reads: random over 2 GiB written before; \
             with 512 MiB written behind it, so that none of it is in the buffer; (a) 256 KiB at depth 16, (b) 4 KiB at depth 1, (c) 256 KiB at depth 1 beside writes held at 200 MB/s. Each point \
             has a fresh drive and runs 50 ms unmeasured, so that the write buffer is full, then 200 ms: it stays within one line, \
             since the faithful mode takes 90 ms to write the heads of 128 chunks one after the other, which pblk did not.",
    paper: include_str!("../../../../../experiments/fast17-f5/paper.csv"),
    run,
    report,
    why,
};

const ACTIVE: [u32; 6] = [128, 64, 32, 16, 8, 4];

const HEAD: &str = "[global]\nioengine=libaio\ndirect=1\nnorandommap\ntime_based\n";

/// Texts of jobs.
struct Jobs {
    ramp_and_time: &'static str,
    region: &'static str,
}

impl Jobs {
    const fn of(size: Size) -> Self {
        match size {
            Size::Small => Self { ramp_and_time: "ramp_time=30ms\nruntime=60ms", region: "256m" },
            Size::Full => Self { ramp_and_time: "ramp_time=50ms\nruntime=200ms", region: "512m" },
        }
    }

    fn reader(&self, block: &str, depth: u32) -> String {
        let Self { ramp_and_time, region } = self;
        format!("[reader]\nrw=randread\nbs={block}\niodepth={depth}\nsize={region}\n{ramp_and_time}\n")
    }

    fn writer(&self, more: &str) -> String {
        let Self { ramp_and_time, region } = self;
        format!("[writer]\nrw=write\nbs=256k\niodepth=1\noffset={region}\nsize=16g\n{ramp_and_time}\n{more}")
    }
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["panel", "metric", "series", "load", "active_write_pus"]);
    let active: &[u32] = lab.size.pick(&[128, 4], &ACTIVE);
    let jobs = Jobs::of(lab.size);
    lab.expect(1 + 4 * active.len());
    lab.point("reads alone");
    let alone = |block, depth| -> anyhow::Result<JobResult> {
        let mut world = world(128, jobs.region, lab.seed)?;
        let mut results = world.run(&format!("{HEAD}{}", jobs.reader(block, depth)), &[0], lab.seed)?;
        Ok(results.remove(0))
    };
    let reference = alone("256k", 16)?;
    data.push(&["a", "throughput", "read", "reference", "0"], gigabytes(&reference.read), "GB/s", "");
    data.push(&["a", "latency_mean", "read", "reference", "0"], mean_ms(&reference.read), "ms", "");
    let small = alone("4k", 1)?;
    data.push(&["b", "latency_mean", "read_4k_qd1", "reference", "0"], mean_ms(&small.read), "ms", "");
    let large = alone("256k", 1)?;
    data.push(&["c", "latency_mean", "read_256k_qd1", "reference", "0"], mean_ms(&large.read), "ms", "");
    for &units in active {
        beside(lab, &mut data, &jobs, units, &reference)?;
    }
    Ok(data)
}

/// A drive whose first region is written, and far enough behind that it is not in the buffer.
fn world(active_units: u32, region: &str, seed: u64) -> anyhow::Result<World> {
    let config = presets::find("westlake").context("no preset of the paper's drive")?.config();
    let mut world = World::new(
        config,
        &[Instance::new("pblk", 0..128)
            .with("mode", "faithful")
            .with("plane_reads", "never")
            .with("active_units", active_units)
            .on_fast17_host()],
    )?;
    let fill =
        |place: &str| format!("[fill]\nioengine=libaio\ndirect=1\nrw=write\nbs=256k\niodepth=16\n{place}\n");
    world.run(&fill(&format!("size={region}")), &[0], seed)?;
    world.run(&fill("offset=32g\nsize=128m"), &[0], seed)?;
    world.settle();
    Ok(world)
}

/// All points of one number of units.
fn beside(
    lab: &mut Lab,
    data: &mut Data,
    jobs: &Jobs,
    units: u32,
    reference: &JobResult,
) -> anyhow::Result<()> {
    let name = units.to_string();
    let seed = lab.seed;
    let fresh = || world(units, jobs.region, seed);
    let mut world = fresh()?;
    lab.point(&format!("writes alone, {units} units"));
    let results = world.run(&format!("{HEAD}{}", jobs.writer("")), &[0], lab.seed)?;
    let alone = gigabytes(&results[0].write);
    data.push(&["a", "throughput", "write", "reference", &name], alone, "GB/s", &note(&world));
    data.push(&["a", "latency_mean", "write", "reference", &name], mean_ms(&results[0].write), "ms", "");
    lab.point(&format!("256 KiB reads at depth 16, {units} units"));
    let text = format!("{HEAD}{}{}", jobs.reader("256k", 16), jobs.writer(""));
    world = fresh()?;
    let results = world.run(&text, &[0, 0], lab.seed)?;
    let (read, write) = (&results[0].read, &results[1].write);
    data.push(&["a", "throughput", "write", "mixed", &name], gigabytes(write), "GB/s", &note(&world));
    data.push(&["a", "latency_mean", "write", "mixed", &name], mean_ms(write), "ms", "");
    data.push(&["a", "throughput", "read", "mixed", &name], gigabytes(read), "GB/s", "");
    data.push(&["a", "latency_mean", "read", "mixed", &name], mean_ms(read), "ms", "");
    let most = |job: &JobResult| job.read.clat.max().map_or(0.0, |max| max.0 as f64);
    let keys = |metric, series| ["a", metric, series, "mixed", name.as_str()];
    data.push(&keys("throughput_ratio", "write"), gigabytes(write) / alone, "x", "");
    data.push(&keys("throughput_ratio", "read"), gigabytes(read) / gigabytes(&reference.read), "x", "");
    data.push(&keys("latency_mean_ratio", "read"), mean_ms(read) / mean_ms(&reference.read), "x", "");
    data.push(&keys("latency_max_ratio", "read"), most(&results[0]) / most(reference), "x", "");
    lab.point(&format!("4 KiB reads at depth 1, {units} units"));
    let text = format!("{HEAD}{}{}", jobs.reader("4k", 1), jobs.writer(""));
    world = fresh()?;
    let results = world.run(&text, &[0, 0], lab.seed)?;
    let read = &results[0].read;
    data.push(&["b", "latency_mean", "read_4k_qd1", "mixed", &name], mean_ms(read), "ms", "");
    let p99 = read.clat.histogram().percentile(99.0).context("no read ended")?;
    // Nothing is below the mean by much; the histogram's buckets may be.
    let above = (p99.0 as f64 / 1e6 - mean_ms(read)).max(0.0);
    data.push(&["b", "latency_p99_above_mean", "read_4k_qd1", "mixed", &name], above, "ms", "");
    lab.point(&format!("256 KiB reads at depth 1 beside 200 MB/s, {units} units"));
    let text = format!("{HEAD}{}{}", jobs.reader("256k", 1), jobs.writer("rate=200000000\n"));
    world = fresh()?;
    let results = world.run(&text, &[0, 0], lab.seed)?;
    data.push(&["c", "latency_mean", "read_256k_qd1", "mixed", &name], mean_ms(&results[0].read), "ms", "");
    Ok(())
}

fn note(world: &World) -> String {
    let count = |name| world.counter(0, name).unwrap_or(0);
    format!(
        "since the drive was made: waits for the buffer {}; collected {}; reads parked {}",
        count("waits_for_buffer"),
        count("gc_written_sectors"),
        count("read_parked")
    )
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let panels: [(&str, &str, &str, &[&str]); 4] = [
        ("a: throughput, 256 KiB reads at depth 16", "a", "throughput", &["write", "read"]),
        ("a: mean latency", "a", "latency_mean", &["write", "read"]),
        ("b: 4 KiB reads at depth 1", "b", "latency_mean", &["read_4k_qd1"]),
        ("c: 256 KiB reads at depth 1, writes at 200 MB/s", "c", "latency_mean", &["read_256k_qd1"]),
    ];
    let axis = Axis::log2("units written at a time", "").ticks(&[4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);
    let mut chart = ChartSpec::new("Reads beside writes", axis, Axis::log10("mean completion latency", "ms"))
        .subtitle("Lines across: reads alone, ours.")
        .source("Paper: FAST'17, figure 5, digitised; no error is known.");
    for (title, panel_key, metric, series) in panels {
        let mut panel = Panel::new(title);
        panel.y = (metric == "throughput").then(|| Axis::linear("throughput", "GB/s"));
        for name in series {
            for load in ["reference", "mixed"] {
                for (role, table) in [(Role::Paper, &numbers.paper), (Role::Ours, &numbers.ours)] {
                    let points = points(table, &[panel_key, metric, name, load]);
                    let words = if load == "mixed" { "beside" } else { "alone" };
                    if !points.is_empty() {
                        panel = panel.series(Series::new(&format!("{name} {words}"), role, points));
                    }
                }
            }
            if let Some(alone) = value(&numbers.ours, &[panel_key, metric, name, "reference"], 0) {
                panel = panel.rule(alone, "reads alone");
            }
        }
        chart = chart.panel(panel);
    }
    Ok(report.verdicts(verdicts(&numbers.ours)).chart(chart))
}

fn value(table: &PaperTable, [panel, metric, series, load]: &[&str; 4], units: u32) -> Option<f64> {
    let units = units.to_string();
    let keys = [
        ("panel", *panel),
        ("metric", *metric),
        ("series", *series),
        ("load", *load),
        ("active_write_pus", &*units),
    ];
    table.select(&keys).first().map(|row| row.value)
}

fn points(table: &PaperTable, keys: &[&str; 4]) -> Vec<Point> {
    let point = |&units: &u32| value(table, keys, units).map(|y| Point::new(f64::from(units), y));
    ACTIVE.iter().filter_map(point).collect()
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let missing = "not measured: 128 and 4 units";
    let at = |metric, units| value(ours, &["a", metric, "read", "mixed"], units);
    let claim = "The fewer units are written at a time, the faster are reads beside the writes.";
    let rates: Vec<f64> = ACTIVE.iter().filter_map(|&units| at("throughput", units)).collect();
    let told: Vec<String> = rates.iter().map(|rate| format!("{rate:.2}")).collect();
    let rising = rates.windows(2).all(|pair| pair[1] >= pair[0] * 0.98) && rates.len() >= 2;
    let first =
        Verdict::decided("F5a", claim, rising, format!("{} GB/s from 128 units down", told.join(", ")));
    let claim = "With 128 units written, the mean latency of 256 KiB reads about doubles (1.5 to 2.5 times).";
    let second = at("latency_mean_ratio", 128).map_or_else(
        || Verdict::not_evaluated("F5b", claim, missing),
        |ratio| Verdict::decided("F5b", claim, (1.5..=2.5).contains(&ratio), format!("x{ratio:.2}")),
    );
    let claim = "With 4 units written, 256 KiB reads keep 90 % of their throughput.";
    let third = at("throughput_ratio", 4).map_or_else(
        || Verdict::not_evaluated("F5c", claim, missing),
        |ratio| Verdict::decided("F5c", claim, ratio >= 0.9, format!("{:.1} %", ratio * 100.0)),
    );
    let claim = "With 4 units written, p99 of 4 KiB reads is at most 10 us above the mean (the paper: 2 us).";
    let above = value(ours, &["b", "latency_p99_above_mean", "read_4k_qd1", "mixed"], 4);
    let fourth = above.map_or_else(
        || Verdict::not_evaluated("F5d", claim, missing),
        |above| Verdict::decided("F5d", claim, above <= 0.01, format!("{:.1} us", above * 1e3)),
    );
    vec![first, second, third, fourth]
}

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let key = |name| ours.key(row, name);
    let faster = (percent > 0.0) == key("metric").starts_with("throughput");
    let reason = match (key("series"), key("load"), faster) {
        ("read_4k_qd1", "mixed", _) if key("metric") == "latency_p99_above_mean" => {
            "4 of 128 units get 3.1 % of random reads, more than 1 %, so a 99th percentile must see them, and slow pages alone put it \
             40 us above the mean (figure 8, reads alone: 115 us at p95); in the paper reads must have kept off the units written"
        }
        ("read_4k_qd1" | "read_256k_qd1", "mixed", true) => {
            "the more units are written, the slower are the paper's reads of units that nobody writes: there writes hold up more \
             than units and a page of the channel"
        }
        ("read", "reference", true) => {
            "as figure 4, 256 KiB at random and depth 16: the paper's host or pblk adds what is not modelled"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}
