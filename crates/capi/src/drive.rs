//! `ocssd_drive_*`: opening and closing drives, their shape, their time.

use crate::address::Geometry;
use crate::boundary::{Memory, call, put, shared, text};
use crate::core::Core;
use crate::failure::Failure;
use crate::settings::{DriveOptions, Settings};
use crate::state::State;
use ocssd_base::Nanos;
use ocssd_drive::OpenDrive;
use std::ffi::{c_char, c_int, c_void};

/// An open drive.
pub struct Drive {
    /// What its queues and targets share.
    pub(crate) core: Core,
}

/// Opens a drive by `how`, and puts its handle where the caller wants it.
///
/// # Safety
/// `options` and `drive` as the header asks.
unsafe fn open(
    options: *const DriveOptions,
    drive: *mut *mut Drive,
    how: impl FnOnce(&Settings) -> Result<OpenDrive, Failure>,
) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise.
    let settings = unsafe {
        put(drive, "drive", std::ptr::null_mut())?;
        Settings::of(options)?
    };
    let state = State::new(how(&settings)?, settings.clock)?;
    let handle = Box::into_raw(Box::new(Drive { core: Core::new(state) }));
    // SAFETY: the caller's promise.
    unsafe { put(drive, "drive", handle)? };
    Ok(0)
}

/// Opens a drive: `source` is a preset ("westlake", "tiny", ...: a fresh drive in memory), a drive file that ends in .toml (a
/// fresh drive in memory), or an image (the drive as it was left). `options` may be NULL. Real bytes are stored.
///
/// Errors: -ENOENT if there is no such preset or file, -EINVAL for settings or an image that cannot be used, -EBUSY if
/// another process has the image; `*drive` is then NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_open(
    source: *const c_char,
    options: *const DriveOptions,
    drive: *mut *mut Drive,
) -> c_int {
    // SAFETY: the header asks for such pointers.
    call(|| unsafe { open(options, drive, |settings| settings.open(text(source, "source")?)) })
}

/// Opens a fresh drive in memory of a drive file's text (docs/drive.md), as `ocssd_drive_open` else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_open_toml(
    toml: *const c_char,
    options: *const DriveOptions,
    drive: *mut *mut Drive,
) -> c_int {
    // SAFETY: the header asks for such pointers.
    call(|| unsafe { open(options, drive, |settings| settings.open_toml(text(toml, "toml")?)) })
}

/// Makes an image at `path` of a fresh drive, and opens it. `source` is a preset or a drive file. A file that exists is left
/// alone.
///
/// Errors: -EEXIST if there is such a file; else as `ocssd_drive_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_create(
    path: *const c_char,
    source: *const c_char,
    options: *const DriveOptions,
    drive: *mut *mut Drive,
) -> c_int {
    // SAFETY: the header asks for such pointers.
    call(|| unsafe {
        open(options, drive, |settings| settings.create(text(path, "path")?, text(source, "source")?))
    })
}

/// Closes a drive whose targets and queues are closed, and sets `*drive` to NULL, so that nothing is closed twice. What was
/// written to an image is on disk afterwards. Virtual time passes until the drive is idle; the machine's is waited for.
///
/// Errors: -EBUSY if a target or a queue is open, -EINVAL if the drive is NULL (closed already): nothing is changed then.
/// -EIO if the image could not be kept, -ENOTRECOVERABLE after a bug: the drive is closed all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_close(drive: *mut *mut Drive) -> c_int {
    call(|| {
        // SAFETY: the header asks for a pointer to a handle.
        let handle = unsafe { *shared(drive, "drive")? };
        // SAFETY: as above.
        let core = unsafe { shared(handle, "*drive")? }.core.clone();
        let closed = match core.enter() {
            Ok(mut state) => {
                let (queues, targets) = (state.queues.open_count(), state.requests.target_count());
                if queues + targets > 0 {
                    return Err(Failure::new(
                        libc::EBUSY,
                        format!(
                            "{targets} targets and {queues} queues of the drive are open; close them first"
                        ),
                    ));
                }
                state.close()
            }
            Err(poisoned) if core.is_poisoned() => Err(poisoned),
            Err(busy) => return Err(busy),
        };
        // SAFETY: the handle was made by `open`, and the caller's copy of it is taken away.
        unsafe {
            put(drive, "drive", std::ptr::null_mut())?;
            drop(Box::from_raw(handle));
        }
        closed.map(|()| 0)
    })
}

