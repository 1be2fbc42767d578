//! Worlds in which the drive does not carry out writes, resets and flushes now and then: targets send them again, and nobody
//! hears of it.
//!
//! Of every kind of target, beside whatever else a world has. Where a contract knows what a drive that does not work excuses,
//! it now and then lasts. Deliberately not here: what each status means (`ocssd_flash::FailedOp`).

use super::Draw;
use crate::plan::{Plan, Step};
use ocssd_flash::FailedOp;
use ocssd_flash::FaultKind;

/// Tiny worlds of a hundred that are of this kind.
const PERCENT_TINY: u64 = 5;
/// Other worlds of a hundred that are.
const PERCENT_ANY: u64 = 20;
/// Of these, worlds of a hundred in which a drive stops working, if the contract knows what that excuses.
const PERCENT_LASTING: u64 = 15;

/// Parts per billion of a thousandth.
const THOUSANDTH: u32 = 1_000_000;

/// Commands in a row that a drive fails for good: more than all tries of a few commands (chosen).
const LASTING_TIMES: u32 = 60;

/// Makes one of such worlds of a tiny plan, now and then.
pub(super) fn draw_tiny(draw: &mut Draw, plan: &mut Plan, may_last: bool) {
    if draw.percent(PERCENT_TINY) {
        make(draw, plan, may_last);
    }
}

/// Makes one of such worlds of another plan, now and then.
pub(super) fn draw_any(draw: &mut Draw, plan: &mut Plan, may_last: bool) {
    if draw.percent(PERCENT_ANY) {
        make(draw, plan, may_last);
    }
}

fn make(draw: &mut Draw, plan: &mut Plan, may_last: bool) {
    let faults = &mut plan.config.faults;
    // Six in a row are so rare at these rates that contracts need not know of them.
    faults.failed_write = draw.one_of(&[0, 2 * THOUSANDTH, 10 * THOUSANDTH, 30 * THOUSANDTH]);
    faults.failed_reset = draw.one_of(&[0, 10 * THOUSANDTH, 30 * THOUSANDTH]);
    faults.failed_flush = faults.failed_flush.max(draw.one_of(&[0, 10 * THOUSANDTH, 30 * THOUSANDTH]));
    for _ in 0..draw.between(1, 12) {
        let times = draw.between(1, 4);
        schedule(draw, plan, times);
    }
    if may_last && draw.percent(PERCENT_LASTING) {
        schedule(draw, plan, LASTING_TIMES);
    }
}

/// At some step, commands of some kind begin to fail.
fn schedule(draw: &mut Draw, plan: &mut Plan, times: u32) {
    let op = draw.one_of(&[FailedOp::Write, FailedOp::Write, FailedOp::Reset, FailedOp::Flush]);
    let kind = FaultKind::Failed(op, draw.one_of(op.statuses()));
    let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
    let at = usize::try_from(draw.between(0, last)).expect("an index");
    // An audit at the end stays.
    if at + 1 < plan.steps.len() {
        plan.steps[at] = Step::Fault { kind, chunk: draw.raw(), times };
    }
}
