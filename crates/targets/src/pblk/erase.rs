//! Lines that hold nothing any more: made durable elsewhere, reset, and opened again.
//!
//! A line may be reset only when nothing reads it and what superseded its content is durable: the records of discards are
//! written first, then comes a barrier. Deliberately not here: emptying lines that are not empty (`collect`).

use super::Pblk;
use super::canary::Canary;
use super::flight::Purpose;
use crate::vector_reset::VectorReset;
use ocssd_ftl::{ChunkLayout, LineId, LineState, OpenLine, Sequence, Stream, Turns, UnitIndex};
use ocssd_lightnvm::{Buffers, Completion, Op, Ppa};

/// A line that holds nothing any more.
#[derive(Clone, Copy, Debug)]
pub struct Dead {
    pub line: LineId,
    /// When it was found: discards up to then may have killed it.
    pub since: Sequence,
}

impl Pblk {
    /// Finds lines that died, and resets those whose barrier is done. True if anything was done.
    pub(super) fn erase(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for line in std::mem::take(&mut self.maybe_dead) {
            if self.is_dead(line) && !self.dead.iter().any(|dead| dead.line == line) {
                self.dead.push(Dead { line, since: self.sequence });
                any = true;
            }
        }
        if self.has_canary(Canary::ResetWithoutBarrier) {
            self.to_erase.extend(self.dead.drain(..).map(|dead| dead.line));
        }
        for _ in 0..self.to_erase.len() {
            let line = self.to_erase.pop_front().expect("it was counted");
            let is_read = self.lines.get(line).readers > 0 && !self.has_canary(Canary::ResetUnderReads);
            if is_read || !self.has_room_to_reset() {
                self.to_erase.push_back(line);
                continue;
            }
            self.begin_erase(line, buffers);
            any = true;
        }
        any
    }

    fn has_room_to_reset(&self) -> bool {
        let commands = self.shape.units().div_ceil(self.reset_sectors);
        let commands = usize::try_from(commands).expect("32 bits fit an index");
        self.flight.has_room(commands) && self.lists.len() >= commands
    }

    fn is_dead(&self, line: LineId) -> bool {
        let entry = self.lines.get(line);
        entry.state == LineState::Closed
            && self.valid.count(line) == 0
            && !self.to_erase.contains(&line)
            && !self.awaits_barrier(line)
            && (!self.is_map_stream(entry.stream) || self.snapshots.is_obsolete(entry.sequence))
    }

    /// Resets a line's good chunks.
    pub(super) fn begin_erase(&mut self, line: LineId, buffers: &mut Buffers) {
        self.lines.erasing(line);
        self.collector.forget(line);
        self.forget_copies(line);
        assert_eq!(self.valid.count(line), 0, "line {} is reset with data in it", line.0);
        assert!(self.open[line.index()].is_none(), "line {} is reset while it is written", line.0);
        assert!(!self.resets.contains_key(&line), "line {} is being reset already", line.0);
        let good: Vec<UnitIndex> =
            (0..self.shape.units()).map(UnitIndex).filter(|&unit| !self.lines.is_bad(line, unit)).collect();
        assert!(!good.is_empty(), "line {} has no chunk to reset", line.0);
        let per_command = usize::try_from(self.reset_sectors).expect("32 bits fit an index");
        let mut commands = 0;
        for units in good.chunks(per_command) {
            let buffer = self.lists.pop().expect("room was asked for before");
            for (place, &unit) in buffers.addresses_mut(buffer).iter_mut().zip(units) {
                *place = Ppa::new(self.shape.chunk(line, unit), 0);
            }
            let count = u32::try_from(units.len()).expect("at most 64");
            self.send_reset(line, units[0], VectorReset::new(buffer, count));
            commands += 1;
        }
        self.resets.insert(line, commands);
    }

    fn send_reset(&mut self, line: LineId, first_unit: UnitIndex, reset: VectorReset) {
        let purpose = Purpose::Reset { line, first_unit, reset };
        self.flight.send(purpose, Op::Reset, reset.addresses(), Some(reset.buffer()), 0);
    }

