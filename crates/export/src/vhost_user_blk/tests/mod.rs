//! The device against a guest in this process, and disks in memory.

mod hostile;
mod inflight;
mod messages;
mod rings;
mod sound;

use super::guest::Guest;
use crate::dispatcher::Dispatcher;
use crate::exports::ExportId;
use crate::memory_disk::MemoryDisks;

/// A guest with a disk of 4096 blocks of 512 bytes, and few pieces.
fn world() -> (Guest, Dispatcher, MemoryDisks) {
    let (dispatcher, disks) = MemoryDisks::new(&[("a", 4096), ("b-ro", 64)], [4, 1, 1]);
    (Guest::new(&dispatcher, ExportId(0)), dispatcher, disks)
}

/// Nothing is kept of any request.
fn check_clean(guest: &Guest, dispatcher: &Dispatcher) {
    assert!(guest.device.is_idle(), "a request is open");
    assert_eq!((dispatcher.open_jobs(), dispatcher.pool.lent()), (0, 0), "something was kept");
}
