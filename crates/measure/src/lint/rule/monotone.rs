//! L06: more depth is not less work, and not less waiting.

use super::Case;
use super::case::{iops, mean_latency_ns};
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity};

/// How much may be lost from one depth to the next (profiling rule L06).
const TOLERANCE: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "L06",
    name: "monotone",
    severity: Severity::Warn,
    holds: "from one depth to the next, neither IOPS nor mean latency fall by more than 5 %",
    means: "A queue cannot make its I/Os faster. Latency that falls was not of that depth, or the drive changed in between; IOPS \
            that fall say that more depth costs more than it brings: in the host, or in the drive.",
    remedy: "See whether the depth was kept up (L01) and the processor was free (L12); measure depths in random order, more than \
             once.",
    needs: "the same workload at a smaller depth, with IOPS or mean latency",
    judge,
};

fn judge(case: &Case<'_>, _evidence: &Evidence, cell: &Cell) -> Judgement {
    if cell.open_loop == Some(true) || cell.throttled_by.is_some() {
        return Judgement::not_about("the load was held down, so depth decides nothing");
    }
    let Some(depth) = cell.outstanding else { return Judgement::missing("the depth") };
    let before = case
        .relatives(cell)
        .into_iter()
        .filter(|other| {
            other.read_percent == cell.read_percent && other.outstanding.is_some_and(|d| d < depth)
        })
        .filter(|other| other.series == cell.series)
        .max_by_key(|other| other.outstanding);
    let Some(before) = before else {
        return Judgement::missing("the same workload at a smaller depth");
    };
    let from = before.outstanding.unwrap_or_default();
    let fall = |of: fn(&Cell) -> Option<f64>| {
        let (earlier, later) = of(before).zip(of(cell)).filter(|(earlier, _)| *earlier > 0.0)?;
        Some((1.0 - later / earlier) * 100.0)
    };
    let (rate, latency) = (fall(iops), fall(mean_latency_ns));
    let is_much = |fall: &Option<f64>| fall.is_some_and(|percent| percent > TOLERANCE * 100.0);
    match (latency, rate) {
        (None, None) => Judgement::missing("IOPS and mean latency of both depths"),
        (Some(percent), _) if is_much(&latency) => {
            Judgement::warn(format!("mean latency falls by {percent:.0} % from depth {from} to {depth}"))
        }
        (_, Some(percent)) if is_much(&rate) => {
            Judgement::warn(format!("IOPS fall by {percent:.0} % from depth {from} to {depth}"))
        }
        _ => Judgement::Pass,
    }
}
