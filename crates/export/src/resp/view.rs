//! What a command, or a transaction of several, sees of its keys, and what it makes of them.
//!
//! Before a command runs, its keys have been read as far as it asks ([`Fetch`]); it then runs at once, on the view alone, and
//! afterwards what changed is stored as one batch. So every command, and every EXEC, happens whole or not at all. Deliberately not
//! here: reading, storing, and who may see keys at the same time (`locks`).

use super::stored::{self, Expiry, HEAD_BYTES, Stored};
use crate::shared_bytes::SharedBytes;

/// How much of its keys a command reads before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fetch {
    /// Nothing: it replaces what is there.
    Nothing,
    /// Whether they exist, how long they are, and when they end.
    Head,
    /// All.
    Whole,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    /// Nothing.
    Unread,
    /// It does not exist.
    Absent,
    /// It exists, and has so many bytes.
    Head { length: usize, expiry: Expiry },
    /// All.
    Whole(Stored),
}

/// One key.
#[derive(Clone, Debug)]
struct Slot {
    key: Vec<u8>,
    known: Known,
    /// How much of it is to be read.
    fetch: Fetch,
    /// Something may be stored under it: also what has ended.
    may_be_stored: bool,
    /// What is stored under it is over.
    is_over: bool,
    changed: bool,
}

impl Slot {
    const fn new(key: Vec<u8>, fetch: Fetch) -> Self {
        Self { key, known: Known::Unread, fetch, may_be_stored: true, is_over: false, changed: false }
    }

    /// What became of it is to be stored.
    const fn is_to_be_stored(&self) -> bool {
        self.changed && (self.may_be_stored || !matches!(self.known, Known::Absent))
    }
}

/// What is stored for a key, or `None` if the key is not to exist.
pub type Change = (Vec<u8>, Option<Stored>);

/// The keys of a command.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Ascending by key.
    slots: Vec<Slot>,
    /// So many of them are to be stored.
    changes: usize,
}

impl View {
    /// A view of these keys, none of which is read yet; one named twice is read as far as either asks.
    #[must_use]
    pub fn new(keys: impl Iterator<Item = (Vec<u8>, Fetch)>) -> Self {
        let mut slots: Vec<Slot> = keys.map(|(key, fetch)| Slot::new(key, fetch)).collect();
        if slots.len() > 1 {
            slots.sort_by(|one, other| (&one.key, other.fetch).cmp(&(&other.key, one.fetch)));
            slots.dedup_by(|later, first| later.key == first.key);
        }
        Self { slots, changes: 0 }
    }

    /// Adds a key behind all others.
    ///
    /// # Panics
    /// If it belongs before one.
    pub fn push(&mut self, key: Vec<u8>, fetch: Fetch) {
        assert!(self.slots.last().is_none_or(|last| last.key < key), "keys come in their order");
        self.slots.push(Slot::new(key, fetch));
    }

