//! Worlds in which chunk reports are behind after a power cycle.
//!
//! They take nothing away, so that they are drawn by whatever interface a target is spoken to. Deliberately not here: which chunks
//! show what (`stale_reports`), and `linux-pblk`, which believes reports at mount as Linux does.

use super::Draw;
use crate::plan::{Step, WorldPlan};
use crate::watched::BILLION;

/// Worlds of a hundred, of any size, in which reports are behind.
const PERCENT: u64 = 12;

/// Makes one of such worlds of a plan, now and then. A drive on a disk begins with what the disk has.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan, target: &str) {
    let believes = |kind: &str| kind == "linux-pblk";
    let is_believed = believes(target) || plan.beside.as_ref().is_some_and(|beside| believes(&beside.kind));
    if plan.disk || is_believed || !draw.percent(PERCENT) {
        return;
    }
    for _ in 0..draw.between(1, 40) {
        let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
        let at = usize::try_from(draw.between(0, last)).expect("an index");
        let share = draw.one_of(&[BILLION / 10, BILLION / 2, BILLION]);
        // An audit at the end stays, and what brings the power back.
        let is_free = matches!(plan.steps[at], Step::Request { .. } | Step::Quiesce | Step::Idle { .. });
        if is_free {
            plan.steps[at] = Step::StaleReports { share, seed: draw.raw() };
        }
    }
}
