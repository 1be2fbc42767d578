//! Lines that hold nothing any more: made durable elsewhere, reset, and opened again.
//!
//! A line may be reset only when nothing reads it and what superseded its content is durable: the records of discards are
//! written first, then comes a barrier. Deliberately not here: emptying lines that are not empty (`gc`).

use super::Pblk;
use super::canary::Canary;
use super::due::Due;
use super::flight::Purpose;
use crate::vector_reset::VectorReset;
use ocssd_ftl::{
    ChunkLayout, LineId, LineState, OpenLine, ResetCommand, ResetOrder, Stream, Turns, UnitIndex,
};
use ocssd_lightnvm::{Buffers, Completion, Op, Ppa};

impl Pblk {
    /// True if a line may have died, or waits to be reset.
    #[inline]
    pub(super) fn has_to_reset(&self) -> bool {
        let is_early = self.has_canary(Canary::ResetWithoutBarrier) && !self.reclaimer.empty().is_empty();
        self.reclaimer.has_suspects() || self.reclaimer.due().len() > 0 || is_early
    }

    /// Finds lines that died, and resets those whose barrier is done. True if anything was done.
    pub(super) fn reset(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for line in self.reclaimer.take_suspects() {
            any |= self.is_dead(line) && self.reclaimer.found_empty(line, self.sequence);
        }
        if self.has_canary(Canary::ResetWithoutBarrier) {
            let dead = self.reclaimer.take_empty();
            self.reclaimer.barrier_ended(dead, true);
        }
        let under_reads = self.has_canary(Canary::ResetUnderReads);
        while self.reclaimer.due().len() > 0 && self.has_room_to_reset() {
            let Self { reclaimer, lines, .. } = self;
            let Some(line) = reclaimer.next_due(|line| lines.get(line).readers == 0 || under_reads) else {
                break;
            };
            self.begin_reset(line, buffers);
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
            && !self.reclaimer.is_due(line)
            && !self.awaits_barrier(line)
            && (!self.is_map_stream(entry.stream) || self.checkpoints.is_obsolete(entry.sequence))
    }

    /// Resets a line's good chunks.
    pub(super) fn begin_reset(&mut self, line: LineId, buffers: &mut Buffers) {
        self.lines.erasing(line);
        self.gc.line_reset(line);
        self.forget_copies(line);
        assert_eq!(self.valid.count(line), 0, "line {} is reset with data in it", line.0);
        assert!(self.open[line.index()].is_none(), "line {} is reset while it is written", line.0);
        let good: Vec<UnitIndex> =
            (0..self.shape.units()).map(UnitIndex).filter(|&unit| !self.lines.is_bad(line, unit)).collect();
        self.reclaimer.begin(line, good, ResetOrder::Together);
        while let Some(command) = self.reclaimer.next_command(self.reset_sectors) {
            assert_eq!(command.line, line, "another line was left half reset");
            let buffer = self.lists.pop().expect("room was asked for before");
            let units = self.reclaimer.chunks(&command);
            for (place, &unit) in buffers.addresses_mut(buffer).iter_mut().zip(units) {
                *place = Ppa::new(self.shape.chunk(line, unit), 0);
            }
            self.send_reset(command, VectorReset::new(buffer, command.count()));
        }
    }

    fn send_reset(&mut self, command: ResetCommand, reset: VectorReset) {
        let purpose = Purpose::Reset { command, reset };
        self.flight.send(purpose, Op::Reset, reset.addresses(), Some(reset.buffer()), 0);
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
            return self.send_reset(command, reset);
        };
        assert!(!self.lists.contains(&reset.buffer()), "a list was given back before its reset ended");
        self.lists.push(reset.buffer());
        self.stats.reset_failed += u64::from(bad.count_ones());
        if completion.status.is_drive_failure() {
            self.stop(completion.status);
        }
        if self.reclaimer.command_ended(&command, bad) {
            self.was_reset(command.line);
        }
    }

    fn was_reset(&mut self, line: LineId) {
        let failed = self.reclaimer.end(line);
        if self.stopped().is_some() {
            // Some of its chunks may be as they were: the next mount looks at them.
            return;
        }
        for unit in failed {
            self.lines.mark_bad(line, unit);
        }
        self.valid.clear_line(line);
        self.lines.was_reset(line);
        self.wear.on_reset(&self.lines);
        self.stats.lines_reset += 1;
        self.limiter_update();
    }

    /// The next line for a stream, open and empty. `None` if none may be taken, or it must be reset first.
    pub(super) fn next_line(&mut self, stream: Stream) -> Option<LineId> {
        if let Some(line) = self.left_open(stream) {
            if !self.may_go_on(line) {
                self.stats.waits_for_line += 1;
                return None;
            }
            self.lines.gone_on(line, self.sequence);
            return Some(line);
        }
        if self.open.iter().flatten().count() >= self.open_lines_max {
            return None;
        }
        let privileged = self.is_gc_stream(stream) && self.streams_count() > 1 || self.is_map_stream(stream);
        let kept = if privileged { 0 } else { self.lines_left_by_users() };
        if self.free_lines_worth() <= kept {
            self.stats.waits_for_line += 1;
            return None;
        }
        let line = self.take_line(stream)?;
        if self.lines.get(line).state == (LineState::Free { was_reset: false }) {
            self.reclaimer.reset_soon(line);
            self.call(Due::ALL);
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

    /// How chunks of a stream's lines are used: pieces of checkpoints go out by single units.
    pub(super) fn layout_of(&self, stream: Stream) -> ChunkLayout {
        let layout = self.capacity.layout;
        if self.is_map_stream(stream) { ChunkLayout { batch: layout.unit, ..layout } } else { layout }
    }

    pub(super) fn turns(&self) -> Turns {
        Turns { depth: self.options.writes_per_unit(), strict: self.is_faithful(), active: self.active_units }
    }
}
