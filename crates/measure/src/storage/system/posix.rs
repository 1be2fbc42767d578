//! What Linux and macOS do alike.

use crate::storage::guard::DeviceNumber;
use ocssd_base::Nanos;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

/// Whether it is a block device.
pub fn is_block_device(kind: FileType) -> bool {
    kind.is_block_device()
}

/// The parts of a device's number.
pub fn number_of(device: u64) -> DeviceNumber {
    let device = rustix::fs::Dev::try_from(device).expect("a number the system gave");
    DeviceNumber { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
}

/// The number of a device itself.
pub fn device_number(about: &Metadata) -> DeviceNumber {
    number_of(about.rdev())
}

/// The number of the device a file lies on.
pub fn device_below(about: &Metadata) -> DeviceNumber {
    number_of(about.dev())
}

/// Takes away the name of an open file: it is gone when the program is, however that ends.
pub fn drop_name(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// Bytes that are free in a directory's file system for this user.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    let about = rustix::fs::statvfs(directory)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

/// Reads at a place.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

/// Writes at a place.
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

/// Processor time of all threads of this program so far: those of the thread back end and the kernel's own for `io_uring` are
/// among them (clock_gettime(2), `CLOCK_PROCESS_CPUTIME_ID`).
pub fn process_cpu() -> Option<Nanos> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Nanos(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?))
}
