//! Whose chunks are, by their heads: one of each line, and all of those lines that may have changed since the checkpoint.
//!
//! A line is opened only when all its chunks are reset, so every chunk in use of a line is of one generation, unless its reset
//! was cut short, and then there is no other. So a head speaks for its line if the newest checkpoint knows that line as closed
//! and of the same generation: nobody has written to it since. Of lines with an open chunk, of those the checkpoint knows
//! otherwise or not at all, and if there is no checkpoint, every head is read. So what is read does not grow with the chunks in
//! use, but with the lines, 952 of a 2 TB Westlake, and with what was written. Deliberately not here: what is behind the heads.

use super::super::checkpoint_header::{CheckpointHeader, RowState};
use super::blocking::Batches;
use super::load::{self, MapLines};
use super::survey::{FoundLine, Survey, make_readable, readable, report};
use crate::mount_error::MountError;
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkLayout, Head, InstanceGeometry, LineId, Sequence, Stream, UnitIndex};
use ocssd_lightnvm::{ChunkState, Ppa};

/// Units after the first in which a head is looked for that the media lost (chosen: so many failures in a row are a chunk to
/// be lost; beyond, its neighbours must do).
const HEADS_AGAIN: u32 = 16;

/// A chunk of the instance.
type Place = (LineId, UnitIndex);

/// The heads that were read.
pub struct Heads<'a> {
    shape: &'a InstanceGeometry,
    layout: &'a ChunkLayout,
    /// Line by line.
    found: Vec<Option<(Head, Sequence)>>,
    /// Lines of which every head was asked for.
    asked: Vec<bool>,
    pub read: u64,
}

/// Looks at every chunk and finds out whose it is, and where checkpoints are. Chunks too little written for that are filled
/// until theirs can be read.
pub fn survey(
    batches: &mut Batches<'_>,
    shape: &InstanceGeometry,
    layout: &ChunkLayout,
    map_stream: Stream,
) -> Result<(Survey, MapLines, u64), MountError> {
    batches.settle_reports(shape, layout.unit)?;
    let mut survey = report(batches, shape, layout);
    let mut heads = Heads::new(shape, layout);
    heads.probe(batches, &survey)?;
    heads.identify(&mut survey);
    let of_map = |survey: &Survey| -> Vec<Option<FoundLine>> {
        survey.lines.iter().map(|line| line.filter(|found| found.stream == map_stream)).collect()
    };
    let is_open =
        |line: LineId| heads.places(line).any(|(_, unit)| survey.chunk(line, unit).state == ChunkState::Open);
    let maps = of_map(&survey);
    let first: Vec<LineId> = heads
        .lines()
        .filter(|&line| survey.lines[line.index()].is_none() || maps[line.index()].is_some() || is_open(line))
        .collect();
    heads.read_lines(batches, &mut survey, &first)?;
    heads.identify(&mut survey);
    let (instance, maps) = (survey.instance, of_map(&survey));
    let Some(ours) = instance else { return Ok((survey, MapLines::default(), heads.read)) };
    let map_lines = load::scan(batches, shape, layout, &mut survey, map_stream)?;
    let header = load::newest_header(batches, ours, &map_lines)?;
    let changed: Vec<LineId> =
        heads.lines().filter(|&line| !is_settled(&survey, header.as_ref(), line)).collect();
    heads.read_lines(batches, &mut survey, &changed)?;
    heads.identify(&mut survey);
    if survey.instance == instance && of_map(&survey) == maps {
        return Ok((survey, map_lines, heads.read));
    }
    // Units of several instances, or heads that were lost where it matters: nothing is taken for granted.
    let all: Vec<LineId> = heads.lines().collect();
    heads.read_lines(batches, &mut survey, &all)?;
    heads.identify(&mut survey);
    let map_lines = load::scan(batches, shape, layout, &mut survey, map_stream)?;
    Ok((survey, map_lines, heads.read))
}

/// Whether a line is as the checkpoint knows it.
fn is_settled(survey: &Survey, header: Option<&CheckpointHeader>, line: LineId) -> bool {
    let Some(found) = survey.lines[line.index()] else { return true };
    let row = header.and_then(|header| header.lines.get(line.index()));
    row.is_some_and(|row| row.state == RowState::Closed && row.sequence == found.sequence)
}

impl<'a> Heads<'a> {
    fn new(shape: &'a InstanceGeometry, layout: &'a ChunkLayout) -> Self {
        let (lines, units) = (usize_of(shape.lines()), usize_of(shape.units()));
        Self { shape, layout, found: vec![None; lines * units], asked: vec![false; lines], read: 0 }
    }

    fn lines(&self) -> impl Iterator<Item = LineId> + use<> {
        (0..self.shape.lines()).map(LineId)
    }

    fn places(&self, line: LineId) -> impl Iterator<Item = Place> + use<> {
        (0..self.shape.units()).map(move |unit| (line, UnitIndex(unit)))
    }

    fn index(&self, (line, unit): Place) -> usize {
        assert!(unit.0 < self.shape.units(), "unit {} is beyond the instance", unit.0);
        line.index() * usize_of(self.shape.units()) + unit.index()
    }

