//! Keys and values: the kinds of drives that have them.
//!
//! `rig` is a drive with a target and what was measured of a workload, `spent` the target's processor time; `kinds_report` says
//! what the rows of `kinds` come to, `mooncake_report` those of `mooncake`. Deliberately not here: workloads
//! (`workload::generator`).

pub mod kinds;
mod kinds_report;
pub mod mooncake;
mod mooncake_report;
mod rig;
mod spent;

pub use spent::Spent;
