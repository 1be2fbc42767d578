//! Worlds in which media lose sectors all the time, on a tiny drive whose target moves what is left.
//!
//! In others a sector is hardly ever lost before garbage collection comes to it: small drives lose few, large ones collect
//! little. Power cuts are few, for after one an older version may be there. Deliberately not here: what a loss excuses
//! (`contract`).

use super::{Draw, steps};
use crate::plan::WorldPlan;

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 6;

/// Makes one of such worlds of a plan, now and then.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    if !draw.percent(PERCENT) {
        return;
    }
    let thousandth = 1_000_000;
    let faults = &mut plan.config.faults;
    faults.unrecovered_read = draw.one_of(&[3, 10, 40]) * thousandth;
    faults.unrecovered_read_worn = faults.unrecovered_read;
    let mix = &mut plan.mix;
    (mix.writes, mix.reads) = (mix.writes.max(60), mix.reads.max(20));
    (mix.discards, mix.flushes) = (mix.discards.min(4), mix.flushes.min(8));
    mix.longest = mix.longest.max(16);
    plan.steps = steps::draw_losing(draw);
}
