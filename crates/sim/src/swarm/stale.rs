//! Worlds in which chunk reports are not true after a power cycle.
//!
//! They take nothing away, so that they are drawn by whatever interface a target is spoken to. Deliberately not here: which chunks
//! show what (`stale_reports`).

use super::Draw;
use crate::plan::{Step, WorldPlan};
use crate::stale_reports::Untrue;
use crate::watched::BILLION;

/// Worlds of a hundred, of any size, in which reports are not true in each way (chosen: as many with content hidden as without).
const PERCENT: [(Untrue, u64); 4] =
    [(Untrue::Stale, 12), (Untrue::Low, 6), (Untrue::Garbled, 6), (Untrue::Hidden, 6)];

/// Makes one of such worlds of a plan, now and then. A drive on a disk begins with what the disk has.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    for (how, percent) in PERCENT {
        if !plan.disk && draw.percent(percent) {
            draw_one(draw, plan, how);
        }
    }
}

fn draw_one(draw: &mut Draw, plan: &mut WorldPlan, how: Untrue) {
    for _ in 0..draw.between(1, 40) {
        let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
        let at = usize::try_from(draw.between(0, last)).expect("an index");
        let share = draw.one_of(&[BILLION / 10, BILLION / 2, BILLION]);
        // An audit at the end stays, and what brings the power back.
        let is_free = matches!(plan.steps[at], Step::Request { .. } | Step::Quiesce | Step::Idle { .. });
        if is_free {
            plan.steps[at] = Step::StaleReports { how, share, seed: draw.raw() };
        }
    }
}
