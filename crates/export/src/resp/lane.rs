//! From the database to a key-value target and back: store requests as jobs, and the ends of jobs as outcomes.
//!
//! It is a transport without sockets of its own, since what it asks goes on when the client that wanted it is gone. Requests are
//! given in their order, also while one waits for memory: the database counts on it. Changes that take a while to copy are copied
//! some in each turn, beside that order. What the database and such copies take of the processor counts as what targets are given
//! between two looks at sockets, so that no client waits for all of it.

use super::database::{COPY_BYTES_OF_TURN, Database, Settings};
use super::packing::{Packed, Packer, Packing, Unpacked, VALUE_BYTES_MAX};
use super::session::SharedDatabase;
use super::store::{Outcome, StoreLimits, StoreOp, StoreRequest, Token};
use crate::dispatcher::Dispatcher;
use crate::exports::ExportId;
use crate::job::{Answer, Done, Job, JobOwner, Work};
use crate::reactor::{Limits, Ready, Sockets, Transport};
use crate::shares::ClientId;
use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::key_value::{KvAnswer, KvLimits, KvOp, KvRefusal, KvReply, decode_keys};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Requests at the target at once (chosen: what a client alone may have of all jobs).
const REQUESTS_MAX: u32 = 512;

/// A change that need not be durable at once is after so long (Redis: `appendfsync everysec`).
const FLUSH_EVERY: Nanos = Nanos::from_secs(1);

/// Most changes of one request (chosen: what fits a list in one piece of memory).
const CHANGES_MAX: u32 = 4096;

/// What a turn of a long command counts, in bytes that targets are given (chosen: eight in a round, some hundred microseconds).
const TURN_BYTES: u64 = 128 << 10;

/// Steps of long commands that are given in a round (chosen: what comes then waits behind these, some hundred microseconds, and not
/// behind all that may be at the target).
const STEPS_OF_ROUND: u32 = 32;

/// How a database is served.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The key-value export.
    pub export: ExportId,
    /// What its target takes.
    pub limits: KvLimits,
    /// Nothing may be changed.
    pub is_read_only: bool,
    /// When changes are durable.
    pub durability: Durability,
    /// Memory for requests and answers, in bytes.
    pub memory_bytes: u64,
    /// What time it was: milliseconds since 1970,
    pub epoch_ms: i64,
    /// at this time of the server's clock.
    pub at: Nanos,
}

impl Setup {
    /// The database, for sessions and the lane.
    ///
    /// # Errors
    /// A sentence, if the target takes too little.
    pub fn database(&self) -> Result<SharedDatabase, String> {
        let index = |value: u32| usize::try_from(value).expect("32 bits fit an index");
        let limits = StoreLimits {
            key_bytes_max: index(self.limits.key_bytes_max),
            value_bytes_max: index(self.limits.value_bytes_max).min(VALUE_BYTES_MAX),
            changes_max: index(self.limits.batch_entries_max.min(CHANGES_MAX)),
        };
        if limits.changes_max < 2 || limits.value_bytes_max < 512 {
            return Err(format!(
                "Redis' protocol needs a target with batches of 2 entries and values of 512 bytes; this one has {} and {}",
                limits.changes_max, limits.value_bytes_max
            ));
        }
        let settings = Settings {
            limits,
            memory_bytes: self.memory_bytes,
            is_read_only: self.is_read_only,
            is_durable_at_reply: self.durability == Durability::AtReply,
        };
        let database = Database::new(settings, self.epoch_ms, self.epoch_ms.unsigned_abs());
        Ok(Rc::new(RefCell::new(database)))
    }

