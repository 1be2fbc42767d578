//! Commands on keys that they name: waiting for the keys, reading them, running. What takes some of them long is in `long`, and
//! what becomes of what they changed in `storing`.

use super::super::budget::Reservation;
use super::super::command::{Access, Action, Call, Command, Memory, Progress, TurnShare};
use super::super::locks::{Holder, Locks, Mode};
use super::super::packing::KEY_ROOM;
use super::super::reply::Reply;
use super::super::request::Request;
use super::super::store::{Outcome, StoreOp};
use super::super::stored::HEAD_BYTES;
use super::super::view::{Change, Fetch, View};
use super::long::{COPY_BYTES_OF_TURN, Gathering, KEYS_OF_TURN, REPLY_BYTES_OF_TURN, is_long};
use super::storing::CHANGE_COST;
use super::{Database, NO_MEMORY, SlabKey, Task, Work, failed, named};

/// Bytes of a value that are read at first: the smallest piece of memory, with room for the key; most values are shorter.
const FIRST_BYTES: usize = (4 << 10) - KEY_ROOM;

/// Bytes that are read at once: the largest piece of memory.
const CHUNK_BYTES: usize = crate::pool::PIECE_BYTES_MAX;

/// What was read is counted so often: once as it is, and once in an answer or a changed value.
const READ_TIMES: usize = 2;

/// Keys that are looked at as a short command does (chosen: as many as a pipeline often has, some ten microseconds).
const SHORT_KEYS: usize = 16;

/// Changes of so many bytes are copied in their own time (chosen: a copy of fewer takes some ten microseconds).
pub(super) const LONG_CHANGE_BYTES: usize = 64 << 10;

/// What a task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// One command.
    Single,
    /// A transaction of this client.
    Exec(u64),
    /// The keys are to be watched.
    Watch,
    /// Keys that are over are to be removed.
    Expire,
    /// It is noted when keys end.
    Note,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum Stage {
    /// A long command finds out which keys it names.
    Gathering(Gathering),
    /// A long command joins the lines at its keys.
    Joining,
    /// It waits for its keys, asks for them from this place on, and reads them.
    Reading(usize),
    /// All is read; it runs.
    Running,
    /// All have run: what became of the keys from this place on is to be noted, and these changes are to be stored.
    Noting(usize, Vec<Change>),
    Storing,
    /// A long command is answered, and leaves the lines at its keys.
    Leaving,
}

/// How far its commands are.
#[derive(Debug, Default)]
struct Running {
    /// The one that runs,
    at: usize,
    /// and how far that is.
    progress: Progress,
    /// The time of all of them, once the first has begun.
    now_ms: Option<i64>,
    /// Bytes of what was read and made.
    held: usize,
}

/// One command, or several as one.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) purpose: Purpose,
    pub(super) calls: Vec<(&'static Command, Request)>,
    pub(super) view: View,
    pub(super) stage: Stage,
    /// It goes on in turns, and holds all its keys.
    pub(super) is_long: bool,
    /// Keys it holds or waits for, by place, with their modes; empty if it needs none, or is long.
    modes: Vec<Mode>,
    /// So many of them it had to wait for,
    pub(super) missing: usize,
    /// and so many of those it got.
    granted: usize,
    /// Requests at the store.
    pub(super) open: usize,
    /// What was read of long values, by place.
    parts: Vec<(usize, Vec<u8>)>,
    /// Bytes of the commands of a transaction, which the memory of its task covers from the start.
    asked_bytes: usize,
    /// Bytes of values it read.
    read_bytes: usize,
    failure: Option<String>,
    running: Running,
}

