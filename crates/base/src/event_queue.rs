//! Future events in time order, equal times first in, first out.
//!
//! A binary heap on one 128-bit key (time, then sequence number), so that a comparison is one instruction pair and ties
//! can never depend on the heap's shape. Deliberately not here: cancelling an event. Owners keep a generation and ignore
//! what is stale.

use crate::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
struct Entry<T> {
    key: u128,
    event: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A queue of events due at known times.
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    sequence: u64,
}

impl<T> EventQueue<T> {
    /// Room for `capacity` events without allocation; more are possible.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(capacity), sequence: 0 }
    }

    /// Adds `event`, due at `at`. Cost: O(log n).
    pub fn push(&mut self, at: Nanos, event: T) {
        let key = (u128::from(at.0) << 64) | u128::from(self.sequence);
        self.sequence += 1;
        self.heap.push(Reverse(Entry { key, event }));
    }

    /// When the earliest event is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(entry)| time_of(entry.key))
    }

    /// Takes the earliest event if it is due at `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.deadline()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (time_of(entry.key), entry.event))
    }

    /// Forgets every event.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// How many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

fn time_of(key: u128) -> Nanos {
    Nanos(u64::try_from(key >> 64).expect("the high half of a 128-bit key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    #[test]
    fn events_come_in_time_order_and_ties_in_arrival_order() {
        let mut queue = EventQueue::with_capacity(4);
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.push(Nanos(at), name);
        }
        assert_eq!(queue.deadline(), Some(Nanos(1)));
        assert_eq!(queue.pop_due(Nanos(0)), None);
        let order: Vec<char> = std::iter::from_fn(|| queue.pop_due(Nanos(9))).map(|(_, c)| c).collect();
        assert_eq!(order, ['a', 'b', 'c', 'd']);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_random_load_agrees_with_a_stable_sort() {
        let mut prng = Prng::new(11);
        let mut queue = EventQueue::with_capacity(0);
        let mut model: Vec<(Nanos, u32)> = Vec::new();
        for event in 0..500 {
            let at = Nanos(prng.below(40));
            queue.push(at, event);
            model.push((at, event));
        }
        model.sort_by_key(|&(at, _)| at);
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop_due(Nanos::MAX)).collect();
        assert_eq!(popped, model, "seed 11");
    }
}
