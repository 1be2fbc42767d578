//! `SmallBlocks`: a block target of small blocks around one of larger blocks, as a 512e disk is around its sectors.
//!
//! The host sees blocks of 512 bytes (any power of two that divides a sector), the inner target whole sectors. What
//! covers whole sectors goes straight through. A write of a part of a sector reads it, merges and writes it back; the
//! sectors between are written from the host's buffer, or, where they do not lie on a sector of it, from a copy.
//!
//! Like every target it is a state machine without a clock: `target` routes, `request` says what becomes of each kind,
//! `parts` what the inner target answered, `span` where a request lies, `order` who waits for whom, `stages` owns the
//! buffers of its own, `stats` counts.
//!
//! What it promises: a write is one inner write per sector, so after a power cut every block is old or new if every sector
//! of the inner target is, and durable when the inner write is. Changes of a sector happen in the order they came; no
//! update is lost between a read and the write that follows it. Both edges are read before anything is written: a failed
//! read fails the request and changes nothing. Reads wait for nobody.
//!
//! Discards reach whole sectors only; the blocks beside them keep their content (NVMe leaves that to the device; zeroing
//! them would turn a hint into reads and writes). Write zeroes does zero them. With stamps there are no parts of sectors,
//! so it is refused.
//!
//! Deliberately not here: zones (they are written whole), joining of neighbouring small writes, a cache of the sectors read:
//! the inner target's write buffer is one.

mod canary;
mod order;
mod parts;
mod request;
mod span;
mod stages;
mod stats;
mod target;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use stats::SmallBlocksStats;
pub use target::{REQUESTS_MAX, SmallBlocks};
