//! L12: the program that measures was not the limit.

use super::Case;
use super::case::iops;
use super::table::Rule;
use crate::lint::{Cell, Clock, Evidence, Judgement, Severity};

/// A job this busy is the limit itself, in percent of a core (profiling rule L12).
const BUSY_PERCENT: f64 = 90.0;
/// What the program can do at least, over what it did (profiling rule L12).
const CEILING_FACTOR: f64 = 1.5;

pub(super) const RULE: Rule = Rule {
    id: "L12",
    name: "generator",
    severity: Severity::Warn,
    holds: "each job's core is less than 90 % busy, and the same job on a target that answers at once does \
            1.5 times as much",
    means: "The processor was the limit: this is a measurement of the program.",
    remedy: "More jobs, larger blocks, cheaper options (no refill_buffers, no verify), or say `CPU-bound`. Measure the \
             ceiling with \
             ioengine=null, and give it with --ceiling.",
    needs: "processor time of the job, or --ceiling",
    judge,
};

fn judge(case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    if evidence.own.as_ref().is_some_and(|run| run.clock == Some(Clock::Virtual)) {
        return Judgement::not_about("in virtual time the program that measures takes no time");
    }
    let profile = evidence.own.as_ref().and_then(|run| run.profile.as_ref());
    let known = case.settings.ceiling_iops.or(profile.and_then(|profile| profile.ceiling_iops));
    let ceiling = known.zip(iops(cell));
    if let Some((ceiling, iops)) = ceiling.filter(|(ceiling, iops)| *ceiling < CEILING_FACTOR * iops) {
        return Judgement::warn(format!(
            "CPU-bound: {iops:.0} IOPS, and no more than {ceiling:.0} with a target that answers at once"
        ));
    }
    match cell.cpu_percent {
        _ if cell.polls == Some(true) && ceiling.is_none() => {
            Judgement::missing("--ceiling: the job polls, so its core is always busy")
        }
        Some(percent) if percent >= BUSY_PERCENT && cell.polls != Some(true) => {
            Judgement::warn(format!("CPU-bound: the job's core was {percent:.0} % busy"))
        }
        None if ceiling.is_none() => Judgement::missing("processor time of the job, or --ceiling"),
        _ => Judgement::Pass,
    }
}