impl Data {
    /// One command, or a transaction of a client, with the bytes of its commands.
    pub(super) fn new(calls: Vec<(&'static Command, Request)>, exec: Option<(u64, usize)>) -> Self {
        let mut data = Self::of_calls(calls, exec.map(|(client, _)| client));
        data.asked_bytes = exec.map_or(0, |(_, bytes)| bytes);
        data
    }

    fn of_calls(calls: Vec<(&'static Command, Request)>, exec: Option<u64>) -> Self {
        let purpose = match (exec, calls.first()) {
            (Some(client), _) => Purpose::Exec(client),
            (None, Some((command, _))) if command.name == "watch" => Purpose::Watch,
            (None, _) => Purpose::Single,
        };
        if is_long(&calls) {
            let data = Self::of_view(purpose, calls, View::default());
            return Self { stage: Stage::Gathering(Gathering::default()), is_long: true, ..data };
        }
        let named = calls.iter().flat_map(|(command, request)| {
            let fetch = fetch_of(command, request);
            command.keys.of(request).map(move |key| (key.to_vec(), fetch))
        });
        let view = View::new(named);
        Self::of_view(purpose, calls, view)
    }

    /// Removes keys if they are over.
    pub(super) fn expire(keys: Vec<Vec<u8>>) -> Self {
        Self::of_view(Purpose::Expire, Vec::new(), View::new(keys.into_iter().map(|key| (key, Fetch::Head))))
    }

    /// Notes when keys end.
    pub(super) fn note(keys: Vec<Vec<u8>>) -> Self {
        Self::of_view(Purpose::Note, Vec::new(), View::new(keys.into_iter().map(|key| (key, Fetch::Head))))
    }

    fn of_view(purpose: Purpose, calls: Vec<(&'static Command, Request)>, view: View) -> Self {
        Self {
            purpose,
            calls,
            view,
            stage: Stage::Reading(0),
            is_long: false,
            modes: Vec::new(),
            missing: 0,
            granted: 0,
            open: 0,
            parts: Vec::new(),
            asked_bytes: 0,
            read_bytes: 0,
            failure: None,
            running: Running::default(),
        }
    }

    /// How it needs each of its keys, by place; nothing if it is a single request to the store that nobody is in the way of.
    ///
    /// If changes are durable at their replies, nobody may see one before: what a reply showed would be gone after a power cut.
    /// So also a change of a single request holds its keys then, and a look waits for it.
    fn modes(&self, locks: &Locks, is_durable_at_reply: bool) -> Vec<Mode> {
        let count = self.view.len();
        let writes = |command: &Command| command.access == Access::Writes;
        match self.purpose {
            Purpose::Note => Vec::new(),
            Purpose::Watch => vec![Mode::Shared; count],
            Purpose::Expire => vec![Mode::Exclusive; count],
            Purpose::Single => {
                let (command, request) = &self.calls[0];
                // What is copied in its own time may be overtaken.
                let is_long = request.bytes() + request.len() * CHANGE_COST > LONG_CHANGE_BYTES;
                let reads = (0..count).any(|place| self.view.key(place).1 != Fetch::Nothing);
                let is_free = || !self.view.keys().any(|key| locks.is_locked(key));
                let is_replaceable = || self.view.keys().all(|key| locks.is_replaceable(key));
                match writes(command) {
                    false if count == 1 && (!is_durable_at_reply || is_free()) => Vec::new(),
                    false => vec![Mode::Shared; count],
                    true if is_long => vec![Mode::Exclusive; count],
                    true if !reads && is_durable_at_reply && is_replaceable() => vec![Mode::Replacing; count],
                    true if !reads && !is_durable_at_reply && is_free() => Vec::new(),
                    true => vec![Mode::Exclusive; count],
                }
            }
            Purpose::Exec(_) => {
                let mut modes = vec![Mode::Shared; count];
                for (command, request) in self.calls.iter().filter(|(command, _)| writes(command)) {
                    for key in command.keys.of(request) {
                        modes[self.view.place(key)] = Mode::Exclusive;
                    }
                }
                modes
            }
        }
    }

    /// Joins the lines at its keys. True if it has to wait.
    pub(super) fn wait_for_keys(
        &mut self,
        holder: Holder,
        locks: &mut Locks,
        is_durable_at_reply: bool,
    ) -> bool {
        self.modes = self.modes(locks, is_durable_at_reply);
        self.missing = locks.enter(holder, self.view.keys().zip(self.modes.iter().copied()));
        self.missing > 0
    }

    /// It holds its keys, or waits for them.
    const fn holds(&self) -> bool {
        self.is_long || !self.modes.is_empty()
    }

    /// It is a single request to the store, and waits for nobody.
    pub(super) fn is_single(&self) -> bool {
        !self.is_long && matches!(self.modes.first(), None | Some(Mode::Replacing))
    }

    /// Each of its keys is read, or under way.
    pub(super) const fn has_asked_for_all(&self) -> bool {
        !matches!(self.stage, Stage::Reading(from) if from < self.view.len())
    }

    /// It holds one more key. True if those are all.
    pub(super) const fn on_granted(&mut self) -> bool {
        self.granted += 1;
        self.holds_all() && !matches!(self.stage, Stage::Joining)
    }

    /// It holds all keys it had to wait for, of those whose lines it has joined.
    pub(super) const fn holds_all(&self) -> bool {
        self.granted == self.missing
    }

    /// Leaves the lines at its keys.
    pub(super) fn leave_keys(&self, holder: Holder, locks: &mut Locks, granted: &mut Vec<Holder>) {
        locks.leave(holder, self.view.keys().take(self.modes.len()), granted);
    }

    /// What has come of the value at a place; joined to what came before, if it is whole now.
    fn join(&mut self, place: usize, bytes: &[u8], total: usize) -> Result<Vec<u8>, usize> {
        let found = self.parts.iter().position(|(of, _)| *of == place);
        let mut part = match found {
            Some(found) => self.parts.swap_remove(found).1,
            // All of it at once, or what came is moved each time it grows.
            None => Vec::with_capacity(total),
        };
        part.extend_from_slice(bytes);
        if part.len() >= total {
            return Ok(part);
        }
        let have = part.len();
        self.parts.push((place, part));
        Err(have)
    }

    /// Runs the commands, a turn of them if they are long. True if all have run.
    fn run(&mut self, to: (&mut Reply, &mut Reservation), now_ms: i64, value_bytes_max: usize) -> bool {
        let (reply, reservation) = to;
        // Values up to which a change is short are made before its first turn.
        let has_turn = matches!(self.stage, Stage::Running);
        let copy_bytes = if has_turn { COPY_BYTES_OF_TURN } else { LONG_CHANGE_BYTES };
        let Running { at, progress, now_ms: time, held } = &mut self.running;
        // One time for all of them, as for the values that were read.
        let (is_first, now_ms) = (time.is_none(), *time.get_or_insert(now_ms));
        if is_first {
            *held = self.asked_bytes + READ_TIMES * self.read_bytes;
            if matches!(self.purpose, Purpose::Exec(_)) {
                reply.array(self.calls.len());
            }
        }
        let reply_bytes_max = reply.len() + REPLY_BYTES_OF_TURN;
        let mut share = TurnShare { keys: KEYS_OF_TURN, reply_bytes_max, copy_bytes };
        while let Some((command, request)) = self.calls.get(*at) {
            let Action::Data { run, .. } = command.action else { unreachable!("others come elsewhere") };
            if share.is_used_up(reply) {
                return false;
            }
            let (view, before) = (&mut self.view, reply.len());
            let share = &mut share;
            let mut call = Call {
                command,
                request,
                view,
                reply,
                now_ms,
                value_bytes_max,
                progress,
                share: &mut *share,
                memory: Memory { reservation, held },
            };
            let ran = run(&mut call);
            if !call.is_over() {
                return false;
            }
            // Also one without keys, of which a transaction may have thousands.
            share.keys = share.keys.saturating_sub(1);
            if let Err(refused) = ran {
                assert_eq!(reply.len(), before, "{} was refused after it answered", command.name);
                reply.error(&refused);
            }
            (*at, *progress) = (*at + 1, Progress::default());
        }
        true
    }
}

/// How much of its keys a command reads.
pub(super) fn fetch_of(command: &Command, request: &Request) -> Fetch {
    let Action::Data { fetch, .. } = command.action else { unreachable!("others come elsewhere") };
    fetch(request)
}

impl Database {
    /// A task holds its keys: it reads them.
    pub(super) fn read_keys(&mut self, key: SlabKey, mut task: Box<Task>) {
        let Work::Data(data) = &mut task.work else { unreachable!("only commands on keys read them") };
        if let Purpose::Exec(client) = data.purpose {
            let is_dirty = self.watches.is_dirty(client, self.now_ms);
            self.watches.forget(client);
            if is_dirty {
                self.counts.aborted += 1;
                task.reply.null_array();
                return self.end(key, task);
            }
        }
        if data.is_long {
            return self.put_slow(key, task);
        }
        if !self.ask_for_keys(key, &mut task, usize::MAX) {
            return self.run(key, task);
        }
        self.put(key, task);
    }

    /// Asks for the next keys, at most so many. True if what was asked for is under way.
    pub(super) fn ask_for_keys(&mut self, key: SlabKey, task: &mut Task, most: usize) -> bool {
        let Work::Data(data) = &mut task.work else { unreachable!("only commands on keys read them") };
        let Stage::Reading(from) = data.stage else { unreachable!("it reads") };
        // Others may overtake it: nobody changes keys that it holds.
        let is_step = data.holds() && data.view.len() > SHORT_KEYS;
        let end = data.view.len().min(from.saturating_add(most));
        for place in from..end {
            let (name, fetch) = data.view.key(place);
            let bytes = match fetch {
                Fetch::Nothing => continue,
                Fetch::Head => HEAD_BYTES,
                Fetch::Whole => FIRST_BYTES,
            };
            data.open += 1;
            let request = named(key, place, StoreOp::Retrieve { key: name.to_vec(), offset: 0, bytes });
            if is_step { self.requests.push_step(request) } else { self.requests.push(request) }
        }
        data.stage = Stage::Reading(end);
        data.open > 0
    }

    /// A request of a task is carried out.
    pub(super) fn on_data(&mut self, key: SlabKey, mut task: Box<Task>, place: usize, outcome: Outcome) {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        data.open -= 1;
        if matches!(data.stage, Stage::Storing) {
            match outcome {
                Outcome::Done => {}
                Outcome::NoRoom => fail(&mut task, "OOM there is no room on the drive: delete keys"),
                Outcome::Failed(sentence) => fail(&mut task, &failed(&sentence)),
                other => unreachable!("{other:?} of a change"),
            }
            return self.end(key, task);
        }
        match outcome {
            Outcome::Absent => data.view.on_absent(place),
            Outcome::Value { bytes, total } => {
                if self.on_value(key, &mut task, place, bytes, total) {
                    return self.put(key, task);
                }
            }
            Outcome::Failed(sentence) => data.failure = Some(failed(&sentence)),
            other => unreachable!("{other:?} of a retrieve"),
        }
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        if data.open > 0 || !data.has_asked_for_all() {
            return self.put(key, task);
        }
        self.on_all_read(key, task);
    }

    /// All keys are read.
    pub(super) fn on_all_read(&mut self, key: SlabKey, mut task: Box<Task>) {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        if let Some(failure) = data.failure.take() {
            fail(&mut task, &failure);
            return self.end(key, task);
        }
        if data.is_long {
            data.stage = Stage::Running;
            return self.put_slow(key, task);
        }
        self.run(key, task);
    }

    /// Bytes of a value have come. True if the task waits for more of it.
    fn on_value(
        &mut self,
        key: SlabKey,
        task: &mut Task,
        place: usize,
        bytes: Vec<u8>,
        total: usize,
    ) -> bool {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        let (name, fetch) = data.view.key(place);
        let name = name.to_vec();
        let whole = if fetch == Fetch::Head || bytes.len() == total {
            Ok(bytes)
        } else if !data.holds() {
            // It may be another value by now, so it is read again from the start: at once, or piece by piece under a lock.
            if total <= CHUNK_BYTES && !self.locks.is_locked(&name) {
                data.open += 1;
                self.request(key, place, StoreOp::Retrieve { key: name, offset: 0, bytes: total });
                return true;
            }
            (data.modes, data.stage) = (vec![Mode::Shared], Stage::Reading(0));
            data.missing = self.locks.enter(Holder(key.0), data.view.keys().zip([Mode::Shared]));
            if data.missing == 0 {
                self.ready.push_back(key);
            }
            return true;
        } else {
            data.join(place, &bytes, total)
        };
        match whole {
            Ok(stored) => {
                if fetch == Fetch::Whole {
                    data.read_bytes += stored.len();
                }
                if !task.reservation.cover(data.asked_bytes + READ_TIMES * data.read_bytes) {
                    data.failure = Some(NO_MEMORY.to_owned());
                } else if !data.view.on_stored(place, stored, total, self.now_ms) {
                    let words = "WRONGTYPE Operation against a key holding the wrong kind of value";
                    data.failure = Some(words.to_owned());
                }
                false
            }
            Err(have) => {
                if !task.reservation.cover(data.asked_bytes + READ_TIMES * (data.read_bytes + total)) {
                    data.failure = Some(NO_MEMORY.to_owned());
                    return false;
                }
                data.open += 1;
                let bytes = (total - have).min(CHUNK_BYTES);
                self.request(key, place, StoreOp::Retrieve { key: name, offset: have, bytes });
                true
            }
        }
    }

    /// All keys are read: the commands run.
    pub(super) fn run(&mut self, key: SlabKey, mut task: Box<Task>) {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        match data.purpose {
            Purpose::Expire | Purpose::Note => self.look_at_ends(data),
            Purpose::Single | Purpose::Exec(_) | Purpose::Watch => {
                let to = (&mut task.reply, &mut task.reservation);
                if !data.run(to, self.now_ms, self.settings.value_bytes_max()) {
                    data.stage = Stage::Running;
                    return self.put_slow(key, task);
                }
            }
        }
        self.on_all_run(key, task);
    }

    /// Removes keys that are over, or notes when they will be.
    fn look_at_ends(&mut self, data: &mut Data) {
        let removes = data.purpose == Purpose::Expire;
        let over: Vec<Vec<u8>> = data.view.over().map(<[u8]>::to_vec).collect();
        for key in &over {
            if removes {
                data.view.delete(key);
                self.counts.expired += 1;
            }
        }
        for key in data.view.keys().filter(|key| !over.iter().any(|one| one == key)) {
            self.ends.note(key, data.view.expiry(key));
        }
        self.ends.on_looked(removes);
    }
}

/// The command is answered by this error instead.
pub(super) fn fail(task: &mut Task, words: &str) {
    task.reply = Reply::of_error(task.reply.version(), words);
}
