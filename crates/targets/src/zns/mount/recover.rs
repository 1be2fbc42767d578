//! How far each zone is written: by its columns, by the tags of what was written last, and by what tails have behind that.
//!
//! Units of a zone are on media up to the first one that its column is too short for. Where a write failed, or a mount was cut
//! after it padded, a column may be long enough and yet hold something else: so the tags of the last units are read.
//! Deliberately not here: what becomes of the chunks (`mod`).

use crate::mount_error::MountError;
use crate::read_again;
use crate::recovery::media::Media;
use crate::recovery::survey::Survey;
use crate::zns::canary::Canary;
use crate::zns::journal::Table;
use crate::zns::options::Options;
use crate::zns::segments::{Run, UnitOfZone};
use crate::zns::sizes::Sizes;
use crate::zns::writer::HeldBufferUnit;
use crate::zns::zone::Zone;
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, InstanceGeometry, Kind, OpenChunk, SectorTag};
use ocssd_lightnvm::interface::zoned::ZoneState;
use ocssd_lightnvm::{Addresses, ChunkState, Command, Op, PlaneMode, Ppa, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Rows of a zone whose tags are read at a time, from its end back: more than may be in flight to a chunk.
const ROWS: u32 = 17;

/// Rows whose units may be torn, at least: an earlier mount may have written more to a chunk at a time (chosen).
const TORN_ROWS: u32 = 4;

/// A sector as it lies on media.
pub struct Sector {
    pub data: Vec<u8>,
    pub oob: Vec<u8>,
}

/// A zone that goes on.
pub struct FoundZone {
    /// Whole units on media.
    pub units: UnitOfZone,
    /// Blocks before the first one that neither their places nor tails have.
    pub in_row: u32,
    /// Blocks behind the units up to the write pointer, as tails have them; none where nothing of a random write area was written.
    pub tail: Vec<Option<Sector>>,
    /// Where these are, chunk by chunk.
    pub tail_chunks: Vec<ChunkIndex>,
    /// Chunks that take more.
    pub columns: Vec<OpenChunk<HeldBufferUnit>>,
}

/// What a mount found out about zones.
pub struct Recovered {
    /// The zone table, each zone cut where it ends.
    pub table: Table,
    /// Zones that are neither empty nor full.
    pub zones: BTreeMap<u32, FoundZone>,
    /// By chunk: a zone has it.
    pub owned: Vec<bool>,
    /// Those of them that go on being written.
    pub columns: BTreeSet<ChunkIndex>,
    /// Zones whose end was looked for.
    pub zones_cut: u32,
    /// The newest block that tails have.
    pub sequence: u64,
}

/// A block in tails: how new it is, and where.
#[derive(Clone, Copy)]
struct TailBlock {
    sequence: u64,
    chunk: ChunkIndex,
    ppa: Ppa,
    /// It was written to a random write area, so blocks before it may be missing.
    is_placed: bool,
}

type TailBlocks = BTreeMap<u64, TailBlock>;

/// The first unit of a zone that its column is too short for; `units` says how many each chunk has from a sector on.
fn first_missing(
    zone: &Zone,
    sizes: &Sizes,
    longest: bool,
    units: impl Fn(ChunkIndex, u32) -> u32,
) -> UnitOfZone {
    let mut last = 0;
    let mut segments = zone.segments.iter().peekable();
    while let Some(segment) = segments.next() {
        let end = segments
            .peek()
            .map_or_else(|| segment.end(sizes.unit, sizes.chunk).min(sizes.zone_units), |next| next.start);
        let width = segment.width();
        let missing = (0..)
            .zip(segment.columns.iter())
            .map(|(nth, column)| segment.start + units(column.chunk, column.sector) * width + nth);
        let first = if longest { missing.max() } else { missing.min() };
        let first = first.unwrap_or(segment.start);
        if first < end {
            return first;
        }
        assert!(end >= last, "segments go back from unit {last} to {end}");
        last = end;
    }
    last
}

impl Recovered {
    /// Looks at all zones of a table.
    pub fn new(
        media: &mut Media<'_>,
        (shape, sizes, options): (&InstanceGeometry, &Sizes, &Options),
        survey: &mut Survey,
        (mut table, mounted): (Table, u64),
    ) -> Result<Self, MountError> {
        // One that was logged before its first page was programmed may be another's since: an earlier mount's log, or nobody's.
        table.tails.retain(|&chunk| {
            let found = survey.get(chunk);
            !matches!(found.state, ChunkState::Free | ChunkState::Offline) && found.pages().is_none()
        });
        let window = !options.has_canary(Canary::WindowForgotten);
        let is_written = |zone: &&Zone| zone.finished_at().is_none() && !zone.is_as_mounted(sizes.unit);
        let written: Vec<ChunkIndex> = table.zones.iter().filter(is_written).flat_map(Zone::chunks).collect();
        let written: BTreeSet<ChunkIndex> = written.into_iter().collect();
        for chunks in [written, table.tails.clone()] {
            let until = |chunk| if window { survey.get(chunk).written + sizes.mw_cunits } else { 0 };
            let wanted: Vec<(ChunkIndex, u32)> =
                chunks.into_iter().map(|chunk| (chunk, until(chunk))).collect();
            survey.pad(media, shape, &wanted)?;
        }
        let takes_oldest = options.has_canary(Canary::OldestOfArea);
        let (blocks, sequence) = tail_blocks(media, shape, survey, (&table, takes_oldest))?;
        let mut found = Self {
            table,
            zones: BTreeMap::new(),
            owned: vec![false; usize_of(shape.chunks())],
            columns: BTreeSet::new(),
            zones_cut: 0,
            sequence,
        };
        for number in 0..sizes.zone_count {
            let zone = &found.table.zones[usize_of(number)];
            if zone.finished_at().is_none() && zone.state != ZoneState::Offline {
                found.look_at(media, (shape, sizes, options), survey, (number, &blocks, mounted))?;
            }
            found.sequence = found.sequence.max(found.table.zones[usize_of(number)].since);
            for chunk in found.table.zones[usize_of(number)].chunks() {
                found.owned[chunk.index()] = true;
            }
        }
        Ok(found)
    }

    /// Finds the end of a zone that was not finished.
    fn look_at(
        &mut self,
        media: &mut Media<'_>,
        (shape, sizes, options): (&InstanceGeometry, &Sizes, &Options),
        survey: &Survey,
        (number, blocks, mounted): (u32, &TailBlocks, u64),
    ) -> Result<(), MountError> {
        let start = u64::from(number) * u64::from(sizes.capacity()).next_power_of_two();
        let zone = &self.table.zones[usize_of(number)];
        let units = |chunk: ChunkIndex, from: u32| survey.get(chunk).before.saturating_sub(from) / sizes.unit;
        let longest = options.has_canary(Canary::LongestColumn);
        let mut end = first_missing(zone, sizes, longest, units);
        if !zone.is_as_mounted(sizes.unit) {
            self.zones_cut += 1;
            if !longest {
                end = verified(media, shape, (sizes, options.writes_per_unit), (zone, start), end)?;
            }
        }
        let since = if options.has_canary(Canary::StaleTail) { 0 } else { zone.since };
        let first = start + u64::from(end * sizes.unit);
        let (shown, in_row) = (start + u64::from(zone.shown()), start + u64::from(zone.in_row()));
        // Behind a block that the last mount did not find, what was written in a row is what a power cut before it took back,
        // though the zone may reach beyond it by what was written to an area since.
        let counts = |block: u64, found: &TailBlock| {
            let old = if found.is_placed { shown } else { in_row };
            found.sequence > since && (found.sequence > mounted || block < old)
        };
        let of_zone = |block: u64| blocks.get(&block).copied().filter(|found| counts(block, found));
        let run = (first..first + u64::from(sizes.unit)).find(|&block| of_zone(block).is_none());
        let run = run.unwrap_or(first + u64::from(sizes.unit));
        let is_placed = |&(&block, found): &(&u64, &TailBlock)| found.is_placed && counts(block, found);
        let last = blocks.range(first..start + u64::from(sizes.capacity())).rev().find(is_placed);
        // What survived in an area is committed by whole units.
        let pointer = last.map_or(run, |(&last, _)| {
            run.max(start + (last - start + 1).next_multiple_of(u64::from(sizes.unit)))
        });
        let survives = |block: u64| of_zone(block).filter(|found| found.is_placed || block < run);
        let tail: Vec<Option<TailBlock>> =
            if end < sizes.zone_units { (first..pointer).map(survives).collect() } else { Vec::new() };
        let zone = &mut self.table.zones[usize_of(number)];
        let takes_more = zone.state != ZoneState::ReadOnly;
        if end == sizes.zone_units {
            zone.finish_at(sizes.capacity(), sizes.unit);
            return Ok(());
        }
        if !takes_more {
            // A chunk that was planned and holds nothing of it is free for others.
            zone.drop_columns_behind(end);
        }
        zone.cut(end);
        if end == 0 && tail.is_empty() {
            return Ok(());
        }
        let chunks: BTreeSet<ChunkIndex> = zone.chunks().collect();
        let mut columns = Vec::new();
        for chunk in chunks {
            let found = survey.get(chunk);
            let is_open = matches!(found.state, ChunkState::Open | ChunkState::Free);
            if takes_more && is_open && found.written.is_multiple_of(sizes.unit) {
                columns.push(OpenChunk::new(chunk, found.written));
                self.columns.insert(chunk);
            }
        }
        let tail_chunks: BTreeSet<ChunkIndex> = tail.iter().flatten().map(|block| block.chunk).collect();
        let tail = read_sectors(media, &tail)?;
        let tail_chunks = tail_chunks.into_iter().collect();
        let in_row = u32::try_from(run - start).expect("less than a zone");
        self.zones.insert(number, FoundZone { units: end, in_row, tail, tail_chunks, columns });
        Ok(())
    }

    /// Blocks that only tails have.
    pub fn tail_blocks(&self) -> u64 {
        let counts = self.zones.values().map(|zone| zone.tail.iter().flatten().count());
        u64::try_from(counts.sum::<usize>()).expect("an index")
    }

    /// Counts the parts that zones have in chunks of tails.
    pub fn count_tails(&self, live: &mut BTreeMap<ChunkIndex, u32>) {
        for chunk in self.zones.values().flat_map(|zone| &zone.tail_chunks) {
            *live.get_mut(chunk).expect("a chunk of tails") += 1;
        }
    }
}

/// The end of a zone, if units before `end` are none of it: where the first of them is.
///
/// First the first sector of each unit is looked at, from `end` back, which leaves padding behind. Then every sector of the last
/// units before that: one that was on its way may be torn, and a zone that was being finished ends in a part of a unit.
fn verified(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    (sizes, depth): (&Sizes, u32),
    zone: (&Zone, u64),
    end: UnitOfZone,
) -> Result<UnitOfZone, MountError> {
    let width = zone.0.segments.iter().map(|segment: Run<'_>| segment.columns.len()).max().unwrap_or(1);
    let width = u32::try_from(width.max(1)).expect("fewer columns than 2^32");
    let (mut from, mut first_bad) = (end, end);
    while from > 0 {
        let to = from;
        from = to.saturating_sub(ROWS * width);
        let Some(bad) = first_foreign(media, shape, (sizes, 1), zone, from..to)? else { break };
        first_bad = bad;
        if bad >= from + width {
            break;
        }
    }
    let torn = first_bad.saturating_sub((depth.max(TORN_ROWS) + 1) * width);
    let bad = first_foreign(media, shape, (sizes, sizes.unit), zone, torn..first_bad)?;
    assert!(bad.is_none_or(|bad| bad < first_bad), "unit {bad:?} is behind the end at {first_bad}");
    Ok(bad.unwrap_or(first_bad))
}

/// The first of these units of which one of the first `count` sectors is not the zone's.
fn first_foreign(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    (sizes, count): (&Sizes, u32),
    (zone, start): (&Zone, u64),
    units: Range<UnitOfZone>,
) -> Result<Option<UnitOfZone>, MountError> {
    let sectors = units.flat_map(|at| (0..count).map(move |sector| (at, sector)));
    let sectors: Vec<(UnitOfZone, u32)> = sectors.collect();
    let places: Vec<Ppa> = sectors
        .iter()
        .map(|&(at, sector)| {
            let place = zone.place(at, sizes.unit);
            Ppa::new(shape.chunk_id(place.chunk), place.sector + sector)
        })
        .collect();
    let tags = media.read_tags(&places)?;
    assert_eq!(tags.len(), sectors.len(), "every sector was asked for");
    let is_of = |(at, sector): (UnitOfZone, u32), tag: &Option<SectorTag>| {
        let block = start + u64::from(at) * u64::from(sizes.unit) + u64::from(sector);
        // A write that failed leaves a place that cannot be read.
        tag.is_some_and(|tag| tag.kind.is_of_zone() && tag.block == block && tag.sequence.0 > zone.since)
    };
    Ok(sectors.iter().zip(&tags).find(|&(&at, tag)| !is_of(at, tag)).map(|(&(at, _), _)| at))
}

/// Every block in tails that may count, the newest of each, and the newest of all.
fn tail_blocks(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    survey: &Survey,
    (table, takes_oldest): (&Table, bool),
) -> Result<(TailBlocks, u64), MountError> {
    let geometry = media.device.geometry().clone();
    let places: Vec<(ChunkIndex, Ppa)> = table
        .tails
        .iter()
        .flat_map(|&chunk| {
            let readable = survey.readable(&geometry, chunk);
            (0..readable).map(move |sector| (chunk, Ppa::new(shape.chunk_id(chunk), sector)))
        })
        .collect();
    let ppas: Vec<Ppa> = places.iter().map(|&(_, ppa)| ppa).collect();
    let tags = media.read_tags(&ppas)?;
    let (mut blocks, mut newest) = (TailBlocks::new(), 0);
    for (&(chunk, ppa), tag) in places.iter().zip(tags) {
        let Some(tag) = tag.filter(|tag| matches!(tag.kind, Kind::Data | Kind::Placed)) else { continue };
        let sequence = tag.sequence.0;
        newest = newest.max(sequence);
        let old = blocks.get(&tag.block);
        let is_placed = tag.kind == Kind::Placed;
        let is_older = |old: &TailBlock| old.sequence < sequence;
        let replaces = |old| if is_placed && takes_oldest { !is_older(old) } else { is_older(old) };
        if old.is_none_or(replaces) {
            blocks.insert(tag.block, TailBlock { sequence, chunk, ppa, is_placed });
        }
    }
    Ok((blocks, newest))
}

/// Reads the sectors there are, with what lies beside them, up to one of a row that cannot be read; one of an area is missing then.
fn read_sectors(
    media: &mut Media<'_>,
    blocks: &[Option<TailBlock>],
) -> Result<Vec<Option<Sector>>, MountError> {
    let is_area = blocks.iter().flatten().any(|block| block.is_placed);
    let mut sectors = Vec::new();
    for block in blocks {
        let Some(block) = block else {
            sectors.push(None);
            continue;
        };
        let buffer = media.device.buffers().take(1);
        let addresses = Addresses::Run { first: block.ppa, count: 1 };
        let command = Command {
            tag: Tag(0),
            op: Op::Read,
            addresses,
            buffer: Some(buffer),
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        let ends = read_again::call(media.device, &[command], 1)?;
        crate::mount_error::look_at_reads(&ends)?;
        media.sectors_read += 1;
        let buffers = media.device.buffers();
        if ends[0].status.has_data() {
            let (data, oob) = (buffers.data(buffer, 0, 1).to_vec(), buffers.oob(buffer, 0, 1).to_vec());
            sectors.push(Some(Sector { data, oob }));
        } else if is_area {
            sectors.push(None);
        }
        buffers.give_back(buffer);
        if !ends[0].status.has_data() && !is_area {
            break;
        }
    }
    Ok(sectors)
}
