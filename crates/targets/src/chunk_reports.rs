//! Whether what the drive reports of chunks can be true, and agrees with what can be read of them.
//!
//! A target believes the chunk report (OCSSD 2.0, Get Log Page, Chunk Information) at mount: it looks for nothing in a chunk that
//! is FREE, or behind a write pointer. A controller that answers from an old or damaged copy of its table would so take content
//! away without a word. So a mount reads the sector behind each write pointer first, which costs the media nothing where the
//! report is true. Where something is there, or the report cannot be true, the drive is told to write to the chunk: it must look
//! at the chunk for that, refuses the write as out of order, and is asked for its report again. If that is no better the mount
//! is refused, and nothing was changed.
//!
//! What MW_CUNITS hides cannot be read. So an OPEN chunk of a drive with such a window is in doubt as it is: one write is sent to
//! where it is out of order and costs the media nothing, and the report is true then. Padding would find out, too, but costs
//! MW_CUNITS of every open chunk at every mount. A chunk that is shown as FREE or OFFLINE may be one of which all is hidden.
//! They are too many to write to each at every mount, and a drive keeps its table over power cycles (OCSSD 2.0, Get Log Page); but
//! if it was caught, because it says something else of a chunk once it has looked at it, each of them is written to. A report that
//! says more than is written is found by a mount's padding; where it pads no further than content needs, it asks for the last
//! sector that can be read, too. Deliberately not here: the writes themselves, for padding is the target's own.

use crate::mount_error::{MountError, look_at_reads};
use crate::read_again;
use ocssd_base::usize_of;
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, ChunkDescriptor, ChunkId, ChunkState, Command, Geometry, Op, PlaneMode,
    Ppa, Status, Tag, VECTOR_MAX,
};
use std::collections::BTreeSet;

/// Commands of a batch (chosen: as many as other reads of mounts).
const BATCH: usize = 64;

/// What of each chunk is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The sector behind its write pointer.
    Behind,
    /// That, and of an OPEN chunk the last that can be read before it.
    Open,
    /// That, and the last that can be read before it. An OPEN chunk with none before it is in doubt.
    Around,
}

/// A chunk whose report is in doubt, and where the drive is told to write so that it looks at the chunk. If the chunk turns out to
/// be written up to there that is padding as any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The chunk.
    pub chunk: ChunkId,
    /// The first sector of a unit that is written.
    pub sector: u32,
    /// What the drive says of it.
    pub report: ChunkDescriptor,
}

/// What a read gave of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// It is not written, or cannot be read yet.
    Nothing,
    Content,
    /// It was written, and the media lost it.
    Lost,
}

/// Why a report cannot be true of any chunk; none if it can be. Words of the specification: a write pointer lies within the
/// chunk, FREE is nothing written, an OPEN chunk is written in part, an OFFLINE one has no pointer.
fn impossible(geometry: &Geometry, report: &ChunkDescriptor) -> Option<&'static str> {
    let all = geometry.sectors_per_chunk;
    if report.sectors != all {
        return Some("its chunks are all of one size, and this is another");
    }
    match (report.state, report.write_pointer) {
        (ChunkState::Free, Some(0)) | (ChunkState::Offline, None) => None,
        (ChunkState::Open, Some(at)) if (1..all).contains(&at) => at_unit(geometry, at),
        (ChunkState::Closed, Some(at)) if at <= all => at_unit(geometry, at),
        _ => Some("no chunk in this state has such a write pointer"),
    }
}

const fn at_unit(geometry: &Geometry, at: u32) -> Option<&'static str> {
    if at.is_multiple_of(geometry.ws_min) { None } else { Some("nothing smaller than WS_MIN is written") }
}

/// The sectors to be read of a chunk with a report that can be true: what must not be there, and what must.
fn places(geometry: &Geometry, report: &ChunkDescriptor, look: Look) -> (Option<u32>, Option<u32>) {
    let written = report.write_pointer.unwrap_or(0);
    let readable = match report.state {
        ChunkState::Free | ChunkState::Offline => 0,
        ChunkState::Closed => written,
        ChunkState::Open => written.saturating_sub(geometry.mw_cunits),
    };
    let behind = (written < geometry.sectors_per_chunk).then_some(written);
    let is_looked_before = match look {
        Look::Behind => false,
        Look::Open => report.state == ChunkState::Open,
        Look::Around => true,
    };
    let before = readable.checked_sub(1).filter(|_| is_looked_before);
    assert!(before.is_none_or(|before| before < written), "sector {before:?} of {written} is readable");
    (behind, before)
}

/// True if MW_CUNITS may hide what the report does not tell.
fn may_hide(geometry: &Geometry, report: &ChunkDescriptor) -> bool {
    report.state == ChunkState::Open && geometry.mw_cunits > 0
}

/// Where the drive is told to write if the report is in doubt: behind the pointer of an OPEN chunk, if reads find what is there;
/// else where the drive refuses it, in the last unit, or the first if it would be in order there.
fn place_of_write(geometry: &Geometry, report: &ChunkDescriptor) -> u32 {
    let last = geometry.sectors_per_chunk - geometry.ws_opt;
    match report.write_pointer.filter(|_| report.state == ChunkState::Open) {
        Some(at) if !may_hide(geometry, report) => at,
        Some(at) if at == last => 0,
        _ => last,
    }
}

