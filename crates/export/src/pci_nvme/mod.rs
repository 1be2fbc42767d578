//! An open-channel drive as an NVMe controller on PCI, without sockets, mappings or threads.
//!
//! [`Function`] is the machine: what a guest reads and writes in registers and configuration space goes in, commands are
//! fetched from queues in the guest's memory, the drive ([`OpenChannelDrive`]) carries them out, completions and interrupts
//! come out. Memory is behind [`GuestMemory`], time is an argument.
//!
//! ```text
//!   region writes ─► registers, doorbells ─► fetch (queue) ─► pointers (prp, sgl) ─► drive
//!   interrupts   ◄── completion queues    ◄── complete     ◄──────────────────────── drive
//! ```
//! Everything of the guest's memory is moved while a command is submitted or completed, inside one call; so nothing of the
//! machine points into that memory between calls, and a mapping may go at any time.
//!
//! Source: NVMe base 1.4, PCI Local Bus 3.0. Deliberately not here: interrupts by pin or message without MSI-X, controller
//! memory, several namespaces, command sets by number, weighted arbitration. What commands mean is the drive's.

mod admin;
#[cfg(test)]
mod bench;
mod complete;
mod config_space;
mod counters;
mod doorbell;
mod drive;
mod event;
mod fetch;
mod function;
mod interrupts;
mod memory;
mod port;
mod pretend;
mod prp;
mod queue;
mod queue_admin;
mod registers;
mod sgl;
mod targets;
#[cfg(test)]
mod tests;
mod transfer;

pub use config_space::{CONFIG_BYTES, PciId};
pub use counters::Counters;
pub use drive::{DriveFull, OpenChannelDrive, Pointed, Units};
pub use function::{Function, PciFunction};
pub use interrupts::VECTORS;
pub(crate) use memory::FlatMemory;
pub use memory::{GuestMemory, Unmapped};
pub use port::{BAR0, CONFIG, NoSuchPlace};
pub(crate) use pretend::PretendDrive;
pub use registers::BAR0_BYTES;
pub use targets::{Attended, TargetFunction};
