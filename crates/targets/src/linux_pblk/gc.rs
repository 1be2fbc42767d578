//! Garbage collection: the valid sectors of a line are read, and go through the buffer like writes.
//!
//! The victim is the line with the fewest valid sectors, as in Linux. Lines that Linux could not use as they are come when free
//! lines are not few: each power cut costs the line that is written, and where one comes after the other, those that hold least
//! give most for what can be moved in between. Whole units are read, because whose a sector is lies beside it, or in the last of
//! its unit. A sector the media lost stays where it is, so that reading it stays an error; its line is kept. Deliberately not
//! here: resetting lines (`reset`).

use super::flight::Purpose;
use super::format::{SECTOR_META_BYTES, entry_lba};
use super::state::LinuxPblk;
use ocssd_base::{Prng, usize_of};
use ocssd_ftl::{
    Candidate, Line, LineId, LineState, Mapped, PhysicalAddress, ReadPosition, RelocationRead, Relocator,
    StripeOrder, Victim, VictimPolicy, is_newest_at,
};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op};
use std::collections::BTreeSet;

/// Lines that were read, and are not empty yet, at most (chosen: one drains while the next is read).
const DRAINING_MAX: usize = 2;

/// A unit of a victim that was read; with the place of its first sector.
type GcRead = RelocationRead<PhysicalAddress>;

/// What became of a sector of a victim.
enum Moved {
    /// It is in the buffer, or nobody needs it.
    Yes,
    /// There was no room.
    Later,
    /// It cannot be read, or nobody knows whose it is.
    Never,
}

/// What garbage collection has to do.
#[derive(Clone, Debug)]
pub struct Gc {
    /// Lines that are being emptied.
    relocator: Relocator<PhysicalAddress>,
    /// By whole units, as they were written.
    order: StripeOrder,
    /// Lines with sectors that cannot be moved.
    kept: BTreeSet<LineId>,
    candidates: Vec<Candidate>,
}

impl Gc {
    pub fn new(buffers: Vec<BufId>, order: StripeOrder) -> Self {
        Self { relocator: Relocator::new(buffers, 1), order, kept: BTreeSet::new(), candidates: Vec::new() }
    }

    /// The line is reset: nothing of it is left to do.
    pub fn line_reset(&mut self, line: LineId) {
        assert!(!self.is_reading(line), "line {} is reset while it is read", line.0);
        self.relocator.line_reset(line);
        self.kept.remove(&line);
    }

    /// True if a line is being read.
    pub fn is_reading(&self, line: LineId) -> bool {
        self.relocator.is_reading(line)
    }

    /// Nothing is being emptied.
    pub fn is_idle(&self) -> bool {
        self.relocator.victim().is_none() && self.relocator.awaiting().len() == 0
    }

    fn is_taken(&self, line: LineId) -> bool {
        self.relocator.is_busy_with(line) || self.kept.contains(&line)
    }
}

impl LinuxPblk {
    /// Goes on emptying lines. True if anything was done.
    pub(super) fn collect(&mut self, buffers: &mut Buffers) -> bool {
        if !self.has_written || self.is_read_only {
            return false;
        }
        let mut any = self.move_reads(buffers);
        any |= self.choose_victim();
        any |= self.read_victim();
        any | self.push_out()
    }

    /// A line that Linux could not use, and that must be emptied for that.
    fn next_condemned(&self) -> Option<LineId> {
        self.condemned.iter().copied().find(|&line| !self.gc.is_taken(line) && self.valid.count(line) > 0)
    }

    /// Nothing is left to be emptied that must be.
    pub(super) fn is_tidy(&self) -> bool {
        self.next_condemned().is_none() && self.gc.is_idle()
    }

