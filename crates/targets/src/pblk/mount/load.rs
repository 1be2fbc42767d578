//! The newest complete snapshot: found by the tags of its pieces, and read into the map.
//!
//! Deliberately not here: what was written after it.

use super::super::canary::Canary;
use super::super::snapshot::{PIECE_HEADER_BYTES, entries_per_piece, pieces_per_shard};
use super::super::snapshot_header::SnapshotHeader;
use super::blocking::{Batches, Run};
use super::survey::{Survey, make_readable, readable};
use ocssd_ftl::{
    ChunkLayout, InstanceId, Kind, L2p, LineId, LineSequence, Sequence, Shape, Stream, UnitIndex,
};
use ocssd_lightnvm::{PowerCut, Ppa};
use std::collections::BTreeMap;

/// Where a snapshot's pieces are, by their numbers.
type Pieces = BTreeMap<u64, Ppa>;

/// A snapshot that was read.
pub struct Loaded {
    pub header: SnapshotHeader,
    /// The generation of the line its first piece is in.
    pub first_line: LineSequence,
    /// Rows of valid bits, if it was taken at shutdown.
    pub rows: Vec<u8>,
}

/// What the lines of snapshots hold.
pub struct MapLines {
    by_number: BTreeMap<Sequence, Pieces>,
}

impl MapLines {
    /// The newest number seen, complete or not.
    pub fn newest(&self) -> u64 {
        self.by_number.last_key_value().map_or(0, |(number, _)| number.0)
    }
}

/// Reads the tags of all lines of the snapshot stream.
pub fn scan(
    batches: &mut Batches<'_>,
    shape: &Shape,
    layout: &ChunkLayout,
    survey: &mut Survey,
    map_stream: Stream,
) -> Result<MapLines, PowerCut> {
    let of_map = |survey: &Survey, line: LineId| {
        survey.lines[line.index()].filter(|found| found.stream == map_stream).map(|found| found.sequence)
    };
    let chunks: Vec<(LineId, UnitIndex)> = survey
        .iter()
        .filter(|&(line, _, chunk)| {
            chunk.written > 0 && chunk.line.is_some() && chunk.line == of_map(survey, line)
        })
        .map(|(line, unit, _)| (line, unit))
        .collect();
    make_readable(batches, shape, layout, survey, &chunks)?;
    let runs: Vec<Run> = chunks
        .iter()
        .map(|&(line, unit)| {
            let end = readable(layout, survey.chunk(line, unit)).min(layout.data_end());
            Run {
                first: Ppa::new(shape.chunk(line, unit), layout.unit),
                count: end.saturating_sub(layout.unit),
            }
        })
        .collect();
    let mut by_number: BTreeMap<Sequence, Pieces> = BTreeMap::new();
    batches.read_runs(&runs, |found| {
        if let Ok(tag) = found.tag
            && tag.kind == Kind::Map
        {
            by_number.entry(tag.sequence).or_default().insert(tag.block, found.ppa);
        }
    })?;
    Ok(MapLines { by_number })
}

/// Reads the newest complete snapshot into `map`. `None` if there is none.
pub fn load(
    batches: &mut Batches<'_>,
    shape: &Shape,
    survey: &Survey,
    instance: InstanceId,
    lines: &MapLines,
    map: &mut L2p,
) -> Result<Option<Loaded>, PowerCut> {
    for (&number, pieces) in lines.by_number.iter().rev() {
        let Some(header) = read_header(batches, number, pieces)? else { continue };
        let whole = (0..header.pieces).all(|piece| pieces.contains_key(&piece));
        let ours = header.instance == instance && header.sectors == map.sectors();
        if !whole || !ours || header.entry_bytes != map.entry_bytes() {
            continue;
        }
        let line_of = |ppa: Ppa| LineId(ppa.chunk.0 % shape.lines());
        let of_lines = pieces.values().filter_map(|&ppa| survey.lines[line_of(ppa).index()]);
        let first_line = of_lines.map(|found| found.sequence).min().unwrap_or_default();
        let mut fresh = L2p::new(map.sectors(), shape.places(), map.slots());
        if let Some(rows) = read_content(batches, number, &header, pieces, &mut fresh)? {
            *map = fresh;
            return Ok(Some(Loaded { header, first_line, rows }));
        }
    }
    Ok(None)
}

