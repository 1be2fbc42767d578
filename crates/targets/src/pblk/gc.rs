//! Garbage collection: valid sectors of a victim are read, and go through the buffer like writes.
//!
//! A victim is read in commands of up to 64 sectors, which go into the buffer as they end. A line is empty once everything
//! moved is durable; until then it counts as draining. Sectors the media call weak come the same way. Deliberately not
//! here: what becomes of what was read (`gc_read`), resetting the line (`reset`), how many sectors users may write meanwhile
//! (`limit`).

use super::Pblk;
use super::canary::Canary;
use super::due::Due;
use super::flight::Purpose;
use super::gc_read::GcRead;
use super::last_room::LastRoom;
use super::retry::Whose;
use crate::read_again::{Failed, may_differ};
use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::{
    BufferUnitId, Candidate, Entry, InstanceGeometry, Line, LineId, LineState, PhysicalAddress, ReadPosition,
    Relocator, Slot, StripeOrder, UnitIndex, Victim,
};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status, VECTOR_MAX};
use std::collections::VecDeque;

/// As many lines may be emptied at a time, whatever is spare (chosen: one is emptied while another drains).
const DRAINING_MIN: usize = 2;
/// Fewest sectors of a chunk that are read together (chosen: 64 KiB, the write unit of FAST'17's drive; fewer would not pay for
/// looking at each).
const PIECE_SECTORS: u32 = 16;

/// What garbage collection has to do.
#[derive(Clone, Debug)]
pub struct Gc {
    /// Lines that are being emptied.
    pub(super) relocator: Relocator<Status>,
    order: StripeOrder,
    /// The line that is relocated though all that was moved out of it is durable: what is valid there still may never have been
    /// what it says.
    pub(super) again: Option<LineId>,
    refresh: VecDeque<PhysicalAddress>,
    forced: bool,
    last_room: LastRoom,
    /// The line that is emptied for its wear, until it is reset.
    levelling: Option<LineId>,
}

impl Gc {
    /// Lines of `shape` are read in the order in which they are written: a `unit` on each unit of `stripe` in turn.
    pub fn new(buffers: Vec<BufId>, shape: &InstanceGeometry, stripe: Vec<UnitIndex>, unit: u32) -> Self {
        let piece = unit * PIECE_SECTORS.div_ceil(unit);
        Self {
            relocator: Relocator::new(buffers, 1),
            order: StripeOrder::new(stripe, shape.sectors_per_chunk(), piece),
            again: None,
            refresh: VecDeque::new(),
            forced: false,
            last_room: LastRoom::new(shape.lines(), unit),
            levelling: None,
        }
    }

    /// True if what was read of `line` was read once more.
    pub(super) fn is_again(&self, line: Option<LineId>) -> bool {
        self.again.is_some() && self.again == line
    }

    /// The line that is emptied for its wear.
    pub const fn levelling(&self) -> Option<LineId> {
        self.levelling
    }

    /// The line is reset: nothing of it is left to do.
    pub fn line_reset(&mut self, line: LineId) {
        self.relocator.line_reset(line);
        self.levelling = self.levelling.filter(|&levelling| levelling != line);
    }

    /// Nothing is being read or waits to be moved.
    pub fn is_idle(&self) -> bool {
        self.relocator.is_idle()
    }

    pub fn is_busy_with(&self, line: LineId) -> bool {
        self.relocator.is_busy_with(line)
    }

    /// Whether lines wait for their last sectors to be superseded durably.
    pub fn has_awaiting(&self) -> bool {
        self.relocator.awaiting().len() > 0
    }

    /// Collects the best victim there is, space or no space.
    pub const fn force(&mut self) {
        self.forced = true;
    }
}

impl Pblk {
    /// Goes on emptying lines. True if anything was done.
    pub(super) fn collect(&mut self, now: Nanos, buffers: &mut Buffers) -> bool {
        if self.told.is_stale {
            self.limiter_update();
        }
        let mut any = self.move_reads(now, buffers);
        self.told.is_moved |= any;
        self.limiter_follow();
        // Writes taken before a shutdown may need the space.
        if self.shutdown.is_begun() && self.requests.next_change().is_none() {
            return any;
        }
        any |= self.choose_victim();
        any |= self.read_refresh(buffers);
        any |= self.read_victim(buffers);
        self.end_pass();
        self.push_draining();
        any
    }

