//! Lines that hold nothing any more: reset, to be opened again.
//!
//! A line is reset when nothing reads it and a barrier made durable what superseded it. The chunk with its start metadata
//! goes first and alone: without it the line is free for whoever mounts the drive after a power cut, with it and without the
//! others it would be a line that was only begun. Deliberately not here: emptying lines (`collect`).

use super::flight::{Flight, Purpose};
use super::format::{LineParts, Position};
use super::state::LinuxPblk;
use crate::vector_reset::VectorReset;
use ocssd_base::usize_of;
use ocssd_ftl::{LineId, LineState, UnitIndex};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Ppa, VECTOR_MAX};
use std::collections::{BTreeMap, VecDeque};

/// Resets of a line.
#[derive(Clone, Debug)]
struct Reset {
    /// Units whose chunks are still to be reset, in the order they are asked for.
    left: Vec<UnitIndex>,
    commands: u32,
    failed: Vec<UnitIndex>,
}

/// Lines on their way to be free.
#[derive(Clone, Debug)]
pub struct Eraser {
    /// Lines whose last valid sector went, or that were closed, to be looked at.
    maybe_dead: Vec<LineId>,
    /// Lines that hold nothing, waiting for a barrier.
    dead: Vec<LineId>,
    /// Lines to be reset.
    due: VecDeque<LineId>,
    resets: BTreeMap<LineId, Reset>,
    /// A free line that was taken, and must be reset before it is opened.
    taken: Option<LineId>,
    /// Lists of chunks.
    lists: Vec<BufId>,
}

impl Eraser {
    pub fn new(lists: Vec<BufId>) -> Self {
        assert!(!lists.is_empty(), "resets need a list of chunks");
        let (due, resets) = (VecDeque::new(), BTreeMap::new());
        Self { maybe_dead: Vec::new(), dead: Vec::new(), due, resets, taken: None, lists }
    }

    /// The line may hold nothing any more.
    pub fn look_at(&mut self, line: LineId) {
        self.maybe_dead.push(line);
    }

    /// A free line is reset, because it is to be opened.
    pub fn take(&mut self, line: LineId) {
        assert!(self.taken.is_none(), "two lines are taken");
        self.taken = Some(line);
        self.due.push_back(line);
    }

    /// The line that was taken and is not reset yet.
    pub const fn taken(&self) -> Option<LineId> {
        self.taken
    }

    /// The lines that wait for a barrier.
    pub fn take_dead(&mut self) -> Vec<LineId> {
        std::mem::take(&mut self.dead)
    }

    /// The barrier a line waited for is done, or failed.
    pub fn freed(&mut self, line: LineId, is_sound: bool) {
        if is_sound {
            self.due.push_back(line);
        } else {
            self.dead.push(line);
        }
    }

    /// Lines wait to be reset, when nothing else is to be done: until they are not read any more.
    pub fn awaits_readers(&self) -> bool {
        !self.due.is_empty()
    }

    /// Nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.maybe_dead.is_empty() && self.dead.is_empty() && self.due.is_empty() && self.resets.is_empty()
    }
}

impl LinuxPblk {
    /// Finds lines that died, and resets those that may be. True if anything was done.
    pub(super) fn erase(&mut self, buffers: &mut Buffers) -> bool {
        if !self.has_written || self.is_read_only {
            return false;
        }
        let mut any = false;
        for line in std::mem::take(&mut self.eraser.maybe_dead) {
            // One that is being read is looked at again when that ends.
            let is_dead = self.lines.get(line).state == LineState::Closed && self.valid.count(line) == 0;
            if is_dead && !self.collector.is_reading(line) && !self.eraser.dead.contains(&line) {
                assert!(!self.eraser.resets.contains_key(&line), "line {} dies while it is reset", line.0);
                self.eraser.dead.push(line);
                any = true;
            }
        }
        for _ in 0..self.eraser.due.len() {
            let line = self.eraser.due.pop_front().expect("it was counted");
            if self.lines.get(line).readers > 0 {
                self.eraser.due.push_back(line);
                continue;
            }
            self.begin_reset(line);
            any = true;
        }
        any | self.send_resets(buffers)
    }

