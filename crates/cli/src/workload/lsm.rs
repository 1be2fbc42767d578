//! `ocssd workload lsm`: an LSM tree in virtual time on a table target, and what it was held up by.
//!
//! Deliberately not here: the tree (`workload::lsm`).

use super::execute::{self, Progress, TARGET, WorkloadDevice};
use super::tool::{LsmTool, Speaks};
use crate::args::{AskArgs, ClockArg, WorkloadArgs};
use crate::{Outcome, table};
use anyhow::{anyhow, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_drive::Image;
use ocssd_engine::{Host, VirtualClock};
use ocssd_lightnvm::Tag;
use ocssd_lightnvm::counter::{Counter, CounterValue};
use ocssd_lightnvm::interface::table::{TableOp, TableRequest};
use ocssd_workload::lsm::{Cause, Lsm, LsmOptions, Phase, Point};
use ocssd_workload::results::fold::fold;
use serde_json::{Value, json};
use std::time::Instant;

/// Rows of a series on a terminal (chosen: a screenful); JSON has all points.
const ROWS_MAX: usize = 16;

impl Progress for Lsm {
    fn stop(&mut self) {
        Self::stop(self);
    }

    fn outstanding(&self) -> usize {
        Self::outstanding(self)
    }

    fn progress(&self) -> (u64, u64) {
        let (done, all) = Self::progress(self);
        (done.saturating_mul(1_000).checked_div(all).unwrap_or(0).min(1_000), done)
    }
}

type LsmHost = Host<WorkloadDevice, VirtualClock, <LsmTool as Speaks>::Target>;

/// A run that has ended.
struct Ended {
    lsm: Lsm,
    counters: Vec<Counter>,
    interrupted: Option<String>,
    media_written_bytes: u64,
    hash: u64,
    notes: Vec<String>,
    started: Instant,
}

/// What there is to show of a tree, here or beside jobs.
pub struct Shown<'a> {
    /// The tree.
    pub lsm: &'a Lsm,
    /// What its target counted.
    pub counters: &'a [Counter],
    /// Bytes that were written to the media.
    pub media_written_bytes: u64,
}

/// Does what was asked for.
pub fn lsm(args: &WorkloadArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let options = options_of(&args.ask, args.clock == ClockArg::Virtual)?;
    let started = Instant::now();
    let (mut host, notes, image) = super::make::<LsmTool>(args)?;
    let limits = host.target(TARGET).limits();
    let mut lsm = Lsm::new(options, limits, &Prng::new(args.seed));
    let before = host.device().inner().counters();
    let interrupted = execute::go(args, &mut host, &mut lsm)?;
    let after = host.device().inner().counters();
    let written =
        after.sectors_written + after.sectors_copied - before.sectors_written - before.sectors_copied;
    let sector_bytes = u64::from(host.device().inner().config().geometry.sector_bytes);
    let counters = host.target(TARGET).counters();
    let hash = leave(host, image)?;
    let media_written_bytes = written * sector_bytes;
    let ended = Ended { lsm, counters, interrupted, media_written_bytes, hash, notes, started };
    Ok(present(args, &ended, as_json))
}

/// The options of a tree.
///
/// # Errors
/// A sentence, if it cannot run so.
pub fn options_of(ask: &AskArgs, is_virtual: bool) -> anyhow::Result<LsmOptions> {
    ensure!(ask.iodepth.is_none(), "lsm has threads and no depth: leave --iodepth out, and give threads=N");
    ensure!(
        is_virtual,
        "lsm counts what processors take in virtual time: leave --clock out; on the wall clock run the real db_bench \
         (docs/rocksdb.md)"
    );
    Ok(LsmOptions::parse(&ask.options.join(" "))?)
}

/// The target is left in order if it lies on an image; what happened, as one number.
fn leave(mut host: LsmHost, image: Option<Image>) -> anyhow::Result<u64> {
    if image.is_some() {
        host.ask(TableRequest { tag: Tag(0), op: TableOp::Shutdown });
    }
    let mut device = host.into_device();
    let hash = device.hash();
    device.inner_mut().sync().map_err(|error| anyhow!("the image could not be kept: {error}"))?;
    drop(image);
    Ok(hash)
}