    /// True if there is too little space, lines on their way to be reset counted as free: else victims that are nearly full
    /// would be written again and again, faster than resets give back what that took. So are dead lines that wait for the
    /// record of a discard: that may wait behind other writes of users for a line, which collection would use up.
    pub(super) fn is_space_low(&self) -> bool {
        let held = self.flushes.freed().len() + self.reclaimer.empty().len();
        let coming = self.reclaimer.resetting() + self.reclaimer.due().len() + held;
        let coming = u64::try_from(coming).expect("a length fits 64 bits");
        assert!(coming <= u64::from(self.shape.lines()), "{coming} lines are on their way to be reset");
        self.limiter.gc_should_run() && self.limiter.is_low_with(coming, u64::from(self.shape.units()))
    }

    fn choose_victim(&mut self) -> bool {
        if self.gc.relocator.victim().is_some() || !self.may_drain_more() {
            return false;
        }
        if let Some(line) = self.wear_victim() {
            self.gc.levelling = Some(line);
            self.begin_victim(line);
            return true;
        }
        if !self.is_space_low() && !self.gc.forced {
            return false;
        }
        let victim = self.best_victim();
        self.gc.forced = false;
        if let Some(line) = victim {
            self.begin_victim(line);
            self.stats.victims += 1;
            self.stats.victim_valid += self.valid.count(line);
            let worth = self.worth(self.lines.get(line));
            self.gc.last_room.begun(worth.saturating_sub(self.valid.count(line)));
        }
        victim.is_some()
    }

    fn begin_victim(&mut self, line: LineId) {
        self.gc.again = None;
        self.relocate(line);
        self.limiter_update();
    }

    fn relocate(&mut self, line: LineId) {
        assert_eq!(self.lines.get(line).state, LineState::Closed, "line {} is no victim", line.0);
        self.gc.relocator.begin(line, self.valid.count(line));
    }

    /// True if another line may be emptied beside those that drain: as many as the reserve can take the content of, and two
    /// always.
    fn may_drain_more(&self) -> bool {
        let draining = self.gc.relocator.awaiting().len();
        let spare = || self.free_lines_worth().saturating_sub(self.lines_kept());
        draining < DRAINING_MIN || draining < usize_of(spare().min(self.options.knobs.draining_lines_max))
    }

    fn best_victim(&mut self) -> Option<LineId> {
        let now = self.sequence.0;
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        candidates.clear();
        candidates.extend(
            self.lines
                .iter()
                .filter(|&(line, entry)| {
                    entry.state == LineState::Closed
                        && !self.is_map_stream(entry.stream)
                        && self.valid.count(line) > 0
                        && (self.is_worth_moving(line, entry)
                            || self.gc.forced && self.valid.count(line) < self.worth(entry))
                        && !self.gc.is_busy_with(line)
                })
                .map(|(line, entry)| {
                    let since = self.valid.last_invalidated(line).max(entry.opened_at.0);
                    let sectors = self.worth(entry);
                    let valid = self.valid.count(line).min(sectors);
                    Candidate { line, valid, sectors, age: now.saturating_sub(since) }
                }),
        );
        let picked = self.options.victim().pick(&mut self.prng, &candidates);
        self.scratch.candidates = candidates;
        picked
    }

    /// True if some line would give space if it were emptied.
    pub(super) fn has_victims(&self) -> bool {
        self.gc.relocator.victim().is_some()
            || self.lines.iter().any(|(line, entry)| {
                entry.state == LineState::Closed
                    && !self.is_map_stream(entry.stream)
                    && self.valid.count(line) > 0
                    && self.is_worth_moving(line, entry)
            })
    }

    /// Nothing else gives room: the line that gives most is emptied, though that is less than the fill of a buffer unit may take.
    /// False if no line gives anything, if one that was to be emptied like this was not begun, if many were for nothing, or if no
    /// changes are taken that would need it.
    pub(super) fn collect_all_the_same(&mut self) -> bool {
        let gives = |line: LineId, entry: &Line| {
            entry.state == LineState::Closed
                && !self.is_map_stream(entry.stream)
                && (1..self.worth(entry)).contains(&self.valid.count(line))
        };
        let is_begun = self.gc.forced || self.gc.relocator.victim().is_some();
        let does_any =
            !is_begun && !self.is_read_only() && self.lines.iter().any(|(line, entry)| gives(line, entry));
        if !does_any || !self.gc.last_room.ask(self.stats.user_written) {
            return false;
        }
        assert!(self.stopped().is_none(), "garbage is collected on a drive that failed");
        self.force_gc();
        true
    }

    /// Whether emptying a line gives more than the fill of a buffer unit takes: else what is moved for it is moved for ever, once
    /// everything that is left is in lines that are nearly full.
    fn is_worth_moving(&self, line: LineId, entry: &Line) -> bool {
        self.valid.count(line) + u64::from(self.capacity.layout.batch) <= self.worth(entry)
    }

