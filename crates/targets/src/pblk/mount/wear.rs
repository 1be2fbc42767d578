//! How often free lines were reset: heads say it of lines in use, but a free line has none.
//!
//! The newest checkpoint knows what it was then, and one more reset since if the line was in use. What was reset twice after it is
//! made good by the drive's wear index, as far as that tells: a line with a larger index than one in use was reset as often
//! at least. After a shutdown the checkpoint is exact, and the drive is not asked. A count is never too large by this, unless
//! the chunks had been worn unlike before the instance was made; too small it is by less than a step of the index as a rule (a
//! 255th of what the chunk bears). What a line without a good chunk had is kept for a mount that finds one: reports may be wrong.
//! Deliberately not here: lines in use (`survey`).

use super::super::checkpoint_header::{LineRow, RowState};
use super::super::state::Pblk;
use super::load::Loaded;
use super::survey::Survey;
use ocssd_ftl::{LineId, LineState, UnitIndex};

/// Takes over the resets of lines that are not in use.
pub fn restore_unused(pblk: &mut Pblk, survey: &Survey, loaded: Option<&Loaded>, clean: bool) {
    let rows = loaded.map_or(&[][..], |loaded| &loaded.header.lines);
    let floors = if clean { [0; 256] } else { floors(pblk, survey) };
    assert!(floors.is_sorted(), "a larger index means less wear");
    for line in (0..pblk.shape.lines()).map(LineId) {
        let known = rows.get(line.index()).map_or(0, resets_since);
        match pblk.lines.get(line).state {
            LineState::Free { .. } => {
                let resets = known.max(floors[usize::from(index_of(pblk, survey, line))]);
                pblk.lines.restore_free(line, false, resets);
            }
            LineState::Bad => pblk.lines.restore_bad(line, known),
            LineState::Open | LineState::Closed | LineState::Erasing => {}
        }
    }
}

/// Resets of a line that is not in use now, by what it was when the checkpoint was taken.
const fn resets_since(row: &LineRow) -> u32 {
    match row.state {
        RowState::Open | RowState::Closed => row.resets.saturating_add(1),
        RowState::Free | RowState::Bad => row.resets,
    }
}

/// The drive's wear index of a line: that of its most worn good chunk, since some may have missed a reset.
fn index_of(pblk: &Pblk, survey: &Survey, line: LineId) -> u8 {
    let good = (0..pblk.shape.units()).map(UnitIndex).filter(|&unit| !pblk.lines.is_bad(line, unit));
    good.map(|unit| survey.chunk(line, unit).wear_index).max().unwrap_or(0)
}

/// For each wear index, the most resets of a line in use whose index is smaller.
fn floors(pblk: &Pblk, survey: &Survey) -> [u32; 256] {
    let mut most = [0; 256];
    for (line, entry) in pblk.lines.iter() {
        if matches!(entry.state, LineState::Open | LineState::Closed) {
            let at = &mut most[usize::from(index_of(pblk, survey, line))];
            *at = entry.resets.max(*at);
        }
    }
    let mut floors = [0; 256];
    for index in 1..floors.len() {
        floors[index] = most[index - 1].max(floors[index - 1]);
    }
    floors
}
