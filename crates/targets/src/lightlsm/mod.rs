//! `lightlsm`: sorted tables and logs of an LSM tree on raw flash, after LightLSM (CIDR 2020 section 4).
//!
//! A table or log is a set of whole chunks that it shares with none, so deleting it is resets, and garbage collection copies
//! nothing. Its units are striped over columns, each on a unit that the placement chooses; where they lie is a run for each
//! chunk. What there is, with attributes, is a catalog: changes of it are transactions in a write-ahead log, and a checkpoint
//! now and then has it whole, so an edit of many tables is atomic and recovery reads no table. Bytes of a log that fill no unit
//! are durable in that write-ahead log.
//!
//! Each procedure is a file: `take` judges requests and carries out what the host sees (`shelf`); `append`, `program`, `read`
//! move content; `commit` and `sync` log what is true, `journal` writes log and checkpoints; `reset` frees chunks of what was
//! deleted, `stop` ends, `mount` begins. `layout`, `change`, `catalog` are the data, `placement` and `space` the chunks,
//! `meetings` who meets at a unit, `memory` what it all takes, `medium` what chunks are, `state` owns the parts, `target` is what
//! the host sees. Deliberately not here: keys, blocks, filters, compaction (the host's), and file names (`plugins`).

mod append;
mod canary;
mod catalog;
mod change;
mod commit;
mod describe;
mod flight;
mod journal;
#[cfg(test)]
mod kept_sizes;
mod layout;
mod medium;
mod meetings;
mod memory;
mod mount;
mod object;
mod options;
mod placement;
mod program;
mod read;
mod requests;
mod reset;
mod shelf;
mod sizes;
mod space;
mod state;
mod stats;
mod stop;
mod sync;
mod take;
mod target;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use medium::Medium;
pub use mount::MountReport;
pub use options::{Options, Placement, ReadUnit};
pub use sizes::{ATTRIBUTES_BYTES_MAX, EDITS_MAX};
pub use state::LightLsm;
pub use stats::LightLsmStats;
