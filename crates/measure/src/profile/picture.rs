//! A profile as a report: pictures, tables and sentences on one page.

use super::cell::{Cell, size_word};
use super::compare::Comparison;
use super::explain::{CELL_COLUMNS, cell_row, depth_curve, depth_knee, explain, in_order, time_word};
use super::record::{CellRecord, Profile, SAMPLES_BEYOND, as_f64};
use super::result::Judged;
use crate::lint::Severity;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Report, Role, Series, Style, Table, Verdict};

/// The report of a profile.
#[must_use]
pub fn report(profile: &Profile, judged: &Judged, rerun: &str, comparisons: &[Comparison]) -> Report {
    let row =
        |name: &str| profile.description.iter().find(|row| row.name == name).map(|row| row.value.clone());
    let name = row("target").unwrap_or_default();
    let sentences: Vec<String> = explain(profile).into_iter().map(|one| one.sentence).collect();
    let mut report = Report::new("profile", &format!("What {name} really does"))
        .opening("What was found", &sentences.join("\n\n"))
        .verdicts(verdicts(profile, judged))
        .method(&method(profile));
    let charts = [
        sizes(profile),
        mixes(profile),
        depths(profile),
        hockey(profile),
        exceedance(profile),
        rounds(profile),
        fill(profile),
    ];
    for chart in charts.into_iter().flatten() {
        report = report.chart(chart);
    }
    report = report.table(cells(profile));
    for comparison in comparisons {
        report = report
            .table(compared(comparison))
            .section(&format!("Reading it {}", comparison.title), &comparison.remarks.join("\n\n"));
    }
    report = report.table(findings(judged));
    if !profile.notes.is_empty() {
        report = report.section("What to know", &profile.notes.join("\n\n"));
    }
    for row in profile.description.iter().chain(&profile.environment) {
        report = report.fact(&row.name, &row.value);
    }
    let fio = profile.runs.first().and_then(|run| run.own["fio"].as_str()).unwrap_or_default();
    report
        .fact("seed", &profile.seed.to_string())
        .fact("run again", rerun)
        .fact("the first run, for fio", fio)
}

fn method(profile: &Profile) -> String {
    let early =
        profile.ended_early.as_ref().map_or_else(String::new, |why| format!(" It ended early: {why}."));
    let attested = profile.attestation.map_or_else(
        || "A virtual drive in virtual time: no machine is in these numbers.".to_owned(),
        |attested| format!("Direct I/O is attested, not assumed; {}.", attested.sentence()),
    );
    format!(
        "{} of {} runs of {:.2} s each, every cell once before any is repeated, each time in another random order; a tenth of \
         that before each run is not counted. Means are over repetitions, with 95 % intervals. Percentiles are of all \
         repetitions together, and blank where fewer than {SAMPLES_BEYOND:.0} samples lie beyond them.{early}\n\n{attested}",
        profile.runs.len(),
        profile.planned,
        profile.run.as_secs_f64()
    )
}

/// The linter's verdict, and ours on rest.
fn verdicts(profile: &Profile, judged: &Judged) -> Vec<Verdict> {
    let count = |severity| judged.report.count(severity);
    let (fails, warns) = (count(Severity::Fail), count(Severity::Warn));
    let mut all = vec![Verdict::decided(
        "lint",
        "The linter's sixteen rules find nothing that forbids these numbers.",
        fails == 0,
        format!(
            "{fails} findings to fail, {warns} to warn, {} to label; the table below has each",
            count(Severity::Label)
        ),
    )];
    if let Some(rounds) = &profile.rounds {
        let sentence = rounds.window.map_or_else(
            || format!("{} rounds, too few", rounds.iops.len()),
            |window| {
                format!(
                    "range {:.1} % of {:.0}, line {:+.1} % of {:.0}, written {} of {}",
                    window.excursion_percent,
                    rounds.rule.excursion_percent,
                    window.slope_percent,
                    rounds.rule.slope_percent,
                    size_word(rounds.written),
                    size_word(rounds.rule.floor_bytes)
                )
            },
        );
        all.push(Verdict::decided(
            "steady",
            "Random writes came to rest before cells were measured.",
            rounds.is_steady(),
            sentence,
        ));
    }
    all
}

/// A point with its interval, scaled.
fn point(x: f64, value: super::statistics::Mean, scale: f64) -> Point {
    let point = Point::new(x, (value.value * scale).max(1e-12));
    // An interval that reaches below nothing has no lower end on a logarithmic axis.
    let low = value.half_width.filter(|half| *half < value.value).map(|half| (value.value - half) * scale);
    let high = value.half_width.map(|half| (value.value + half) * scale);
    Point { low, high, ..point }
}

fn of_kind<'a>(profile: &'a Profile, is_of: impl Fn(Cell) -> bool + 'a) -> Vec<&'a CellRecord> {
    in_order(profile).into_iter().filter(|record| is_of(record.cell)).collect()
}

