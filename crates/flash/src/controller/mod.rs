//! The controller: NVMe commands as a host sends them in, completions as a host reads them out.
//!
//! It owns a [`Flash`](crate::Flash) and speaks OCSSD 2.0 or 1.2 for it, as the drive's configuration says. Commands
//! are raw 64-byte submission entries, completions raw 16-byte ones; everything that moves data goes through
//! [`Flash::execute`](crate::Flash::execute), so a command on the wire and a typed one obey the same rules. What is
//! implemented, and what was chosen where the specifications are silent, is in `docs/controller.md`.
//!
//! Deliberately not here: queues, doorbells and memory pointers. A transport fetches entries, resolves PRPs, SGLs and
//! list pointers into slices, and fills in the queue head and the phase of each completion.

mod admin;
mod beside_targets;
mod completion;
mod dataset;
mod events;
mod features;
mod front_end;
mod geometry;
mod health;
mod identify;
mod log_page;
mod pending;
mod scalar;
mod v12;
mod vector;

pub use admin::AdminOutcome;
pub use front_end::{Busy, Controller, IoBuffers};
