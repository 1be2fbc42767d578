//! Ends: shutdown, and what happens when nothing can be written any more.
//!
//! A drive that fails as such, or so many bad chunks that no room is left, ends changes; reads go on, and what was answered
//! stays. Deliberately not here: chunks that fail one by one.

use super::state::{Changes, Ending, Ox};
use super::store::Store;
use super::write_buffer::StreamIndex;
use ocssd_lightnvm::Status;

impl<S: Store> Ox<S> {
    pub(crate) const fn has_drive_failed(&self) -> bool {
        matches!(self.changes, Changes::DriveFailed(_))
    }

    /// Everything that was asked for but the shutdown is over.
    fn is_quiet_but_for_shutdown(&self) -> bool {
        self.ending == Ending::Asked
            && S::is_idle(self)
            && !self.has_commits()
            && self.logged.is_empty()
            && self.data_points.iter().all(|point| point.in_flight() == 0)
    }

    /// True if a shutdown waits for a checkpoint that is not begun.
    pub(crate) fn is_last_due(&self) -> bool {
        let is_covered = self.journal.current().is_some_and(|kept| kept.start == self.journal.log.end());
        self.is_quiet_but_for_shutdown() && !is_covered
    }

    /// Ends the instance once its last checkpoint is there. True if it did.
    pub(crate) fn shut_down(&mut self) -> bool {
        if self.ending != Ending::Asked {
            return false;
        }
        let is_stopped = self.refuses_changes().is_some() && S::is_idle(self);
        let is_done = self.is_quiet_but_for_shutdown() && !self.is_last_due() && !self.journal.is_writing();
        if !is_done && !is_stopped || self.flight.len() > 0 {
            return false;
        }
        assert!(!self.has_commits() && self.logged.is_empty(), "an instance ends with work to do");
        self.ending = Ending::Over;
        let failed = if let Changes::DriveFailed(status) = self.changes { Some(status) } else { None };
        S::end_shutdown(self, failed.unwrap_or(Status::SUCCESS));
        true
    }

    /// The drive failed with `status`.
    pub(crate) fn stop(&mut self, status: Status) {
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
        self.journal.stop();
        self.drop_waiting();
        self.gathered = 0;
        self.commits.clear();
        self.urgent.clear();
        self.logged.clear();
        S::fail_changes(self, status);
        self.work_due = true;
    }

    /// Forgets what waits to be written.
    pub(crate) fn drop_waiting(&mut self) {
        let dropped = self.buffer.drop_waiting();
        S::dropped(self, &dropped);
    }

    /// Nothing is in flight and somebody waits: something is tried that would not be otherwise, or changes end. True if
    /// there is something to go on with.
    pub(crate) fn give_up(&mut self) -> bool {
        if self.flight.len() > 0 || self.refuses_changes().is_some() {
            return false;
        }
        let waits = S::is_waiting(self)
            || self.has_commits()
            || !self.logged.is_empty() && S::is_log_awaited(self)
            || self.journal.is_writing()
            || self.buffer.ready(StreamIndex::USER) > 0;
        if !waits {
            return false;
        }
        if self.drop_copies() || self.space.lend_chunks() {
            return true;
        }
        self.end_changes(Changes::NoSpare);
        true
    }
}