fn curve(
    name: &str,
    records: &[&CellRecord],
    x: impl Fn(Cell) -> f64,
    y: impl Fn(&CellRecord) -> (super::statistics::Mean, f64),
) -> Series {
    let points = records.iter().map(|record| {
        let (mean, scale) = y(record);
        point(x(record.cell), mean, scale)
    });
    Series::new(name, Role::Ours, points.collect())
}

fn two_panels(
    title: &str,
    x: Axis,
    records: &[&CellRecord],
    at: impl Fn(Cell) -> f64,
    by_bytes: bool,
) -> ChartSpec {
    let throughput = if by_bytes {
        let series = curve("throughput", records, &at, |record| (record.bytes_per_second, 1e-6));
        Panel { y: Some(Axis::log10("throughput", "MB/s")), ..Panel::new("Bytes per second") }.series(series)
    } else {
        let series = curve("throughput", records, &at, |record| (record.iops, 1.0));
        Panel { y: Some(Axis::linear("throughput", "IOPS")), ..Panel::new("I/Os per second") }.series(series)
    };
    let latency = curve("latency", records, &at, |record| (record.mean_ns, 1e-3));
    ChartSpec::new(title, x, Axis::log10("mean latency", "us"))
        .panel(throughput)
        .panel(Panel::new("Mean latency").series(latency))
}

fn sizes(profile: &Profile) -> Option<ChartSpec> {
    let records = of_kind(profile, |cell| Cell { bytes: 4096, ..cell } == Cell::BASE);
    let chart = two_panels(
        "Access size",
        Axis::log2("size of one read", "KiB"),
        &records,
        |cell| as_f64(cell.bytes) / 1024.0,
        true,
    );
    (records.len() >= 2)
        .then(|| chart.subtitle("Random reads, one at a time. Bars are 95 % intervals over repetitions."))
}

fn mixes(profile: &Profile) -> Option<ChartSpec> {
    let records = of_kind(profile, |cell| Cell { read_percent: 100, ..cell } == Cell::BASE);
    let x = Axis::linear("reads", "%").range(0.0, 100.0).ticks(&[0.0, 50.0, 70.0, 100.0]);
    let chart = two_panels("Read/write mix", x, &records, |cell| f64::from(cell.read_percent), false);
    (records.len() >= 2).then(|| chart.subtitle("4 KiB, random, one at a time."))
}

fn depths(profile: &Profile) -> Option<ChartSpec> {
    let records = of_kind(profile, |cell| Cell { depth: 1, ..cell } == Cell::BASE);
    let mut chart = two_panels(
        "Queue depth",
        Axis::log2("reads outstanding", ""),
        &records,
        |cell| f64::from(cell.depth),
        false,
    );
    if let (Some(knee), Some(panel)) = (depth_knee(profile), chart.panels.first_mut()) {
        let is_last = records.last().is_some_and(|record| record.cell.depth == knee.depth);
        let note =
            format!("Knee at depth {}: {:.0} IOPS at {}.", knee.depth, knee.iops, time_word(knee.latency_ns));
        let note =
            if is_last { "No knee up to the deepest queue: throughput still grew.".to_owned() } else { note };
        *panel = panel.clone().note(&note);
    }
    (records.len() >= 2).then(|| chart.subtitle("4 KiB random reads."))
}

fn hockey(profile: &Profile) -> Option<ChartSpec> {
    let curve = depth_curve(profile);
    let points: Vec<Point> = curve
        .iter()
        .map(|one| Point::new(one.iops, one.latency_ns / 1e3).noted(&format!("depth {}", one.depth)))
        .collect();
    (points.len() >= 3).then(|| {
        ChartSpec::new(
            "Latency against throughput",
            Axis::linear("throughput", "IOPS"),
            Axis::log10("mean latency", "us"),
        )
        .subtitle("4 KiB random reads, a closed loop: each point is a depth, joined from 1 upwards.")
        .panel(Panel::new("").series(Series::new("depths", Role::Ours, points)))
    })
}

/// Most points of an exceedance curve (chosen: steps finer than that are not seen).
const CURVE_POINTS: usize = 200;

/// The share of I/Os that took longer, ended where fewer than ten samples are left.
fn exceedance_of(record: &CellRecord) -> Option<Series> {
    let all = record.latency.count();
    let mut beyond = all;
    let mut points = Vec::new();
    for (at, count) in record.latency.histogram().bins() {
        beyond -= count;
        if as_f64(beyond) < SAMPLES_BEYOND {
            break;
        }
        let note = format!("{beyond} of {all} samples beyond");
        points.push(Point::new(as_f64(at.0.max(1)) / 1e3, as_f64(beyond) / as_f64(all)).noted(&note));
    }
    let stride = points.len().div_ceil(CURVE_POINTS).max(1);
    let points: Vec<Point> = points.into_iter().step_by(stride).collect();
    let name = format!("{} ({all} samples)", record.cell.name());
    (points.len() >= 2).then(|| Series::new(&name, Role::Ours, points).style(Style::Steps))
}

