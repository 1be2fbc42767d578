//! Wrappers: devices around a device, one cross-cutting need each. They stack in any order.
//!
//! `Trace` hashes and remembers what went by, `Fault` makes chosen commands fail, `Stats` counts per parallel unit,
//! `Check` asserts the device contract. Deliberately not here: anything that changes when a command completes.

mod check;
mod fault;
mod stats;
mod trace;

pub use check::Check;
pub use fault::{Fault, FaultRule, OpKind};
pub use stats::{OpCounts, Stats, UnitCounts};
pub use trace::{Event, Trace};
