//! A profile as JSON and CSV: a result of fio with our key, so that the linter and fio's readers take it.

use super::cell::{Cell, Order};
use super::explain::{depth_knee, explain, in_order, why_not};
use super::open_loop::{OPEN_CELL, OpenPoint};
use super::record::{CellRecord, Profile, SAMPLES_BEYOND};
use super::statistics::Mean;
use super::writers::WritersPoint;
use crate::lint::{Evidence, Format as LintFormat, Report, Rule, Selection, Settings, Severity, lint, read};
use ocssd_base::Nanos;
use ocssd_workload::results::json::{Format, to_value};
use ocssd_workload::results::{LatencyStats, RunResult, Verdict};
use serde_json::{Value, json};

/// Version of this program, for results.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The result and what the linter says of it.
#[derive(Debug)]
pub struct Judged {
    /// The document.
    pub value: Value,
    /// As the linter read it.
    pub evidence: Evidence,
    /// What it said.
    pub report: Report,
}

/// Makes the document, holds the linter's rules against it, and puts the verdict in. `rerun` is the command line.
///
/// # Panics
/// If our own linter cannot read our own result.
#[must_use]
pub fn judge(profile: &Profile, rerun: &str, settings: &Settings) -> Judged {
    let mut value = document(profile, rerun);
    let evidence = if profile.runs.is_empty() {
        nothing()
    } else {
        let evidence = read("this profile", value.to_string().as_bytes());
        evidence.unwrap_or_else(|error| panic!("our own result cannot be read: {error}"))
    };
    let report = lint(std::slice::from_ref(&evidence), settings, &Selection::all());
    let verdict = verdict(profile, &report);
    value["ocssd"]["verdict"] = json!({ "outcome": verdict.outcome(), "reasons": verdict.reasons() });
    Judged { value, evidence, report }
}

/// What a profile says that ended before its first run.
fn nothing() -> Evidence {
    let name = "this profile".to_owned();
    Evidence { name, format: LintFormat::Ocssd, cells: Vec::new(), disk: None, own: None, notes: Vec::new() }
}

/// May these numbers be used?
fn verdict(profile: &Profile, report: &Report) -> Verdict {
    let mut reasons = Vec::new();
    reasons.extend(profile.ended_early.clone());
    for level in [Severity::Fail, Severity::Warn] {
        let mut rules: Vec<(&Rule, usize)> = Vec::new();
        for (judged, severity, _) in report.findings() {
            if severity == level {
                match rules.iter_mut().find(|(rule, _)| rule.id == judged.rule.id) {
                    Some((_, count)) => *count += 1,
                    None => rules.push((judged.rule, 1)),
                }
            }
        }
        let does = if level == Severity::Fail { "forbids the numbers" } else { "warns" };
        reasons.extend(rules.iter().map(|(rule, count)| {
            format!("{} ({}) {does} of {count} run{}", rule.id, rule.name, if *count == 1 { "" } else { "s" })
        }));
    }
    if profile.is_interrupted {
        Verdict::Interrupted(reasons)
    } else if report.count(Severity::Fail) > 0 || profile.runs.is_empty() {
        Verdict::Fail(reasons)
    } else if reasons.is_empty() {
        Verdict::Pass
    } else {
        Verdict::Warn(reasons)
    }
}

fn document(profile: &Profile, rerun: &str) -> Value {
    let run = RunResult {
        limits: Vec::new(),
        tails: Vec::new(),
        version: VERSION.to_owned(),
        started_unix_secs: profile.started_unix_secs,
        clock: profile.clock,
        seed: profile.seed,
        rerun_command: rerun.to_owned(),
        environment: profile.environment.clone(),
        drive: profile.description.clone(),
        notes: profile.notes.clone(),
        global_options: Vec::new(),
        jobs: Vec::new(),
        beside: Vec::new(),
        trace_hash: None,
        lateness: None,
        counters: None,
        verdict: Verdict::Pass,
    };
    let mut value = to_value(&run, Format::Json);
    let (cells, open) = (profile.runs.iter(), profile.open_runs.iter());
    let (jobs, own_jobs): (Vec<Value>, Vec<Value>) = cells
        .map(|run| (run.job.clone(), run.own.clone()))
        .chain(open.map(|run| (run.job.clone(), run.own.clone())))
        .unzip();
    (value["jobs"], value["ocssd"]["jobs"]) = (jobs.into(), own_jobs.into());
    value["ocssd"]["profile"] = own(profile);
    value
}

