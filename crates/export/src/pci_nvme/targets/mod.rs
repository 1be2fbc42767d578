//! Targets as namespaces of an NVMe controller on PCI.
//!
//! [`TargetFunction`] has a port like the function of a drive, and beside it the commands of a
//! [subsystem](crate::nvme_subsystem): what a command means is the same as over NVMe/TCP. Data is copied once each way, between
//! the guest's memory and the piece that a target reads or fills: what is written when there is a piece for it, what is read when
//! the target
//! has ended. So a guest's memory may go at any time; nothing points there, and what cannot be put there any more is 004h.
//!
//! Deliberately not here: what commands mean, and who the guest is.

mod admin;
mod function;
mod io;
#[cfg(test)]
mod tests;

pub use function::{Attended, TargetFunction};
