//! What lies on the leased units: whose chunk each is, of which generation, and how far it is written.
//!
//! Deliberately not here: what is in them.

use super::super::canary::Canary;
use super::blocking::{Batches, Run};
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkLayout, Head, InstanceId, LineId, LineSequence, Sequence, Shape, Stream, UnitIndex};
use ocssd_lightnvm::{ChunkDescriptor, ChunkState, PowerCut, Ppa};

/// Units after the first in which a head is looked for that the media lost (chosen: so many failures in a row are a chunk to
/// be lost; beyond, its neighbours must do).
const HEADS_AGAIN: u32 = 16;

/// A chunk as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundChunk {
    pub state: ChunkState,
    /// Sectors written, the whole chunk if it is closed; where it was closed early, up to there.
    pub written: u32,
    /// Its line's generation, if it is of this instance.
    pub line: Option<LineSequence>,
    /// What the drive says of its wear.
    pub wear_index: u8,
}

/// A line as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLine {
    pub sequence: LineSequence,
    pub stream: Stream,
    pub opened_at: Sequence,
    /// How often it was reset before.
    pub erases: u32,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct Survey {
    pub instance: Option<InstanceId>,
    /// Blocks of the instance.
    pub blocks: u64,
    pub lines: Vec<Option<FoundLine>>,
    /// Line by line.
    pub chunks: Vec<FoundChunk>,
    units: u32,
    pub heads_read: u64,
}

impl Survey {
    pub fn chunk(&self, line: LineId, unit: UnitIndex) -> &FoundChunk {
        &self.chunks[line.index() * usize_of(self.units) + unit.index()]
    }

    fn chunk_mut(&mut self, line: LineId, unit: UnitIndex) -> &mut FoundChunk {
        &mut self.chunks[line.index() * usize_of(self.units) + unit.index()]
    }

    /// The first head of a new instance was written to a chunk.
    pub fn created(&mut self, line: LineId, unit: UnitIndex, found: FoundLine) {
        assert!(self.lines[line.index()].is_none(), "line {} of a new instance was in use", line.0);
        self.lines[line.index()] = Some(found);
        self.chunk_mut(line, unit).line = Some(found.sequence);
    }

    /// A chunk was changed since it was looked at.
    pub fn look_again(&mut self, line: LineId, unit: UnitIndex, now: &ChunkDescriptor) {
        let chunk = self.chunk_mut(line, unit);
        chunk.state = now.state;
        chunk.written = now.write_pointer.unwrap_or(0);
        chunk.wear_index = now.wear_index;
    }

    /// All chunks, line by line.
    pub fn iter(&self) -> impl Iterator<Item = (LineId, UnitIndex, &FoundChunk)> {
        let units = self.units;
        (0..)
            .zip(&self.chunks)
            .map(move |(index, chunk): (u32, _)| (LineId(index / units), UnitIndex(index % units), chunk))
    }
}

/// How far a chunk can be read.
pub fn readable(layout: &ChunkLayout, chunk: &FoundChunk) -> u32 {
    assert!(chunk.written <= layout.sectors, "{} sectors of {} are written", chunk.written, layout.sectors);
    match chunk.state {
        ChunkState::Free | ChunkState::Offline => 0,
        ChunkState::Open => chunk.written.saturating_sub(layout.mw_cunits),
        ChunkState::Closed => chunk.written,
    }
}

/// Looks at every chunk and reads its head. Chunks too little written for that are filled until theirs can be read.
pub fn survey(batches: &mut Batches<'_>, shape: &Shape, layout: &ChunkLayout) -> Result<Survey, PowerCut> {
    let mut survey = report(batches, shape, layout);
    let young: Vec<(LineId, UnitIndex)> = survey
        .iter()
        .filter(|(_, _, chunk)| chunk.written > 0 && readable(layout, chunk) == 0)
        .map(|(line, unit, _)| (line, unit))
        .collect();
    make_readable(batches, shape, layout, &mut survey, &young)?;
    let used: Vec<(LineId, UnitIndex)> = survey
        .iter()
        .filter(|(_, _, chunk)| readable(layout, chunk) > 0)
        .map(|(line, unit, _)| (line, unit))
        .collect();
    let mut heads: Vec<Option<(Head, Sequence)>> = vec![None; used.len()];
    // The first sector of a head is as good as any; the media may have lost it, or the whole unit, which was then written
    // again behind.
    let again = || [0, 1].into_iter().chain((1..=HEADS_AGAIN).map(|number| number * layout.unit));
    for sector in again() {
        if heads.iter().any(Option::is_none) {
            read_heads(batches, shape, layout, &mut survey, &used, sector, &mut heads)?;
        }
    }
    // The head behind the lost one may be too young to be read.
    let hidden: Vec<(LineId, UnitIndex)> = used
        .iter()
        .zip(&heads)
        .filter(|&(&(line, unit), head)| {
            let chunk = survey.chunk(line, unit);
            let seen = readable(layout, chunk);
            head.is_none() && seen < chunk.written && seen <= HEADS_AGAIN * layout.unit
        })
        .map(|(&place, _)| place)
        .collect();
    if !hidden.is_empty() {
        make_readable(batches, shape, layout, &mut survey, &hidden)?;
        for sector in again() {
            read_heads(batches, shape, layout, &mut survey, &used, sector, &mut heads)?;
        }
    }
    identify(&mut survey, &used, &heads);
    Ok(survey)
}