    fn begin_reset(&mut self, line: LineId) {
        self.lines.erasing(line);
        self.collector.forget(line);
        self.condemned.remove(&line);
        assert_eq!(self.valid.count(line), 0, "line {} is reset with data in it", line.0);
        let positions = (0..self.layout.units()).map(|position| self.layout.unit_at(Position(position)));
        let mut left: Vec<UnitIndex> = positions.filter(|&unit| !self.lines.is_bad(line, unit)).collect();
        assert!(!left.is_empty(), "line {} has no chunk to reset", line.0);
        // Taken from the end: the chunk with the start metadata first.
        left.reverse();
        self.eraser.resets.insert(line, Reset { left, commands: 0, failed: Vec::new() });
    }

    fn send_resets(&mut self, buffers: &mut Buffers) -> bool {
        let Self { eraser, flight, shape, lines, layout, .. } = self;
        let mut any = false;
        for (&line, reset) in &mut eraser.resets {
            let good = lines.get(line).good_chunks;
            while !reset.left.is_empty() && !eraser.lists.is_empty() && flight.has_room(1) {
                let is_first = reset.left.len() == usize_of(good);
                if !is_first && reset.commands > 0 && reset.left.len() + 1 == usize_of(good) {
                    break;
                }
                let most = if is_first { 1 } else { usize_of(VECTOR_MAX) };
                let at = reset.left.len().saturating_sub(most);
                let units = reset.left.split_off(at);
                let buffer = eraser.lists.pop().expect("one is there");
                for (place, &unit) in buffers.addresses_mut(buffer).iter_mut().zip(units.iter().rev()) {
                    *place = Ppa::new(shape.chunk(line, unit), 0);
                }
                let count = u32::try_from(units.len()).expect("at most 64");
                assert!(count <= layout.units(), "more chunks than units");
                send_reset(flight, line, VectorReset::new(buffer, count));
                reset.commands += 1;
                any = true;
            }
        }
        any
    }

    /// Resets ended, or one that repeated an entry. A chunk that failed is bad from now on.
    pub(super) fn reset_done(
        &mut self,
        line: LineId,
        mut command: VectorReset,
        completion: &Completion,
        buffers: &Buffers,
    ) {
        let Some(bad) = command.on_end(completion) else {
            // In the place of the command that has just ended.
            return send_reset(&mut self.flight, line, command);
        };
        let reset = self.eraser.resets.get_mut(&line).expect("the line is being reset");
        let list = buffers.addresses(command.buffer());
        for entry in (0..VECTOR_MAX).filter(|entry| bad >> entry & 1 == 1) {
            let chunk = list[usize_of(entry)].chunk;
            let unit =
                (0..self.shape.units()).map(UnitIndex).find(|&unit| self.shape.chunk(line, unit) == chunk);
            reset.failed.push(unit.expect("a chunk of the line"));
            self.stats.erase_failed += 1;
        }
        assert!(
            !self.eraser.lists.contains(&command.buffer()),
            "a list was given back before its reset ended"
        );
        assert!(reset.failed.len() <= usize_of(self.shape.units()), "line {} has fewer chunks", line.0);
        self.eraser.lists.push(command.buffer());
        assert!(reset.commands > 0, "more resets of line {} ended than were sent", line.0);
        reset.commands -= 1;
        // Once the drive failed, some of the chunks may be as they were: the next mount looks at them.
        if reset.commands == 0 && reset.left.is_empty() && self.stopped.is_none() {
            self.end_reset(line);
        }
    }

    fn end_reset(&mut self, line: LineId) {
        let reset = self.eraser.resets.remove(&line).expect("the line was being reset");
        for &unit in &reset.failed {
            self.lines.mark_bad(line, unit);
        }
        let is_bad = |position| self.lines.is_bad(line, self.layout.unit_at(position));
        if LineParts::new(&self.layout, is_bad).is_none() {
            // Too few chunks are left for its metadata: Linux does not use it either.
            (0..self.shape.units()).for_each(|unit| self.lines.mark_bad(line, UnitIndex(unit)));
        }
        self.valid.clear_line(line);
        self.lines.erased(line);
        self.eraser.taken = self.eraser.taken.filter(|&taken| taken != line);
        self.stats.lines_erased += 1;
    }
}

fn send_reset(flight: &mut Flight, line: LineId, reset: VectorReset) {
    flight.send(Purpose::Reset { line, reset }, Op::Reset, reset.addresses(), Some(reset.buffer()), 0);
}
