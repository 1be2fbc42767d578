//! A guest: a small NVMe driver over the crate's own client.

use crate::world::{PATIENCE, World};
use ocssd_nvme::{Cqe, HostAddress, Sqe};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Where the guest's memory begins, and how much there is.
pub const MEMORY: u64 = 0x4000_0000;
pub const MEMORY_BYTES: u64 = 8 << 20;
/// Entries of its queues.
pub const ENTRIES: u16 = 16;
/// CC that begins: entries of 64 and 16 bytes, enabled.
pub const ENABLE: u32 = 0x46_0001;
const BAR0: u32 = 0;
const CONFIG: u32 = 7;
/// Doorbell Buffer Config.
pub const DOORBELL_BUFFER_CONFIG: u8 = 0x7C;

struct Ring {
    submission: u64,
    completion: u64,
    tail: u16,
    head: u16,
    phase: bool,
    cid: u16,
}

/// Where shadows are, and how often a register was rung in spite of them.
struct Shadow {
    doorbells: u64,
    event_indexes: u64,
}

pub struct Guest {
    pub client: vfio_user::Client,
    memory: MmapRegion,
    file: File,
    next: u64,
    rings: Vec<Option<Ring>>,
    interrupts: Vec<OwnedFd>,
    shadow: Option<Shadow>,
    pub rung: u32,
}

impl Guest {
    /// A guest whose machine has booted: its memory is lent, its interrupts are wired.
    pub fn new(world: &World) -> Self {
        Self::at(&world.path)
    }

    /// The same at a socket.
    pub fn at(path: &Path) -> Self {
        let client = vfio_user::Client::new(path).expect("the server lets one guest in");
        let file = File::from(rustix::fs::memfd_create("guest", MemfdFlags::CLOEXEC).expect("a memfd"));
        file.set_len(MEMORY_BYTES).expect("a memfd grows");
        let size = usize::try_from(MEMORY_BYTES).expect("small");
        let lent = FileOffset::new(file.try_clone().expect("a descriptor"), 0);
        let memory = MmapRegion::from_file(lent, size).expect("a mapping");
        let interrupts: Vec<OwnedFd> =
            (0..4).map(|_| eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd")).collect();
        let rings = (0..4).map(|_| None).collect();
        let next = MEMORY;
        let mut guest = Self { client, memory, file, next, rings, interrupts, shadow: None, rung: 0 };
        guest.lend();
        let fds: Vec<i32> = guest.interrupts.iter().map(AsRawFd::as_raw_fd).collect();
        // VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER of MSI-X (2).
        guest.client.set_irqs(2, 1 << 2 | 1 << 5, 0, 4, &fds).expect("MSI-X is there");
        guest
    }

    /// A guest whose driver has begun.
    pub fn ready(world: &World) -> Self {
        let mut guest = Self::new(world);
        guest.enable();
        guest
    }

    pub fn lend(&mut self) {
        let fd = self.file.as_raw_fd();
        self.client.dma_map(0, MEMORY, MEMORY_BYTES, fd).expect("memory can be lent");
    }

    /// Room in its memory, on a page of its own.
    pub fn room(&mut self, bytes: u64) -> u64 {
        let at = self.next;
        self.next += bytes.next_multiple_of(4096);
        assert!(self.next <= MEMORY + MEMORY_BYTES, "the guest's memory is full");
        at
    }

    fn place(at: u64) -> usize {
        usize::try_from(at - MEMORY).expect("its own memory")
    }

    pub fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.as_volatile_slice().write_slice(bytes, Self::place(at)).expect("its own memory");
    }

    pub fn get(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.memory.as_volatile_slice().read_slice(&mut bytes, Self::place(at)).expect("its own memory");
        bytes
    }

    pub fn put_list(&self, at: u64, list: &[u64]) {
        let bytes: Vec<u8> = list.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        self.put(at, &bytes);
    }

    fn load(&self, at: u64) -> u32 {
        self.memory.as_volatile_slice().load(Self::place(at), Ordering::SeqCst).expect("its own memory")
    }

    fn store(&self, at: u64, value: u32) {
        self.memory
            .as_volatile_slice()
            .store(value, Self::place(at), Ordering::SeqCst)
            .expect("its own memory");
    }

