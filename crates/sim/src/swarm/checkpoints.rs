//! Worlds in which a checkpoint is always near: checkpoints after every few sectors, several streams, writes that fail and go out
//! again, and blocks that are overwritten and discarded while their older versions wait in the buffer.
//!
//! What is superseded and written behind a checkpoint, and a checkpoint ahead of a discard, take all of that at once.
//! Deliberately not here: what a checkpoint is (`ocssd_targets::pblk`).

use super::{Draw, steps};
use crate::plan::WorldPlan;

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 30;

/// Makes one of such worlds of a plan, now and then.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    if !draw.percent(PERCENT) {
        return;
    }
    let thousandth = 1_000_000;
    let is_faithful = plan.options.iter().any(|(name, value)| name == "mode" && value == "faithful");
    let set = |options: &mut Vec<(String, String)>, name: &str, value: String| {
        options.retain(|(other, _)| other != name);
        options.push((name.to_owned(), value));
    };
    if !is_faithful {
        let bytes = draw.one_of(&[4, 8, 24]) * plan.config.geometry.sector_bytes;
        set(&mut plan.options, "checkpoint_interval_bytes", bytes.to_string());
        set(&mut plan.options, "classification", draw.one_of(&["user-gc", "sepbit", "sepbit"]).to_owned());
    }
    plan.config.faults.write_next_unit = draw.one_of(&[20, 150, 150]) * thousandth;
    plan.config.faults.early_close = draw.one_of(&[0, 0, 20]) * thousandth;
    let mix = &mut plan.mix;
    mix.writes = mix.writes.max(50);
    // What is durable soon, or what is discarded soon: each needs the other to be seldom.
    if draw.percent(25) {
        mix.discards = 0;
        (mix.flushes, mix.fua_percent) = (draw.between(0, 12), draw.one_of(&[20, 60]));
    } else {
        mix.discards = draw.between(10, 40);
        (mix.flushes, mix.fua_percent) = (draw.between(2, 8), draw.one_of(&[0, 30]));
    }
    (mix.span_percent, mix.hot_percent) = (draw.one_of(&[20, 60]), draw.one_of(&[50, 90]));
    (mix.longest, mix.depth) = (draw.one_of(&[2, 4, 16]), draw.one_of(&[4, 8]));
    plan.steps = steps::draw_cutting(draw);
}
