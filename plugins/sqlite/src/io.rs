//! An open file, as SQLite calls it (`sqlite3_io_methods`).
//!
//! Every method's pointers are SQLite's: a file that `vfs` opened and that is not closed, and memory as long as it says.
//! Deliberately not here: names (`vfs`), places (`volume`).

use crate::blocks::{NotCommitted, in_memory};
use crate::boundary::{call, text_for_sqlite};
use crate::counters::FileKind;
use crate::locks::Holder;
use crate::volume::FileId;
use crate::volumes::{Commit, DriveVolume, Shared};
use libsqlite3_sys as sqlite;
use ocssd_table_store::{ErrorKind, StoreError};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

/// What SQLite is told of sectors: what a write cannot tear.
const SECTOR_BYTES: c_int = 4_096;

/// Where a file is.
pub enum Content {
    /// On the volume.
    OnDrive(FileId),
    /// In memory: it goes with its connection.
    InMemory(Vec<u8>),
}

/// A connection's handle of a file.
pub struct Handle {
    /// The volume.
    pub volume: Arc<DriveVolume>,
    /// Where the file is.
    pub content: Content,
    /// What it is to SQLite.
    pub kind: FileKind,
    /// Its name among locks.
    pub holder: Holder,
    /// The lock it has.
    pub lock: c_int,
    /// Writes since a batch was begun.
    pub batch: Option<Vec<(u64, Vec<u8>)>>,
    /// A batch failed, and what SQLite writes next must find its journal on media: SQLite begins the journal then, but does not
    /// sync it before it writes to the database (`sqlite3PagerCommitPhaseOne`, 3.50).
    pub needs_journal_synced: bool,
    /// The file goes when it is closed.
    pub is_deleted_on_close: bool,
}

/// What SQLite has of an open file.
#[repr(C)]
pub struct OpenFile {
    /// SQLite's own part.
    pub base: sqlite::sqlite3_file,
    /// Ours, of `Box::into_raw`.
    pub handle: *mut Handle,
}

/// The methods.
pub static METHODS: sqlite::sqlite3_io_methods = sqlite::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The handle of a file of SQLite's.
///
/// # Safety
/// `file` must be one that `vfs` opened, not be closed, and be used by one thread at a time, as SQLite does.
unsafe fn handle<'a>(file: *mut sqlite::sqlite3_file) -> &'a mut Handle {
    // SAFETY: the caller's promise.
    unsafe { &mut *(*file.cast::<OpenFile>()).handle }
}

fn offset(at: sqlite::sqlite3_int64) -> Result<u64, StoreError> {
    u64::try_from(at).map_err(|_| StoreError::new(ErrorKind::Invalid, format!("a file has no byte {at}")))
}

fn length(bytes: c_int) -> usize {
    usize::try_from(bytes).expect("SQLite asks for no less than nothing")
}

