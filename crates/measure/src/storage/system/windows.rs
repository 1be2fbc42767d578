//! Windows: `FILE_FLAG_NO_BUFFERING`, `FILE_FLAG_DELETE_ON_CLOSE` (CreateFileW); durable writes are `FlushFileBuffers`, which
//! is the standard library's `sync_data`.
//!
//! Deliberately not here: devices (`\\.\PhysicalDrive0` is refused as neither a directory nor a file), free room, the name of
//! the file system and the processor time of all threads, which the standard library does not tell: they are not known.

use super::{How, Opened};
use crate::storage::guard::DeviceNumber;
use ocssd_base::Nanos;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// I/O passes the cache by; places, sizes and memory are multiples of a sector (winbase.h).
const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;
/// The file is gone when its last handle is (winbase.h).
const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;

/// No block devices here.
pub const fn is_block_device(_kind: FileType) -> bool {
    false
}

/// Nothing has such a number.
pub const fn number_of(_device: u64) -> DeviceNumber {
    DeviceNumber { major: 0, minor: 0 }
}

/// Nothing has such a number.
pub const fn device_number(_about: &Metadata) -> DeviceNumber {
    number_of(0)
}

/// Nothing has such a number.
pub const fn device_below(_about: &Metadata) -> DeviceNumber {
    number_of(0)
}

/// The file goes by itself, see [`open_cached`].
pub const fn drop_name(_path: &Path) -> io::Result<()> {
    Ok(())
}

fn open(how: &How<'_>, flags: u32) -> io::Result<File> {
    let passing = if how.temporary { FILE_FLAG_DELETE_ON_CLOSE } else { 0 };
    how.options().custom_flags(flags | passing).open(how.path)
}

/// Opens a file; a temporary one is gone when the program is, however that ends.
pub fn open_cached(how: &How<'_>) -> io::Result<File> {
    open(how, 0)
}

/// The same, for direct I/O.
pub fn open_direct(how: &How<'_>) -> io::Result<Opened> {
    match open(how, FILE_FLAG_NO_BUFFERING) {
        Ok(file) => Ok(Opened::Direct(file)),
        // ERROR_INVALID_PARAMETER (winerror.h): the file system has no such way.
        Err(error) if error.raw_os_error() == Some(87) => Ok(Opened::Cached(open_cached(how)?, error)),
        Err(error) => Err(error),
    }
}

/// Gives a file its length; room is not reserved.
pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)
}

/// Not known.
pub fn free_bytes(_directory: &Path) -> io::Result<u64> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Not known.
pub fn file_system(_file: &File) -> String {
    "unknown".to_owned()
}

/// Reads at a place.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

/// Writes at a place.
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(bytes, offset)
}

/// Not known.
pub fn resident_share(_file: &File, _bytes: u64, _windows: u64) -> io::Result<f64> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Not known.
pub const fn process_cpu() -> Option<Nanos> {
    None
}

/// This system has no such setting.
pub const fn no_timer_slack() {}
