//! A drive's settings as people write them: TOML files, `--set key=value`, and the text inside an image.
//!
//! One list of settings (`fields`) serves all three and the errors. Text enters through [`DriveSpec::from_toml`] and
//! [`DriveSpec::apply`] and leaves through [`DriveSpec::to_toml`]. Deliberately not here: files (`open`, `image`), and
//! whether numbers fit each other (`Config::check` of `flash`, which is called here).

mod derived;
mod document;
mod drive_spec;
mod entry;
mod fault;
mod field;
mod fields;
mod own;
mod problem;
mod quantity;
mod value;

pub use drive_spec::DriveSpec;
pub use field::Field;
pub use fields::{FIELDS, find};
pub(crate) use own::same_shape;
pub use problem::{BadSetting, BadSettings};
