//! Every status: constant, name and meaning, in one table.

use super::Status;

/// One row of the table.
pub(super) struct Entry {
    pub(super) status: Status,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
}

/// Defines constant and row together, so that no constant lacks a meaning.
macro_rules! statuses {
    ($($constant:ident = $code:literal, $name:literal, $meaning:literal;)*) => {
        impl Status {
            $(#[doc = concat!($name, " (", stringify!($code), "). ", $meaning)]
            pub const $constant: Self = Self($code);)*
        }

        /// All rows, ascending by code.
        pub(super) const TABLE: &[Entry] = &[
            $(Entry { status: Status::$constant, name: $name, meaning: $meaning },)*
        ];
    };
}

// NVMe base 1.4 figures "Generic Command Status", "Command Specific Status" and "Media and Data Integrity Errors";
// Key Value Command Set 1.0 for 085h to 089h; Zoned Namespace Command Set 1.1 for 1B8h to 1BFh;
// OCSSD 2.0 section 4 for 2C0h, 2C1h, 2D0h, 2F0h to 2F2h; OCSSD 1.2 and Linux `lightnvm.h` for 0FFh, 2FFh and 700h.
statuses! {
    SUCCESS = 0x000, "Success", "The command did what was asked.";
    INVALID_OPCODE = 0x001, "Invalid Command Opcode", "The drive does not have this command on this queue.";
    INVALID_FIELD = 0x002, "Invalid Field in Command",
        "A field has a value the drive refuses, for example a write that is not a multiple of WS_MIN or exceeds MDTS.";
    CID_CONFLICT = 0x003, "Command ID Conflict", "A command with this identifier is still in progress on the queue.";
    DATA_TRANSFER_ERROR = 0x004, "Data Transfer Error",
        "Moving data or metadata between host and drive failed; an open-channel 1.2 drive reports a CRC failure with it.";
    POWER_LOSS_ABORT = 0x005, "Commands Aborted due to Power Loss Notification",
        "The drive was told that power goes away and gave the command up.";
    INTERNAL_ERROR = 0x006, "Internal Error", "The drive itself failed; its state may be read from its logs.";
    ABORT_REQUESTED = 0x007, "Command Abort Requested", "An Abort command ended this command.";
    SQ_DELETED = 0x008, "Command Aborted due to SQ Deletion", "The submission queue was deleted under the command.";
    INVALID_NAMESPACE = 0x00B, "Invalid Namespace or Format",
        "The namespace does not exist or is not of the kind the command needs.";
    COMMAND_SEQUENCE_ERROR = 0x00C, "Command Sequence Error", "The command came before one that must precede it.";
    INVALID_SGL_SEGMENT = 0x00D, "Invalid SGL Segment Descriptor", "A segment descriptor of the SGL is malformed.";
    INVALID_SGL_COUNT = 0x00E, "Invalid Number of SGL Descriptors", "The SGL has too many or too few descriptors.";
    INVALID_SGL_LENGTH = 0x00F, "Data SGL Length Invalid", "The SGL describes fewer bytes than the command moves.";
    INVALID_SGL_TYPE = 0x011, "SGL Descriptor Type Invalid", "The drive does not support this kind of SGL descriptor.";
    INVALID_PRP_OFFSET = 0x013, "PRP Offset Invalid", "A PRP entry has an offset it may not have.";
    INVALID_OFFSET = 0x016, "SGL Offset Invalid", "The offset in an SGL descriptor is outside the capsule.";
    KEEP_ALIVE_EXPIRED = 0x018, "Keep Alive Timeout Expired", "The host was silent for longer than it promised.";
    COMMAND_INTERRUPTED = 0x021, "Command Interrupted",
        "The command was given up for something else; the host may try again, with a transaction from its beginning.";
    TRANSIENT_TRANSPORT_ERROR = 0x022, "Transient Transport Error",
        "The transport damaged the command's data; the same command may succeed.";
    LBA_OUT_OF_RANGE = 0x080, "LBA Out of Range",
        "An address lies beyond the namespace; for a reset by Dataset Management, the range is not one whole chunk.";
    CAPACITY_EXCEEDED = 0x081, "Capacity Exceeded", "The command would use more than the namespace may.";
    NAMESPACE_NOT_READY = 0x082, "Namespace Not Ready", "The namespace cannot serve commands now; try later.";
    RESERVATION_CONFLICT = 0x083, "Reservation Conflict", "The namespace is another host's alone.";
    INVALID_VALUE_SIZE = 0x085, "Invalid Value Size", "The value is longer than the key-value namespace takes.";
    INVALID_KEY_SIZE = 0x086, "Invalid Key Size", "The key is empty, or longer than the key-value namespace takes.";
    KEY_DOES_NOT_EXIST = 0x087, "KV Key Does Not Exist", "The key-value namespace has no value under this key.";
    KV_UNRECOVERED = 0x088, "Unrecovered Error", "The media could not deliver the value; it is lost.";
    KEY_EXISTS = 0x089, "Key Exists", "The key has a value, and the store asked that it has none.";
    WRITE_FAIL_12 = 0x0FF, "Write Failed (1.2)",
        "A program or erase failed on an open-channel 1.2 drive; the failed addresses are in the completion's bitmap.";
    CQ_INVALID = 0x100, "Completion Queue Invalid", "The completion queue named does not exist.";
    INVALID_QUEUE_ID = 0x101, "Invalid Queue Identifier", "The queue identifier is in use, zero or too large.";
    INVALID_QUEUE_SIZE = 0x102, "Invalid Queue Size", "The queue is too small or larger than the drive allows.";
    ABORT_LIMIT_EXCEEDED = 0x103, "Abort Command Limit Exceeded", "More Abort commands are in progress than ACL allows.";
    AER_LIMIT_EXCEEDED = 0x105, "Asynchronous Event Request Limit Exceeded",
        "More event requests are in progress than AERL allows.";
    INVALID_FIRMWARE_SLOT = 0x106, "Invalid Firmware Slot", "The firmware slot does not exist or is read only.";
    INVALID_INTERRUPT_VECTOR = 0x108, "Invalid Interrupt Vector", "The interrupt vector does not exist.";
    INVALID_LOG_PAGE = 0x109, "Invalid Log Page", "The drive does not have this log page.";
    INVALID_FORMAT = 0x10A, "Invalid Format", "The LBA format asked for is not supported.";
    INVALID_QUEUE_DELETION = 0x10C, "Invalid Queue Deletion",
        "A completion queue cannot go while submission queues use it.";
    FEATURE_NOT_SAVEABLE = 0x10D, "Feature Identifier Not Saveable", "This feature cannot survive a power cycle.";
    FEATURE_NOT_CHANGEABLE = 0x10E, "Feature Not Changeable", "This feature can only be read.";
    FEATURE_NOT_NAMESPACE = 0x10F, "Feature Not Namespace Specific",
        "This feature belongs to the controller, not to a namespace.";
    CONFLICTING_ATTRIBUTES = 0x180, "Conflicting Attributes", "The attributes of the command contradict each other.";
    INVALID_PROTECTION = 0x181, "Invalid Protection Information", "The protection settings do not match the namespace.";
    WRITE_TO_READ_ONLY = 0x182, "Attempted Write to Read Only Range", "The range can only be read.";
    INVALID_ZONE_OPERATION = 0x1B6, "Invalid Zone Operation Request",
        "Zones have no random write area, or the zone has one and takes no appends.";
    ZRWA_RESOURCES_UNAVAILABLE = 0x1B7, "ZRWA Resources Unavailable",
        "Another zone with a random write area is more than there is room for, or the zone's write pointer does not lie at the \
         start of a granule.";
    ZONE_BOUNDARY_ERROR = 0x1B8, "Zone Boundary Error", "The blocks reach beyond the zone, or beyond its capacity.";
    ZONE_IS_FULL = 0x1B9, "Zone Is Full", "The zone takes no more writes until it is reset.";
    ZONE_IS_READ_ONLY = 0x1BA, "Zone Is Read Only", "The zone takes no more writes for ever; its data can be read.";
    ZONE_IS_OFFLINE = 0x1BB, "Zone Is Offline", "The zone is lost: it can be neither written nor read.";
    ZONE_INVALID_WRITE = 0x1BC, "Zone Invalid Write", "The write does not start at the zone's write pointer.";
    TOO_MANY_ACTIVE_ZONES = 0x1BD, "Too Many Active Zones",
        "Another open or closed zone is more than the namespace has resources for; finish or reset one.";
    TOO_MANY_OPEN_ZONES = 0x1BE, "Too Many Open Zones",
        "Another open zone is more than the namespace has resources for; close, finish or reset one.";
    INVALID_ZONE_TRANSITION = 0x1BF, "Invalid Zone State Transition",
        "The zone's state does not allow what was asked.";
    LBA_LIST_SGL_LENGTH_INVALID = 0x1C1, "LBA List SGL Length Invalid (QEMU)",
        "The SGL that describes the address list is shorter than the list; only QEMU's vendor extension sends this.";
    WRITE_FAULT = 0x280, "Write Fault",
        "The write was refused and nothing changed: the chunk is closed or offline, the address does not exist or crosses \
         the end of its chunk, or a limit on open chunks is reached.";
    UNRECOVERED_READ = 0x281, "Unrecovered Read Error", "The media could not deliver the data; it is lost.";
    GUARD_CHECK_ERROR = 0x282, "End-to-end Guard Check Error", "The protection guard does not match the data.";
    COMPARE_FAILURE = 0x285, "Compare Failure", "The data on the media differs from the host's.";
    ACCESS_DENIED = 0x286, "Access Denied", "The namespace is locked against this access.";
    UNWRITTEN = 0x287, "Deallocated or Unwritten Logical Block",
        "A block read has no data that can be read yet, and DULBE asks for an error instead of predefined data.";
    OFFLINE_CHUNK = 0x2C0, "Offline Chunk", "The reset found or made the chunk offline; it can never be used again.";
    INVALID_RESET = 0x2C1, "Invalid Reset",
        "The chunk may not be reset in its state (free or open), or it does not exist.";
    HIGH_ECC = 0x2D0, "High ECC",
        "The data was returned and is correct, but many bits had to be corrected; move it soon.";
    WRITE_NEXT_UNIT = 0x2F0, "Write Fail: Write Next Unit",
        "The media failed for this write unit, the write pointer moved past it; write the data again further on.";
    EARLY_CLOSE = 0x2F1, "Write Fail: Chunk Early Close",
        "The media failed and the chunk is now closed at its write pointer; data below it can still be read.";
    OUT_OF_ORDER = 0x2F2, "Out of Order Write",
        "The write does not start at the chunk's write pointer; nothing was written.";
    EMPTY_PAGE_12 = 0x2FF, "Empty Page (1.2)",
        "A page read on an open-channel 1.2 drive was never programmed; hosts find the write pointer this way.";
    HIGH_ECC_12 = 0x700, "High ECC (1.2)",
        "An open-channel 1.2 drive returned correct data after correcting many bits; move it soon.";
}

