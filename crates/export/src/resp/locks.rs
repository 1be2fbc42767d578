//! Who may look at keys, and change them, while a command of several steps is under way.
//!
//! A command asks for all its keys at once and waits in each one's line; since lines are joined together, in one order, nobody
//! waits in a circle. Those who only look share a key, and so do those who replace values without looking, for the target carries
//! requests out in order: they hold a key only so that nobody looks before what they did is durable. Deliberately not here: what
//! the commands are.

use std::collections::{HashMap, VecDeque};

/// Who holds or waits: a command under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub u32);

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The lines at all keys that somebody holds.
#[derive(Debug, Default)]
pub struct Locks {
    // Never walked over, so its order does not matter.
    lines: HashMap<Vec<u8>, Line>,
}

impl Locks {
    /// Somebody holds the key or waits for it.
    #[must_use]
    pub fn is_locked(&self, key: &[u8]) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(key)
    }

    /// Nobody holds the key or waits for it but those who replace it.
    #[must_use]
    pub fn is_replaceable(&self, key: &[u8]) -> bool {
        self.lines.get(key).is_none_or(|line| line.waiting.iter().all(|(_, mode)| *mode == Mode::Replacing))
    }

    /// Joins the lines at these keys, each named once; returns how many of them it has to wait for. Who replaces has asked for
    /// each whether it may ([`Self::is_replaceable`]): if it waited for one, another could pass it at the next.
    pub fn enter<'a>(&mut self, holder: Holder, keys: impl Iterator<Item = (&'a [u8], Mode)>) -> usize {
        let mut missing = 0;
        for (key, mode) in keys {
            let line = match self.lines.get_mut(key) {
                Some(line) => line,
                None => self.lines.entry(key.to_vec()).or_default(),
            };
            line.waiting.push_back((holder, mode));
            let is_next = line.holding + 1 == line.waiting.len();
            if !is_next || line.promote().is_none() {
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
