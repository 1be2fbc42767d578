//! What is profiled: a temporary file, a file, or a block device, opened for direct I/O and probed.
//!
//! Where a file system refuses direct I/O, the file is opened without, and a note says that the page cache answers then.
//! Whether I/O really was direct is not believed but attested, see [`IoAccounting`](super::IoAccounting).

use super::buffer::AlignedBuffer;
use super::guard::{DeviceNumber, Disk, Refusal, SystemRoot};
use super::system::{self, How, Opened};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What is named on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectOptions {
    /// A directory (a temporary file is made there), a file, or a block device.
    pub path: PathBuf,
    /// Bytes of the temporary file, or most bytes that are used of what exists; `None` uses all of what exists.
    pub bytes: Option<u64>,
    /// Whether an existing file may be written.
    pub overwrite: bool,
    /// Serial number of the device to be written.
    pub serial: Option<String>,
    /// Ask for direct I/O.
    pub direct: bool,
}

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// A file of our own, which has no name any more: whatever happens, nothing is left.
    Temporary,
    /// A file that was there.
    File,
    /// A block device.
    Device,
}

/// Why it cannot be profiled.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// There is nothing of that name.
    #[error("{path} cannot be opened: {error}; name a directory, a file or a block device")]
    Open {
        /// The name.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A file cannot be made in a directory.
    #[error("no file can be made in {path}: {error}; name another directory")]
    Make {
        /// The directory.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// It has too few bytes.
    #[error("{path} has {bytes} bytes, fewer than the {least} a profile needs; name something larger")]
    Tiny {
        /// The name.
        path: String,
        /// Its bytes.
        bytes: u64,
        /// The least.
        least: u64,
    },
    /// The file system has too little room.
    #[error(
        "{path} has {free} bytes free, but a file of {wanted} is asked for; lower --size, or name another directory"
    )]
    Full {
        /// The directory.
        path: String,
        /// Free bytes.
        free: u64,
        /// Bytes asked for.
        wanted: u64,
    },
    /// The file system does not give the room.
    #[error(
        "{path} gives no room for a file of {wanted} bytes: {error}; lower --size, or name another directory"
    )]
    NoRoom {
        /// The directory.
        path: String,
        /// Bytes asked for.
        wanted: u64,
        /// What the system said.
        error: io::Error,
    },
    /// It must not be written.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is something else.
    #[error("{0} is neither a directory, a file nor a block device; name one of these")]
    Other(String),
}

/// The thing that is profiled.
#[derive(Debug)]
pub struct Subject {
    /// Open for reading, and for writing if it may be.
    pub file: File,
    /// Its name, or its directory's.
    pub path: PathBuf,
    /// What kind of thing it is.
    pub kind: SubjectKind,
    /// Bytes that are used: a multiple of 4 MiB, or of 4096 if it is smaller.
    pub bytes: u64,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it was opened for direct I/O.
    pub direct: bool,
    /// Fewest bytes that an I/O takes, 512 or 4096.
    pub unit: u32,
    /// The disk below, if the system knows one.
    pub disk: Option<Disk>,
    /// The number of the device it lies on.
    pub device: DeviceNumber,
    /// Name of the file system, or `none` for a device.
    pub file_system: String,
    /// Sentences for the reader.
    pub notes: Vec<String>,
}

/// Fewest bytes that are profiled: one I/O of 4 MiB fits, and places are still random (chosen).
pub const BYTES_MIN: u64 = 16 << 20;
/// Sizes are rounded down to this many bytes, so that the largest I/O fits everywhere.
const GRAIN: u64 = 4 << 20;
/// Names tried for a temporary file (chosen: more than threads that make one at once, few if something else is wrong).
const NAMES_MAX: u32 = 1000;

