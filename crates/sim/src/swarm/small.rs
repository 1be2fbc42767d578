//! Worlds with blocks smaller than a sector, above a target whose discards are durable.
//!
//! They need real bytes, which cost time, so there are few.
//! Deliberately not here: what is promised of a part of a sector (`crate::block`).

use super::Draw;
use crate::plan::WorldPlan;
use ocssd_lightnvm::Payload;

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 8;

/// Makes one of such worlds of a plan, now and then.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    let is_faithful = plan.options.iter().any(|(name, value)| name == "mode" && value == "faithful");
    let is_long = plan.options.iter().any(|(name, _)| name == "wear_spread");
    if !draw.percent(PERCENT) || is_long || is_faithful {
        return;
    }
    plan.config.payload = Payload::Bytes;
    plan.options.push(("block_bytes".to_owned(), draw.one_of(&[512, 512, 2048]).to_string()));
}
