//! What commands are told when the backing fails, and what is not begun any more.
//!
//! A change that met a failure ends with its status, in the entries that met it and in all after them: per chunk they are
//! there or not, as after a power cut. Every change after it ends with the same status and changes nothing, until the drive
//! is opened again. A read that met one ends with an internal error in the entries it was to fill. Deliberately not here:
//! which failures end what (`store::failures`).

use super::{OperationKind, PartList};
use crate::addresses::Run;
use crate::drive::Flash;
use crate::store::StoreError;
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;

impl Flash {
    /// The status a command is refused with because the backing failed before; none if it may begin.
    pub(super) fn refusal_of_backing(&self, kind: &OperationKind<'_>) -> Option<Status> {
        match kind {
            OperationKind::Read(_) => None,
            OperationKind::Flush => self.failures.ends_syncs().map(StoreError::status),
            OperationKind::Write { .. } | OperationKind::Reset | OperationKind::Copy(_) => {
                self.failures.ends_changes()
            }
        }
    }

    /// A command of so many entries that the drive itself cannot carry out.
    pub(super) fn fail_all(&mut self, key: SlabKey, entries: u32, status: Status) {
        assert!(status.is_drive_failure(), "{status} is no failure of the drive");
        self.flow.command_mut(key).fail(status, 0, entries, None);
    }

    /// A run could not be stored.
    pub(super) fn change_failed(&mut self, key: SlabKey, run: Run, error: StoreError) {
        self.flow.command_mut(key).fail(error.status(), run.entry, run.count, None);
        self.failures.on_change(error);
        assert!(!self.takes_changes(), "a drive goes on changing what it cannot store");
    }

    /// True if changes have ended: then a run of a command that is being taken fails as well.
    pub(super) fn is_too_late(&mut self, key: SlabKey, run: Run) -> bool {
        let ended = self.failures.ends_changes();
        if let Some(status) = ended {
            self.flow.command_mut(key).fail(status, run.entry, run.count, None);
        }
        ended.is_some()
    }

    /// The content of a run could not be read.
    pub(super) fn read_failed(&mut self, key: SlabKey, run: Run, error: StoreError) {
        self.flow.command_mut(key).fail(Status::INTERNAL_ERROR, run.entry, run.count, None);
        self.failures.on_read(error);
    }

    /// Makes all that is stored durable, for a command of so many entries.
    pub(super) fn sync_for(&mut self, key: SlabKey, entries: u32) {
        if let Err(error) = self.sync() {
            self.fail_all(key, entries, error.status());
        }
    }

    /// Keeps the record of a run's chunk. Not after a failure: the backing is to stay as it was then.
    pub(super) fn keep_chunk(&mut self, parts: &PartList, run: Run) {
        if self.is_too_late(parts.command, run) {
            return;
        }
        let record = self.chunks.record(run.first.chunk);
        if let Err(error) = self.store.keep(run.first.chunk, &record) {
            self.change_failed(parts.command, run, error);
        }
    }

    /// Keeps which sectors of a run's chunk cannot be read, likewise.
    pub(super) fn keep_marks(&mut self, parts: &PartList, run: Run) {
        if self.is_too_late(parts.command, run) {
            return;
        }
        let chunk = run.first.chunk;
        if let Err(error) = self.store.keep_unreadable(chunk, self.chunks.unreadable(chunk)) {
            self.change_failed(parts.command, run, error);
        }
    }
}
