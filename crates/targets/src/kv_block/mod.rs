//! `kv-block`: the key-value target of [`kv`](crate::kv) on a block device: the first kind of KV-SSD, whose FTL stands on another.
//!
//! It is an assembly: `kv` as it is, whose chunks are *extents* of any block target that can be overwritten. So what an
//! open-channel drive spares a KV FTL (a second map, a second garbage collection, space kept twice) is the difference of two
//! runs.
//!
//! `extents` says how large they are and where; `exchange` turns commands on them into block requests, and the replies back;
//! `survey` finds out at mount how far each is written, with `below`, a block target used one batch at a time; `target` is what
//! the host sees, and `over` which block targets there are.
//!
//! What it asks of the block target: writes with FUA, discards that a flush makes durable, and that discarded blocks read as
//! zeroes. Deliberately not here: keys, values, garbage collection of records (`kv`); and a hint to the block target which
//! records live long, for a block interface has none.

mod below;
mod canary;
mod exchange;
mod extents;
mod options;
mod over;
mod survey;
mod target;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use options::Options;
pub use target::KvOverBlock;
