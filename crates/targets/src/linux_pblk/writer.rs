//! From buffer units to the open line: one command per unit, the line's own metadata among them.
//!
//! There is one line at a time, full and ended before the next begins; Linux writes the end of a line among the data of
//! the next, and recovers at most one line that is not full. Deliberately not here: whose turn it is (`open_line`), what
//! becomes of a write (`programmed`).

use super::canary::Canary;
use super::flight::{Carried, Purpose};
use super::format::{
    EMETA_VERSION_MINOR, Emeta, Header, LineParts, SECTOR_META_BYTES, SEQUENCE_MAX, SMETA_VERSION_MINOR,
    Smeta, put_entries,
};
use super::open_line::{LineContent, OpenLine, UnitWrite};
use super::state::{LineEnd, LinuxPblk};
use super::write::STREAM;
use ocssd_base::usize_of;
use ocssd_ftl::{BufferUnitId, Kind, LineSequence, LineState, PhysicalAddress};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Op, Ppa};

impl LinuxPblk {
    /// Sends every write that can go out. True if any went.
    pub(super) fn write_out(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while self.flight.has_room(1) && self.write_next(buffers) {
            any = true;
        }
        any
    }

    fn write_next(&mut self, buffers: &mut Buffers) -> bool {
        if self.open.is_none() && (self.ready.is_empty() || !self.open_next()) {
            return false;
        }
        let open = self.open.as_ref().expect("a line was opened");
        let Some(write) = open.next() else { return false };
        if matches!(write.piece, LineContent::Emeta(_)) && !self.may_end() {
            return false;
        }
        if write.piece == LineContent::Data {
            if let Some(buffer_unit) = self.ready.pop_front() {
                self.write_buffer_unit(buffer_unit, write, buffers);
                return true;
            }
            if !self.shutdown.is_filling() {
                return false;
            }
        }
        let Some(buffer) = self.own.pop() else { return false };
        self.fill_own(buffer, write, buffers);
        self.send(write, Carried::Own(buffer), std::iter::empty());
        true
    }

    fn is_before_end(&self) -> bool {
        let is_early = self.options.has_canary(Canary::EndTooEarly);
        self.end == LineEnd::Due && (is_early || self.open.as_ref().is_some_and(|open| open.is_quiet()))
    }

    /// Whether the end of the line can be written: when everything before it is durable.
    fn may_end(&mut self) -> bool {
        match self.end {
            LineEnd::Ahead => {
                let is_quiet = self.open.as_ref().is_some_and(|open| open.is_quiet());
                let is_early = self.options.has_canary(Canary::EndTooEarly);
                if is_early || is_quiet && self.options.has_canary(Canary::LineWithoutBarrier) {
                    self.end = LineEnd::Due;
                    return true;
                }
                if is_quiet {
                    self.end = LineEnd::Barrier;
                    self.flight.send(Purpose::EndBarrier, Op::Flush, Addresses::None, None, 0);
                }
                false
            }
            LineEnd::Barrier => false,
            LineEnd::Due | LineEnd::Known => true,
        }
    }

    /// What is in the open line is durable, or the drive could not say so: then it is tried again.
    pub(super) fn end_barrier_done(&mut self, is_sound: bool) {
        assert_eq!(self.end, LineEnd::Barrier, "a barrier ended that was not sent");
        self.end = if is_sound { LineEnd::Due } else { LineEnd::Ahead };
    }

    /// Opens the next line; false if none is free, it must be reset first, or the numbers of lines are used up.
    fn open_next(&mut self) -> bool {
        if self.to_open.is_some() || number_of(self.lines.next_sequence()) > SEQUENCE_MAX {
            return false;
        }
        let Some(line) = self.lines.take_free() else { return false };
        if self.lines.get(line).state != (LineState::Free { was_reset: true }) {
            self.to_open = Some(line);
            self.reclaimer.reset_soon(line);
            self.work_due = true;
            return false;
        }
        let parts =
            LineParts::new(&self.layout, |position| self.lines.is_bad(line, self.layout.unit_at(position)));
        let parts = parts.expect("a line with too few chunks is bad");
        assert!(parts.data_sectors > 0, "line {} is opened without room for data", line.0);
        self.lines.open(line, STREAM, self.sequence);
        // What can be gained by collecting it: all of it, padding as well.
        self.lines.add_data(line, parts.data_sectors);
        let prev = self.last_line.replace(line).map(|line| line.0);
        self.open = Some(Box::new(OpenLine::new(line, prev, &self.layout, parts, self.mw_cunits)));
        self.stats.lines_opened += 1;
        true
    }

    fn write_buffer_unit(&mut self, buffer_unit: BufferUnitId, write: UnitWrite, buffers: &mut Buffers) {
        let first = self.write_buffer.first_slot(buffer_unit).0;
        let unit = self.layout.unit;
        let filled = self.write_buffer.filled(buffer_unit);
        buffers.data_mut(self.ring, first + filled, unit - filled).fill(0);
        let mut lbas = Vec::with_capacity(usize_of(unit));
        assert_eq!(
            self.write_buffer.copies(buffer_unit),
            0,
            "this target's collection makes entries, no copies"
        );
        for (_, entry) in self.write_buffer.entries(buffer_unit) {
            let is_block = entry.tag.kind == Kind::Data;
            self.stats.counters.user += u64::from(is_block && !entry.from_gc);
            self.stats.counters.gc += u64::from(is_block && entry.from_gc);
            self.stats.counters.pad += u64::from(!is_block);
            lbas.push(is_block.then_some(entry.tag.block));
        }
        self.stats.counters.pad += u64::from(self.data_of_unit() - filled);
        name_sectors(buffers, (self.ring, first), unit, self.packed, &lbas);
        let open = self.open.as_ref().expect("a line is open");
        let (on, sector) = open.place(write.offset);
        let start = self.shape.chunk_start(open.line(), on);
        assert!(
            sector + unit <= self.layout.chunk,
            "buffer unit {} is written beyond its chunk",
            buffer_unit.0
        );
        self.write_buffer.programming(buffer_unit, PhysicalAddress(start.0 + u64::from(sector)));
        self.send(write, Carried::BufferUnit(buffer_unit), lbas.into_iter());
    }

