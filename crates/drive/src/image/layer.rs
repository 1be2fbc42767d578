//! What an image lies on: a file of the operating system, or a simulated one. The calls are the operating system's: they
//! may do less than they were asked for, and fail as its do.
//!
//! Deliberately not here: doing all of it, locks, and sentences (`file`).

use super::simulated::OpenSimulated;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// An open file.
#[derive(Debug)]
pub(super) enum Layer {
    /// Of the operating system.
    Real(File),
    /// In memory, with the faults of a disk.
    Simulated(OpenSimulated),
}

impl Layer {
    pub(super) fn bytes(&self) -> io::Result<u64> {
        match self {
            Self::Real(file) => file.metadata().map(|metadata| metadata.len()),
            Self::Simulated(file) => Ok(file.bytes()),
        }
    }

    /// Empties the file and gives it a size: one hole.
    pub(super) fn clear(&self, bytes: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_len(0).and_then(|()| file.set_len(bytes)),
            Self::Simulated(file) => file.clear(bytes),
        }
    }

    /// Reads at most `bytes`; 0 bytes at the end of the file.
    pub(super) fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Self::Real(file) => file.read_at(bytes, at),
            Self::Simulated(file) => file.read_at(bytes, at),
        }
    }

    /// Writes at most `bytes`.
    pub(super) fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        match self {
            Self::Real(file) => file.write_at(bytes, at),
            Self::Simulated(file) => file.write_at(bytes, at),
        }
    }

    /// Everything written so far is on the disk, with what is needed to find it (`fdatasync`).
    pub(super) fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_data(),
            Self::Simulated(file) => file.sync(),
        }
    }

    /// The same with all that is known of the file (`fsync`).
    pub(super) fn sync_all(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_all(),
            Self::Simulated(file) => file.sync(),
        }
    }

    /// Lets go of pages in memory that need not be written. What is read then is what is on the disk, also where an earlier
    /// sync has failed: Linux keeps the pages it could not write, and takes them for written.
    ///
    /// # Errors
    /// As the operating system says. On one without such a call nothing is done.
    pub(super) fn drop_clean_pages(&self) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Real(file) => Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?),
            #[cfg(not(target_os = "linux"))]
            Self::Real(_) => Ok(()),
            Self::Simulated(file) => {
                file.drop_clean_pages();
                Ok(())
            }
        }
    }
}
