//! L15: the latency is the whole latency.

use super::Case;
use super::table::Rule;
use crate::lint::{Cell, Clock, Evidence, Judgement, Severity, Side, SideKind};

/// Share of the latency that may be left out (chosen: less than the tolerances of L01).
const LEFT_OUT: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "L15",
    name: "completeness",
    severity: Severity::Warn,
    holds: "latency runs from start to completion (fio's lat), and percentiles leave out at most 5 % of it",
    means: "What fio calls clat begins after submission, and a submission that waits is not in it.",
    remedy: "Set lat_percentiles=1, do not set disable_lat or gtod_reduce, and quote lat.",
    needs: "mean lat, slat and clat",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let is_virtual = evidence.own.as_ref().is_some_and(|run| run.clock == Some(Clock::Virtual));
    let judged: Vec<Judgement> = cell
        .sides
        .iter()
        .map(|side| match (side.kind, side.latency.mean_ns) {
            // Means of nothing are kept as nothing.
            (SideKind::Write, None) if is_virtual => {
                Judgement::not_about("in virtual time a buffer takes writes in no time")
            }
            _ => judge_side(side),
        })
        .collect();
    let finding = judged.iter().find(|one| matches!(one, Judgement::Finding(..)));
    let unknown = judged.iter().find(|one| matches!(one, Judgement::NotJudged(_)));
    finding.or(unknown).or(judged.first()).cloned().unwrap_or_else(|| Judgement::missing("the latency"))
}

fn judge_side(side: &Side) -> Judgement {
    let latency = &side.latency;
    let word = side.kind.word();
    let left_out = latency.slat_mean_ns.zip(latency.mean_ns).map(|(slat, lat)| slat / lat);
    let is_clat = latency.percentiles.as_ref().is_some_and(|list| list.is_of_clat);
    match latency.is_whole {
        None => Judgement::missing("whether the latency is from start to completion"),
        Some(false) if latency.clat_mean_ns.is_none() && latency.mean_ns.is_none() => {
            Judgement::warn(format!("{word}: no latency was kept"))
        }
        Some(false) => Judgement::warn(format!(
            "{word}: the latency begins after submission; the whole one was not kept"
        )),
        Some(true) if is_clat && left_out.is_some_and(|share| share > LEFT_OUT) => Judgement::warn(format!(
            "{word}: percentiles are of clat and leave out {:.0} % of the mean, spent in submission",
            100.0 * left_out.unwrap_or_default()
        )),
        Some(true) => Judgement::Pass,
    }
}
