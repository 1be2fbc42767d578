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
             at depth 1 (the paper's reference of 3.94 GB/s at 0.06 ms is that depth). Reads: random over 2 GiB that were written before, striped over \
             all 128 units; then pblk is mounted again with so many active units, and 128 MiB are written, so that nothing that is read is in the \
             buffer. (a) 256 KiB at depth 16, (b) 4 KiB at depth 1, (c) 256 KiB at depth 1 beside writes held at 200 MB/s. Each point \
             has a fresh drive and runs 50 ms unmeasured, so that the write buffer is full, then 200 ms: it stays within one line, \
             since the faithful mode takes 90 ms to write the heads of 128 chunks one after the other, which pblk did not.\n\n\
             Rows apart: the same, but what is read are 512 MiB that were written with so many active units as well. They lie in 32 chunks \
             or more, so beside 32 units and fewer reads and writes never meet in a unit.",
    paper: include_str!("../../../../../experiments/fast17-f5/paper.csv"),
    run,
    report,
    why,
};

/// Units of the drive.
const UNITS: u32 = 128;
/// How the data that are read lie: striped over all units, as the paper's did, or apart from what is written beside them.
const LAYOUTS: [&str; 2] = [STRIPED, APART];
/// Written to so many units at a time as are written later, and few enough for 32 of a line's chunks: beside 32 units and fewer
/// reads and writes never meet in one.
const APART: &str = "apart";
const APART_REGION: &str = "512m";
/// As in the paper.
const STRIPED: &str = "baseline";
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
            Size::Full => Self { ramp_and_time: "ramp_time=50ms\nruntime=200ms", region: "2g" },
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
    let mut data = lab.data(&["panel", "metric", "series", "load", "active_write_pus", "layout"]);
    let active: &[u32] = lab.size.pick(&[128, 4], &ACTIVE);
    let jobs = Jobs::of(lab.size);
    lab.expect(1 + LAYOUTS.len() * 4 * active.len());
    lab.point("reads alone");
    let alone = |block, depth| -> anyhow::Result<JobResult> {
        let mut world = world(UNITS, STRIPED, jobs.region, lab.seed)?;
        let mut results = world.run(&format!("{HEAD}{}", jobs.reader(block, depth)), &[0], lab.seed)?;
        Ok(results.remove(0))
    };
    let reference = alone("256k", 16)?;
    data.push(
        &["a", "throughput", "read", "reference", "0", STRIPED],
        gigabytes(&reference.read),
        "GB/s",
        "",
    );
    data.push(&["a", "latency_mean", "read", "reference", "0", STRIPED], mean_ms(&reference.read), "ms", "");
    let small = alone("4k", 1)?;
    data.push(
        &["b", "latency_mean", "read_4k_qd1", "reference", "0", STRIPED],
        mean_ms(&small.read),
        "ms",
        "",
    );
    let large = alone("256k", 1)?;
    data.push(
        &["c", "latency_mean", "read_256k_qd1", "reference", "0", STRIPED],
        mean_ms(&large.read),
        "ms",
        "",
    );
    for layout in LAYOUTS {
        for &units in active {
            beside(lab, &mut data, &jobs, (units, layout), &reference)?;
        }
    }
    Ok(data)
}

/// A drive whose first region is written, under a pblk that from then on writes to so many units at a time. So much is written
/// behind it that none of it is in the buffer.
fn world(active_units: u32, layout: &str, region: &str, seed: u64) -> anyhow::Result<World> {
    let config = presets::find("westlake").context("no preset of the paper's drive")?.config();
    let pblk = |active_units: u32| {
        Instance::new("pblk", 0..UNITS)
            .with("mode", "faithful")
            .with("plane_reads", "never")
            .with("active_units", active_units)
            .on_fast17_host()
    };
    let first = if layout == STRIPED { UNITS } else { active_units };
    let mut world = World::new(config, &[pblk(first)])?;
    let fill =
        |place: &str| format!("[fill]\nioengine=libaio\ndirect=1\nrw=write\nbs=256k\niodepth=16\n{place}\n");
    world.run(&fill(&format!("size={region}")), &[0], seed)?;
    world.mount_again(0, &pblk(active_units))?;
    world.run(&fill("offset=32g\nsize=128m"), &[0], seed)?;
    world.settle();
    Ok(world)
}

