//! The plugin as an extension that SQLite's shell loads: `OCSSD_SQLITE=drive=app.ocssd,create=qemu`, then `.load`.
//!
//! Deliberately not here: SQL functions; `PRAGMA ocssd_counters` is the VFS' own.

use crate::boundary::{Routines, text_for_sqlite, use_routines};
use crate::volumes::DriveVolume;
use libsqlite3_sys as sqlite;
use ocssd_table_store::{ErrorKind, StoreError};
use std::ffi::{c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::sync::Arc;

// Where `sqlite3_malloc`, `sqlite3_vfs_register` and `sqlite3_log` stand in the table that extensions are handed (`sqlite3ext.h`,
// whose order never changes).
const MALLOC: usize = 68;
const VFS_REGISTER: usize = 142;
const LOG: usize = 167;

/// What `.load` calls. SQLite keeps the extension loaded, and knows a VFS `ocssd` from then on.
///
/// # Safety
/// SQLite's promises: a table of its routines, and room for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    _: *mut sqlite::sqlite3,
    message: *mut *mut c_char,
    api: *const *const c_void,
) -> c_int {
    // SAFETY: the table has these routines at these places, of these types.
    let routines = unsafe {
        Routines {
            malloc: std::mem::transmute::<*const c_void, unsafe extern "C" fn(c_int) -> *mut c_void>(
                *api.add(MALLOC),
            ),
            vfs_register: std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut sqlite::sqlite3_vfs, c_int) -> c_int,
            >(*api.add(VFS_REGISTER)),
            log: std::mem::transmute::<*const c_void, unsafe extern "C" fn(c_int, *const c_char, ...)>(
                *api.add(LOG),
            ),
        }
    };
    use_routines(routines);
    let loaded = catch_unwind(|| load(routines)).unwrap_or_else(|_| {
        Err(StoreError::new(ErrorKind::Io, "a bug in ocssd stopped the opening of the drive"))
    });
    let Err(error) = loaded else { return sqlite::SQLITE_OK_LOAD_PERMANENTLY };
    if !message.is_null() {
        // SAFETY: SQLite's promise.
        unsafe { message.write(text_for_sqlite(&error.sentence)) };
    }
    sqlite::SQLITE_ERROR
}

fn load(routines: Routines) -> Result<(), StoreError> {
    let text = std::env::var("OCSSD_SQLITE").map_err(|_| {
        StoreError::new(
            ErrorKind::Invalid,
            "OCSSD_SQLITE names no drive; set it before SQLite starts, as in OCSSD_SQLITE=drive=app.ocssd,create=qemu",
        )
    })?;
    let volume = Arc::new(DriveVolume::open(&text)?);
    if std::env::var_os("OCSSD_NOTES").is_some() {
        volume.notes()?.iter().for_each(|note| eprintln!("ocssd: {note}"));
    }
    crate::vfs::register("ocssd", &volume, routines)
}