/// Gets the drive's shape and rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_geometry(drive: *mut Drive, geometry: *mut Geometry) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive.
        let state = unsafe { shared(drive, "drive")? }.core.enter()?;
        let found = Geometry::of(state.config(), state.host.device().transfer_bytes_max());
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(geometry, "geometry", found)? };
        Ok(0)
    })
}

/// Puts the drive's settings, as a drive file has them (TOML), into `text` with room for `bytes` bytes: as much as fits, with a
/// zero at its end. Returns the length of all of it, without the zero; `text` may be NULL to ask for that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_settings(drive: *mut Drive, text: *mut c_char, bytes: u64) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive.
        let toml = unsafe { shared(drive, "drive")? }.core.enter()?.spec.to_toml();
        let room = Memory::new(text.cast::<c_void>(), bytes, "text")?;
        // SAFETY: the header asks for room for so many bytes.
        let room = unsafe { room.as_mut() };
        if let Some(last) = room.len().checked_sub(1) {
            let count = toml.len().min(last);
            room[..count].copy_from_slice(&toml.as_bytes()[..count]);
            room[count] = 0;
        }
        Ok(c_int::try_from(toml.len()).expect("settings are shorter than 1 MiB"))
    })
}

/// Gets the drive's time in nanoseconds since it was opened. It never falls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_now(drive: *mut Drive, nanoseconds: *mut u64) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive.
        let now = unsafe { shared(drive, "drive")? }.core.enter()?.now();
        // SAFETY: the header asks for room for a number.
        unsafe { put(nanoseconds, "nanoseconds", now.0)? };
        Ok(0)
    })
}

/// Lets time pass until a completion waits to be told by a poll of any queue or target of the drive, `nanoseconds` at most. With
/// the machine's clock the thread sleeps; without anything in progress it is how virtual time passes. Returns how many
/// completions wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_drive_wait(drive: *mut Drive, nanoseconds: u64) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive.
        let ended = unsafe { shared(drive, "drive")? }.core.enter()?.wait(Nanos(nanoseconds));
        Ok(c_int::try_from(ended).unwrap_or(c_int::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{OCSSD_QUEUE_IO, ocssd_queue_close, ocssd_queue_open, ocssd_queue_poll};
    use crate::target::{ocssd_target_close, ocssd_target_open};
    use std::ptr::null_mut;

    #[test]
    fn after_a_panic_every_call_is_refused_and_everything_can_still_be_closed() {
        let (mut drive, mut queue, mut target) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the handles are those of the library, and texts end with zeros.
        unsafe {
            assert_eq!(ocssd_drive_open(c"tiny".as_ptr(), std::ptr::null(), &raw mut drive), 0);
            assert_eq!(ocssd_queue_open(drive, OCSSD_QUEUE_IO, 4, &raw mut queue), 0);
            let what = c"linear".as_ptr();
            assert_eq!(ocssd_target_open(drive, what, std::ptr::null(), &raw mut target), 0);
            let core = (*drive).core.clone();
            let inside = call(|| {
                let state = core.enter()?;
                panic!("planted while the drive's time is {}", state.now())
            });
            assert_eq!(inside, -libc::ENOTRECOVERABLE);
            let mut now = 7;
            assert_eq!(ocssd_drive_now(drive, &raw mut now), -libc::ENOTRECOVERABLE);
            assert_eq!((ocssd_queue_poll(queue, 1), now), (-libc::ENOTRECOVERABLE, 7));
            assert_eq!(ocssd_target_close(&raw mut target), -libc::ENOTRECOVERABLE);
            assert_eq!(ocssd_queue_close(&raw mut queue), -libc::ENOTRECOVERABLE);
            assert_eq!(ocssd_drive_close(&raw mut drive), -libc::ENOTRECOVERABLE);
            assert!(drive.is_null() && queue.is_null() && target.is_null());
        }
    }

    #[test]
    fn a_second_thread_is_refused_while_one_is_inside() {
        let mut drive = null_mut();
        // SAFETY: the handle is the library's, and the text ends with a zero.
        unsafe {
            assert_eq!(ocssd_drive_open(c"tiny".as_ptr(), std::ptr::null(), &raw mut drive), 0);
            let core = (*drive).core.clone();
            let inside = core.enter().unwrap();
            let other = core.clone();
            let refused = std::thread::spawn(move || other.enter().err().map(|failure| failure.errno));
            assert_eq!(refused.join().unwrap(), Some(libc::EBUSY));
            assert_eq!(ocssd_drive_close(&raw mut drive), -libc::EBUSY);
            drop(inside);
            assert_eq!(ocssd_drive_close(&raw mut drive), 0);
            assert_eq!(ocssd_drive_close(&raw mut drive), -libc::EINVAL);
        }
    }
}
