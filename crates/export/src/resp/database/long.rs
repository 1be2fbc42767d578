//! Commands of many keys, and transactions of many commands, some of it in each turn: which keys they name, the lines at these,
//! asking for them, running, noting what changed, and leaving the lines. So a command of thousands of keys keeps others waiting
//! for a hundred of them, and not for all. It stays one step for everybody: it holds all its keys from before it reads one until
//! it is answered.

use super::super::command::{Access, Command};
use super::super::locks::{Holder, Mode, Wanted};
use super::super::request::Request;
use super::data::{Data, Stage, fetch_of};
use super::{Database, SlabKey, Task, Work};
use std::collections::BTreeMap;

/// Keys, or commands, up to which all is done at once (chosen: some ten microseconds).
const SHORT_MAX: usize = 64;

/// Keys that are dealt with in one turn (chosen: some ten microseconds to fifty).
pub const KEYS_OF_TURN: usize = 128;

/// Bytes of values that are copied in one turn (chosen: some ten microseconds).
pub const COPY_BYTES_OF_TURN: usize = 128 << 10;

/// What is added to an answer in one turn (chosen: likewise).
pub(super) const REPLY_BYTES_OF_TURN: usize = 64 << 10;

/// The keys of a command, as far as they are found.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// The command that is looked at, and how many of its keys were.
    at: (usize, usize),
    found: BTreeMap<Vec<u8>, Wanted>,
}

/// The commands, or their keys, are many.
pub(super) fn is_long(calls: &[(&'static Command, Request)]) -> bool {
    let keys = || calls.iter().flat_map(|(command, request)| command.keys.of(request));
    calls.len() > SHORT_MAX || keys().nth(SHORT_MAX).is_some()
}

impl Data {
    /// Finds more of the keys it names. True if those are all.
    fn gather(&mut self) -> bool {
        let Stage::Gathering(gathering) = &mut self.stage else { unreachable!("it gathers") };
        let mut left = KEYS_OF_TURN;
        while let Some((command, request)) = self.calls.get(gathering.at.0) {
            let mode = if command.access == Access::Writes { Mode::Exclusive } else { Mode::Shared };
            let wanted = Wanted::new(fetch_of(command, request), mode);
            let mut any = false;
            for key in command.keys.of(request).skip(gathering.at.1).take(left) {
                any = true;
                gathering.at.1 += 1;
                left -= 1;
                match gathering.found.get_mut(key) {
                    Some(found) => found.add(wanted),
                    None => drop(gathering.found.insert(key.to_vec(), wanted)),
                }
            }
            if left == 0 {
                return false;
            }
            if !any {
                gathering.at = (gathering.at.0 + 1, 0);
                // A command without keys is looked at, too.
                left -= 1;
            }
        }
        true
    }
}

impl Database {
    /// A task goes on in a later turn.
    pub(super) fn put_slow(&mut self, key: SlabKey, task: Box<Task>) {
        self.put(key, task);
        self.slow.push_back(key);
    }

    /// Some long command can go on by [`Self::go_on`].
    #[must_use]
    pub fn has_turns(&self) -> bool {
        !self.slow.is_empty()
    }

    /// Gives one long command a turn, some ten microseconds. True if there was one.
    pub fn go_on(&mut self) -> bool {
        let Some(key) = self.slow.pop_front() else { return false };
        let mut task = self.take(key);
        let Work::Data(data) = &mut task.work else { unreachable!("only commands on keys take turns") };
        match &mut data.stage {
            Stage::Gathering(_) => {
                if data.gather() && !self.locks.is_joining() {
                    let Stage::Gathering(gathering) = std::mem::replace(&mut data.stage, Stage::Joining)
                    else {
                        unreachable!("it gathered")
                    };
                    self.locks.begin_joining(Holder(key.0), gathering.found);
                }
                self.put_slow(key, task);
            }
            Stage::Joining => self.join(key, task),
            Stage::Reading(_) => self.ask(key, task),
            Stage::Running => self.run(key, task),
            Stage::Noting(..) => self.note_changes(key, task),
            Stage::Leaving => self.leave_some(key, task),
            Stage::Storing => unreachable!("it waits for the store"),
        }
        self.pump();
        true
    }

    fn join(&mut self, key: SlabKey, mut task: Box<Task>) {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        let view = &mut data.view;
        let all = self.locks.go_on_joining(KEYS_OF_TURN, |name, fetch| view.push(name, fetch));
        let Some(missing) = all else { return self.put_slow(key, task) };
        (data.missing, data.stage) = (missing, Stage::Reading(0));
        let holds_all = data.holds_all();
        self.put(key, task);
        if holds_all {
            self.ready.push_back(key);
        }
    }

    fn ask(&mut self, key: SlabKey, mut task: Box<Task>) {
        let is_under_way = self.ask_for_keys(key, &mut task, KEYS_OF_TURN);
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        if !data.has_asked_for_all() {
            self.put_slow(key, task);
        } else if is_under_way {
            self.put(key, task);
        } else {
            self.on_all_read(key, task);
        }
    }

    /// Leaves some of the lines at its keys, and is gone when those are all.
    fn leave_some(&mut self, key: SlabKey, mut task: Box<Task>) {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        // Thousands of requests take a while to forget, too.
        let commands_left = data.calls.len().saturating_sub(KEYS_OF_TURN);
        data.calls.truncate(commands_left);
        let mut granted = Vec::new();
        for name in std::iter::from_fn(|| data.view.pop()).take(KEYS_OF_TURN) {
            self.locks.leave(Holder(key.0), std::iter::once(name.as_slice()), &mut granted);
        }
        if commands_left == 0 && data.view.len() == 0 {
            drop(self.tasks.remove(key));
            self.on_ended();
        } else {
            self.put_slow(key, task);
        }
        self.on_keys_left(granted);
    }
}
