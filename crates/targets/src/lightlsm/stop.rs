//! Ends: shutdown, and what happens when nothing can be written any more.
//!
//! A drive that fails as such, or so many bad chunks that no room is left, ends changes; reads go on, and what was answered
//! stays. Deliberately not here: chunks that fail one by one (`program`).

use super::state::{Changes, LightLsm};
use ocssd_lightnvm::Status;

impl LightLsm {
    /// Everything that was asked for but the shutdown is over.
    fn is_quiet_but_for_shutdown(&self) -> bool {
        let is_logged = self.edits.is_empty() && self.syncs.is_empty() && self.awaited.is_empty();
        self.shutdown.is_some() && self.requests.len() == 1 && is_logged
    }

    /// True if a shutdown waits for a checkpoint that is not begun.
    pub(super) fn is_last_due(&self) -> bool {
        let is_covered = self.journal.current().is_some_and(|kept| kept.start == self.journal.log.end());
        self.is_quiet_but_for_shutdown() && !is_covered
    }

    /// Ends the instance once its last checkpoint is there. True if it did.
    pub(super) fn shut_down(&mut self) -> bool {
        let Some(key) = self.shutdown else { return false };
        let is_stopped = self.refuses_changes().is_some() && self.requests.len() == 1;
        let is_done = self.is_quiet_but_for_shutdown() && !self.is_last_due() && !self.journal.is_writing();
        if !is_done && !is_stopped || self.flight.len() > 0 {
            return false;
        }
        assert!(!self.is_shut_down, "an instance is shut down twice");
        self.shutdown = None;
        self.is_shut_down = true;
        let status = match self.changes {
            Changes::DriveFailed(status) => status,
            Changes::Taken | Changes::NoSpare => Status::SUCCESS,
        };
        self.requests.end(key, status);
        true
    }

    /// The drive failed with `status`.
    pub(super) fn stop(&mut self, status: Status) {
        assert!(status.is_drive_failure(), "{status} says nothing of the drive");
        if !matches!(self.changes, Changes::DriveFailed(_)) {
            self.end_changes(Changes::DriveFailed(status));
        }
    }

    /// No more changes are taken: those under way are answered.
    fn end_changes(&mut self, how: Changes) {
        assert!(how != Changes::Taken, "changes end by being taken");
        self.changes = how;
        let status = self.refuses_changes().expect("changes are not taken");
        self.journal.stop();
        self.edits.clear();
        self.syncs.clear();
        self.syncing.clear();
        self.awaited.clear();
        self.unreserved.clear();
        self.busy.clear();
        for object in self.shelf.objects.values_mut() {
            object.appends.clear();
            object.gathered = None;
        }
        self.requests.fail_changes(status);
        let reads = self.shelf.objects.values().filter(|object| object.holds > 0).count();
        assert!(reads <= self.requests.len(), "{reads} tables are read by fewer requests");
        self.work_due = true;
    }

    /// Nothing is in flight and somebody waits: changes end. True if there is something to go on with.
    pub(super) fn give_up(&mut self) -> bool {
        let waits = !self.unreserved.is_empty()
            || !self.edits.is_empty()
            || !self.awaited.is_empty()
            || !self.syncs.is_empty()
            || self.journal.is_writing();
        let is_stuck = waits && self.flight.len() == 0 && self.refuses_changes().is_none();
        if is_stuck {
            self.end_changes(Changes::NoSpare);
        }
        is_stuck
    }
}
