//! L16: units are said, and the numbers fit each other.

use super::Case;
use super::case::float;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity, Side};

/// Units of bandwidth that say what they are: decimal with k, binary with Ki.
const UNITS: [&str; 10] =
    ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "bytes/s"];
/// How far numbers that follow from each other may be apart (chosen: rounding of what is printed stays below).
const TOLERANCE: f64 = 0.02;
/// Run times are printed in whole milliseconds, rounded; shorter runs are not compared (chosen: then at most 1 % off).
const RUN_SECS_MIN: f64 = 0.1;

pub(super) const RULE: Rule = Rule {
    id: "L16",
    name: "units",
    severity: Severity::Fail,
    holds: "bandwidth is in bytes per second with a decimal or binary unit, latency in nanoseconds, and both \
            fit rate and block size",
    means: "A number without its unit, or with another one's, is misread.",
    remedy: "Print bytes per second (MB/s is 10^6, MiB/s 2^20) beside IOPS, and latency in nanoseconds; use fio 3.",
    needs: "the unit of bandwidth, or bytes with rate and time",
    judge,
};

fn judge(_case: &Case<'_>, _evidence: &Evidence, cell: &Cell) -> Judgement {
    if let Some(unit) = cell.bandwidth_unit.as_deref().filter(|unit| !UNITS.contains(unit)) {
        return Judgement::fail(format!("bandwidth is given in `{unit}`, which is no unit of it"));
    }
    if cell.sides.iter().any(|side| side.latency.is_in_ns == Some(false)) {
        return Judgement::fail("latencies are in microseconds without saying so (fio 2)");
    }
    let judged: Vec<Option<String>> = cell.sides.iter().filter_map(|side| judge_side(cell, side)).collect();
    match judged.iter().flatten().next() {
        Some(sentence) => Judgement::fail(sentence.clone()),
        None if judged.is_empty() && cell.bandwidth_unit.is_none() => {
            Judgement::missing("the unit of bandwidth, or the bandwidth")
        }
        None => Judgement::Pass,
    }
}

/// `None` if there is nothing to compare; else what does not fit, if anything.
fn judge_side(cell: &Cell, side: &Side) -> Option<Option<String>> {
    let printed = side.bytes_per_second?;
    if side.runtime_secs.is_some_and(|secs| secs < RUN_SECS_MIN) {
        return None;
    }
    let (follows, from) = match (side.bytes, side.runtime_secs, side.iops, cell.block_bytes) {
        (Some(bytes), Some(secs), _, _) => (float(bytes) / secs, "bytes over run time"),
        (_, _, Some(iops), Some(block)) => (iops * float(block), "IOPS times block size"),
        _ => return None,
    };
    let is_apart = (printed - follows).abs() > TOLERANCE * follows.max(printed);
    Some(is_apart.then(|| format!("bandwidth is {printed:.0} B/s, but {from} is {follows:.0} B/s")))
}