/// The chunks among `chunks` whose reports cannot be true, or do not agree with what was read.
///
/// # Errors
/// [`MountError`] if the drive fails reads as such, or the power goes.
pub fn doubts(
    device: &mut dyn BlockingDevice,
    chunks: &[ChunkId],
    look: Look,
) -> Result<Vec<Doubt>, MountError> {
    let geometry = device.geometry().clone();
    let last = geometry.sectors_per_chunk - geometry.ws_opt;
    let (mut doubts, mut asked) = (Vec::new(), Vec::new());
    for &chunk in chunks {
        let report = device.chunk(chunk);
        if impossible(&geometry, &report).is_some() {
            doubts.push(Doubt { chunk, sector: last, report });
            continue;
        }
        let (behind, before) = places(&geometry, &report, look);
        let doubt = Doubt { chunk, sector: place_of_write(&geometry, &report), report };
        asked.extend(behind.map(|sector| (doubt, sector, false)));
        asked.extend(before.map(|sector| (doubt, sector, true)));
        let is_unread = look == Look::Around && before.is_none() && report.state == ChunkState::Open;
        if is_unread || may_hide(&geometry, &report) {
            doubts.push(doubt);
        }
    }
    let ppas: Vec<Ppa> = asked.iter().map(|&(doubt, sector, _)| Ppa::new(doubt.chunk, sector)).collect();
    let given = read(device, &ppas)?;
    let wrong =
        asked.iter().zip(given).filter(|&(&(_, _, is_there), given)| (given != Given::Nothing) != is_there);
    doubts.extend(wrong.map(|(&(doubt, ..), _)| doubt));
    doubts.sort_unstable_by_key(|doubt| doubt.chunk);
    doubts.dedup_by_key(|doubt| doubt.chunk);
    assert!(doubts.len() <= chunks.len(), "more chunks are in doubt than there are");
    Ok(doubts)
}

/// The others among `chunks` of which MW_CUNITS may hide all, if the drive was told to write to those in doubt and says something
/// else of one than it did: its other reports are no better than that one was. None of a drive that was not caught.
pub fn others(device: &dyn BlockingDevice, chunks: &[ChunkId], doubts: &[Doubt]) -> Vec<Doubt> {
    let geometry = device.geometry();
    // Into a chunk of one unit nothing can be written out of order.
    let last = geometry.sectors_per_chunk - geometry.ws_opt;
    let is_caught = doubts.iter().any(|doubt| device.chunk(doubt.chunk) != doubt.report);
    if geometry.mw_cunits == 0 || last == 0 || !is_caught {
        return Vec::new();
    }
    let told: BTreeSet<ChunkId> = doubts.iter().map(|doubt| doubt.chunk).collect();
    let others = chunks.iter().filter(|chunk| !told.contains(chunk));
    let shows_nothing = |doubt: &Doubt| matches!(doubt.report.state, ChunkState::Free | ChunkState::Offline);
    let others =
        others.map(|&chunk| Doubt { chunk, sector: last, report: device.chunk(chunk) }).filter(shows_nothing);
    others.collect()
}

/// Looks at the chunks in doubt again, when the drive was told to write to them, or could not be.
///
/// # Errors
/// [`MountError::Report`] of the first whose report is no better; [`MountError`] as of [`doubts`].
pub fn confirm(device: &mut dyn BlockingDevice, doubts: &[Doubt]) -> Result<(), MountError> {
    let geometry = device.geometry().clone();
    for &Doubt { chunk, .. } in doubts {
        let report = device.chunk(chunk);
        if let Some(why) = impossible(&geometry, &report) {
            return Err(MountError::Report { report, why });
        }
        let (behind, _) = places(&geometry, &report, Look::Behind);
        let Some(sector) = behind else { continue };
        // What the media lost there tells nothing: an OFFLINE chunk has no content either.
        if read(device, &[Ppa::new(chunk, sector)])? == [Given::Content] {
            let why = "there is content behind its write pointer";
            return Err(MountError::Report { report, why });
        }
    }
    Ok(())
}

/// What reads of single sectors give.
fn read(device: &mut dyn BlockingDevice, ppas: &[Ppa]) -> Result<Vec<Given>, MountError> {
    let lists: Vec<&[Ppa]> = ppas.chunks(usize_of(VECTOR_MAX)).collect();
    let buffers: Vec<BufId> =
        (0..lists.len().min(BATCH)).map(|_| device.buffers().take(VECTOR_MAX)).collect();
    let given = read_with(device, &lists, &buffers);
    buffers.into_iter().for_each(|buffer| device.buffers().give_back(buffer));
    let given = given?;
    assert_eq!(given.len(), ppas.len(), "every sector was asked for");
    Ok(given)
}