/// What only a profile has.
fn own(profile: &Profile) -> Value {
    let fill = profile.fill.as_ref().map(|fill| {
        json!({ "bytes": fill.bytes, "wanted_bytes": fill.wanted, "seconds": fill.took.as_secs_f64(),
            "bytes_per_second": fill.bytes_per_second(),
            "interval_seconds": fill.series.interval.as_secs_f64(), "series_bytes_per_second": fill.series.bytes_per_second })
    });
    let steady = profile.rounds.as_ref().map(|rounds| {
        let ends = rounds.burst_and_sustained();
        json!({ "is_steady": rounds.is_steady(), "sentence": format!("random writes were not steady: {}", why_not(profile)),
            "round_seconds": rounds.round.as_secs_f64(), "iops": rounds.iops, "written_bytes": rounds.written,
            "floor_bytes": rounds.rule.floor_bytes, "window": rounds.rule.window,
            "excursion_percent": rounds.window.map(|window| window.excursion_percent),
            "slope_percent": rounds.window.map(|window| window.slope_percent),
            "excursion_percent_max": rounds.rule.excursion_percent, "slope_percent_max": rounds.rule.slope_percent,
            "burst_iops": ends.map(|ends| ends.0), "sustained_iops": ends.map(|ends| ends.1) })
    });
    let knee = depth_knee(profile).map(|knee| {
        json!({ "depth": knee.depth, "iops": knee.iops, "latency_ns": knee.latency_ns, "crossing_depth": knee.crossing })
    });
    let order: Vec<Value> = profile
        .runs
        .iter()
        .map(|run| json!({ "cell": profile.cells[run.cell].cell.name(), "repetition": run.repetition + 1, "began_seconds": run.began.as_secs_f64() }))
        .collect();
    json!({
        "bytes": profile.bytes,
        "runs_planned": profile.planned,
        "run_seconds": profile.run.as_secs_f64(),
        "ended_early": profile.ended_early,
        "ceiling_iops": profile.ceiling_iops,
        "link_bytes_per_second": profile.link_bytes_per_second,
        "attestation": profile.attestation.map(|attested| attested.as_value()),
        "surroundings": profile.surroundings.as_ref().map(|(before, after)| {
            json!({ "before": before.as_value(), "after": after.as_value() })
        }),
        "fill": fill,
        "steady": steady,
        "knee": knee,
        "explained": explain(profile).iter().map(|one| json!({ "about": one.about, "sentence": one.sentence })).collect::<Vec<_>>(),
        "writers": writers(profile),
        "cells": in_order(profile).into_iter().map(cell).collect::<Vec<_>>(),
        "open_loop": profile.open.iter().map(open_point).collect::<Vec<_>>(),
        "order": order,
    })
}

fn writers(profile: &Profile) -> Vec<Value> {
    let point = |point: &WritersPoint| {
        json!({ "writers": point.writers, "bytes_per_second": point.bytes_per_second,
            "buffers_written": point.buffers_written })
    };
    profile
        .writers
        .iter()
        .map(|curve| {
            json!({ "write_buffer_bytes": curve.buffer_bytes,
                "points": curve.points.iter().map(point).collect::<Vec<_>>() })
        })
        .collect()
}

fn open_point(point: &OpenPoint) -> Value {
    json!({
        "share_percent": point.share_percent,
        "asked_iops": point.asked_iops,
        "iops": mean(point.iops),
        "fell_behind": point.fell_behind(),
        "latency_from_due_ns": mean(point.mean_ns),
        "begun_late_ns": mean(point.late_ns),
        "samples": point.latency.count(),
        "latency_percentiles_ns": percentiles(|percent| point.percentile(percent)),
        "latency_bins_ns": bins(&point.latency),
    })
}

