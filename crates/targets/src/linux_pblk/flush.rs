//! Flush: everything replied to before is on media when it is answered.
//!
//! A flush waits until no frame holds an older sector, then for the drive's own cache; Linux's pblk leaves the cache alone.
//! A frame that is not full is closed and padded. Flushes that wait together share one barrier. Lines that hold nothing wait
//! for one as well, so that what superseded them is durable. Deliberately not here: writing the frames.

use super::canary::Canary;
use super::flight::Purpose;
use super::requests::REQUESTS_MAX;
use super::state::LinuxPblk;
use ocssd_base::{Ring, SlabKey, usize_of};
use ocssd_ftl::{LineId, Sequence};
use ocssd_lightnvm::{Addresses, Op, Status};

/// Who waits for durability, and how far it is.
#[derive(Clone, Debug)]
pub struct Flushes {
    /// Requests and the newest sector each waits for, oldest first.
    waiting: Ring<(Sequence, SlabKey)>,
    /// All of them wait for at least this.
    least: Sequence,
    /// Requests the barrier in flight answers.
    answered: Vec<SlabKey>,
    /// Lines that may be reset once the barrier in flight is done.
    freed: Vec<LineId>,
    is_in_flight: bool,
}

impl Flushes {
    pub fn new() -> Self {
        let (answered, freed) = (Vec::new(), Vec::new());
        let waiting = Ring::new(usize_of(REQUESTS_MAX));
        Self { waiting, least: Sequence(0), answered, freed, is_in_flight: false }
    }

    /// Whoever waits now waits for this sector, too.
    pub fn wait_for(&mut self, sequence: Sequence) {
        if !self.waiting.is_empty() {
            self.least = sequence;
        }
    }

    /// True if nobody waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_in_flight
    }

    /// What the oldest of them waits for.
    fn next(&self) -> Option<(Sequence, SlabKey)> {
        self.waiting.front().map(|&(newest, key)| (newest.max(self.least), key))
    }

    /// The newest sector anybody waits for.
    fn newest(&self) -> Option<Sequence> {
        self.waiting.iter().next_back().map(|&(newest, _)| newest.max(self.least))
    }
}

impl LinuxPblk {
    /// A request is answered once everything up to now is durable.
    pub(super) fn await_durable(&mut self, key: SlabKey) {
        if self.flushes.waiting.is_empty() {
            self.flushes.least = Sequence(0);
        }
        self.flushes.waiting.push((self.sequence, key)).expect("there are as many places as requests");
        self.stats.flushes += 1;
        self.work_due = true;
    }

    /// Closes the frame that a flush waits for, and sends a barrier when one can. True if anything was done.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        if let (Some(newest), Some(frame)) = (self.flushes.newest(), self.filling)
            && self.frames.oldest(frame) <= newest
        {
            any |= self.close_filling();
        }
        if self.flushes.is_in_flight || !self.flight.has_room(1) {
            return any;
        }
        while let Some((newest, key)) = self.flushes.next() {
            if self.frames.oldest_unwritten().is_some_and(|oldest| oldest <= newest) {
                break;
            }
            assert!(newest <= self.sequence, "a flush waits for what nobody wrote");
            self.flushes.waiting.pop();
            self.flushes.answered.push(key);
        }
        let dead = self.eraser.take_dead();
        if self.options.has_canary(Canary::ResetWithoutBarrier) {
            any |= !dead.is_empty();
            dead.iter().for_each(|&line| self.eraser.freed(line, true));
        } else {
            self.flushes.freed.extend(dead);
        }
        if self.flushes.answered.is_empty() && self.flushes.freed.is_empty() {
            return any;
        }
        assert!(!self.flushes.is_in_flight, "two barriers are in flight");
        self.flushes.is_in_flight = true;
        self.flight.send(Purpose::Barrier, Op::Flush, Addresses::None, None, 0);
        true
    }

    /// The drive's cache is on media, or it failed.
    pub(super) fn barrier_done(&mut self, status: Status) {
        let is_sound = status.is_success();
        assert!(self.flushes.is_in_flight, "a barrier ended that was not sent");
        self.flushes.is_in_flight = false;
        for key in std::mem::take(&mut self.flushes.answered) {
            if !is_sound {
                self.requests.fail(
                    key,
                    if status.is_drive_failure() { status } else { Status::WRITE_FAULT },
                    None,
                );
            }
            self.requests.end(key);
        }
        for line in std::mem::take(&mut self.flushes.freed) {
            self.eraser.freed(line, is_sound);
        }
    }

    /// Answers every flush that waits for what cannot be written. True if there was one.
    pub(super) fn fail_flushes(&mut self, status: Status) -> bool {
        assert!(self.is_read_only, "flushes are failed while writes are taken");
        let mut any = false;
        while let Some((_, key)) = self.flushes.waiting.pop() {
            self.requests.fail(key, status, None);
            self.requests.end(key);
            any = true;
        }
        any
    }
}
