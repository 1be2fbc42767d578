//! Makes lines whole that a power cut left open: the last goes on, as in Linux, the others are padded and get their end.
//!
//! Of the last line holes are padded, because recovery takes the later place of a block, and what would be written into a hole
//! now is newer than what lies behind it; and as much as MW_CUNITS asks for, so that all of it can be read. Other lines are
//! padded to the end of their data and get end metadata: a full line without a list is one that Linux recovers, but can never
//! collect (`docs/linux-pblk.md`). What MW_CUNITS hides right before the end metadata is shown by ending the line with nothing;
//! it is condemned to be emptied. Cut short, all of this goes on at the next mount.

use super::super::format::{
    EMETA_VERSION_MINOR, Emeta, Header, LineLayout, LineOffset, LineParts, Uuid, WaCounters, lba_list_mut,
};
use super::media::{Media, Run, Written};
use super::survey::{FoundLine, Survey};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{InstanceGeometry, LineId, UnitIndex, ValidMap};
use ocssd_lightnvm::{ChunkState, Ppa};

/// What a line still needs after it was padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing: it goes on at the unit of this number, from its start.
    GoesOn(usize),
    /// Its end metadata.
    Emeta,
    /// Nothing: it has an end, but none that says anything.
    Nothing,
}

/// What ending lines needs to know.
pub struct Ender<'a> {
    pub shape: &'a InstanceGeometry,
    pub layout: &'a LineLayout,
    pub mw_cunits: u32,
}

