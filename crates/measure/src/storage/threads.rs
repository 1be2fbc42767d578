//! Threads that read and write, one for each slot: what every system has.
//!
//! With one slot the calling thread does it itself, as fio's `psync` does, so that no hand-over is measured. With more, each
//! I/O pays for two of them, some 10 to 50 us: the note says so.

use super::backend::{Backend, Ended, Slots, Transfer, TransferKind, index};
use super::buffer::AlignedBuffer;
use super::system::{read_at, write_at};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// What goes to a thread and comes back: the transfer, its memory, and in the end its result.
struct Errand {
    transfer: Transfer,
    buffer: AlignedBuffer,
    result: io::Result<u32>,
}

/// The back end.
pub struct ThreadBackend {
    file: Arc<File>,
    slots: Slots,
    /// One for each slot; none if there is one slot only.
    ways_in: Vec<SyncSender<Errand>>,
    way_out: Receiver<Errand>,
    threads: Vec<JoinHandle<()>>,
    /// To be done by the calling thread.
    waiting: Option<Transfer>,
    ended: Vec<Ended>,
}

impl ThreadBackend {
    /// Threads on `file` for `slots` slots of `bytes` bytes.
    ///
    /// # Errors
    /// If the system gives no more threads.
    pub fn new(file: &File, slots: u32, bytes: usize) -> io::Result<Self> {
        let file = Arc::new(file.try_clone()?);
        let (back, way_out) = sync_channel(index(slots));
        let mut backend = Self {
            file,
            slots: Slots::new(slots, bytes),
            ways_in: Vec::new(),
            way_out,
            threads: Vec::new(),
            waiting: None,
            ended: Vec::with_capacity(index(slots)),
        };
        for slot in 0..if slots > 1 { slots } else { 0 } {
            let (way_in, errands) = sync_channel::<Errand>(1);
            let (file, back) = (Arc::clone(&backend.file), back.clone());
            let body = move || {
                for mut errand in errands {
                    errand.result = carry_out(&file, errand.transfer, &mut errand.buffer);
                    if back.send(errand).is_err() {
                        return;
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("io-{slot}")).spawn(body)?;
            backend.ways_in.push(way_in);
            backend.threads.push(thread);
        }
        Ok(backend)
    }

    fn take_back(&mut self, errand: Errand) {
        let slot = errand.transfer.slot;
        self.slots.buffers[index(slot)] = errand.buffer;
        self.slots.free(slot);
        self.ended.push(Ended { slot, result: errand.result });
    }
}

fn carry_out(file: &File, transfer: Transfer, buffer: &mut AlignedBuffer) -> io::Result<u32> {
    let memory = &mut buffer.bytes_mut()[..index(transfer.bytes)];
    let moved = match transfer.kind {
        TransferKind::Read => read_at(file, memory, transfer.offset)?,
        TransferKind::Write { durable } => {
            let moved = write_at(file, memory, transfer.offset)?;
            if durable {
                file.sync_data()?;
            }
            moved
        }
        TransferKind::Flush => {
            file.sync_data()?;
            0
        }
    };
    Ok(u32::try_from(moved).expect("no more than was asked for"))
}

impl Backend for ThreadBackend {
    fn engine(&self) -> &'static str {
        "psync"
    }

    fn memory(&mut self, slot: u32) -> &mut [u8] {
        self.slots.memory(slot)
    }

    fn push(&mut self, transfer: Transfer) {
        self.slots.occupy(&transfer);
        let slot = index(transfer.slot);
        if self.ways_in.is_empty() {
            self.waiting = Some(transfer);
            return;
        }
        let buffer = std::mem::replace(&mut self.slots.buffers[slot], AlignedBuffer::new(0));
        let errand = Errand { transfer, buffer, result: Ok(0) };
        self.ways_in[slot].send(errand).expect("a thread runs until its way in is closed");
    }

    fn wait(&mut self, limit: Duration) -> io::Result<()> {
        if let Some(transfer) = self.waiting.take() {
            let slot = transfer.slot;
            let result = carry_out(&self.file, transfer, &mut self.slots.buffers[index(slot)]);
            self.slots.free(slot);
            self.ended.push(Ended { slot, result });
            return Ok(());
        }
        if self.ended.is_empty()
            && let Ok(errand) = self.way_out.recv_timeout(limit)
        {
            self.take_back(errand);
        }
        while let Ok(errand) = self.way_out.try_recv() {
            self.take_back(errand);
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Ended> {
        self.ended.pop()
    }
}

impl Drop for ThreadBackend {
    fn drop(&mut self) {
        self.ways_in.clear();
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread that reads and writes does not panic");
        }
    }
}
