//! `kv`: keys and values straight on open-channel units, as a log of records.
//!
//! A value is a record in a write unit, at any byte; a long one is pieces and a record that gives them to a key. The index of
//! all keys is in memory, or as much of it as asked for; a checkpoint now and then has it, and recovery replays the records behind
//! the newest. Garbage collection moves what lives in the chunk with the fewest live bytes to a stream of its own.
//!
//! Each procedure is a file: requests in order (`queue`, `serve`), changes (`change`, `stage`), records and units (`record`,
//! `append`, `buffer_units`, `ready`, `program`), the index (`index`, `index_pages`, `long_values`), `read`, garbage collection
//! (`collect`, and for wear `level`), resets (`reset`, of what `space` says is dead), `checkpoint`, ends (`stop`), `mount`;
//! `page_on_media` is for those who look at media from outside; `state` owns the parts, `target` is what the host sees.
//! Deliberately not here: expiry, key spaces and compression.

mod append;
mod buffer_units;
mod canary;
mod change;
mod checkpoint;
mod collect;
mod copy_budget;
mod describe;
mod flight;
mod index;
mod index_pages;
#[cfg(test)]
mod kept_sizes;
mod key_bytes;
mod level;
mod long_values;
mod mount;
mod options;
mod page_on_media;
mod program;
mod queue;
mod read;
mod ready;
mod record;
mod released;
mod reset;
mod serve;
mod sizes;
mod space;
mod stage;
mod state;
mod stats;
mod stop;
mod target;
mod write_depth;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use mount::MountReport;
pub use options::Options;
pub use page_on_media::{PageOnMedia, pages_on_media};
pub use state::Kv;
pub use stats::KvStats;