    /// Sectors of data a closed line would take if it were reset: what failed or was filled in it can be had back. It may have
    /// taken a few more, in writes that were short.
    pub(super) fn worth(&self, line: &Line) -> u64 {
        u64::from(line.good_chunks) * u64::from(self.capacity.layout.data_sectors())
    }

    fn read_refresh(&mut self, buffers: &mut Buffers) -> bool {
        if self.gc.refresh.is_empty() || !self.flight.has_room(1) {
            return false;
        }
        let Some(buffer) = self.gc.relocator.take_buffer() else { return false };
        let mut count = 0;
        while count < VECTOR_MAX {
            let Some(place) = self.gc.refresh.pop_front() else { break };
            if self.valid.is_valid(place) {
                self.lines.begin_read(self.shape.line_of(place));
                buffers.addresses_mut(buffer)[usize_of(count)] = self.shape.ppa(place);
                count += 1;
            }
        }
        self.send_gc_read(buffer, count, None);
        true
    }

    fn read_victim(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(victim) = self.gc.relocator.victim() {
            if victim.is_read() || !self.flight.has_room(1) {
                break;
            }
            let Some(buffer) = self.gc.relocator.take_buffer() else { break };
            let (count, next) = self.list_valid(victim, buffers.addresses_mut(buffer));
            if count > 0 {
                self.lines.begin_reads(victim.line, count);
                self.gc.relocator.read_sent(victim.line, next);
            }
            if count < VECTOR_MAX {
                self.gc.relocator.all_sent(victim.line);
            }
            self.send_gc_read(buffer, count, Some(victim.line));
            any = true;
        }
        any
    }

    /// Lists the next valid places of a victim, as many as one command reads: how many, and where to go on.
    fn list_valid(&self, victim: Victim, list: &mut [Ppa]) -> (u32, ReadPosition) {
        let (mut count, mut at) = (0, victim.next);
        while count < VECTOR_MAX {
            let Some(piece) = self.gc.order.piece(at) else { break };
            let start = self.shape.chunk_start(victim.line, piece.unit);
            let mut bits = self.valid.bits(PhysicalAddress(start.0 + u64::from(piece.sector)), piece.count);
            let chunk = self.shape.chunk(victim.line, piece.unit);
            let mut seen = piece.count;
            while bits != 0 {
                if count == VECTOR_MAX {
                    seen = bits.trailing_zeros();
                    break;
                }
                list[usize_of(count)] = Ppa::new(chunk, piece.sector + bits.trailing_zeros());
                bits &= bits - 1;
                count += 1;
            }
            at = self.gc.order.after(at, seen);
        }
        assert!(count <= VECTOR_MAX, "{count} sectors in one read");
        (count, at)
    }

    fn send_gc_read(&mut self, buffer: BufId, count: u32, victim: Option<LineId>) {
        if count == 0 {
            self.gc.relocator.put_buffer(buffer);
            return;
        }
        let purpose = Purpose::GcRead { buffer, count, victim };
        assert!(count <= VECTOR_MAX, "{count} sectors in one read");
        self.flight.send(purpose, Op::Read, Addresses::List { offset: 0, count }, Some(buffer), 0);
        self.stats.gc_read += u64::from(count);
    }

    /// Sectors to be moved were read. Their lines are kept from being reset until each was looked at.
    pub(super) fn gc_read_done(
        &mut self,
        (buffer, count): (BufId, u32),
        line: Option<LineId>,
        completion: &Completion,
        buffers: &Buffers,
    ) {
        let (mut failed, mut status) = (completion.failed, completion.status);
        assert!((1..=VECTOR_MAX).contains(&count), "{count} sectors came in one read");
        assert!(count == VECTOR_MAX || failed >> count == 0, "sectors failed that were not read");
        let read = GcRead { buffer, count, next: 0, failed, line, with: status };
        let astray = self.astray(&read, buffers);
        if astray != 0 {
            status = if status.has_data() { Status::UNRECOVERED_READ } else { status };
            failed |= astray;
        }
        if failed != 0 && may_differ(status) && !self.has_canary(Canary::FailedReadIsLoss) {
            self.retry(Whose::Gc(read), Failed::new(failed, status), buffers);
        } else {
            self.gc.relocator.read_done(read);
        }
    }

