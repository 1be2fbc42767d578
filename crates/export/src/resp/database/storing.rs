//! What commands changed, once all have run: it is noted who watches it and when it ends, and stored as one batch. Of many keys
//! that is done some in each turn; nobody sees any of it before it is stored, for the keys are locked.

use super::super::store::StoreOp;
use super::super::stored::Stored;
use super::super::view::Change;
use super::data::{Data, LONG_CHANGE_BYTES, Purpose, Stage, fail};
use super::long::KEYS_OF_TURN;
use super::{Database, SlabKey, Task, Work, named};

/// What a change costs beside its bytes (chosen: its place in a batch).
pub(super) const CHANGE_COST: usize = 64;

/// The changes take a while to copy.
fn are_long(changes: &[Change]) -> bool {
    let bytes = |(key, value): &Change| key.len() + CHANGE_COST + value.as_ref().map_or(0, Stored::len);
    changes.iter().map(bytes).sum::<usize>() > LONG_CHANGE_BYTES
}

impl Database {
    /// All commands of a task have run.
    pub(super) fn on_all_run(&mut self, key: SlabKey, mut task: Box<Task>) {
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        let (most, count) = (self.settings.limits.changes_max, data.view.changes());
        if count > most {
            let words = format!("ERR a command or transaction changes at most {most} keys on this drive");
            fail(&mut task, &words);
            return self.end(key, task);
        }
        data.stage = Stage::Noting(0, Vec::with_capacity(count));
        if data.is_long {
            return self.put_slow(key, task);
        }
        self.note_changes(key, task);
    }

    /// Notes what became of more of the keys, and stores what changed once those are all.
    pub(super) fn note_changes(&mut self, key: SlabKey, mut task: Box<Task>) {
        let client = task.client.map(|(client, _)| client);
        let Work::Data(data) = &mut task.work else { unreachable!("it is a command on keys") };
        let Stage::Noting(from, mut changes) = std::mem::replace(&mut data.stage, Stage::Storing) else {
            unreachable!("it notes what changed")
        };
        let most = if data.is_long { KEYS_OF_TURN } else { usize::MAX };
        let end = data.view.len().min(from.saturating_add(most));
        for place in from..end {
            if !self.note_key(data, place, client) {
                fail(&mut task, "ERR too many watched keys");
                return self.end(key, task);
            }
            changes.extend(data.view.take_change(place));
        }
        if end < data.view.len() {
            data.stage = Stage::Noting(end, changes);
            return self.put_slow(key, task);
        }
        if changes.is_empty() {
            return self.end(key, task);
        }
        data.open = 1;
        let is_long = !data.is_single() && are_long(&changes);
        let request = named(key, 0, StoreOp::Change(changes));
        if is_long {
            self.requests.push_long_change(request)
        } else {
            self.requests.push(request)
        }
        self.put(key, task);
    }

    /// Notes what became of the key at a place. False if the client watches too many.
    fn note_key(&mut self, data: &Data, place: usize, client: Option<u64>) -> bool {
        let (name, _) = data.view.key(place);
        if let (Purpose::Watch, Some(client)) = (data.purpose, client) {
            return self.watches.watch(client, std::iter::once((name, data.view.expiry(name))));
        }
        if data.view.is_over(place) {
            self.ends.note_due(std::iter::once(name), self.now_ms);
        }
        if let Some((name, expiry)) = data.view.changed(place) {
            if data.purpose != Purpose::Expire {
                self.watches.touch(name);
            }
            self.ends.note(name, expiry);
        }
        true
    }
}
