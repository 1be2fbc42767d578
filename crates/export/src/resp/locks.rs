//! Who may look at keys, and change them, while a command of several steps is under way.
//!
//! A command asks for all its keys at once and waits in each one's line; since lines are joined together, in one order, nobody
//! waits in a circle. Those who only look share a key, and so do those who replace values without looking, for the target carries
//! requests out in order: they hold a key only so that nobody looks before what they did is durable.
//!
//! Who asks for thousands of keys joins their lines some at a time, as if at once: whoever comes meanwhile and wants one of them
//! first lets it join there. Deliberately not here: what the commands are.

use super::view::Fetch;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Who holds or waits: a command under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub u32);

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Looking; others may look too.
    Shared,
    /// Replacing, without a look, by one request to the target; others may do that too. It never waits ([`Locks::is_replaceable`]).
    Replacing,
    /// Changing.
    Exclusive,
}

/// The line at one key.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<(Holder, Mode)>,
    /// So many of the first hold the key.
    holding: usize,
}

impl Line {
    /// One more holds the key if it may; returns it.
    fn promote(&mut self) -> Option<Holder> {
        let &(next, mode) = self.waiting.get(self.holding)?;
        let may = match self.waiting.front() {
            _ if self.holding == 0 => true,
            Some((_, Mode::Shared)) => mode == Mode::Shared,
            Some((_, Mode::Replacing)) => mode == Mode::Replacing,
            _ => false,
        };
        may.then(|| {
            self.holding += 1;
            next
        })
    }
}

/// What somebody wants of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How much of it is read.
    pub fetch: Fetch,
    /// What for.
    pub mode: Mode,
    /// Its line is joined already.
    has_joined: bool,
}

impl Wanted {
    /// Nothing is joined yet.
    #[must_use]
    pub const fn new(fetch: Fetch, mode: Mode) -> Self {
        Self { fetch, mode, has_joined: false }
    }

    /// Somebody wants both of it.
    pub fn add(&mut self, other: Self) {
        (self.fetch, self.mode) = (self.fetch.max(other.fetch), self.mode.max(other.mode));
    }
}

/// Somebody who joins lines some at a time.
#[derive(Debug)]
struct Joining {
    holder: Holder,
    /// Keys that are left.
    wanted: BTreeMap<Vec<u8>, Wanted>,
    /// So many of those that were joined it waits for, or has waited for.
    missing: usize,
}

/// The lines at all keys that somebody holds.
#[derive(Debug, Default)]
pub struct Locks {
    // Never walked over, so its order does not matter.
    lines: HashMap<Vec<u8>, Line>,
    joining: Option<Joining>,
}

