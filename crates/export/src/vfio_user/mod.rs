//! The edge of vfio-user: a socket on which a virtual machine finds the drive as a PCI function.
//!
//! Two threads. One (`listener_thread`) runs the crate `vfio_user`, which blocks on its socket and serves one guest at a time;
//! it owns nothing. Each message of the guest goes as a `message` through a bounded channel to the other, which owns
//! the controller, the guest's memory and the interrupts, and is the only one that touches them: for a drive [`Server`], with a
//! loop of its own; for targets the reactor's, in which [`VfioUser`] has its turns. In both a `slot` carries messages out. The
//! listener thread waits for the answer to each message but a doorbell, so messages keep their order: memory is unmapped after
//! what came before was done, and a guest that is gone is gone before the next comes.
//!
//! Deliberately not here: NVMe, which is [`crate::pci_nvme`]; guests whose memory is not shared (messages that read and
//! write it), interrupts by pin, migration.

mod listener_thread;
mod mapped;
mod message;
mod server;
mod signal;
mod slot;
mod transport;

pub use listener_thread::ListenerThread;
pub use server::{Served, Server};
pub use transport::VfioUser;
