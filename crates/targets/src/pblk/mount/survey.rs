//! What lies on the leased units: whose chunk each is, of which generation, and how far it is written.
//!
//! Deliberately not here: how that is found out (`heads`), and what is in them.

use super::super::canary::Canary;
use super::blocking::{Batches, Run};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{
    ChunkLayout, InstanceGeometry, InstanceId, LineId, LineSequence, Sequence, Stream, UnitIndex,
};
use ocssd_lightnvm::{ChunkDescriptor, ChunkState, Ppa};

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
    pub resets: u32,
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
}

impl Survey {
    pub fn chunk(&self, line: LineId, unit: UnitIndex) -> &FoundChunk {
        &self.chunks[line.index() * usize_of(self.units) + unit.index()]
    }

    pub fn chunk_mut(&mut self, line: LineId, unit: UnitIndex) -> &mut FoundChunk {
        &mut self.chunks[line.index() * usize_of(self.units) + unit.index()]
    }

    /// A head was written to a chunk during the mount.
    pub fn named(&mut self, line: LineId, unit: UnitIndex, found: FoundLine) {
        let before = self.lines[line.index()].replace(found);
        assert!(before.is_none_or(|before| before == found), "line {} is of another generation", line.0);
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

/// Looks at every chunk; whose they are is not known yet.
pub fn report(batches: &Batches<'_>, shape: &InstanceGeometry, layout: &ChunkLayout) -> Survey {
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
    }
}

/// Fills open chunks until what was written before can be read.
pub fn make_readable(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &mut Survey,
    chunks: &[(LineId, UnitIndex)],
) -> Result<(), MountError> {
    let window = layout.mw_cunits.next_multiple_of(layout.unit);
    if window == 0 || batches.options.has_canary(Canary::WindowForgotten) {
        return Ok(());
    }
    fill_open(batches, shape, layout, survey, chunks, |written| window.min(layout.sectors - written))
}

/// Fills open chunks to their end, so that they can be reset.
pub fn fill_to_end(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &mut Survey,
    chunks: &[(LineId, UnitIndex)],
) -> Result<(), MountError> {
    fill_open(batches, shape, layout, survey, chunks, |written| layout.sectors - written)
}

/// Fills those of some chunks that are open, with as much as `count` says of what is written. One that turns out to be written
/// less far than the drive reported first, or farther, is filled again, for its report is true since.
fn fill_open(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    survey: &mut Survey,
    chunks: &[(LineId, UnitIndex)],
    count: impl Fn(u32) -> u32,
) -> Result<(), MountError> {
    let mut left = chunks.to_vec();
    while !left.is_empty() {
        left.retain(|&(line, unit)| survey.chunk(line, unit).state == ChunkState::Open);
        let run = |&(line, unit): &(LineId, UnitIndex)| {
            let written = survey.chunk(line, unit).written;
            Run { first: Ppa::new(shape.chunk(line, unit), written), count: count(written) }
        };
        let runs: Vec<Run> = left.iter().map(run).collect();
        let elsewhere = if runs.is_empty() { Vec::new() } else { batches.fill(&runs, layout.unit)? };
        left.retain(|&(line, unit)| {
            let before = survey.chunk(line, unit).written;
            survey.look_again(line, unit, &batches.device.chunk(shape.chunk(line, unit)));
            let now = survey.chunk(line, unit).written;
            assert!(now <= layout.sectors, "{now} sectors of {} are written", layout.sectors);
            let is_elsewhere = now != before && elsewhere.contains(&shape.chunk(line, unit));
            (now < before || is_elsewhere) && !batches.options.has_canary(Canary::ReportBelieved)
        });
    }
    Ok(())
}
