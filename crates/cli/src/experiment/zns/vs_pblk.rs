//! A log-structured writer on zones, on pblk, and on a drive that hides its flash.
//!
//! Deliberately not here: the writer (`segments`).

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::segments::{Segments, WRITE_BLOCKS};
use crate::interrupt::{self, Interrupted};
use anyhow::{Context, anyhow, bail, ensure};
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::{BlockTarget, CounterValue};
use ocssd_lightnvm::{Buffers, PuId, TargetId};
use ocssd_report::{
    Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Style, Verdict,
};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::TargetSpec;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "zns-vs-pblk",
    aliases: &[],
    title: "A log-structured writer on zones, pblk and a block device",
    source: "CIDR 2020, sections 1 and 4 (a log on a log)",
    claim: "A writer that writes in order and gives up whole segments needs no garbage collection below it: zones write nothing twice, \
            whatever the number of streams, and need no map of blocks.",
    method: "32 units with chunks of 1.5 MiB, 64 on each (zn540 preset otherwise); segments of 48 MiB, a stripe of chunks. A writer has \
             1, 2 or 4 streams of segments; all write alike, and each keeps twice as many segments as the one before, 36 in \
             all, and gives up its oldest: with a reset on zns, a discard on pblk and block_ssd. Writes of 96 KiB, 32 outstanding. After \
             all segments were written one and a half times as many blocks are measured, beside one 4 KiB read at a \
             time of what is kept. amplification is what the media wrote for each block written; map is the memory of map or zone \
             table.",
    paper: include_str!("../../../../../experiments/zns-vs-pblk/paper.csv"),
    run,
    report,
    why,
};

/// Segments that are kept.
const KEPT: u64 = 36;
const CHUNK_SECTORS: u32 = 384;
const UNITS: u32 = 32;
const TARGETS: [&str; 3] = ["zns", "pblk", "block_ssd"];
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

fn why(_: &PaperTable, _: &PaperRow, _: f64) -> Option<String> {
    None
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["target", "streams", "metric"]);
    let streams: &[u32] = lab.size.pick(&[2], &[1, 2, 4]);
    let percent = lab.size.pick(50, 150);
    lab.expect(streams.len() * TARGETS.len());
    for &streams in streams {
        for target in TARGETS {
            lab.point(&format!("{target}, {streams} streams"));
            point(&mut data, (target, streams, percent), lab.seed)?;
        }
    }
    Ok(data)
}

type BlockHost = Host<Flash, VirtualClock, dyn BlockTarget>;

fn host(kind: &str) -> anyhow::Result<BlockHost> {
    let mut config = presets::find("zn540").context("the preset")?.config();
    config.geometry.chunks_per_pu = 64;
    config.geometry.sectors_per_chunk = CHUNK_SECTORS;
    let mut flash = Flash::format(config).map_err(|problems| anyhow!("{problems}"))?;
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &[] };
    let kind = crate::kinds::find(kind).map_err(anyhow::Error::msg)?;
    let made = kind.make(&mut caller, &spec).map_err(anyhow::Error::msg)?;
    let mut host: BlockHost = Host::new(flash, clock, buffers);
    host.add(made.target);
    Ok(host)
}

fn go(host: &mut BlockHost, segments: &mut Segments) -> anyhow::Result<()> {
    loop {
        match host.run(segments, host.clock().now() + LOOK_EVERY) {
            RunEnd::Finished => break,
            RunEnd::Stuck => bail!("the run waits for requests that nobody has"),
            RunEnd::Stopped if interrupt::is_heard() => return Err(Interrupted.into()),
            RunEnd::Stopped => {}
        }
    }
    ensure!(segments.failed.is_none(), "a request failed: {}", segments.failed.unwrap_or_default());
    Ok(())
}

