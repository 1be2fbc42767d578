//! A drive that a server holds, below a store: what may be asked of it, and how it is mounted.
//!
//! Deliberately not here: NVMe/TCP (`ocssd_nvme_host`).

use crate::drive_of_options::{invalid, lease_of};
use crate::error::{ErrorKind, StoreError};
use crate::opening::{HOLDER, mount_target};
use crate::options::{Flushed, StoreClock, StoreOptions};
use crate::shared_drive::SharedDrive;
use crate::store_drive::StoreDrive;
use ocssd_engine::{DriveClock, WallClock};
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_lightnvm::{Buffers, Device};
use ocssd_nvme_host::{Association, Endpoint, HostError, HostErrorKind, ServedDrive};
use std::path::PathBuf;

/// A served drive whose target was mounted.
pub struct Mounted {
    /// The drive.
    pub drive: SharedDrive,
    /// Beside which file the tails of logs are kept; `None` if flushed bytes go with the process.
    pub tails: Option<PathBuf>,
    /// What was found.
    pub notes: Vec<String>,
}

impl From<HostError> for StoreError {
    fn from(error: HostError) -> Self {
        let kind = match error.kind {
            HostErrorKind::NotFound => ErrorKind::NotFound,
            HostErrorKind::Busy => ErrorKind::Busy,
            HostErrorKind::Invalid => ErrorKind::Invalid,
            HostErrorKind::Io => ErrorKind::Io,
        };
        Self::new(kind, error.sentence)
    }
}

/// Refuses what is of drives in this process.
fn check(options: &StoreOptions) -> Result<(), StoreError> {
    if options.clock == Some(StoreClock::Virtual) {
        return Err(invalid(
            "clock=virtual is for a drive in this process; a served drive has the machine's time: leave the option out",
        ));
    }
    if options.create.is_some() || !options.settings.is_empty() {
        return Err(invalid(
            "create and set.NAME are for a drive in this process; a served drive is made and set where it is served",
        ));
    }
    if options.power_cut.is_some() {
        return Err(invalid(
            "power_cut is for a drive in this process; the power of a served drive is the server's",
        ));
    }
    match (options.flushed, &options.tails) {
        (Flushed::ForProcess, None) => Err(invalid(
            "what a log was given since its last sync must be kept somewhere for the process after this one: name files that it is \
             kept in by tails=PATH, or do without by flush=never",
        )),
        (Flushed::Never, Some(_)) => {
            Err(invalid("nothing is kept with flush=never: leave tails or flush out"))
        }
        _ => Ok(()),
    }
}

/// Connects to the server, claims its drive and mounts the target.
///
/// # Errors
/// If there is no such server or drive, another host has it, or an option cannot be.
pub fn mount(options: &StoreOptions) -> Result<Mounted, StoreError> {
    let endpoint = Endpoint::parse(&options.drive)?;
    check(options)?;
    let drive = ServedDrive::new(Association::open(&endpoint)?)?;
    // Another drive at the same address has other logs.
    let tails = options.tails.as_ref().map(|path| {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{}", drive.uuid()));
        PathBuf::from(name)
    });
    let mut buffers = Buffers::new(drive.payload_format());
    let clock = WallClock::default().woken_by(drive.alarm());
    let mut clock = DriveClock::Wall(Box::new(clock));
    let mut drive = StoreDrive::from(drive);
    // Which target has which units is not told by a server: its drive is as it is, and this host's alone.
    let media_manager = MediaManager::new(drive.geometry());
    let named = lease_of(drive.geometry(), &media_manager, options, HOLDER)?;
    let (target, notes) = mount_target(&mut drive, &named, &mut clock, &mut buffers)?;
    Ok(Mounted { drive: SharedDrive::new(drive, clock, buffers, target, None), tails, notes })
}
