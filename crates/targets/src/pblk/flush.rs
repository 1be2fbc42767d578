//! Flush: everything replied to before is on media when it is answered.
//!
//! A flush waits until no buffer unit holds an older sector, then for the drive's own cache. Buffer units that are not full are
//! closed and filled with padding, as pblk did (Linux `pblk-write.c`); a write with FUA waits the same way for its own sectors.
//! Flushes that wait together share one barrier. Deliberately not here: writing the buffer units.

use super::Pblk;
use super::canary::Canary;
use super::due::Due;
use super::flight::Purpose;
use ocssd_base::SlabKey;
use ocssd_ftl::{BarrierEnd, EmptyLine, Line, LineId, LineState, Sequence};
use ocssd_lightnvm::{Addresses, Op, Status};

/// Heads that an instance has at least, on units of their own where it has so many (chosen: any unit may die, and any head be lost
/// with what is torn, or written over astray).
pub(super) const HEADS_MIN: u32 = 2;

/// How far it is that the second of two lines that a mount left open is begun: not before the first is on media, so that a power
/// cut does not tear a unit behind the only head of each, though the drive's cache holds more than a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Apart {
    /// Nothing is waited for.
    #[default]
    Settled,
    /// The line is not wanted yet.
    Kept(LineId),
    /// It waits for a barrier.
    Wanted(LineId),
    /// The barrier is in flight.
    Sent(LineId),
}

impl Pblk {
    /// Has the last line without data wait for a barrier, if a stream has another that is open.
    pub(super) fn keep_apart(&mut self) {
        let open: Vec<LineId> = self.open.iter().flatten().map(|open| open.line()).collect();
        let of = |line: LineId| self.lines.get(line).stream;
        let has_other = |line: LineId| open.iter().any(|&other| other != line && of(other) == of(line));
        let is_kept = |&line: &LineId| self.lines.get(line).data_sectors == 0 && has_other(line);
        self.apart = open.iter().copied().rfind(is_kept).map_or(Apart::Settled, Apart::Kept);
    }

    /// True if a line that was left open may be written on now.
    pub(super) fn may_go_on(&mut self, line: LineId) -> bool {
        match self.apart {
            Apart::Kept(kept) if kept == line => {
                self.apart = Apart::Wanted(line);
                self.call(Due::ALL);
                false
            }
            Apart::Wanted(kept) | Apart::Sent(kept) => kept != line,
            Apart::Settled | Apart::Kept(_) => true,
        }
    }

    /// The line that waits for a barrier, if one that is sent now covers all that its stream wrote.
    fn wanted_apart(&self) -> Option<LineId> {
        let Apart::Wanted(line) = self.apart else { return None };
        let stream = self.lines.get(line).stream;
        let mut others =
            self.open.iter().flatten().filter(|open| self.lines.get(open.line()).stream == stream);
        others.all(|open| open.in_flight() == 0).then_some(line)
    }

    /// A request is answered once everything up to now is durable.
    pub(super) fn await_durable(&mut self, key: SlabKey) {
        self.flushes.wait(self.sequence, key);
        self.stats.flushes += 1;
        self.call(Due::ALL);
    }

    /// True if a flush, a dead line or a checkpoint waits for a barrier that is not in flight, or for buffer units to be closed.
    #[inline]
    pub(super) fn has_to_flush(&self) -> bool {
        let waits = !self.reclaimer.empty().is_empty()
            || self.checkpoints.wants_barrier()
            || self.wanted_apart().is_some();
        let may_send = !self.flushes.is_in_flight() && (waits || self.flushes.wants_barrier());
        may_send || self.flushes.newest().is_some()
    }

