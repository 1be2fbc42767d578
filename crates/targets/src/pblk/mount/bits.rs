//! What is valid, from the valid bits of the checkpoint and what came after it: work for what was written since, not for the
//! size of the instance.
//!
//! The map of a checkpoint is written while writes go on, and its bits behind the map. So of a place that was written before the
//! checkpoint was begun a set bit says that its block has not changed until then, and the map names it. Of places written later
//! the bits say nothing that lasts: what lies there is all found again. Blocks found there let go of the place the map had,
//! and the result holds if there are as many valid sectors as blocks. Otherwise lines were reset that the map names, because
//! discards were forgotten or their records lost; then the map is passed over instead (`restore`). Deliberately not here:
//! reading anything.

use super::super::checkpoint_header::{CheckpointHeader, LineRow, RowState};
use super::super::state::Pblk;
use super::load::Loaded;
use super::replay::Window;
use super::survey::Survey;
use ocssd_ftl::{LineId, PhysicalAddress, Sequence, UnitIndex, ValidMap};

/// Brings map and valid bits up to date together. False if they do not fit each other; then both must be made anew.
pub fn restore(pblk: &mut Pblk, survey: &Survey, loaded: Option<&Loaded>, window: &Window) -> bool {
    assert_eq!(pblk.valid.total(), 0, "bits are restored over others");
    if loaded.is_some_and(|loaded| !take_rows(pblk, survey, loaded)) {
        return false;
    }
    let known = loaded.map_or(Sequence(0), |loaded| loaded.header.sequence);
    let Pblk { l2p, valid, options, .. } = pblk;
    let changed = window.apply(l2p, known, options, |place| {
        if valid.is_valid(place) {
            valid.clear(place, known.0);
        }
    });
    let mut run = ValidRun::new(valid);
    changed.into_iter().for_each(|place| run.add(place));
    run.end();
    valid.total() == l2p.count_mapped()
}

/// Takes over the bits of places that were written before the checkpoint and not reset since. False if they are no bits.
fn take_rows(pblk: &mut Pblk, survey: &Survey, loaded: &Loaded) -> bool {
    let length = pblk.valid.line_bytes();
    let with_bits = (0..).map(LineId).zip(&loaded.header.lines).filter(|(_, row)| row.has_bits);
    for ((line, row), bits) in with_bits.zip(loaded.rows.chunks_exact(length)) {
        let found = survey.lines.get(line.index()).copied().flatten();
        if found.is_none_or(|found| found.sequence != row.sequence) {
            continue;
        }
        if pblk.valid.decode_line(line, bits, row.opened_at.0).is_err() {
            return false;
        }
        forget_later(pblk, survey, &loaded.header, line, row);
    }
    true
}

/// Forgets the bits of a line that are of places written later, or not there any more.
fn forget_later(pblk: &mut Pblk, survey: &Survey, header: &CheckpointHeader, line: LineId, row: &LineRow) {
    assert!(row.has_bits, "line {} has bits nobody wrote", line.0);
    let sectors = pblk.capacity.layout.sectors;
    let open = header.open.iter().find(|(open, _)| row.state == RowState::Open && *open == line.0);
    for unit in (0..pblk.shape.units()).map(UnitIndex) {
        let chunk = survey.chunk(line, unit);
        let is_there = chunk.line == Some(row.sequence);
        let written = open.map_or(sectors, |(_, pointers)| pointers.get(unit.index()).copied().unwrap_or(0));
        let end = if is_there { written.min(chunk.written) } else { 0 };
        if end < sectors {
            let start = pblk.shape.chunk_start(line, unit);
            pblk.valid.forget_run(PhysicalAddress(start.0 + u64::from(end)), u64::from(sectors - end));
        }
    }
}

/// Places that become valid one after the other: neighbouring blocks are neighbours on media as a rule.
pub struct ValidRun<'a> {
    valid: &'a mut ValidMap,
    first: PhysicalAddress,
    count: u64,
}

impl<'a> ValidRun<'a> {
    pub fn new(valid: &'a mut ValidMap) -> Self {
        Self { valid, first: PhysicalAddress(0), count: 0 }
    }

    /// A place became valid. Heads part the chunks, so that no run leaves its line.
    #[inline]
    pub fn add(&mut self, place: PhysicalAddress) {
        if self.count > 0 && place.0 == self.first.0 + self.count {
            self.count += 1;
            return;
        }
        self.set();
        (self.first, self.count) = (place, 1);
    }

    /// There are no more.
    pub fn end(mut self) {
        self.set();
    }

    fn set(&mut self) {
        if self.count > 0 {
            self.valid.set_run(self.first, self.count);
        }
    }
}
