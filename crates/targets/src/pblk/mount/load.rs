//! The newest complete checkpoint: found by the tags of its pieces, and read into the map.
//!
//! Deliberately not here: what was written after it.

use super::super::canary::Canary;
use super::super::checkpoint_header::CheckpointHeader;
use super::super::map_shards::{MapShards, ShardOnMedia};
use super::super::pieces::{self, PieceLayout};
use super::blocking::{Batches, Run};
use super::survey::{Survey, make_readable, readable};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{
    ChunkLayout, InstanceGeometry, InstanceId, Kind, L2p, LineId, LineSequence, SectorTag, Sequence,
    ShardSize, Stream, UnitIndex, tail,
};
use ocssd_lightnvm::{ChunkState, Ppa};
use std::collections::BTreeMap;

/// Where a checkpoint's pieces are: their numbers, ascending, each once.
type Pieces = Vec<(u64, Ppa)>;

/// A checkpoint that was read.
pub struct Loaded {
    pub header: CheckpointHeader,
    /// How its pieces are cut.
    pub layout: PieceLayout,
    /// The generation of the oldest line with a piece that it has or names.
    pub first_line: LineSequence,
    /// The generation of the youngest line with a piece of it.
    pub last_line: LineSequence,
    /// Where the shards of its map are.
    pub on_media: MapShards,
    /// Rows of valid bits, if it was taken at shutdown.
    pub rows: Vec<u8>,
}

/// What the lines of checkpoints hold.
#[derive(Default)]
pub struct MapLines {
    by_number: BTreeMap<Sequence, Pieces>,
}

impl MapLines {
    /// Notes a sector, if it is a piece.
    fn take(&mut self, tag: SectorTag, ppa: Ppa) {
        if tag.kind == Kind::Map {
            self.by_number.entry(tag.sequence).or_default().push((tag.block, ppa));
        }
    }

    /// Where a piece of a checkpoint is.
    fn piece(&self, number: Sequence, piece: u64) -> Option<Ppa> {
        let pieces = self.by_number.get(&number)?;
        let at = pieces.binary_search_by_key(&piece, |&(piece, _)| piece).ok()?;
        Some(pieces[at].1)
    }

    /// The newest number seen, complete or not.
    pub fn newest(&self) -> u64 {
        self.by_number.last_key_value().map_or(0, |(number, _)| number.0)
    }
}

/// Finds the pieces in all lines of the checkpoint stream: by the tails of full chunks, else by the tag of every sector.
pub fn scan(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &mut Survey,
    map_stream: Stream,
) -> Result<MapLines, MountError> {
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
    let mut found = MapLines::default();
    let has_tail = |&(line, unit): &(LineId, UnitIndex)| {
        let chunk = survey.chunk(line, unit);
        layout.tail > 0 && chunk.state == ChunkState::Closed && chunk.written == layout.sectors
    };
    let (tailed, mut untold): (Vec<_>, Vec<_>) = chunks.into_iter().partition(has_tail);
    read_tails(batches, shape, layout, &tailed, &mut found, &mut untold)?;
    let run = |&(line, unit): &(LineId, UnitIndex)| {
        let end = readable(layout, survey.chunk(line, unit)).min(layout.data_end());
        Run { first: Ppa::new(shape.chunk(line, unit), layout.unit), count: end.saturating_sub(layout.unit) }
    };
    let runs: Vec<Run> = untold.iter().map(run).collect();
    batches.read_runs(&runs, |sector| {
        if let Ok(tag) = sector.tag {
            found.take(tag, sector.ppa);
        }
    })?;
    for pieces in found.by_number.values_mut() {
        pieces.sort_unstable();
        // A piece whose chunk lost its head was written again: either is as good.
        pieces.dedup_by_key(|&mut (piece, _)| piece);
    }
    Ok(found)
}

/// Reads the tails of full chunks; those that have no sound one go to `untold`.
fn read_tails(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    chunks: &[(LineId, UnitIndex)],
    found: &mut MapLines,
    untold: &mut Vec<(LineId, UnitIndex)>,
) -> Result<(), MountError> {
    let tail_of = |&(line, unit): &(LineId, UnitIndex)| Run {
        first: Ppa::new(shape.chunk(line, unit), layout.data_end()),
        count: layout.tail,
    };
    let runs: Vec<Run> = chunks.iter().map(tail_of).collect();
    batches.read_whole(&runs, |index, bytes| {
        let (line, unit) = chunks[index];
        let tags = bytes.and_then(|bytes| tail::decode(bytes).ok());
        let Some(tags) = tags.filter(|tags| tags.len() == usize_of(layout.data_end())) else {
            untold.push((line, unit));
            return;
        };
        let chunk = shape.chunk(line, unit);
        (0..).zip(tags).for_each(|(sector, tag)| found.take(tag, Ppa::new(chunk, sector)));
    })
}

/// The header of the newest checkpoint that has one, and with it all pieces. `None` if there is none.
pub fn newest_header(
    batches: &mut Batches<'_>,
    instance: InstanceId,
    lines: &MapLines,
) -> Result<Option<CheckpointHeader>, MountError> {
    for (&number, pieces) in lines.by_number.iter().rev() {
        let header = read_header(batches, number, pieces)?;
        if let Some((header, _)) = header.filter(|(header, _)| header.instance == instance) {
            return Ok(Some(header));
        }
    }
    Ok(None)
}

