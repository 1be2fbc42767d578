//! A frontend of vhost-user that sends exactly what it is told: messages, descriptors, and rings in memory it shares.

use ocssd_export::reactor::Endpoint;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::fs::File;
use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// Why things in these tests do not fail.
const SOUND: &str = "the server takes it";

/// Requests of frontends (vhost-user, "Front-end message types").
pub mod request {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const GET_INFLIGHT_FD: u32 = 31;
    pub const SET_INFLIGHT_FD: u32 = 32;
}

/// Bytes of memory that is shared.
pub const MEMORY_BYTES: u64 = 1 << 20;

/// Where the ring's parts lie, and where they are said to lie by the frontend's own addresses.
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const USER: u64 = 0x7000_0000_0000;

/// A frontend.
pub struct RawFrontend {
    pub stream: UnixStream,
    /// What is shared.
    pub memory: File,
    kick: OwnedFd,
    offered: u16,
}

impl RawFrontend {
    pub fn connect(endpoint: &Endpoint) -> Self {
        let Endpoint::Unix(path) = endpoint else { panic!("vhost-user is spoken over unix sockets") };
        let stream = UnixStream::connect(path).expect(SOUND);
        let memory = rustix::fs::memfd_create("guest", rustix::fs::MemfdFlags::ALLOW_SEALING).expect(SOUND);
        let memory = File::from(memory);
        memory.set_len(MEMORY_BYTES).expect(SOUND);
        let kick = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).expect(SOUND);
        Self { stream, memory, kick, offered: 0 }
    }

    /// Goes, and connects once more with all that it keeps.
    pub fn reconnect(&mut self, endpoint: &Endpoint) {
        // It must be gone before it comes, or it is a second one.
        self.stream.shutdown(std::net::Shutdown::Both).expect(SOUND);
        let Endpoint::Unix(path) = endpoint else { panic!("vhost-user is spoken over unix sockets") };
        self.stream = UnixStream::connect(path).expect(SOUND);
    }

    /// Sends a message; whether it was taken shows later.
    pub fn send(&self, code: u32, body: &[u8], files: &[BorrowedFd<'_>]) {
        let length = u32::try_from(body.len()).expect(SOUND);
        let header = [code.to_le_bytes(), 1_u32.to_le_bytes(), length.to_le_bytes()].concat();
        let mut room = [std::mem::MaybeUninit::uninit(); 1024];
        let mut ancillary = SendAncillaryBuffer::new(&mut room);
        if !files.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
        }
        let slices = [IoSlice::new(&header), IoSlice::new(body)];
        let sent = rustix::net::sendmsg(&self.stream, &slices, &mut ancillary, SendFlags::NOSIGNAL);
        // Who was dropped already is not told so here.
        let _ = sent;
    }

    /// Sends words of 64 bits.
    pub fn send_words(&self, code: u32, words: &[u64], files: &[BorrowedFd<'_>]) {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.send(code, &body, files);
    }

    /// The body of the next answer.
    pub fn answer(&mut self) -> Vec<u8> {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).expect(SOUND);
        let length = u32::from_le_bytes(header[8..].try_into().expect("four bytes"));
        let mut body = vec![0; usize::try_from(length).expect(SOUND)];
        self.stream.read_exact(&mut body).expect(SOUND);
        body
    }

    /// The server closes the connection, and sends nothing before.
    pub fn is_dropped(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Says hello, and shares memory.
    pub fn greet(&mut self) {
        self.send(request::SET_OWNER, &[], &[]);
        self.send(request::GET_FEATURES, &[], &[]);
        let features = u64::from_le_bytes(self.answer()[..].try_into().expect("eight bytes"));
        // Not VIRTIO_F_EVENT_IDX.
        self.send_words(request::SET_FEATURES, &[features & !(1 << 29)], &[]);
        self.send_words(request::SET_MEM_TABLE, &[1, 0, MEMORY_BYTES, USER, 0], &[self.memory.as_fd()]);
    }

    /// Begins ring 0, of 16 descriptors.
    pub fn begin_ring(&self) {
        self.begin_ring_at(0);
    }

    /// The same, where so many chains were taken before.
    pub fn begin_ring_at(&self, base: u16) {
        self.send_words(request::SET_VRING_NUM, &[16 << 32], &[]);
        self.send_words(request::SET_VRING_BASE, &[u64::from(base) << 32], &[]);
        self.send_words(request::SET_VRING_ADDR, &[0, USER, USER + USED, USER + AVAILABLE, 0], &[]);
        self.send_words(request::SET_VRING_KICK, &[0], &[self.kick.as_fd()]);
        self.send_words(request::SET_VRING_ENABLE, &[1 << 32], &[]);
    }

    /// Writes a descriptor.
    pub fn descriptor(&self, index: u64, address: u64, bytes: u32, flags: u16, next: u16) {
        let text =
            [&address.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()]
                .concat();
        self.memory.write_all_at(&text, 16 * index).expect(SOUND);
    }

    /// Offers a chain, and kicks.
    pub fn offer(&mut self, head: u16) {
        let place = AVAILABLE + 4 + 2 * u64::from(self.offered % 16);
        self.memory.write_all_at(&head.to_le_bytes(), place).expect(SOUND);
        self.claim(self.offered.wrapping_add(1));
    }

    /// Says that so many chains were offered, and kicks.
    pub fn claim(&mut self, index: u16) {
        self.offered = index;
        self.memory.write_all_at(&index.to_le_bytes(), AVAILABLE + 2).expect(SOUND);
        self.kick();
    }

    pub fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).expect(SOUND);
    }

    /// Offers a read of the first block to 0x4000.
    pub fn ask_read(&mut self) {
        self.memory.write_all_at(&[0; 16], 0x3000).expect(SOUND);
        self.descriptor(0, 0x3000, 16, 1, 1);
        self.descriptor(1, 0x4000, 513, 2, 0);
        self.offer(0);
    }

    /// Chains that came back.
    pub fn came_back(&self) -> u16 {
        let mut index = [0; 2];
        self.memory.read_exact_at(&mut index, USED + 2).expect(SOUND);
        u16::from_le_bytes(index)
    }
}
