//! A store in memory and clients without sockets, for tests and fuzzers.
//!
//! Requests take effect when they are taken, in their order; what came of them is told in any order.

use super::database::{Database, Settings};
use super::session::{Session, SharedDatabase};
use super::store::{Outcome, StoreLimits, StoreOp, StoreRequest, Token};
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::protocol::{Protocol, ProtocolError};
use ocssd_base::Prng;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::rc::Rc;

/// Keys and values.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// All of them.
    pub pairs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of keys and values there is room for.
    pub capacity: usize,
    /// Requests about this key fail.
    pub bad: Option<Vec<u8>>,
    /// So many requests looked at a key before a change of it was told to be durable.
    pub undurable_reads: u32,
    /// Keys of changes that were not told to be durable yet.
    undurable: Vec<(Token, Vec<Vec<u8>>)>,
    open: Vec<(Token, Outcome)>,
}

impl MemoryStore {
    /// Counts a look at what a power cut may take away yet, and notes what a change names.
    fn look_for_undurable(&mut self, token: Token, op: &StoreOp) {
        match op {
            StoreOp::Retrieve { key, .. } => {
                let is_undurable = self.undurable.iter().any(|(_, keys)| keys.contains(key));
                self.undurable_reads += u32::from(is_undurable);
            }
            StoreOp::Change(changes) => {
                let keys = changes.iter().map(|(key, _)| key.clone()).collect();
                self.undurable.push((token, keys));
            }
            StoreOp::List { .. } | StoreOp::Flush => {}
        }
    }

    /// Carries a request out.
    fn carry_out(&mut self, op: StoreOp) -> Outcome {
        match op {
            StoreOp::Retrieve { key, .. } if self.bad.as_ref() == Some(&key) => {
                Outcome::Failed("the value cannot be read".to_owned())
            }
            StoreOp::Retrieve { key, offset, bytes } => match self.pairs.get(&key) {
                None => Outcome::Absent,
                Some(value) => {
                    let rest = &value[offset.min(value.len())..];
                    Outcome::Value { bytes: rest[..bytes.min(rest.len())].to_vec(), total: value.len() }
                }
            },
            StoreOp::Change(changes) => {
                assert!(!changes.is_empty(), "an empty change was asked");
                let mut after = self.pairs.clone();
                for (key, value) in changes {
                    match value {
                        Some(stored) => after.insert(key, stored.to_vec()),
                        None => after.remove(&key),
                    };
                }
                let bytes = |pairs: &BTreeMap<Vec<u8>, Vec<u8>>| -> usize {
                    pairs.iter().map(|(key, value)| key.len() + value.len()).sum()
                };
                if bytes(&after) > self.capacity && bytes(&after) > bytes(&self.pairs) {
                    return Outcome::NoRoom;
                }
                self.pairs = after;
                Outcome::Done
            }
            StoreOp::List { from, mut bytes } => {
                let mut keys = Vec::new();
                for key in self.pairs.range(from..).map(|(key, _)| key) {
                    if key.len() + 4 > bytes {
                        break;
                    }
                    bytes -= key.len() + 4;
                    keys.push(key.clone());
                }
                Outcome::Keys(keys)
            }
            StoreOp::Flush => Outcome::Done,
        }
    }
}

/// A database, its store, and clients.
#[derive(Debug)]
pub struct World {
    /// The database.
    pub database: SharedDatabase,
    /// The store.
    pub store: MemoryStore,
    /// What connections need and do not use.
    pub dispatcher: Dispatcher,
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// A client that takes nothing of what it is sent.
    pub deaf: Option<usize>,
    random: Prng,
    sessions: Vec<Session>,
    /// What each client was sent.
    sent: Vec<Vec<u8>>,
    /// What each client has sent that was not taken.
    rest: Vec<Vec<u8>>,
}

impl World {
    /// A world with so many clients.
    #[must_use]
    pub fn new(clients: u32, memory_bytes: u64, seed: u64) -> Self {
        Self::with(clients, memory_bytes, seed, true)
    }

    /// The same, whose changes are durable when they are answered, or a second later.
    #[must_use]
    pub fn with(clients: u32, memory_bytes: u64, seed: u64, is_durable_at_reply: bool) -> Self {
        let limits = StoreLimits { key_bytes_max: 255, value_bytes_max: 8 << 20, changes_max: 8192 };
        let settings = Settings { limits, memory_bytes, is_read_only: false, is_durable_at_reply };
        let now_ms = 1_700_000_000_000;
        let database = Rc::new(RefCell::new(Database::new(settings, now_ms, seed)));
        let (dispatcher, _) = MemoryDisks::new(&[("", 8)], [1, 1, 1]);
        let sessions: Vec<Session> =
            (0..clients).map(|number| Session::new(Rc::clone(&database), number, 0)).collect();
        let (sent, rest) = (vec![Vec::new(); sessions.len()], vec![Vec::new(); sessions.len()]);
        let store = MemoryStore { capacity: 64 << 20, ..MemoryStore::default() };
        Self {
            database,
            store,
            dispatcher,
            now_ms,
            deaf: None,
            random: Prng::new(seed),
            sessions,
            sent,
            rest,
        }
    }

    /// A client sends bytes.
    ///
    /// # Errors
    /// If it is dropped for them.
    pub fn send(&mut self, client: usize, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.rest[client].extend_from_slice(bytes);
        self.offer(client).map(drop)
    }

