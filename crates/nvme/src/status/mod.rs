//! Completion status: the project's one table of codes, and the flags a completion carries above it.
//!
//! Deliberately not here: codes, names and meanings, which are [`ocssd_lightnvm::Status`].

mod field;

pub use field::StatusField;
pub use ocssd_lightnvm::Status;
