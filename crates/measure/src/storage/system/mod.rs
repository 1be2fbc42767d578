//! What differs between operating systems, behind the same functions: opening for direct I/O, room for a file, facts of a file.
//!
//! Linux is what is tested. macOS and Windows are compiled by `cargo xtask test --long` where the compiler has them, and were
//! not run; nothing else is known. Deliberately not here: `io_uring` (`uring`), and facts that only Linux tells, which are
//! read as files below a [`SystemRoot`](super::SystemRoot) and are not there elsewhere.

#[cfg(target_os = "macos")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod posix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "macos")]
pub(super) use apple::{file_system, no_timer_slack, open_cached, open_direct, reserve};
#[cfg(target_os = "linux")]
pub(super) use linux::{file_system, no_timer_slack, open_cached, open_direct, reserve};
#[cfg(unix)]
pub(super) use posix::{
    device_below, device_number, drop_name, free_bytes, is_block_device, read_at, write_at,
};
#[cfg(unix)]
pub use posix::{number_of, process_cpu};
#[cfg(windows)]
pub(super) use windows::{
    device_below, device_number, drop_name, file_system, free_bytes, is_block_device, no_timer_slack,
    open_cached, open_direct, read_at, reserve, write_at,
};
#[cfg(windows)]
pub use windows::{number_of, process_cpu, resident_share};

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!(
    "ocssd-measure knows how Linux, macOS and Windows do direct I/O; write crates/measure/src/storage/system/ for another system"
);

/// What is opened, and how.
pub(super) struct How<'a> {
    /// Its name.
    pub path: &'a std::path::Path,
    /// For writing too.
    pub writable: bool,
    /// It is made, and nobody else reads it.
    pub temporary: bool,
}

impl How<'_> {
    fn options(&self) -> std::fs::OpenOptions {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(self.writable).create_new(self.temporary);
        options
    }
}

/// A file opened for direct I/O.
pub(super) enum Opened {
    /// The page cache is passed by.
    Direct(std::fs::File),
    /// The system refused that, as it says, and gave the file without.
    Cached(std::fs::File, std::io::Error),
}
