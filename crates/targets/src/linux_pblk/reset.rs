//! Lines that hold nothing any more: reset, to be opened again.
//!
//! A line is reset when nothing reads it and a barrier made durable what superseded it. The chunk with its start metadata
//! goes first and alone: without it the line is free for whoever mounts the drive after a power cut, with it and without the
//! others it would be a line that was only begun. Deliberately not here: emptying lines (`gc`), the steps a line goes
//! through (`ocssd_ftl::Reclaimer`).

use super::flight::{Flight, Purpose};
use super::format::{LineParts, Position};
use super::state::LinuxPblk;
use crate::vector_reset::VectorReset;
use ocssd_ftl::{LineId, LineState, ResetCommand, ResetOrder, UnitIndex};
use ocssd_lightnvm::{Buffers, Completion, Op, Ppa, VECTOR_MAX};

impl LinuxPblk {
    /// Finds lines that died, and resets those that may be. True if anything was done.
    pub(super) fn reset(&mut self, buffers: &mut Buffers) -> bool {
        if !self.has_written || self.is_read_only {
            return false;
        }
        let mut any = false;
        for line in self.reclaimer.take_suspects() {
            // One that is being read is looked at again when that ends.
            let is_dead = self.lines.get(line).state == LineState::Closed && self.valid.count(line) == 0;
            if is_dead && !self.gc.is_reading(line) && !self.waits_for_reset(line) {
                any |= self.reclaimer.found_empty(line, self.sequence);
            }
        }
        loop {
            let Self { reclaimer, lines, .. } = self;
            let Some(line) = reclaimer.next_due(|line| lines.get(line).readers == 0) else { break };
            self.begin_reset(line);
            any = true;
        }
        any | self.send_resets(buffers)
    }

    /// The line was found to be empty before.
    fn waits_for_reset(&self, line: LineId) -> bool {
        self.reclaimer.is_due(line) || self.flushes.freed().iter().any(|empty| empty.line == line)
    }

    fn begin_reset(&mut self, line: LineId) {
        self.lines.erasing(line);
        self.gc.line_reset(line);
        self.condemned.remove(&line);
        assert_eq!(self.valid.count(line), 0, "line {} is reset with data in it", line.0);
        let positions = (0..self.layout.units()).map(|position| self.layout.unit_at(Position(position)));
        // The chunk with the start metadata first.
        let good: Vec<UnitIndex> = positions.filter(|&unit| !self.lines.is_bad(line, unit)).collect();
        self.reclaimer.begin(line, good, ResetOrder::FirstAlone);
    }

    fn send_resets(&mut self, buffers: &mut Buffers) -> bool {
        let Self { reclaimer, reset_lists, flight, shape, .. } = self;
        let mut any = false;
        while !reset_lists.is_empty()
            && flight.has_room(1)
            && let Some(command) = reclaimer.next_command(VECTOR_MAX)
        {
            let buffer = reset_lists.pop().expect("one is there");
            let units = reclaimer.chunks(&command);
            for (place, &unit) in buffers.addresses_mut(buffer).iter_mut().zip(units) {
                *place = Ppa::new(shape.chunk(command.line, unit), 0);
            }
            send_reset(flight, command, VectorReset::new(buffer, command.count()));
            any = true;
        }
        any
    }

    /// Resets ended, or one that repeated an entry. A chunk that failed is bad from now on.
    pub(super) fn reset_done(
        &mut self,
        command: ResetCommand,
        mut reset: VectorReset,
        completion: &Completion,
    ) {
        let Some(bad) = reset.on_end(completion) else {
            // In the place of the command that has just ended.
            return send_reset(&mut self.flight, command, reset);
        };
        self.stats.reset_failed += u64::from(bad.count_ones());
        assert!(!self.reset_lists.contains(&reset.buffer()), "a list was given back before its reset ended");
        self.reset_lists.push(reset.buffer());
        // Once the drive failed, some of the chunks may be as they were: the next mount looks at them.
        if self.reclaimer.command_ended(&command, bad) && self.stopped.is_none() {
            self.end_reset(command.line);
        }
    }

    fn end_reset(&mut self, line: LineId) {
        for unit in self.reclaimer.end(line) {
            self.lines.mark_bad(line, unit);
        }
        let is_bad = |position| self.lines.is_bad(line, self.layout.unit_at(position));
        if LineParts::new(&self.layout, is_bad).is_none() {
            // Too few chunks are left for its metadata: Linux does not use it either.
            (0..self.shape.units()).for_each(|unit| self.lines.mark_bad(line, UnitIndex(unit)));
        }
        self.valid.clear_line(line);
        self.lines.was_reset(line);
        self.to_open = self.to_open.filter(|&to_open| to_open != line);
        self.stats.lines_reset += 1;
    }
}

fn send_reset(flight: &mut Flight, command: ResetCommand, reset: VectorReset) {
    flight.send(Purpose::Reset { command, reset }, Op::Reset, reset.addresses(), Some(reset.buffer()), 0);
}