fn present(args: &WorkloadArgs, ended: &Ended, as_json: bool) -> Outcome {
    let (outcome, verdict) = match (ended.lsm.failure(), &ended.interrupted) {
        (Some(failure), _) => (Outcome::Failed, format!("fail: {failure}")),
        (None, Some(how)) => (Outcome::Interrupted, format!("interrupted: {how}")),
        (None, None) => (Outcome::Good, "pass".to_owned()),
    };
    let Ended { lsm, counters, media_written_bytes, .. } = ended;
    let shown = Shown { lsm, counters, media_written_bytes: *media_written_bytes };
    if as_json {
        let mut object = to_json(&shown, &verdict);
        object["trace_hash"] = json!(format!("{:016x}", ended.hash));
        object["notes"] = json!(ended.notes);
        table::print_json(&object);
        return outcome;
    }
    table::line(&fold(&format!("verdict: {verdict}")));
    table::line("");
    table::line(&text(&shown));
    for note in &ended.notes {
        table::line(&fold(note));
    }
    if args.verbose {
        crate::run::metrics::print(&[("target".to_owned(), ended.counters.clone())]);
        table::line(&format!("trace hash {:016x}", ended.hash));
    }
    table::line(&format!("took {:.1} s", ended.started.elapsed().as_secs_f64()));
    outcome
}

/// Its benchmarks, a blank line behind each, its levels, and what the media did.
pub fn text(shown: &Shown<'_>) -> String {
    let interval = shown.lsm.interval();
    let phases = shown.lsm.phases().iter().map(|phase| phase_lines(phase, interval).join("\n"));
    let end = [vec![levels(shown.lsm)], media(shown)].concat().join("\n");
    phases.chain([end]).collect::<Vec<String>>().join("\n\n")
}

fn phase_lines(phase: &Phase, interval: Nanos) -> Vec<String> {
    let seconds = phase.took().as_secs_f64();
    let operations = phase.operations();
    let mut lines = vec![fold(&format!(
        "{}: {operations} operations in {seconds:.3} s, {} a second",
        phase.name,
        rate(operations, seconds)
    ))];
    let latencies = [("put", &phase.puts), ("get", &phase.gets)];
    let rows: Vec<Vec<String>> = latencies
        .iter()
        .filter(|(_, latency)| latency.count() > 0)
        .map(|(name, latency)| {
            let percentile =
                |percent| latency.histogram().percentile(percent).map_or_else(String::new, micros);
            let mut row = vec![(*name).to_owned(), latency.count().to_string(), micros_of(latency.mean_ns())];
            row.extend([50.0, 99.0, 99.9].map(percentile));
            row.push(latency.max().map_or_else(String::new, micros));
            row
        })
        .collect();
    if !rows.is_empty() {
        lines.push(table::text(&["", "count", "mean us", "p50 us", "p99 us", "p99.9 us", "max us"], &rows));
    }
    lines.extend(stalls(phase));
    lines.extend(series(phase, interval));
    lines
}

