//! Worlds whose drive lies in an image on a disk that fills up, fails, and forgets what it did not sync.
//!
//! Otherwise they are tiny, and media never fail. Deliberately not here: what a crash leaves (`crate::disk`).

use super::{Draw, steps};
use crate::plan::WorldPlan;
use ocssd_drive::image::FileFaults;

/// Worlds of a hundred that are of this kind (chosen: an image is opened a hundred times in one, which takes as long as all
/// else of it).
pub(super) const PERCENT: u64 = 5;

const MILLION: u32 = 1_000_000;

/// True of targets that are mounted again and again.
pub(super) fn fits(target: &str) -> bool {
    matches!(target, "pblk" | "linux-pblk" | "ox-block")
}

/// Makes one of such worlds of a plan.
pub(super) fn make(draw: &mut Draw, plan: &mut WorldPlan) {
    plan.disk = true;
    plan.steps = steps::draw_on_disk(draw);
}

/// What goes wrong next; now and then nothing any more.
pub(super) fn faults(draw: &mut Draw) -> FileFaults {
    let none = FileFaults::default();
    let rate = draw.one_of(&[MILLION / 100, MILLION / 10, MILLION]);
    match draw.between(0, 9) {
        0..=3 => FileFaults { pages_max: Some(u64::from(draw.between(0, 60))), ..none },
        4 | 5 => FileFaults { sync_error: rate, ..none },
        6 => FileFaults { write_error: rate.min(MILLION / 10), ..none },
        7 => FileFaults { read_error: rate.min(MILLION / 10), ..none },
        8 => FileFaults { is_read_only: true, ..none },
        _ => FileFaults { short: MILLION / 2, pages_max: Some(u64::from(draw.between(0, 200))), ..none },
    }
}