/// All points of one number of units.
fn beside(
    lab: &mut Lab,
    data: &mut Data,
    jobs: &Jobs,
    (units, layout): (u32, &str),
    reference: &JobResult,
) -> anyhow::Result<()> {
    let name = units.to_string();
    let seed = lab.seed;
    let jobs = if layout == STRIPED { jobs } else { &Jobs { region: APART_REGION, ..*jobs } };
    let fresh = || world(units, layout, jobs.region, seed);
    let mut world = fresh()?;
    lab.point(&format!("writes alone, {units} units, {layout}"));
    let results = world.run(&format!("{HEAD}{}", jobs.writer("")), &[0], lab.seed)?;
    let alone = gigabytes(&results[0].write);
    data.push(&["a", "throughput", "write", "reference", &name, layout], alone, "GB/s", &note(&world));
    data.push(
        &["a", "latency_mean", "write", "reference", &name, layout],
        mean_ms(&results[0].write),
        "ms",
        "",
    );
    lab.point(&format!("256 KiB reads at depth 16, {units} units, {layout}"));
    let text = format!("{HEAD}{}{}", jobs.reader("256k", 16), jobs.writer(""));
    world = fresh()?;
    let results = world.run(&text, &[0, 0], lab.seed)?;
    let (read, write) = (&results[0].read, &results[1].write);
    data.push(&["a", "throughput", "write", "mixed", &name, layout], gigabytes(write), "GB/s", &note(&world));
    data.push(&["a", "latency_mean", "write", "mixed", &name, layout], mean_ms(write), "ms", "");
    data.push(&["a", "throughput", "read", "mixed", &name, layout], gigabytes(read), "GB/s", "");
    data.push(&["a", "latency_mean", "read", "mixed", &name, layout], mean_ms(read), "ms", "");
    let most = |job: &JobResult| job.read.clat.max().map_or(0.0, |max| max.0 as f64);
    let keys = |metric, series| ["a", metric, series, "mixed", name.as_str(), layout];
    data.push(&keys("throughput_ratio", "write"), gigabytes(write) / alone, "x", "");
    data.push(&keys("throughput_ratio", "read"), gigabytes(read) / gigabytes(&reference.read), "x", "");
    data.push(&keys("latency_mean_ratio", "read"), mean_ms(read) / mean_ms(&reference.read), "x", "");
    data.push(&keys("latency_max_ratio", "read"), most(&results[0]) / most(reference), "x", "");
    lab.point(&format!("4 KiB reads at depth 1, {units} units, {layout}"));
    let text = format!("{HEAD}{}{}", jobs.reader("4k", 1), jobs.writer(""));
    world = fresh()?;
    let results = world.run(&text, &[0, 0], lab.seed)?;
    let read = &results[0].read;
    data.push(&["b", "latency_mean", "read_4k_qd1", "mixed", &name, layout], mean_ms(read), "ms", "");
    let p99 = read.clat.histogram().percentile(99.0).context("no read ended")?;
    // Nothing is below the mean by much; the histogram's buckets may be.
    let above = (p99.0 as f64 / 1e6 - mean_ms(read)).max(0.0);
    data.push(&["b", "latency_p99_above_mean", "read_4k_qd1", "mixed", &name, layout], above, "ms", "");
    lab.point(&format!("256 KiB reads at depth 1 beside 200 MB/s, {units} units, {layout}"));
    let text = format!("{HEAD}{}{}", jobs.reader("256k", 1), jobs.writer("rate=200000000\n"));
    world = fresh()?;
    let results = world.run(&text, &[0, 0], lab.seed)?;
    data.push(
        &["c", "latency_mean", "read_256k_qd1", "mixed", &name, layout],
        mean_ms(&results[0].read),
        "ms",
        "",
    );
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
    let mut names = vec!["none".to_owned()];
    names.extend(ACTIVE.map(|units| units.to_string()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let axis = Axis::categories("units written at a time; none: reads alone", &names);
    let mut chart = ChartSpec::new("Reads beside writes", axis, Axis::linear("mean completion latency", "ms"))
        .subtitle("Apart: reads and writes never meet in a unit beside 32 units written and fewer. Else data lie on all units.")
        .source("Paper: FAST'17, figure 5, digitised; no error is known.");
    for (title, panel_key, metric, series) in panels {
        let mut panel = Panel::new(title);
        panel.y = Some(match metric {
            "throughput" => Axis::linear("throughput", "GB/s"),
            _ => Axis::linear("mean completion latency", "ms"),
        });
        for name in series {
            let loads: &[&str] = if *name == "write" { &["reference", "mixed"] } else { &["mixed"] };
            for &load in loads {
                let kinds = [
                    (Role::Paper, &numbers.paper, STRIPED),
                    (Role::Ours, &numbers.ours, STRIPED),
                    (Role::Ours, &numbers.ours, APART),
                ];
                for (role, table, layout) in kinds {
                    let points = points(table, &[panel_key, metric, name, load], layout);
                    let words = match (load, layout) {
                        ("mixed", STRIPED) => "beside",
                        ("mixed", _) => "beside, apart",
                        _ if layout == STRIPED => "alone",
                        _ => continue,
                    };
                    let kind = if name.starts_with("read") { "reads" } else { "writes" };
                    if !points.is_empty() {
                        panel = panel.series(Series::new(&format!("{kind} {words}"), role, points));
                    }
                }
            }
        }
        chart = chart.panel(panel);
    }
    Ok(report.verdicts(verdicts(&numbers.paper, &numbers.ours)).chart(chart))
}

fn value(table: &PaperTable, keys: &[&str; 4], units: u32) -> Option<f64> {
    value_of(table, keys, units, STRIPED)
}

/// Of one layout; the paper's numbers have no other.
fn value_of(
    table: &PaperTable,
    [panel, metric, series, load]: &[&str; 4],
    units: u32,
    layout: &str,
) -> Option<f64> {
    let units = units.to_string();
    let mut keys = vec![
        ("panel", *panel),
        ("metric", *metric),
        ("series", *series),
        ("load", *load),
        ("active_write_pus", &*units),
    ];
    if table.keys().iter().any(|key| key == "layout") {
        keys.push(("layout", layout));
    } else if layout != STRIPED {
        return None;
    }
    table.select(&keys).first().map(|row| row.value)
}

fn points(table: &PaperTable, keys: &[&str; 4], layout: &str) -> Vec<Point> {
    let [panel, metric, series, _] = *keys;
    let alone = value_of(table, &[panel, metric, series, "reference"], 0, layout).map(|y| Point::new(0.0, y));
    let point = |(place, &units): (u32, &u32)| {
        value_of(table, keys, units, layout).map(|y| Point::new(f64::from(place), y))
    };
    alone.into_iter().chain((1..).zip(&ACTIVE).filter_map(point)).collect()
}

fn verdicts(paper: &PaperTable, ours: &PaperTable) -> Vec<Verdict> {
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
    let near = |id, claim: &str, panel: &str, metric: &str, series: &str| {
        let off: Option<Vec<f64>> = [32, 16, 8, 4]
            .map(|units| {
                let keys = [panel, metric, series, "mixed"];
                Some((value(ours, &keys, units)? / value(paper, &keys, units)? - 1.0) * 100.0)
            })
            .into_iter()
            .collect();
        let Some(off) = off else { return Verdict::not_evaluated(id, claim, "not measured: 4 to 32 units") };
        let told: Vec<String> = off.iter().map(|percent| format!("{percent:+.0}")).collect();
        let holds = off.iter().all(|percent| percent.abs() <= 20.0);
        Verdict::decided(id, claim, holds, format!("off by {} % at 32, 16, 8, 4 units", told.join(", ")))
    };
    let fifth = near(
        "F5e",
        "Ours: data striped over all units explain what 4 KiB reads meet beside 32 units and fewer (b), within 20 %.",
        "b",
        "latency_mean",
        "read_4k_qd1",
    );
    let sixth = near(
        "F5f",
        "Ours: the same data explain what writes lose to 256 KiB reads (a), within 20 %.",
        "a",
        "throughput",
        "write",
    );
    vec![first, second, third, fourth, fifth, sixth]
}

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let key = |name| ours.key(row, name);
    let faster = (percent > 0.0) == key("metric").starts_with("throughput");
    let is_written_alone = key("active_write_pus") != "128";
    let reason = match (key("series"), key("load"), faster) {
        ("read_4k_qd1", "mixed", _) if key("metric") == "latency_p99_above_mean" => {
            "4 of 128 units get 3.1 % of random reads, more than 1 %, so a 99th percentile must see them; the paper's own mean (90 us, 80 \
             without writes) says that its reads met the writes as well"
        }
        ("read_256k_qd1", "mixed", true) => {
            "writes at 200 MB/s hold up the paper's reads more, the more units they go to"
        }
        ("write", "mixed", false) if is_written_alone => {
            "reads that meet a unit that is written stay there, until all 16 are behind its programs, and each write waits for several; \
             rows apart, whose reads meet none beside 32 units and fewer, have the paper's writes. A drive that lets one read past a write at a time has \
             the paper's writes too, but then reads lose a third"
        }
        ("read", "mixed", true) => "the other side of writes that are held up too much",
        ("read", "reference", true) => {
            "as figure 4, 256 KiB at random and depth 16: the paper's host or pblk adds what is not modelled"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}
