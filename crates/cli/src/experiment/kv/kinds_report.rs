//! What the rows of the kinds of KV drives come to.
//!
//! Deliberately not here: how they were made (`kinds`).

use super::super::catalogue::Numbers;
use super::kinds::{KINDS, OVERWRITES, OVERWRITES_ONCE, WORKLOADS};
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Verdict};

/// Twice the parts that overwrite as many records as there are must write alike, or what media write is not steady (chosen: within
/// a tenth; checkpoints and victims come in lumps).
const STEADY: f64 = 0.1;

fn value(ours: &PaperTable, [kind, full, workload, metric]: [&str; 4]) -> Option<f64> {
    ours.value(&[("kind", kind), ("full", full), ("workload", workload), ("metric", metric)])
}

/// Adds verdicts and pictures.
pub fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let throughput = bars(ours, "Operations a second", ("throughput", "op/s"), "throughput");
    let written = bars(ours, "Bytes of media written for each stored", ("written", "x"), "written");
    let p99 = bars(ours, "Retrieves", ("99th percentile", "us"), "retrieve_p99");
    let cpu = bars(ours, "Processor time of the target", ("an operation", "us"), "cpu");
    let charts = [over(ours), written, throughput, p99, cpu];
    Ok(charts.into_iter().fold(report.verdicts(verdicts(ours)), Report::chart))
}

/// A metric of YCSB's workloads: a panel for each fill.
fn bars(ours: &PaperTable, title: &str, (label, unit): (&str, &str), metric: &str) -> ChartSpec {
    let workloads: Vec<&str> = WORKLOADS.into_iter().filter(|&one| is_there(ours, one, metric)).collect();
    let mut chart =
        ChartSpec::new(title, Axis::categories("workload", &workloads), Axis::linear(label, unit));
    for full in ours.distinct("full") {
        let mut panel = Panel::new(&format!("{full} % full"));
        for kind in KINDS {
            let points = (0_u32..).zip(&workloads).filter_map(|(x, workload)| {
                Some(Point::new(f64::from(x), value(ours, [kind, full, workload, metric])?))
            });
            panel = panel.series(Series::new(kind, Role::Ours, points.collect()).style(Style::Bars));
        }
        chart = chart.panel(panel);
    }
    chart
}

fn is_there(ours: &PaperTable, workload: &str, metric: &str) -> bool {
    !ours.select(&[("workload", workload), ("metric", metric)]).is_empty()
}

/// What media write while records are overwritten, over how often all were.
fn over(ours: &PaperTable) -> ChartSpec {
    let axes = (Axis::linear("records overwritten", "x"), Axis::linear("written", "x"));
    let mut chart = ChartSpec::new("On the way to what is steady", axes.0, axes.1);
    for full in ours.distinct("full") {
        let mut panel = Panel::new(&format!("{full} % full"));
        for kind in KINDS {
            let points = (1..=OVERWRITES).filter_map(|part| {
                let times = part as f64 / OVERWRITES_ONCE as f64;
                Some(Point::new(times, value(ours, [kind, full, &format!("over-{part}"), "written"])?))
            });
            panel = panel.series(Series::new(kind, Role::Ours, points.collect()));
        }
        chart = chart.panel(panel);
    }
    chart
}

/// Judges one metric of all kinds, for every fill and each of these workloads.
fn each(
    ours: &PaperTable,
    (id, claim): (&str, &str),
    (metric, workloads): (&str, &[&str]),
    holds: impl Fn(&[f64]) -> bool,
) -> Verdict {
    let (mut all, mut told) = (true, Vec::new());
    for full in ours.distinct("full") {
        for workload in workloads {
            let found: Vec<f64> =
                KINDS.iter().filter_map(|kind| value(ours, [kind, full, workload, metric])).collect();
            if found.len() < KINDS.len() {
                continue;
            }
            all &= holds(&found);
            let words: Vec<String> = found.iter().map(|found| format!("{found:.2}")).collect();
            told.push(format!("{workload} at {full} %: {}", words.join(", ")));
        }
    }
    if told.is_empty() {
        return Verdict::not_evaluated(id, claim, "no such workload was run".to_owned());
    }
    Verdict::decided(id, claim, all, format!("{}: {}", KINDS.join(", "), told.join("; ")))
}

/// Judges whether what media write was steady at the end of the overwriting.
fn steady(ours: &PaperTable) -> Verdict {
    let claim = "Before YCSB begins, what the media write for each byte stored is steady: while all records are overwritten the \
                 last time it is within 10 % of what it was the time before.";
    let once = usize::try_from(OVERWRITES_ONCE).expect("few parts");
    let (mut all, mut told) = (true, Vec::new());
    for full in ours.distinct("full") {
        for kind in KINDS {
            let mean = |parts: std::ops::RangeInclusive<usize>| {
                let found: Option<Vec<f64>> =
                    parts.map(|part| value(ours, [kind, full, &format!("over-{part}"), "written"])).collect();
                found.map(|found| found.iter().sum::<f64>() / found.len() as f64)
            };
            let before = mean(OVERWRITES - 2 * once + 1..=OVERWRITES - once);
            let Some((before, last)) = before.zip(mean(OVERWRITES - once + 1..=OVERWRITES)) else { continue };
            all &= (last / before - 1.0).abs() <= STEADY;
            told.push(format!("{kind} at {full} %: {before:.2}, then {last:.2}"));
        }
    }
    if told.is_empty() {
        return Verdict::not_evaluated("KK0", claim, "nothing was overwritten".to_owned());
    }
    Verdict::decided("KK0", claim, all, told.join("; "))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let is_least = |found: &[f64], by: f64| found[1..].iter().all(|other| found[0] <= by * other);
    let stores: &[&str] = &["over-24", "a", "f"];
    let retrieves: &[&str] = &["a", "b", "c", "f", "d"];
    vec![
        steady(ours),
        each(
            ours,
            ("KK1", "On open-channel units a retrieve takes one read at most."),
            ("reads", retrieves),
            |found| found[0] <= 1.0,
        ),
        each(ours, ("KK2", "They write least for each byte stored."), ("written", stores), |found| {
            is_least(found, 1.0)
        }),
        each(
            ours,
            ("KK3", "Their p99 of retrieves is lowest, within 5 %."),
            ("retrieve_p99", retrieves),
            |found| is_least(found, 1.05),
        ),
        each(
            ours,
            ("KK4", "They do most operations a second, within 5 %."),
            ("throughput", &WORKLOADS),
            |found| found[1..].iter().all(|other| found[0] * 1.05 >= *other),
        ),
        each(ours, ("KK5", "They take least of a processor, within 5 %."), ("cpu", &WORKLOADS), |found| {
            is_least(found, 1.05)
        }),
    ]
}