    /// Milliseconds since 1970.
    fn milliseconds(&self, now: Nanos) -> i64 {
        let passed = now.saturating_since(self.at).0 / 1_000_000;
        self.epoch_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// A request at the target.
#[derive(Debug)]
struct Open {
    token: Token,
    is_list: bool,
}

/// A change that takes a while to copy.
#[derive(Debug)]
struct Copying {
    request: StoreRequest,
    /// Where it is copied to, once there is room.
    packing: Option<Packing>,
}

/// The way to the target.
#[derive(Debug)]
pub struct Lane {
    database: SharedDatabase,
    setup: Setup,
    owner: u32,
    open: Slab<Open>,
    /// The next request, which waits for room.
    waiting: Option<StoreRequest>,
    /// The round in which steps were given last, and how many.
    steps: (u64, u32),
    copying: Option<Copying>,
    /// What is copied waits for room.
    copying_waits: bool,
    flushed: Nanos,
}

impl Lane {
    /// A lane whose jobs have `owner` as their owner's connection.
    #[must_use]
    pub fn new(database: SharedDatabase, setup: Setup, owner: u32) -> Self {
        Self {
            database,
            setup,
            owner,
            open: Slab::new(REQUESTS_MAX),
            waiting: None,
            steps: (0, 0),
            copying: None,
            copying_waits: false,
            flushed: setup.at,
        }
    }

    /// Gives requests to the target until one must wait. True if there was any.
    pub(super) fn give(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let mut any = false;
        while let Some(request) = self.next_request(dispatcher.rounds()) {
            let client = ClientId(self.owner);
            if self.open.is_full() || !dispatcher.has_room(client) {
                self.waiting = Some(request);
                break;
            }
            let mut packer = Packer { dispatcher, client, durability: self.setup.durability };
            match packer.pack(&request.op) {
                Ok(packed) => self.give_job(&request, packed, dispatcher),
                Err(Unpacked::TooLarge(sentence)) => {
                    self.database.borrow_mut().on_outcome(request.token, Outcome::Failed(sentence));
                }
                Err(Unpacked::NoRoom) => {
                    self.waiting = Some(request);
                    break;
                }
            }
            any = true;
        }
        any
    }

    /// Gives long commands and changes a turn. True if there was any.
    pub(super) fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let mut any = !dispatcher.is_round_over() && self.database.borrow_mut().go_on();
        if any {
            dispatcher.charge(TURN_BYTES);
        }
        if self.copying.is_none() {
            let request = self.database.borrow_mut().poll_long_change();
            self.copying = request.map(|request| Copying { request, packing: None });
        }
        if !dispatcher.is_round_over()
            && let Some(copying) = self.copying.take()
        {
            any |= self.copy(copying, dispatcher);
        }
        any
    }

    /// Goes on with a long change. True if it got further.
    fn copy(&mut self, copying: Copying, dispatcher: &mut Dispatcher) -> bool {
        let Copying { request, packing } = copying;
        let StoreOp::Change(changes) = &request.op else { unreachable!("only changes are copied") };
        let client = ClientId(self.owner);
        let mut packer = Packer { dispatcher, client, durability: self.setup.durability };
        let laid_out = packing.map_or_else(|| packer.lay_out(changes), Ok);
        self.copying_waits = false;
        let mut packing = match laid_out {
            Ok(packing) => packing,
            Err(Unpacked::NoRoom) => {
                self.copying_waits = true;
                self.copying = Some(Copying { request, packing: None });
                return false;
            }
            Err(Unpacked::TooLarge(sentence)) => {
                self.database.borrow_mut().on_outcome(request.token, Outcome::Failed(sentence));
                return true;
            }
        };
        let copied = packing.copy(changes, &mut packer.dispatcher.buffers, COPY_BYTES_OF_TURN);
        packer.dispatcher.charge(u64::try_from(copied).expect("a length fits 64 bits"));
        let is_copied = packing.is_copied(changes);
        self.copying_waits = is_copied && (self.open.is_full() || !packer.dispatcher.has_room(client));
        if !is_copied || self.copying_waits {
            self.copying = Some(Copying { request, packing: Some(packing) });
            return copied > 0;
        }
        let packed = packing.finish(changes, &mut packer);
        self.give_job(&request, packed, dispatcher);
        true
    }

    fn next_request(&mut self, round: u64) -> Option<StoreRequest> {
        if let Some(request) = self.waiting.take() {
            return Some(request);
        }
        if self.steps.0 != round {
            self.steps = (round, 0);
        }
        let (request, is_step) = self.database.borrow_mut().poll_request(self.steps.1 < STEPS_OF_ROUND)?;
        self.steps.1 += u32::from(is_step);
        Some(request)
    }

    fn give_job(&mut self, request: &StoreRequest, packed: Packed, dispatcher: &mut Dispatcher) {
        let open = Open { token: request.token, is_list: matches!(request.op, StoreOp::List { .. }) };
        let key = self.open.insert(open).expect("it was not full");
        let mut pieces = packed.pieces.into_iter();
        dispatcher.give(Job {
            owner: JobOwner { connection: self.owner, generation: 0, request: key.0 },
            export: self.setup.export,
            work: packed.work,
            block: 0,
            count: 0,
            piece: pieces.next(),
            beside: pieces.collect(),
        });
    }

    /// What has come of a request.
    fn outcome(open: &Open, reply: &KvReply, done: &Done, dispatcher: &Dispatcher) -> Outcome {
        if !reply.status.is_success() {
            return match reply.refusal {
                Some(KvRefusal::NoSuchKey) => Outcome::Absent,
                Some(KvRefusal::NoRoom) => Outcome::NoRoom,
                Some(refusal) => Outcome::Failed(refusal.to_string()),
                None => Outcome::Failed(format!("the drive answered: {}", reply.status.name())),
            };
        }
        let bytes = |count: usize| {
            let piece = done.job.piece.as_ref().expect("what reads has a piece");
            dispatcher.buffers.bytes(piece.buffer, 0, count)
        };
        let index = |value: u32| usize::try_from(value).expect("32 bits fit an index");
        match (reply.answer, done.job.work) {
            (KvAnswer::Value { bytes: total }, Work::KeyValue(KvOp::Retrieve { offset, into, .. })) => {
                let count = total.saturating_sub(offset).min(into.bytes());
                Outcome::Value { bytes: bytes(index(count)).to_vec(), total: index(total) }
            }
            (KvAnswer::Listed { bytes: count, .. }, _) => {
                assert!(open.is_list, "only a list lists");
                match decode_keys(bytes(index(count))) {
                    Some(keys) => Outcome::Keys(keys),
                    None => Outcome::Failed("the target's list of keys is cut short".to_owned()),
                }
            }
            _ => Outcome::Done,
        }
    }
}

impl Transport for Lane {
    fn begin(&mut self, _: &Sockets<'_>) -> io::Result<()> {
        Ok(())
    }