    pub fn register(&mut self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.client.region_read(BAR0, at, &mut bytes).expect("a register");
        u32::from_le_bytes(bytes)
    }

    pub fn set_register(&mut self, at: u64, value: u32) {
        self.client.region_write(BAR0, at, &value.to_le_bytes()).expect("a register");
    }

    pub fn config(&mut self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.client.region_read(CONFIG, at, &mut bytes).expect("configuration space");
        u32::from_le_bytes(bytes)
    }

    pub fn csts(&mut self) -> u32 {
        self.register(0x1C)
    }

    /// Makes the admin queues and enables the controller.
    pub fn enable(&mut self) {
        self.enable_with(ENABLE);
    }

    /// The same, with more in CC than the entry sizes and EN.
    pub fn enable_with(&mut self, cc: u32) {
        let ring = self.make_ring();
        let size = u32::from(ENTRIES - 1);
        self.set_register(0x24, size << 16 | size);
        self.client.region_write(BAR0, 0x28, &ring.submission.to_le_bytes()).expect("ASQ");
        self.client.region_write(BAR0, 0x30, &ring.completion.to_le_bytes()).expect("ACQ");
        self.rings[0] = Some(ring);
        self.set_register(0x14, cc);
        assert_eq!(self.csts(), 1, "it is ready");
    }

    fn make_ring(&mut self) -> Ring {
        let (submission, completion) = (self.room(4096), self.room(4096));
        self.put(completion, &[0; 4096]);
        Ring { submission, completion, tail: 0, head: 0, phase: true, cid: 0 }
    }

    /// Makes a pair of I/O queues; interrupts come by the vector of its number.
    pub fn make_queue(&mut self, qid: u16) {
        let ring = self.make_ring();
        let size = u32::from(ENTRIES - 1) << 16 | u32::from(qid);
        let at = |sqe: Sqe, at| sqe.with_prps(HostAddress(at), HostAddress(0));
        let vector = u32::from(qid) << 16 | 0b11;
        let completion = Sqe { opcode: 0x05, cdw10: size, cdw11: vector, ..Sqe::default() };
        assert!(self.admin(at(completion, ring.completion)).status.status.is_success());
        let completion_queue = u32::from(qid) << 16 | 1;
        let submission = Sqe { opcode: 0x01, cdw10: size, cdw11: completion_queue, ..Sqe::default() };
        assert!(self.admin(at(submission, ring.submission)).status.status.is_success());
        self.rings[usize::from(qid)] = Some(ring);
    }

    /// Has doorbells in memory from now on.
    pub fn use_shadows(&mut self) {
        let (doorbells, event_indexes) = (self.room(4096), self.room(4096));
        let sqe = Sqe { opcode: DOORBELL_BUFFER_CONFIG, ..Sqe::default() };
        let sqe = sqe.with_prps(HostAddress(doorbells), HostAddress(event_indexes));
        assert!(self.admin(sqe).status.status.is_success());
        self.shadow = Some(Shadow { doorbells, event_indexes });
    }

    fn ring_mut(&mut self, qid: u16) -> &mut Ring {
        self.rings[usize::from(qid)].as_mut().expect("the queue was made")
    }

    /// Puts a command into a queue and rings; its identifier.
    pub fn submit(&mut self, qid: u16, sqe: Sqe) -> u16 {
        let ring = self.ring_mut(qid);
        let (at, cid) = (ring.submission + 64 * u64::from(ring.tail), ring.cid);
        ring.cid = ring.cid.wrapping_add(1);
        let old = ring.tail;
        ring.tail = (ring.tail + 1) % ENTRIES;
        let new = ring.tail;
        self.put(at, &sqe.with_cid(cid).encode());
        self.ring(u64::from(qid) * 8, old, new);
        cid
    }

    /// A doorbell, as Linux rings it (`nvme_dbbuf_update_and_check_event`).
    fn ring(&mut self, offset: u64, old: u16, new: u16) {
        if let (Some(shadow), true) = (&self.shadow, offset >= 8) {
            self.store(shadow.doorbells + offset, new.into());
            let event = self.load(shadow.event_indexes + offset).to_le_bytes();
            let event = u16::from_le_bytes([event[0], event[1]]);
            if new.wrapping_sub(event).wrapping_sub(1) >= new.wrapping_sub(old) {
                return;
            }
        }
        self.rung += u32::from(offset >= 8);
        self.set_register(0x1000 + offset, new.into());
    }

