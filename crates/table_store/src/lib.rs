//! Files by name on a target with the table interface: what a RocksDB file system and an object store are put on.
//!
//! A [`Store`] opens a drive, mounts its target and keeps the names. Any thread may call it; calls block, and the loop of
//! `engine` is given its turns by whoever waits. [`Store::open`] takes a text such as `drive=db.ocssd,clock=wall`.
//!
//! - `options` and `opening`: from a text to a store. `shared_drive`: a target that many threads ask (`questions`).
//! - `record`: what the attributes of a table say of the file it holds. `names` and `path`: the tree of names in memory.
//! - `store_drive`: the drive below, of this process or `served` by another. `power_cut`: for tests of what is left.
//! - `map`: a file in memory as a whole.
//! - `content`: the bytes of one file; `log_tail` keeps what a log was given since its last sync, for the process after this.
//! - `store`: what is done by name. [`Writer`] and [`Reader`]: an open file.
//!
//! **Names lie in attributes.** There is no catalogue: a mount lists the target's tables and reads what each says of itself.
//! So a rename over a file that exists is one edit of the target: there is the old file or the new one, never none.
//!
//! **Three classes of files** ([`Class`]): a *table* appears on the drive at its first sync or at its close, as a whole, or
//! in its attributes if it is short; a *log* grows, and is there from its creation; *memory* is for what a process tells its
//! user, and is gone with the process.
//!
//! Deliberately not here: RocksDB, object stores, and C (`plugins/`); links, permissions, owners.

mod content;
mod drive_of_options;
mod error;
mod file;
mod log_tail;
mod map;
mod names;
mod opening;
mod options;
mod path;
mod power_cut;
mod questions;
mod record;
mod rename;
mod request_buffers;
mod served;
mod shared_drive;
mod store;
mod store_drive;

pub use content::Replace;
pub use drive_of_options::{lease_target, open_drive};
pub use error::{ErrorKind, StoreError};
pub use file::{Reader, Writer};
pub use map::Map;
/// The name of a table or log of the target.
pub use ocssd_lightnvm::interface::table::TableId;
pub use options::{Flushed, StoreClock, StoreOptions};
pub use power_cut::AfterCut;
pub use record::Class;
pub use shared_drive::{DriveCounts, SharedDrive};
pub use store::{Created, FileStatus, Hint, Space, Store};
pub use store_drive::StoreDrive;