    fn on_ready(&mut self, _: u32, _: Ready, _: &mut Dispatcher, _: &Sockets<'_>) {
        unreachable!("a lane has no socket");
    }

    fn take(&mut self, dispatcher: &mut Dispatcher, _: &Sockets<'_>) -> bool {
        let mut database = self.database.borrow_mut();
        database.tick(self.setup.milliseconds(dispatcher.now));
        database.pass(dispatcher.now);
        drop(database);
        // What is short comes first, also in a round that long commands use up.
        self.give(dispatcher) | self.go_on(dispatcher)
    }

    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        let open = self.open.remove(SlabKey(done.job.owner.request));
        let outcome = match &done.answer {
            Answer::KeyValue(reply) => Self::outcome(&open, reply, &done, dispatcher),
            _ if done.status.is_success() => Outcome::Done,
            _ => Outcome::Failed(format!("the drive answered: {}", done.status.name())),
        };
        done.into_pieces().for_each(|piece| dispatcher.pool.give_back(piece));
        self.database.borrow_mut().on_outcome(open.token, outcome);
    }

    fn tell(&mut self, dispatcher: &mut Dispatcher) {
        let mut database = self.database.borrow_mut();
        while let Some((connection, generation)) = database.clients().poll_call() {
            dispatcher.call(connection, generation);
        }
    }

    fn before_sleep(&mut self, _: &mut Dispatcher) -> bool {
        let mut database = self.database.borrow_mut();
        // What waits for room is given when there is some.
        self.waiting.is_none() && database.has_request() || database.clients().has_call()
    }

    fn is_eager(&self, _: Nanos) -> bool {
        let database = self.database.borrow();
        let copies = self.copying.is_some() || database.has_long_change();
        database.has_turns() || copies && !self.copying_waits
    }

    fn has_client(&self) -> bool {
        // Keys end also when nobody is there.
        true
    }

    fn waits_for_room(&self) -> bool {
        self.waiting.is_some() || self.copying_waits
    }

    fn watch(&mut self, _: &Limits, dispatcher: &mut Dispatcher, _: &Sockets<'_>) {
        let mut database = self.database.borrow_mut();
        database.tick(self.setup.milliseconds(dispatcher.now));
        database.survey();
        if self.setup.durability == Durability::AtFlush
            && dispatcher.now.saturating_since(self.flushed) >= FLUSH_EVERY
        {
            self.flushed = dispatcher.now;
            database.flush();
        }
    }

    fn stop(&mut self, _: bool, _: &mut Dispatcher, _: &Sockets<'_>) -> bool {
        self.database.borrow().is_idle()
    }

    fn poll_sentence(&mut self) -> Option<String> {
        None
    }
}
