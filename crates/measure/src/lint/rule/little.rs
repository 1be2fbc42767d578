//! L01: Little's law.

use super::Case;
use super::case::{float, known_sum};
use super::table::Rule;
use crate::lint::{Cell, Evidence, Format, Judgement, Severity};

/// Limits of profiling rule L01: of 3305 published fio results, 99.5 % lie in the first range.
const WARN: (f64, f64) = (0.90, 1.02);
const FAIL: (f64, f64) = (0.70, 1.05);
/// fio's rates are over whole milliseconds (chosen: 1 % off at most).
const RUN_SECS_MIN: f64 = 0.1;
/// Engines of fio that do one I/O at a time, whatever `iodepth` is (HOWTO, "I/O engine").
const ONE_AT_A_TIME: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "cpuio"];

pub(super) const RULE: Rule = Rule {
    id: "L01",
    name: "Little",
    severity: Severity::Fail,
    holds: "IOPS x mean latency, over the I/Os said to be outstanding, is 1: warn outside 0.90..1.02, fail \
            outside 0.70..1.05",
    means: "Little's law ties rate, latency and depth together. Below 1, the depth was not kept up: time went into the program \
            that measures, or latency was timed around another thing than the rate. Above 1, more was outstanding than said.",
    remedy: "Time every I/O from start to completion, divide by the same span, and keep the depth full: an asynchronous engine \
             (libaio, io_uring) for iodepth above 1, or as many threads.",
    needs: "IOPS, mean latency and depth",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let missing = || {
        let facts = [
            (cell.outstanding.is_none(), "the depth"),
            (known_sum(cell, |side| side.iops).is_none(), "IOPS"),
            (known_sum(cell, |side| side.latency.mean_ns).is_none(), "the mean latency"),
        ];
        let names: Vec<&str> =
            facts.iter().filter(|(is_missing, _)| *is_missing).map(|(_, name)| *name).collect();
        Judgement::missing(names.join(" and "))
    };
    let is_short = matches!(evidence.format, Format::Fio(_))
        && cell.runtime_secs.is_some_and(|secs| secs < RUN_SECS_MIN);
    if is_short {
        return Judgement::missing("a run of 0.1 s or more: fio prints whole milliseconds");
    }
    let busy = known_sum(cell, |side| Some(side.iops? * side.latency.mean_ns? / 1e9));
    let Some((depth, busy)) = cell.outstanding.filter(|&depth| depth > 0).zip(busy) else { return missing() };
    let depth_float = float(depth);
    // A job that syncs does nothing else meanwhile.
    let syncs = cell.sync.zip(cell.runtime_secs).filter(|(_, secs)| *secs > 0.0);
    let syncing = syncs.map_or(0.0, |(sync, secs)| float(sync.count) * sync.mean_ns / 1e9 / secs);
    let rho = (busy + syncing) / depth_float;
    let is_paced = cell.open_loop == Some(true) || cell.throttled_by.is_some();
    if is_paced && rho < WARN.0 {
        let by = cell.throttled_by.as_deref().unwrap_or("a rate");
        return Judgement::not_about(format!(
            "the load was held down by {by}, so the depth need not be full"
        ));
    }
    let sentence = || {
        let engine = cell.engine.as_deref().filter(|engine| depth > 1 && ONE_AT_A_TIME.contains(engine));
        let why =
            engine.map_or(String::new(), |engine| format!("; the engine {engine} does one I/O at a time"));
        format!("rho is {rho:.3}: {:.2} I/Os outstanding on average, {depth} said{why}", busy + syncing)
    };
    if rho < FAIL.0 || rho > FAIL.1 {
        Judgement::fail(sentence())
    } else if rho < WARN.0 || rho > WARN.1 {
        Judgement::warn(sentence())
    } else {
        Judgement::Pass
    }
}
