//! A host's side of NVMe/TCP: an open-channel drive that `ocssd serve` holds, as a [`Device`](ocssd_lightnvm::Device) of this
//! process.
//!
//! A command of a target becomes entries in capsules, in pieces of what a transfer moves; what comes back fills the buffers and
//! becomes its completion. [`ServedDrive`] never blocks, as devices do not; whoever waits for it does so by its [`Alarm`], which
//! an answer of the server ends.
//!
//! - `endpoint`: who is meant. `pdu`: packets as bytes. `link`: a connection. `queue`: one command at a time, while connecting.
//! - `connect`: association, geometry, the claim of the drive for this host alone. `chunk_report`: what chunks are.
//! - `drive`: the device. `part`: what a command becomes. `alarm`: waiting.
//!
//! Deliberately not here: digests, TLS, several I/O queues, and coming back to a server that was lost: a target whose drive went
//! is opened anew.

mod alarm;
mod chunk_report;
mod connect;
mod drive;
mod endpoint;
mod error;
mod link;
mod part;
mod pdu;
mod queue;

pub use alarm::Alarm;
pub use connect::Association;
pub use drive::ServedDrive;
pub use endpoint::Endpoint;
pub use error::{HostError, HostErrorKind};
