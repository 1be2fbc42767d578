//! From a source to a drive that can be used.

use crate::error::DriveError;
use crate::identity;
use crate::image::{Access, Damage, Image};
use crate::source::Source;
use crate::spec::DriveSpec;
use ocssd_flash::Flash;
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_nvme::identify::Uuid;
use std::path::Path;

/// How a drive is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Settings on top of the source's own, each `key=value`. On an image they hold until it is closed, and must leave
    /// its shape as it is.
    pub settings: Vec<String>,
    /// Whether an image may be changed. Other sources are always fresh drives in memory.
    pub access: Access,
    /// What to do about damaged records of an image.
    pub damage: Damage,
}

/// An open drive and what belongs to it.
pub struct OpenDrive {
    /// The drive.
    pub flash: Flash,
    /// Which target has which parallel units.
    pub media_manager: MediaManager,
    /// The image that keeps both; `None` for a drive in memory.
    pub image: Option<Image>,
    /// The settings the drive was opened with.
    pub spec: DriveSpec,
    /// Which drive it is, of all: stable for an image, drawn anew for each drive in memory.
    pub uuid: Uuid,
}

impl OpenDrive {
    /// Puts the parts together, and sets the explicit faults waiting.
    pub(crate) fn new(
        mut flash: Flash,
        media_manager: MediaManager,
        image: Option<Image>,
        (spec, uuid): (DriveSpec, Uuid),
    ) -> Self {
        for fault in &spec.faults {
            flash.schedule_fault(*fault);
        }
        assert!(!uuid.is_nil(), "a drive without an identity was opened");
        Self { flash, media_manager, image, spec, uuid }
    }

    /// A freshly formatted drive in memory.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn in_memory(spec: DriveSpec) -> Result<Self, DriveError> {
        spec.check()?;
        let flash = Flash::format(spec.config.clone())?;
        let media_manager = MediaManager::new(&spec.config.geometry);
        Ok(Self::new(flash, media_manager, None, (spec, identity::draw())))
    }

    /// Keeps the table of targets in the image, if there is one.
    ///
    /// # Errors
    /// If the image is read-only, or its file fails.
    pub fn save_leases(&mut self) -> Result<(), DriveError> {
        match &mut self.image {
            Some(image) => image.save_leases(&self.media_manager),
            None => Ok(()),
        }
    }
}

/// Opens what was named, as it is.
///
/// # Errors
/// As [`open_with`].
pub fn open(source: &Source) -> Result<OpenDrive, DriveError> {
    open_with(source, &OpenOptions::default())
}

/// Opens what was named.
///
/// # Errors
/// Settings that cannot be used, a file that cannot be read, or an image that is damaged, foreign or in use.
pub fn open_with(source: &Source, options: &OpenOptions) -> Result<OpenDrive, DriveError> {
    let mut spec = match source {
        Source::Preset(name) => DriveSpec::preset(name)?,
        Source::Settings(path) => read_settings(path)?,
        Source::Image(path) => return Image::open(path, options),
    };
    spec.apply_all(&options.settings)?;
    OpenDrive::in_memory(spec)
}

/// Reads a drive file.
///
/// # Errors
/// A file that cannot be read or is no text, or settings that cannot be used.
fn read_settings(path: &Path) -> Result<DriveSpec, DriveError> {
    let text = std::fs::read_to_string(path).map_err(|error| DriveError::Io {
        path: path.to_owned(),
        action: "read",
        error,
        advice: "name a drive file, as docs/drive.md describes",
    })?;
    Ok(DriveSpec::from_toml(&text, &path.display().to_string())?)
}