/// Reads the newest complete checkpoint into `map`. `None` if there is none.
pub fn load(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    survey: &Survey,
    instance: InstanceId,
    lines: &MapLines,
    map: &mut L2p,
) -> Result<Option<Loaded>, MountError> {
    for (&number, pieces) in lines.by_number.iter().rev() {
        let Some((header, piece_bytes)) = read_header(batches, number, pieces)? else { continue };
        let ours = header.instance == instance && header.sectors == map.sectors();
        if !ours || header.entry_bytes != map.entry_bytes() {
            continue;
        }
        let layout = PieceLayout::new(piece_bytes, header.shard, map);
        let Some(places) = Places::find(lines, number, &header, layout) else { continue };
        let mut fresh = map.emptied();
        if let Some(rows) = read_content(batches, (&header, layout), &places, &mut fresh)? {
            *map = fresh;
            let line_of = |ppa: Ppa| survey.lines[LineId(ppa.chunk.0 % shape.lines()).index()];
            let generation = |ppa: Ppa| line_of(ppa).map_or(LineSequence(0), |found| found.sequence);
            return Ok(Some(places.loaded(header, layout, rows, generation)));
        }
    }
    Ok(None)
}

/// Where the parts of a checkpoint are.
struct Places {
    number: Sequence,
    /// Its own pieces, the header first.
    own: Vec<Ppa>,
    header_pieces: usize,
    /// Its shards, then those that it names: number, checkpoint, first piece.
    shards: Vec<(u32, Sequence, u64)>,
    /// What is to be read: the pieces of all shards, then the rows.
    content: Vec<(Sequence, Ppa)>,
}

impl Places {
    /// Finds all parts. `None` if one is missing.
    fn find(
        lines: &MapLines,
        number: Sequence,
        header: &CheckpointHeader,
        layout: PieceLayout,
    ) -> Option<Self> {
        let own = (0..header.pieces).map(|piece| lines.piece(number, piece)).collect::<Option<Vec<Ppa>>>()?;
        let header_pieces = header.encoded_bytes().div_ceil(layout.content_bytes);
        let per_shard = u64_of(layout.per_shard());
        let written = (u64_of(header_pieces)..).step_by(layout.per_shard());
        let written = header.shards.iter().zip(written).map(|(&shard, piece)| (shard, number, piece));
        let kept =
            header.kept.iter().map(|kept| (kept.shard, Sequence(kept.number), kept.first_piece.into()));
        let shards: Vec<(u32, Sequence, u64)> = written.chain(kept).collect();
        let rows = header_pieces + header.shards.len() * layout.per_shard();
        let of_shard = |&(_, number, first): &(u32, Sequence, u64)| {
            (first..first + per_shard).map(move |piece| Some((number, lines.piece(number, piece)?)))
        };
        let rows = own.get(rows..)?.iter().map(|&ppa| Some((number, ppa)));
        let content = shards.iter().flat_map(of_shard).chain(rows).collect::<Option<Vec<_>>>()?;
        assert!(content.len() >= shards.len() * layout.per_shard(), "a shard was left out");
        Some(Self { number, own, header_pieces, shards, content })
    }

    /// The checkpoint that was read from these places. `generation` is told where a piece is, and knows its line.
    fn loaded(
        self,
        header: CheckpointHeader,
        layout: PieceLayout,
        rows: Vec<u8>,
        generation: impl Fn(Ppa) -> LineSequence,
    ) -> Loaded {
        let oldest = |ppas: &mut dyn Iterator<Item = Ppa>| ppas.map(&generation).min().unwrap_or_default();
        let mut on_media = MapShards::default();
        for (&(shard, number, first), pieces) in
            self.shards.iter().zip(self.content.chunks_exact(layout.per_shard()))
        {
            let first_piece = u32::try_from(first).expect("pieces have numbers of 32 bits");
            let first_line = oldest(&mut pieces.iter().map(|&(_, ppa)| ppa));
            on_media.set(shard, ShardOnMedia { number: number.0, first_piece, first_line });
        }
        let all = self.own.iter().copied().chain(self.content.iter().map(|&(_, ppa)| ppa));
        let first_line = oldest(&mut all.into_iter());
        let last_line = self.own.iter().map(|&ppa| generation(ppa)).max().unwrap_or_default();
        assert!(first_line <= last_line, "a checkpoint ends before it begins");
        assert!(header.number == self.number.0 && self.header_pieces > 0, "a header of another checkpoint");
        Loaded { header, layout, first_line, last_line, on_media, rows }
    }
}

