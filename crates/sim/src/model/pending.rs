//! Changes a target took that a power cut may undo, in the order in which it took them.
//!
//! Deliberately not here: what changes mean, and which of them depend on others.

use ocssd_lightnvm::Tag;
use ocssd_lightnvm::interface::Durability;
use std::collections::BTreeMap;

/// One change.
#[derive(Clone, Debug)]
pub struct Taken<C> {
    /// What changes.
    pub change: C,
    /// It survives every power cut from now on.
    pub is_durable: bool,
    /// How many were taken before.
    pub number: u64,
    tag: Tag,
    is_answered: bool,
    at_reply: bool,
}

/// All changes that are not part of the durable image.
#[derive(Clone, Debug)]
pub struct Pending<C> {
    changes: Vec<Taken<C>>,
    /// Of every flush that is outstanding: the changes answered when it was taken.
    flushes: BTreeMap<Tag, Vec<u64>>,
    next: u64,
}

impl<C> Taken<C> {
    /// It is of the request of this tag, which is not answered yet.
    #[must_use]
    pub fn is_of(&self, tag: Tag) -> bool {
        self.tag == tag && !self.is_answered
    }
}

impl<C> Default for Pending<C> {
    fn default() -> Self {
        Self { changes: Vec::new(), flushes: BTreeMap::new(), next: 0 }
    }
}

impl<C> Pending<C> {
    /// A change was taken.
    pub fn take(&mut self, tag: Tag, change: C, durability: Durability) {
        let at_reply = durability == Durability::AtReply;
        let number = self.next;
        self.next += 1;
        self.changes.push(Taken { change, is_durable: false, number, tag, is_answered: false, at_reply });
    }

    /// The number the next change will have.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// A flush was taken.
    pub fn take_flush(&mut self, tag: Tag) {
        let answered = self.changes.iter().filter(|taken| taken.is_answered).map(|taken| taken.number);
        self.flushes.insert(tag, answered.collect());
    }

    /// A change or a flush succeeded.
    pub fn answered(&mut self, tag: Tag) {
        for taken in self.changes.iter_mut().filter(|taken| taken.is_of(tag)) {
            taken.is_answered = true;
            taken.is_durable |= taken.at_reply;
        }
        if let Some(covered) = self.flushes.remove(&tag) {
            for taken in &mut self.changes {
                taken.is_durable |= covered.binary_search(&taken.number).is_ok();
            }
        }
    }

    /// Makes a change durable if a later one is that depends on it.
    pub fn spread(&mut self, depends: impl Fn(&C, &C) -> bool) {
        for later in
            (0..self.changes.len()).rev().filter(|&index| self.changes[index].is_durable).collect::<Vec<_>>()
        {
            let (before, rest) = self.changes.split_at_mut(later);
            for earlier in before.iter_mut().filter(|earlier| !earlier.is_durable) {
                earlier.is_durable = depends(&rest[0].change, &earlier.change);
            }
        }
    }

    /// Removes the durable changes before which all are durable, in order.
    pub fn take_durable(&mut self) -> Vec<C> {
        let count = self.changes.iter().take_while(|taken| taken.is_durable).count();
        self.changes.drain(..count).map(|taken| taken.change).collect()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Taken<C>> + Clone {
        self.changes.iter()
    }

    /// All of them, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Taken<C>> {
        self.changes.iter_mut()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.flushes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(pending: &Pending<u32>) -> Vec<u32> {
        pending.iter().filter(|taken| taken.is_durable).map(|taken| taken.change).collect()
    }

    #[test]
    fn a_flush_covers_what_was_answered_when_it_was_taken() {
        let mut pending = Pending::default();
        for change in 0..4 {
            pending.take(Tag(change), change, Durability::AtFlush);
        }
        [0, 2].into_iter().for_each(|tag| pending.answered(Tag(tag)));
        pending.take_flush(Tag(9));
        pending.answered(Tag(1));
        assert_eq!(durable(&pending), [0; 0]);
        pending.answered(Tag(9));
        assert_eq!(durable(&pending), [0, 2], "1 was answered after the flush was taken");
        assert_eq!((pending.take_durable(), pending.len()), (vec![0], 3));
    }

    #[test]
    fn a_change_can_be_durable_at_its_reply_and_a_tag_be_used_again() {
        let mut pending = Pending::default();
        pending.take(Tag(1), 10, Durability::AtReply);
        assert_eq!(durable(&pending), [0; 0]);
        pending.answered(Tag(1));
        pending.take(Tag(1), 11, Durability::AtReply);
        assert_eq!(durable(&pending), [10]);
    }

    #[test]
    fn durability_spreads_to_what_a_change_depends_on() {
        let mut pending = Pending::default();
        for change in 0..6 {
            let durability = if change == 4 { Durability::AtReply } else { Durability::AtFlush };
            pending.take(Tag(change), change, durability);
        }
        pending.answered(Tag(4));
        pending.spread(|later, earlier| later % 2 == earlier % 2);
        assert_eq!(durable(&pending), [0, 2, 4]);
    }
}
