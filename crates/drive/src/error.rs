//! Why a drive cannot be opened, made or kept: one sentence each, saying what to change.

use crate::spec::BadSettings;
use ocssd_base::Problems;
use ocssd_flash::OpenError;
use ocssd_lightnvm::media_manager::LeaseError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a drive cannot be opened, made or kept.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Settings that cannot be used, one a line.
    #[error("{0}")]
    Settings(#[from] BadSettings),
    /// Settings the drive itself refused.
    #[error("the drive cannot be made: {0}")]
    Problems(#[from] Problems),
    /// What was named is neither a preset nor a file.
    #[error(
        "\"{name}\" is no preset and no file; name a .toml file, an image, or one of the presets {presets}"
    )]
    NoSuchSource {
        /// What was named.
        name: String,
        /// The presets there are.
        presets: String,
    },
    /// The operating system refused something.
    #[error("{} cannot be {action}: {error}; {advice}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: "opened", "read".
        action: &'static str,
        /// What the operating system said.
        error: io::Error,
        /// What to change.
        advice: &'static str,
    },
    /// A file exists where an image is to be made.
    #[error("{} exists; choose another name, or say that it may be replaced", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process has the image.
    #[error("{} is in use by another process; end that one first, or use a copy of the image", path.display())]
    Locked {
        /// The image.
        path: PathBuf,
    },
    /// The file is no image this program can use.
    #[error("{} is not usable: {reason}", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// The table of leases in the image cannot be used on its drive.
    #[error("the table of targets in {} cannot be used: {error}", path.display())]
    Leases {
        /// The image.
        path: PathBuf,
        /// What is wrong with it.
        error: LeaseError,
    },
    /// A setting of an existing image that cannot change any more.
    #[error(
        "{} holds a drive of another shape; counts, sizes, ws_min, ws_opt, lba_format, payload and wear.initial_cycles \
         are fixed when an image is made, so make a new one or leave them out",
        path.display()
    )]
    Shape {
        /// The image.
        path: PathBuf,
    },
    /// The image was opened to be looked at.
    #[error("{} was opened read-only, so nothing can be kept in it; open it for writing", path.display())]
    ReadOnly {
        /// The image.
        path: PathBuf,
    },
    /// The drive did not accept what the image holds.
    #[error("{} cannot be opened: {error}", path.display())]
    Open {
        /// The image.
        path: PathBuf,
        /// What the drive said.
        error: OpenError,
    },
}