/// The header of a checkpoint, and how many content bytes each of its pieces has.
fn read_header(
    batches: &mut Batches<'_>,
    number: Sequence,
    pieces: &Pieces,
) -> Result<Option<(CheckpointHeader, usize)>, MountError> {
    assert!(!pieces.is_empty(), "a checkpoint without pieces was listed");
    let mut bytes: Vec<u8> = Vec::new();
    for piece in 0.. {
        let Some(&(_, first)) = pieces.get(piece).filter(|&&(number, _)| number == u64_of(piece)) else {
            return Ok(None);
        };
        let mut content_bytes = None;
        batches.read_whole(&[Run { first, count: 1 }], |_, found| {
            if let Some(part) = found.and_then(|found| pieces::content(number.0, found)) {
                bytes.extend_from_slice(part);
                content_bytes = Some(part.len());
            }
        })?;
        if let Some(version) = CheckpointHeader::newer_version(&bytes) {
            return Err(MountError::Unreadable(format!(
                "the newest checkpoint of the pblk instance on these units is of version {version}, which this program does not \
                 know: mount it with the program that wrote it, or a newer one"
            )));
        }
        let (Some(content_bytes), Some(length)) = (content_bytes, CheckpointHeader::length(&bytes)) else {
            return Ok(None);
        };
        if bytes.len() >= length {
            return Ok(CheckpointHeader::decode(&bytes).map(|header| (header, content_bytes)));
        }
    }
    unreachable!("there is always a next number")
}

/// Reads map and rows. `None` if a piece is damaged.
fn read_content(
    batches: &mut Batches<'_>,
    (header, layout): (&CheckpointHeader, PieceLayout),
    places: &Places,
    map: &mut L2p,
) -> Result<Option<Vec<u8>>, MountError> {
    let sector_bytes = batches.device.buffers().format().sector_bytes;
    let (runs, starts) = runs_of(&places.content);
    let mut content_of = Content::new(&places.shards, header.shard, layout, map);
    let is_unchecked = batches.options.has_canary(Canary::CheckpointUnchecked);
    batches.read_whole(&runs, |run, bytes| {
        let Some(bytes) = bytes else {
            content_of.sound = false;
            return;
        };
        for (index, bytes) in (starts[run]..).zip(bytes.chunks_exact(sector_bytes)) {
            let unchecked = if is_unchecked { pieces::unchecked(bytes) } else { None };
            let content = pieces::content(places.content[index].0.0, bytes).or(unchecked);
            match content.filter(|content| content.len() == layout.content_bytes) {
                Some(content) => content_of.take(index, content),
                None => content_of.sound = false,
            }
        }
    })?;
    Ok(content_of.sound.then_some(content_of.rows))
}

/// What pieces behind the header hold, taken in order: the map shard by shard, then the rows.
struct Content<'a> {
    shards: &'a [(u32, Sequence, u64)],
    shard_size: ShardSize,
    map: &'a mut L2p,
    layout: PieceLayout,
    /// The shard being read, as far as it was: taken over in one go, its memory is touched once.
    shard: Vec<u8>,
    rows: Vec<u8>,
    sound: bool,
}

impl<'a> Content<'a> {
    fn new(
        shards: &'a [(u32, Sequence, u64)],
        shard_size: ShardSize,
        layout: PieceLayout,
        map: &'a mut L2p,
    ) -> Self {
        assert!(layout.entries_bytes() > 0 && layout.per_shard() > 0, "{layout:?} holds no entry");
        Self { shards, shard_size, map, layout, shard: Vec::new(), rows: Vec::new(), sound: true }
    }

    /// Takes a sound piece; `index` counts those behind the header.
    fn take(&mut self, index: usize, content: &[u8]) {
        let per_shard = self.layout.per_shard();
        let Some(&(shard, ..)) = self.shards.get(index / per_shard) else {
            self.rows.extend_from_slice(content);
            return;
        };
        if index.is_multiple_of(per_shard) {
            self.shard.clear();
        }
        self.shard.extend_from_slice(&content[..self.layout.entries_bytes()]);
        if (index + 1).is_multiple_of(per_shard) && self.sound {
            self.sound = self.take_shard(shard);
        }
    }

    /// Takes over a shard. False if the map has none such, or an entry is wrong.
    fn take_shard(&mut self, shard: u32) -> bool {
        let sectors = self.shard_size.sectors_of(shard.into(), self.map.sectors());
        if sectors.is_empty() {
            return false;
        }
        let entries = usize::try_from(sectors.end - sectors.start).expect("a shard is small");
        let bytes = entries * usize_of(self.map.entry_bytes());
        // Behind the last entry the last piece has zeros.
        assert!(bytes <= self.shard.len(), "{} bytes are read for the {bytes} of a shard", self.shard.len());
        self.map.decode(sectors.start, &self.shard[..bytes]).is_ok()
    }
}

/// Pieces as runs of neighbours, with the index of each run's first piece.
fn runs_of(pieces: &[(Sequence, Ppa)]) -> (Vec<Run>, Vec<usize>) {
    let (mut runs, mut starts): (Vec<Run>, Vec<usize>) = (Vec::new(), Vec::new());
    for (index, &(_, ppa)) in pieces.iter().enumerate() {
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
    assert_eq!(runs.len(), starts.len(), "every run begins somewhere");
    (runs, starts)
}

fn u64_of(value: usize) -> u64 {
    u64::try_from(value).expect("an index fits 64 bits")
}
