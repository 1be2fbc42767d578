//! A drive that a server holds, below a store, or a target there: what may be asked of it, and how it is mounted.
//!
//! Deliberately not here: NVMe/TCP (`ocssd_nvme_host`).

use crate::drive_of_options::{invalid, lease_of};
use crate::error::{ErrorKind, StoreError};
use crate::opening::{HOLDER, mount_target};
use crate::options::{Flushed, StoreClock, StoreOptions};
use crate::shared_drive::SharedDrive;
use crate::store_drive::StoreDrive;
use ocssd_engine::{DriveClock, WallClock};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::{Buffers, Device};
use ocssd_nvme_host::{
    Association, Endpoint, HostError, HostErrorKind, ServedDrive, ServedTables, TableAssociation, Uuid,
};
use std::path::PathBuf;

/// The target that is served itself.
const SERVED: &str = "served";

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

/// Which namespace is meant by `served` or `served:NUMBER`; `None` of the name of a kind of target.
fn target_number(target: &str) -> Option<Result<Option<u32>, StoreError>> {
    let rest = target.strip_prefix(SERVED)?;
    if rest.is_empty() {
        return Some(Ok(None));
    }
    let number = rest.strip_prefix(':')?.parse().ok().filter(|&number: &u32| number > 0);
    Some(number.map(Some).ok_or_else(|| {
        invalid(format!("target={target}: a served target is {SERVED}, or {SERVED}:NUMBER of its namespace"))
    }))
}

/// Where tails are kept: another drive at the same address has other logs.
fn tails(options: &StoreOptions, uuid: Uuid) -> Option<PathBuf> {
    options.tails.as_ref().map(|path| {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{uuid}"));
        PathBuf::from(name)
    })
}

/// A target that is the server's too.
fn behind(options: &StoreOptions, endpoint: &Endpoint, number: Option<u32>) -> Result<Mounted, StoreError> {
    if let Some((name, _)) = options.target_options.first() {
        return Err(invalid(format!(
            "{name} is an option of a target; a served one is made and set where it is served"
        )));
    }
    if options.place != UnitSelection::All {
        return Err(invalid(
            "on=UNITS is for a target of this process; a served one has its units where it is served",
        ));
    }
    let target = ServedTables::new(TableAssociation::open(endpoint, number)?)?;
    let line = target.line();
    let tails = tails(options, line.uuid);
    let clock = WallClock::default().woken_by(line.alarm.clone());
    let drive = StoreDrive::from(line);
    let buffers = Buffers::new(drive.payload_format());
    let clock = DriveClock::Wall(Box::new(clock));
    let drive = SharedDrive::new(drive, clock, buffers, Box::new(target), None);
    Ok(Mounted { drive, tails, notes: vec!["the target is the server's".to_owned()] })
}

/// Connects to the server, claims its drive and mounts the target.
///
/// # Errors
/// If there is no such server or drive, another host has it, or an option cannot be.
pub fn mount(options: &StoreOptions) -> Result<Mounted, StoreError> {
    let endpoint = Endpoint::parse(&options.drive)?;
    check(options)?;
    if let Some(number) = target_number(&options.target) {
        return behind(options, &endpoint, number?);
    }
    let drive = ServedDrive::new(Association::open(&endpoint)?)?;
    let tails = tails(options, drive.uuid());
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
