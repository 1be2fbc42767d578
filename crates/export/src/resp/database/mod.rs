//! Keys and values of all clients: it carries commands out, several at a time, as if one after the other.
//!
//! A command comes in as a [`Order`] and becomes a task: it waits for its keys (`locks`), reads them, runs on what it read
//! (`data`), and stores what changed as one batch; its answer goes to its client's mail once that is stored. Commands over all
//! keys (`walk`) look at them piece by piece. A plain state machine: requests to the store come out by
//! [`Database::poll_request`], and time comes in by [`Database::tick`]. Deliberately not here: connections, and memory that
//! payload lies in.

mod clients;
mod data;
mod ends;
mod line;
mod long;
mod storing;
mod walk;
mod watch;

pub use clients::Answer;
pub use long::{COPY_BYTES_OF_TURN, KEYS_OF_TURN};

use super::budget::{Budget, Reservation};
use super::command::{Access, Command};
use super::locks::{Holder, Locks};
use super::reply::{Reply, Version};
use super::request::Request;
use super::store::{Outcome, StoreLimits, StoreOp, StoreRequest, Token};
use super::stored::HEAD_BYTES;
use clients::Clients;
use data::{Data, Stage};
use ends::Ends;
use line::RequestLine;
use ocssd_base::{Nanos, Prng, Slab, SlabKey};
use std::collections::VecDeque;
use walk::{Cursors, Walk};
use watch::Watches;

/// Commands under way at once (chosen: 64 clients with a pipeline of 64).
const TASKS_MAX: u32 = 4096;

/// What is said when there is no memory for a request or its answer, in Redis' words.
pub const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// What a database may do.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What the store takes.
    pub limits: StoreLimits,
    /// Memory for requests and answers of all clients together, beyond 64 KiB of each.
    pub memory_bytes: u64,
    /// Nothing may be changed.
    pub is_read_only: bool,
    /// A change is durable when it is answered; else after a second, or a SAVE.
    pub is_durable_at_reply: bool,
}

impl Settings {
    /// Most bytes of a value as clients see it (Redis: `proto-max-bulk-len`, 512 MiB).
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        self.limits.value_bytes_max.saturating_sub(HEAD_BYTES).min(512 << 20)
    }
}

/// What a client asks.
#[derive(Debug)]
pub struct Order {
    /// Who.
    pub client: u64,
    /// The client's name for it.
    pub sequence: u64,
    /// How the answer is written.
    pub version: Version,
    /// The commands: one, or those of a transaction.
    pub calls: Vec<(&'static Command, Request)>,
    /// They are a transaction; bytes of all of them, and the memory that is reserved for these.
    pub exec: Option<(usize, Reservation)>,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its request is in the store's line.
    AtOnce,
    /// It waits for others.
    Waits,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands carried out.
    pub commands: u64,
    /// Keys that were removed because they had ended.
    pub expired: u64,
    /// Transactions that were not carried out because a watched key had changed.
    pub aborted: u64,
}

#[derive(Debug)]
enum Work {
    Data(Data),
    Walk(Walk),
    Save,
}

/// A command under way.
#[derive(Debug)]
struct Task {
    /// Who is answered, and to what; nobody of what the database does by itself.
    client: Option<(u64, u64)>,
    reply: Reply,
    reservation: Reservation,
    work: Work,
}

/// Keys and values.
#[derive(Debug)]
pub struct Database {
    settings: Settings,
    budget: Budget,
    now_ms: i64,
    started_ms: i64,
    tasks: Slab<Option<Box<Task>>>,
    locks: Locks,
    requests: RequestLine,
    clients: Clients,
    watches: Watches,
    ends: Ends,
    cursors: Cursors,
    random: Prng,
    /// Tasks that hold all they waited for.
    ready: VecDeque<SlabKey>,
    /// Long commands that can go on.
    slow: VecDeque<SlabKey>,
    /// Tasks that began and have not ended, but for a flush.
    active: usize,
    /// A flush of all keys, and whether it has begun: it is alone.
    flush: Option<(SlabKey, bool)>,
    /// What came behind it.
    held_back: VecDeque<SlabKey>,
    /// The database makes everything durable by itself just now.
    is_flushing: bool,
    counts: Counts,
}

impl Database {
    /// A database; time is milliseconds since 1970, and `seed` is for RANDOMKEY.
    #[must_use]
    pub fn new(settings: Settings, now_ms: i64, seed: u64) -> Self {
        Self {
            budget: Budget::new(settings.memory_bytes),
            settings,
            now_ms,
            started_ms: now_ms,
            tasks: Slab::new(TASKS_MAX),
            locks: Locks::default(),
            requests: RequestLine::default(),
            clients: Clients::default(),
            watches: Watches::default(),
            ends: Ends::default(),
            cursors: Cursors::new(now_ms),
            random: Prng::new(seed),
            ready: VecDeque::new(),
            slow: VecDeque::new(),
            active: 0,
            flush: None,
            held_back: VecDeque::new(),
            is_flushing: false,
            counts: Counts::default(),
        }
    }