    /// Takes the last key away; returns it.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.slots.pop().map(|slot| slot.key)
    }

    /// How many keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// The key at a place, below [`Self::len`], and how much of it is to be read.
    #[must_use]
    pub fn key(&self, place: usize) -> (&[u8], Fetch) {
        let slot = &self.slots[place];
        (&slot.key, slot.fetch)
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().map(|slot| slot.key.as_slice())
    }

    /// Nothing is stored under the key at a place.
    pub fn on_absent(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        (slot.known, slot.may_be_stored) = (Known::Absent, false);
    }

    /// What is stored under the key at a place: its beginning, of `total` bytes. False if this front did not store it.
    #[must_use]
    pub fn on_stored(&mut self, place: usize, stored: Vec<u8>, total: usize, now_ms: i64) -> bool {
        let slot = &mut self.slots[place];
        let Some(expiry) = stored::expiry(&stored) else { return false };
        slot.known = if expiry.is_over(now_ms) {
            slot.is_over = true;
            Known::Absent
        } else if slot.fetch == Fetch::Whole {
            assert_eq!(stored.len(), total, "a value was read in part");
            let value = SharedBytes::from(stored).behind(HEAD_BYTES);
            Known::Whole(Stored { expiry, value })
        } else {
            Known::Head { length: total - HEAD_BYTES, expiry }
        };
        true
    }

    /// Something is stored under the key at a place that is over.
    #[must_use]
    pub fn is_over(&self, place: usize) -> bool {
        self.slots[place].is_over
    }

    /// Keys under which something is stored that is over.
    pub fn over(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().filter(|slot| slot.is_over).map(|slot| slot.key.as_slice())
    }

    /// Where a key is.
    ///
    /// # Panics
    /// If it is none of them.
    #[must_use]
    pub fn place(&self, key: &[u8]) -> usize {
        let found = self.slots.binary_search_by(|slot| slot.key.as_slice().cmp(key));
        found.expect("a command touches the keys that its table entry names")
    }

    fn slot(&self, key: &[u8]) -> &Slot {
        let slot = &self.slots[self.place(key)];
        assert!(slot.known != Known::Unread, "a command looked at a key it did not ask to read");
        slot
    }

    /// The key exists.
    #[must_use]
    pub fn exists(&self, key: &[u8]) -> bool {
        self.slot(key).known != Known::Absent
    }

    /// Bytes of the value, if the key exists.
    #[must_use]
    pub fn length(&self, key: &[u8]) -> Option<usize> {
        match &self.slot(key).known {
            Known::Head { length, .. } => Some(*length),
            Known::Whole(stored) => Some(stored.value.len()),
            Known::Unread | Known::Absent => None,
        }
    }

    /// When it ends, if the key exists.
    #[must_use]
    pub fn expiry(&self, key: &[u8]) -> Option<Expiry> {
        match &self.slot(key).known {
            Known::Head { expiry, .. } | Known::Whole(Stored { expiry, .. }) => Some(*expiry),
            Known::Unread | Known::Absent => None,
        }
    }

    /// Its value, if the key exists.
    ///
    /// # Panics
    /// If only its head was read.
    #[must_use]
    pub fn value(&self, key: &[u8]) -> Option<&SharedBytes> {
        match &self.slot(key).known {
            Known::Whole(stored) => Some(&stored.value),
            Known::Head { .. } => {
                unreachable!("a command looked at a value of which it asked to read the head")
            }
            Known::Unread | Known::Absent => None,
        }
    }

    /// The key has this value from now on.
    pub fn store(&mut self, key: &[u8], value: impl Into<SharedBytes>, expiry: Expiry) {
        self.change(key, Known::Whole(Stored { expiry, value: value.into() }));
    }

    /// The key has this value until then; if that is over, it does not exist from now on.
    pub fn store_until(&mut self, key: &[u8], value: impl Into<SharedBytes>, expiry: Expiry, now_ms: i64) {
        if expiry.is_over(now_ms) {
            self.change(key, Known::Absent);
        } else {
            self.store(key, value, expiry);
        }
    }

    /// The key has this value from now on, and ends when it did before, if it existed.
    pub fn replace(&mut self, key: &[u8], value: impl Into<SharedBytes>) {
        let expiry = self.expiry(key).unwrap_or_default();
        self.store(key, value, expiry);
    }

    /// The key ends then from now on; it exists.
    pub fn expire(&mut self, key: &[u8], expiry: Expiry) {
        let value = self.value(key).expect("only keys that exist are given an end").clone();
        self.store(key, value, expiry);
    }

    /// The key does not exist from now on. True if it did.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let existed = self.exists(key);
        if existed || self.slot(key).may_be_stored {
            self.change(key, Known::Absent);
        }
        existed
    }

    fn change(&mut self, key: &[u8], known: Known) {
        let place = self.place(key);
        let slot = &mut self.slots[place];
        self.changes -= usize::from(slot.is_to_be_stored());
        (slot.known, slot.changed, slot.is_over) = (known, true, false);
        self.changes += usize::from(slot.is_to_be_stored());
    }

    /// How many keys are to be stored or deleted.
    #[must_use]
    pub const fn changes(&self) -> usize {
        self.changes
    }

    /// The key at a place, and when it ends if it exists now; `None` if it did not change.
    #[must_use]
    pub fn changed(&self, place: usize) -> Option<(&[u8], Option<Expiry>)> {
        let slot = &self.slots[place];
        let expiry = if let Known::Whole(Stored { expiry, .. }) = slot.known { Some(expiry) } else { None };
        slot.changed.then_some((&slot.key, expiry))
    }

    /// Takes what is to be stored under the key at a place; `None` if that is as it was.
    pub fn take_change(&mut self, place: usize) -> Option<Change> {
        let slot = &mut self.slots[place];
        if !slot.is_to_be_stored() {
            return None;
        }
        self.changes -= 1;
        slot.changed = false;
        let known = std::mem::replace(&mut slot.known, Known::Unread);
        Some((slot.key.clone(), if let Known::Whole(stored) = known { Some(stored) } else { None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(keys: &[(&str, Fetch)]) -> View {
        View::new(keys.iter().map(|&(key, fetch)| (key.as_bytes().to_vec(), fetch)))
    }

    fn stored(value: &[u8], expiry: Expiry) -> Stored {
        Stored { expiry, value: value.into() }
    }

    #[test]
    fn a_key_named_twice_is_read_once_as_far_as_either_asks() {
        let view = view(&[("b", Fetch::Head), ("a", Fetch::Nothing), ("b", Fetch::Whole)]);
        assert_eq!(view.len(), 2);
        assert_eq!((view.key(0), view.key(1)), ((&b"a"[..], Fetch::Nothing), (&b"b"[..], Fetch::Whole)));
    }

    #[test]
    fn what_is_over_does_not_exist_and_is_taken_away_by_who_deletes_it() {
        let mut view = view(&[("a", Fetch::Head)]);
        assert!(view.on_stored(0, stored(b"xy", Expiry::At(5)).to_vec(), 12, 5));
        assert!(!view.exists(b"a") && view.over().count() == 1);
        assert!(!view.delete(b"a"), "it did not exist");
        assert_eq!((view.changes(), view.take_change(0)), (1, Some((b"a".to_vec(), None))));
    }

    #[test]
    fn changes_are_what_the_last_command_left() {
        let mut view = view(&[("a", Fetch::Whole), ("b", Fetch::Whole)]);
        view.on_absent(0);
        assert!(view.on_stored(1, stored(b"1", Expiry::At(9)).to_vec(), 11, 5));
        view.store(b"a", &b"x"[..], Expiry::Never);
        assert!(view.delete(b"a") && !view.exists(b"a"));
        view.replace(b"b", &b"22"[..]);
        assert_eq!((view.value(b"b").map(|value| &**value), view.length(b"b")), (Some(&b"22"[..]), Some(2)));
        assert_eq!(view.changed(0), Some((&b"a"[..], None)));
        assert_eq!(view.changed(1), Some((&b"b"[..], Some(Expiry::At(9)))));
        assert_eq!((view.changes(), view.take_change(0)), (1, None), "it is as it was stored");
        assert_eq!(view.take_change(1), Some((b"b".to_vec(), Some(stored(b"22", Expiry::At(9))))));
        assert_eq!(view.changes(), 0);
    }

    #[test]
    fn what_somebody_else_stored_is_told() {
        assert!(!view(&[("a", Fetch::Head)]).on_stored(0, b"abc".to_vec(), 3, 0));
    }
}
