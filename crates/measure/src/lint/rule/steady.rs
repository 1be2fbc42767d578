//! L10: the drive had come to rest.

use super::Case;
use super::case::float;
use super::case::has;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity, SideKind, Steady};

pub(super) const RULE: Rule = Rule {
    id: "L10",
    name: "steady",
    severity: Severity::Label,
    holds: "the run was asked for a steady state and came to it, and where the capacity is known, that much was written",
    means: "Writes on a fresh drive are faster than those that last, so the number depends on when it was taken.",
    remedy: "Precondition (twice the capacity, then the workload itself), set fio's steadystate, and keep writing until once the \
             capacity is written. fio's slope is per sample: 10 % each second is not steady.",
    needs: "fio's steadystate; the capacity is known of virtual drives only",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let profile = evidence.own.as_ref().and_then(|run| run.profile.as_ref());
    if let Some(rest) = profile.map(|profile| &profile.rest) {
        return match rest {
            Some((true, _)) => Judgement::Pass,
            Some((false, sentence)) => Judgement::label(sentence.clone()),
            None => Judgement::missing("what was written before these reads: the profile wrote nothing"),
        };
    }
    let writes = has(cell, SideKind::Write);
    match &cell.steady {
        None => Judgement::missing("whether a steady state was reached"),
        Some(_) if !writes => {
            Judgement::missing("what was written before these reads: a file says nothing of runs before it")
        }
        Some(Steady::NotAsked) => Judgement::label("no steady state was asked for (steadystate is not set)"),
        Some(Steady::Asked { criterion, attained: false }) => {
            Judgement::label(format!("steady state ({criterion}) was not reached"))
        }
        Some(Steady::Asked { .. }) => {
            let capacity = evidence.own.as_ref().and_then(|run| run.capacity_bytes);
            let side = cell.sides.iter().find(|side| side.kind == SideKind::Write);
            match capacity.zip(side.and_then(|side| side.bytes)) {
                Some((capacity, written)) if written < capacity => Judgement::label(format!(
                    "steady, but only {:.1} % of the capacity was written",
                    100.0 * float(written) / float(capacity)
                )),
                Some(_) => Judgement::Pass,
                None => Judgement::missing(
                    "the capacity, to see that it was written once: steady state was reached",
                ),
            }
        }
    }
}