fn read_with(
    device: &mut dyn BlockingDevice,
    lists: &[&[Ppa]],
    buffers: &[BufId],
) -> Result<Vec<Given>, MountError> {
    let mut given = Vec::new();
    for batch in lists.chunks(BATCH) {
        let mut commands = Vec::with_capacity(batch.len());
        for (tag, (list, &buffer)) in (0..).zip(batch.iter().zip(buffers)) {
            device.buffers().addresses_mut(buffer)[..list.len()].copy_from_slice(list);
            let count = u32::try_from(list.len()).expect("at most 64");
            commands.push(command(Tag(tag), buffer, Addresses::List { offset: 0, count }));
        }
        let ends = device.call(&commands)?;
        for ((list, &buffer), end) in batch.iter().zip(buffers).zip(ends) {
            for (entry, &ppa) in (0..).zip(*list) {
                given.push(match end.status {
                    _ if end.status_of(entry).has_data() => Given::Content,
                    // The gravest status is told of all: none of them is worse than that.
                    Status::UNWRITTEN => Given::Nothing,
                    _ => alone(device, buffer, ppa)?,
                });
            }
        }
    }
    Ok(given)
}

/// What a read of one sector gives in the best of some tries.
fn alone(device: &mut dyn BlockingDevice, buffer: BufId, first: Ppa) -> Result<Given, MountError> {
    let ends = read_again::call(device, &[command(Tag(0), buffer, Addresses::Run { first, count: 1 })], 1)?;
    look_at_reads(&ends)?;
    assert_eq!(ends.len(), 1, "one command has one end");
    Ok(match ends[0].status {
        Status::UNWRITTEN => Given::Nothing,
        status if status.has_data() => Given::Content,
        _ => Given::Lost,
    })
}

const fn command(tag: Tag, buffer: BufId, addresses: Addresses) -> Command {
    let (buffer, plane_mode) = (Some(buffer), PlaneMode::Single);
    Command { tag, op: Op::Read, addresses, buffer, buffer_first: 0, oob: true, plane_mode }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Lba;

    fn report(state: ChunkState, write_pointer: Option<u32>) -> ChunkDescriptor {
        ChunkDescriptor { state, wear_index: 3, first: Lba(0), sectors: 32, write_pointer }
    }

    #[test]
    fn reports_that_no_chunk_has_are_told_from_those_that_one_may_have() {
        let geometry = Geometry::example(1, 2, 40, 32, 4);
        let (free, open) = (ChunkState::Free, ChunkState::Open);
        let (closed, offline) = (ChunkState::Closed, ChunkState::Offline);
        for (state, pointers) in [
            (free, vec![Some(0)]),
            (open, vec![Some(4), Some(28)]),
            (closed, vec![Some(0), Some(4), Some(28), Some(32)]),
            (offline, vec![None]),
        ] {
            for pointer in [None, Some(0), Some(3), Some(4), Some(28), Some(32), Some(33), Some(u32::MAX)] {
                let is_possible = impossible(&geometry, &report(state, pointer)).is_none();
                assert_eq!(is_possible, pointers.contains(&pointer), "{state}, {pointer:?}");
            }
        }
        let other = ChunkDescriptor { sectors: 31, ..report(free, Some(0)) };
        assert!(impossible(&geometry, &other).is_some(), "a chunk of another size");
    }

    #[test]
    fn a_write_to_an_open_chunk_that_may_hide_content_is_out_of_order() {
        let with = |mw_cunits| Geometry { mw_cunits, ..Geometry::example(1, 2, 40, 32, 4) };
        let (plain, window) = (with(0), with(8));
        for at in (4..32).step_by(4) {
            let report = report(ChunkState::Open, Some(at));
            assert_ne!(place_of_write(&window, &report), at, "the chunk would be written to");
            assert_eq!((may_hide(&window, &report), may_hide(&plain, &report)), (true, false));
            assert_eq!(place_of_write(&plain, &report), at, "a read is enough there");
        }
        for (state, pointer) in
            [(ChunkState::Free, Some(0)), (ChunkState::Closed, Some(12)), (ChunkState::Offline, None)]
        {
            let report = report(state, pointer);
            assert_eq!(
                (place_of_write(&window, &report), may_hide(&window, &report)),
                (28, false),
                "{state}"
            );
        }
    }

    #[test]
    fn what_is_read_lies_on_both_sides_of_the_pointer_where_it_can_be_read() {
        let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 2, 40, 32, 4) };
        for (state, pointer, expected) in [
            (ChunkState::Free, Some(0), (Some(0), None)),
            (ChunkState::Offline, None, (Some(0), None)),
            (ChunkState::Open, Some(8), (Some(8), None)),
            (ChunkState::Open, Some(12), (Some(12), Some(3))),
            (ChunkState::Closed, Some(12), (Some(12), Some(11))),
            (ChunkState::Closed, Some(32), (None, Some(31))),
        ] {
            let report = report(state, pointer);
            assert_eq!(places(&geometry, &report, Look::Around), expected, "{state}, {pointer:?}");
            assert_eq!(places(&geometry, &report, Look::Behind), (expected.0, None), "{state}, {pointer:?}");
            let before = expected.1.filter(|_| state == ChunkState::Open);
            assert_eq!(places(&geometry, &report, Look::Open), (expected.0, before), "{state}, {pointer:?}");
        }
    }
}
