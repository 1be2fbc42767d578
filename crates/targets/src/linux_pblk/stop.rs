//! When the drive itself fails: nothing is changed any more, and reads go on.
//!
//! A drive that cannot keep what is written (an internal error, or no room below it) fails every chunk alike and leaves them
//! open where they were. What failed stays in the buffer, changes and flushes are answered with the drive's status, and a
//! shutdown ends with it. The instance stays so until it is mounted again. Deliberately not here: chunks that are used up
//! (`state`).

use super::state::LinuxPblk;
use ocssd_lightnvm::Status;

impl LinuxPblk {
    /// Notes how a command ended: if the drive itself failed, nothing is changed any more.
    pub(super) fn note_status(&mut self, status: Status) {
        if status.is_drive_failure() && self.stopped.is_none() {
            self.stopped = Some(status);
            self.is_read_only = true;
            assert!(self.refuses_changes() == Some(status), "a drive that failed takes changes");
        }
    }

    /// The status of what would change something; none while changes are taken.
    pub(super) fn refuses_changes(&self) -> Option<Status> {
        self.stopped.or_else(|| self.is_read_only.then_some(Status::WRITE_TO_READ_ONLY))
    }

    /// Answers all that waits for a change, once the drive failed with `status`. True if anything was answered.
    pub(super) fn answer_stopped(&mut self, status: Status) -> bool {
        let mut any = false;
        while let Some(key) = self.requests.next_change() {
            self.requests.admitted(key);
            self.requests.fail(key, status);
            self.requests.end(key);
            any = true;
        }
        any |= self.fail_flushes(status);
        assert!(
            self.is_read_only && self.requests.next_change().is_none(),
            "a change waits after the drive failed"
        );
        assert_eq!(
            self.refuses_changes(),
            Some(status),
            "a change would be answered otherwise than those that waited"
        );
        let is_over = self.flight.len() == 0 && self.requests.next_read().is_none();
        if is_over && self.shutdown.is_waiting() {
            any |= self.end_shutdown(status);
        }
        any
    }
}
