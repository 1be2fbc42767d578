//! Targets that want chunks, on a block device: chunks are *extents* of any block target that can be overwritten.
//!
//! What stands on it is an assembly with the target as it is: `kv_block`, `table_block`. So what an open-channel drive spares it
//! (a second map, a second garbage collection, space kept twice) is the difference of two runs.
//!
//! `extents` says how large they are and where; `exchange` turns commands on them into block requests, and the replies back;
//! `survey` finds out at mount how far each is written, with `below`, a block target used one batch at a time; `above` is what is
//! asked of the target that stands there, `target` is what the host sees, and `over` which block targets there are.
//!
//! What it asks of the block target: writes with FUA, flushes that make writes and discards before them durable, and that
//! discarded blocks read as zeroes. Deliberately not here: what lies in extents; and a hint to the block target what lives long,
//! for a block interface has none.

mod above;
mod below;
mod canary;
mod exchange;
mod extents;
mod options;
mod over;
mod survey;
mod target;

pub use above::{Above, Cut};
#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use options::BlockOptions;
pub use target::OverBlocks;
