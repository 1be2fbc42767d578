//! Flush: everything replied to before is on media when it is answered.
//!
//! A flush waits until no buffer unit holds an older sector, then for the drive's own cache; Linux's pblk leaves the cache alone.
//! A buffer unit that is not full is closed and padded. Flushes that wait together share one barrier. Lines that hold nothing wait
//! for one as well, so that what superseded them is durable. Deliberately not here: writing the buffer units.

use super::canary::Canary;
use super::flight::Purpose;
use super::state::LinuxPblk;
use ocssd_base::SlabKey;
use ocssd_ftl::BarrierEnd;
use ocssd_lightnvm::{Addresses, Op, Status};

impl LinuxPblk {
    /// A request is answered once everything up to now is durable.
    pub(super) fn await_durable(&mut self, key: SlabKey) {
        self.flushes.wait(self.sequence, key);
        self.stats.flushes += 1;
        self.work_due = true;
    }

    /// Closes the buffer unit that a flush waits for, and sends a barrier when one can. True if anything was done.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        if let (Some(newest), Some(buffer_unit)) = (self.flushes.newest(), self.filling)
            && self.write_buffer.oldest(buffer_unit) <= newest
        {
            any |= self.close_filling();
        }
        if self.flushes.is_in_flight() || !self.flight.has_room(1) {
            return any;
        }
        let Self { flushes, write_buffer, sequence, .. } = self;
        flushes.gather(|newest, _| {
            assert!(newest <= *sequence, "a flush waits for what nobody wrote");
            write_buffer.oldest_unwritten().is_none_or(|oldest| oldest > newest)
        });
        let dead = self.reclaimer.take_empty();
        if self.options.has_canary(Canary::ResetWithoutBarrier) {
            any |= !dead.is_empty();
            self.reclaimer.barrier_ended(dead, true);
        } else {
            self.flushes.free(dead);
        }
        if !self.flushes.wants_barrier() {
            return any;
        }
        self.flushes.sent();
        self.flight.send(Purpose::Barrier, Op::Flush, Addresses::None, None, 0);
        true
    }

    /// The drive's cache is on media, or it failed.
    pub(super) fn barrier_done(&mut self, status: Status) {
        let is_sound = status.is_success();
        let BarrierEnd { answered, freed } = self.flushes.ended();
        for key in answered {
            if !is_sound {
                self.requests.fail(key, if status.is_drive_failure() { status } else { Status::WRITE_FAULT });
            }
            self.requests.end(key);
        }
        self.reclaimer.barrier_ended(freed, is_sound);
    }

    /// Answers every flush that waits for what cannot be written. True if there was one.
    pub(super) fn fail_flushes(&mut self, status: Status) -> bool {
        assert!(self.is_read_only, "flushes are failed while writes are taken");
        let mut any = false;
        while let Some(key) = self.flushes.give_up() {
            self.requests.fail(key, status);
            self.requests.end(key);
            any = true;
        }
        any
    }
}
