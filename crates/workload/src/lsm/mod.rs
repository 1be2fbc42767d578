//! An LSM tree in virtual time, on a target with the table interface: what RocksDB's `db_bench` does to a drive, and when.
//!
//! Threads put and get; memtables fill and are flushed; compactions merge tables that really overlap; puts are slowed down and
//! stopped by RocksDB's rules. What processors take was measured once (`costs`), what the drive takes is the target's:
//! every table is written, read and deleted there. Keys are numbers, a value is the number of its put, and every get is held
//! against a map of all puts. The same options and seed give the same run.
//!
//! `source` owns all of it: events, requests, replies. `client`, `writes` and `reads` are the threads, `job` and `background`
//! flushes and compactions; `memtable`, `tree`, `run`, `layout`, `filter` are the database, `pick` and `throttle` RocksDB's
//! rules, `merge` is what flushes, compactions and `readseq` share, `wire` makes requests, `refused` says what a refusal means,
//! `report` is what was measured.
//!
//! Deliberately not here: a write-ahead log, a block cache, compression, snapshots, deletions and ranges of them, other styles
//! of compaction, recovery; and processors that threads have to share.

mod background;
mod client;
mod costs;
mod filter;
mod job;
mod layout;
mod memtable;
mod merge;
mod options;
mod pick;
mod reads;
mod refused;
mod report;
mod run;
mod source;
#[cfg(test)]
mod tests;
mod throttle;
mod tree;
mod wire;
mod writes;

pub use costs::Costs;
pub use job::FLUSH_STREAM;
pub use options::{Benchmark, LsmOptions};
pub use report::{Phase, Point, Work};
pub use source::Lsm;
pub use throttle::{Cause, Condition};
