//! What was written after the checkpoint: from tails where chunks have one, else sector by sector.
//!
//! Of all versions of a block the one with the largest sequence wins, of equal ones that in the younger line: a copy made
//! by garbage collection, if both can be read. A discard takes away what is older than itself. Deliberately not here: the
//! checkpoint.

use super::super::canary::Canary;
use super::super::checkpoint_header::RowState;
use super::super::discards::DiscardRange;
use super::super::options::Options;
use super::blocking::{Batches, Found, Run};
use super::load::Loaded;
use super::survey::{FoundChunk, Survey, make_readable, readable};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{
    ChunkLayout, InstanceGeometry, Kind, L2p, LineId, LineSequence, Mapped, PhysicalAddress, SectorTag,
    Sequence, Stream, UnitIndex, tail,
};
use ocssd_lightnvm::{ChunkState, Ppa};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A version of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    block: u64,
    sequence: Sequence,
    line: LineSequence,
    place: PhysicalAddress,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Window {
    records: Vec<Record>,
    /// Discards: the newest place of each.
    pub discards: BTreeMap<Sequence, (LineSequence, PhysicalAddress, Option<DiscardRange>)>,
    pub newest: Sequence,
    pub tails_read: u64,
    pub chunks_scanned: u64,
}

/// From where on chunks of a line must be read; `None` if the checkpoint has all of it.
fn start(loaded: Option<&Loaded>, line: LineId, unit: UnitIndex, sequence: LineSequence) -> Option<u32> {
    let Some(Loaded { header, .. }) = loaded else { return Some(0) };
    if sequence >= header.next_line {
        return Some(0);
    }
    let row = header
        .lines
        .get(line.index())
        .filter(|row| row.sequence == sequence && row.state == RowState::Open)?;
    assert_eq!(row.sequence, sequence, "the row is of this generation");
    let (_, pointers) = header.open.iter().find(|(open, _)| *open == line.0)?;
    pointers.get(unit.index()).copied()
}

/// True if the next mount reads what is written to a chunk from `pointer` on, even if no other checkpoint comes before it. It does
/// not where the checkpoint knew more of the chunk than is there: a report that was believed told of sectors that a power cut had
/// taken.
pub fn is_read_from(
    loaded: Option<&Loaded>,
    (line, unit): (LineId, UnitIndex),
    sequence: LineSequence,
    pointer: u32,
) -> bool {
    start(loaded, line, unit, sequence).is_some_and(|from| from <= pointer)
}

/// Reads everything the checkpoint does not have.
pub fn read(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &mut Survey,
    map_stream: Stream,
    loaded: Option<&Loaded>,
) -> Result<Window, MountError> {
    let mut due: Vec<(LineId, UnitIndex, u32)> = Vec::new();
    for (line, unit, chunk) in survey.iter() {
        let Some(found) = survey.lines[line.index()].filter(|found| found.stream != map_stream) else {
            continue;
        };
        let Some(sequence) = chunk.line.filter(|&sequence| sequence == found.sequence) else { continue };
        if let Some(from) = start(loaded, line, unit, sequence).filter(|&from| from < chunk.written) {
            due.push((line, unit, from.max(layout.unit)));
        }
    }
    let chunks: Vec<(LineId, UnitIndex)> = due.iter().map(|&(line, unit, _)| (line, unit)).collect();
    make_readable(batches, shape, layout, survey, &chunks)?;
    let mut window = Window::default();
    // Also of a chunk that was begun before the checkpoint: sectors that cannot be read any more are named by the tail alone, and
    // a later mount that has to do with an older checkpoint would find them there.
    let has_tail = |chunk: &FoundChunk| {
        layout.tail > 0 && chunk.state == ChunkState::Closed && chunk.written == layout.sectors
    };
    let (tailed, mut scanned): (Vec<_>, Vec<_>) =
        due.into_iter().partition(|&(line, unit, _)| has_tail(survey.chunk(line, unit)));
    read_tails(batches, shape, layout, survey, &tailed, &mut window, &mut scanned)?;
    scan(batches, shape, layout, survey, &scanned, &mut window)?;
    read_discards(batches, shape, &mut window)?;
    window.records.sort_unstable();
    drop_lost_twins(batches, shape, &mut window)?;
    Ok(window)
}

