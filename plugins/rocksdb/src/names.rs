//! What is done by name, as C functions.

use crate::FileSystem;
use crate::boundary::{call, put, text};
use ocssd_table_store::{FileStatus, Store, StoreError};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Carries out something about one path.
///
/// # Safety
/// The handle must be open, and `path` point to `bytes` bytes.
unsafe fn with(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    body: impl FnOnce(&Arc<Store>, &str) -> Result<(), StoreError>,
) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { body(&(*fs).store, text(path, bytes)?) })
}

/// What is known of a file or directory: bytes, nanoseconds since 1970, and whether it is a directory.
///
/// # Safety
/// The handle must be open, `path` point to `bytes` bytes, and the others to room for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_status(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    size: *mut u64,
    modified_ns: *mut u64,
    is_directory: *mut i32,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(fs, path, bytes, |store, path| {
            let status: FileStatus = store.status(path)?;
            put(size, status.bytes);
            put(modified_ns, status.modified_ns);
            put(is_directory, i32::from(status.is_directory));
            Ok(())
        })
    }
}

/// Tells `child` the name of everything in a directory.
///
/// # Safety
/// The handle must be open, `path` point to `bytes` bytes, and `child` return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_children(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    child: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    context: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(fs, path, bytes, |store, path| {
            for (name, _) in store.children(path)? {
                child(context, name.as_ptr().cast(), name.len());
            }
            Ok(())
        })
    }
}

/// Deletes a file.
///
/// # Safety
/// The handle must be open, and `path` point to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_delete(fs: *const FileSystem, path: *const c_char, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { with(fs, path, bytes, |store, path| store.delete(path)) }
}

/// Makes a directory; one that is there is an error if `is_new` is not 0.
///
/// # Safety
/// The handle must be open, and `path` point to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_create_dir(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    is_new: i32,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { with(fs, path, bytes, |store, path| store.create_directory(path, is_new != 0)) }
}

/// Deletes an empty directory.
///
/// # Safety
/// The handle must be open, and `path` point to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_delete_dir(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { with(fs, path, bytes, |store, path| store.delete_directory(path)) }
}

/// Renames a file or directory.
///
/// # Safety
/// The handle must be open, and both paths point to as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_rename(
    fs: *const FileSystem,
    from: *const c_char,
    from_bytes: usize,
    to: *const c_char,
    to_bytes: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { with(fs, from, from_bytes, |store, from| store.rename(from, text(to, to_bytes)?)) }
}

/// Takes a lock (`is_taken` 1), or gives it back (0).
///
/// # Safety
/// The handle must be open, and `path` point to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_lock(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    is_taken: i32,
) -> i32 {
    let change = |store: &Arc<Store>, path: &str| {
        if is_taken == 0 { store.unlock(path) } else { store.lock(path) }
    };
    // SAFETY: the caller's promise.
    unsafe { with(fs, path, bytes, change) }
}

/// Changes of names survive a crash of this machine.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_sync_names(fs: *const FileSystem) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { &*fs }.store.sync_names())
}
