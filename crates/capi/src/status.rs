//! What NVMe statuses are called, and which number of errno.h says the same of a request to a target.

use ocssd_lightnvm::Status;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

thread_local! {
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// What a status (SCT and SC, the 11 bits of `status >> 1` of a completion) is called and means, in one line. The text is valid
/// until this thread asks again.
#[unsafe(no_mangle)]
pub extern "C" fn ocssd_status_text(status: u16) -> *const c_char {
    let status = Status::from_bits(status);
    let text = CString::new(format!("{status}: {}", status.meaning())).unwrap_or_default();
    let kept = TEXT.try_with(|kept| {
        kept.replace(text);
        kept.borrow().as_ptr()
    });
    kept.unwrap_or(c"".as_ptr())
}

/// The number for a request that ended with this status; 0 for success, and for data that were read with effort.
pub const fn errno_of(status: Status) -> c_int {
    match status {
        Status::SUCCESS | Status::HIGH_ECC | Status::HIGH_ECC_12 => 0,
        Status::WRITE_TO_READ_ONLY | Status::CAPACITY_EXCEEDED | Status::ZONE_IS_FULL => libc::ENOSPC,
        Status::INVALID_OPCODE => libc::EOPNOTSUPP,
        Status::INVALID_FIELD
        | Status::LBA_OUT_OF_RANGE
        | Status::OUT_OF_ORDER
        | Status::INVALID_RESET
        | Status::ZONE_BOUNDARY_ERROR
        | Status::ZONE_INVALID_WRITE
        | Status::INVALID_ZONE_OPERATION
        | Status::INVALID_ZONE_TRANSITION
        | Status::COMMAND_SEQUENCE_ERROR => libc::EINVAL,
        Status::COMMAND_INTERRUPTED => libc::ECANCELED,
        Status::ZONE_IS_READ_ONLY => libc::EROFS,
        // What Linux' block layer makes of these two (blk_errors, 6.12).
        Status::TOO_MANY_ACTIVE_ZONES => libc::EOVERFLOW,
        Status::TOO_MANY_OPEN_ZONES => libc::ETOOMANYREFS,
        Status::ZRWA_RESOURCES_UNAVAILABLE => libc::EBUSY,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn every_status_has_a_text_and_a_number() {
        for status in Status::all() {
            // SAFETY: the library's own text of this thread, with an end mark.
            let text = unsafe { CStr::from_ptr(ocssd_status_text(status.to_bits())) };
            assert!(text.to_str().unwrap().contains(status.name()));
            assert_eq!(errno_of(status) == 0, status.has_data(), "{status}");
        }
    }
}
