//! A host's side of NVMe/TCP: an open-channel drive that `ocssd serve` holds, as a [`Device`](ocssd_lightnvm::Device) of this
//! process, or a target of tables there, as a [`Target`](ocssd_lightnvm::Target).
//!
//! A command of a target becomes entries in capsules, in pieces of what a transfer moves; what comes back fills the buffers and
//! becomes its completion. [`ServedDrive`] never blocks, as devices do not; whoever waits for it does so by its [`Alarm`], which
//! an answer of the server ends.
//!
//! - `endpoint`: who is meant. `pdu`: packets as bytes. `link`: a connection. `queue`: one command at a time, while connecting.
//! - `connect`: association, geometry, the claim of the drive for this host alone. `chunk_report`: what chunks are.
//! - `drive`: the device. `part`: what a command becomes. `tables`: a target of tables behind a server. `alarm`: waiting.
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
mod tables;

pub use alarm::Alarm;
pub use connect::{Association, TableAssociation};
pub use drive::ServedDrive;
pub use endpoint::Endpoint;
pub use error::{HostError, HostErrorKind};
/// The name of a drive among all.
pub use ocssd_nvme::identify::Uuid;
pub use tables::{ServedTables, TableLine};
