//! What a user names when a drive is wanted: a preset, a drive file, or an image.

use crate::error::DriveError;
use ocssd_flash::presets;
use std::fmt;
use std::path::PathBuf;

/// Where a drive comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A preset by name: a fresh drive in memory.
    Preset(String),
    /// A drive file: a fresh drive in memory.
    Settings(PathBuf),
    /// An image: the drive as it was left.
    Image(PathBuf),
}

impl Source {
    /// What `name` means: a preset if one has this name, else a drive file if it ends in `.toml`, else an image. A file
    /// named like a preset is reached as `./name`.
    ///
    /// # Errors
    /// If it is no preset and no such file exists.
    pub fn named(name: &str) -> Result<Self, DriveError> {
        if presets::find(name).is_some() {
            return Ok(Self::Preset(name.to_owned()));
        }
        let path = PathBuf::from(name);
        if !path.exists() {
            let presets: Vec<&str> = presets::ALL.iter().map(|preset| preset.name).collect();
            return Err(DriveError::NoSuchSource { name: name.to_owned(), presets: presets.join(", ") });
        }
        let settings = path.extension().is_some_and(|extension| extension == "toml");
        Ok(if settings { Self::Settings(path) } else { Self::Image(path) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(name) => f.write_str(name),
            Self::Settings(path) | Self::Image(path) => path.display().fmt(f),
        }
    }
}
