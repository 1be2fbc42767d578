//! How I/O gets to a file: the seam between a target and the system.
//!
//! A back end has a fixed number of slots, each with memory of its own; a transfer occupies a slot from [`Backend::push`]
//! until [`Backend::poll`] has returned it. Deliberately not here: what is read and written, and time.

use super::buffer::AlignedBuffer;
use std::io;
use std::time::Duration;

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// Fills the slot's memory.
    Read,
    /// Writes the slot's memory.
    Write {
        /// Ends only when durable.
        durable: bool,
    },
    /// Makes durable what was written.
    Flush,
}

/// One transfer between a slot's memory, from its beginning on, and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The slot.
    pub slot: u32,
    /// What to do.
    pub kind: TransferKind,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes; 0 for a flush.
    pub bytes: u32,
}

/// A transfer that is over.
#[derive(Debug)]
pub struct Ended {
    /// Its slot, which is free again.
    pub slot: u32,
    /// Bytes moved, or why none were.
    pub result: io::Result<u32>,
}

/// A way to do I/O on a file.
pub trait Backend {
    /// fio's name for the way: `io_uring`, `psync`, `null`.
    fn engine(&self) -> &'static str;

    /// Memory of a slot that is free.
    ///
    /// # Panics
    /// If the slot is in use.
    fn memory(&mut self, slot: u32) -> &mut [u8];

    /// Takes a transfer; it may start now, or when [`Self::wait`] is called.
    ///
    /// # Panics
    /// If the slot is in use or the memory is shorter than the transfer.
    fn push(&mut self, transfer: Transfer);

    /// Starts what was pushed, and returns once at least one transfer is over, or `limit` has passed.
    ///
    /// # Errors
    /// If the system refuses the way itself; a transfer that failed is no error here.
    fn wait(&mut self, limit: Duration) -> io::Result<()>;

    /// The next transfer that is over.
    fn poll(&mut self) -> Option<Ended>;
}

/// The memory of all slots, and which are in use.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) buffers: Vec<AlignedBuffer>,
    pub(super) in_use: Vec<bool>,
}

pub(super) fn index(slot: u32) -> usize {
    usize::try_from(slot).expect("32 bits fit an index")
}

impl Slots {
    pub(super) fn new(count: u32, bytes: usize) -> Self {
        let buffers = (0..count).map(|_| AlignedBuffer::new(bytes)).collect();
        Self { buffers, in_use: vec![false; index(count)] }
    }

    pub(super) fn memory(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.in_use[index(slot)], "slot {slot} is in use");
        self.buffers[index(slot)].bytes_mut()
    }

    pub(super) fn occupy(&mut self, transfer: &Transfer) {
        let slot = index(transfer.slot);
        assert!(!self.in_use[slot], "slot {slot} is in use");
        let length = self.buffers[slot].bytes().len();
        assert!(index(transfer.bytes) <= length, "{} bytes do not fit a slot of {length}", transfer.bytes);
        self.in_use[slot] = true;
    }

    pub(super) fn free(&mut self, slot: u32) {
        assert!(self.in_use[index(slot)], "slot {slot} ended twice");
        self.in_use[index(slot)] = false;
    }
}

/// Answers at once and moves nothing: what the program itself can do.
#[derive(Debug)]
pub struct NullBackend {
    slots: Slots,
    ended: Vec<(u32, u32)>,
}

impl NullBackend {
    /// Slots of `bytes` bytes.
    #[must_use]
    pub fn new(slots: u32, bytes: usize) -> Self {
        Self { slots: Slots::new(slots, bytes), ended: Vec::with_capacity(index(slots)) }
    }
}

impl Backend for NullBackend {
    fn engine(&self) -> &'static str {
        "null"
    }

    fn memory(&mut self, slot: u32) -> &mut [u8] {
        self.slots.memory(slot)
    }

    fn push(&mut self, transfer: Transfer) {
        self.slots.occupy(&transfer);
        self.ended.push((transfer.slot, transfer.bytes));
    }

    fn wait(&mut self, _limit: Duration) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> Option<Ended> {
        let (slot, bytes) = self.ended.pop()?;
        self.slots.free(slot);
        Some(Ended { slot, result: Ok(bytes) })
    }
}