    fn choose_victim(&mut self) -> bool {
        if self.gc.relocator.victim().is_some() || self.gc.relocator.awaiting().len() >= DRAINING_MAX {
            return false;
        }
        let is_low = self.lines.free_count() < self.lines_low;
        let cheapest = if is_low { self.cheapest() } else { None };
        let Some(line) = cheapest.or_else(|| self.next_condemned()) else { return false };
        assert_eq!(self.lines.get(line).state, LineState::Closed, "line {} is no victim", line.0);
        self.gc.relocator.begin(line, self.valid.count(line));
        self.stats.lines_collected += 1;
        true
    }

    fn cheapest(&mut self) -> Option<LineId> {
        let mut candidates = std::mem::take(&mut self.gc.candidates);
        candidates.clear();
        candidates.extend(self.lines.iter().filter_map(|(line, entry)| {
            let valid = self.valid.count(line);
            let is_used = entry.state == LineState::Closed && valid > 0;
            let fits = is_used && self.is_worth_moving(entry, valid) && !self.gc.is_taken(line);
            let age = self.lines.next_sequence().0 - entry.sequence.0;
            fits.then_some(Candidate { line, valid, sectors: entry.data_sectors.max(valid), age })
        }));
        // Greedy draws nothing.
        let picked = VictimPolicy::Greedy.pick(&mut Prng::new(0), &candidates);
        self.gc.candidates = candidates;
        picked
    }

    /// Whether emptying a line gives more than the padding of a unit takes: else full lines would be moved for ever, until the
    /// media are worn out.
    fn is_worth_moving(&self, line: &Line, valid: u64) -> bool {
        let (unit, data) = (u64::from(self.layout.unit), u64::from(self.data_of_unit()));
        valid + data <= line.data_sectors / unit * data
    }

    /// Sends reads of the victim's units that hold something.
    fn read_victim(&mut self) -> bool {
        let mut any = false;
        while let Some(victim) = self.gc.relocator.victim().filter(|victim| !victim.is_read()) {
            let Some((first, next)) = self.next_unit(victim) else {
                self.gc.relocator.all_sent(victim.line);
                any |= self.end_victim();
                break;
            };
            if !self.flight.has_room(1) {
                break;
            }
            let Some(buffer) = self.gc.relocator.take_buffer() else { break };
            let line = victim.line;
            self.gc.relocator.read_sent(line, next);
            self.lines.begin_read(line);
            let addresses = Addresses::Run { first: self.shape.ppa(first), count: self.layout.unit };
            self.flight.send(Purpose::GcRead { buffer, line, first }, Op::Read, addresses, Some(buffer), 0);
            any = true;
        }
        any
    }

    /// The next unit of a victim with a valid sector, and where to go on behind it.
    fn next_unit(&self, victim: Victim) -> Option<(PhysicalAddress, ReadPosition)> {
        let mut at = victim.next;
        while let Some(piece) = self.gc.order.piece(at) {
            assert_eq!(piece.count, self.layout.unit, "a unit of line {} is read in part", victim.line.0);
            let start = self.shape.chunk_start(victim.line, piece.unit);
            let first = PhysicalAddress(start.0 + u64::from(piece.sector));
            at = self.gc.order.after(at, piece.count);
            if self.valid.bits(first, piece.count) != 0 {
                return Some((first, at));
            }
        }
        None
    }

    /// A victim of which all was read and moved drains, unless something stays in it.
    fn end_victim(&mut self) -> bool {
        let Some(victim) = self.gc.relocator.take_moved() else { return false };
        let (line, valid) = (victim.line, self.valid.count(victim.line));
        if !self.gc.kept.contains(&line) && valid > 0 {
            self.gc.relocator.wait_durable(line, 0);
        }
        if valid == 0 {
            self.reclaimer.suspect(line);
        }
        self.work_due = true;
        true
    }

