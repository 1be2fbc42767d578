//! The Rust side of the RocksDB plugin: a store as C functions, which `shim.cc` makes RocksDB's classes of.
//!
//! `LD_PRELOAD=libocssd_rocksdb.so db_bench --fs_uri=lightlsm://drive=db.ocssd ...`; docs/rocksdb.md is for users.
//!
//! Every function returns 0, or a number of [`ErrorKind`], and keeps the sentence for the thread
//! ([`lightlsm_error`]). No panic crosses. Deliberately not here: files and names (`ocssd-table-store`), RocksDB's types.

mod boundary;
mod files;
mod heap;
mod names;

use boundary::{call, put, text};
use ocssd_table_store::{ErrorKind, Store, StoreError};
use std::ffi::c_char;
use std::sync::Arc;

/// A file system, as RocksDB has it.
pub struct FileSystem {
    store: Arc<Store>,
}

/// The number of a kind of failure; `shim.cc` knows the same.
pub(crate) const fn code(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::NotFound => 1,
        ErrorKind::Exists => 2,
        ErrorKind::NoSpace => 3,
        ErrorKind::Busy => 4,
        ErrorKind::Invalid => 5,
        ErrorKind::NotSupported => 6,
        ErrorKind::Corrupt => 7,
        ErrorKind::Io => 8,
        ErrorKind::Changed => 9,
    }
}

/// The sentence of this thread's last failed call, valid until the next.
#[unsafe(no_mangle)]
pub extern "C" fn lightlsm_error() -> *const c_char {
    boundary::last_error()
}

/// Opens what stands behind `lightlsm://`. A process that opens the same text twice shares one store.
///
/// # Safety
/// `uri` must point to `uri_bytes` bytes, and `opened` to room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_open(
    uri: *const c_char,
    uri_bytes: usize,
    opened: *mut *mut FileSystem,
) -> i32 {
    call(|| {
        // SAFETY: the caller's promise.
        let uri = unsafe { text(uri, uri_bytes) }?;
        let options = uri.split_once("://").map_or(uri, |(_, options)| options);
        // What RocksDB appends to an address that it takes for a path.
        let store = Store::open_shared(options.trim_end_matches('/'))?;
        if says_notes() {
            store.notes().iter().for_each(|note| eprintln!("ocssd: {note}"));
        }
        // SAFETY: the caller's promise.
        unsafe { put(opened, Box::into_raw(Box::new(FileSystem { store }))) };
        Ok(())
    })
}

/// Gives a handle back. The drive is left when the last handle and the last file of a process are.
///
/// # Safety
/// The handle must be one of [`lightlsm_open`], and not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_close(opened: *mut FileSystem) {
    call(|| {
        // SAFETY: the caller's promise.
        let FileSystem { store } = *unsafe { Box::from_raw(opened) };
        if says_notes() {
            store.report()?.iter().for_each(|line| eprintln!("ocssd: {line}"));
        }
        Ok(())
    });
}

/// True if the user wants to be told what was found and done.
fn says_notes() -> bool {
    std::env::var_os("OCSSD_NOTES").is_some()
}

/// Bytes that fit at least, and bytes that are used.
///
/// # Safety
/// The handle must be open, and the pointers point to room for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_space(fs: *const FileSystem, capacity: *mut u64, used: *mut u64) -> i32 {
    call(|| {
        // SAFETY: the caller's promise.
        let space = unsafe { &*fs }.store.space()?;
        // SAFETY: the caller's promise.
        unsafe {
            put(capacity, space.capacity_bytes);
            put(used, space.used_bytes);
        }
        Ok(())
    })
}

/// A sentence about something that is not offered.
pub(crate) fn invalid(sentence: &str) -> StoreError {
    StoreError::new(ErrorKind::Invalid, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr::null_mut;

    fn sentence() -> String {
        // SAFETY: the thread's own text, with an end mark.
        unsafe { CStr::from_ptr(lightlsm_error()) }.to_str().expect("UTF-8").to_owned()
    }

    /// A null where a result should go is an assertion on our side: what C++ sees of it is a number and a sentence, from every
    /// depth, and the store goes on.
    #[test]
    fn a_panic_within_an_exported_function_comes_out_as_a_failure() {
        let uri = "lightlsm://drive=westlake";
        let (text, bytes) = (uri.as_ptr().cast(), uri.len());
        // SAFETY: the text is one; the place for a handle is looked at before it is used.
        let code_of_null = unsafe { lightlsm_open(text, bytes, null_mut()) };
        assert_eq!(code_of_null, code(ErrorKind::Io));
        assert!(sentence().starts_with("a bug in ocssd stopped this call: "), "{}", sentence());
        let mut opened = null_mut();
        // SAFETY: as above, with a place.
        assert_eq!(unsafe { lightlsm_open(text, bytes, &raw mut opened) }, 0, "{}", sentence());
        let (mut capacity, mut used) = (0_u64, 0_u64);
        // SAFETY: the handle is open; places are looked at before they are used.
        unsafe {
            assert_eq!(lightlsm_space(opened, null_mut(), &raw mut used), code(ErrorKind::Io));
            assert!(sentence().ends_with("a result has no place"), "{}", sentence());
            assert_eq!(lightlsm_space(opened, &raw mut capacity, &raw mut used), 0, "{}", sentence());
        }
        assert!(capacity > 0 && used < capacity, "the store goes on");
        // SAFETY: the handle is open, and not used any more.
        unsafe { lightlsm_close(opened) };
    }
}