/// A piece's content, if it is whole and of this snapshot.
fn content(number: Sequence, bytes: &[u8]) -> Option<&[u8]> {
    let (header, content) = bytes.split_at_checked(PIECE_HEADER_BYTES)?;
    let sound =
        header[..8] == number.0.to_le_bytes() && header[8..12] == ocssd_ftl::checksum(content).to_le_bytes();
    sound.then_some(content)
}

fn read_header(
    batches: &mut Batches<'_>,
    number: Sequence,
    pieces: &Pieces,
) -> Result<Option<SnapshotHeader>, PowerCut> {
    assert!(!pieces.is_empty(), "a snapshot without pieces was listed");
    let mut bytes: Vec<u8> = Vec::new();
    for piece in 0.. {
        let Some(&first) = pieces.get(&piece) else { return Ok(None) };
        let mut sound = false;
        batches.read_whole(&[Run { first, count: 1 }], |_, found| {
            if let Some(part) = found.and_then(|found| content(number, found)) {
                bytes.extend_from_slice(part);
                sound = true;
            }
        })?;
        let Some(length) = SnapshotHeader::length(&bytes).filter(|_| sound) else { return Ok(None) };
        if bytes.len() >= length {
            break;
        }
    }
    Ok(SnapshotHeader::decode(&bytes))
}

/// Reads map and rows. `None` if a piece is damaged.
fn read_content(
    batches: &mut Batches<'_>,
    number: Sequence,
    header: &SnapshotHeader,
    pieces: &Pieces,
    map: &mut L2p,
) -> Result<Option<Vec<u8>>, PowerCut> {
    let sector_bytes = batches.device.buffers().format().sector_bytes;
    let piece_bytes = sector_bytes - PIECE_HEADER_BYTES;
    let header_pieces = header.encoded_bytes().div_ceil(piece_bytes);
    let per_shard = pieces_per_shard(sector_bytes, map);
    let entries = entries_per_piece(sector_bytes, map);
    let map_pieces = header.shards.len() * per_shard;
    let skip = u64::try_from(header_pieces).expect("few");
    let (runs, starts) = runs_of(pieces, skip, header.pieces);
    let (mut sound, mut rows) = (true, Vec::new());
    let is_unchecked = batches.options.has_canary(Canary::SnapshotUnchecked);
    batches.read_whole(&runs, |run, bytes| {
        let Some(bytes) = bytes else {
            sound = false;
            return;
        };
        for (offset, bytes) in bytes.chunks_exact(sector_bytes).enumerate() {
            let index = starts[run] + offset;
            let unchecked = is_unchecked.then_some(&bytes[PIECE_HEADER_BYTES..]);
            let Some(content) = content(number, bytes).or(unchecked) else {
                sound = false;
                continue;
            };
            if index >= map_pieces {
                rows.extend_from_slice(content);
                continue;
            }
            let shard = usize::try_from(header.shards[index / per_shard]).expect("32 bits fit an index");
            sound &= take_entries(map, shard, index % per_shard * entries, entries, content);
        }
    })?;
    Ok(sound.then_some(rows))
}

fn take_entries(map: &mut L2p, shard: usize, from: usize, entries: usize, content: &[u8]) -> bool {
    if shard >= map.shard_count() {
        return false;
    }
    let sectors = map.shard_sectors(shard);
    let first = sectors.start + u64::try_from(from).expect("an index fits 64 bits");
    let left = usize::try_from(sectors.end.saturating_sub(first)).expect("a shard is small");
    let width = usize::try_from(map.entry_bytes()).expect("4 or 8");
    let count = left.min(entries).min(ocssd_ftl::SHARD - from);
    count == 0 || map.decode(first, &content[..count * width]).is_ok()
}

/// Pieces from `from` to `to` as runs of neighbours, with the number of each run's first piece less `from`.
fn runs_of(pieces: &Pieces, from: u64, to: u64) -> (Vec<Run>, Vec<usize>) {
    assert!(from <= to, "pieces {from} to {to}");
    let (mut runs, mut starts): (Vec<Run>, Vec<usize>) = (Vec::new(), Vec::new());
    assert!(from <= to, "a snapshot of less than its header");
    for (index, (_, &ppa)) in pieces.range(from..to).enumerate() {
        let next = runs.last_mut().filter(|run| {
            let end = run.first.sector + run.count;
            run.first.chunk == ppa.chunk && end == ppa.sector && run.count < ocssd_lightnvm::VECTOR_MAX
        });
        if let Some(run) = next {
            run.count += 1;
        } else {
            runs.push(Run { first: ppa, count: 1 });
            starts.push(index);
        }
    }
    (runs, starts)
}