    /// Reads the head of one chunk of each line that has a closed one, of another unit each, so that all units are asked.
    fn probe(&mut self, batches: &mut Batches<'_>, survey: &Survey) -> Result<(), MountError> {
        let units = self.shape.units();
        let is_closed = |&(line, unit): &Place| {
            let chunk = survey.chunk(line, unit);
            chunk.state == ChunkState::Closed && chunk.written > 0
        };
        let one_of = |line: LineId| {
            let mut turned = (0..units).map(move |unit| (line, UnitIndex((unit + line.0) % units)));
            turned.find(is_closed)
        };
        let probed: Vec<Place> = self.lines().filter_map(one_of).collect();
        self.read_sector(batches, survey, &probed, 0)
    }

    /// Reads every head of lines of which that was not done.
    fn read_lines(
        &mut self,
        batches: &mut Batches<'_>,
        survey: &mut Survey,
        lines: &[LineId],
    ) -> Result<(), MountError> {
        let due: Vec<LineId> = lines.iter().copied().filter(|line| !self.asked[line.index()]).collect();
        due.iter().for_each(|line| self.asked[line.index()] = true);
        let places: Vec<Place> = due.iter().flat_map(|&line| self.places(line)).collect();
        let layout = *self.layout;
        let is_young = |survey: &Survey, &(line, unit): &Place| {
            let chunk = survey.chunk(line, unit);
            chunk.written > 0 && readable(&layout, chunk) == 0
        };
        let young: Vec<Place> = places.iter().copied().filter(|place| is_young(survey, place)).collect();
        make_readable(batches, self.shape, self.layout, survey, &young)?;
        self.read_places(batches, survey, &places)?;
        // The head behind the lost one may be too young to be read.
        let is_hidden = |&&(line, unit): &&Place| {
            let chunk = survey.chunk(line, unit);
            let seen = readable(&layout, chunk);
            let is_missing = self.found[self.index((line, unit))].is_none() && seen > 0;
            is_missing && seen < chunk.written && seen <= HEADS_AGAIN * layout.unit
        };
        let hidden: Vec<Place> = places.iter().filter(is_hidden).copied().collect();
        if !hidden.is_empty() {
            make_readable(batches, self.shape, self.layout, survey, &hidden)?;
            self.read_places(batches, survey, &places)?;
        }
        Ok(())
    }

    /// Reads the heads of chunks as far as they are not known. The first sector of a head is as good as any; the media may
    /// have lost it, or the whole unit, which was then written again behind.
    fn read_places(
        &mut self,
        batches: &mut Batches<'_>,
        survey: &Survey,
        places: &[Place],
    ) -> Result<(), MountError> {
        let unit = self.layout.unit;
        for sector in [0, 1].into_iter().chain((1..=HEADS_AGAIN).map(|number| number * unit)) {
            self.read_sector(batches, survey, places, sector)?;
        }
        Ok(())
    }

    /// Reads `sector` of each chunk whose head is not known.
    fn read_sector(
        &mut self,
        batches: &mut Batches<'_>,
        survey: &Survey,
        places: &[Place],
        sector: u32,
    ) -> Result<(), MountError> {
        let can_be_read = |&&(line, unit): &&Place| sector < readable(self.layout, survey.chunk(line, unit));
        let missing: Vec<Place> = places
            .iter()
            .filter(|&&place| self.found[self.index(place)].is_none())
            .filter(can_be_read)
            .copied()
            .collect();
        let ppas: Vec<Ppa> =
            missing.iter().map(|&(line, unit)| Ppa::new(self.shape.chunk(line, unit), sector)).collect();
        let mut next = missing.iter();
        batches.read_sectors(&ppas, |found| {
            let index = self.index(*next.next().expect("every sector is told once"));
            self.found[index] =
                found.tag.ok().and_then(|tag| Some((Head::decode(tag, &found.content).ok()?, tag.sequence)));
        })?;
        self.read += u64::try_from(missing.len()).expect("a count fits 64 bits");
        Ok(())
    }

    /// Takes the instance of the youngest line for ours; the youngest sound head of a line names its generation, and chunks
    /// of it whose head is lost, or was not asked for, belong to it too: a line is opened only when all its chunks are reset.
    fn identify(&self, survey: &mut Survey) {
        let Some((youngest, _)) = self.found.iter().flatten().max_by_key(|(head, _)| head.line) else {
            return;
        };
        assert!(youngest.line.0 > 0, "a head of no generation");
        survey.instance = Some(youngest.instance);
        survey.blocks = youngest.blocks;
        for line in self.lines() {
            let ours = |place: Place| {
                let head = self.found[self.index(place)];
                head.filter(|(head, _)| head.instance == youngest.instance)
            };
            // Two generations in a line: the older one was being reset when the power went.
            let newest = self.places(line).filter_map(ours).max_by_key(|(head, _)| head.line);
            let found = newest.map(|(head, opened_at)| FoundLine {
                sequence: head.line,
                stream: head.stream,
                opened_at,
                resets: head.resets,
            });
            survey.lines[line.index()] = found;
            for (line, unit) in self.places(line) {
                let is_used = readable(self.layout, survey.chunk(line, unit)) > 0;
                let of_line = match self.found[self.index((line, unit))] {
                    Some(_) => ours((line, unit)).map(|(head, _)| head.line),
                    None => found.map(|found| found.sequence),
                };
                survey.chunk_mut(line, unit).line = of_line.filter(|_| is_used);
            }
        }
    }
}
