//! `ox-block`: a block device whose requests are transactions, after OX (CIDR 2020).
//!
//! Every request up to 1 MiB is atomic, and durable when it is answered. Data are written to chunks of their own, striped
//! over all units; a transaction is one group of entries in a write-ahead log that many share a page of; a checkpoint now
//! and then has the whole map. Recovery loads the newest whole checkpoint and replays the log behind it. Garbage collection
//! empties single chunks within a marked group.
//!
//! The machines are those of `ox`; here is what blocks add: requests (`requests`, `write`, `read`, `flush`), transactions over
//! several of them (`transaction`, `uncommitted`), the map and what is valid (`map`, `valid`, `copy`),
//! pages of a map that is larger than memory (`map_cache`), sizes and options, the answers to the
//! machines (`store`), and what the host sees (`target`).
//! Deliberately not here: blocks smaller than a sector.

mod copy;
mod describe;
mod flush;
mod give_way;
mod groups;
mod map;
mod map_cache;
mod options;
mod read;
mod requests;
mod sizes;
mod stats;
mod store;
mod target;
mod transaction;
mod uncommitted;
mod valid;
mod write;

#[cfg(feature = "canaries")]
pub use crate::ox::canary::Canary;
pub use crate::ox::mount::MountReport;
pub use crate::ox::options::{Durability, OVER_PROVISIONING_PERCENT, Options};
pub use crate::ox::stats::OxStats;
pub use sizes::TRANSACTION_BLOCKS_MAX;
pub use stats::BlockStats;
pub use store::{Blocks, OxBlock};