    /// What it may do.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Memory for requests and answers.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Milliseconds since 1970, and since the start.
    #[must_use]
    pub const fn time_ms(&self) -> (i64, i64) {
        (self.now_ms, self.now_ms - self.started_ms)
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Those who are connected.
    pub const fn clients(&mut self) -> &mut Clients {
        &mut self.clients
    }

    /// An order would be taken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        // Some places are kept for what the database does by itself.
        self.tasks.len() + 2 * ends::TASKS_MAX < usize::try_from(TASKS_MAX).expect("a thousand or so")
    }

    /// Nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether a request may be carried out at all.
    ///
    /// # Errors
    /// In Redis' words, or in ours where Redis has no such bound.
    pub fn check(&self, command: &Command, request: &Request) -> Result<(), String> {
        if !command.takes(request.len()) {
            return Err(command.wrong_number());
        }
        if command.access == Access::Writes && self.settings.is_read_only {
            return Err("READONLY You can't write against a read only replica.".to_owned());
        }
        let most = self.settings.limits.key_bytes_max;
        for key in command.keys.of(request) {
            if key.is_empty() || key.len() > most {
                return Err(format!(
                    "ERR a key has 1 to {most} bytes on this drive, and this one has {}",
                    key.len()
                ));
            }
        }
        Ok(())
    }

    /// Takes an order; its commands passed [`Self::check`].
    ///
    /// # Panics
    /// If there is no room.
    pub fn submit(&mut self, order: Order) -> Taken {
        self.counts.commands += u64::try_from(order.calls.len()).expect("a length");
        let client = Some((order.client, order.sequence));
        let reply = Reply::new(order.version);
        let (work, reservation) = self.work_of(order);
        let key = self.insert(Task { client, reply, reservation, work });
        let taken = self.begin(key);
        self.pump();
        taken
    }

    fn insert(&mut self, task: Task) -> SlabKey {
        self.tasks.insert(Some(Box::new(task))).unwrap_or_else(|_| panic!("an order came without room"))
    }

    /// What is done, and the memory that it has from the start.
    fn work_of(&self, order: Order) -> (Work, Reservation) {
        use super::command::{Action, Whole};
        if let [(command, request)] = order.calls.as_slice()
            && let Action::Whole(whole) = command.action
        {
            let work = if whole == Whole::Save {
                Work::Save
            } else {
                Work::Walk(Walk::new(whole, request, &self.cursors))
            };
            return (work, self.budget.nothing());
        }
        let Some((bytes, reservation)) = order.exec else {
            return (Work::Data(Data::new(order.calls, None)), self.budget.nothing());
        };
        (Work::Data(Data::new(order.calls, Some((order.client, bytes)))), reservation)
    }

    /// Begins a task, or holds it back behind a flush of all keys.
    fn begin(&mut self, key: SlabKey) -> Taken {
        if self.flush.is_some() {
            self.held_back.push_back(key);
            return Taken::Waits;
        }
        let mut task = self.take(key);
        match &mut task.work {
            Work::Walk(walk) if walk.is_flush() => {
                self.flush = Some((key, false));
                self.put(key, task);
                self.begin_flush();
                Taken::Waits
            }
            Work::Walk(walk) => {
                self.active += 1;
                if let Some(words) = walk.refusal() {
                    task.reply.error(words);
                    self.end(key, task);
                } else {
                    self.put(key, task);
                    self.ready.push_back(key);
                }
                Taken::Waits
            }
            Work::Save => {
                self.active += 1;
                self.request(key, 0, StoreOp::Flush);
                self.put(key, task);
                Taken::Waits
            }
            Work::Data(data) => {
                self.active += 1;
                if data.is_long {
                    self.put_slow(key, task);
                    return Taken::Waits;
                }
                let is_durable = self.settings.is_durable_at_reply;
                let waits = data.wait_for_keys(Holder(key.0), &mut self.locks, is_durable);
                let is_single = data.is_single();
                self.put(key, task);
                if !waits {
                    self.ready.push_back(key);
                }
                if is_single { Taken::AtOnce } else { Taken::Waits }
            }
        }
    }

    /// Begins the flush that waits, if it is alone.
    fn begin_flush(&mut self) {
        if let Some((key, begun @ false)) = &mut self.flush
            && self.active == 0
        {
            *begun = true;
            self.ready.push_back(*key);
        }
    }

