//! Garbage collection: the valid sectors of a line are read, and go through the buffer like writes.
//!
//! The victim is the line with the fewest valid sectors, as in Linux, but for lines that Linux could not use as they are,
//! which go first. Whole units are read, because whose a sector is lies beside it, or in the last of its unit. A sector the
//! media lost stays where it is, so that reading it stays an error; its line is kept. Deliberately not here: resetting lines
//! (`erase`).

use super::flight::Purpose;
use super::format::{SECTOR_META_BYTES, entry_lba};
use super::state::LinuxPblk;
use ocssd_base::{Prng, usize_of};
use ocssd_ftl::{Candidate, Line, LineId, LineState, Mapped, Place, VictimPolicy};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op};
use std::collections::{BTreeSet, VecDeque};

/// Lines that were read, and are not empty yet, at most (chosen: one drains while the next is read).
const DRAINING_MAX: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Victim {
    line: LineId,
    /// The next place to look at.
    from: Place,
    /// Units being read, or waiting to be moved.
    units: u32,
    is_read: bool,
}

/// A unit that was read.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    buffer: BufId,
    line: LineId,
    first: Place,
    /// A bit for every sector the media lost.
    lost: u64,
    /// The next sector to look at.
    next: u32,
}

/// What became of a sector of a victim.
enum Moved {
    /// It is in the buffer, or nobody needs it.
    Yes,
    /// There was no room.
    Later,
    /// It cannot be read, or nobody knows whose it is.
    Never,
}

/// Which lines are being emptied, and how far that is.
#[derive(Clone, Debug)]
pub struct Collector {
    victim: Option<Victim>,
    draining: Vec<LineId>,
    arrived: VecDeque<Arrived>,
    /// Lines with sectors that cannot be moved.
    kept: BTreeSet<LineId>,
    /// Buffers to read into.
    spare: Vec<BufId>,
    candidates: Vec<Candidate>,
}

impl Collector {
    pub fn new(spare: Vec<BufId>) -> Self {
        assert!(!spare.is_empty(), "a collector reads into a buffer");
        Self {
            victim: None,
            draining: Vec::new(),
            arrived: VecDeque::new(),
            kept: BTreeSet::new(),
            spare,
            candidates: Vec::new(),
        }
    }

    /// The line is reset: nothing of it is left to do.
    pub fn forget(&mut self, line: LineId) {
        assert!(
            self.victim.is_none_or(|victim| victim.line != line),
            "line {} is reset while it is read",
            line.0
        );
        self.draining.retain(|&draining| draining != line);
        self.kept.remove(&line);
    }

    /// True if a line is being read.
    pub fn is_reading(&self, line: LineId) -> bool {
        self.victim.is_some_and(|victim| victim.line == line)
    }

    /// Nothing is being emptied.
    pub const fn is_idle(&self) -> bool {
        self.victim.is_none() && self.draining.is_empty()
    }

    fn is_taken(&self, line: LineId) -> bool {
        self.is_reading(line) || self.draining.contains(&line) || self.kept.contains(&line)
    }
}

impl LinuxPblk {
    /// Goes on emptying lines. True if anything was done.
    pub(super) fn collect(&mut self, buffers: &mut Buffers) -> bool {
        if !self.has_written || self.is_read_only {
            return false;
        }
        let mut any = self.move_arrived(buffers);
        any |= self.choose_victim();
        any |= self.read_victim();
        any | self.push_out()
    }

    /// A line must be emptied: free ones are few, or Linux could not use it.
    fn next_condemned(&self) -> Option<LineId> {
        self.condemned
            .iter()
            .copied()
            .find(|&line| !self.collector.is_taken(line) && self.valid.count(line) > 0)
    }

    /// Nothing is left to be emptied that must be.
    pub(super) fn is_tidy(&self) -> bool {
        self.next_condemned().is_none() && self.collector.is_idle()
    }

    fn choose_victim(&mut self) -> bool {
        if self.collector.victim.is_some() || self.collector.draining.len() >= DRAINING_MAX {
            return false;
        }
        let is_low = self.lines.free_count() < self.lines_low;
        let Some(line) = self.next_condemned().or_else(|| if is_low { self.cheapest() } else { None }) else {
            return false;
        };
        assert_eq!(self.lines.get(line).state, LineState::Closed, "line {} is no victim", line.0);
        let from = self.shape.chunk_start(line, ocssd_ftl::UnitIndex(0));
        self.collector.victim = Some(Victim { line, from, units: 0, is_read: false });
        self.stats.lines_collected += 1;
        true
    }