/// The row of `status`.
pub(super) fn find(status: Status) -> Option<&'static Entry> {
    let index = TABLE.binary_search_by_key(&status, |entry| entry.status).ok()?;
    Some(&TABLE[index])
}

/// What to call a code of this type that has no row.
pub(super) fn kind_name(sct: u8) -> &'static str {
    match sct {
        0 => "unknown generic status",
        1 => "unknown command specific status",
        2 => "unknown media and data integrity error",
        3 => "unknown path related status",
        7 => "unknown vendor specific status",
        _ => "unknown status of a reserved type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_ascend_so_that_the_search_finds_them() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].status < pair[1].status, "{} before {}", pair[0].status, pair[1].status);
        }
        for entry in TABLE {
            assert_eq!(find(entry.status).map(|found| found.name), Some(entry.name));
        }
    }

    #[test]
    fn every_meaning_is_one_sentence() {
        for entry in TABLE {
            assert!(
                entry.meaning.ends_with('.') && entry.meaning.matches(". ").count() == 0,
                "{}",
                entry.name
            );
            assert!(entry.meaning.len() > 20, "{}", entry.name);
        }
    }

    #[test]
    fn codes_of_the_open_channel_specification_are_right() {
        let rows = [
            (Status::WRITE_FAULT, 0x280),
            (Status::UNRECOVERED_READ, 0x281),
            (Status::UNWRITTEN, 0x287),
            (Status::OFFLINE_CHUNK, 0x2C0),
            (Status::INVALID_RESET, 0x2C1),
            (Status::HIGH_ECC, 0x2D0),
            (Status::WRITE_NEXT_UNIT, 0x2F0),
            (Status::EARLY_CLOSE, 0x2F1),
            (Status::OUT_OF_ORDER, 0x2F2),
        ];
        for (status, code) in rows {
            assert_eq!(status.to_bits(), code);
        }
    }
}
