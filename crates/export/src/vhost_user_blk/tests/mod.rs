//! The device against a guest in this process, and disks in memory.

mod inflight;
mod messages;
mod rings;
mod rude;
mod sound;

use super::guest::Guest;
use crate::desk::Desk;
use crate::exports::ExportId;
use crate::memory_disk::MemoryDisks;

/// A guest with a disk of 4096 blocks of 512 bytes, and few pieces.
fn world() -> (Guest, Desk, MemoryDisks) {
    let (desk, disks) = MemoryDisks::new(&[("a", 4096), ("b-ro", 64)], [4, 1, 1]);
    (Guest::new(&desk, ExportId(0)), desk, disks)
}

/// Nothing is kept of any request.
fn check_clean(guest: &Guest, desk: &Desk) {
    assert!(guest.device.is_idle(), "a request is open");
    assert_eq!((desk.open_jobs(), desk.pool.lent()), (0, 0), "something was kept");
}