    fn cheapest(&mut self) -> Option<LineId> {
        let mut candidates = std::mem::take(&mut self.collector.candidates);
        candidates.clear();
        candidates.extend(self.lines.iter().filter_map(|(line, entry)| {
            let valid = self.valid.count(line);
            let is_used = entry.state == LineState::Closed && valid > 0;
            let fits = is_used && self.is_worth_moving(entry, valid) && !self.collector.is_taken(line);
            let age = self.lines.next_sequence().0 - entry.sequence.0;
            fits.then_some(Candidate { line, valid, sectors: entry.data_sectors.max(valid), age })
        }));
        // Greedy draws nothing.
        let picked = VictimPolicy::Greedy.pick(&mut Prng::new(0), &candidates);
        self.collector.candidates = candidates;
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
        while let Some(mut victim) = self.collector.victim {
            let next = if victim.is_read { None } else { self.valid.next_valid(victim.line, victim.from) };
            let Some(place) = next else {
                victim.is_read = true;
                self.collector.victim = Some(victim);
                any |= victim.units == 0;
                self.end_victim();
                break;
            };
            if !self.flight.has_room(1) {
                break;
            }
            let Some(buffer) = self.collector.spare.pop() else { break };
            let (line, _, sector) = self.shape.split(place);
            let first = Place(place.0 - u64::from(sector % self.layout.unit));
            victim.from = Place(first.0 + u64::from(self.layout.unit));
            victim.units += 1;
            self.collector.victim = Some(victim);
            self.lines.begin_read(line);
            let addresses = Addresses::Run { first: self.shape.ppa(first), count: self.layout.unit };
            self.flight.send(Purpose::Collect { buffer, line, first }, Op::Read, addresses, Some(buffer), 0);
            any = true;
        }
        any
    }

    /// A victim of which all was read and moved drains, unless something stays in it.
    fn end_victim(&mut self) {
        let Some(Victim { line, units: 0, is_read: true, .. }) = self.collector.victim else { return };
        self.collector.victim = None;
        if !self.collector.kept.contains(&line) && self.valid.count(line) > 0 {
            self.collector.draining.push(line);
        }
        if self.valid.count(line) == 0 {
            self.reclaimer.suspect(line);
        }
        self.work_due = true;
    }

    /// A unit of a victim was read.
    pub(super) fn collect_done(
        &mut self,
        buffer: BufId,
        line: LineId,
        first: Place,
        completion: &Completion,
    ) {
        self.lines.end_read(line);
        let lost = if completion.status.has_data() { 0 } else { completion.failed.max(1) };
        self.stats.read_failed_gc += u64::from(lost.count_ones());
        self.collector.arrived.push_back(Arrived { buffer, line, first, lost, next: 0 });
    }

    /// Moves what was read, as far as there is room.
    fn move_arrived(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(mut arrived) = self.collector.arrived.pop_front() {
            while arrived.next < self.data_of_unit() {
                match self.move_sector(&arrived, buffers) {
                    Moved::Yes => {}
                    Moved::Never => drop(self.collector.kept.insert(arrived.line)),
                    Moved::Later => {
                        self.collector.arrived.push_front(arrived);
                        return any;
                    }
                }
                arrived.next += 1;
                any = true;
            }
            self.collector.spare.push(arrived.buffer);
            let victim = self.collector.victim.as_mut().expect("units are read of a victim");
            assert!(victim.line == arrived.line && victim.units > 0, "a unit of another line arrived");
            victim.units -= 1;
            self.end_victim();
        }
        any
    }

    fn move_sector(&mut self, arrived: &Arrived, buffers: &mut Buffers) -> Moved {
        let place = Place(arrived.first.0 + u64::from(arrived.next));
        if !self.valid.is_valid(place) {
            return Moved::Yes;
        }
        if arrived.lost >> arrived.next & 1 == 1 {
            return Moved::Never;
        }
        let Some(block) = self.named(arrived, buffers).filter(|&block| block < self.l2p.sectors()) else {
            return Moved::Never;
        };
        match self.l2p.get(block) {
            Mapped::Media(newest) if newest == place => {}
            Mapped::Buffer(slot) if self.frames.durable_place(slot) == Some(place) => {}
            // Superseded in the buffer: it stays valid until its successor is durable.
            Mapped::Buffer(slot) if self.frames.entry(slot).previous == Some(place) => return Moved::Yes,
            _ => return Moved::Never,
        }
        let (ring, from, sector) = (self.ring, arrived.buffer, arrived.next);
        let is_moved = self.put_moved(block, place, |slot| buffers.copy_data(from, sector, ring, slot.0, 1));
        if is_moved { Moved::Yes } else { Moved::Later }
    }

    /// Whose the sector is.
    fn named(&self, arrived: &Arrived, buffers: &Buffers) -> Option<u64> {
        let unit = self.layout.unit;
        if self.packed {
            let is_lost = arrived.lost >> (unit - 1) & 1 == 1;
            let entries = buffers.whole(arrived.buffer, unit - 1, 1);
            return if is_lost { None } else { entry_lba(entries, SECTOR_META_BYTES, arrived.next) };
        }
        let oob = buffers.oob(arrived.buffer, 0, unit);
        entry_lba(oob, oob.len() / usize_of(unit), arrived.next)
    }

    /// Closes a frame that would wait for more, if only that keeps a line from being free.
    fn push_out(&mut self) -> bool {
        let is_waiting = self.requests.next_change().is_some() || self.shutdown.is_begun();
        let is_all = self.collector.victim.is_none() && self.collector.arrived.is_empty();
        let is_due = !self.collector.draining.is_empty() && is_all && is_waiting && self.ready.is_empty();
        // Users may read all the time: that frees no line.
        is_due && self.flight.len() == self.requests.parts() && self.close_filling()
    }

    /// Asserts that the lists agree with the lines.
    pub(super) fn check_collector(&self) {
        for &line in &self.collector.draining {
            assert_eq!(self.lines.get(line).state, LineState::Closed, "line {} drains", line.0);
            assert!(!self.collector.kept.contains(&line), "line {} drains, and is kept", line.0);
        }
        for line in &self.condemned {
            assert_eq!(self.lines.get(*line).state, LineState::Closed, "line {} is condemned", line.0);
        }
    }
}
