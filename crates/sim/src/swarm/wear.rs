//! Worlds in which wear differs: little is written all the time and the rest never again, for long, with few power cuts.
//!
//! In others hardly any chunk is reset more than a dozen times. Deliberately not here: what is promised of wear (`crate::wear`),
//! and which zones and keys are left alone (`zoned`, `kv`).

use super::{Draw, steps};
use crate::plan::WorldPlan;

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 6;

/// True of targets whose chunks wear one by one, and which level that.
pub(super) fn is_by_chunk(target: &str) -> bool {
    matches!(target, "zns" | "kv")
}

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

/// Makes one of such worlds of a plan for a target whose chunks wear one by one, now and then.
pub(super) fn draw_by_chunk(draw: &mut Draw, target: &str, plan: &mut WorldPlan) {
    assert!(draw.percent(PERCENT), "a world that was drawn to be of this kind is not");
    plan.options.retain(|(name, _)| name != "wear_spread");
    plan.options.push(("wear_spread".to_owned(), draw.one_of(&[1, 1, 2, 4]).to_string()));
    if target == "zns" {
        // Zones so small that a tiny drive has a few that are written all the time, and many that are not.
        let others = ["width", "zone_chunks", "area_units"];
        plan.options.retain(|(name, _)| !others.contains(&name.as_str()));
        plan.options.push(("width".to_owned(), "1".to_owned()));
        plan.options.push(("zone_chunks".to_owned(), draw.one_of(&[1, 1, 2]).to_string()));
    }
    // A step of the wear index is then a reset, which is what a power cut may hide.
    plan.config.wear.endurance = plan.config.wear.endurance.min(ENDURANCE);
    plan.mix.cold_after = 1;
    plan.steps = steps::draw_long(draw);
}

/// Resets a chunk bears: more than any has in a run of so many steps.
const ENDURANCE: u32 = 250;
