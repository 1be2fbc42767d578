//! Knobs: constants of scale of a target, drawn small, so that small drives meet what is beyond them.
//!
//! Otherwise no drive that is drawn has a second shard of the map, fills the table of discards, or meets a queue without room.
//! Deliberately not here: what each bounds (`ocssd_targets::pblk::Knobs`).

use super::Draw;
use crate::plan::WorldPlan;

/// Worlds of a hundred whose target has knobs turned.
const PERCENT: u64 = 40;

/// Each knob, and what it may be.
const CHOICES: [(&str, &[u32]); 11] = [
    ("map_shard_blocks", &[32, 64, 256]),
    ("checkpoint_piece_bytes", &[256, 512, 2048]),
    ("discard_slice_blocks", &[1, 3, 16]),
    ("discard_records_max", &[1, 2, 5, 20]),
    ("requests_max", &[1, 2, 5, 16]),
    ("commands_max", &[4, 5, 9, 40]),
    ("metadata_buffers", &[1, 2, 3]),
    ("gc_reads_max", &[1, 2]),
    ("refresh_max", &[1, 4]),
    ("draining_lines_max", &[2, 3]),
    ("mount_batch", &[1, 2, 7]),
];

/// Turns some knobs of a plan, now and then.
pub(super) fn draw(draw: &mut Draw, plan: &mut WorldPlan) {
    if !draw.percent(PERCENT) {
        return;
    }
    for (name, choices) in CHOICES {
        let value = draw.one_of(choices);
        if draw.percent(30) {
            plan.options.push((name.to_owned(), value.to_string()));
        }
    }
}
