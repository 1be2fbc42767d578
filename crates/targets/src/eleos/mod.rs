//! `eleos`: a page store for log-structured hosts, after OX-ELEOS (CIDR 2020).
//!
//! A host flushes whole buffers with a table of the pages in them, all or nothing, in sessions whose flushes are applied in order
//! and once; it reads pages by name. Pages have any length, and lie byte by byte where buffer units have room. The host keeps
//! neither a log nor a map of media, and collects no garbage.
//!
//! The machines are those of `ox`; here is what pages add: requests (`request`, `read`, `write`), changes that are not durable
//! (`change`), where pages lie and what is needed (`extent`, `page_map`, `leaves`, `live`, `map`), their copies (`copy`), sectors
//! on media (`sector`), entries of the log (`entry`), sizes and options, the answers to the machines (`store`), what the host sees
//! (`target`). Deliberately not here: when a host flushes, what its pages mean, a map larger than memory.

mod change;
mod copy;
mod describe;
mod entry;
mod extent;
mod leaves;
mod live;
mod map;
mod options;
mod page_map;
mod read;
mod request;
mod sector;
mod sizes;
mod stats;
mod store;
mod target;
mod write;

#[cfg(feature = "canaries")]
pub use crate::ox::canary::Canary;
pub use crate::ox::mount::MountReport;
pub use options::Options;
pub use stats::PageStats;
pub use store::{Eleos, Pages};
