//! The image file: a drive that lasts. One sparse file with the settings, the targets' leases, the state of every
//! chunk, and the content. `docs/image.md` gives every byte.
//!
//! Content is written first, then the chunk's record, each record with one aligned write that a killed process cannot
//! tear; so an image survives `kill -9` at any moment. A crash of the host loses what was not synced: whole, or per chunk, for
//! each record is tied to the content that no sync covered (`tail`).
//!
//! Deliberately not here: caching (the operating system does it) and anything a drive decides (`flash`).

mod create;
#[cfg(test)]
mod cut;
mod file;
pub(crate) mod fuzz;
mod handle;
mod header;
#[cfg(test)]
mod host_crash;
mod layer;
mod layout;
mod leases;
mod marks;
mod opening;
mod record;
mod simulated;
mod store;
mod tail;
mod tails;
mod take_back;
mod whole;

pub use create::Existing;
pub use handle::{Image, TakenBack};
pub use opening::{Access, Damage};
pub use simulated::{FileFaults, SimulatedFile, Unsynced};