/// A copy has the sequence of its original, and the tail of a chunk names what was in it, also where a reset stayed half done: of
/// newest versions in two places those that can be read are looked for, as long as there is one. Cost: a read for each such place,
/// of blocks that were moved out of lines opened since the checkpoint.
fn drop_lost_twins(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    window: &mut Window,
) -> Result<(), MountError> {
    if batches.options.has_canary(Canary::TwinsUnread) {
        return Ok(());
    }
    let mut twins: Vec<Record> = Vec::new();
    for group in window.records.chunk_by(|a, b| a.block == b.block) {
        let newest = group.last().expect("a group has a member").sequence;
        let from = group.partition_point(|record| record.sequence < newest);
        if group.len() - from > 1 {
            twins.extend_from_slice(&group[from..]);
        }
    }
    let ppas: Vec<Ppa> = twins.iter().map(|twin| shape.ppa(twin.place)).collect();
    let mut is_sound = Vec::with_capacity(twins.len());
    batches.read_sectors(&ppas, |found| is_sound.push(found.tag.is_ok()))?;
    assert_eq!(is_sound.len(), twins.len(), "not every twin was looked at");
    let mut lost: BTreeSet<Record> = BTreeSet::new();
    let judged: Vec<(Record, bool)> = twins.into_iter().zip(is_sound).collect();
    for group in judged.chunk_by(|a, b| a.0.block == b.0.block) {
        if group.iter().any(|&(_, is_sound)| is_sound) {
            lost.extend(group.iter().filter(|(_, is_sound)| !is_sound).map(|&(record, _)| record));
        }
    }
    if !lost.is_empty() {
        window.records.retain(|record| !lost.contains(record));
    }
    Ok(())
}

fn read_tails(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &Survey,
    chunks: &[(LineId, UnitIndex, u32)],
    window: &mut Window,
    scanned: &mut Vec<(LineId, UnitIndex, u32)>,
) -> Result<(), MountError> {
    let run = |&(line, unit, _): &(LineId, UnitIndex, u32)| Run {
        first: Ppa::new(shape.chunk(line, unit), layout.data_end()),
        count: layout.tail,
    };
    let runs: Vec<Run> = chunks.iter().map(run).collect();
    batches.read_whole(&runs, |index, bytes| {
        let (line, unit, from) = chunks[index];
        let tags = bytes.and_then(|bytes| tail::decode(bytes).ok());
        let Some(tags) = tags.filter(|tags| tags.len() == usize_of(layout.data_end())) else {
            scanned.push((line, unit, from));
            return;
        };
        window.tails_read += 1;
        let sequence = survey.chunk(line, unit).line.expect("the chunk is ours");
        let start = shape.chunk_start(line, unit);
        for (sector, tag) in (0..).zip(tags).skip(usize_of(from)) {
            window.take(tag, sequence, PhysicalAddress(start.0 + sector), None);
        }
    })
}

fn scan(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &Survey,
    chunks: &[(LineId, UnitIndex, u32)],
    window: &mut Window,
) -> Result<(), MountError> {
    let mut by_chunk = BTreeMap::new();
    let mut runs = Vec::new();
    for &(line, unit, from) in chunks {
        let chunk = survey.chunk(line, unit);
        let end = readable(layout, chunk).min(layout.data_end());
        let id = shape.chunk(line, unit);
        by_chunk.insert(id, (chunk.line.expect("the chunk is ours"), shape.chunk_start(line, unit)));
        runs.push(Run { first: Ppa::new(id, from), count: end.saturating_sub(from) });
        window.chunks_scanned += 1;
    }
    batches.read_runs(&runs, |Found { ppa, tag, content }| {
        let (sequence, start) = by_chunk[&ppa.chunk];
        if let Ok(tag) = tag {
            window.take(tag, sequence, PhysicalAddress(start.0 + u64::from(ppa.sector)), Some(&content));
        }
    })
}

