//! A command the drive has taken and not finished.

use crate::media::PartId;
use ocssd_lightnvm::{Completion, Status, Tag, Violation};

/// What kind of command, as far as its way through the drive goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ends with data over the link.
    Read,
    /// Begins with data over the link.
    Write {
        /// Told only when programmed, also with a cache.
        fua: bool,
    },
    /// No data.
    Reset,
    /// Reads, then programs.
    Copy,
    /// Waits for programs of others.
    Flush,
}

/// The state of one command.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(crate) tag: Tag,
    pub(crate) kind: Kind,
    /// Sectors that cross the link or occupy the cache.
    pub(crate) sectors: u32,
    /// Parts not done.
    pub(crate) remaining: u32,
    /// A copy's reads not done: its programs wait for them.
    pub(crate) reads_left: u32,
    /// Parts not given to their units yet, linked.
    pub(crate) waiting: Option<PartId>,
    /// The number of its latest run whose content is copied later; 0 if there is none.
    pub(crate) fetch: u64,
    /// Its sectors are counted in the cache until programmed.
    pub(crate) cached: bool,
    /// The host has been told.
    pub(crate) told: bool,
    /// All parts are done.
    pub(crate) done: bool,
    pub(crate) status: Status,
    pub(crate) failed: u64,
    /// In a box: most commands break no rule, and a command is copied often.
    pub(crate) violation: Option<Box<Violation>>,
}

impl InFlight {
    #[inline(always)]
    pub(crate) const fn new(tag: Tag, kind: Kind) -> Self {
        Self {
            tag,
            kind,
            sectors: 0,
            remaining: 0,
            reads_left: 0,
            waiting: None,
            fetch: 0,
            cached: false,
            told: false,
            done: false,
            status: Status::SUCCESS,
            failed: 0,
            violation: None,
        }
    }

    /// Notes that `count` entries from `entry` on ended with `status`. The first failure names the command's status;
    /// High ECC gives way to any real failure.
    pub(crate) fn fail(&mut self, status: Status, entry: u32, count: u32, violation: Option<Violation>) {
        assert!(!status.is_success(), "a failure has a status that says so");
        if self.status.has_data() && (self.status.is_success() || !status.has_data()) {
            self.status = status;
            self.violation = violation.map(Box::new);
            self.failed = 0;
        }
        if self.status == status {
            self.failed |= bits(entry, count);
        }
    }

    #[inline(always)]
    pub(crate) fn completion(&self) -> Completion {
        let violation = self.violation.as_deref().copied();
        Completion { tag: self.tag, status: self.status, failed: self.failed, violation }
    }
}

/// Bits `entry .. entry + count`; what lies beyond 64 has no bit (scalar commands have no bitmap).
fn bits(entry: u32, count: u32) -> u64 {
    let from = u64::MAX.checked_shl(entry).unwrap_or(0);
    let beyond = u64::MAX.checked_shl(entry.saturating_add(count)).unwrap_or(0);
    from & !beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitmap_has_a_bit_per_failed_entry_and_none_beyond_64() {
        assert_eq!(bits(0, 1), 1);
        assert_eq!(bits(62, 2), 3 << 62);
        assert_eq!(bits(0, 64), u64::MAX);
        assert_eq!(bits(64, 8), 0);
        assert_eq!(bits(60, 100), 0xF << 60);
    }

    #[test]
    fn the_first_real_failure_names_the_status_and_high_ecc_gives_way() {
        let mut command = InFlight::new(Tag(1), Kind::Read);
        command.fail(Status::HIGH_ECC, 0, 1, None);
        command.fail(Status::UNRECOVERED_READ, 3, 1, None);
        command.fail(Status::UNWRITTEN, 4, 1, None);
        command.fail(Status::HIGH_ECC, 5, 1, None);
        assert_eq!((command.status, command.failed), (Status::UNRECOVERED_READ, 1 << 3));
    }
}
