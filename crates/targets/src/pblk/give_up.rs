//! When nothing can go on any more: nothing is in flight but users' reads, which may never end, no timer runs, and requests
//! wait all the same.
//!
//! Bad chunks may use up what garbage collection needs. pblk's callers then tried again for ever (issues 28 and 58 of
//! OpenChannelSSD/linux). Here the instance becomes read-only, and what cannot be done is answered with an error: writes,
//! then flushes, then reads whose media cannot be read before more is written. Deliberately not here: seeing it come
//! (`judge_spare`).

use super::Pblk;
use super::due::Due;
use ocssd_lightnvm::Status;

impl Pblk {
    /// Answers what nothing else will. True if that was needed, and there may be more to do.
    pub(super) fn give_up(&mut self) -> bool {
        if self.stopped().is_some() {
            return false;
        }
        let waits_to_write = self.requests.next_change().is_some() || !self.flushes.is_idle();
        // A line that waits for the ends of reads to be reset is something to come.
        let only_reads_go_on = self.flight.has_only(self.reading.by_users) && self.reclaimer.due().len() == 0;
        let is_still = self.flight.len() == 0 || (waits_to_write && only_reads_go_on);
        if self.requests.is_idle_but_for(0) || !is_still || self.limiter_deadline(self.now).is_some() {
            return false;
        }
        if self.checkpoints.is_behind(self.capacity.checkpoint_interval) {
            // It may need what users would write next.
            self.checkpoints.unpace();
            self.call(Due::ALL);
            return true;
        }
        if self.waits_for_wear() {
            // The line that is moved may be short of what users would write next.
            self.wear.unpace();
            self.call(Due::ALL);
            return true;
        }
        let may_checkpoint = !self.is_read_only() && self.checkpoints.may_ask();
        if may_checkpoint && self.discards.has_durable() {
            // Records of discards hold space until a checkpoint covers them. It covers those on media, and sends the others
            // first: this does not go on for ever.
            self.checkpoints.ask();
            self.call(Due::ALL);
            return true;
        }
        if self.collect_all_the_same() {
            return true;
        }
        self.stats.gave_up += 1;
        assert!(
            self.reading.by_users > 0 || !self.flight.has_next(),
            "a command waits while nothing can go on"
        );
        if !self.is_read_only() {
            self.end_changes();
            return true;
        }
        assert!(self.requests.next_change().is_none(), "a write waits although it would be refused");
        if self.reading.by_users == 0 && self.end_shutdown() {
            return true;
        }
        if self.fail_flushes(Status::WRITE_FAULT) {
            return true;
        }
        if self.reading.by_users > 0 {
            return false;
        }
        let Some(key) = self.requests.next_read() else { return false };
        self.requests.drop_read(key);
        self.requests.fail(key, Status::UNRECOVERED_READ);
        self.requests.end(key);
        true
    }
}
