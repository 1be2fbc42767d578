//! L13: requests came when they were due.

use super::Case;
use super::case::float;
use super::case::iops;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity};

/// Late starts, as a share (profiling rule L13).
const LATE_SHARE: f64 = 0.001;

pub(super) const RULE: Rule = Rule {
    id: "L13",
    name: "schedule",
    severity: Severity::Warn,
    holds: "no I/O was dropped, under 0.1 % began late, and a rate that was asked for was kept to 0.1 %, or to what random arrivals differ by chance",
    means: "Requests waited outside the timer, so latencies leave that waiting out (coordinated omission).",
    remedy: "Ask for a lower rate, use more jobs, or report response times from when a request was due.",
    needs: "dropped I/Os, and for an open loop late starts (ours) or the rate asked for (fio)",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let dropped: u64 = cell.sides.iter().filter_map(|side| side.dropped).fold(0, u64::saturating_add);
    if dropped > 0 {
        return Judgement::warn(format!("{dropped} I/Os were dropped"));
    }
    let late = evidence.own.as_ref().and_then(|run| run.late).filter(|(replies, _)| *replies > 0);
    if let Some((replies, late)) = late.filter(|(replies, late)| float(*late) >= LATE_SHARE * float(*replies))
    {
        return Judgement::warn(format!("{late} of {replies} completions were taken late"));
    }
    match (cell.open_loop, cell.rate_iops, iops(cell)) {
        (Some(false), _, _) => Judgement::not_about("a closed loop: the next request waits for the last"),
        (_, Some(asked), Some(done)) if done < asked * (1.0 - LATE_SHARE.max(chance(cell))) => {
            Judgement::warn(format!("{done:.0} IOPS of {asked:.0} asked for"))
        }
        (_, Some(_), Some(_)) => Judgement::Pass,
        (Some(true), _, _) if evidence.own.is_some() => Judgement::Pass,
        _ => Judgement::missing("how many requests began late"),
    }
}

/// How far below its mean a Poisson process may stay by chance, as a share: three standard deviations.
fn chance(cell: &Cell) -> f64 {
    let ios: u64 = cell.sides.iter().filter_map(|side| side.ios).fold(0, u64::saturating_add);
    if cell.is_poisson && ios > 0 { 3.0 / float(ios).sqrt() } else { 0.0 }
}