    /// The next completion of a queue, if it has come.
    pub fn poll(&mut self, qid: u16) -> Option<Cqe> {
        let ring = self.ring_mut(qid);
        let (at, phase, old) = (ring.completion + 16 * u64::from(ring.head), ring.phase, ring.head);
        // The dword of the phase first, the rest behind it.
        if (self.load(at + 12) >> 16 & 1 == 1) != phase {
            return None;
        }
        let bytes = self.get(at, 16);
        let ring = self.ring_mut(qid);
        ring.head = (ring.head + 1) % ENTRIES;
        ring.phase ^= ring.head == 0;
        let new = ring.head;
        self.ring(u64::from(qid) * 8 + 4, old, new);
        Some(Cqe::decode(bytes.as_slice().try_into().expect("16 bytes")))
    }

    /// The next completion of a queue.
    pub fn wait(&mut self, qid: u16) -> Cqe {
        let begun = Instant::now();
        loop {
            if let Some(completion) = self.poll(qid) {
                return completion;
            }
            assert!(begun.elapsed() < PATIENCE, "nothing came on queue {qid}");
            std::thread::yield_now();
        }
    }

    /// Waits until a register has a value.
    pub fn wait_register(&mut self, at: u64, value: u32) {
        let begun = Instant::now();
        while self.register(at) != value {
            assert!(begun.elapsed() < PATIENCE, "register {at:#x} is {:#x}", self.register(at));
        }
    }

    /// A command and its completion.
    pub fn carry_out(&mut self, qid: u16, sqe: Sqe) -> Cqe {
        let cid = self.submit(qid, sqe);
        let completion = self.wait(qid);
        assert_eq!((completion.cid, completion.sqid), (cid, qid), "the answer to what was asked");
        completion
    }

    pub fn admin(&mut self, sqe: Sqe) -> Cqe {
        self.carry_out(0, sqe)
    }

    /// An admin command that returns so many bytes.
    pub fn ask(&mut self, sqe: Sqe, count: usize) -> Vec<u8> {
        let at = self.room(u64::try_from(count).expect("small"));
        let completion = self.admin(sqe.with_prps(HostAddress(at), HostAddress(at + 4096)));
        assert!(completion.status.status.is_success(), "{sqe:?}: {}", completion.status);
        self.get(at, count)
    }

    /// PRPs of whole pages from `at` on.
    pub fn with_pages(&mut self, sqe: Sqe, at: u64, bytes: u64) -> Sqe {
        let pages: Vec<u64> = (1..bytes.div_ceil(4096)).map(|page| at + page * 4096).collect();
        let second = match pages.as_slice() {
            [] => 0,
            [page] => *page,
            pages => {
                let list = self.room(4096);
                self.put_list(list, pages);
                list
            }
        };
        sqe.with_prps(HostAddress(at), HostAddress(second))
    }

    /// A command with so many bytes for the drive.
    pub fn write(&mut self, qid: u16, sqe: Sqe, bytes: &[u8]) -> Cqe {
        let count = u64::try_from(bytes.len()).expect("small");
        let at = self.room(count);
        self.put(at, bytes);
        let sqe = self.with_pages(sqe, at, count);
        self.carry_out(qid, sqe)
    }

    /// A command that brings so many bytes.
    pub fn read(&mut self, qid: u16, sqe: Sqe, count: usize) -> (Vec<u8>, Cqe) {
        let bytes = u64::try_from(count).expect("small");
        let at = self.room(bytes);
        let sqe = self.with_pages(sqe, at, bytes);
        let completion = self.carry_out(qid, sqe);
        (self.get(at, count), completion)
    }

    /// How often a vector was signalled since this was asked last.
    pub fn interrupts(&self, vector: usize) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&self.interrupts[vector], &mut count) {
            Ok(_) => u64::from_ne_bytes(count),
            Err(_) => 0,
        }
    }

    /// The next client of the socket is another guest: this one is gone in the middle of whatever it did.
    pub fn vanish(self) {}
}
