//! What a user names: presets, drive files and images, and how a drive is made from each.
//!
//! A [`Source`] is what is typed; [`open`] turns it into an [`OpenDrive`]: the drive, its media manager and, for an
//! image, the file that keeps both. A [`DriveSpec`] is a drive's settings as TOML has them.
//!
//! Deliberately not here: the drive itself (`flash`), the clock that runs it (`engine`), command lines (`cli`).

mod error;
pub mod fuzz;
mod identity;
pub mod image;
mod open;
mod source;
pub mod spec;

pub use error::DriveError;
pub use image::{Existing, Image};
pub use open::{OpenDrive, OpenOptions, open, open_with};
pub use source::Source;
pub use spec::{BadSetting, BadSettings, DriveSpec};
