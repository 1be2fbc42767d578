//! The other side, for tests and fuzzers: a guest with a memory of this process, which does exactly what it is told.
//!
//! Deliberately not here: sockets. What a frontend does is in the tests that have one.

use super::device::Device;
use super::memory::Memory;
use super::request::{HEADER_BYTES, Header};
use super::ring::Parts;
use crate::dispatcher::Dispatcher;
use crate::exports::ExportId;
use crate::memory_disk::MemoryDisks;
use crate::protocol::ProtocolError;
use vm_memory::{Bytes, GuestAddress};

/// The device may write (VIRTQ_DESC_F_WRITE).
pub const WRITE: u16 = 2;
/// Another descriptor follows (VIRTQ_DESC_F_NEXT).
pub const NEXT: u16 = 1;
/// It is a table of descriptors (VIRTQ_DESC_F_INDIRECT).
pub const INDIRECT: u16 = 4;

/// Bytes of a guest's memory.
pub const MEMORY_BYTES: usize = 1 << 20;

/// Where a ring's parts are, each with this distance to the next ring's.
const RING_STEP: u64 = 0x4000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;

/// Where anything else may lie.
pub const FREE: u64 = 0x1_0000;

/// Descriptors of a ring.
pub const SIZE: u16 = 64;

/// A guest with two rings.
#[derive(Debug)]
pub struct Guest {
    /// What it talks to.
    pub device: Device,
    offered: [u16; 2],
    seen: [u16; 2],
    /// The next descriptor of each ring that was not used yet.
    unused: [u16; 2],
}

impl Guest {
    /// A guest of an export, whose rings run.
    ///
    /// # Panics
    /// If the device refuses sound rings.
    #[must_use]
    pub fn new(dispatcher: &Dispatcher, export: ExportId) -> Self {
        let mut device = Device::new(export, dispatcher.exports.get(export).clone(), 3, 9);
        device.memory = Memory::anonymous(&[(0, MEMORY_BYTES)]);
        for (ring, at) in device.rings[..2].iter_mut().zip([0, RING_STEP]) {
            let parts = Parts {
                descriptors: GuestAddress(at),
                available: GuestAddress(at + AVAILABLE),
                used: GuestAddress(at + USED),
            };
            ring.set_size(SIZE.into()).expect("a power of two");
            ring.set_parts(parts).expect("they are aligned");
            ring.start(device.memory.mapped(), false).expect("they are in memory");
            ring.enabled = true;
        }
        Self { device, offered: [0; 2], seen: [0; 2], unused: [0; 2] }
    }

    /// Writes to memory.
    ///
    /// # Panics
    /// If it is not there.
    pub fn put(&self, at: u64, bytes: &[u8]) {
        self.device.memory.mapped().write_slice(bytes, GuestAddress(at)).expect("it is there");
    }

    /// Reads from memory.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn get(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        self.device.memory.mapped().read_slice(&mut found, GuestAddress(at)).expect("it is there");
        found
    }

    /// Writes a descriptor of a table at `table`.
    pub fn descriptor(&self, table: u64, index: u16, (address, bytes): (u64, u32), flags: u16, next: u16) {
        let text =
            [&address.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        self.put(table + 16 * u64::from(index), &text.concat());
    }

    /// Offers a chain that begins with `head`.
    pub fn offer(&mut self, ring: usize, head: u16) {
        let at = self.at(ring) + AVAILABLE;
        let place = self.offered[ring] % SIZE;
        self.put(at + 4 + 2 * u64::from(place), &head.to_le_bytes());
        self.offered[ring] = self.offered[ring].wrapping_add(1);
        self.put(at + 2, &self.offered[ring].to_le_bytes());
    }

    /// Says that so many chains were offered, whatever is there.
    pub fn claim(&mut self, ring: usize, index: u16) {
        self.offered[ring] = index;
        self.put(self.at(ring) + AVAILABLE + 2, &index.to_le_bytes());
    }

    /// The table of a ring.
    #[must_use]
    pub fn at(&self, ring: usize) -> u64 {
        RING_STEP * u64::try_from(ring).expect("few")
    }

    /// Offers a chain of these segments: what the device may read, then what it may write. Returns its head.
    pub fn chain(&mut self, ring: usize, readable: &[(u64, u32)], writable: &[(u64, u32)]) -> u16 {
        let (table, head) = (self.at(ring), self.unused[ring]);
        let all = readable
            .iter()
            .map(|segment| (segment, 0))
            .chain(writable.iter().map(|segment| (segment, WRITE)));
        let count = readable.len() + writable.len();
        for (place, (segment, flags)) in all.enumerate() {
            let index = self.unused[ring];
            self.unused[ring] = (index + 1) % SIZE;
            let flags = if place + 1 < count { flags | NEXT } else { flags };
            self.descriptor(table, index, *segment, flags, self.unused[ring]);
        }
        self.offer(ring, head);
        head
    }

    /// Offers a request: its header and status are put where nothing else should be. Returns its head.
    pub fn ask(&mut self, kind: u32, sector: u64, readable: &[(u64, u32)], writable: &[(u64, u32)]) -> u16 {
        let at = FREE + 32 * u64::from(self.unused[0]);
        self.put(at, &Header { kind, sector }.encode());
        self.put(at + 16, &[0xEE]);
        let header = (at, u32::try_from(HEADER_BYTES).expect("small"));
        self.chain(0, &[&[header], readable].concat(), &[writable, &[(at + 16, 1)]].concat())
    }

    /// Status of the request with this head, as [`Self::ask`] placed it.
    #[must_use]
    pub fn status(&self, head: u16) -> u8 {
        self.get(FREE + 32 * u64::from(head) + 16, 1)[0]
    }

    /// The next chain that came back: its head, and how many bytes were written.
    pub fn came_back(&mut self, ring: usize) -> Option<(u16, u32)> {
        let at = self.at(ring) + USED;
        let index = self.get(at + 2, 2);
        if self.seen[ring].to_le_bytes()[..] == index[..] {
            return None;
        }
        let entry = self.get(at + 4 + 8 * u64::from(self.seen[ring] % SIZE), 8);
        self.seen[ring] = self.seen[ring].wrapping_add(1);
        let word = |at: usize| u32::from_le_bytes(entry[at..][..4].try_into().expect("four bytes"));
        // What a guest wrote there itself is no head of its own.
        Some((u16::try_from(word(0)).unwrap_or(u16::MAX), word(4)))
    }

    /// Lets everything happen that can.
    ///
    /// # Errors
    /// As the device says.
    pub fn settle(
        &mut self,
        dispatcher: &mut Dispatcher,
        disks: &mut MemoryDisks,
    ) -> Result<(), ProtocolError> {
        loop {
            let mut any = self.device.take(dispatcher)?;
            disks.take(dispatcher);
            while disks.carry_out(0, dispatcher) {}
            while let Some(done) = dispatcher.poll_done() {
                any = true;
                self.device.on_done(done, dispatcher);
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// A ring's table and indices with bits changed: `at` counts round.
    pub fn disturb(&self, at: u64, bits: u8) {
        let at = at % u64::try_from(MEMORY_BYTES).expect("small");
        let byte = self.get(at, 1)[0] ^ bits;
        self.put(at, &[byte]);
    }
}