    /// Resets ended, or one that repeated an entry. A chunk that failed is bad from now on.
    pub(super) fn reset_done(
        &mut self,
        line: LineId,
        first: UnitIndex,
        mut reset: VectorReset,
        completion: &Completion,
    ) {
        let Some(bad) = reset.on_end(completion) else {
            // In the place of the command that has just ended.
            return self.send_reset(line, first, reset);
        };
        assert!(!self.lists.contains(&reset.buffer()), "a list was given back before its reset ended");
        self.lists.push(reset.buffer());
        let units =
            (first.0..self.shape.units()).map(UnitIndex).filter(|&unit| !self.lines.is_bad(line, unit));
        let per_command = usize::try_from(self.reset_sectors).expect("32 bits fit an index");
        let units: Vec<UnitIndex> = units.take(per_command).collect();
        for (offset, &unit) in units.iter().enumerate() {
            if bad >> offset & 1 == 1 {
                self.stats.erase_failed += 1;
                self.failed_chunks.push((line, unit));
            }
        }
        if completion.status.is_drive_failure() {
            self.stop(completion.status);
        }
        let left = self.resets.get_mut(&line).expect("the line is being reset");
        assert!(*left > 0, "more resets of line {} ended than were sent", line.0);
        assert!(*left > 0, "line {} was reset more often than asked", line.0);
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.resets.remove(&line);
        if self.stopped().is_some() {
            // Some of its chunks may be as they were: the next mount looks at them.
            return;
        }
        for &(_, unit) in self.failed_chunks.iter().filter(|&&(of, _)| of == line) {
            self.lines.mark_bad(line, unit);
        }
        self.failed_chunks.retain(|&(of, _)| of != line);
        self.valid.clear_line(line);
        self.lines.erased(line);
        self.wear.on_reset(&self.lines);
        self.stats.lines_erased += 1;
        self.limiter_update();
    }

    /// The next line for a stream, open and empty. `None` if none may be taken, or it must be reset first.
    pub(super) fn next_line(&mut self, stream: Stream) -> Option<LineId> {
        if let Some(line) = self.left_open(stream) {
            return Some(line);
        }
        if self.open.iter().flatten().count() >= self.open_lines_max {
            return None;
        }
        let privileged = self.is_gc_stream(stream) && self.streams_count() > 1 || self.is_map_stream(stream);
        let kept = if privileged { 0 } else { self.lines_kept() };
        if self.free_lines_worth() <= kept {
            self.stats.waits_for_line += 1;
            return None;
        }
        let line = self.take_line(stream)?;
        if self.lines.get(line).state == (LineState::Free { erased: false }) {
            self.to_erase.push_back(line);
            self.work_due = true;
            return None;
        }
        self.lines.open(line, stream, self.sequence);
        assert!(self.open[line.index()].is_none(), "line {} is opened twice", line.0);
        let order: Vec<UnitIndex> =
            self.stripe.iter().copied().filter(|&unit| !self.lines.is_bad(line, unit)).collect();
        let (mut layout, turns) = (self.layout_of(stream), self.turns());
        layout.mw_cunits *= u32::from(!self.has_canary(Canary::WindowIgnored));
        let open = OpenLine::new(line, layout, turns, self.shape.units(), &order);
        self.open[line.index()] = Some(Box::new(open));
        self.stats.lines_opened += 1;
        self.limiter_update();
        Some(line)
    }

    /// A line of the stream that was left open at the last power cut and can go on.
    fn left_open(&self, stream: Stream) -> Option<LineId> {
        let others = self.open.iter().flatten().filter(|open| open.room() > 0);
        let left = others.map(|open| open.line()).find(|&line| self.lines.get(line).stream == stream);
        assert!(
            left.is_none() || left != self.streams[stream.index()].line,
            "a stream left the line it writes to"
        );
        left
    }

    /// How chunks of a stream's lines are used: pieces of snapshots go out by single units.
    pub(super) fn layout_of(&self, stream: Stream) -> ChunkLayout {
        let layout = self.capacity.layout;
        if self.is_map_stream(stream) { ChunkLayout { batch: layout.unit, ..layout } } else { layout }
    }

    pub(super) fn turns(&self) -> Turns {
        Turns { depth: self.options.writes_per_unit(), strict: self.is_faithful(), active: self.active_units }
    }
}