impl Subject {
    /// Opens what is named.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn open(options: &SubjectOptions, root: &SystemRoot) -> Result<Self, SubjectError> {
        let path = &options.path;
        let shown = path.display().to_string();
        let about = fs::metadata(path).map_err(|error| SubjectError::Open { path: shown.clone(), error })?;
        let kind = about.file_type();
        let mut subject = if kind.is_dir() {
            Self::temporary(options)?
        } else if kind.is_file() {
            Self::existing(options, SubjectKind::File, options.overwrite)?
        } else if system::is_block_device(kind) {
            let number = system::device_number(&about);
            let writes = options.serial.is_some();
            if writes {
                root.may_write(&shown, number, options.serial.as_deref())?;
            }
            Self::existing(options, SubjectKind::Device, writes)?
        } else {
            return Err(SubjectError::Other(shown));
        };
        subject.device = match subject.kind {
            SubjectKind::Device => system::device_number(&about),
            SubjectKind::Temporary | SubjectKind::File => system::device_below(&about),
        };
        subject.disk = root.disk(subject.device);
        subject.unit = subject.probe();
        subject.describe_file_system();
        Ok(subject)
    }

    fn temporary(options: &SubjectOptions) -> Result<Self, SubjectError> {
        let shown = options.path.display().to_string();
        let wanted = options.bytes.unwrap_or(BYTES_MIN);
        check_size(&shown, wanted)?;
        if let Ok(free) = free_bytes(&options.path)
            && free < wanted
        {
            return Err(SubjectError::Full { path: shown, free, wanted });
        }
        let mut notes = Vec::new();
        let (name, file, direct) = make_unnamed(&options.path, options.direct, &mut notes)
            .map_err(|error| SubjectError::Make { path: shown.clone(), error })?;
        // Without a name from the beginning: it is gone when the program is, however that ends.
        system::drop_name(&name).map_err(|error| SubjectError::Make { path: shown, error })?;
        system::reserve(&file, wanted).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => {
                SubjectError::NoRoom { path: options.path.display().to_string(), wanted, error }
            }
            _ => SubjectError::Make { path: options.path.display().to_string(), error },
        })?;
        let path = options.path.clone();
        Ok(Self::new(file, path, SubjectKind::Temporary, wanted, true, direct, notes))
    }

    fn existing(options: &SubjectOptions, kind: SubjectKind, writable: bool) -> Result<Self, SubjectError> {
        let shown = options.path.display().to_string();
        let mut notes = Vec::new();
        let (file, direct) =
            open_file(&How { path: &options.path, writable, temporary: false }, options.direct, &mut notes)
                .map_err(|error| SubjectError::Open { path: shown.clone(), error })?;
        let mut end = &file;
        let all = io::Seek::seek(&mut end, io::SeekFrom::End(0))
            .map_err(|error| SubjectError::Open { path: shown.clone(), error })?;
        let bytes = options.bytes.map_or(all, |wanted| wanted.min(all));
        check_size(&shown, bytes)?;
        if !writable {
            let how = if kind == SubjectKind::Device { "--serial" } else { "--overwrite" };
            notes.push(format!(
                "what is there is not overwritten, so only reads are measured; writes need {how}"
            ));
        }
        Ok(Self::new(file, options.path.clone(), kind, bytes, writable, direct, notes))
    }

    fn new(
        file: File,
        path: PathBuf,
        kind: SubjectKind,
        bytes: u64,
        writable: bool,
        direct: bool,
        notes: Vec<String>,
    ) -> Self {
        let device = DeviceNumber { major: 0, minor: 0 };
        let bytes = bytes / GRAIN * GRAIN;
        let file_system = String::new();
        Self { file, path, kind, bytes, writable, direct, unit: 4096, disk: None, device, file_system, notes }
    }

    /// Whether 512 bytes can be read from a place that is no multiple of 4096.
    fn probe(&self) -> u32 {
        let mut buffer = AlignedBuffer::new(512);
        match system::read_at(&self.file, buffer.bytes_mut(), 512) {
            Ok(_) => 512,
            Err(_) => 4096,
        }
    }

    fn describe_file_system(&mut self) {
        if self.kind == SubjectKind::Device {
            "none".clone_into(&mut self.file_system);
            return;
        }
        self.file_system = system::file_system(&self.file);
        if self.file_system == "tmpfs" {
            self.notes
                .push(format!("{} is tmpfs: it is memory, and no drive is measured", self.path.display()));
        }
    }

    /// Shrinks the part that is used to what was written of it.
    pub fn shrink_to(&mut self, bytes: u64) {
        self.bytes = self.bytes.min(bytes / GRAIN * GRAIN);
    }
}

/// Bytes that are free in a directory's file system for this user.
///
/// # Errors
/// What the system says.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    system::free_bytes(directory)
}

fn check_size(path: &str, bytes: u64) -> Result<(), SubjectError> {
    if bytes < BYTES_MIN {
        return Err(SubjectError::Tiny { path: path.to_owned(), bytes, least: BYTES_MIN });
    }
    Ok(())
}

/// Makes a file in a directory under a name nobody has: another thread may be making one at the same time, and a process of
/// the same number may have left one behind.
fn make_unnamed(
    directory: &Path,
    direct: bool,
    notes: &mut Vec<String>,
) -> io::Result<(PathBuf, File, bool)> {
    let mut number = 0;
    loop {
        let name = directory.join(format!(".ocssd-profile-{}-{number}", std::process::id()));
        notes.clear();
        let how = How { path: &name, writable: true, temporary: true };
        match open_file(&how, direct, notes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => number += 1,
            opened => return opened.map(|(file, direct)| (name, file, direct)),
        }
    }
}

/// Opens a file, for direct I/O if it can be; true if it is.
fn open_file(how: &How<'_>, direct: bool, notes: &mut Vec<String>) -> io::Result<(File, bool)> {
    if !direct {
        notes.push("direct I/O was not asked for: the page cache answers".to_owned());
        return Ok((system::open_cached(how)?, false));
    }
    Ok(match system::open_direct(how)? {
        Opened::Direct(file) => (file, true),
        Opened::Cached(file, error) => {
            notes.push(format!(
                "the file system refuses direct I/O ({error}): the page cache answers, and these numbers are not the drive's"
            ));
            (file, false)
        }
    })
}
