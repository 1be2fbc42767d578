//! L05: a mix lies between its parts.

use super::Case;
use super::case::{is_mixed, mean_latency_ns};
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity};

/// How far outside a mix may lie (chosen: the tolerance of L04, as each of the three is a measurement).
const TOLERANCE: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    id: "L05",
    name: "mixture",
    severity: Severity::Warn,
    holds: "a mix's mean latency is at least that of its parts, weighted, and at most the slower part's; 10 % are allowed",
    means: "Below, the mix does not do the same reads and writes as the pure runs: one fills a cache for the other. Above, reads \
            and writes disturb each other; the finding gives by how much.",
    remedy: "Below: measure reads of what this run did not write, with direct I/O. Above: report the interaction beside \
             the mix; it \
             is a property of the drive.",
    needs: "mean latencies of the mix, of pure reads and of pure writes, else alike",
    judge,
};

fn judge(case: &Case<'_>, _evidence: &Evidence, cell: &Cell) -> Judgement {
    if !is_mixed(cell) {
        return if cell.read_percent.is_some() {
            Judgement::not_about("not a mix of reads and writes")
        } else {
            Judgement::missing("the mix")
        };
    }
    let pure = |percent: f64| {
        let all: Vec<&Cell> = case
            .relatives(cell)
            .into_iter()
            .filter(|other| other.read_percent == Some(percent) && other.outstanding == cell.outstanding)
            .collect();
        let near = all.iter().copied().find(|other| other.series == cell.series);
        near.or(all.first().copied()).and_then(mean_latency_ns)
    };
    let (reads, writes) = (pure(100.0), pure(0.0));
    let (Some(mix), Some(reads), Some(writes)) = (mean_latency_ns(cell), reads, writes) else {
        return Judgement::missing(
            "mean latencies of the mix, of pure reads and of pure writes at this depth",
        );
    };
    let share = measured_share(cell) / 100.0;
    let weighted = share * reads + (1.0 - share) * writes;
    let numbers = format!(
        "mean {:.2} us; {:.0} % reads of {:.2} us and the rest writes of {:.2} us make {:.2} us",
        mix / 1e3,
        share * 100.0,
        reads / 1e3,
        writes / 1e3,
        weighted / 1e3
    );
    if mix < weighted * (1.0 - TOLERANCE) {
        Judgement::warn(format!("below its parts: {numbers}"))
    } else if mix > reads.max(writes) * (1.0 + TOLERANCE) {
        Judgement::warn(format!(
            "above both its parts, by interaction {:+.2} us: {numbers}",
            (mix - weighted) / 1e3
        ))
    } else {
        Judgement::Pass
    }
}

/// Reads in percent as they were, else as asked for.
fn measured_share(cell: &Cell) -> f64 {
    let rate = |kind| cell.sides.iter().find(|side| side.kind == kind).and_then(|side| side.iops);
    let rates = rate(crate::lint::SideKind::Read).zip(rate(crate::lint::SideKind::Write));
    let measured = rates.map(|(reads, writes)| 100.0 * reads / (reads + writes));
    measured.or(cell.read_percent).unwrap_or(100.0)
}
