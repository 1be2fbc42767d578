//! What every exported function goes through: panics end here, and pointers become slices and texts.
//!
//! Deliberately not here: what the functions do.

use crate::{code, invalid};
use ocssd_table_store::{ErrorKind, StoreError};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The sentence of the thread's last failure.
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs the body of an exported function. A failure becomes its number, and so does a panic; the locks that were held are
/// poisoned by then, so that nothing half changed is used again.
pub fn call(body: impl FnOnce() -> Result<(), StoreError>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            StoreError::new(ErrorKind::Io, format!("a bug in ocssd stopped this call: {words}"))
        }
    };
    let sentence = CString::new(failure.sentence.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending has no place for sentences any more; the number is returned all the same.
    drop(LAST.try_with(|last| last.replace(sentence)));
    code(failure.kind)
}

/// The sentence of the thread's last failure.
pub fn last_error() -> *const c_char {
    // The text stays where it is when the borrow ends; only `call` of this thread replaces it.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Writes to where a pointer of the caller's points.
///
/// # Safety
/// It must point to room for a `T`.
pub unsafe fn put<T>(pointer: *mut T, value: T) {
    assert!(!pointer.is_null() && pointer.is_aligned(), "a result has no place");
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    unsafe { pointer.write(value) };
}

/// Bytes of the caller's.
///
/// # Safety
/// `pointer` must point to `bytes` bytes that nobody changes while they are used.
pub unsafe fn shared<'a>(pointer: *const c_char, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    assert!(!pointer.is_null(), "{bytes} bytes at NULL");
    // SAFETY: not NULL; the rest is the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer.cast(), bytes) }
}

/// Memory of the caller's.
///
/// # Safety
/// `pointer` must point to `bytes` bytes that nobody else uses meanwhile.
pub unsafe fn exclusive<'a>(pointer: *mut c_char, bytes: usize) -> &'a mut [u8] {
    if bytes == 0 {
        return &mut [];
    }
    assert!(!pointer.is_null(), "{bytes} bytes at NULL");
    // SAFETY: not NULL; the rest is the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), bytes) }
}

/// A text of the caller's.
///
/// # Safety
/// As [`shared`].
pub unsafe fn text<'a>(pointer: *const c_char, bytes: usize) -> Result<&'a str, StoreError> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { shared(pointer, bytes) };
    std::str::from_utf8(bytes).map_err(|_| invalid("a name is not UTF-8; the store keeps names that are"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_a_number_and_a_sentence() {
        assert_eq!(call(|| Ok(())), 0);
        assert_eq!(call(|| panic!("planted")), code(ErrorKind::Io));
        // SAFETY: the thread's own text, with an end mark.
        let sentence = unsafe { CStr::from_ptr(last_error()) }.to_str().expect("UTF-8");
        assert!(sentence.ends_with("planted"), "{sentence}");
    }
}