    /// Gives a session what it did not take. True if it took something.
    fn offer(&mut self, client: usize) -> Result<bool, ProtocolError> {
        let mut any = false;
        loop {
            let most = self.sessions[client].text_wanted().min(self.rest[client].len());
            let bytes = self.rest[client][..most].to_vec();
            let taken = self.sessions[client].on_bytes(&bytes, &mut self.dispatcher)?;
            if taken == 0 {
                return Ok(any);
            }
            any = true;
            self.rest[client].drain(..taken);
        }
    }

    /// The store takes what it is asked, in order.
    fn take_requests(&mut self) {
        let mut database = self.database.borrow_mut();
        // Changes that take a while may be carried out at any time, so also after those that came later.
        let is_later = self.random.below(3) == 0;
        loop {
            let plain = database.poll_request(true).map(|(request, _)| request);
            let next = plain.or_else(|| if is_later { None } else { database.poll_long_change() });
            let Some(StoreRequest { token, op }) = next else { break };
            self.store.look_for_undurable(token, &op);
            let outcome = self.store.carry_out(op);
            self.store.open.push((token, outcome));
        }
    }

    /// One step of everything, in an order of chance. True if something happened.
    ///
    /// # Panics
    /// If a client is dropped.
    pub fn step(&mut self) -> bool {
        let mut any = self.database.borrow_mut().go_on();
        self.take_requests();
        any |= self.database.borrow().has_long_change();
        let open = u64::try_from(self.store.open.len()).expect("few");
        if open > 0 {
            let chosen = usize::try_from(self.random.below(open)).expect("few");
            let (token, outcome) = self.store.open.swap_remove(chosen);
            self.store.undurable.retain(|(of, _)| *of != token);
            self.database.borrow_mut().on_outcome(token, outcome);
            any = true;
        }
        loop {
            let called = self.database.borrow_mut().clients().poll_call();
            let Some((client, _)) = called else { break };
            let client = usize::try_from(client).expect("few");
            self.sessions[client].judge(&mut self.dispatcher).expect("nobody judges hard here");
        }
        for client in 0..self.sessions.len() {
            any |= self.offer(client).is_ok_and(|any| any);
            if self.deaf != Some(client) {
                self.receive(client);
            }
            self.sessions[client].go_on(&mut self.dispatcher);
        }
        while self.dispatcher.poll_call().is_some() {
            any = true;
        }
        any
    }

    /// The next request to the store, which [`Self::carry_out`] is to be given.
    pub fn poll(&mut self) -> Option<StoreRequest> {
        self.database.borrow_mut().poll_request(true).map(|(request, _)| request)
    }

    /// The store carries out a request, and tells what came of it.
    pub fn carry_out(&mut self, request: StoreRequest) {
        let outcome = self.store.carry_out(request.op);
        self.database.borrow_mut().on_outcome(request.token, outcome);
    }

    /// What a client is sent now, without another step.
    ///
    /// # Panics
    /// If it is dropped.
    pub fn answered(&mut self, client: usize) -> Vec<u8> {
        self.sessions[client].judge(&mut self.dispatcher).expect("nobody judges hard here");
        self.receive(client);
        self.take_sent(client)
    }

    /// A client takes what it is sent.
    pub fn receive(&mut self, client: usize) {
        let session = &mut self.sessions[client];
        while !session.send_queue().is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let used = session.send_queue().slices(&self.dispatcher.buffers, &mut slices);
            let bytes: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.to_vec()).collect();
            session.send_queue().sent(bytes.len(), &mut self.dispatcher.pool);
            self.sent[client].extend_from_slice(&bytes);
        }
    }

    /// Everything happens that there is to happen.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// It is so much later.
    pub fn pass(&mut self, milliseconds: i64) {
        self.now_ms += milliseconds;
        self.database.borrow_mut().tick(self.now_ms);
        self.database.borrow_mut().survey();
        self.settle();
    }

    /// What a client was sent since this was asked last.
    pub fn take_sent(&mut self, client: usize) -> Vec<u8> {
        std::mem::take(&mut self.sent[client])
    }

    /// Bytes that a client sent and its session has not taken.
    #[must_use]
    pub fn untaken(&self, client: usize) -> usize {
        self.rest[client].len()
    }

    /// A client.
    #[must_use]
    pub fn session(&mut self, client: usize) -> &mut Session {
        &mut self.sessions[client]
    }

    /// All clients go; nothing they held is kept.
    ///
    /// # Panics
    /// If something is.
    pub fn finish(mut self) {
        for session in &mut self.sessions {
            session.release(&mut self.dispatcher);
        }
        self.sessions.clear();
        self.sent.clear();
        self.rest.clear();
        loop {
            let any = self.database.borrow_mut().go_on();
            self.take_requests();
            match self.store.open.pop() {
                Some((token, outcome)) => self.database.borrow_mut().on_outcome(token, outcome),
                None if any || self.database.borrow().has_long_change() => {}
                None => break,
            }
        }
        let database = self.database.borrow();
        assert!(database.is_idle(), "a command never ended");
        assert_eq!(database.budget().used(), 0, "memory was not given back");
    }
}

/// A request as clients send it.
#[must_use]
pub fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
