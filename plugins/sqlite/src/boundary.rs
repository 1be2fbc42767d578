//! What every function goes through that SQLite calls: panics end here, failures become SQLite's numbers, and their sentences
//! go to its log.
//!
//! Deliberately not here: what the functions do.

use libsqlite3_sys as sqlite;
use ocssd_table_store::{ErrorKind, StoreError};
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// What is asked of the SQLite that loaded this: linked to the program, or handed to an extension.
#[derive(Clone, Copy)]
pub struct Routines {
    /// Adds a VFS.
    pub vfs_register: unsafe extern "C" fn(*mut sqlite::sqlite3_vfs, c_int) -> c_int,
    /// Memory that SQLite frees.
    pub malloc: unsafe extern "C" fn(c_int) -> *mut std::ffi::c_void,
    /// SQLite's log.
    pub log: unsafe extern "C" fn(c_int, *const c_char, ...),
}

static ROUTINES: OnceLock<Routines> = OnceLock::new();

/// The routines, as they were given first; a process has one SQLite for this plugin.
pub fn use_routines(routines: Routines) -> Routines {
    *ROUTINES.get_or_init(|| routines)
}

/// SQLite's number for a failure, where `io` is what failed if it was the drive.
pub const fn code(kind: ErrorKind, io: c_int) -> c_int {
    match kind {
        ErrorKind::NoSpace => sqlite::SQLITE_FULL,
        ErrorKind::Busy => sqlite::SQLITE_BUSY,
        ErrorKind::Corrupt => sqlite::SQLITE_CORRUPT,
        ErrorKind::NotFound
        | ErrorKind::Exists
        | ErrorKind::Invalid
        | ErrorKind::NotSupported
        | ErrorKind::Io
        | ErrorKind::Changed => io,
    }
}

/// Tells SQLite's log a sentence.
pub fn log(number: c_int, sentence: &str) {
    let Some(routines) = ROUTINES.get() else { return };
    let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
    // SAFETY: a format with one text, and a text.
    unsafe { (routines.log)(number, c"ocssd: %s".as_ptr(), sentence.as_ptr()) };
}

/// A copy of a text that SQLite frees; NULL if there is no memory.
pub fn text_for_sqlite(text: &str) -> *mut c_char {
    let Some(routines) = ROUTINES.get() else { return std::ptr::null_mut() };
    let Ok(bytes) = c_int::try_from(text.len() + 1) else { return std::ptr::null_mut() };
    // SAFETY: an allocation.
    let copy = unsafe { (routines.malloc)(bytes) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: it has room for the text and an end mark.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
            copy.add(text.len()).write(0);
        }
    }
    copy.cast()
}

/// Runs the body of a function that SQLite calls. `io` is SQLite's number for a failure of the drive there.
pub fn call(io: c_int, body: impl FnOnce() -> Result<c_int, StoreError>) -> c_int {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(number)) => return number,
        Ok(Err(error)) => error,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            StoreError::new(ErrorKind::Io, format!("a bug in ocssd stopped this call: {words}"))
        }
    };
    let number = code(failure.kind, io);
    log(number, &failure.sentence);
    number
}
