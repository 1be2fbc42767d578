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
    pub(crate) deferred_copy: u64,
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
            deferred_copy: 0,
            cached: false,
            told: false,
            done: false,
            status: Status::SUCCESS,
            failed: 0,
            violation: None,
        }
    }

    /// Notes that `count` entries from `entry` on ended with `status`. Each of them gets its bit; of several statuses the
    /// gravest is the command's, of equally grave ones the first (`docs/ppa.md`). Entries with High ECC have their data:
    /// beside entries that failed they have no bit.
    pub(crate) fn fail(&mut self, status: Status, entry: u32, count: u32, violation: Option<Violation>) {
        assert!(!status.is_success(), "a failure has a status that says so");
        if gravity(status) > gravity(self.status) {
            if self.status.has_data() {
                self.failed = 0;
            }
            self.status = status;
            self.violation = violation.map(Box::new);
        }
        if !status.has_data() || self.status.has_data() {
            self.failed |= bits(entry, count);
        }
        assert!(gravity(self.status) >= gravity(status), "{} is the status, not {status}", self.status);
    }

    #[inline(always)]
    pub(crate) fn completion(&self) -> Completion {
        let violation = self.violation.as_deref().copied();
        Completion { tag: self.tag, status: self.status, failed: self.failed, violation }
    }
}

/// How much a host loses that overlooks a status because another one is the command's: it takes an OFFLINE chunk for a FREE
/// one (2C0h beside 2C1h), writes to a closed chunk (2F1h beside 2F0h), takes lost data for sectors that were never written
/// (281h beside 287h), or goes on with a drive that keeps nothing any more (006h beside any).
fn gravity(status: Status) -> u8 {
    match status {
        Status::SUCCESS => 0,
        Status::HIGH_ECC | Status::HIGH_ECC_12 => 1,
        Status::UNWRITTEN | Status::INVALID_RESET | Status::WRITE_NEXT_UNIT => 2,
        status if status.is_drive_failure() => 4,
        _ => 3,
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

    fn check(failures: &[(Status, u32)], expected: (Status, u64)) {
        let mut orders = [failures.to_vec(), failures.to_vec()];
        orders[1].reverse();
        for order in orders {
            let mut command = InFlight::new(Tag(1), Kind::Read);
            for &(status, entry) in &order {
                command.fail(status, entry, 1, None);
            }
            assert_eq!((command.status, command.failed), expected, "{order:?}");
        }
    }

    #[test]
    fn every_failed_entry_has_its_bit_and_the_gravest_status_is_the_commands() {
        check(&[(Status::WRITE_NEXT_UNIT, 0), (Status::EARLY_CLOSE, 8)], (Status::EARLY_CLOSE, 0x101));
        check(&[(Status::INVALID_RESET, 2), (Status::OFFLINE_CHUNK, 1)], (Status::OFFLINE_CHUNK, 0b110));
        check(
            &[(Status::UNWRITTEN, 4), (Status::UNRECOVERED_READ, 63)],
            (Status::UNRECOVERED_READ, 1 << 63 | 0x10),
        );
        check(&[(Status::EARLY_CLOSE, 0), (Status::INTERNAL_ERROR, 1)], (Status::INTERNAL_ERROR, 0b11));
    }

    #[test]
    fn high_ecc_has_no_bit_beside_entries_that_failed() {
        let weak = [(Status::HIGH_ECC, 0), (Status::HIGH_ECC, 5)];
        check(&weak, (Status::HIGH_ECC, 0b10_0001));
        for failure in [Status::UNRECOVERED_READ, Status::UNWRITTEN, Status::INTERNAL_ERROR] {
            check(&[weak[0], (failure, 3), weak[1]], (failure, 1 << 3));
        }
    }
}