fn exceedance(profile: &Profile) -> Option<ChartSpec> {
    let deep = depth_knee(profile).map_or(32, |knee| knee.depth);
    let mut wanted = vec![Cell::BASE];
    for cell in [
        Cell::random(4096, 70, 1),
        Cell::random(4096, 50, 1),
        Cell::random(4096, 0, 1),
        Cell::random(4096, 100, deep),
        Cell::random(4096, 0, 32),
        Cell::random(128 << 10, 100, 1),
    ] {
        if !wanted.contains(&cell) {
            wanted.push(cell);
        }
    }
    let series: Vec<Series> =
        wanted.into_iter().filter_map(|cell| exceedance_of(profile.find(cell)?)).collect();
    (!series.is_empty()).then(|| {
        let panel = series.into_iter().fold(Panel::new(""), Panel::series);
        ChartSpec::new(
            "Latency exceedance",
            Axis::log10("latency", "us"),
            Axis::log10("share that took longer", ""),
        )
        .subtitle("Each curve ends where fewer than ten samples lie beyond it.")
        .panel(panel)
    })
}

fn rounds(profile: &Profile) -> Option<ChartSpec> {
    let rounds = profile.rounds.as_ref()?;
    let points: Vec<Point> =
        (1_u32..).zip(&rounds.iops).map(|(round, &iops)| Point::new(f64::from(round), iops)).collect();
    let mut panel = Panel::new("").series(Series::new("each round", Role::Ours, points));
    if let Some(window) = rounds.window {
        let half = rounds.rule.excursion_percent / 200.0;
        panel = panel
            .rule(window.mean, "mean of the last window")
            .rule(window.mean * (1.0 + half), "upper limit")
            .rule(window.mean * (1.0 - half), "lower limit");
    }
    (rounds.iops.len() >= 2).then(|| {
        ChartSpec::new(
            "Coming to rest",
            Axis::linear("round", ""),
            Axis::linear("random 4 KiB writes", "IOPS"),
        )
        .subtitle(&format!(
            "Depth 32, rounds of {:.3} s; the limits are the rule's range around the last window.",
            rounds.round.as_secs_f64()
        ))
        .panel(panel)
    })
}

fn fill(profile: &Profile) -> Option<ChartSpec> {
    let fill = profile.fill.as_ref()?;
    let seconds = fill.series.interval.as_secs_f64();
    let points: Vec<Point> = (1_u32..)
        .zip(&fill.series.bytes_per_second)
        .map(|(number, &rate)| Point::new(f64::from(number) * seconds, rate / 1e6))
        .collect();
    (points.len() >= 2).then(|| {
        ChartSpec::new("Filling", Axis::linear("time", "s"), Axis::linear("sequential writes", "MB/s"))
            .subtitle("1 MiB writes in order, 8 at a time. A step down is a cache that is full.")
            .panel(
                Panel::new("").series(Series::new("each interval", Role::Ours, points).style(Style::Steps)),
            )
    })
}

fn cells(profile: &Profile) -> Table {
    let mut table = Table::new("Every cell", &CELL_COLUMNS);
    in_order(profile).into_iter().for_each(|record| table.push(cell_row(record)));
    table
}

fn compared(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        &format!("This profile {}", comparison.title),
        &["what", "here", "there", "ratio", "reading"],
    );
    for row in &comparison.rows {
        table.push(vec![
            row.what.clone(),
            row.ours.clone(),
            row.theirs.clone(),
            format!("{:.3}", row.ratio),
            row.remark.clone(),
        ]);
    }
    table
}

fn findings(judged: &Judged) -> Table {
    let mut table = Table::new("What the linter found", &["level", "rule", "runs", "first of them", "means"]);
    for (severity, judged_rule, count, sentence) in summed(judged) {
        table.push(vec![
            severity.to_string(),
            format!("{} {}", judged_rule.id, judged_rule.name),
            count.to_string(),
            sentence,
            judged_rule.means.to_owned(),
        ]);
    }
    table
}

/// Findings by rule and level: how many, and the first.
#[must_use]
pub fn summed(judged: &Judged) -> Vec<(Severity, &'static crate::lint::Rule, usize, String)> {
    let mut all: Vec<(Severity, &'static crate::lint::Rule, usize, String)> = Vec::new();
    for (one, severity, sentence) in judged.report.findings() {
        match all.iter_mut().find(|(level, rule, ..)| *level == severity && rule.id == one.rule.id) {
            Some((_, _, count, _)) => *count += 1,
            None => {
                let cell = &judged.evidence.cells[one.cell].name;
                all.push((severity, one.rule, 1, format!("{cell}: {sentence}")));
            }
        }
    }
    all.sort_by_key(|(severity, rule, ..)| (std::cmp::Reverse(*severity), rule.id));
    all
}