fn point(data: &mut Data, (target, streams, percent): (&str, u32, u64), seed: u64) -> anyhow::Result<()> {
    let mut host = host(target)?;
    let made = host.target(TargetId(0));
    let (are_zones, size) = (made.zones().is_some(), made.block_count());
    let blocks = u64::from(CHUNK_SECTORS * UNITS);
    ensure!(
        made.zones().is_none_or(|zones| zones.blocks == blocks) && blocks.is_multiple_of(WRITE_BLOCKS.into()),
        "a segment is a zone"
    );
    let count = size / blocks;
    ensure!(
        count > KEPT + 2 * u64::from(streams),
        "{target} has {count} segments, too few for {KEPT} and those that are written"
    );
    let mut segments = Segments::new((streams, KEPT), (count, blocks), are_zones, seed);
    segments.go_on(count * blocks, false);
    go(&mut host, &mut segments)?;
    let media = |host: &BlockHost| {
        let counters = host.device().counters();
        counters.sectors_written + counters.sectors_copied
    };
    let (before, began) = (media(&host), host.clock().now());
    segments.go_on(count * blocks * percent / 100, true);
    go(&mut host, &mut segments)?;
    let took = host.clock().now().saturating_since(began);
    let name = streams.to_string();
    let keys = |metric| [target, name.as_str(), metric];
    let written = segments.written as f64;
    let p99 = |latency: &ocssd_workload::results::LatencyStats| {
        latency.histogram().percentile(99.0).map_or(0.0, |time| time.0 as f64 / 1e3)
    };
    data.push(&keys("amplification"), (media(&host) - before) as f64 / written, "x", "");
    data.push(&keys("bandwidth"), written * 4_096.0 / 1e6 / (took.0 as f64 / 1e9), "MB/s", "");
    data.push(
        &keys("write_p99"),
        p99(&segments.writes),
        "us",
        &format!("{} writes", segments.writes.count()),
    );
    data.push(&keys("read_p99"), p99(&segments.reads), "us", &format!("{} reads", segments.reads.count()));
    let counters = host.target(TargetId(0)).counters();
    let names = ["map_bytes", "table_bytes"];
    let map =
        counters.iter().find(|counter| names.contains(&counter.name)).context("the memory of the map")?;
    let (CounterValue::Count(map) | CounterValue::Gauge(map)) = map.value else {
        bail!("memory is a number")
    };
    let share = map as f64 / (size as f64 * 4_096.0) * 100.0;
    data.push(&keys("map"), share, "%", &format!("of what it holds: {map} bytes for {size} blocks"));
    Ok(())
}

fn value(ours: &PaperTable, target: &str, streams: &str, metric: &str) -> Option<f64> {
    ours.value(&[("target", target), ("streams", streams), ("metric", metric)])
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let streams = ours.distinct("streams");
    let chart = |title: &str, axis: Axis, metric: &str| {
        let mut panel = Panel::new("");
        for target in TARGETS {
            let points = (0_u32..).zip(&streams).filter_map(|(x, streams)| {
                Some(Point::new(f64::from(x), value(ours, target, streams, metric)?))
            });
            panel = panel.series(Series::new(target, Role::Ours, points.collect()).style(Style::Bars));
        }
        ChartSpec::new(title, Axis::categories("streams", &streams), axis).panel(panel)
    };
    let amplification =
        chart("Writes of the media for each block", Axis::linear("amplification", "x"), "amplification");
    let reads = chart("Reads beside the writer", Axis::linear("99th percentile", "us"), "read_p99");
    let writes = chart("Writes", Axis::linear("99th percentile", "us"), "write_p99");
    Ok(report.verdicts(verdicts(ours)).chart(amplification).chart(reads).chart(writes))
}

/// Judges each number of streams by one metric of all targets.
fn each(
    ours: &PaperTable,
    (id, claim): (&str, &str),
    metric: &str,
    holds: impl Fn(&[f64]) -> bool,
    digits: usize,
) -> Verdict {
    let (mut all, mut told) = (true, Vec::new());
    for streams in ours.distinct("streams") {
        let found: Vec<f64> =
            TARGETS.iter().filter_map(|target| value(ours, target, streams, metric)).collect();
        if found.len() < TARGETS.len() {
            continue;
        }
        all &= holds(&found);
        let words = TARGETS.iter().zip(&found).map(|(target, found)| format!("{target} {found:.digits$}"));
        told.push(format!("{streams} streams: {}", words.collect::<Vec<_>>().join(", ")));
    }
    if told.is_empty() {
        return Verdict::not_evaluated(id, claim, "no number of streams was run".to_owned());
    }
    Verdict::decided(id, claim, all, told.join("; "))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    vec![
        each(
            ours,
            ("ZP1", "Zones write at most 1 % more than the host, with any number of streams."),
            "amplification",
            |found| found[0] <= 1.01,
            3,
        ),
        each(
            ours,
            ("ZP2", "pblk and the block device, which mix streams, write more than zones."),
            "amplification",
            |found| found[1] > found[0] && found[2] > found[0],
            3,
        ),
        each(
            ours,
            ("ZP3", "p99 of reads is lowest on zones, within 5 %."),
            "read_p99",
            |found| found[0] <= 1.05 * found[1].min(found[2]),
            0,
        ),
        each(
            ours,
            (
                "ZP4",
                "The zone table takes less than a hundredth of the memory of a map of blocks (in percent of what is held).",
            ),
            "map",
            |found| found[0] * 100.0 < found[1].min(found[2]),
            5,
        ),
    ]
}
