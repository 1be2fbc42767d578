//! Worlds in which bits flip again and again on a tiny drive whose target writes its own records often and mounts often.
//!
//! In others a flip hardly ever meets what a mount reads: a checkpoint is a few sectors.
//! Deliberately not here: where a bit flips (`run`).

use super::{Draw, steps};
use crate::plan::WorldPlan;

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 4;

/// Makes one of such worlds of a plan, now and then.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    if !draw.percent(PERCENT) {
        return;
    }
    let is_faithful = plan.options.iter().any(|(name, value)| name == "mode" && value == "faithful");
    let sectors = draw.one_of(&[8, 40]);
    if !is_faithful {
        plan.options.retain(|(name, _)| name != "checkpoint_interval_bytes");
        let bytes = sectors * plan.config.geometry.sector_bytes;
        plan.options.push(("checkpoint_interval_bytes".to_owned(), bytes.to_string()));
    }
    plan.steps = steps::draw_rotting(draw);
}
