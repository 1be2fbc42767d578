//! Flushes: what was answered before is durable once the log is.
//!
//! Deliberately not here: the log's pages (`ox`).

use super::store::OxBlock;
use crate::ox::options::Durability;
use ocssd_base::SlabKey;

impl OxBlock {
    /// A flush: what was answered is durable once the log is.
    pub(super) fn take_flush(&mut self, key: SlabKey) {
        self.store.flushes.push_back((self.journal.log.end(), key));
        self.work_due = true;
    }

    /// Answers flushes whose log is durable. True if there was one.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        while let Some(&(until, key)) = self.store.flushes.front() {
            let is_answerable =
                self.options.durability == Durability::Request || until <= self.journal.log.durable();
            let failed = self.refuses_changes().filter(|_| !is_answerable || self.has_drive_failed());
            if !is_answerable && failed.is_none() {
                break;
            }
            self.store.flushes.pop_front();
            if let Some(status) = failed {
                self.store.requests.fail(key, status);
            }
            self.store.requests.end(key);
            any = true;
        }
        any
    }
}
