//! Linux io_uring: one system call starts transfers and waits for others.
//!
//! The slots' memory and the file are registered, so that the kernel does not look them up for every transfer. Where the
//! limit on locked memory forbids registering memory, plain reads and writes are used and a note says so.
//!
//! One of the two places in the project with `unsafe`, because the kernel is given addresses. What must hold, and why it does:
//!
//! 1. *Memory lives while the kernel may touch it.* `Slots` owns it and does not move it; `Drop` takes back every transfer
//!    before the memory goes, and if the kernel does not give them back, the memory is leaked instead.
//! 2. *Nobody else touches it meanwhile.* [`Slots::memory`] and [`Slots::occupy`] assert that a slot is free, and only a
//!    completion makes it free.
//! 3. *A transfer stays within its memory.* [`Slots::occupy`] asserts the length.
//! 4. *The file is open.* The ring owns a descriptor of its own.

#![expect(
    unsafe_code,
    reason = "the kernel is given addresses; the module's documentation lists why that is sound"
)]

use super::backend::{Backend, Ended, Slots, Transfer, TransferKind, index};
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How long the last transfers may take when the ring is closed (chosen: longer than the kernel's own limit of 30 s for an
/// NVMe command, `nvme_core.io_timeout`).
const CLOSE_SECS: u32 = 35;

/// The back end.
pub struct UringBackend {
    ring: IoUring,
    slots: Slots,
    /// Kept open for the kernel's sake; reads and writes name it by its registered number.
    _file: File,
    registered: bool,
    in_flight: u32,
}

impl UringBackend {
    /// A ring on `file` with `slots` slots of `bytes` bytes, and what did not go as asked.
    ///
    /// # Errors
    /// If the kernel has no io_uring or refuses it.
    pub fn new(file: &File, slots: u32, bytes: usize) -> io::Result<(Self, Option<String>)> {
        let entries = slots.next_power_of_two();
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(entries)
            // Kernels before 6.1 do not know these two.
            .or_else(|_| IoUring::new(entries))?;
        let file = file.try_clone()?;
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let mut slots = Slots::new(slots, bytes);
        let vectors: Vec<libc::iovec> = slots
            .buffers
            .iter_mut()
            .map(|buffer| {
                let memory = buffer.bytes_mut();
                libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() }
            })
            .collect();
        // SAFETY: the vectors name memory of `slots`, which lives as long as the ring (1).
        let registered = unsafe { ring.submitter().register_buffers(&vectors) };
        let note = registered.as_ref().err().map(|error| {
            format!("buffers are not registered ({error}; see `ulimit -l`): each I/O costs a little more processor time")
        });
        Ok((Self { ring, slots, _file: file, registered: registered.is_ok(), in_flight: 0 }, note))
    }

    fn entry(&mut self, transfer: Transfer) -> squeue::Entry {
        let Transfer { slot, kind, offset, bytes } = transfer;
        let memory = self.slots.buffers[index(slot)].bytes_mut().as_mut_ptr();
        let number = u16::try_from(slot).expect("fewer than 2^16 slots");
        let durable = if kind == (TransferKind::Write { durable: true }) { libc::RWF_DSYNC } else { 0 };
        let entry = match (kind, self.registered) {
            (TransferKind::Read, true) => {
                opcode::ReadFixed::new(Fixed(0), memory, bytes, number).offset(offset).build()
            }
            (TransferKind::Read, false) => opcode::Read::new(Fixed(0), memory, bytes).offset(offset).build(),
            (TransferKind::Write { .. }, true) => opcode::WriteFixed::new(Fixed(0), memory, bytes, number)
                .offset(offset)
                .rw_flags(durable)
                .build(),
            (TransferKind::Write { .. }, false) => {
                opcode::Write::new(Fixed(0), memory, bytes).offset(offset).rw_flags(durable).build()
            }
            (TransferKind::Flush, _) => {
                opcode::Fsync::new(Fixed(0)).flags(io_uring::types::FsyncFlags::DATASYNC).build()
            }
        };
        entry.user_data(u64::from(slot))
    }

    fn enter(&mut self, limit: Duration) -> io::Result<()> {
        let limit = Timespec::from(limit);
        let arguments = SubmitArgs::new().timespec(&limit);
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => Ok(()),
            // Time is up, or a signal came: whoever called looks at both.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Backend for UringBackend {
    fn engine(&self) -> &'static str {
        "io_uring"
    }

    fn memory(&mut self, slot: u32) -> &mut [u8] {
        self.slots.memory(slot)
    }

    fn push(&mut self, transfer: Transfer) {
        self.slots.occupy(&transfer);
        let entry = self.entry(transfer);
        // SAFETY: memory and file outlive the entry (1, 4), nobody else uses the memory (2), and it is long enough (3).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has a place for every slot");
        self.in_flight += 1;
    }

    fn wait(&mut self, limit: Duration) -> io::Result<()> {
        if !self.ring.completion().is_empty() && self.ring.submission().is_empty() {
            return Ok(());
        }
        self.enter(limit)
    }

    fn poll(&mut self) -> Option<Ended> {
        let entry = self.ring.completion().next()?;
        let slot = u32::try_from(entry.user_data()).expect("user data is a slot");
        self.slots.free(slot);
        self.in_flight -= 1;
        let result = u32::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some(Ended { slot, result })
    }
}

impl Drop for UringBackend {
    fn drop(&mut self) {
        for _ in 0..CLOSE_SECS {
            let entered = if self.in_flight == 0 { Ok(()) } else { self.enter(Duration::from_secs(1)) };
            while self.poll().is_some() {}
            if self.in_flight == 0 || entered.is_err() {
                break;
            }
        }
        if self.in_flight > 0 {
            // The kernel may still write there (1).
            std::mem::forget(std::mem::take(&mut self.slots.buffers));
        }
    }
}
