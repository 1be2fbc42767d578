//! What is shown of the controller's rows: pictures and verdicts.

use super::super::super::catalogue::Numbers;
use super::{PATHS, WRITERS};
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Verdict};

fn value(table: &PaperTable, path: &str, writers: &str, metric: &str) -> Option<f64> {
    table.value(&[("path", path), ("writers", writers), ("metric", metric)])
}

/// Places of copies, in the order of data's way.
const PLACES: [(&str, &str); 5] = [
    ("copies_kernel", "kernel to program"),
    ("copies_connection", "in the connection"),
    ("copies_kept", "kept by the target"),
    ("copies_frames", "to frames"),
    ("copies_media", "to media"),
];

pub fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let chart = ChartSpec::new(
        "The controller's processor",
        Axis::log2("threads of the host", ""),
        Axis::linear("busy", "%"),
    );
    let busy = over_writers(Panel::new(""), ours, "busy").series(paper(&numbers.paper));
    let rates = ChartSpec::new(
        "Pages a second",
        Axis::log2("threads of the host", ""),
        Axis::linear("durable", "MB/s"),
    );
    let rates = rates.panel(over_writers(Panel::new(""), ours, "rate"));
    Ok(report.verdicts(verdicts(ours)).chart(chart.panel(busy)).chart(rates).chart(copies(ours)))
}

fn over_writers(mut panel: Panel, ours: &PaperTable, metric: &str) -> Panel {
    for (path, _, _) in PATHS {
        let points = WRITERS.iter().filter_map(|&writers| {
            Some(Point::new(f64::from(writers), value(ours, path, &writers.to_string(), metric)?))
        });
        panel = panel.series(Series::new(path, Role::Ours, points.collect()));
    }
    panel
}

fn paper(paper: &PaperTable) -> Series {
    let points = value(paper, "ox", "2", "busy").map(|busy| Point::new(2.0, busy));
    Series::new("ox", Role::Paper, points.into_iter().collect()).style(Style::Markers)
}

fn copies(ours: &PaperTable) -> ChartSpec {
    let names: Vec<&str> = PLACES.iter().map(|(_, name)| *name).collect();
    let chart = ChartSpec::new(
        "Copies of each byte of a page, two threads",
        Axis::categories("where", &names),
        Axis::linear("copies", "x"),
    );
    let paths = PATHS.iter().map(|(path, _, _)| (*path, "2")).chain([("in-process", "1")]);
    let panel = paths.fold(Panel::new(""), |panel, (path, writers)| {
        let points = (0_u32..).zip(PLACES).map(|(x, (metric, _))| {
            Point::new(f64::from(x), value(ours, path, writers, metric).unwrap_or(0.0))
        });
        panel.series(Series::new(path, Role::Ours, points.collect()).style(Style::Bars))
    });
    chart.panel(panel)
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let of = |path, writers, metric| value(ours, path, writers, metric).unwrap_or(f64::NAN);
    let mut verdicts = Vec::new();
    let (one, two) = (of("ox", "1", "busy"), of("ox", "2", "busy"));
    verdicts.push(Verdict::decided(
        "F71",
        "With OX's copies the controller is saturated with 2 threads of the host (95 % busy), and not with one.",
        two >= 95.0 && one < 95.0,
        format!("{one:.0} % busy with one, {two:.0} % with two"),
    ));
    let (two, eight) = (of("ox", "2", "rate"), of("ox", "8", "rate"));
    verdicts.push(Verdict::decided(
        "F72",
        "With OX's copies eight threads bring less than a tenth more than two.",
        eight / two < 1.1,
        format!("{two:.0} MB/s and {eight:.0} MB/s"),
    ));
    let (ox, in_place) = (of("ox", "2", "copies"), of("in-place", "2", "copies"));
    let alone = of("in-process", "1", "copies");
    let counted = format!("{ox:.2}, {in_place:.2} and, in the user's process, {alone:.2} copies a byte");
    verdicts.push(Verdict::decided(
        "F73",
        "OX's way is four copies a byte, five where TCP splits messages.",
        (3.9..=5.2).contains(&ox),
        counted.clone(),
    ));
    verdicts.push(Verdict::decided(
        "F74",
        "Ours: data received in place are copied at most twice behind the network, to a frame and to media (5 %).",
        in_place - of("in-place", "2", "copies_kernel") <= 2.1,
        counted,
    ));
    let (with, without) = (of("ox", "8", "cost"), of("in-place", "8", "cost"));
    let each = (with - without) / (of("ox", "8", "copies") - of("in-place", "8", "copies"));
    verdicts.push(Verdict::decided(
        "F75",
        "Without OX's copies a byte costs the busy controller's processor at most 1/1.8 of what it costs with them.",
        with / without >= 1.8,
        format!(
            "{with:.0} and {without:.0} us for each MiB, x{:.2}: {each:.0} us a copy; 8 threads",
            with / without
        ),
    ));
    let process = of("in-process", "1", "cost");
    verdicts.push(Verdict::decided(
        "F76",
        "Ours: most of what a byte costs the controller is the way to it: in the user's process it costs less than half.",
        process < without / 2.0,
        format!(
            "{process:.0} us for each MiB in the process, of which {:.0} in the target; {without:.0} in the controller",
            of("in-process", "1", "cost_target"),
        ),
    ));
    verdicts
}
