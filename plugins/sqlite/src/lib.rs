//! SQLite's files on an open-channel drive in the same process, with transactions of the drive in place of a journal.
//!
//! On `ox-block` a commit of SQLite is one transaction over the pages it changed: the VFS offers `SQLITE_IOCAP_BATCH_ATOMIC`, and
//! an SQLite that was compiled with `SQLITE_ENABLE_BATCH_ATOMIC_WRITE` writes no rollback journal. On other block targets, and with
//! an SQLite compiled without, journals and logs are files beside the database. docs/databases.md is for users.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let volume = std::sync::Arc::new(ocssd_sqlite::DriveVolume::open("drive=app.ocssd,create=qemu")?);
//! ocssd_sqlite::register("ocssd", &volume)?; // open databases with this VFS, as file:app.db?vfs=ocssd
//! volume.close()?; // once no connection is open
//! # Ok(()) }
//! ```
//!
//! Deliberately not here: SQL; more than one process on a drive; memory-mapped I/O.

mod blocks;
mod boundary;
mod counters;
mod extension;
mod grains;
mod io;
mod locks;
mod record;
mod vfs;
mod volume;
mod volumes;

pub use blocks::BLOCK_BYTES;
pub use counters::{Counters, FileCounts, FileKind};
pub use extension::sqlite3_extension_init;
#[doc(no_inline)]
pub use ocssd_base::Nanos;
#[doc(no_inline)]
pub use ocssd_table_store::{ErrorKind, StoreError};
pub use volume::Planted;
pub use volumes::{Commit, DriveCounts, DriveVolume};

/// Makes a volume known under a name to the SQLite that is linked to this program.
///
/// # Errors
/// If SQLite refuses.
pub fn register(name: &str, volume: &std::sync::Arc<DriveVolume>) -> Result<(), StoreError> {
    vfs::register(name, volume, vfs::linked())
}
