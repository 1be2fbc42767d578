//! Ends: flushes, shutdown, and what happens when nothing can be written any more.
//!
//! A drive that fails as such, or so many bad chunks that no room is left, ends changes; reads go on, and what was answered
//! stays. Deliberately not here: chunks that fail one by one.

use super::options::Durability;
use super::state::{Changes, OxBlock};
use super::write_buffer::StreamIndex;
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;

impl OxBlock {
    /// A flush: what was answered is durable once the log is.
    pub(super) fn take_flush(&mut self, key: SlabKey) {
        self.flushes.push_back((self.log.end(), key));
        self.work_due = true;
    }

    /// Answers flushes whose log is durable. True if there was one.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        while let Some(&(until, key)) = self.flushes.front() {
            let is_answerable = self.options.durability == Durability::Request || until <= self.log.durable();
            let failed = self.refuses_changes().filter(|_| !is_answerable || self.has_drive_failed());
            if !is_answerable && failed.is_none() {
                break;
            }
            self.flushes.pop_front();
            if let Some(status) = failed {
                self.requests.fail(key, status);
            }
            self.requests.end(key);
            any = true;
        }
        any
    }

    const fn has_drive_failed(&self) -> bool {
        matches!(self.changes, Changes::DriveFailed(_))
    }

    /// Everything that was asked for but the shutdown is over.
    fn is_quiet_but_for_shutdown(&self) -> bool {
        self.shutdown.is_some()
            && self.requests.is_idle_but_for(1)
            && self.commits.is_empty()
            && self.logged.is_empty()
            && self.points.data.iter().all(|point| point.in_flight() == 0)
    }

    /// True if a shutdown waits for a checkpoint that is not begun.
    pub(super) fn is_last_due(&self) -> bool {
        let is_covered = self.checkpoint.current.is_some_and(|kept| kept.start == self.log.end());
        self.is_quiet_but_for_shutdown() && !is_covered
    }

    /// Ends the instance once its last checkpoint is there. True if it did.
    pub(super) fn shut_down(&mut self) -> bool {
        let Some(key) = self.shutdown else { return false };
        let is_stopped = self.refuses_changes().is_some() && self.requests.is_idle_but_for(1);
        let is_done =
            self.is_quiet_but_for_shutdown() && !self.is_last_due() && !self.checkpoint.is_writing();
        if !is_done && !is_stopped || self.flight.len() > 0 {
            return false;
        }
        assert!(!self.is_shut_down, "an instance is shut down twice");
        self.shutdown = None;
        self.is_shut_down = true;
        if let Changes::DriveFailed(status) = self.changes {
            self.requests.fail(key, status);
        }
        self.requests.end(key);
        true
    }

    /// The drive failed with `status`.
    pub(super) fn stop(&mut self, status: Status) {
        assert!(status.is_drive_failure(), "{status} says nothing of the drive");
        if !self.has_drive_failed() {
            self.end_changes(Changes::DriveFailed(status));
        }
    }

    /// No more changes are taken: those under way are answered.
    fn end_changes(&mut self, how: Changes) {
        assert!(how != Changes::Taken, "changes end by being taken");
        self.changes = how;
        let status = self.refuses_changes().expect("changes are not taken");
        self.abandon_checkpoint();
        self.drop_waiting();
        self.parts.clear();
        self.open_part = None;
        self.gathered = 0;
        self.commits.clear();
        self.logged.clear();
        self.requests.fail_changes(status);
        self.work_due = true;
    }

    /// Forgets what waits to be written.
    pub(super) fn drop_waiting(&mut self) {
        let dropped = self.buffer.drop_waiting();
        self.let_go_of(&dropped);
    }

    /// Nothing is in flight and somebody waits: something is tried that would not be otherwise, or changes end. True if
    /// there is something to go on with.
    pub(super) fn give_up(&mut self) -> bool {
        let waits = self.requests.next_change().is_some()
            || !self.commits.is_empty()
            || !self.logged.is_empty() && self.is_log_awaited()
            || !self.flushes.is_empty()
            || self.checkpoint.is_writing()
            || self.buffer.ready(StreamIndex::USER) > 0;
        let is_stuck = waits && self.flight.len() == 0 && self.refuses_changes().is_none();
        if !is_stuck {
            return false;
        }
        if self.drop_copies() {
            return true;
        }
        self.end_changes(Changes::NoSpare);
        true
    }
}
