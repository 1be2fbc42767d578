//! Makes a failing run short: leaves out steps as long as it fails in the same way (Zeller and Hildebrandt, 2002).
//!
//! Deliberately not here: a smaller drive or milder faults; a seed is its drive.

use crate::failure::{Cause, Failure};
use crate::journal::Keep;
use crate::plan::Plan;
use crate::run::{Ended, run};
use ocssd_targets::registry::Kind;
use std::collections::BTreeSet;

/// The steps of a plan that still fail like `failure`, in order. At most `budget` runs are made.
#[must_use]
pub fn shrink(plan: &Plan, kind: &Kind, failure: &Failure, budget: u32) -> Vec<usize> {
    let mut shrinking = Shrinking { plan, kind, cause: &failure.cause, left: budget };
    let mut steps: Vec<usize> = (0..plan.steps.len()).collect();
    shrinking.cut_behind(&mut steps, failure.step);
    let mut piece = steps.len().div_ceil(2).max(1);
    while shrinking.left > 0 {
        let any = shrinking.pass(&mut steps, piece);
        if piece == 1 && !any {
            break;
        }
        piece = piece.div_ceil(2);
    }
    steps
}

struct Shrinking<'a> {
    plan: &'a Plan,
    kind: &'a Kind,
    cause: &'a Cause,
    left: u32,
}

impl Shrinking<'_> {
    /// What came after the step it failed in had no part in it, unless it failed after the last.
    fn cut_behind(&mut self, steps: &mut Vec<usize>, step: usize) {
        let before: Vec<usize> = steps.iter().copied().filter(|&index| index <= step).collect();
        if self.fails(&before).is_some() {
            *steps = before;
        }
    }

    /// Leaves out pieces of this many steps wherever it still fails. True if any could be.
    fn pass(&mut self, steps: &mut Vec<usize>, piece: usize) -> bool {
        let (mut at, mut any) = (0, false);
        while at < steps.len() && self.left > 0 {
            let end = (at + piece).min(steps.len());
            let without: Vec<usize> = steps[..at].iter().chain(&steps[end..]).copied().collect();
            match self.fails(&without) {
                Some(last) => {
                    *steps = without;
                    steps.retain(|&index| index <= last);
                    any = true;
                }
                None => at = end,
            }
        }
        any
    }

    /// The step at which a run of only these fails in the same way.
    fn fails(&mut self, steps: &[usize]) -> Option<usize> {
        self.left = self.left.saturating_sub(1);
        let only: BTreeSet<usize> = steps.iter().copied().collect();
        match run(self.plan, self.kind, &|index| only.contains(&index), Keep::Nothing).ended {
            Ended::Failed(failure) if failure.cause.is_like(self.cause) => Some(failure.step),
            Ended::Failed(_) | Ended::Well | Ended::DoesNotFit(_) => None,
        }
    }
}
