//! A drive as options name it, and whose its units are: what every program does that has a drive in its own process.
//!
//! Deliberately not here: what the target is asked (`opening` for tables; a plugin for blocks).

use crate::error::{ErrorKind, StoreError};
use crate::options::StoreOptions;
use ocssd_drive::{DriveError, DriveSpec, Existing, Image, OpenDrive, OpenOptions, Source};
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_targets::named_target::NamedTarget;
use ocssd_targets::registry;
use std::path::Path;

impl From<DriveError> for StoreError {
    fn from(error: DriveError) -> Self {
        let kind = match &error {
            DriveError::NoSuchSource { .. } => ErrorKind::NotFound,
            DriveError::Locked { .. } => ErrorKind::Busy,
            DriveError::Io { .. } => ErrorKind::Io,
            DriveError::Image { .. } | DriveError::Leases { .. } => ErrorKind::Corrupt,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

pub(crate) fn invalid(sentence: impl Into<String>) -> StoreError {
    StoreError::new(ErrorKind::Invalid, sentence)
}

/// Opens the drive, or makes it.
///
/// # Errors
/// If there is no such drive, another process has it, or a setting cannot be.
pub fn open_drive(options: &StoreOptions) -> Result<OpenDrive, StoreError> {
    // Stamps would stand beside whole sectors, and nobody asks for them.
    let fresh = || -> Vec<String> {
        std::iter::once("payload=bytes".to_owned()).chain(options.settings.iter().cloned()).collect()
    };
    let path = Path::new(&options.drive);
    if let Some(model) = options.create.as_ref().filter(|_| !path.exists()) {
        let mut spec = match Source::named(model)? {
            Source::Preset(name) => DriveSpec::preset(&name),
            Source::Settings(file) => {
                let text = std::fs::read_to_string(&file);
                let text = text.map_err(|error| {
                    invalid(format!("{model} cannot be read: {error}; name a drive file"))
                })?;
                DriveSpec::from_toml(&text, model)
            }
            Source::Image(_) => {
                return Err(invalid(format!(
                    "create={model}: an image is made of a preset or a drive file; copy the image instead"
                )));
            }
        }
        .map_err(DriveError::Settings)?;
        spec.apply_all(&fresh()).map_err(DriveError::Settings)?;
        return Ok(Image::create(path, &spec, Existing::Refuse)?);
    }
    let source = Source::named(&options.drive)?;
    let settings = if matches!(source, Source::Image(_)) { options.settings.clone() } else { fresh() };
    Ok(ocssd_drive::open_with(&source, &OpenOptions { settings, ..OpenOptions::default() })?)
}

/// The target that the options name, whose units nobody else of this image may have from now on; `holder` is what the lease is
/// called.
///
/// # Errors
/// If there is no such target or unit, or somebody has them.
pub fn lease_target(
    open: &OpenDrive,
    options: &StoreOptions,
    holder: &str,
) -> Result<NamedTarget, StoreError> {
    lease_of(&open.flash.config().geometry, &open.media_manager, options, holder)
}

/// As [`lease_target`], on a drive of this shape.
pub(crate) fn lease_of(
    geometry: &Geometry,
    media_manager: &MediaManager,
    options: &StoreOptions,
    holder: &str,
) -> Result<NamedTarget, StoreError> {
    let named = NamedTarget::named(&options.target, &options.place, geometry, media_manager, registry::find);
    let mut named = named.map_err(|error| invalid(error.to_string()))?;
    named.options.extend(options.target_options.iter().cloned());
    registry::find(&named.kind).map_err(invalid)?;
    if named.lease.is_none() {
        let leased = media_manager.clone().create(holder, &named.kind, &named.units).map(|_| ());
        leased.map_err(|error| {
            invalid(format!("{error}; name the target with target=NAME, or other units with on=UNITS"))
        })?;
    }
    Ok(named)
}