    /// A unit of metadata, or of padding.
    fn fill_own(&mut self, buffer: BufId, write: UnitWrite, buffers: &mut Buffers) {
        let unit = self.layout.unit;
        buffers.data_mut(buffer, 0, unit).fill(0);
        buffers.whole_mut(buffer, 0, unit).fill(0);
        name_sectors(buffers, (buffer, 0), unit, self.packed, &[]);
        match write.piece {
            LineContent::Smeta => self.smeta().encode(&self.layout, buffers.whole_mut(buffer, 0, unit)),
            LineContent::Emeta(index) => {
                if self.end == LineEnd::Due {
                    self.complete_emeta();
                }
                let bytes = self.layout.smeta_bytes();
                let open = self.open.as_ref().expect("a line is open");
                let part = &open.emeta()[usize_of(index) * bytes..][..bytes];
                buffers.whole_mut(buffer, 0, unit).copy_from_slice(part);
            }
            LineContent::Data => self.stats.counters.pad += u64::from(self.data_of_unit()),
            LineContent::Padding => {}
        }
    }

    fn header(&self, version_minor: u8) -> Header {
        let open = self.open.as_ref().expect("a line is open");
        Header { uuid: self.instance, version_minor, id: open.line().0 }
    }

    fn smeta(&self) -> Smeta {
        let open = self.open.as_ref().expect("a line is open");
        Smeta {
            header: self.header(SMETA_VERSION_MINOR),
            prev_id: open.prev_id(),
            seq_nr: self.seq_nr(),
            window_wr_lun: self.layout.units(),
        }
    }

    /// What Linux calls the number of the open line.
    fn seq_nr(&self) -> u64 {
        let open = self.open.as_ref().expect("a line is open");
        number_of(self.lines.get(open.line()).sequence)
    }

    /// Everything of the end metadata but the list of addresses, which is there.
    fn complete_emeta(&mut self) {
        let (header, seq_nr, counters) =
            (self.header(EMETA_VERSION_MINOR), self.seq_nr(), self.stats.counters);
        let Self { open, lines, valid, layout, .. } = self;
        let open = open.as_mut().expect("a line is open");
        let counts = lines.iter().map(|(id, line)| {
            let is_used = matches!(line.state, LineState::Open | LineState::Closed);
            is_used.then(|| u32::try_from(valid.count(id)).expect("fewer than a line's sectors"))
        });
        let counts: Vec<Option<u32>> = counts.collect();
        let (prev_id, nr_valid_lbas, parts) = (open.prev_id(), open.named(), open.parts().clone());
        // Which line comes next is not known yet, and nobody reads it.
        let emeta = Emeta { header, prev_id, seq_nr, next_id: None, nr_valid_lbas, counters };
        emeta.encode(layout, &parts, counts.into_iter(), open.emeta_mut());
        assert!(self.is_before_end(), "the end of a line is made while its data are written");
        self.end = LineEnd::Known;
    }

    fn send(&mut self, write: UnitWrite, carried: Carried, lbas: impl Iterator<Item = Option<u64>>) {
        let open = self.open.as_mut().expect("a line is open");
        let (on, sector) = open.place(write.offset);
        assert!(!self.lines.is_bad(open.line(), on), "a bad chunk is written");
        let first = Ppa::new(self.shape.chunk(open.line(), on), sector);
        open.issued(write, lbas);
        let (buffer, from) = match carried {
            Carried::BufferUnit(buffer_unit) => (self.ring, self.write_buffer.first_slot(buffer_unit).0),
            Carried::Own(buffer) => (buffer, 0),
        };
        let addresses = Addresses::Run { first, count: self.layout.unit };
        let purpose = Purpose::Write { write, carried };
        self.flight.send(purpose, Op::Write { fua: false }, addresses, Some(buffer), from);
        self.stats.units_written += 1;
    }
}

/// What Linux calls the number of a line: it counts from 0, the FTL from 1.
fn number_of(sequence: LineSequence) -> u64 {
    assert!(sequence.0 > 0, "a line is open without a generation");
    sequence.0 - 1
}

/// Writes down whose the sectors of a unit are: beside them, or in the last of them. Those without a name are nobody's.
pub(super) fn name_sectors(
    buffers: &mut Buffers,
    (buffer, first): (BufId, u32),
    unit: u32,
    packed: bool,
    lbas: &[Option<u64>],
) {
    assert!(lbas.len() <= usize_of(unit - u32::from(packed)), "more blocks than sectors");
    let all = lbas.iter().copied().chain(std::iter::repeat(None)).take(usize_of(unit));
    if packed {
        put_entries(buffers.whole_mut(buffer, first + unit - 1, 1), SECTOR_META_BYTES, all);
    } else {
        let stride = buffers.format().oob_bytes;
        put_entries(buffers.oob_mut(buffer, first, unit), stride, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_an_instance_is_number_0_to_linux() {
        assert_eq!([1, 2, 77].map(|sequence| number_of(LineSequence(sequence))), [0, 1, 76]);
    }
}
