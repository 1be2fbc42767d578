//! Worlds in which the drive does not carry out writes, resets and flushes now and then: targets send them again, and nobody
//! hears of it.
//!
//! Of every kind of target, beside whatever else a world has. Where a contract knows what a drive that does not work excuses,
//! it now and then lasts. Deliberately not here: what each status means (`ocssd_flash::FailedOp`).

use super::{Asked, Draw, Size};
use crate::plan::{Step, WorldPlan};
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

/// Makes one of such worlds of a plan, now and then; but of none on a disk, which has failures of its own.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan, size: Size, asked: &Asked<'_>) {
    let is_on_blocks = matches!(asked.target, "kv-block" | "table-block");
    if is_on_blocks {
        // A block target answers a failed flush to whoever waited for it, and models of other interfaces know of no excuse.
        plan.config.faults.failed_flush = 0;
    }
    let percent = if size == Size::Any { PERCENT_ANY } else { PERCENT_TINY };
    if !plan.disk && draw.percent(percent) {
        make(draw, plan, asked.may_lose_content);
    }
    if is_on_blocks {
        keep_one_failed_flush(plan);
    }
}

fn make(draw: &mut Draw, plan: &mut WorldPlan, may_last: bool) {
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

/// A block target flushes rarely: several steps from which on flushes fail would meet one flush, fail it in every try, and end
/// changes. One is left.
fn keep_one_failed_flush(plan: &mut WorldPlan) {
    let mut has_one = false;
    plan.steps.retain(|step| {
        let is_flush = matches!(step, Step::Fault { kind: FaultKind::Failed(FailedOp::Flush, _), .. });
        !is_flush || !std::mem::replace(&mut has_one, true)
    });
}

/// At some step, commands of some kind begin to fail.
fn schedule(draw: &mut Draw, plan: &mut WorldPlan, times: u32) {
    let op = draw.one_of(&[FailedOp::Write, FailedOp::Write, FailedOp::Reset, FailedOp::Flush]);
    let kind = FaultKind::Failed(op, draw.one_of(op.statuses()));
    let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
    let at = usize::try_from(draw.between(0, last)).expect("an index");
    // An audit at the end stays.
    if at + 1 < plan.steps.len() {
        plan.steps[at] = Step::Fault { kind, chunk: draw.raw(), times };
    }
}