/// Reads `sector` of each chunk whose head was not found.
fn read_heads(
    batches: &mut Batches<'_>,
    shape: &Shape,
    layout: &ChunkLayout,
    survey: &mut Survey,
    used: &[(LineId, UnitIndex)],
    sector: u32,
    heads: &mut [Option<(Head, Sequence)>],
) -> Result<(), PowerCut> {
    let missing: Vec<usize> = (0..used.len())
        .filter(|&index| {
            let (line, unit) = used[index];
            heads[index].is_none() && sector < readable(layout, survey.chunk(line, unit))
        })
        .collect();
    let ppa = |index: &usize| Ppa::new(shape.chunk(used[*index].0, used[*index].1), sector);
    let ppas: Vec<Ppa> = missing.iter().map(ppa).collect();
    let mut next = missing.iter();
    batches.read_sectors(&ppas, |found| {
        let index = *next.next().expect("every sector is told once");
        heads[index] =
            found.tag.ok().and_then(|tag| Some((Head::decode(tag, &found.content).ok()?, tag.sequence)));
    })?;
    survey.heads_read += u64::try_from(missing.len()).expect("a count fits 64 bits");
    Ok(())
}

fn report(batches: &Batches<'_>, shape: &Shape, layout: &ChunkLayout) -> Survey {
    let lines = (0..shape.lines()).map(LineId);
    let chunks = lines.flat_map(|line| (0..shape.units()).map(move |unit| (line, UnitIndex(unit))));
    let found = |(line, unit)| {
        let chunk = batches.device.chunk(shape.chunk(line, unit));
        let written = match chunk.state {
            ChunkState::Free | ChunkState::Offline => 0,
            ChunkState::Open | ChunkState::Closed => chunk.write_pointer.unwrap_or(0).min(layout.sectors),
        };
        FoundChunk { state: chunk.state, written, line: None, wear_index: chunk.wear_index }
    };
    Survey {
        instance: None,
        blocks: 0,
        lines: vec![None; usize_of(shape.lines())],
        chunks: chunks.map(found).collect(),
        units: shape.units(),
        heads_read: 0,
    }
}

/// Takes the instance of the youngest line for ours; the first sound head of a line names its generation, and chunks of
/// it whose head is lost belong to it too: a line is opened only when all its chunks are reset.
fn identify(survey: &mut Survey, used: &[(LineId, UnitIndex)], heads: &[Option<(Head, Sequence)>]) {
    assert_eq!(used.len(), heads.len(), "every chunk in use was looked at");
    let Some((youngest, _)) = heads.iter().flatten().max_by_key(|(head, _)| head.line) else { return };
    survey.instance = Some(youngest.instance);
    assert_eq!(used.len(), heads.len(), "every chunk in use was asked for its head");
    assert!(youngest.line.0 > 0, "a head of no generation");
    survey.blocks = youngest.blocks;
    for (&(line, unit), head) in used.iter().zip(heads) {
        let Some((head, opened_at)) = head.filter(|(head, _)| head.instance == youngest.instance) else {
            continue;
        };
        let Head { line: sequence, stream, erases, .. } = head;
        let found = FoundLine { sequence, stream, opened_at, erases };
        let known = survey.lines[line.index()].get_or_insert(found);
        // Two generations in a line: the older one was being reset when the power went.
        if head.line > known.sequence {
            *known = found;
        }
        survey.chunk_mut(line, unit).line = Some(head.line);
    }
    for (&(line, unit), head) in used.iter().zip(heads) {
        if let (None, Some(found)) = (head, survey.lines[line.index()]) {
            survey.chunk_mut(line, unit).line = Some(found.sequence);
        }
    }
}

/// Fills open chunks until what was written before can be read.
pub fn make_readable(
    batches: &mut Batches<'_>,
    shape: &Shape,
    layout: &ChunkLayout,
    survey: &mut Survey,
    chunks: &[(LineId, UnitIndex)],
) -> Result<(), PowerCut> {
    let window = layout.mw_cunits.next_multiple_of(layout.unit);
    let is_wanted = window > 0 && !batches.options.has_canary(Canary::WindowForgotten);
    let runs: Vec<Run> = chunks
        .iter()
        .filter(|&&(line, unit)| survey.chunk(line, unit).state == ChunkState::Open && is_wanted)
        .map(|&(line, unit)| {
            let written = survey.chunk(line, unit).written;
            let first = Ppa::new(shape.chunk(line, unit), written);
            Run { first, count: window.min(layout.sectors - written) }
        })
        .collect();
    fill_runs(batches, layout, &runs)?;
    for &(line, unit) in chunks {
        survey.look_again(line, unit, &batches.device.chunk(shape.chunk(line, unit)));
    }
    Ok(())
}

/// Fills chunks to their end, so that they can be reset.
pub fn fill_to_end(
    batches: &mut Batches<'_>,
    shape: &Shape,
    layout: &ChunkLayout,
    survey: &mut Survey,
    chunks: &[(LineId, UnitIndex)],
) -> Result<(), PowerCut> {
    let runs: Vec<Run> = chunks
        .iter()
        .map(|&(line, unit)| {
            let written = survey.chunk(line, unit).written;
            Run { first: Ppa::new(shape.chunk(line, unit), written), count: layout.sectors - written }
        })
        .collect();
    fill_runs(batches, layout, &runs)?;
    for &(line, unit) in chunks {
        survey.look_again(line, unit, &batches.device.chunk(shape.chunk(line, unit)));
    }
    Ok(())
}

fn fill_runs(batches: &mut Batches<'_>, layout: &ChunkLayout, runs: &[Run]) -> Result<(), PowerCut> {
    if runs.is_empty() {
        return Ok(());
    }
    batches.fill(runs, layout.unit)
}