fn percentiles(of: impl Fn(f64) -> Option<f64>) -> Value {
    let pairs = super::explain::PERCENTILES.iter().map(|&percent| (percent.to_string(), of(percent).into()));
    Value::Object(pairs.collect())
}

fn bins(latency: &LatencyStats) -> Vec<Value> {
    latency.histogram().bins().map(|(at, count)| json!([at.0, count])).collect()
}

fn mean(mean: Mean) -> Value {
    json!({ "mean": mean.value, "half_width": mean.half_width, "count": mean.count })
}

fn cell(record: &CellRecord) -> Value {
    json!({
        "name": record.cell.name(),
        "label": record.cell.label(),
        "block_bytes": record.cell.bytes,
        "read_percent": record.cell.read_percent,
        "depth": record.cell.depth,
        "is_random": record.cell.order == Order::Random,
        "iops": mean(record.iops),
        "bytes_per_second": mean(record.bytes_per_second),
        "latency_ns": mean(record.mean_ns),
        "cpu_ns_per_io": record.cpu_ns_per_io.map(mean),
        "samples": record.latency.count(),
        "samples_beyond_a_percentile": SAMPLES_BEYOND,
        "latency_percentiles_ns": percentiles(|percent| record.percentile(percent)),
        "latency_bins_ns": bins(&record.latency),
    })
}

/// Every run as a row of CSV, in the order they were made. Runs of the open loop have the rate that was asked for, and their
/// latency counts from when each read was due.
#[must_use]
pub fn csv(profile: &Profile) -> String {
    let mut text = "cell,repetition,began_seconds,block_bytes,read_percent,depth,order,asked_iops,iops,bytes_per_second,latency_mean_ns,cpu_ns_per_io\n".to_owned();
    for run in &profile.runs {
        let numbers = [run.iops, run.bytes_per_second, run.mean_ns];
        let cell = profile.cells[run.cell].cell;
        text += &row((cell, None), (run.repetition, run.began), numbers, run.cpu_ns_per_io);
    }
    for run in &profile.open_runs {
        let numbers = [run.iops, run.bytes_per_second, run.mean_ns];
        text +=
            &row((OPEN_CELL, Some(run.asked_iops)), (run.repetition, run.began), numbers, run.cpu_ns_per_io);
    }
    text
}

fn row(
    (cell, asked): (Cell, Option<u64>),
    (repetition, began): (u32, Nanos),
    [iops, bytes_per_second, mean_ns]: [f64; 3],
    cpu_ns_per_io: Option<f64>,
) -> String {
    let order = if cell.order == Order::Random { "random" } else { "sequential" };
    format!(
        "{},{},{:.3},{},{},{},{order},{},{iops:.2},{bytes_per_second:.0},{mean_ns:.1},{}\n",
        cell.name(),
        repetition + 1,
        began.as_secs_f64(),
        cell.bytes,
        cell.read_percent,
        cell.depth,
        asked.map_or_else(String::new, |rate| rate.to_string()),
        cpu_ns_per_io.map_or_else(String::new, |nanos| format!("{nanos:.1}"))
    )
}

/// What happened inside the drive as rows of CSV: for each time between two moments what was written, and for each unit how
/// much of that time it was busy. `None` of a drive that does not show its inside.
#[must_use]
pub fn timeline_csv(profile: &Profile) -> Option<String> {
    let timeline = profile.timeline.as_ref()?;
    let mut text = "began_seconds,ended_seconds,phase,host_bytes,media_bytes,unit,busy_share\n".to_owned();
    for pair in timeline.moments().windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        if from.at >= to.at {
            continue;
        }
        let phase = profile.phases.iter().rev().find(|(_, began)| *began <= from.at);
        for unit in 0..timeline.units() {
            text.push_str(&format!(
                "{:.6},{:.6},{},{},{},{unit},{:.4}\n",
                from.at.as_secs_f64(),
                to.at.as_secs_f64(),
                phase.map_or("", |(name, _)| name),
                to.host_bytes - from.host_bytes,
                to.media_bytes - from.media_bytes,
                timeline.busy_share(unit, from.at, to.at)
            ));
        }
    }
    Some(text)
}
