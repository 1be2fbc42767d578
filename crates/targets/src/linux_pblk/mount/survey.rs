//! Whose lines are, and in which order they were opened: the chunk report, and the start metadata of every written line.

use super::super::format::{FormatError, LineLayout, LineParts, SEQUENCE_MAX, Smeta, Uuid};
use super::super::size::GoodChunks;
use super::MountError;
use super::media::Media;
use ocssd_base::usize_of;
use ocssd_ftl::{InstanceGeometry, LineId, UnitIndex};
use ocssd_lightnvm::{BlockingDevice, ChunkState, Ppa};

/// A chunk as the drive reports it.
#[derive(Clone, Copy, Debug)]
pub struct FoundChunk {
    pub state: ChunkState,
    /// Sectors written, from its start.
    pub written: u32,
}

impl FoundChunk {
    fn of(
        device: &dyn BlockingDevice,
        shape: &InstanceGeometry,
        layout: &LineLayout,
        line: LineId,
        unit: UnitIndex,
    ) -> Self {
        let chunk = device.chunk(shape.chunk(line, unit));
        let written = match chunk.state {
            ChunkState::Free | ChunkState::Offline => 0,
            // A chunk may be closed early; what is behind its write pointer was never written.
            ChunkState::Open | ChunkState::Closed => chunk.write_pointer.unwrap_or(0),
        };
        Self { state: chunk.state, written: written.min(layout.chunk) }
    }
}

/// A line of the instance.
#[derive(Clone, Copy, Debug)]
pub struct FoundLine {
    pub line: LineId,
    pub smeta: Smeta,
    /// A good chunk of it is not full.
    pub is_open: bool,
}

/// What lies on the units.
pub struct Survey {
    units: u32,
    chunks: Vec<FoundChunk>,
    /// Where the parts of every line are; none of those that are not used.
    pub parts: Vec<Option<LineParts>>,
    /// The lines of the instance, in the order they were opened.
    pub lines: Vec<FoundLine>,
    pub instance: Option<Uuid>,
    /// Lines of other instances, or that say they are another line.
    pub foreign: u32,
    /// Lines whose starts cannot be read.
    pub lost_starts: u32,
    /// Lines whose starts are not written as far as the drive reported, or hidden by MW_CUNITS, with the units they are on.
    pub missing_starts: Vec<(LineId, UnitIndex)>,
    /// Sectors of starts that cannot be read yet.
    pub hidden: u64,
    /// Sectors that must follow one in an OPEN chunk before it can be read.
    mw_cunits: u32,
}

impl Survey {
    /// What the drive reports, with no line looked into.
    pub fn of(device: &dyn BlockingDevice, shape: &InstanceGeometry, layout: &LineLayout) -> Self {
        let mut chunks = Vec::with_capacity(usize_of(shape.lines()) * usize_of(shape.units()));
        for line in (0..shape.lines()).map(LineId) {
            for unit in (0..shape.units()).map(UnitIndex) {
                chunks.push(FoundChunk::of(device, shape, layout, line, unit));
            }
        }
        let units = shape.units();
        let mut survey = Self {
            units,
            chunks,
            parts: Vec::new(),
            lines: Vec::new(),
            instance: None,
            foreign: 0,
            lost_starts: 0,
            missing_starts: Vec::new(),
            hidden: 0,
            mw_cunits: device.geometry().mw_cunits,
        };
        for line in (0..shape.lines()).map(LineId) {
            let is_bad = |position| survey.chunk(line, layout.unit_at(position)).state == ChunkState::Offline;
            let parts = LineParts::new(layout, is_bad);
            survey.parts.push(parts);
        }
        survey
    }

    /// A chunk.
    pub fn chunk(&self, line: LineId, unit: UnitIndex) -> FoundChunk {
        assert!(unit.0 < self.units, "unit {} is beyond the instance", unit.0);
        self.chunks[line.index() * usize_of(self.units) + unit.index()]
    }

    /// The line was written to: what the drive reports of its chunks now.
    pub fn look_again(
        &mut self,
        device: &dyn BlockingDevice,
        shape: &InstanceGeometry,
        layout: &LineLayout,
        line: LineId,
    ) {
        for unit in (0..self.units).map(UnitIndex) {
            let found = FoundChunk::of(device, shape, layout, line, unit);
            self.chunks[line.index() * usize_of(self.units) + unit.index()] = found;
        }
    }