fn stalls(phase: &Phase) -> Vec<String> {
    let (took, mut lines) = (phase.took(), Vec::new());
    let rows = Cause::ALL.into_iter().filter_map(|cause| {
        let (stopped, delayed) = (phase.stopped[cause as usize], phase.delayed[cause as usize]);
        let is_there = stopped > Nanos::ZERO || delayed > Nanos::ZERO;
        is_there.then(|| vec![cause.name().to_owned(), part(stopped, took), part(delayed, took)])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        lines.push(table::text(&["puts waited for", "stopped", "slowed by the rate"], &rows));
    }
    if let Some(rate) = phase.rate_min {
        lines.push(format!("lowest rate of slowed puts: {:.2} MiB/s", rate as f64 / f64::from(1 << 20)));
    }
    let work = &phase.work;
    if work.flushes + work.compactions + work.moves > 0 {
        lines.push(fold(&format!(
            "{} flushes, {} compactions, {} tables moved; {:.2} bytes written for each that was put",
            work.flushes,
            work.compactions,
            work.moves,
            work.amplification()
        )));
    }
    lines
}

/// Neighbours in one row, so that all fit a screen.
fn series(phase: &Phase, interval: Nanos) -> Option<String> {
    let each = phase.series.len().div_ceil(ROWS_MAX).max(1);
    if phase.series.len() < 2 {
        return None;
    }
    let step = interval * each as u64;
    let rows = phase.series.chunks(each).enumerate().map(|(number, points)| {
        let sum = |of: fn(&Point) -> u64| points.iter().map(of).sum::<u64>();
        let from = interval * (number * each) as u64;
        let length = phase.took().saturating_since(from).min(step);
        let seconds = length.as_secs_f64();
        vec![
            format!("{:.2}", from.as_secs_f64()),
            rate(sum(|point| point.puts), seconds),
            rate(sum(|point| point.reads), seconds),
            part(Nanos(sum(|point| point.stopped.0)), length),
            part(Nanos(sum(|point| point.delayed.0)), length),
            points.iter().map(|point| point.level0_max).max().unwrap_or(0).to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    Some(table::text(&["from s", "puts/s", "reads/s", "stopped", "slowed", "level 0"], &rows))
}

fn levels(lsm: &Lsm) -> String {
    let levels = lsm.levels();
    let filled = levels.iter().enumerate().filter(|(_, (tables, _))| *tables > 0);
    let rows: Vec<Vec<String>> = filled
        .map(|(level, (tables, bytes))| {
            vec![level.to_string(), tables.to_string(), format!("{:.1}", *bytes as f64 / 1e6)]
        })
        .collect();
    if rows.is_empty() {
        "the tree has no tables: what was put is in memtables".to_owned()
    } else {
        table::text(&["level", "tables", "MB"], &rows)
    }
}

fn media(shown: &Shown<'_>) -> Vec<String> {
    let put: u64 = shown.lsm.phases().iter().map(|phase| phase.work.put_bytes).sum();
    let amplification = if put > 0 {
        format!(", {:.2} for each that was put", shown.media_written_bytes as f64 / put as f64)
    } else {
        String::new()
    };
    let written = shown.media_written_bytes as f64 / 1e6;
    let mut lines = vec![fold(&format!("media: {written:.1} MB written{amplification}"))];
    if let (Some(all), Some(behind)) =
        (count(shown.counters, "stream0_units"), count(shown.counters, "stream0_units_behind_any"))
        && all > 0
    {
        lines.push(fold(&format!(
            "{behind} of {all} write units of flushes found another table's write or read at their parallel unit ({:.0} %)",
            behind as f64 / all as f64 * 100.0
        )));
    }
    lines
}

fn count(counters: &[Counter], name: &str) -> Option<u64> {
    counters.iter().find(|counter| counter.name == name).and_then(|counter| match counter.value {
        CounterValue::Count(value) => Some(value),
        _ => None,
    })
}

fn rate(count: u64, seconds: f64) -> String {
    if seconds > 0.0 { format!("{:.0}", count as f64 / seconds) } else { "-".to_owned() }
}

fn micros(nanos: Nanos) -> String {
    micros_of(nanos.0 as f64)
}

fn micros_of(nanos: f64) -> String {
    format!("{:.1}", nanos / 1e3)
}

/// A part of a time in percent.
fn part(some: Nanos, all: Nanos) -> String {
    if all == Nanos::ZERO {
        return "-".to_owned();
    }
    format!("{:.1} %", some.0 as f64 / all.0 as f64 * 100.0)
}

/// As JSON.
pub fn to_json(shown: &Shown<'_>, verdict: &str) -> Value {
    let interval = shown.lsm.interval();
    let phases: Vec<Value> = shown.lsm.phases().iter().map(|phase| phase_json(phase, interval)).collect();
    let levels: Vec<Value> = shown
        .lsm
        .levels()
        .iter()
        .map(|(tables, bytes)| json!({ "tables": tables, "bytes": bytes }))
        .collect();
    let metrics = crate::run::metrics::to_json(&[("target".to_owned(), shown.counters.to_vec())]);
    json!({
        "verdict": verdict,
        "phases": phases,
        "levels": levels,
        "media_written_bytes": shown.media_written_bytes,
        "counters": metrics[0]["counters"],
    })
}

fn phase_json(phase: &Phase, interval: Nanos) -> Value {
    let by_cause = |all: &[Nanos; 3]| -> serde_json::Map<String, Value> {
        Cause::ALL
            .into_iter()
            .map(|cause| (cause.name().replace(' ', "_"), json!(all[cause as usize].0)))
            .collect()
    };
    let series: Vec<Value> = phase
        .series
        .iter()
        .map(|point| json!([point.puts, point.reads, point.stopped.0, point.delayed.0, point.level0_max]))
        .collect();
    let work = &phase.work;
    json!({
        "name": phase.name,
        "took_ns": phase.took().0,
        "operations": phase.operations(),
        "puts": phase.puts.count(), "put_mean_ns": phase.puts.mean_ns(),
        "gets": phase.gets.count(), "get_mean_ns": phase.gets.mean_ns(),
        "scanned": phase.scanned, "filter_wrong": phase.filter_wrong,
        "stopped_ns": by_cause(&phase.stopped), "delayed_ns": by_cause(&phase.delayed),
        "rate_min": phase.rate_min,
        "put_bytes": work.put_bytes, "flushes": work.flushes, "flushed_bytes": work.flushed_bytes,
        "compactions": work.compactions, "moves": work.moves,
        "compaction_read_bytes": work.compaction_read_bytes,
        "compaction_written_bytes": work.compaction_written_bytes,
        "interval_ns": interval.0,
        "series_columns": ["puts", "reads", "stopped_ns", "delayed_ns", "level0_max"],
        "series": series,
    })
}
