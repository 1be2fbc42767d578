//! Linux: `O_DIRECT` (open(2)), `fallocate(2)`, `statfs(2)`, `PR_SET_TIMERSLACK` (prctl(2)).

use super::{How, Opened};
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

fn open(how: &How<'_>, flags: OFlags) -> io::Result<File> {
    // The kernel refuses an exclusive open of a device that is mounted or held, whatever /proc said a moment ago.
    let is_device = fs::metadata(how.path).is_ok_and(|about| about.file_type().is_block_device());
    let exclusive = if is_device && how.writable { OFlags::EXCL } else { OFlags::empty() };
    let flags = i32::try_from((flags | exclusive).bits()).map_err(io::Error::other)?;
    how.options().mode(0o600).custom_flags(flags).open(how.path)
}

/// Opens a file.
pub fn open_cached(how: &How<'_>) -> io::Result<File> {
    open(how, OFlags::empty())
}

/// The same, for direct I/O.
pub fn open_direct(how: &How<'_>) -> io::Result<Opened> {
    match open(how, OFlags::DIRECT) {
        Ok(file) => Ok(Opened::Direct(file)),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            if how.temporary {
                // The open made the file before it failed on some systems.
                let _ = fs::remove_file(how.path);
            }
            Ok(Opened::Cached(open_cached(how)?, error))
        }
        Err(error) => Err(error),
    }
}

/// Takes the room a file needs before it is written, so that a full disk is found now, and writes are of a file that has its
/// length already. File systems that cannot do that find out later.
pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(bytes),
        other => Ok(other?),
    }
}

/// The name of the file system a file lies in, or its number (linux/magic.h).
pub fn file_system(file: &File) -> String {
    let magic = rustix::fs::fstatfs(file).map(|about| about.f_type).unwrap_or_default();
    match u32::try_from(magic & 0xFFFF_FFFF).unwrap_or_default() {
        0xEF53 => "ext4".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683E => "btrfs".to_owned(),
        0x2FC1_2FC1 => "zfs".to_owned(),
        0x794C_7630 => "overlayfs".to_owned(),
        0x6573_5546 => "fuse".to_owned(),
        other => format!("{other:#x}"),
    }
}

/// Lets no wait of this thread be made longer than asked, to join it with others: requests that come by the clock would begin
/// late. Not every kernel knows how; then they do, and the result says by how much.
pub fn no_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
