//! L04: the same cell measured twice is the same.

use super::Case;
use super::case::{iops, mean_latency_ns};
use super::table::Rule;
use crate::lint::{Cell, Clock, Evidence, Judgement, Severity};

/// How far apart two measurements may be (profiling rule L04).
const TOLERANCE: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    id: "L04",
    name: "replicate",
    severity: Severity::Fail,
    holds: "the same workload, mix and depth measured more than once agree within 10 %, or within their \
            confidence intervals",
    means: "Something that is not written down decides the number: a cache that was warm, a drive in another state, a busy host. \
            Nothing else in the series can be interpreted until it is known.",
    remedy: "Find what differed, control it, measure each cell three times or more in random order, and show the spread.",
    needs: "two measurements of the same workload, in one file or several",
    judge,
};

fn judge(case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    if evidence.own.as_ref().is_some_and(|run| run.clock == Some(Clock::Virtual)) {
        return Judgement::not_about(
            "virtual time repeats to the nanosecond: measurements differ by their seed, and by what was written before them",
        );
    }
    if cell.read_percent.is_none() || cell.outstanding.is_none() || cell.block_bytes.is_none() {
        return Judgement::missing("mix, block size and depth");
    }
    let same: Vec<&Cell> = case
        .relatives(cell)
        .into_iter()
        .filter(|other| other.read_percent == cell.read_percent && other.outstanding == cell.outstanding)
        .collect();
    if same.len() < 2 {
        return Judgement::missing("a second measurement of the same cell");
    }
    let rates = spread(&same, iops);
    let latencies = spread(&same, mean_latency_ns);
    let half_widths: f64 = same.iter().map(|one| half_width(one)).fold(0.0, f64::max);
    let rates_differ = rates.is_some_and(|(low, high)| high - low > (low * TOLERANCE).max(2.0 * half_widths));
    // Random arrivals near what a device can do wait for longer or shorter each time: there only rates are held against another.
    let is_open = cell.open_loop == Some(true);
    let latencies_differ = !is_open && latencies.is_some_and(|(low, high)| high - low > low * TOLERANCE);
    let names: Vec<&str> =
        same.iter().filter(|one| !std::ptr::eq(**one, cell)).map(|one| one.name.as_str()).collect();
    let others = names.join(", ");
    match (latencies.filter(|_| latencies_differ), rates.filter(|_| rates_differ)) {
        (None, None) if rates.is_none() && latencies.is_none() => {
            Judgement::missing("IOPS or latency of all of them")
        }
        (None, None) => Judgement::Pass,
        (Some((low, high)), _) => Judgement::fail(format!(
            "the same cell as {others}: mean latencies from {:.2} to {:.2} us, {:.1} times apart",
            low / 1e3,
            high / 1e3,
            high / low
        )),
        (None, Some((low, high))) => Judgement::fail(format!(
            "the same cell as {others}: {low:.0} to {high:.0} IOPS, {:.1} times apart",
            high / low
        )),
    }
}

/// The smallest and the largest, where all are known.
fn spread(cells: &[&Cell], of: fn(&Cell) -> Option<f64>) -> Option<(f64, f64)> {
    let values: Vec<f64> = cells.iter().map(|cell| of(cell)).collect::<Option<_>>()?;
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some((low, high))
}

/// Half the 95 % interval of the rate, all directions together; 0 if the result has too few samples of its own.
fn half_width(cell: &Cell) -> f64 {
    cell.sides.iter().filter_map(|side| side.iops_half_width).sum()
}
