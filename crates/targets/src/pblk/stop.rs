//! When the drive itself fails: nothing is changed any more, and reads go on.
//!
//! A chunk that fails is the target's to deal with; a drive that cannot keep what is written (an internal error, or no room
//! below it) fails every chunk alike, and leaves them open where they were. Writing elsewhere would go round for ever. So
//! what failed stays in the buffer, where users read it, changes and flushes are answered with the drive's status, and a
//! shutdown ends with it. The instance stays so until it is mounted again: then everything flushed is there.
//! Deliberately not here: chunks that are used up (`give_up`).

use super::Pblk;
use super::due::Due;
use ocssd_lightnvm::Status;

/// Whether an instance takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// It does.
    Taken,
    /// So many chunks are bad that there is no room for more.
    NoSpare,
    /// The drive itself failed, with this status.
    DriveFailed(Status),
}

impl Pblk {
    /// The drive failed with `status`.
    pub(super) fn stop(&mut self, status: Status) {
        assert!(status.is_drive_failure(), "{status} says nothing of the drive");
        self.call(Due::ALL);
        if self.stopped().is_some() {
            return;
        }
        self.changes = Changes::DriveFailed(status);
        assert!(self.is_read_only(), "a drive that failed takes changes");
        let buffers = self.checkpoints.abandon();
        self.whole.extend(buffers);
        assert!(self.checkpoints.is_idle(), "a checkpoint is taken of a drive that failed");
    }

    /// Chunks are short: no more changes are taken.
    pub(super) fn end_changes(&mut self) {
        if self.changes == Changes::Taken {
            self.changes = Changes::NoSpare;
        }
    }

    /// How the drive failed, if it did.
    pub(super) const fn stopped(&self) -> Option<Status> {
        if let Changes::DriveFailed(status) = self.changes { Some(status) } else { None }
    }

    /// The status of what would change something; none while changes are taken.
    pub(super) const fn refuses_changes(&self) -> Option<Status> {
        match self.changes {
            Changes::Taken => None,
            Changes::NoSpare => Some(Status::WRITE_TO_READ_ONLY),
            Changes::DriveFailed(status) => Some(status),
        }
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
        assert!(!self.checkpoints.wants_barrier(), "a checkpoint goes on after the drive failed");
        assert_eq!(
            self.refuses_changes(),
            Some(status),
            "a change would be answered otherwise than those that waited"
        );
        if self.flight.len() > 0 {
            return any;
        }
        // Only with a buffer smaller than the device needs: more would have to be written behind what it reads.
        while let Some(key) = self.requests.next_read() {
            self.requests.drop_read(key);
            self.requests.fail(key, status);
            self.requests.end(key);
            any = true;
        }
        assert!(self.reading.by_users == 0 && !self.flight.has_next(), "a read goes on without a command");
        any | self.end_stopped_shutdown(status)
    }
}