impl Ender<'_> {
    /// The chunk and the sector of an offset.
    fn place(&self, offset: LineOffset) -> (UnitIndex, u32) {
        let (position, sector) = self.layout.split(offset);
        (self.layout.unit_at(position), sector)
    }

    /// What is not written of units, as far as their chunks take more.
    fn unwritten(&self, survey: &Survey, line: LineId, units: impl Iterator<Item = LineOffset>) -> Vec<Run> {
        let run = |offset| {
            let (unit, sector) = self.place(offset);
            let chunk = survey.chunk(line, unit);
            let takes_more = matches!(chunk.state, ChunkState::Open | ChunkState::Free);
            let (from, to) = (sector.max(chunk.written), sector + self.layout.unit);
            let first = Ppa::new(self.shape.chunk(line, unit), from);
            (takes_more && from < to).then(|| Run { first, count: to - from })
        };
        units.filter_map(run).collect()
    }

    /// Fills what is not written of units, as far as their chunks take more. Where a chunk turns out not to end where the drive
    /// reported first all is filled again, for its report is true since a write named it. What became of the last try, and
    /// whether there was another.
    fn fill(
        &self,
        media: &mut Media<'_>,
        survey: &mut Survey,
        line: LineId,
        units: &[LineOffset],
    ) -> Result<Written, MountError> {
        let mut was_elsewhere = false;
        loop {
            let before = self.written(survey, line);
            let runs = self.unwritten(survey, line, units.iter().copied());
            let written = media.write(&runs, &[])?;
            survey.look_again(media.device, self.shape, self.layout, line);
            let now = self.written(survey, line);
            assert!(
                now.iter().all(|&now| now <= self.layout.chunk),
                "a chunk of line {} is overfull",
                line.0
            );
            let is_less = now.iter().zip(&before).any(|(now, before)| now < before);
            if !is_less && (!written.is_elsewhere || now == before) {
                return Ok(Written { is_elsewhere: was_elsewhere, ..written });
            }
            was_elsewhere = true;
        }
    }

    /// Sectors written of each chunk of a line.
    fn written(&self, survey: &Survey, line: LineId) -> Vec<u32> {
        (0..self.shape.units()).map(|unit| survey.chunk(line, UnitIndex(unit)).written).collect()
    }

    /// Writes behind starts that MW_CUNITS hides, until they can be read.
    pub fn show_starts(&self, media: &mut Media<'_>, survey: &mut Survey) -> Result<(), MountError> {
        let started = survey.all_started(self.layout);
        let hidden: Vec<_> =
            started.filter(|&(line, unit)| survey.readable(line, unit) < self.layout.unit).collect();
        for (line, unit) in hidden {
            self.fill(media, survey, line, &self.units_until(unit, self.layout.unit + self.mw_cunits))?;
        }
        Ok(())
    }

    /// Writes behind starts of which the drive reported more than is written: after that MW_CUNITS does not hide them.
    pub fn show_missing_starts(&self, media: &mut Media<'_>, survey: &mut Survey) -> Result<(), MountError> {
        for (line, unit) in survey.missing_starts.clone() {
            let reported = survey.chunk(line, unit).written;
            assert!(reported >= self.layout.unit, "the start of line {} was never reported", line.0);
            self.fill(media, survey, line, &self.units_until(unit, reported + self.mw_cunits.max(1)))?;
        }
        Ok(())
    }

    /// The units of a chunk, from its start until they hold so many sectors.
    fn units_until(&self, unit: UnitIndex, sectors: u32) -> Vec<LineOffset> {
        let position = self.layout.position_of(unit);
        let end = sectors.next_multiple_of(self.layout.unit).min(self.layout.chunk);
        let starts = (0..end).step_by(usize_of(self.layout.unit));
        starts.map(|sector| self.layout.offset(position, sector)).collect()
    }

    /// Fills open chunks of lines that are nobody's, because an open chunk cannot be reset on every drive.
    pub fn pad_leftovers(&self, media: &mut Media<'_>, survey: &mut Survey) -> Result<(), MountError> {
        let ours = survey.ours();
        for line in (0..self.shape.lines()).map(LineId).filter(|line| !ours[line.index()]) {
            let is_open = |unit: &UnitIndex| survey.chunk(line, *unit).state == ChunkState::Open;
            let open: Vec<UnitIndex> = (0..self.shape.units()).map(UnitIndex).filter(is_open).collect();
            let sectors = || (0..self.layout.chunk).step_by(usize_of(self.layout.unit));
            let positions = open.iter().map(|&unit| self.layout.position_of(unit));
            let units = positions.flat_map(|at| sectors().map(move |sector| self.layout.offset(at, sector)));
            let units: Vec<LineOffset> = units.collect();
            self.fill(media, survey, line, &units)?;
        }
        Ok(())
    }

    /// Pads a line's data, as far as needed if it may go on, else all of it; what it needs then.
    pub fn pad(
        &self,
        media: &mut Media<'_>,
        survey: &mut Survey,
        line: LineId,
        may_go_on: bool,
    ) -> Result<Ending, MountError> {
        let units = || (0..self.shape.units()).map(UnitIndex);
        let before = self.written(survey, line);
        let parts = parts_of(survey, line).clone();
        let data: Vec<LineOffset> = parts.data_units(self.layout).collect();
        let has_begun = parts.emeta_units(self.layout).any(|offset| {
            let (unit, sector) = self.place(offset);
            survey.chunk(line, unit).written > sector
        });
        // Even if it has all its data: its part of the end cannot be written.
        let is_cut_short = units().any(|unit| {
            let chunk = survey.chunk(line, unit);
            chunk.state == ChunkState::Closed && chunk.written < self.layout.chunk
        });
        assert!(!data.is_empty(), "line {} has no data", line.0);
        let may_go_on = may_go_on && !has_begun && !is_cut_short;
        let end = if may_go_on { self.needed(&data, &before) } else { data.len() };
        let Written { is_sound, is_elsewhere } = self.fill(media, survey, line, &data[..end])?;
        if is_elsewhere {
            // More may be hidden than was thought.
            return self.pad(media, survey, line, may_go_on);
        }
        // The end metadata may be nearer than the end of the window.
        let is_shown =
            |survey: &Survey| units().all(|unit| survey.readable(line, unit) >= before[unit.index()]);
        if may_go_on && is_sound && end < data.len() && is_shown(survey) {
            return Ok(Ending::GoesOn(1 + end));
        }
        if end < data.len() {
            self.fill(media, survey, line, &data)?;
        }
        if !has_begun && is_shown(survey) {
            return Ok(Ending::Emeta);
        }
        // Data as well: where the end was written by a report that was behind, they were not filled.
        let all: Vec<LineOffset> = data.into_iter().chain(parts.emeta_units(self.layout)).collect();
        self.fill(media, survey, line, &all)?;
        Ok(Ending::Nothing)
    }

    /// How many units of data must be written so that there is no gap, and all that was written before can be read.
    fn needed(&self, data: &[LineOffset], before: &[u32]) -> usize {
        let is_needed = |&offset: &LineOffset| {
            let (unit, sector) = self.place(offset);
            let written = before[unit.index()];
            let shown = if written > 0 { written + self.mw_cunits } else { 0 };
            sector < shown
        };
        data.iter().rposition(is_needed).map_or(0, |last| last + 1)
    }

    /// Writes a line's end metadata, when what they name is durable: a mount believes the list of a full line. True if the media
    /// took all of it; else the line has an end that says nothing, or none.
    pub fn end(
        &self,
        media: &mut Media<'_>,
        survey: &Survey,
        found: &FoundLine,
        contents: &Contents<'_>,
    ) -> Result<bool, MountError> {
        let parts = parts_of(survey, found.line);
        let bytes = self.emeta(survey, found, contents);
        let units: Vec<LineOffset> = parts.emeta_units(self.layout).collect();
        let pieces: Vec<&[u8]> = bytes.chunks(self.layout.smeta_bytes()).collect();
        assert_eq!(units.len(), pieces.len(), "the end of line {} is whole units", found.line.0);
        let runs = self.unwritten(survey, found.line, units.iter().copied());
        // A chunk that was closed early takes nothing.
        if runs.len() < units.len() || !media.flush()? {
            media.write(&runs, &[])?;
            return Ok(false);
        }
        Ok(media.write(&runs, &pieces)?.is_sound)
    }

    fn emeta(&self, survey: &Survey, found: &FoundLine, contents: &Contents<'_>) -> Vec<u8> {
        let mut bytes = vec![0; self.layout.emeta_bytes()];
        let list = lba_list_mut(self.layout, &mut bytes);
        list.fill([0xFF; 8]);
        for &(offset, lba) in contents.named {
            list[usize_of(offset.0)] = lba.to_le_bytes();
        }
        let header = Header { uuid: contents.instance, version_minor: EMETA_VERSION_MINOR, id: found.line.0 };
        let emeta = Emeta {
            header,
            prev_id: found.smeta.prev_id,
            seq_nr: found.smeta.seq_nr,
            next_id: None,
            nr_valid_lbas: u64::try_from(contents.named.len()).expect("fewer than a line's sectors"),
            counters: contents.counters,
        };
        let count = |line| u32::try_from(contents.valid.count(line)).expect("fewer than a line's sectors");
        let counts = (0..).map(LineId).zip(survey.ours());
        let counts: Vec<Option<u32>> = counts.map(|(line, is_ours)| is_ours.then(|| count(line))).collect();
        emeta.encode(self.layout, parts_of(survey, found.line), counts.into_iter(), &mut bytes);
        bytes
    }
}

/// What a line's end metadata say.
pub struct Contents<'a> {
    pub instance: Uuid,
    pub named: &'a [(LineOffset, u64)],
    pub counters: WaCounters,
    pub valid: &'a ValidMap,
}

fn parts_of(survey: &Survey, line: LineId) -> &LineParts {
    survey.parts[line.index()].as_ref().expect("a line that was found is used")
}
