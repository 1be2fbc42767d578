//! Worlds in which media do what they do at power cuts, or when a part of them dies: each kind in worlds of its own.
//!
//! Drawn apart from `rare`, beside whatever else a world has. Deliberately not here: what each fault does
//! (`ocssd_flash::config::FaultConfig`), and what it excuses (`contract`): a reset that stays half done excuses nothing, for
//! nobody needed what was there; what shares cells with a torn unit, or lies on a dead one, is lost, and no more than that.

use super::Draw;
use super::target::has_two_logs;
use crate::plan::{Step, WorldPlan};
use crate::watched::BILLION;
use ocssd_flash::Shelf;

/// Worlds of a hundred, of those that may lose content, in which something of this happens.
const PERCENT: u64 = 20;
/// Tiny worlds of a hundred in which resets stay half done: the one kind that loses nothing.
const PERCENT_TINY: u64 = 10;

/// Tiny worlds of a hundred, of targets with two logs, in which torn units take the one before them along.
const PERCENT_PAIRS: u64 = 30;

/// Worlds of a hundred, of those that may lose content, in which writes go astray.
const PERCENT_STRAY: u64 = 12;

/// Worlds of a hundred, of those that may lose content, in which the drive lies without power for months.
const PERCENT_SHELF: u64 = 10;

/// Makes one of such worlds of a tiny plan, now and then.
pub(super) fn draw_tiny(draw: &mut Draw, plan: &mut WorldPlan) {
    if draw.percent(PERCENT_TINY) {
        half_resets(draw, plan);
    }
}

/// Makes a tiny plan one in which copies of the log can be lost together.
pub(super) fn draw_pairs(draw: &mut Draw, plan: &mut WorldPlan, target: &str) {
    if has_two_logs(target) && draw.percent(PERCENT_PAIRS) {
        lost_pairs(draw, plan);
    }
}

/// Makes one of such worlds of another plan, now and then.
pub(super) fn draw_any(draw: &mut Draw, plan: &mut WorldPlan, target: &str) {
    const KINDS: [fn(&mut Draw, &mut WorldPlan); 4] =
        [half_resets, lost_pairs, dead_units, misdirected_reads];
    if draw.percent(PERCENT) {
        let kinds = if all_look(target, plan) { &KINDS[..] } else { &KINDS[..3] };
        draw.one_of(kinds)(draw, plan);
    }
}

/// True if all targets look whose a sector is that they read. Linux's pblk moves it without; ox-block takes it for lost.
fn all_look(target: &str, plan: &WorldPlan) -> bool {
    let looks = |kind: &str| !matches!(kind, "linux-pblk" | "ox-block");
    looks(target) && plan.beside.iter().all(|beside| looks(&beside.kind))
}

/// Now and then writes do not reach their places, and the drive says that they did.
pub(super) fn draw_strays(draw: &mut Draw, plan: &mut WorldPlan, target: &str) {
    if !draw.percent(PERCENT_STRAY) || !all_look(target, plan) {
        return;
    }
    for _ in 0..draw.between(1, 40) {
        let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
        let at = usize::try_from(draw.between(0, last)).expect("an index");
        let before = draw.one_of(&[0, 0, 1, 2, u32::MAX]);
        // An audit at the end stays.
        if at + 1 < plan.steps.len() {
            plan.steps[at] = Step::Stray { place: draw.raw(), before };
        }
    }
}

/// Now and then the drive lies on a shelf, once or twice. Whoever loses both copies of what it must know says so, and that is its
/// end.
pub(super) fn draw_shelf(draw: &mut Draw, plan: &mut WorldPlan) {
    if !draw.percent(PERCENT_SHELF) {
        return;
    }
    for _ in 0..draw.one_of(&[1, 1, 2]) {
        let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
        let at = usize::try_from(draw.between(last / 4, last)).expect("an index");
        let lost = draw.one_of(&[0, BILLION / 10_000, BILLION / 1_000, BILLION / 100]);
        let weak = draw.one_of(&[0, BILLION / 100, BILLION / 4]);
        // An audit at the end stays.
        if at + 1 < plan.steps.len() {
            plan.steps[at] = Step::Shelf { shelf: Shelf { lost, weak }, seed: draw.raw() };
        }
    }
}

/// Erases that the power ends in the middle.
fn half_resets(draw: &mut Draw, plan: &mut WorldPlan) {
    plan.config.faults.half_reset = draw.one_of(&[BILLION / 4, BILLION]);
}

/// Torn units that take the one before them along.
fn lost_pairs(draw: &mut Draw, plan: &mut WorldPlan) {
    plan.config.faults.paired_loss = draw.one_of(&[BILLION / 4, BILLION]);
}

/// A unit dies, or two, or a group; where there is one unit only, so does the drive, and there is nothing left to look at.
fn dead_units(draw: &mut Draw, plan: &mut WorldPlan) {
    if plan.config.geometry.pu_count() < 3 {
        return half_resets(draw, plan);
    }
    for _ in 0..draw.one_of(&[1, 1, 2]) {
        let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
        let at = usize::try_from(draw.between(last / 4, last)).expect("an index");
        plan.steps[at] = Step::Death { unit: draw.raw(), group: draw.percent(20) };
    }
}

/// Reads that return another sector, of targets that look whose sector it is that they got.
fn misdirected_reads(draw: &mut Draw, plan: &mut WorldPlan) {
    plan.config.faults.misdirected_read = draw.one_of(&[BILLION / 1_000, BILLION / 100]);
}
