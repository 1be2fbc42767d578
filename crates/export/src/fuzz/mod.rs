//! The entries for fuzzers and for seeded random tests: any bytes as what a client sends.
//!
//! `fuzz/fuzz_targets` and `tests/random.rs` call them. They assert what holds for any client: no panic, nothing beyond an
//! export, every piece back at the end, and an end.

mod fuse;
mod nbd;
mod nvme_tcp;
mod pci_nvme;
mod resp;
mod vhost_user_blk;

pub use fuse::fuse_kernel;
pub use nbd::nbd_client;
pub use nvme_tcp::nvme_tcp_host;
pub use pci_nvme::pci_nvme_guest;
pub use resp::resp_client;
pub use vhost_user_blk::vhost_user_blk_guest;

use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::protocol::Protocol;
use std::io::IoSlice;

/// Longest input looked at.
const BYTES_MAX: usize = 1 << 20;

/// Jobs are taken and some end; returns how much happened.
fn work(
    session: &mut dyn Protocol,
    dispatcher: &mut Dispatcher,
    disks: &mut MemoryDisks,
    turn: usize,
) -> usize {
    disks.take(dispatcher);
    let mut worked = 0;
    for step in 0..=turn % 3 {
        worked += usize::from(disks.carry_out(turn / 3 + step, dispatcher));
    }
    while let Some(done) = dispatcher.poll_done() {
        session.on_done(done, dispatcher);
        worked += 1;
    }
    session.go_on(dispatcher);
    worked
}

fn drain(session: &mut dyn Protocol, dispatcher: &mut Dispatcher) -> usize {
    let mut sent = 0;
    while !session.send_queue().is_empty() {
        let mut slices = [IoSlice::new(&[]); 3];
        let used = session.send_queue().slices(&dispatcher.buffers, &mut slices);
        let bytes = slices[..used].iter().map(|slice| slice.len()).sum();
        session.send_queue().sent(bytes, &mut dispatcher.pool);
        sent += bytes;
    }
    sent
}

/// The client goes in the middle of everything: all that was lent comes back.
fn finish(session: &mut dyn Protocol, dispatcher: &mut Dispatcher, disks: &mut MemoryDisks) {
    session.release(dispatcher);
    disks.take(dispatcher);
    while disks.carry_out(0, dispatcher) {}
    while let Some(done) = dispatcher.poll_done() {
        done.into_pieces().for_each(|piece| dispatcher.pool.give_back(piece));
    }
    assert_eq!(
        (dispatcher.open_jobs(), dispatcher.pool.lent()),
        (0, 0),
        "something of a lost client was kept"
    );
}
