//! What a failing backing takes from a drive.
//!
//! A change that could not be stored ends all changes, until the drive is opened again: what the backing holds of the
//! chunk is then read anew, and nothing was written on top of what is only half there. A sync that failed ends flushes as
//! well. Linux forgets which pages a failed sync did not write, so the next sync would succeed without them. A read that
//! failed ends nothing.
//!
//! Deliberately not here: what commands are told (`exec::backing`).

use super::StoreError;
use ocssd_lightnvm::Status;

/// The failures of a backing since the drive was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    /// What ended changes.
    change: Option<StoreError>,
    /// What ended flushes.
    sync: Option<StoreError>,
    /// The first read that failed.
    read: Option<StoreError>,
}

impl Failures {
    /// Content or a record could not be stored.
    pub(crate) fn on_change(&mut self, error: StoreError) {
        self.change.get_or_insert(error);
    }

    /// What was stored could not be made durable.
    pub(crate) fn on_sync(&mut self, error: StoreError) {
        self.change.get_or_insert_with(|| error.clone());
        self.sync.get_or_insert(error);
        assert!(self.ends_changes().is_some(), "a drive goes on changing what it cannot make durable");
    }

    /// Content could not be read.
    pub(crate) fn on_read(&mut self, error: StoreError) {
        self.read.get_or_insert(error);
    }

    /// The status of every further change; none while changes are taken.
    pub(crate) fn ends_changes(&self) -> Option<Status> {
        self.change.as_ref().map(StoreError::status)
    }

    /// Why every further sync fails; none while one may succeed.
    pub(crate) const fn ends_syncs(&self) -> Option<&StoreError> {
        self.sync.as_ref()
    }

    /// What ended changes; else the first read that failed.
    pub(crate) fn first(&self) -> Option<&StoreError> {
        self.change.as_ref().or(self.read.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::super::StoreErrorKind::{self, Failed, Full};
    use super::*;

    fn error(kind: StoreErrorKind, sentence: &str) -> StoreError {
        StoreError { kind, sentence: sentence.to_owned() }
    }

    #[test]
    fn a_failed_read_ends_nothing_and_gives_way_to_what_does() {
        let mut failures = Failures::default();
        failures.on_read(error(Failed, "a read"));
        assert_eq!((failures.ends_changes(), failures.ends_syncs()), (None, None));
        assert_eq!(failures.first().map(|error| error.sentence.as_str()), Some("a read"));
        failures.on_change(error(Full, "a write"));
        assert_eq!(failures.first().map(|error| error.sentence.as_str()), Some("a write"));
    }

    #[test]
    fn the_first_failure_gives_the_status_and_only_a_failed_sync_ends_flushes() {
        let mut failures = Failures::default();
        failures.on_change(error(Full, "no room"));
        failures.on_change(error(Failed, "something else"));
        assert_eq!((failures.ends_changes(), failures.ends_syncs()), (Some(Status::CAPACITY_EXCEEDED), None));
        failures.on_sync(error(Failed, "the disk"));
        assert_eq!(failures.ends_changes(), Some(Status::CAPACITY_EXCEEDED));
        assert_eq!(failures.ends_syncs().map(StoreError::status), Some(Status::INTERNAL_ERROR));
    }
}
