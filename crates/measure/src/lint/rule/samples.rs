//! L11: percentiles need samples.

use super::Case;
use super::case::float;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity, Side};

/// Samples beyond a percentile that it may rest on (profiling rule L11): p99.99 needs 100 000.
const BEYOND: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "L11",
    name: "samples",
    severity: Severity::Label,
    holds: "a percentile p has 10 / (1 - p) samples: p99 needs 1000, p99.99 needs 100 000",
    means: "Fewer than ten I/Os lie beyond the percentile, so chance decides it. fio prints it all the same.",
    remedy: "Leave the cell blank, or run longer.",
    needs: "percentiles and their number of samples",
    judge,
};

fn judge(_case: &Case<'_>, _evidence: &Evidence, cell: &Cell) -> Judgement {
    let mut sentences = Vec::new();
    let mut is_judged = false;
    for side in &cell.sides {
        if let (Some(_), Some(samples)) = (&side.latency.percentiles, side.latency.samples) {
            is_judged = true;
            let refused = refused(side, samples);
            if !refused.is_empty() {
                sentences.push(format!("{}: {} of {samples} samples", side.kind.word(), refused.join(", ")));
            }
        }
    }
    match (is_judged, sentences.is_empty()) {
        (false, _) => Judgement::missing("percentiles with their number of samples"),
        (true, true) => Judgement::Pass,
        (true, false) => Judgement::label(format!("leave blank: {}", sentences.join("; "))),
    }
}

/// The percentiles above the median that have too few samples.
fn refused(side: &Side, samples: u64) -> Vec<String> {
    let list = side.latency.percentiles.iter().flat_map(|list| list.values.keys());
    list.filter(|&&key| key > 50_000 && key < 100_000)
        .filter(|&&key| float(samples) * (1.0 - float(key) / 100_000.0) < BEYOND * (1.0 - 1e-9))
        .map(|&key| format!("p{}", float(key) / 1_000.0))
        .collect()
}
