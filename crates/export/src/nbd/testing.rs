//! What unit tests of this crate share: desks, and a client that talks to a session over memory.

use super::handshake::TlsPolicy;
use super::session::Session;
use super::wire::{FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, RequestHeader, option};
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::protocol::{Protocol, ProtocolError};
use ocssd_lightnvm::{Buffers, Payload, PayloadFormat};
use std::io::IoSlice;

/// An empty pool of memory with sectors of 4 KiB.
pub fn buffers() -> Buffers {
    Buffers::new(PayloadFormat {
        payload: Payload::Bytes,
        data_bytes: 4096,
        sector_bytes: 4096,
        oob_bytes: 0,
    })
}

/// A dispatcher with these exports and few pieces.
pub fn dispatcher(exports: &[(&str, u64)]) -> Dispatcher {
    MemoryDisks::new(exports, [4, 4, 4]).0
}

/// A session with its dispatcher and disks.
pub struct Talk {
    pub session: Session,
    pub dispatcher: Dispatcher,
    pub disks: MemoryDisks,
}

impl Talk {
    pub fn new(exports: &[(&str, u64)]) -> Self {
        Self::with(exports, [4, 4, 4], TlsPolicy::None)
    }

    pub fn with(exports: &[(&str, u64)], pieces: [u32; 3], tls: TlsPolicy) -> Self {
        let (dispatcher, disks) = MemoryDisks::new(exports, pieces);
        Self { session: Session::new(tls, 0, 0), dispatcher, disks }
    }

    /// Sends bytes, lets everything happen, and returns what the server sent. Odd numbers of bytes are offered at a time,
    /// and payload goes where the session wants it.
    pub fn say(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let (mut at, mut answer) = (0, Vec::new());
        loop {
            let mut moved = self.hand_over(&bytes[at..])?;
            at += moved;
            self.session.go_on(&mut self.dispatcher);
            self.disks.take(&mut self.dispatcher);
            while self.disks.carry_out(0, &mut self.dispatcher) {
                moved += 1;
            }
            while let Some(done) = self.dispatcher.poll_done() {
                self.session.on_done(done, &mut self.dispatcher);
                moved += 1;
            }
            let sent = self.drain();
            if moved == 0 && sent.is_empty() {
                assert!(at == bytes.len() || self.session.text_wanted() == 0, "the session is stuck");
                return Ok(answer);
            }
            answer.extend(sent);
        }
    }

    fn hand_over(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        if let Some(space) = self.session.payload_space() {
            let count = space.count.min(bytes.len()).min(777);
            self.dispatcher
                .buffers
                .bytes_mut(space.buffer, space.first, count)
                .copy_from_slice(&bytes[..count]);
            if count > 0 {
                self.session.on_payload(count, &mut self.dispatcher);
            }
            return Ok(count);
        }
        self.session.on_bytes(&bytes[..bytes.len().min(301)], &mut self.dispatcher)
    }

    /// Everything in the send queue.
    pub fn drain(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !self.session.send_queue().is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let used = self.session.send_queue().slices(&self.dispatcher.buffers, &mut slices);
            let bytes: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
            self.session.send_queue().sent(bytes.len(), &mut self.dispatcher.pool);
            all.extend(bytes);
        }
        all
    }

    /// The last option of a handshake.
    pub fn enter_rest(&mut self, export: &str) {
        self.say(&option_bytes(option::GO, &go_data(export))).expect("a sound handshake");
    }

    /// Goes through the handshake to an export; with structured replies and `base:allocation` if asked.
    pub fn enter(&mut self, export: &str, structured: bool) {
        let mut hello = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes().to_vec();
        if structured {
            hello.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
            hello.extend(option_bytes(option::SET_META_CONTEXT, &context_data(export, &["base:allocation"])));
        }
        hello.extend(option_bytes(option::GO, &go_data(export)));
        self.say(&hello).expect("a sound handshake");
    }
}

/// An option as a client sends it.
pub fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [&IHAVEOPT.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// The data of GO and INFO.
pub fn go_data(export: &str) -> Vec<u8> {
    let length = u32::try_from(export.len()).unwrap();
    [&length.to_be_bytes()[..], export.as_bytes(), &[0, 1, 0, 3]].concat()
}

/// The data of the options about contexts.
pub fn context_data(export: &str, queries: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
    let mut data = text(export);
    data.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    queries.iter().for_each(|query| data.extend(text(query)));
    data
}

/// A request as a client sends it, without payload.
pub fn request(command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    RequestHeader { flags, command, cookie, offset, length }.encode().to_vec()
}