    /// Closes buffer units that a flush waits for, and sends a barrier when one can. True if anything was done.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        if let Some(newest) = self.flushes.newest() {
            any |= self.close_older(newest);
        }
        if self.flushes.is_in_flight() || !self.flight.has_room(1) {
            return any;
        }
        let Self { flushes, write_buffer, sequence, options, .. } = self;
        flushes.gather(|newest, before| {
            assert!(newest <= *sequence, "a flush waits for what nobody wrote");
            let goes_along = options.has_canary(Canary::FlushAnswersAll) && before > 0;
            write_buffer.oldest_unwritten().is_none_or(|oldest| oldest > newest)
                || options.has_canary(Canary::FlushTooEarly)
                || goes_along
        });
        any |= self.free_dead();
        let (for_checkpoint, apart) = (self.checkpoints.wants_barrier(), self.wanted_apart());
        if !self.flushes.wants_barrier() && !for_checkpoint && apart.is_none() {
            return any;
        }
        self.flushes.sent();
        if let Some(line) = apart {
            self.apart = Apart::Sent(line);
        }
        if for_checkpoint {
            self.checkpoints.barrier_sent();
        }
        self.flight.send(Purpose::Barrier, Op::Flush, Addresses::None, None, 0);
        true
    }

    /// Hands dead lines to the next barrier. One that may have died by a discard whose record is not on media waits for
    /// that, and the record's buffer unit is closed: an older version of the blocks may lie elsewhere, and a power cut would bring
    /// it back. A checkpoint's line died by the next checkpoint. True if a buffer unit was closed.
    fn free_dead(&mut self) -> bool {
        let is_early = self.has_canary(Canary::ResetBeforeDiscard);
        let pending = self.discards.oldest_pending().filter(|_| !is_early);
        let dead = self.reclaimer.take_empty();
        let waits = |dead: &EmptyLine| pending.is_some_and(|pending| self.waits_for_record(dead, pending));
        let (waiting, mut free): (Vec<EmptyLine>, Vec<EmptyLine>) = dead.into_iter().partition(waits);
        let newest = waiting.iter().map(|dead| dead.since).max();
        waiting.into_iter().for_each(|dead| self.reclaimer.keep(dead));
        self.keep_name(&mut free);
        self.flushes.free(free);
        newest.is_some_and(|newest| self.close_older(newest))
    }

    /// True if a dead line may have died by a discard whose record is not on media; `pending` is the oldest of those.
    pub(super) fn waits_for_record(&self, dead: &EmptyLine, pending: Sequence) -> bool {
        !self.is_map_stream(self.lines.get(dead.line).stream) && dead.since >= pending
    }

    /// Keeps back a dead line if no line that stays has heads on two units, or on as many as it: heads alone say on media that
    /// there is an instance, and how large it is. The barrier the others wait for makes the heads that stay durable.
    fn keep_name(&mut self, free: &mut Vec<EmptyLine>) {
        let goes = |line: LineId| free.iter().any(|dead| dead.line == line) || self.awaits_barrier(line);
        let heads = |dead: &EmptyLine| self.lines.get(dead.line).heads.min(HEADS_MIN);
        let Some((at, wanted)) = free.iter().map(heads).enumerate().max_by_key(|&(_, heads)| heads) else {
            return;
        };
        let stays = |(id, line): (LineId, &Line)| {
            line.heads >= wanted
                && line.state != LineState::Erasing
                && !goes(id)
                && !self.reclaimer.is_due(id)
        };
        if wanted > 0 && !self.lines.iter().any(stays) {
            self.reclaimer.keep(free.swap_remove(at));
        }
    }

    /// True if a line waits for a barrier before it is reset.
    pub(super) fn awaits_barrier(&self, line: LineId) -> bool {
        self.flushes.freed().iter().any(|dead| dead.line == line)
    }

    /// Closes the buffer units of users that hold a sector as old as `newest`.
    pub(super) fn close_older(&mut self, newest: Sequence) -> bool {
        let mut any = false;
        for index in 0..self.streams.len() {
            let Some(buffer_unit) = self.streams[index].filling else { continue };
            if self.write_buffer.oldest(buffer_unit) <= newest {
                self.close_buffer_unit(buffer_unit);
                any = true;
            }
        }
        any
    }

    /// Answers every flush that waits for what cannot be written. True if there was one.
    pub(super) fn fail_flushes(&mut self, status: Status) -> bool {
        assert!(self.is_read_only(), "flushes are failed while writes are taken");
        let mut any = false;
        while let Some(key) = self.flushes.give_up() {
            self.requests.fail(key, status);
            self.requests.end(key);
            any = true;
        }
        any
    }

    /// The drive's cache is on media, or the drive could not say so.
    pub(super) fn barrier_done(&mut self, status: Status) {
        let sound = status.is_success() || self.has_canary(Canary::BarrierUnchecked);
        let BarrierEnd { answered, freed } = self.flushes.ended();
        for key in answered {
            let request = self.requests.get_mut(key);
            request.done = request.request.count;
            if !sound {
                let told = if status.is_drive_failure() { status } else { Status::WRITE_FAULT };
                self.requests.fail(key, told);
            }
            self.requests.end(key);
        }
        self.reclaimer.barrier_ended(freed, sound);
        if let Apart::Sent(line) = self.apart {
            self.apart = if sound { Apart::Settled } else { Apart::Wanted(line) };
        }
        if self.checkpoints.barrier_done(sound) {
            self.checkpoint_complete();
        }
        if !sound && status.is_drive_failure() {
            self.stop(status);
        }
        self.call(Due::ALL);
    }
}
