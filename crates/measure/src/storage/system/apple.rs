//! macOS: `F_NOCACHE` (fcntl(2)); `F_FULLFSYNC` is what the standard library's `sync_data` does there.
//!
//! `F_NOCACHE` keeps I/O from filling the cache and does not empty it: what lies there already still answers, which the share
//! that is resident shows.

use super::{How, Opened};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;

/// Opens a file. Devices are not written on this system (nobody says their serial number), so none is held.
pub fn open_cached(how: &How<'_>) -> io::Result<File> {
    how.options().mode(0o600).open(how.path)
}

/// The same, for direct I/O.
pub fn open_direct(how: &How<'_>) -> io::Result<Opened> {
    let file = open_cached(how)?;
    Ok(match rustix::fs::fcntl_nocache(&file, true) {
        Ok(()) => Opened::Direct(file),
        Err(error) => Opened::Cached(file, error.into()),
    })
}

/// Takes the room a file needs before it is written.
pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOTSUP) => file.set_len(bytes),
        other => Ok(other?),
    }
}

/// The name of the file system a file lies in.
pub fn file_system(file: &File) -> String {
    let Ok(about) = rustix::fs::fstatfs(file) else { return "unknown".to_owned() };
    let letters = about.f_fstypename.iter().filter_map(|&letter| u8::try_from(letter).ok());
    letters.take_while(|&letter| letter != 0).map(char::from).collect()
}

/// This system has no such setting.
pub const fn no_timer_slack() {}
