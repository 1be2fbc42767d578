//! The file below an image: opened, locked, read and written at places, with sentences for what goes wrong. A failed sync
//! is never made good.

use super::layer::Layer;
use super::simulated::SimulatedFile;
use crate::error::DriveError;
use ocssd_flash::store::{StoreError, StoreErrorKind};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What to do about an error nothing better is known of.
const CHECK_FILE: &str = "check the file, its permissions and its file system";

/// The mode of a new image: it holds what somebody wrote, as a disk does, and disks are not for everybody to read.
const OWNER_ONLY: u32 = 0o600;

/// What a command wanted of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Bytes from here on.
    Read { at: u64 },
    /// To store bytes from here on.
    Write { at: u64 },
    /// All of it on the disk.
    Sync,
}

/// An open, locked file. The lock ends with the last owner of the file, or with the process.
#[derive(Debug)]
pub(super) struct ImageFile {
    layer: Layer,
    path: PathBuf,
    pub(super) writable: bool,
    /// A sync failed. Which pages it did not write nobody knows, and the next one would pass them over.
    is_unsynced: AtomicBool,
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
        let Layer::Real(file) = &image.layer else {
            unreachable!("a path names a file of the operating system")
        };
        let opened = file.metadata().map_err(|error| image.failed("read", error))?;
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
        let metadata = file.metadata().map_err(|error| io_error(path, "read", error, CHECK_FILE))?;
        if !metadata.is_file() {
            let reason = "it is no regular file; name an image file".to_owned();
            return Err(DriveError::Image { path: path.to_owned(), reason });
        }
        let is_unsynced = AtomicBool::new(false);
        Self { layer: Layer::Real(file), path: path.to_owned(), writable, is_unsynced }.read_from_disk()
    }

    /// Opens a simulated file.
    pub(super) fn simulated(file: &SimulatedFile, writable: bool) -> Result<Self, DriveError> {
        let path = PathBuf::from("simulated.img");
        let Ok(open) = file.open() else { return Err(DriveError::Locked { path }) };
        let is_unsynced = AtomicBool::new(false);
        Self { layer: Layer::Simulated(open), path, writable, is_unsynced }.read_from_disk()
    }

    /// What is read from now on is on the disk, or will be written there. Else a process that could not sync and ended would
    /// leave pages in memory to the next that look as if they were on the disk, and are not.
    fn read_from_disk(self) -> Result<Self, DriveError> {
        self.layer.drop_clean_pages().map_err(|error| self.failed("read anew", error))?;
        Ok(self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> Result<u64, DriveError> {
        self.layer.bytes().map_err(|error| self.failed("read", error))
    }

    /// Empties the file and gives it a size: one hole.
    pub(super) fn clear(&self, bytes: u64) -> Result<(), DriveError> {
        self.layer.clear(bytes).map_err(|error| {
            let advice =
                "use a file system with sparse files of that size (ext4, xfs, btrfs), or a smaller drive";
            let error = io::Error::new(error.kind(), format!("{error}, for a sparse file of {bytes} bytes"));
            io_error(&self.path, "given its size", error, advice)
        })
    }

    /// Makes the file's content, size and name survive a crash of the host.
    pub(super) fn settle(&self) -> Result<(), DriveError> {
        self.note_sync(self.layer.sync_all()).map_err(|error| self.failed("written to the disk", error))?;
        if matches!(self.layer, Layer::Simulated(_)) {
            return Ok(());
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| io_error(folder, "written to the disk", error, CHECK_FILE))
    }

    /// Reads all of `bytes` from byte `at` on.
    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.layer.read_at(&mut bytes[done..], at + offset(done)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` from byte `at` on. A part of them may be written if it fails.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.layer.write_at(&bytes[done..], at + offset(done)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Everything written so far is on the disk.
    ///
    /// # Errors
    /// Also if an earlier sync failed, whoever asked for it: what it did not write would be passed over.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.is_unsynced.load(Ordering::Relaxed) {
            return Err(io::Error::other("an earlier sync of it failed"));
        }
        self.note_sync(self.layer.sync_data())
    }

    fn note_sync(&self, synced: io::Result<()>) -> io::Result<()> {
        synced.inspect_err(|_| self.is_unsynced.store(true, Ordering::Relaxed))
    }

    /// The sentence for the drive's user when the file fails under a command.
    pub(super) fn store_error(&self, action: Action, error: &io::Error) -> StoreError {
        let path = self.path.display();
        let (kind, advice) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                (StoreErrorKind::Full, "free space on its file system")
            }
            _ => (StoreErrorKind::Failed, CHECK_FILE),
        };
        let sentence = match action {
            Action::Read { at } => format!("{path} cannot be read at byte {at}: {error}; {CHECK_FILE}"),
            Action::Write { at } => format!(
                "{path} cannot be written at byte {at}: {error}; {advice} and open it again, until then reads go on and \
                 changes are refused"
            ),
            Action::Sync => format!(
                "{path} cannot be synced to its disk: {error}; {advice} and open it again, until then reads go on, changes \
                 and flushes are refused, and what was not flushed before may be lost"
            ),
        };
        StoreError { kind, sentence }
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

fn offset(index: usize) -> u64 {
    u64::try_from(index).expect("an index fits 64 bits")
}