    /// A unit of a victim was read.
    pub(super) fn gc_read_done(
        &mut self,
        buffer: BufId,
        line: LineId,
        first: PhysicalAddress,
        completion: &Completion,
    ) {
        self.lines.end_read(line);
        assert!(self.gc.is_reading(line), "line {} was read that is no victim", line.0);
        assert_eq!(self.shape.line_of(first), line, "a unit of another line was read");
        let failed = if completion.status.has_data() { 0 } else { completion.failed.max(1) };
        self.stats.read_failed_gc += u64::from(failed.count_ones());
        let (line, count) = (Some(line), self.data_of_unit());
        self.gc.relocator.read_done(GcRead { buffer, line, count, next: 0, failed, with: first });
    }

    /// Moves what was read, as far as there is room.
    fn move_reads(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(mut read) = self.gc.relocator.next_read() {
            while read.next < read.count {
                match self.move_sector(&read, buffers) {
                    Moved::Yes => {}
                    Moved::Never => {
                        self.gc.kept.insert(read.line.expect("units are read of a victim"));
                    }
                    Moved::Later => {
                        self.gc.relocator.put_back(read);
                        return any;
                    }
                }
                read.next += 1;
                any = true;
            }
            self.gc.relocator.all_moved(&read);
            self.end_victim();
        }
        any
    }

    fn move_sector(&mut self, read: &GcRead, buffers: &mut Buffers) -> Moved {
        let place = PhysicalAddress(read.with.0 + u64::from(read.next));
        if !self.valid.is_valid(place) {
            return Moved::Yes;
        }
        if read.failed >> read.next & 1 == 1 {
            return Moved::Never;
        }
        let Some(block) = self.named(read, buffers).filter(|&block| block < self.l2p.sectors()) else {
            return Moved::Never;
        };
        if !is_newest_at(&self.l2p, &self.write_buffer, block, place) {
            let Mapped::Buffer(slot) = self.l2p.get(block) else { return Moved::Never };
            // Superseded in the buffer: it stays valid until its successor is durable.
            let is_awaited = self.write_buffer.entry(slot).previous == Some(place);
            return if is_awaited { Moved::Yes } else { Moved::Never };
        }
        let (ring, from, sector) = (self.ring, read.buffer, read.next);
        let is_moved = self.put_moved(block, place, |slot| buffers.copy_data(from, sector, ring, slot.0, 1));
        if is_moved { Moved::Yes } else { Moved::Later }
    }

    /// Whose the sector is.
    fn named(&self, read: &GcRead, buffers: &Buffers) -> Option<u64> {
        let unit = self.layout.unit;
        if self.packed {
            let is_lost = read.failed >> (unit - 1) & 1 == 1;
            let entries = buffers.whole(read.buffer, unit - 1, 1);
            return if is_lost { None } else { entry_lba(entries, SECTOR_META_BYTES, read.next) };
        }
        let oob = buffers.oob(read.buffer, 0, unit);
        entry_lba(oob, oob.len() / usize_of(unit), read.next)
    }

    /// Closes a buffer unit that would wait for more, if only that keeps a line from being free.
    fn push_out(&mut self) -> bool {
        let is_waiting = self.requests.next_change().is_some() || self.shutdown.is_begun();
        let is_all = self.gc.relocator.victim().is_none() && !self.gc.relocator.has_reads();
        let is_due = self.gc.relocator.awaiting().len() > 0 && is_all && is_waiting && self.ready.is_empty();
        // Users may read all the time: that frees no line.
        is_due && self.flight.len() == self.requests.parts() && self.close_filling()
    }

    /// Asserts that the lists agree with the lines.
    pub(super) fn check_gc(&self) {
        for line in self.gc.relocator.awaiting() {
            assert_eq!(self.lines.get(line).state, LineState::Closed, "line {} drains", line.0);
            assert!(!self.gc.kept.contains(&line), "line {} drains, and is kept", line.0);
        }
        for line in &self.condemned {
            assert_eq!(self.lines.get(*line).state, LineState::Closed, "line {} is condemned", line.0);
        }
    }
}