unsafe extern "C" fn close(file: *mut sqlite::sqlite3_file) -> c_int {
    call(sqlite::SQLITE_IOERR_CLOSE, || {
        let file = file.cast::<OpenFile>();
        // SAFETY: SQLite closes what was opened, once.
        let handle = unsafe { Box::from_raw((*file).handle) };
        // SAFETY: the same.
        unsafe { (*file).base.pMethods = std::ptr::null() };
        let Content::OnDrive(id) = handle.content else { return Ok(sqlite::SQLITE_OK) };
        let mut state = handle.volume.enter()?;
        let shared = state.shared.get_mut(&id).expect("an open file is shared");
        shared.locks.lower(handle.holder, handle.lock, sqlite::SQLITE_LOCK_NONE);
        shared.handles -= 1;
        if shared.handles == 0 {
            state.shared.remove(&id);
        }
        if handle.is_deleted_on_close {
            state.volume.counters_mut().of_mut(handle.kind).deleted += 1;
            state.volume.delete(id, false)?;
        }
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn read(
    file: *mut sqlite::sqlite3_file,
    into: *mut c_void,
    bytes: c_int,
    at: sqlite::sqlite3_int64,
) -> c_int {
    call(sqlite::SQLITE_IOERR_READ, || {
        // SAFETY: SQLite's promises.
        let (handle, into) =
            unsafe { (handle(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), length(bytes))) };
        let at = offset(at)?;
        let found = match &handle.content {
            Content::OnDrive(id) => handle.volume.enter()?.volume.read(*id, at, into)?,
            Content::InMemory(content) => {
                into.fill(0);
                let from = in_memory(at).min(content.len());
                let found = into.len().min(content.len() - from);
                into[..found].copy_from_slice(&content[from..from + found]);
                found
            }
        };
        Ok(if found < into.len() { sqlite::SQLITE_IOERR_SHORT_READ } else { sqlite::SQLITE_OK })
    })
}

unsafe extern "C" fn write(
    file: *mut sqlite::sqlite3_file,
    from: *const c_void,
    bytes: c_int,
    at: sqlite::sqlite3_int64,
) -> c_int {
    call(sqlite::SQLITE_IOERR_WRITE, || {
        // SAFETY: SQLite's promises.
        let (handle, from) =
            unsafe { (handle(file), std::slice::from_raw_parts(from.cast::<u8>(), length(bytes))) };
        let at = offset(at)?;
        let mut state = handle.volume.enter()?;
        let counts = state.volume.counters_mut().of_mut(handle.kind);
        counts.writes += 1;
        counts.bytes += from.len() as u64;
        match (&mut handle.content, &mut handle.batch) {
            (Content::OnDrive(_), Some(batch)) => batch.push((at, from.to_vec())),
            (Content::OnDrive(id), None) => {
                if std::mem::take(&mut handle.needs_journal_synced) {
                    state.volume.sync_journal_of(*id)?;
                }
                state.volume.write(*id, at, from)?;
            }
            (Content::InMemory(content), _) => {
                let (first, end) = (in_memory(at), in_memory(at) + from.len());
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[first..end].copy_from_slice(from);
            }
        }
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn truncate(file: *mut sqlite::sqlite3_file, bytes: sqlite::sqlite3_int64) -> c_int {
    call(sqlite::SQLITE_IOERR_TRUNCATE, || {
        // SAFETY: SQLite's promise.
        let handle = unsafe { handle(file) };
        let bytes = offset(bytes)?;
        match &mut handle.content {
            Content::OnDrive(id) => handle.volume.enter()?.volume.resize(*id, bytes)?,
            Content::InMemory(content) => content.resize(in_memory(bytes), 0),
        }
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn sync(file: *mut sqlite::sqlite3_file, _: c_int) -> c_int {
    call(sqlite::SQLITE_IOERR_FSYNC, || {
        // SAFETY: SQLite's promise.
        let handle = unsafe { handle(file) };
        let mut state = handle.volume.enter()?;
        state.volume.counters_mut().of_mut(handle.kind).syncs += 1;
        if let Content::OnDrive(id) = handle.content {
            state.volume.sync(id)?;
        }
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn file_size(file: *mut sqlite::sqlite3_file, bytes: *mut sqlite::sqlite3_int64) -> c_int {
    call(sqlite::SQLITE_IOERR_FSTAT, || {
        // SAFETY: SQLite's promise.
        let handle = unsafe { handle(file) };
        let found = match &handle.content {
            Content::OnDrive(id) => handle.volume.enter()?.volume.bytes(*id)?,
            Content::InMemory(content) => content.len() as u64,
        };
        // SAFETY: SQLite's promise.
        unsafe { bytes.write(i64::try_from(found).expect("files end before 2^63")) };
        Ok(sqlite::SQLITE_OK)
    })
}

/// Does something to what the connections of a file share; nothing for a file in memory, which has one.
fn with_shared(
    handle: &mut Handle,
    change: impl FnOnce(&mut Shared, Holder, &mut c_int) -> c_int,
) -> Result<c_int, StoreError> {
    let Content::OnDrive(id) = handle.content else { return Ok(sqlite::SQLITE_OK) };
    let mut state = handle.volume.enter()?;
    let shared = state.shared.get_mut(&id).expect("an open file is shared");
    Ok(change(shared, handle.holder, &mut handle.lock))
}

unsafe extern "C" fn lock(file: *mut sqlite::sqlite3_file, wanted: c_int) -> c_int {
    call(sqlite::SQLITE_IOERR_LOCK, || {
        // SAFETY: SQLite's promise.
        with_shared(unsafe { handle(file) }, |shared, holder, lock| {
            *lock = shared.locks.raise(holder, *lock, wanted);
            if *lock >= wanted { sqlite::SQLITE_OK } else { sqlite::SQLITE_BUSY }
        })
    })
}

unsafe extern "C" fn unlock(file: *mut sqlite::sqlite3_file, wanted: c_int) -> c_int {
    call(sqlite::SQLITE_IOERR_UNLOCK, || {
        // SAFETY: SQLite's promise.
        with_shared(unsafe { handle(file) }, |shared, holder, lock| {
            shared.locks.lower(holder, *lock, wanted);
            *lock = wanted.min(*lock);
            sqlite::SQLITE_OK
        })
    })
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite::sqlite3_file, found: *mut c_int) -> c_int {
    call(sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK, || {
        let mut is_reserved = false;
        // SAFETY: SQLite's promise.
        let handle = unsafe { handle(file) };
        with_shared(handle, |shared, _, _| {
            is_reserved = shared.locks.is_reserved();
            sqlite::SQLITE_OK
        })?;
        // SAFETY: SQLite's promise.
        unsafe { found.write(c_int::from(is_reserved)) };
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn file_control(file: *mut sqlite::sqlite3_file, what: c_int, about: *mut c_void) -> c_int {
    call(sqlite::SQLITE_IOERR, || {
        // SAFETY: SQLite's promise.
        let handle = unsafe { handle(file) };
        match what {
            sqlite::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE => {
                assert!(handle.batch.is_none(), "a batch is begun within a batch");
                handle.batch = Some(Vec::new());
                Ok(sqlite::SQLITE_OK)
            }
            sqlite::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE => commit(handle),
            sqlite::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE => {
                handle.batch = None;
                Ok(sqlite::SQLITE_OK)
            }
            // SAFETY: SQLite gives four texts with this one.
            sqlite::SQLITE_FCNTL_PRAGMA => unsafe { pragma(handle, about.cast()) },
            _ => Ok(sqlite::SQLITE_NOTFOUND),
        }
    })
}

/// The writes of a batch become true, or none; SQLite takes a failure of writing for a reason to use a journal.
fn commit(handle: &mut Handle) -> Result<c_int, StoreError> {
    let writes = handle.batch.take().expect("SQLite commits what it began");
    let Content::OnDrive(id) = handle.content else { unreachable!("no batch of a file in memory") };
    match handle.volume.enter()?.volume.commit(id, &writes) {
        Ok(()) => Ok(sqlite::SQLITE_OK),
        Err(NotCommitted::TooLong) => {
            handle.needs_journal_synced = true;
            Ok(sqlite::SQLITE_IOERR_COMMIT_ATOMIC)
        }
        Err(NotCommitted::Failed(error)) => {
            handle.needs_journal_synced = true;
            Err(error)
        }
    }
}

/// `PRAGMA ocssd_counters`: what was done so far, as a text.
///
/// # Safety
/// `texts` must point to four texts or NULLs, of which the first may be changed.
unsafe fn pragma(handle: &Handle, texts: *mut *mut c_char) -> Result<c_int, StoreError> {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(*texts.add(1)) };
    if !name.to_bytes().eq_ignore_ascii_case(b"ocssd_counters") {
        return Ok(sqlite::SQLITE_NOTFOUND);
    }
    let counts = handle.volume.counts()?;
    let text = format!("{}\ntime of the drive: {}", counts.files, counts.now);
    // SAFETY: the caller's promise.
    unsafe { texts.write(text_for_sqlite(&text)) };
    Ok(sqlite::SQLITE_OK)
}

unsafe extern "C" fn sector_size(_: *mut sqlite::sqlite3_file) -> c_int {
    SECTOR_BYTES
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite::sqlite3_file) -> c_int {
    // SAFETY: SQLite's promise.
    let handle = unsafe { handle(file) };
    // A block is old or new, so that bytes beside those that are written stay what they were.
    let always = sqlite::SQLITE_IOCAP_POWERSAFE_OVERWRITE;
    let is_batched = handle.kind == FileKind::Database && handle.volume.commit() == Commit::Batch;
    if is_batched { always | sqlite::SQLITE_IOCAP_BATCH_ATOMIC } else { always }
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite::sqlite3_file,
    nth: c_int,
    bytes: c_int,
    extend: c_int,
    region: *mut *mut c_void,
) -> c_int {
    call(sqlite::SQLITE_IOERR_SHMMAP, || {
        // SAFETY: SQLite's promise.
        let handle = unsafe { handle(file) };
        let mut found = std::ptr::null_mut();
        with_shared(handle, |shared, _, _| {
            let (nth, words) = (length(nth), length(bytes).div_ceil(8));
            while extend != 0 && shared.regions.len() <= nth {
                shared.regions.push(vec![0; words].into_boxed_slice());
            }
            // The box stays where it is when the list grows.
            found = shared.regions.get_mut(nth).map_or(found, |region| region.as_mut_ptr().cast());
            sqlite::SQLITE_OK
        })?;
        // SAFETY: SQLite's promise.
        unsafe { region.write(found) };
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    call(sqlite::SQLITE_IOERR_SHMLOCK, || {
        let slots = length(first)..length(first) + length(count);
        let alone = flags & sqlite::SQLITE_SHM_EXCLUSIVE != 0;
        // SAFETY: SQLite's promise.
        with_shared(unsafe { handle(file) }, |shared, holder, _| {
            if flags & sqlite::SQLITE_SHM_UNLOCK != 0 {
                shared.locks.give_slots(holder, slots, alone);
                return sqlite::SQLITE_OK;
            }
            let is_taken = shared.locks.take_slots(holder, slots, alone);
            if is_taken { sqlite::SQLITE_OK } else { sqlite::SQLITE_BUSY }
        })
    })
}

unsafe extern "C" fn shm_barrier(_: *mut sqlite::sqlite3_file) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite::sqlite3_file, delete: c_int) -> c_int {
    call(sqlite::SQLITE_IOERR_SHMMAP, || {
        // SAFETY: SQLite's promise.
        with_shared(unsafe { handle(file) }, |shared, _, _| {
            // Other connections may have pointers into the regions.
            if delete != 0 && shared.handles == 1 {
                shared.regions.clear();
            }
            sqlite::SQLITE_OK
        })
    })
}