impl Locks {
    /// Somebody holds the key or waits for it.
    #[must_use]
    pub fn is_locked(&self, key: &[u8]) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(key)
            || self.joining.as_ref().is_some_and(|joining| joining.wanted.contains_key(key))
    }

    /// Nobody holds the key or waits for it but those who replace it.
    #[must_use]
    pub fn is_replaceable(&self, key: &[u8]) -> bool {
        self.lines.get(key).is_none_or(|line| line.waiting.iter().all(|(_, mode)| *mode == Mode::Replacing))
            && self.joining.as_ref().is_none_or(|joining| !joining.wanted.contains_key(key))
    }

    /// Somebody begins to join the lines at these keys, none of them to replace. Nobody else does just now
    /// ([`Self::is_joining`]).
    ///
    /// # Panics
    /// If somebody does.
    pub fn begin_joining(&mut self, holder: Holder, wanted: BTreeMap<Vec<u8>, Wanted>) {
        assert!(self.joining.is_none(), "two join lines some at a time");
        self.joining = Some(Joining { holder, wanted, missing: 0 });
    }

    /// Somebody joins lines some at a time.
    #[must_use]
    pub const fn is_joining(&self) -> bool {
        self.joining.is_some()
    }

    /// Who began joins at most `most` more lines, each of which is told to `joined`. Once those are all, returns how many of all it
    /// had to wait for; some of them it may hold by now.
    ///
    /// # Panics
    /// If nobody began.
    pub fn go_on_joining(&mut self, most: usize, mut joined: impl FnMut(Vec<u8>, Fetch)) -> Option<usize> {
        let mut joining = self.joining.take().expect("somebody began");
        for _ in 0..most {
            let Some((key, wanted)) = joining.wanted.pop_first() else { return Some(joining.missing) };
            if !wanted.has_joined {
                joining.missing += usize::from(!self.enter_one(joining.holder, &key, wanted.mode));
            }
            joined(key, wanted.fetch);
        }
        self.joining = Some(joining);
        None
    }

    /// Who joins lines some at a time joins that at this key, before somebody else does.
    fn let_joining_pass(&mut self, key: &[u8]) {
        let Some(mut joining) = self.joining.take() else { return };
        if let Some(wanted) = joining.wanted.get_mut(key)
            && !std::mem::replace(&mut wanted.has_joined, true)
        {
            let mode = wanted.mode;
            joining.missing += usize::from(!self.enter_one(joining.holder, key, mode));
        }
        self.joining = Some(joining);
    }

    /// Joins the line at one key. True if it holds the key.
    fn enter_one(&mut self, holder: Holder, key: &[u8], mode: Mode) -> bool {
        let line = match self.lines.get_mut(key) {
            Some(line) => line,
            None => self.lines.entry(key.to_vec()).or_default(),
        };
        line.waiting.push_back((holder, mode));
        let is_next = line.holding + 1 == line.waiting.len();
        is_next && line.promote().is_some()
    }

    /// Joins the lines at these keys, each named once; returns how many of them it has to wait for. Who replaces has asked for
    /// each whether it may ([`Self::is_replaceable`]): if it waited for one, another could pass it at the next.
    pub fn enter<'a>(&mut self, holder: Holder, keys: impl Iterator<Item = (&'a [u8], Mode)>) -> usize {
        let mut missing = 0;
        for (key, mode) in keys {
            self.let_joining_pass(key);
            if !self.enter_one(holder, key, mode) {
                assert!(mode != Mode::Replacing, "who replaces waits for others");
                missing += 1;
            }
        }
        missing
    }

    /// Leaves the lines at these keys, all of which it holds. Those who hold a key now that they waited for are added to `granted`,
    /// once for each key.
    ///
    /// # Panics
    /// If it does not hold one.
    pub fn leave<'a>(
        &mut self,
        holder: Holder,
        keys: impl Iterator<Item = &'a [u8]>,
        granted: &mut Vec<Holder>,
    ) {
        for key in keys {
            let line = self.lines.get_mut(key).expect("a key that is held has a line");
            let place = line.waiting.iter().take(line.holding).position(|(one, _)| *one == holder);
            line.waiting.remove(place.expect("only who holds a key leaves it"));
            line.holding -= 1;
            if line.waiting.is_empty() {
                self.lines.remove(key);
                continue;
            }
            granted.extend(std::iter::from_fn(|| line.promote()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(locks: &mut Locks, holder: u32, keys: &[(&str, Mode)]) -> usize {
        locks.enter(Holder(holder), keys.iter().map(|(key, mode)| (key.as_bytes(), *mode)))
    }

    fn leave(locks: &mut Locks, holder: u32, keys: &[&str]) -> Vec<u32> {
        let mut granted = Vec::new();
        locks.leave(Holder(holder), keys.iter().map(|key| key.as_bytes()), &mut granted);
        granted.iter().map(|holder| holder.0).collect::<Vec<u32>>()
    }

    #[test]
    fn those_who_look_share_and_those_who_change_wait_in_order() {
        use Mode::{Exclusive, Shared};
        let mut locks = Locks::default();
        assert_eq!(enter(&mut locks, 1, &[("a", Shared)]), 0);
        assert_eq!(enter(&mut locks, 2, &[("a", Shared), ("b", Exclusive)]), 0);
        assert_eq!(enter(&mut locks, 3, &[("a", Exclusive), ("b", Exclusive)]), 2);
        assert_eq!(enter(&mut locks, 4, &[("a", Shared)]), 1, "nobody passes one who waits to change");
        assert!(leave(&mut locks, 1, &["a"]).is_empty());
        assert_eq!(leave(&mut locks, 2, &["a", "b"]), [3, 3]);
        assert_eq!(leave(&mut locks, 3, &["a", "b"]), [4]);
        assert!(locks.is_locked(b"a") && !locks.is_locked(b"b"));
        assert!(leave(&mut locks, 4, &["a"]).is_empty());
        assert!(locks.lines.is_empty());
    }

    #[test]
    fn who_joins_some_at_a_time_is_before_all_who_come_meanwhile() {
        use Mode::{Exclusive, Shared};
        let mut locks = Locks::default();
        assert_eq!(enter(&mut locks, 1, &[("c", Exclusive)]), 0);
        let wanted = |mode| Wanted::new(Fetch::Head, mode);
        let keys = [("a", Shared), ("b", Exclusive), ("c", Shared), ("d", Shared)];
        let keys = keys.map(|(key, mode)| (key.as_bytes().to_vec(), wanted(mode)));
        locks.begin_joining(Holder(2), keys.into());
        let mut joined = Vec::new();
        assert_eq!(locks.go_on_joining(1, |key, _| joined.push(key)), None);
        assert!(locks.is_locked(b"d") && !locks.is_replaceable(b"d") && !locks.is_locked(b"e"));
        // It waits at d behind one who waits at c: had it not joined there first, that one would wait for it and it for that one.
        assert_eq!(enter(&mut locks, 3, &[("c", Exclusive), ("d", Exclusive)]), 2);
        assert_eq!(leave(&mut locks, 1, &["c"]), [2], "it holds what it has not come to by itself");
        assert_eq!(locks.go_on_joining(9, |key, _| joined.push(key)), Some(1));
        assert_eq!(joined, [b"a", b"b", b"c", b"d"]);
        assert!(!locks.is_joining());
        assert_eq!(leave(&mut locks, 2, &["a", "b", "c", "d"]), [3, 3]);
        assert!(leave(&mut locks, 3, &["c", "d"]).is_empty() && locks.lines.is_empty());
    }

    #[test]
    fn those_who_replace_share_until_somebody_waits_to_look() {
        use Mode::{Replacing, Shared};
        let mut locks = Locks::default();
        for holder in 1..3 {
            assert!(locks.is_replaceable(b"a"));
            assert_eq!(enter(&mut locks, holder, &[("a", Replacing)]), 0);
        }
        assert_eq!(enter(&mut locks, 3, &[("a", Shared)]), 1);
        assert!(!locks.is_replaceable(b"a") && locks.is_replaceable(b"b"));
        assert!(leave(&mut locks, 2, &["a"]).is_empty());
        assert_eq!(leave(&mut locks, 1, &["a"]), [3]);
        assert!(!locks.is_replaceable(b"a"), "somebody looks");
        assert!(leave(&mut locks, 3, &["a"]).is_empty() && locks.is_replaceable(b"a"));
    }

    #[test]
    fn all_who_look_come_in_together_once_the_one_who_changed_is_out() {
        use Mode::{Exclusive, Shared};
        let mut locks = Locks::default();
        enter(&mut locks, 1, &[("a", Exclusive)]);
        for holder in 2..5 {
            assert_eq!(enter(&mut locks, holder, &[("a", Shared)]), 1);
        }
        assert_eq!(enter(&mut locks, 5, &[("a", Exclusive)]), 1);
        assert_eq!(leave(&mut locks, 1, &["a"]), [2, 3, 4]);
    }
}
