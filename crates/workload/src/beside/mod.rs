//! Jobs on blocks beside workloads of other interfaces, on targets of one host.
//!
//! An [`Asker`] is a generator with its target, or a [`Database`]; [`Joined`] is the source of jobs and askers together.
//! Deliberately not here: which units their targets have, and what is shown of them.

mod asker;
mod database;
mod joined;

pub use asker::{Asker, OnTarget, Report};
pub use database::Database;
pub use joined::{Askers, Jobs, Joined};
