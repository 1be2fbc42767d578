//! Worlds in which wear differs: little is written all the time and the rest never again, for long, with few power cuts.
//!
//! In others hardly any chunk is reset more than a dozen times. Deliberately not here: what is promised of wear (`crate::wear`).

use super::{Draw, steps};
use crate::plan::WorldPlan;

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 6;

/// Makes one of such worlds of a plan, now and then.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    let is_faithful = plan.options.iter().any(|(name, value)| name == "mode" && value == "faithful");
    if !draw.percent(PERCENT) || is_faithful {
        return;
    }
    plan.options.push(("wear_spread".to_owned(), draw.one_of(&[4, 4, 5, 8]).to_string()));
    plan.config.wear.endurance = plan.config.wear.endurance.min(1_000);
    let mix = &mut plan.mix;
    (mix.cold_after, mix.span_percent) = (1, 100);
    (mix.writes, mix.longest) = (mix.writes.max(60), mix.longest.max(16));
    (mix.discards, mix.flushes) = (mix.discards.min(4), mix.flushes.min(8));
    plan.steps = steps::draw_long(draw);
}
