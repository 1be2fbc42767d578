//! The first head of a new instance: from then on the media say that there is one, and how large it is.
//!
//! Without it a power cut before the first barrier would leave nothing, and the next mount would make an instance anew, of
//! another size if chunks died meanwhile or the options are others. pblk wrote the metadata of its first line at creation,
//! too. Deliberately not here: what is written to the line next; it goes on like one a power cut left open.

use super::super::state::Pblk;
use super::blocking::Batches;
use super::survey::{FoundLine, Survey};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{Head, LineId, Stream, UnitIndex};
use ocssd_lightnvm::{ChunkState, Ppa};

/// Writes the head, durably, and tells `survey` of it. None if no chunk takes it: then nothing else would be taken either.
pub fn create(
    pblk: &mut Pblk,
    batches: &mut Batches<'_>,
    survey: &mut Survey,
) -> Result<Option<LineId>, MountError> {
    let unit_sectors = pblk.capacity.layout.unit;
    let sequence = pblk.lines.next_sequence();
    assert!(survey.instance.is_none(), "an instance is made over one that is there");
    let (instance, blocks) = (pblk.instance, pblk.l2p.sectors());
    let head = Head { instance, stream: Stream(0), line: sequence, blocks, resets: 0 };
    for (line, unit) in places(pblk, survey) {
        let chunk = pblk.shape.chunk(line, unit);
        let is_free = survey.chunk(line, unit).state == ChunkState::Free || batches.reset(chunk)?;
        let is_written =
            is_free && batches.write_head(Ppa::new(chunk, 0), unit_sectors, &head, pblk.sequence)?;
        // What failed may be open or offline now, and is dealt with like any other chunk that was found so.
        let now = batches.device.chunk(chunk);
        survey.look_again(line, unit, &now);
        if now.state == ChunkState::Offline {
            pblk.lines.mark_bad(line, unit);
        }
        if !is_written {
            continue;
        }
        batches.flush()?;
        survey.created(
            line,
            unit,
            FoundLine { sequence, stream: Stream(0), opened_at: pblk.sequence, resets: 0 },
        );
        return Ok(Some(line));
    }
    Ok(None)
}

/// Where the head may go: lines that are reset before those of which a chunk must be reset.
fn places(pblk: &Pblk, survey: &Survey) -> Vec<(LineId, UnitIndex)> {
    let is_good = |line: LineId, unit: UnitIndex| !pblk.lines.is_bad(line, unit);
    let used = |line: LineId| {
        let units = (0..pblk.shape.units()).map(UnitIndex).filter(|&unit| is_good(line, unit));
        units.filter(|&unit| survey.chunk(line, unit).state != ChunkState::Free).count()
    };
    let mut lines: Vec<LineId> = (0..pblk.shape.lines()).map(LineId).collect();
    lines.sort_by_cached_key(|&line| used(line));
    assert_eq!(lines.len(), usize_of(pblk.shape.lines()), "every line is looked at");
    let of_line = |line: LineId| pblk.stripe.iter().copied().map(move |unit| (line, unit));
    // An open chunk cannot be reset.
    let fits = |&(line, unit): &(LineId, UnitIndex)| {
        is_good(line, unit) && survey.chunk(line, unit).state != ChunkState::Open
    };
    lines.into_iter().flat_map(of_line).filter(fits).collect()
}
