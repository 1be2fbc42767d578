//! When keys end, as far as is known, and the removal of those that have ended.
//!
//! Values say themselves when they end, and who reads one that is over sees that. So what is noted here is a hint, bounded in
//! memory: keys that end soon. After a start, and when the notes were full, all keys are looked at once, a page at a time, to find
//! those that end. Redis looks at keys at random instead.

use super::super::reply::{Reply, Version};
use super::super::stored::Expiry;
use super::data::Data;
use super::walk::Walk;
use super::{Database, Task, Work};
use std::collections::{BTreeMap, BTreeSet};

/// Keys whose ends are noted (chosen: 20 MiB with long keys).
const NOTES_MAX: usize = 1 << 16;

/// Tasks of the database's own at once.
pub(super) const TASKS_MAX: usize = 16;

/// Keys that one of them removes (Redis looks at 20 in a step).
const KEYS_OF_TASK: usize = 20;

/// How far the look at all keys is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Survey {
    /// It begins behind this key; empty at first.
    From(Vec<u8>),
    /// A page is being looked at, and behind it this is next.
    Looking(Vec<u8>),
    /// All ends are noted, or were.
    #[default]
    Over,
}

/// What is known.
#[derive(Debug)]
pub(super) struct Ends {
    by_key: BTreeMap<Vec<u8>, i64>,
    by_time: BTreeSet<(i64, Vec<u8>)>,
    /// An end was not noted for lack of room.
    is_incomplete: bool,
    survey: Survey,
    removing: usize,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            by_time: BTreeSet::new(),
            is_incomplete: false,
            survey: Survey::From(Vec::new()),
            removing: 0,
        }
    }
}

impl Ends {
    /// A key ends then from now on; `None` if it does not exist.
    pub(super) fn note(&mut self, key: &[u8], expiry: Option<Expiry>) {
        if self.by_key.is_empty() && !matches!(expiry, Some(Expiry::At(_))) {
            return;
        }
        if let Some(before) = self.by_key.remove(key) {
            self.by_time.remove(&(before, key.to_vec()));
        }
        let Some(Expiry::At(at)) = expiry else { return };
        self.by_key.insert(key.to_vec(), at);
        self.by_time.insert((at, key.to_vec()));
        if self.by_key.len() > NOTES_MAX {
            // Those that end last are found again later.
            let (_, key) = self.by_time.pop_last().expect("there are many");
            self.by_key.remove(&key);
            self.is_incomplete = true;
        }
    }

    /// Somebody saw that these keys are over.
    pub(super) fn note_due<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>, now_ms: i64) {
        for key in keys {
            if !self.by_key.contains_key(key) {
                self.note(key, Some(Expiry::At(now_ms)));
            }
        }
    }

    /// The key is known to be over.
    pub(super) fn is_over(&self, key: &[u8], now_ms: i64) -> bool {
        self.by_key.get(key).is_some_and(|at| *at <= now_ms)
    }

    /// All keys are gone.
    pub(super) fn clear(&mut self) {
        self.by_key.clear();
        self.by_time.clear();
        self.is_incomplete = false;
    }

    /// A task of the database's own has looked at its keys.
    pub(super) fn on_looked(&mut self, removes: bool) {
        if removes {
            self.removing -= 1;
        } else if let Survey::Looking(next) = &mut self.survey {
            self.survey = Survey::From(std::mem::take(next));
        }
    }

    /// The page that was asked for: keys behind those looked at. None, if that was the end.
    pub(super) fn on_page(&mut self, keys: &[Vec<u8>]) {
        self.survey = match keys.last() {
            Some(last) => Survey::Looking(last.clone()),
            None => Survey::Over,
        };
    }

    /// Keys that are over, to be removed together.
    fn poll_due(&mut self, now_ms: i64) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        while keys.len() < KEYS_OF_TASK && self.by_time.first().is_some_and(|(at, _)| *at <= now_ms) {
            let (_, key) = self.by_time.pop_first().expect("it was looked at");
            self.by_key.remove(&key);
            keys.push(key);
        }
        keys
    }
}

impl Database {
    /// It is this time now, milliseconds since 1970: keys that are over are removed.
    pub fn tick(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        while !self.settings.is_read_only && self.ends.removing < TASKS_MAX - 1 {
            let keys = self.ends.poll_due(now_ms);
            if keys.is_empty() {
                break;
            }
            self.ends.removing += 1;
            self.begin_own(Work::Data(Data::expire(keys)));
        }
        self.pump();
    }

    /// Goes on looking for keys that end, by one page; to be called a few times a second.
    pub fn survey(&mut self) {
        if self.ends.is_incomplete
            && self.ends.survey == Survey::Over
            && self.ends.by_key.len() < NOTES_MAX / 2
        {
            self.ends.is_incomplete = false;
            self.ends.survey = Survey::From(Vec::new());
        }
        if let Survey::From(from) = &mut self.ends.survey {
            let from = std::mem::take(from);
            self.ends.survey = Survey::Looking(Vec::new());
            self.begin_own(Work::Walk(Walk::survey(from)));
            self.pump();
        }
    }

    /// Something the database does by itself.
    pub(super) fn begin_own(&mut self, work: Work) {
        let (reply, reservation) = (Reply::new(Version::Two), self.budget.nothing());
        let key = self.insert(Task { client: None, reply, reservation, work });
        self.begin(key);
    }

    /// Everything is made durable, in the background.
    pub fn flush(&mut self) {
        if !std::mem::replace(&mut self.is_flushing, true) {
            self.begin_own(Work::Save);
        }
    }

    /// A page of all keys, of a look for those that end.
    pub(super) fn on_survey_page(&mut self, keys: Vec<Vec<u8>>) {
        self.ends.on_page(&keys);
        if !keys.is_empty() {
            self.begin_own(Work::Data(Data::note(keys)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_due_in_the_order_of_their_ends_and_a_later_end_replaces_an_earlier() {
        let mut ends = Ends::default();
        for (key, at) in [("a", 30), ("b", 10), ("c", 20), ("a", 5)] {
            ends.note(key.as_bytes(), Some(Expiry::At(at)));
        }
        ends.note(b"c", Some(Expiry::Never));
        assert!(ends.is_over(b"a", 5) && !ends.is_over(b"b", 9) && !ends.is_over(b"c", 99));
        assert_eq!(ends.poll_due(10), [b"a".to_vec(), b"b".to_vec()]);
        assert!(ends.by_key.is_empty() && ends.by_time.is_empty());
    }

    #[test]
    fn when_notes_are_full_those_that_end_last_are_forgotten_and_looked_for_again() {
        let mut ends = Ends::default();
        for at in 0..=i64::try_from(NOTES_MAX).unwrap() {
            ends.note(&at.to_le_bytes(), Some(Expiry::At(at)));
        }
        assert_eq!((ends.by_key.len(), ends.by_time.len(), ends.is_incomplete), (NOTES_MAX, NOTES_MAX, true));
        assert!(ends.by_time.last().is_some_and(|(at, _)| usize::try_from(*at) == Ok(NOTES_MAX - 1)));
    }
}
