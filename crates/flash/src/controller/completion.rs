//! How commands end: the status field with its flags, and the 16 bytes.
//!
//! Queue head and phase are the transport's and stay zero here.

use crate::config::Revision;
use ocssd_lightnvm::{Completion, Status};
use ocssd_nvme::{Cqe, StatusField};

/// A command that was refused before it reached the drive: nothing was changed, and the same command would be refused
/// again (DNR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) Status);

/// A field or a parameter that the controller does not take.
pub(super) const INVALID_FIELD: Refused = Refused(Status::INVALID_FIELD);
/// A buffer shorter than what the command moves.
pub(super) const SHORT_BUFFER: Refused = Refused(Status::DATA_TRANSFER_ERROR);

/// A completion with nothing in DW0 and DW1.
pub(super) fn cqe(sqid: u16, cid: u16, status: StatusField) -> Cqe {
    Cqe { dw0: 0, dw1: 0, sqhd: 0, sqid, cid, phase: false, status }
}

/// Failures of the media that leave the chunk such that the same command would break a rule: the write pointer went on, the
/// chunk closed, or it is offline. NVMe base 1.4, figure 124: DNR is set where the same command is expected to fail again.
const CHUNK_MOVED_ON: [Status; 3] = [Status::WRITE_NEXT_UNIT, Status::EARLY_CLOSE, Status::OFFLINE_CHUNK];

/// The status field for what the drive answered. DNR says that the same command would fail again: a rule was broken, or
/// a write or a reset failed for good. A failed read leaves it clear, except for the 1.2 codes that hosts compare
/// together with it.
pub(super) fn status_field(revision: Revision, completion: &Completion) -> StatusField {
    let fails_again = completion.violation.is_some() || CHUNK_MOVED_ON.contains(&completion.status);
    let status = match revision {
        Revision::V20 => completion.status,
        Revision::V12 => status_12(completion.status),
    };
    if revision == Revision::V12 {
        let field = StatusField::for_ocssd12(status);
        return StatusField { dnr: field.dnr || fails_again, ..field };
    }
    if fails_again { StatusField::rule(status) } else { StatusField::retry(status) }
}

/// The 1.2 code for a status of the drive (Linux `lightnvm.h`): every failed program or erase has the same one.
fn status_12(status: Status) -> Status {
    match status {
        Status::UNWRITTEN => Status::EMPTY_PAGE_12,
        Status::HIGH_ECC => Status::HIGH_ECC_12,
        Status::WRITE_FAULT
        | Status::OUT_OF_ORDER
        | Status::WRITE_NEXT_UNIT
        | Status::EARLY_CLOSE
        | Status::INVALID_RESET
        | Status::OFFLINE_CHUNK => Status::WRITE_FAIL_12,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Ppa, Rule, Tag, Violation};

    fn bits(revision: Revision, status: Status, rule_broken: bool) -> u16 {
        let violation =
            rule_broken.then_some(Violation { rule: Rule::Writable, at: Ppa::NOWHERE, chunk: None });
        status_field(revision, &Completion { tag: Tag(0), status, failed: 0, violation }).to_bits()
    }

    #[test]
    fn dnr_says_that_the_same_command_would_fail_again() {
        let table = [
            (Status::WRITE_FAULT, true, 0x4280),
            (Status::OFFLINE_CHUNK, true, 0x42C0),
            (Status::OFFLINE_CHUNK, false, 0x42C0),
            (Status::WRITE_NEXT_UNIT, false, 0x42F0),
            (Status::EARLY_CLOSE, false, 0x42F1),
            (Status::UNRECOVERED_READ, false, 0x0281),
            (Status::HIGH_ECC, false, 0x02D0),
            (Status::INTERNAL_ERROR, false, 0x0006),
            (Status::SUCCESS, false, 0),
        ];
        for (status, rule_broken, expected) in table {
            assert_eq!(bits(Revision::V20, status, rule_broken), expected, "{status}");
        }
    }

    #[test]
    fn a_1_2_drive_sends_the_codes_linux_compares() {
        let table = [
            (Status::UNWRITTEN, 0x42FF),
            (Status::WRITE_NEXT_UNIT, 0x40FF),
            (Status::EARLY_CLOSE, 0x40FF),
            (Status::OFFLINE_CHUNK, 0x40FF),
            (Status::UNRECOVERED_READ, 0x4281),
            (Status::HIGH_ECC, 0x4700),
            (Status::INTERNAL_ERROR, 0x0006),
            (Status::SUCCESS, 0),
        ];
        for (status, expected) in table {
            assert_eq!(bits(Revision::V12, status, false), expected, "{status}");
        }
        assert_eq!(bits(Revision::V12, Status::INVALID_FIELD, true), 0x4002);
    }
}
