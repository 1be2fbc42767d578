//! The crash and fault simulator: a seed draws a drive, a target, requests, faults and power cuts; a contract judges.
//!
//! A `WorldPlan` is what a seed means (`swarm` draws it), `run` carries it out in a `World`, a `Contract` says what is right.
//! A failing seed is run again with a journal and made short (`shrink`). Everything is virtual time and one thread; the
//! same seed gives the same run on every machine. Deliberately not here: the command line (`cli`).

mod any_contract;
pub mod block;
pub mod campaign;
pub mod contract;
mod contract_of;
mod counted;
pub mod disk;
pub mod exhaustive;
pub mod failure;
pub mod journal;
pub mod kv;
pub mod log;
pub mod model;
mod mounts;
pub mod panics;
pub mod part;
pub mod plan;
pub mod power;
pub mod run;
mod seen;
pub mod shrink;
pub mod stale_reports;
pub mod swarm;
pub mod table;
pub mod tally;
pub mod timeline;
pub mod trace;
pub mod watched;
pub mod wear;
pub mod world;
pub mod zoned;