    /// Goes on with tasks until all wait for the store or for each other.
    fn pump(&mut self) {
        while let Some(key) = self.ready.pop_front() {
            let mut task = self.take(key);
            match &mut task.work {
                Work::Data(_) => self.read_keys(key, task),
                Work::Walk(walk) => {
                    let op = walk.next_list(&mut self.random);
                    self.requests.push_step(named(key, 0, op));
                    self.put(key, task);
                }
                Work::Save => unreachable!("it has its one request already"),
            }
        }
    }

    fn take(&mut self, key: SlabKey) -> Box<Task> {
        self.tasks.get_mut(key).take().expect("a task is in one place at a time")
    }

    fn put(&mut self, key: SlabKey, task: Box<Task>) {
        *self.tasks.get_mut(key) = Some(task);
    }

    fn request(&mut self, key: SlabKey, place: usize, op: StoreOp) {
        self.requests.push(named(key, place, op));
    }

    /// The next request to the store, and whether it is a step of a long command; none of these if none is wanted now. They are
    /// to be carried out in this order.
    pub fn poll_request(&mut self, wants_steps: bool) -> Option<(StoreRequest, bool)> {
        self.requests.poll(wants_steps)
    }

    /// The next change that takes a while to copy. It may be carried out at any time: its keys are locked.
    pub fn poll_long_change(&mut self) -> Option<StoreRequest> {
        self.requests.poll_long_change()
    }

    /// There is one.
    #[must_use]
    pub fn has_long_change(&self) -> bool {
        self.requests.has_long_change()
    }

    /// There is a request to the store.
    #[must_use]
    pub fn has_request(&self) -> bool {
        self.requests.has_next()
    }

    /// It is this late by a clock that never goes back: how long the store takes is measured by it.
    pub const fn pass(&mut self, now: Nanos) {
        self.requests.pass(now);
    }

    /// The store has carried a request out.
    pub fn on_outcome(&mut self, token: Token, outcome: Outcome) {
        self.requests.on_outcome(token);
        let key = SlabKey(token.task);
        let mut task = self.take(key);
        let place = usize::try_from(token.place).expect("it was an index");
        match &mut task.work {
            Work::Data(_) => self.on_data(key, task, place, outcome),
            Work::Walk(_) => self.on_walk(key, task, outcome),
            Work::Save => {
                match outcome {
                    Outcome::Failed(sentence) => task.reply.error(&failed(&sentence)),
                    _ => task.reply.ok(),
                }
                self.end(key, task);
            }
        }
        self.pump();
    }

    /// A task is over: its client is answered, and those who waited for its keys go on.
    fn end(&mut self, key: SlabKey, task: Box<Task>) {
        let Task { client, reply, reservation, mut work } = *task;
        if let Some((client, sequence)) = client {
            self.clients.deliver(client, Answer { sequence, reply, reservation });
        }
        if let Work::Data(data) = &mut work
            && data.is_long
        {
            data.stage = Stage::Leaving;
            let (reply, reservation) = (Reply::new(Version::Two), self.budget.nothing());
            return self.put_slow(key, Box::new(Task { client: None, reply, reservation, work }));
        }
        drop(self.tasks.remove(key));
        match work {
            Work::Walk(walk) if walk.is_flush() => {
                self.flush = None;
                let held_back = std::mem::take(&mut self.held_back);
                for key in held_back {
                    self.begin(key);
                }
                return;
            }
            Work::Data(data) => {
                let mut granted = Vec::new();
                data.leave_keys(Holder(key.0), &mut self.locks, &mut granted);
                self.on_keys_left(granted);
            }
            Work::Save => self.is_flushing &= client.is_some(),
            Work::Walk(_) => {}
        }
        self.on_ended();
    }

    /// These hold a key they waited for.
    fn on_keys_left(&mut self, granted: Vec<Holder>) {
        for Holder(other) in granted {
            let other = SlabKey(other);
            let task = self.tasks.get_mut(other).as_mut().expect("who waits is in its place");
            let Work::Data(data) = &mut task.work else {
                unreachable!("only commands on keys wait for keys")
            };
            if data.on_granted() {
                self.ready.push_back(other);
            }
        }
    }

    /// One task less has begun and not ended.
    fn on_ended(&mut self) {
        self.active -= 1;
        self.begin_flush();
    }

    /// A client is gone; what it asked is carried out without it.
    pub fn leave(&mut self, client: u64) {
        self.clients.leave(client);
        self.watches.forget(client);
    }

    /// A client watches no key any more.
    pub fn unwatch(&mut self, client: u64) {
        self.watches.forget(client);
    }
}

/// A request of a task.
fn named(key: SlabKey, place: usize, op: StoreOp) -> StoreRequest {
    let place = u32::try_from(place).expect("a request has fewer words");
    StoreRequest { token: Token { task: key.0, place }, op }
}

/// What a client is told of a failure of the drive.
fn failed(sentence: &str) -> String {
    format!("ERR {sentence}")
}
