//! A volume as SQLite's file system (`sqlite3_vfs`).
//!
//! Names are paths without meaning: `/a/app.db` is a name. Deliberately not here: open files (`io`).

use crate::boundary::{Routines, call, code};
use crate::counters::FileKind;
use crate::io::{Content, Handle, METHODS, OpenFile};
use crate::locks::Holder;
use crate::record::NAME_BYTES_MAX;
use crate::volume::Volume;
use crate::volumes::DriveVolume;
use libsqlite3_sys as sqlite;
use ocssd_table_store::{ErrorKind, StoreError};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Days from the beginning of the Julian count to 1970, in milliseconds (SQLite's `xCurrentTimeInt64`).
const UNIX_EPOCH_MS: i64 = 210_866_760_000_000;

/// What SQLite is handed: it keeps the address as long as the process lives.
struct Registered {
    vfs: sqlite::sqlite3_vfs,
    volume: Arc<DriveVolume>,
    _name: CString,
}

/// Makes a volume known to SQLite under a name.
///
/// # Errors
/// If the name has a NUL, or SQLite refuses.
pub fn register(name: &str, volume: &Arc<DriveVolume>, routines: Routines) -> Result<(), StoreError> {
    let invalid = |sentence: String| StoreError::new(ErrorKind::Invalid, sentence);
    let routines = crate::boundary::use_routines(routines);
    let name = CString::new(name).map_err(|_| invalid("the name of a VFS has no NUL".to_owned()))?;
    let number = |count: usize| c_int::try_from(count).expect("small");
    let vfs = sqlite::sqlite3_vfs {
        iVersion: 2,
        szOsFile: number(size_of::<OpenFile>()),
        mxPathname: number(NAME_BYTES_MAX),
        pNext: std::ptr::null_mut(),
        zName: name.as_ptr(),
        pAppData: std::ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(get_last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    };
    // SQLite has no way to say that a VFS is not needed any more while connections come and go.
    let registered = Box::leak(Box::new(Registered { vfs, volume: Arc::clone(volume), _name: name }));
    registered.vfs.pAppData = (&raw const registered.volume).cast_mut().cast();
    // SAFETY: a VFS that lives as long as the process.
    let refused = unsafe { (routines.vfs_register)(&raw mut registered.vfs, 0) };
    match refused {
        sqlite::SQLITE_OK => Ok(()),
        other => Err(invalid(format!("SQLite registers no VFS: error {other}"))),
    }
}

/// The volume of a VFS.
///
/// # Safety
/// `vfs` must be one of [`register`].
unsafe fn volume<'a>(vfs: *mut sqlite::sqlite3_vfs) -> &'a Arc<DriveVolume> {
    // SAFETY: the caller's promise.
    unsafe { &*(*vfs).pAppData.cast::<Arc<DriveVolume>>() }
}

/// A name of SQLite's.
///
/// # Safety
/// It must point to a text with an end mark.
unsafe fn name<'a>(name: *const c_char) -> Result<&'a str, StoreError> {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(name) }.to_str();
    text.map_err(|_| StoreError::new(ErrorKind::Invalid, "a file's name is not UTF-8"))
}

unsafe extern "C" fn open(
    vfs: *mut sqlite::sqlite3_vfs,
    path: sqlite::sqlite3_filename,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let file = file.cast::<OpenFile>();
    // SAFETY: SQLite's promise. What has no methods is not closed.
    unsafe { (*file).base.pMethods = std::ptr::null() };
    call(sqlite::SQLITE_CANTOPEN, || {
        // SAFETY: SQLite's promises.
        let volume = unsafe { volume(vfs) };
        // SAFETY: SQLite's promise.
        let path = if path.is_null() { None } else { Some(unsafe { name(path) }?) };
        let handle = opened(volume, path, flags)?;
        // SAFETY: SQLite's promises.
        unsafe {
            (*file).handle = Box::into_raw(Box::new(handle));
            (*file).base.pMethods = &raw const METHODS;
            if !out_flags.is_null() {
                out_flags.write(flags);
            }
        }
        Ok(sqlite::SQLITE_OK)
    })
}

fn opened(volume: &Arc<DriveVolume>, path: Option<&str>, flags: c_int) -> Result<Handle, StoreError> {
    let mut state = volume.enter()?;
    state.handles += 1;
    let holder = Holder(state.handles);
    let (content, kind) = match path {
        None => (Content::InMemory(Vec::new()), FileKind::Temporary),
        Some(path) => {
            let kind = kind_of(path, flags);
            let id = match state.volume.find(path) {
                Some(_)
                    if flags & sqlite::SQLITE_OPEN_EXCLUSIVE != 0
                        && flags & sqlite::SQLITE_OPEN_CREATE != 0 =>
                {
                    return Err(StoreError::new(ErrorKind::Exists, format!("{path} is there")));
                }
                Some(id) => id,
                None if flags & sqlite::SQLITE_OPEN_CREATE != 0 => {
                    state.volume.counters_mut().of_mut(kind).created += 1;
                    state.volume.create(path)?
                }
                None => {
                    return Err(StoreError::new(
                        ErrorKind::NotFound,
                        format!("{path}: no such file on the volume"),
                    ));
                }
            };
            state.shared.entry(id).or_default().handles += 1;
            (Content::OnDrive(id), kind)
        }
    };
    let is_deleted_on_close = flags & sqlite::SQLITE_OPEN_DELETEONCLOSE != 0;
    let volume = Arc::clone(volume);
    let lock = sqlite::SQLITE_LOCK_NONE;
    Ok(Handle {
        volume,
        content,
        kind,
        holder,
        lock,
        batch: None,
        needs_journal_synced: false,
        is_deleted_on_close,
    })
}

/// What a file is, as SQLite opens it.
fn kind_of(path: &str, flags: c_int) -> FileKind {
    let journals = sqlite::SQLITE_OPEN_MAIN_JOURNAL | sqlite::SQLITE_OPEN_SUPER_JOURNAL;
    match flags {
        _ if flags & sqlite::SQLITE_OPEN_WAL != 0 => FileKind::Wal,
        _ if flags & journals != 0 => FileKind::Journal,
        _ if flags & sqlite::SQLITE_OPEN_MAIN_DB != 0 => FileKind::Database,
        _ => Volume::kind_of(path),
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite::sqlite3_vfs, path: *const c_char, sync_dir: c_int) -> c_int {
    call(sqlite::SQLITE_IOERR_DELETE, || {
        // SAFETY: SQLite's promises.
        let (volume, path) = unsafe { (volume(vfs), name(path)?) };
        let mut state = volume.enter()?;
        let Some(id) = state.volume.find(path) else { return Ok(sqlite::SQLITE_IOERR_DELETE_NOENT) };
        state.volume.counters_mut().of_mut(Volume::kind_of(path)).deleted += 1;
        state.volume.delete(id, sync_dir != 0)?;
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn access(
    vfs: *mut sqlite::sqlite3_vfs,
    path: *const c_char,
    _: c_int,
    found: *mut c_int,
) -> c_int {
    call(sqlite::SQLITE_IOERR_ACCESS, || {
        // SAFETY: SQLite's promises.
        let (volume, path) = unsafe { (volume(vfs), name(path)?) };
        let state = volume.enter()?;
        let id = state.volume.find(path);
        // As on other systems, a file without content is not there: a journal that was begun and not written.
        let is_there = id.map(|id| state.volume.bytes(id)).transpose()?.is_some_and(|bytes| bytes > 0);
        // SAFETY: SQLite's promise.
        unsafe { found.write(c_int::from(is_there)) };
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn full_pathname(
    _: *mut sqlite::sqlite3_vfs,
    path: *const c_char,
    bytes: c_int,
    full: *mut c_char,
) -> c_int {
    call(sqlite::SQLITE_CANTOPEN, || {
        // SAFETY: SQLite's promise.
        let path = unsafe { name(path) }?;
        let room = usize::try_from(bytes).unwrap_or(0);
        if path.len() >= room {
            let sentence =
                format!("a name has up to {NAME_BYTES_MAX} bytes, and one of {} was given", path.len());
            return Err(StoreError::new(ErrorKind::Invalid, sentence));
        }
        // SAFETY: SQLite's room, which is enough for the name and an end mark.
        unsafe {
            std::ptr::copy_nonoverlapping(path.as_ptr().cast(), full, path.len());
            full.add(path.len()).write(0);
        }
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn randomness(_: *mut sqlite::sqlite3_vfs, bytes: c_int, into: *mut c_char) -> c_int {
    // What differs from call to call and from process to process: SQLite asks for a seed once.
    let now = since_1970_ns();
    let mut prng = ocssd_base::Prng::new(now ^ u64::from(std::process::id()));
    for nth in 0..usize::try_from(bytes).unwrap_or(0) {
        let byte = u8::try_from(prng.below(256)).expect("below 256");
        // SAFETY: SQLite's promise: there is room for so many.
        unsafe { into.add(nth).cast::<u8>().write(byte) };
    }
    bytes
}

fn since_1970_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

unsafe extern "C" fn sleep(_: *mut sqlite::sqlite3_vfs, microseconds: c_int) -> c_int {
    let wanted = u64::try_from(microseconds).unwrap_or(0);
    std::thread::sleep(std::time::Duration::from_micros(wanted));
    microseconds
}

unsafe extern "C" fn current_time_int64(
    _: *mut sqlite::sqlite3_vfs,
    now: *mut sqlite::sqlite3_int64,
) -> c_int {
    let since = i64::try_from(since_1970_ns() / 1_000_000).unwrap_or(0);
    // SAFETY: SQLite's promise.
    unsafe { now.write(UNIX_EPOCH_MS + since) };
    sqlite::SQLITE_OK
}

unsafe extern "C" fn current_time(_: *mut sqlite::sqlite3_vfs, now: *mut f64) -> c_int {
    let days = since_1970_ns() / 1_000_000_000 / 86_400;
    let rest = f64::from(u32::try_from(since_1970_ns() / 1_000_000_000 % 86_400).unwrap_or(0)) / 86_400.0;
    // SAFETY: SQLite's promise.
    unsafe { now.write(2_440_587.5 + f64::from(u32::try_from(days).unwrap_or(0)) + rest) };
    sqlite::SQLITE_OK
}

unsafe extern "C" fn get_last_error(_: *mut sqlite::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    code(ErrorKind::Io, 0)
}

/// The routines of an SQLite that is linked to the program.
#[must_use]
pub fn linked() -> Routines {
    Routines { vfs_register: sqlite::sqlite3_vfs_register, malloc: allocate, log: sqlite::sqlite3_log }
}

unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    // SAFETY: an allocation.
    unsafe { sqlite::sqlite3_malloc(bytes) }
}