    /// A victim of which everything was moved drains.
    fn end_pass(&mut self) {
        let Some(victim) = self.gc.relocator.take_moved() else { return };
        let Line { stream, opened_at, data_sectors, .. } = *self.lines.get(victim.line);
        assert!(victim.valid <= data_sectors, "line {} held more than was written to it", victim.line.0);
        if self.gc.levelling == Some(victim.line) {
            // What it held says nothing of what collection for space costs. Without that nothing else may come into a buffer unit
            // that what was moved does not fill, and no other line is moved until it is written.
            self.close_holding(|line| line == victim.line);
        } else {
            let sectors = self.worth(self.lines.get(victim.line));
            self.classifier.on_collected(stream, opened_at.0, self.sequence.0);
            self.limiter.on_victim_done(victim.valid.min(sectors), sectors);
        }
        if self.valid.count(victim.line) > 0 {
            self.gc.relocator.wait_durable(victim.line, self.stats.units_programmed);
        }
        self.limiter_update();
        self.call(Due::ALL);
    }

    /// Sees to it that lines which drain become empty: partly filled buffer units are closed when nothing else moves them on,
    /// and what is still valid after a whole buffer's worth of writes is read again.
    fn push_draining(&mut self) {
        if !self.gc.has_awaiting() {
            return;
        }
        let relocator = &self.gc.relocator;
        let is_stuck = relocator.victim().is_none() && !relocator.has_reads();
        // Padding is space lost: buffer units are closed only when no other victim would fill them, and nothing on its way drains.
        let is_wanted = self.limiter.gc_should_run() || self.gc.levelling.is_some();
        // Then nothing goes on but what users are not let in to fill: no successor is in that, or it would be closed here.
        let is_still = is_stuck && is_wanted && self.is_all_programmed();
        if is_still && self.is_short_of_a_fill() && self.may_drain_more() && self.collect_all_the_same() {
            return;
        }
        if is_still {
            let awaiting: Vec<LineId> = self.gc.relocator.awaiting().collect();
            if self.close_holding(|line| awaiting.contains(&line)) {
                self.gc.last_room.closed();
                self.call(Due::ALL);
                return;
            }
        }
        let all_written = is_still || self.write_buffer.in_use() == 0;
        let buffer = u64::from(self.write_buffer.count());
        let programmed = self.stats.units_programmed;
        // Nothing that was programmed, nothing that could be moved now and not before.
        let is_due = |since: u64| all_written && programmed > since || programmed >= since + buffer;
        if self.gc.relocator.victim().is_none()
            && let Some(line) = self.gc.relocator.take_awaiting(is_due)
        {
            // One that is empty, too, makes room for another victim.
            self.due.add(Due::ALL);
            if self.valid.count(line) > 0 {
                self.gc.again = Some(line);
                self.relocate(line);
                self.call(Due::ALL);
            }
        }
    }

    /// True if lines that were emptied for the last room give less than closing what holds their copies takes.
    fn is_short_of_a_fill(&self) -> bool {
        let filling = self.streams.iter().filter_map(|stream| stream.filling);
        let fill: u32 = filling.map(|open| self.write_buffer.unit() - self.write_buffer.filled(open)).sum();
        self.gc.last_room.is_short_of(u64::from(fill))
    }

    /// True if no write is in flight, nor waits to be sent.
    pub(super) fn is_all_programmed(&self) -> bool {
        !self.is_programming() && self.streams.iter().all(|stream| stream.ready.is_empty())
    }

    /// Closes buffer units being filled that hold the successors of what lies in some lines. True if there was one.
    fn close_holding(&mut self, is_meant: impl Fn(LineId) -> bool) -> bool {
        let is_successor =
            |entry: &Entry| entry.previous.is_some_and(|place| is_meant(self.shape.line_of(place)));
        let is_copied = |(_, origin, _): (Slot, PhysicalAddress, u32)| is_meant(self.shape.line_of(origin));
        let holds = |&buffer_unit: &BufferUnitId| {
            self.write_buffer.live(buffer_unit).any(|(_, entry)| is_successor(entry))
                || self.write_buffer.copy_runs(buffer_unit).any(is_copied)
        };
        let due: Vec<BufferUnitId> =
            self.streams.iter().filter_map(|stream| stream.filling).filter(holds).collect();
        due.iter().for_each(|&buffer_unit| self.close_buffer_unit(buffer_unit));
        !due.is_empty()
    }

    /// A sector the media call weak is written again soon.
    pub(super) fn refresh(&mut self, place: PhysicalAddress) {
        if self.gc.refresh.len() < usize_of(self.options.knobs.refresh_max) && self.valid.is_valid(place) {
            self.gc.refresh.push_back(place);
            self.due.add(Due::GC);
        }
    }
}
