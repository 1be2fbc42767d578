//! The first heads of a new instance: from then on the media say that there is one, and how large it is.
//!
//! Without them a power cut before the first barrier would leave nothing, and the next mount would make an instance anew, of
//! another size if chunks died meanwhile or the options are others. pblk wrote the metadata of its first line at creation,
//! too. There are two, on two units, of which either may die, and in two lines that are written one after the other: what a power
//! cut tears of the first takes no more than its own head along. Deliberately not here: what is written to the lines next; they go
//! on like those a power cut left open.

use super::super::flush::HEADS_MIN;
use super::super::state::Pblk;
use super::blocking::Batches;
use super::survey::{FoundChunk, FoundLine, Survey};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{Head, LineId, LineSequence, Stream, UnitIndex};
use ocssd_lightnvm::{ChunkState, Ppa};
use std::collections::BTreeSet;

/// Lines that are tried for the second head (chosen: where chunks fail that often, more would be no better).
const LINES_AGAIN: u32 = 8;

/// Units that a head of the instance lies on.
type Named = BTreeSet<UnitIndex>;

/// Writes the heads, durably, and tells `survey` of them. The line of the first; none if no chunk takes one: then nothing else
/// would be taken either.
pub fn create(
    pblk: &mut Pblk,
    batches: &mut Batches<'_>,
    survey: &mut Survey,
) -> Result<Option<LineId>, MountError> {
    assert!(survey.instance.is_none(), "an instance is made over one that is there");
    survey.blocks = pblk.l2p.sectors();
    let LineSequence(first) = pblk.lines.next_sequence();
    // An open chunk cannot be reset.
    let fits = |chunk: &FoundChunk| chunk.state != ChunkState::Open;
    let (mut named, mut headed, mut tries) = (Named::new(), Vec::new(), 0);
    for line in lines(pblk, survey) {
        if headed.len() == usize_of(HEADS_MIN) || tries == LINES_AGAIN {
            break;
        }
        let sequence = LineSequence(first + u64::try_from(headed.len()).expect("an index"));
        let found = FoundLine { sequence, stream: Stream(0), opened_at: pblk.sequence, resets: 0 };
        if write_head(pblk, batches, survey, (line, found), fits, &mut named)? {
            headed.push(line);
        }
        tries += u32::from(!headed.is_empty());
    }
    Ok(headed.first().copied())
}

/// Where fewer than two units have a head, because the power went in the midst of the above or one died since, writes another
/// to the line that is being written. If none is, the line that is opened next will have one.
pub fn complete(pblk: &mut Pblk, batches: &mut Batches<'_>, survey: &mut Survey) -> Result<(), MountError> {
    let with_heads = survey.iter().filter(|(_, _, chunk)| chunk.line.is_some());
    let mut named: Named = with_heads.map(|(_, unit, _)| unit).collect();
    if named.len() >= usize_of(HEADS_MIN.min(pblk.shape.units())) {
        return Ok(());
    }
    let open = survey.iter().find_map(|(line, _, chunk)| {
        let found = survey.lines[line.index()]?;
        let is_written = chunk.line == Some(found.sequence) && chunk.state == ChunkState::Open;
        is_written.then_some((line, found))
    });
    if let Some(open) = open {
        let fits = |chunk: &FoundChunk| chunk.state == ChunkState::Free;
        write_head(pblk, batches, survey, open, fits, &mut named)?;
    }
    Ok(())
}

/// Writes a head of a line to one of its chunks that fit, of a unit without one if there is any, and makes it durable. False if
/// none takes it.
fn write_head(
    pblk: &mut Pblk,
    batches: &mut Batches<'_>,
    survey: &mut Survey,
    (line, found): (LineId, FoundLine),
    fits: impl Fn(&FoundChunk) -> bool,
    named: &mut Named,
) -> Result<bool, MountError> {
    let unit_sectors = pblk.capacity.layout.unit;
    let FoundLine { sequence, stream, opened_at, resets } = found;
    let head = Head { instance: pblk.instance, stream, line: sequence, blocks: survey.blocks, resets };
    let mut units = pblk.stripe.clone();
    units.sort_by_key(|unit| named.contains(unit));
    for unit in units {
        if pblk.lines.is_bad(line, unit) || !fits(survey.chunk(line, unit)) {
            continue;
        }
        let chunk = pblk.shape.chunk(line, unit);
        let is_free = survey.chunk(line, unit).state == ChunkState::Free || batches.reset(chunk)?;
        let is_written = is_free && batches.write_head(Ppa::new(chunk, 0), unit_sectors, &head, opened_at)?;
        // What failed may be open or offline now, and is dealt with like any other chunk that was found so.
        let now = batches.device.chunk(chunk);
        survey.look_again(line, unit, &now);
        if now.state == ChunkState::Offline {
            pblk.lines.mark_bad(line, unit);
        }
        if is_written {
            batches.flush()?;
            survey.named(line, unit, found);
            named.insert(unit);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lines the heads may go to: those that are reset before those of which a chunk must be reset.
fn lines(pblk: &Pblk, survey: &Survey) -> Vec<LineId> {
    let used = |line: LineId| {
        let good = (0..pblk.shape.units()).map(UnitIndex).filter(|&unit| !pblk.lines.is_bad(line, unit));
        good.filter(|&unit| survey.chunk(line, unit).state != ChunkState::Free).count()
    };
    let mut lines: Vec<LineId> = (0..pblk.shape.lines()).map(LineId).collect();
    lines.sort_by_cached_key(|&line| used(line));
    assert_eq!(lines.len(), usize_of(pblk.shape.lines()), "every line is looked at");
    lines
}
