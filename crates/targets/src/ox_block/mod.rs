//! `ox-block`: a block device whose requests are transactions, after OX (CIDR 2020; `ox.md` 1).
//!
//! Every request up to 1 MiB is atomic, and durable when it is answered. Data are written to chunks of their own, striped
//! over all units; a transaction is one group of entries in a write-ahead log that many share a page of; a checkpoint now
//! and then has the whole map. Recovery loads the newest whole checkpoint and replays the log behind it. Garbage collection
//! empties single chunks within a marked group.
//!
//! Each procedure is a file: requests (`requests`, `write`, `read`, `retry`), frames of data (`write_buffer`, `program`),
//! transactions (`commit`, `log_pages`), `checkpoint`, garbage collection (`collect`), resets (`reset`, of what `space` says
//! is dead), ends (`stop`), `mount`; `state` owns the parts, `target` is what the host sees. Deliberately not here: blocks
//! smaller than a sector, transactions over several requests, a map larger than memory.

mod canary;
mod checkpoint;
mod collect;
mod commit;
mod describe;
mod flight;
pub(crate) mod log_pages;
pub(crate) mod mount;
mod options;
pub(crate) mod page_io;
mod program;
mod read;
mod requests;
mod reset;
mod retry;
mod sizes;
mod space;
mod state;
mod stats;
mod stop;
mod target;
mod write;
mod write_buffer;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use mount::MountReport;
pub use options::{Durability, OVER_PROVISIONING_PERCENT, Options};
pub use sizes::TRANSACTION_BLOCKS_MAX;
pub use state::OxBlock;
pub use stats::OxStats;
