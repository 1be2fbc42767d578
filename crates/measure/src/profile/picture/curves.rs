//! Curves: over size, mix and depth, latency's tail, coming to rest, and processor time.

use super::super::cell::Cell;
use super::super::explain::{depth_knee, in_order, time_word};
use super::super::record::{CellRecord, Profile, RoundsRecord, SAMPLES_BEYOND, as_f64};
use super::super::statistics::Mean;
use super::{load, over_time};
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, Style};
use ocssd_workload::run::Window;

/// Those that the profile has numbers for.
pub(super) fn all(profile: &Profile) -> Vec<ChartSpec> {
    let charts = [
        sizes(profile),
        mixes(profile),
        depths(profile),
        load::chart(profile),
        exceedance(profile),
        rounds(profile),
        over_time::chart(profile),
        fill(profile),
    ];
    charts.into_iter().flatten().collect()
}

/// Processor time of this program for each I/O, over depth and over size; none in virtual time.
pub(super) fn cpu(profile: &Profile) -> Vec<ChartSpec> {
    let by_depth = of_kind(profile, |cell| Cell { depth: 1, ..cell } == Cell::BASE);
    let by_size = of_kind(profile, |cell| Cell { bytes: 4096, ..cell } == Cell::BASE);
    let depth = cpu_chart(
        profile,
        ("Processor time for each I/O, by depth", "4 KiB random reads."),
        Axis::log2("reads outstanding", ""),
        &by_depth,
        |cell| f64::from(cell.depth),
    );
    let size = cpu_chart(
        profile,
        ("Processor time for each I/O, by size", "Random reads, one at a time."),
        Axis::log2("size of one read", "KiB"),
        &by_size,
        |cell| as_f64(cell.bytes) / 1024.0,
    );
    [depth, size].into_iter().flatten().collect()
}

fn cpu_chart(
    profile: &Profile,
    (title, kind): (&str, &str),
    x: Axis,
    records: &[&CellRecord],
    at: impl Fn(Cell) -> f64,
) -> Option<ChartSpec> {
    let points: Vec<Point> = records
        .iter()
        .filter_map(|record| Some(point(at(record.cell), record.cpu_ns_per_io?, 1e-3)))
        .collect();
    if points.len() < 2 {
        return None;
    }
    let name = "user and system time of all threads";
    let mut panel = Panel::new("").series(Series::new(name, Role::Ours, points));
    if let Some(ceiling) = profile.ceiling_iops.filter(|ceiling| *ceiling > 0.0) {
        panel = panel.rule(1e6 / ceiling, "of this program alone, on a target that does nothing");
    }
    let subtitle = format!(
        "{kind} It holds this program's own bookkeeping and the kernel's work for it, not interrupts that others are charged for."
    );
    let chart = ChartSpec::new(title, x, Axis::linear("processor time", "us"));
    Some(chart.subtitle(&subtitle).panel(panel))
}

/// A point with its interval, scaled.
fn point(x: f64, value: Mean, scale: f64) -> Point {
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
    y: impl Fn(&CellRecord) -> (Mean, f64),
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

/// Where what took less stands: a virtual drive's buffer answers at once, and a logarithmic axis has no zero (chosen: less than
/// any way into a system and back).
const LATENCY_MIN_NS: u64 = 100;
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
        points.push(
            Point::new(as_f64(at.0.max(LATENCY_MIN_NS)) / 1e3, as_f64(beyond) / as_f64(all)).noted(&note),
        );
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
        .subtitle("Each curve ends where fewer than ten samples lie beyond it; what took less than 0.1 us stands at 0.1 us.")
        .panel(panel)
    })
}

fn rounds(profile: &Profile) -> Option<ChartSpec> {
    let rounds = profile.rounds.as_ref()?;
    let points: Vec<Point> =
        (1_u32..).zip(&rounds.iops).map(|(round, &iops)| Point::new(f64::from(round), iops)).collect();
    let mut panel = Panel::new("").series(Series::new("each round", Role::Ours, points));
    if let Some(window) = rounds.window {
        panel = panel.series(fit(rounds, window));
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

/// The least-squares line of the last window, whose rise the rule limits.
fn fit(rounds: &RoundsRecord, window: Window) -> Series {
    let end = |number: usize| f64::from(u32::try_from(number).expect("few rounds"));
    let (first, last) = (rounds.iops.len() + 1 - rounds.rule.window, rounds.iops.len());
    let half = window.mean * window.slope_percent / 200.0;
    let points = vec![Point::new(end(first), window.mean - half), Point::new(end(last), window.mean + half)];
    let name = format!("line of the last {} rounds", rounds.rule.window);
    Series::new(&name, Role::Ours, points)
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
