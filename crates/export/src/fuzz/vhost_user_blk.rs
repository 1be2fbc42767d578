//! Any bytes as what a guest puts into its memory: rings, descriptors and requests.

use crate::dispatcher::Dispatcher;
use crate::exports::ExportId;
use crate::memory_disk::MemoryDisks;
use crate::vhost_user_blk::guest::{FREE, Guest, MEMORY_BYTES, SIZE};
use crate::vhost_user_blk::kind;

/// The bytes as a list of small numbers; zeroes behind its end.
struct Steps<'a>(&'a [u8]);

impl Steps<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// An address that is mostly in memory, and sometimes far from it.
    fn address(&mut self) -> u64 {
        let near = u64::from(self.short()) * 16 % u64::try_from(MEMORY_BYTES).expect("small");
        match self.byte() {
            0 => u64::MAX - near,
            1 => near << 32,
            _ => near.max(FREE),
        }
    }

    /// A length that is mostly of blocks, and sometimes absurd.
    fn length(&mut self) -> u32 {
        let blocks = u32::from(self.byte());
        match self.byte() {
            0 => u32::MAX - blocks,
            1 => blocks,
            _ => blocks * 512,
        }
    }

    fn segments(&mut self) -> Vec<(u64, u32)> {
        (0..self.byte() % 4).map(|_| (self.address(), self.length())).collect()
    }
}

/// Plays a guest that does what `data` says. Returns how many requests came back.
///
/// # Panics
/// If the device breaks a promise.
pub fn vhost_user_blk_guest(data: &[u8]) -> usize {
    let Some((&shape, data)) = data.split_first() else { return 0 };
    let pieces = if shape & 1 == 0 { [1, 0, 1] } else { [8, 4, 4] };
    let (mut dispatcher, mut disks) = MemoryDisks::new(&[("", 1 << 12), ("b-ro", 64)], pieces);
    if shape & 2 != 0 {
        disks.bad = 3..5;
    }
    let mut guest = Guest::new(&dispatcher, ExportId(u32::from(shape >> 2 & 1)));
    let mut steps = Steps(&data[..data.len().min(super::BYTES_MAX)]);
    let mut is_protocol_error = false;
    while !steps.0.is_empty() && !is_protocol_error {
        is_protocol_error = step(&mut steps, &mut guest, &mut dispatcher, &mut disks);
    }
    is_protocol_error |= !is_protocol_error && guest.settle(&mut dispatcher, &mut disks).is_err();
    if !is_protocol_error {
        assert!(guest.device.is_idle(), "a request of a guest that was not dropped never ended");
    }
    finish(&mut dispatcher, &mut disks);
    (0..2).map(|ring| std::iter::from_fn(|| guest.came_back(ring)).take(1 << 16).count()).sum()
}

/// One thing the guest does, or that happens to it. True if the device has enough of it.
fn step(
    steps: &mut Steps<'_>,
    guest: &mut Guest,
    dispatcher: &mut Dispatcher,
    disks: &mut MemoryDisks,
) -> bool {
    match steps.byte() % 16 {
        0..6 => {
            let kinds = [kind::IN, kind::OUT, kind::FLUSH, kind::GET_ID, kind::DISCARD, kind::WRITE_ZEROES];
            let kind = kinds.get(usize::from(steps.byte() % 8)).copied().unwrap_or(steps.byte().into());
            let sector = u64::from(steps.short()) % 4200;
            let (readable, writable) = (steps.segments(), steps.segments());
            guest.ask(kind, sector, &readable, &writable);
        }
        6 => {
            let (ring, place) = (usize::from(steps.byte() & 1), steps.short() % (SIZE + 1));
            guest.offer(ring, place);
        }
        7 => {
            let table = if steps.byte() & 1 == 0 { guest.at(0) } else { steps.address() % (1 << 19) };
            let (index, flags, next) = (steps.short() % SIZE, steps.short() % 8, steps.short() % (SIZE + 1));
            guest.descriptor(table, index, (steps.address(), steps.length()), flags, next);
        }
        8 => guest.disturb(u64::from(steps.short()), steps.byte()),
        9 => {
            let at = FREE + u64::from(steps.short());
            let bytes: Vec<u8> = (0..steps.byte()).map(|_| steps.byte()).collect();
            guest.put(at, &bytes);
        }
        10 if steps.byte() == 0 => guest.claim(0, steps.short()),
        11 => {
            // What the transport does before it sleeps, and when it tells.
            let _ = guest.device.ask_for_kicks(dispatcher);
            while guest.device.poll_call().is_some() {}
        }
        _ => return turn(steps.byte().into(), guest, dispatcher, disks),
    }
    false
}

/// Chains are taken, and some jobs end. True if the device has enough of its guest.
fn turn(which: usize, guest: &mut Guest, dispatcher: &mut Dispatcher, disks: &mut MemoryDisks) -> bool {
    if guest.device.take(dispatcher).is_err() {
        return true;
    }
    disks.take(dispatcher);
    for step in 0..=which % 3 {
        disks.carry_out(which / 3 + step, dispatcher);
    }
    while let Some(done) = dispatcher.poll_done() {
        guest.device.on_done(done, dispatcher);
    }
    false
}

/// What is out comes back to nobody.
fn finish(dispatcher: &mut Dispatcher, disks: &mut MemoryDisks) {
    disks.take(dispatcher);
    while disks.carry_out(0, dispatcher) {}
    while let Some(done) = dispatcher.poll_done() {
        if let Some(piece) = done.job.piece {
            dispatcher.pool.give_back(piece);
        }
    }
    assert_eq!(
        (dispatcher.open_jobs(), dispatcher.pool.lent()),
        (0, 0),
        "something of a lost guest was kept"
    );
}
