//! Worlds in which the media lose pages of a key-value target's index, on a tiny drive, with few power cuts.
//!
//! Nothing else is lost in them. Deliberately not here: what a loss excuses (`crate::kv`).

use super::{Draw, steps};
use crate::plan::{Step, WorldPlan};

/// Worlds of a hundred that are of this kind.
pub(super) const PERCENT: u64 = 8;

/// Makes one of such worlds of a plan.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    assert!(draw.percent(PERCENT), "a world that was drawn to be of this kind is not");
    let held = ["index_cache_bytes", "index_page_bytes", "index_percent"];
    plan.options.retain(|(name, _)| !held.contains(&name.as_str()));
    let mut set = |name: &str, value: u32| plan.options.push((name.to_owned(), value.to_string()));
    set("index_cache_bytes", draw.one_of(&[0, 0, 500, 1000]));
    set("index_page_bytes", draw.one_of(&[266, 300, 500]));
    // All keys fit, whatever the capacity.
    set("index_percent", 20);
    plan.steps = steps::draw_losing(draw);
    for _ in 0..draw.between(1, 3) {
        let last = u32::try_from(plan.steps.len() - 1).expect("fewer steps than 2^32");
        let at = usize::try_from(draw.between(last / 4, last)).expect("an index");
        // An audit at the end stays.
        if at + 1 < plan.steps.len() {
            plan.steps[at] = Step::LosePage { place: draw.raw() };
        }
    }
}
