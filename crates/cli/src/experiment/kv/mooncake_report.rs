//! What the rows of blocks of KV caches come to.
//!
//! Deliberately not here: how they were made (`mooncake`).

use super::super::catalogue::Numbers;
use super::mooncake::{KINDS, PARTS};
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Verdict};

/// Bytes written for each stored that still are "about once" (chosen: heads of records and padding to write units take 1 %, the
/// rest is for blocks that are used again).
const ONCE: f64 = 1.1;
/// The last part must write as the one before, or what media write is not steady (chosen: as in `kv-kinds`).
const STEADY: f64 = 0.1;

fn value(ours: &PaperTable, [kind, full, load, metric]: [&str; 4]) -> Option<f64> {
    ours.value(&[("kind", kind), ("full", full), ("load", load), ("metric", metric)])
}

/// Adds verdicts and pictures.
pub fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let percentiles = ["retrieve_p50", "retrieve_p99", "store_p50", "store_p99"];
    let bandwidth = ["retrieve_bandwidth", "store_bandwidth"];
    let mut charts = vec![parts(ours)];
    for load in ours.distinct("load") {
        charts.push(bars(
            ours,
            &format!("Latency of blocks of 256 KiB, {load}"),
            load,
            ("time", "ms"),
            &percentiles,
        ));
        charts.push(bars(ours, &format!("Bytes of blocks, {load}"), load, ("bandwidth", "MB/s"), &bandwidth));
    }
    Ok(charts.into_iter().fold(report.verdicts(verdicts(ours)), Report::chart))
}

/// What the media write in each part of what is stored: a panel for each load.
fn parts(ours: &PaperTable) -> ChartSpec {
    let axes = (Axis::linear("stored, parts of the media", "x"), Axis::linear("written", "x"));
    let mut chart = ChartSpec::new("Bytes of media written for each stored", axes.0, axes.1);
    for load in ours.distinct("load") {
        let mut panel = Panel::new(load);
        for full in ours.distinct("full") {
            for kind in KINDS {
                let points = (1..=PARTS).filter_map(|part| {
                    let written = value(ours, [kind, full, load, &format!("written_{part}")])?;
                    Some(Point::new(part as f64, written))
                });
                let name = format!("{kind}, {full} % full");
                panel = panel.series(Series::new(&name, Role::Ours, points.collect()));
            }
        }
        chart = chart.panel(panel);
    }
    chart
}

/// Some metrics of a load, a panel for each fill; rows in microseconds are shown in milliseconds.
fn bars(
    ours: &PaperTable,
    title: &str,
    load: &str,
    (label, unit): (&str, &str),
    metrics: &[&str],
) -> ChartSpec {
    let names: Vec<String> = metrics.iter().map(|metric| metric.replace('_', " ")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut chart = ChartSpec::new(title, Axis::categories("request", &names), Axis::linear(label, unit));
    let scale = if unit == "ms" { 1e-3 } else { 1.0 };
    for full in ours.distinct("full") {
        let mut panel = Panel::new(&format!("{full} % full"));
        for kind in KINDS {
            let points = (0_u32..).zip(metrics).filter_map(|(x, metric)| {
                Some(Point::new(f64::from(x), value(ours, [kind, full, load, metric])? * scale))
            });
            panel = panel.series(Series::new(kind, Role::Ours, points.collect()).style(Style::Bars));
        }
        chart = chart.panel(panel);
    }
    chart
}

/// Judges metrics of all kinds, for every load and fill: kinds in order, of each these metrics.
fn each(
    ours: &PaperTable,
    (id, claim): (&str, &str),
    metrics: &[&str],
    holds: impl Fn(&[f64]) -> bool,
) -> Verdict {
    let (mut all, mut told) = (true, Vec::new());
    for load in ours.distinct("load") {
        for full in ours.distinct("full") {
            let rows =
                KINDS.iter().flat_map(|kind| metrics.iter().map(|metric| [*kind, full, load, *metric]));
            let found: Vec<f64> = rows.filter_map(|row| value(ours, row)).collect();
            if found.len() < KINDS.len() * metrics.len() {
                continue;
            }
            all &= holds(&found);
            let words: Vec<String> = found.iter().map(|found| format!("{found:.2}")).collect();
            told.push(format!("{load} at {full} %: {}", words.join(", ")));
        }
    }
    if told.is_empty() {
        return Verdict::not_evaluated(id, claim, "no such row".to_owned());
    }
    Verdict::decided(
        id,
        claim,
        all,
        format!("{} of {}: {}", metrics.join(", "), KINDS.join(", "), told.join("; ")),
    )
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let last_two = [format!("written_{}", PARTS - 1), format!("written_{PARTS}")];
    let last_two: Vec<&str> = last_two.iter().map(String::as_str).collect();
    let steady = "What the media write for each byte stored is steady at the end: the last part of four is within 10 % of the one \
                  before.";
    vec![
        each(ours, ("KM0", steady), &last_two, |found| {
            found.chunks(2).all(|parts| (parts[1] / parts[0] - 1.0).abs() <= STEADY)
        }),
        each(
            ours,
            ("KM1", "On open-channel units the media write 1.1 bytes at most for each byte stored."),
            &["written"],
            |found| found[0] <= ONCE,
        ),
        each(ours, ("KM2", "They write less than on a block device."), &["written"], |found| {
            found[0] < found[1]
        }),
        each(
            ours,
            ("KM3", "The p99 of retrieves beside stores is lower than on a block device."),
            &["retrieve_p99"],
            |found| found[0] < found[1],
        ),
        each(
            ours,
            ("KM4", "Blocks are stored at least as fast as on a block device, within 5 %."),
            &["store_bandwidth"],
            |found| found[0] * 1.05 >= found[1],
        ),
    ]
}
