//! Worlds with faults that are rare in the field: each kind in worlds of its own, so that what it does is not hidden by others.
//!
//! Most are drives with any shape; some are tiny ones, where the power goes all the time. Deliberately not here: what each
//! fault does (`ocssd_flash::config::FaultConfig`).

use super::Draw;
use crate::plan::WorldPlan;
use ocssd_flash::config::CacheConfig;

/// Tiny worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 6;
/// Other worlds of a hundred in which something rare happens.
const PERCENT_ANY: u64 = 30;

/// Parts per billion of a thousandth.
const THOUSANDTH: u32 = 1_000_000;

/// Makes one of such worlds of a tiny plan, now and then.
pub(super) fn draw_tiny(draw: &mut Draw, plan: &mut WorldPlan) {
    if draw.percent(PERCENT) {
        kinds(draw, plan);
    }
}

/// Makes one of such worlds of another plan, now and then.
pub(super) fn draw_any(draw: &mut Draw, plan: &mut WorldPlan) {
    if draw.percent(PERCENT_ANY) {
        kinds(draw, plan);
    }
}

/// A kind or two.
fn kinds(draw: &mut Draw, plan: &mut WorldPlan) {
    const KINDS: [fn(&mut Draw, &mut WorldPlan); 2] = [failed_commands, transient_reads];
    let count = draw.one_of(&[1, 1, 1, 2]);
    for _ in 0..count {
        draw.one_of(&KINDS)(draw, plan);
    }
}

/// Commands fail as such. Reads seldom: a target asks again, but not for ever.
fn failed_commands(draw: &mut Draw, plan: &mut WorldPlan) {
    let faults = &mut plan.config.faults;
    faults.failed_flush = draw.one_of(&[0, 50 * THOUSANDTH, 400 * THOUSANDTH]);
    faults.failed_read = draw.one_of(&[0, THOUSANDTH / 2]);
    if faults.failed_flush > 0 && draw.percent(60) {
        // What a flush would have made durable is in a cache that the power takes away.
        plan.config.cache = CacheConfig { sectors: draw.one_of(&[64, 1024]), power_loss_protection: false };
        plan.mix.flushes = plan.mix.flushes.max(draw.between(5, 20));
    }
}

/// Sectors cannot be read in one try.
fn transient_reads(draw: &mut Draw, plan: &mut WorldPlan) {
    plan.config.faults.transient_read = draw.one_of(&[THOUSANDTH, 10 * THOUSANDTH, 10 * THOUSANDTH]);
    // Garbage collection reads most when much is overwritten here and there.
    let mix = &mut plan.mix;
    (mix.writes, mix.span_percent, mix.longest) = (mix.writes.max(80), 100, mix.longest.max(16));
    (mix.discards, mix.hot_percent) = (mix.discards.min(2), mix.hot_percent.min(30));
}
