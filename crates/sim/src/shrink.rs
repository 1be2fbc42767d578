//! Makes a failing run short: leaves out steps, rates of faults and power cuts during mounts as long as it fails in the
//! same way (Zeller and Hildebrandt, 2002).
//!
//! Deliberately not here: a smaller drive; a seed is its drive.

use crate::failure::{Cause, Failure};
use crate::journal::Keep;
use crate::part::PlanPart;
use crate::plan::WorldPlan;
use crate::run::{Ended, run};
use ocssd_targets::registry::Kind;
use std::collections::BTreeSet;

/// What is left of a plan that fails.
#[derive(Clone, Debug)]
pub struct Short {
    /// The plan without some of its parts. It has all steps: their numbers stay.
    pub plan: WorldPlan,
    /// The parts it is without, in their order.
    pub without: Vec<PlanPart>,
    /// The steps that are needed, in order.
    pub steps: Vec<usize>,
}

/// Steps and parts of a plan that still fail like `failure`. At most `budget` runs are made.
#[must_use]
pub fn shrink(plan: &WorldPlan, kind: &Kind, failure: &Failure, budget: u32) -> Short {
    let mut shrinking =
        Shrinking { plan: plan.clone(), without: Vec::new(), kind, cause: &failure.cause, left: budget };
    let mut steps: Vec<usize> = (0..plan.steps.len()).collect();
    shrinking.cut_behind(&mut steps, failure.step);
    shrinking.leave_out_parts(&mut steps);
    let mut piece = steps.len().div_ceil(2).max(1);
    while shrinking.left > 0 {
        let mut any = shrinking.pass(&mut steps, piece);
        if piece == 1 {
            // Fewer steps may need fewer parts, and the other way round.
            any |= shrinking.leave_out_parts(&mut steps);
        }
        if piece == 1 && !any {
            break;
        }
        piece = piece.div_ceil(2);
    }
    shrinking.without.sort_unstable();
    Short { plan: shrinking.plan, without: shrinking.without, steps }
}

struct Shrinking<'a> {
    plan: WorldPlan,
    without: Vec<PlanPart>,
    kind: &'a Kind,
    cause: &'a Cause,
    left: u32,
}

impl Shrinking<'_> {
    /// Leaves out every part without which it still fails. True if there was one.
    fn leave_out_parts(&mut self, steps: &mut Vec<usize>) -> bool {
        let before = self.without.len();
        for part in PlanPart::ALL {
            let Some(less) = self.plan.without(part).filter(|_| self.left > 0) else { continue };
            let whole = std::mem::replace(&mut self.plan, less);
            match self.fails(steps) {
                Some(last) => {
                    steps.retain(|&index| index <= last);
                    self.without.push(part);
                }
                None => self.plan = whole,
            }
        }
        self.without.len() > before
    }

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
        match run(&self.plan, self.kind, &|index| only.contains(&index), Keep::Nothing).ended {
            Ended::Failed(failure) if failure.cause.is_like(self.cause) => Some(failure.step),
            Ended::Failed(_) | Ended::Well | Ended::Stopped | Ended::DoesNotFit(_) => None,
        }
    }
}