    /// Sectors of a chunk that can be read, from its start.
    pub fn readable(&self, line: LineId, unit: UnitIndex) -> u32 {
        let FoundChunk { state, written } = self.chunk(line, unit);
        if state == ChunkState::Open { written.saturating_sub(self.mw_cunits) } else { written }
    }

    /// The chunks of lines that are used.
    pub fn good_chunks(&self) -> GoodChunks {
        let used = || self.parts.iter().flatten();
        let lines = u32::try_from(used().count()).expect("fewer lines than 2^32");
        GoodChunks { chunks: used().map(|parts| parts.good_chunks).sum(), lines }
    }

    /// Reads the start metadata of every line whose first chunk has them, and orders the lines of the first instance met. What
    /// was found before is found anew.
    pub fn read_smeta(
        &mut self,
        media: &mut Media<'_>,
        shape: &InstanceGeometry,
        layout: &LineLayout,
    ) -> Result<(), MountError> {
        (self.instance, self.foreign, self.lost_starts) = (None, 0, 0);
        self.lines.clear();
        self.missing_starts.clear();
        let started: Vec<(LineId, UnitIndex)> = self.all_started(layout).collect();
        let can_be_read = |&(line, unit): &(LineId, UnitIndex)| self.readable(line, unit) >= layout.unit;
        let (written, hidden): (Vec<_>, Vec<_>) = started.into_iter().partition(can_be_read);
        self.hidden = u64::from(layout.unit) * u64::try_from(hidden.len()).expect("fewer lines than 2^32");
        let firsts: Vec<Ppa> =
            written.iter().map(|&(line, unit)| Ppa::new(shape.chunk(line, unit), 0)).collect();
        let mut newer = None;
        media.read_units(&firsts, |index, unit| {
            let (line, on) = written[index];
            // A line whose start cannot be read is free, as in Linux.
            if unit.lost != 0 {
                if unit.is_missing && self.chunk(line, on).state == ChunkState::Open {
                    self.missing_starts.push((line, on));
                } else {
                    self.lost_starts += 1;
                }
                return;
            }
            match Smeta::decode(layout, unit.bytes) {
                Ok(smeta) => self.add(line, smeta),
                Err(FormatError::Version { major }) => newer = Some((line, FormatError::Version { major })),
                Err(FormatError::Short { .. } | FormatError::Crc { .. } | FormatError::Identifier { .. }) => {
                }
            }
        })?;
        if let Some((line, error)) = newer {
            return Err(MountError::Unreadable(format!("line {}: {error}", line.0)));
        }
        self.lines.sort_by_key(|found| found.smeta.seq_nr);
        let missing = u64::try_from(self.missing_starts.len()).expect("fewer lines than 2^32");
        self.hidden += u64::from(layout.unit) * missing;
        Ok(())
    }

    /// Which lines are of the instance.
    pub fn ours(&self) -> Vec<bool> {
        let mut ours = vec![false; self.parts.len()];
        self.lines.iter().for_each(|found| ours[found.line.index()] = true);
        ours
    }

    /// Every line that was opened, with the unit on which it starts.
    pub fn all_started(&self, layout: &LineLayout) -> impl Iterator<Item = (LineId, UnitIndex)> {
        (0..layout.lines).map(LineId).filter_map(|line| self.started(line, layout))
    }

    /// The unit on which a line starts, if it was opened.
    fn started(&self, line: LineId, layout: &LineLayout) -> Option<(LineId, UnitIndex)> {
        let parts = self.parts[line.index()].as_ref()?;
        let (position, sector) = layout.split(parts.smeta);
        assert_eq!(sector, 0, "the start of a line is in the middle of a chunk");
        let unit = layout.unit_at(position);
        (self.chunk(line, unit).written >= layout.unit).then_some((line, unit))
    }

    fn add(&mut self, line: LineId, smeta: Smeta) {
        // What is not believed does not say which instance this is either.
        let is_sound = smeta.header.id == line.0 && smeta.seq_nr <= SEQUENCE_MAX;
        if !is_sound || *self.instance.get_or_insert(smeta.header.uuid) != smeta.header.uuid {
            self.foreign += 1;
            return;
        }
        let is_part =
            |unit| matches!(self.chunk(line, UnitIndex(unit)).state, ChunkState::Open | ChunkState::Free);
        let is_open = (0..self.units).any(is_part);
        self.lines.push(FoundLine { line, smeta, is_open });
    }
}
