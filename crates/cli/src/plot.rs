//! `ocssd plot`: a picture of how long the I/Os of kept results took, ours or fio's.
//!
//! A line is a job in one direction, a point a percentile of its completion latency. Deliberately not here: drawing (`report`),
//! and judging what is drawn (`lint`).

use crate::args::PlotArgs;
use anyhow::{Context, bail};
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, png, svg};
use serde_json::Value;
use std::path::Path;

/// The percentiles of the picture, with the samples each needs (rule L11: ten beyond it).
const PERCENTILES: [(&str, f64, u64); 5] = [
    ("p50", 50.0, 20),
    ("p90", 90.0, 100),
    ("p99", 99.0, 1_000),
    ("p99.9", 99.9, 10_000),
    ("p99.99", 99.99, 100_000),
];
/// Pixels of a PNG for one of the drawing (chosen: sharp on the screens most people have).
const PNG_SCALE: f64 = 2.0;
/// Directions by fio's names.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Draws what was asked for.
pub fn plot(args: &PlotArgs, as_json: bool) -> anyhow::Result<()> {
    let mut series = Vec::new();
    let mut reruns = Vec::new();
    for path in &args.results {
        let result = read(path)?;
        let prefix = if args.results.len() > 1 { stem(path) } else { String::new() };
        series.extend(series_of(&result, &args.job, &prefix).with_context(|| path.display().to_string())?);
        reruns.extend(result["ocssd"]["rerun"].as_str().map(str::to_owned));
    }
    if series.is_empty() {
        bail!("there is nothing to draw: no job has 20 I/Os; name other results, or other jobs with --job");
    }
    let shown = shown_percentiles(&series);
    let names: Vec<&str> = PERCENTILES[..shown].iter().map(|(name, ..)| *name).collect();
    let title = args.title.as_deref().unwrap_or("Completion latency");
    let panel = series.into_iter().fold(Panel::new(""), Panel::series);
    let spec =
        ChartSpec::new(title, Axis::categories("percentile of I/Os", &names), Axis::log10("latency", "us"))
            .subtitle(&args.subtitle)
            .source(&reruns.join("; "))
            .panel(panel);
    write(&args.out, &spec)?;
    if as_json {
        crate::table::print_json(&serde_json::json!({ "picture": args.out }));
    } else {
        crate::table::line(&format!("drawn: {}", args.out.display()));
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{name} cannot be read; name a result, as ocssd-results/quickstart.json"))?;
    serde_json::from_str(&text).with_context(|| {
        format!("{name} is no JSON; name a result of `ocssd run` or of `fio --output-format=json+`")
    })
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}: ")
}

/// A line for each job that is wanted, in each direction with enough I/Os.
fn series_of(result: &Value, wanted: &[String], prefix: &str) -> anyhow::Result<Vec<Series>> {
    let jobs =
        result["jobs"].as_array().context("it has no \"jobs\"; name a result of `ocssd run` or of fio")?;
    let name_of = |job: &Value| job["jobname"].as_str().unwrap_or("?").to_owned();
    if let Some(missing) = wanted.iter().find(|name| jobs.iter().all(|job| name_of(job) != **name)) {
        let names: Vec<String> = jobs.iter().map(name_of).collect();
        bail!("there is no job \"{missing}\"; its jobs are: {}", names.join(", "));
    }
    let mut all = Vec::new();
    for job in jobs.iter().filter(|job| wanted.is_empty() || wanted.contains(&name_of(job))) {
        let busy = DIRECTIONS.iter().filter(|way| job[**way]["total_ios"].as_u64() > Some(0)).count();
        for way in DIRECTIONS {
            let bins = bins(&job[way]["clat_ns"]["bins"]);
            let points = points(&bins);
            if !points.is_empty() {
                let way = if busy > 1 { format!(", {way}") } else { String::new() };
                all.push(Series::new(&format!("{prefix}{}{way}", name_of(job)), Role::Ours, points));
            }
        }
    }
    if all.is_empty() && jobs.iter().any(|job| job["read"]["clat_ns"]["N"].as_u64() > Some(0)) {
        bail!("it has no histograms (`bins`); run fio with --output-format=json+");
    }
    Ok(all)
}

/// A histogram of fio's: nanoseconds and how often, rising.
fn bins(value: &Value) -> Vec<(u64, u64)> {
    let bins = value.as_object().into_iter().flatten();
    let mut bins: Vec<(u64, u64)> =
        bins.filter_map(|(nanos, count)| Some((nanos.parse().ok()?, count.as_u64()?))).collect();
    bins.sort_unstable();
    bins
}

/// The percentiles that rest on enough samples, in microseconds, at their places.
#[expect(clippy::cast_precision_loss, reason = "drawn")]
fn points(bins: &[(u64, u64)]) -> Vec<Point> {
    let all: u64 = bins.iter().map(|(_, count)| count).sum();
    let at = |percent: f64| {
        let mut left = percent / 100.0 * all as f64;
        let found = bins.iter().find(|(_, count)| {
            left -= *count as f64;
            left <= 0.0
        });
        found.or(bins.last()).map(|(nanos, _)| *nanos as f64 / 1e3)
    };
    let enough = PERCENTILES.iter().enumerate().filter(|(_, (_, _, needed))| all >= *needed);
    enough.filter_map(|(place, (_, percent, _))| Some(Point::new(place as f64, at(*percent)?))).collect()
}

/// How many percentiles any line has.
fn shown_percentiles(series: &[Series]) -> usize {
    series.iter().map(|series| series.points.len()).max().unwrap_or(0)
}

fn write(path: &Path, spec: &ChartSpec) -> anyhow::Result<()> {
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => svg::render(spec, svg::Width::Page)?.into_bytes(),
        Some("png") => png::render(spec, PNG_SCALE)?,
        _ => bail!("a picture is .svg or .png, but --out is {}; name one of these", path.display()),
    };
    std::fs::write(path, bytes)
        .with_context(|| format!("{} cannot be written; name another with --out", path.display()))
}