/// Reads the ranges of discards that only a tail named.
fn read_discards(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    window: &mut Window,
) -> Result<(), MountError> {
    let unread: Vec<(Sequence, PhysicalAddress)> = window
        .discards
        .iter()
        .filter(|(_, (_, _, range))| range.is_none())
        .map(|(&sequence, &(_, place, _))| (sequence, place))
        .collect();
    let ppas: Vec<Ppa> = unread.iter().map(|&(_, place)| shape.ppa(place)).collect();
    let mut ranges = Vec::new();
    batches.read_sectors(&ppas, |found| {
        let range = found.tag.ok().and_then(|_| DiscardRange::decode(&found.content).ok());
        ranges.push(range);
    })?;
    for ((sequence, _), range) in unread.iter().zip(ranges) {
        match range {
            Some(range) => window.discards.get_mut(sequence).expect("it is listed").2 = Some(range),
            None => drop(window.discards.remove(sequence)),
        }
    }
    Ok(())
}

impl Window {
    fn take(
        &mut self,
        tag: SectorTag,
        line: LineSequence,
        place: PhysicalAddress,
        content: Option<&[u8; 16]>,
    ) {
        assert!(line > LineSequence(0), "a sector of no line");
        match tag.kind {
            Kind::Data | Kind::Lost => {
                self.newest = self.newest.max(tag.sequence);
                self.records.push(Record { block: tag.block, sequence: tag.sequence, line, place });
            }
            Kind::Discard => {
                self.newest = self.newest.max(tag.sequence);
                let range = content.and_then(|content| DiscardRange::decode(content).ok());
                let entry = self.discards.entry(tag.sequence).or_insert((line, place, range));
                if line > entry.0 {
                    *entry = (line, place, range.or(entry.2));
                }
            }
            Kind::Pad
            | Kind::Head
            | Kind::Tail
            | Kind::Map
            | Kind::Log
            | Kind::Placed
            | Kind::Unwritten
            | Kind::MapPage => {}
        }
    }

    /// True if nothing was written after the checkpoint.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.discards.is_empty()
    }

    /// Versions of blocks that were found.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Brings the map up to date, and says where blocks are that changed, in order of blocks. What the checkpoint had, which
    /// covers all up to `known`, is newer than any discard of that age; what was found beside it need not be. `gone` is told
    /// where blocks were.
    pub fn apply(
        &self,
        map: &mut L2p,
        known: Sequence,
        options: &Options,
        mut gone: impl FnMut(PhysicalAddress),
    ) -> Vec<PhysicalAddress> {
        let blocks = map.sectors();
        let mut changed = Vec::new();
        let mut gone = |before: Mapped| {
            if let Mapped::Media(place) = before {
                gone(place);
            }
        };
        assert!(self.records.is_sorted(), "versions are applied out of order");
        let later = self.discards.iter().filter(|&(&sequence, _)| sequence > known);
        for range in later.filter_map(|(_, &(_, _, range))| range) {
            for block in range.block..(range.block + u64::from(range.count)).min(blocks) {
                gone(map.set(block, Mapped::Nowhere));
            }
        }
        let is_deaf = options.has_canary(Canary::DiscardNotReplayed);
        let mut discards: Vec<(DiscardRange, Sequence)> =
            self.discards.iter().filter_map(|(&sequence, &(_, _, range))| Some((range?, sequence))).collect();
        discards.sort_unstable_by_key(|(range, _)| std::cmp::Reverse(range.block));
        // Discards that reach the block at hand, the newest on top.
        let mut active: BinaryHeap<(Sequence, u64)> = BinaryHeap::new();
        for group in self.records.chunk_by(|a, b| a.block == b.block) {
            let is_upside_down = options.has_canary(Canary::OldestWins);
            let newest = if is_upside_down { group.first() } else { group.last() };
            let newest = newest.expect("a group has a member");
            if newest.block >= blocks {
                continue;
            }
            while let Some((range, sequence)) = discards.pop_if(|(range, _)| range.block <= newest.block) {
                active.push((sequence, range.block + u64::from(range.count)));
            }
            while active.peek().is_some_and(|&(_, end)| end <= newest.block) {
                active.pop();
            }
            if active.peek().is_none_or(|&(sequence, _)| sequence < newest.sequence || is_deaf) {
                gone(map.set(newest.block, Mapped::Media(newest.place)));
                changed.push(newest.place);
            }
        }
        changed
    }
}
