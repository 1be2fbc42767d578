//! The file below an image: opened, locked, read and written at places, with sentences for what goes wrong.

use crate::error::DriveError;
use ocssd_flash::store::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What to do about an error nothing better is known of.
const CHECK_FILE: &str = "check the file, its permissions and its file system";

/// The mode of a new image: it holds what somebody wrote, as a disk does, and disks are not for everybody to read.
const OWNER_ONLY: u32 = 0o600;

/// An open, locked file. The lock ends with the last owner of the file, or with the process.
#[derive(Debug)]
pub(super) struct ImageFile {
    file: File,
    path: PathBuf,
    pub(super) writable: bool,
    /// Writes until the process ends, where tests say so.
    #[cfg(test)]
    writes_left: std::sync::atomic::AtomicU32,
}

impl ImageFile {
    /// Opens an existing file: alone for writing, or together with other readers.
    pub(super) fn open(path: &Path, writable: bool) -> Result<Self, DriveError> {
        let opened = OpenOptions::new().read(true).write(writable).open(path);
        let advice = if writable {
            "check that it exists and may be written; `inspect` needs to read it only"
        } else {
            CHECK_FILE
        };
        let file = opened.map_err(|error| io_error(path, "opened", error, advice))?;
        Self::lock(file, path, writable)
    }

    /// Opens an existing file whose content is about to be lost. A symbolic link is not followed: whoever can put one in the
    /// place of an image must not choose which file is lost.
    pub(super) fn open_to_replace(path: &Path) -> Result<Self, DriveError> {
        let image = Self::open(path, true)?;
        let opened = image.file.metadata().map_err(|error| image.failed("read", error))?;
        // After it was opened, so that nobody can put a link in between: what was opened is what has the name, or it is refused.
        let named = std::fs::symlink_metadata(path).map_err(|error| image.failed("read", error))?;
        if (opened.dev(), opened.ino()) == (named.dev(), named.ino()) {
            return Ok(image);
        }
        Err(image.unusable(
            "it is a symbolic link, which --replace does not follow; name the file itself".to_owned(),
        ))
    }

    /// Makes a file that must not exist yet, for its owner only.
    pub(super) fn create(path: &Path) -> Result<Self, DriveError> {
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER_ONLY).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => DriveError::Exists { path: path.to_owned() },
            _ => io_error(path, "made", error, "check that its folder exists and may be written"),
        })?;
        Self::lock(file, path, true)
    }

    fn lock(file: File, path: &Path, writable: bool) -> Result<Self, DriveError> {
        let locked = if writable { file.try_lock() } else { file.try_lock_shared() };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DriveError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => {
                let advice = "keep images on a file system that supports locks";
                return Err(io_error(path, "locked", error, advice));
            }
        }
        let image = Self {
            file,
            path: path.to_owned(),
            writable,
            #[cfg(test)]
            writes_left: u32::MAX.into(),
        };
        let metadata = image.file.metadata().map_err(|error| image.failed("read", error))?;
        if metadata.is_file() {
            Ok(image)
        } else {
            Err(image.unusable("it is no regular file; name an image file".to_owned()))
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> Result<u64, DriveError> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(|error| self.failed("read", error))
    }

    /// Empties the file and gives it a size: one hole.
    pub(super) fn clear(&self, bytes: u64) -> Result<(), DriveError> {
        let sized = self.file.set_len(0).and_then(|()| self.file.set_len(bytes));
        sized.map_err(|error| {
            let advice =
                "use a file system with sparse files of that size (ext4, xfs, btrfs), or a smaller drive";
            let error = io::Error::new(error.kind(), format!("{error}, for a sparse file of {bytes} bytes"));
            io_error(&self.path, "given its size", error, advice)
        })
    }

    /// Makes the file's content, size and name survive a crash of the host.
    pub(super) fn settle(&self) -> Result<(), DriveError> {
        self.file.sync_all().map_err(|error| self.failed("written to the disk", error))?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| io_error(folder, "written to the disk", error, CHECK_FILE))
    }

    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.count_write()?;
        self.file.write_all_at(bytes, at)
    }

    /// The file takes so many more writes, and then none: the process ended.
    #[cfg(test)]
    pub(super) fn end_after(&self, writes: u32) {
        self.writes_left.store(writes, std::sync::atomic::Ordering::Relaxed);
    }

    #[cfg(test)]
    fn count_write(&self) -> io::Result<()> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self.writes_left.load(Relaxed).checked_sub(1);
        self.writes_left.store(left.ok_or_else(|| io::Error::other("the process ended"))?, Relaxed);
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The sentence for the drive's user when the file fails under a command.
    pub(super) fn store_error(&self, action: &str, at: u64, error: &io::Error) -> StoreError {
        let path = self.path.display();
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free space on its file system and open the image again"
            }
            _ => CHECK_FILE,
        };
        StoreError(format!("{path} cannot be {action} at byte {at}: {error}; {advice}"))
    }

    pub(super) fn failed(&self, action: &'static str, error: io::Error) -> DriveError {
        io_error(&self.path, action, error, CHECK_FILE)
    }

    pub(super) fn unusable(&self, reason: String) -> DriveError {
        DriveError::Image { path: self.path.clone(), reason }
    }
}

fn io_error(path: &Path, action: &'static str, error: io::Error, advice: &'static str) -> DriveError {
    DriveError::Io { path: path.to_owned(), action, error, advice }
}
