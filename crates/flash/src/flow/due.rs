//! A queue of commands whose times never fall.

use ocssd_base::{Nanos, SlabKey};
use std::collections::VecDeque;

/// Commands with the times at which something happens to them, earliest first.
#[derive(Clone, Debug)]
pub(super) struct Due {
    queue: VecDeque<(Nanos, SlabKey)>,
    /// The time of the first: it is asked for far more often than the queue changes.
    first: Nanos,
}

impl Due {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { queue: VecDeque::with_capacity(capacity), first: Nanos::MAX }
    }

    /// When the first is due; [`Nanos::MAX`] if there is none.
    pub(super) const fn first(&self) -> Nanos {
        self.first
    }

    pub(super) fn push(&mut self, at: Nanos, key: SlabKey) {
        self.first = self.first.min(at);
        self.queue.push_back((at, key));
    }

    pub(super) fn pop(&mut self) -> Option<(Nanos, SlabKey)> {
        let first = self.queue.pop_front();
        self.first = self.queue.front().map_or(Nanos::MAX, |&(at, _)| at);
        first
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.first = Nanos::MAX;
    }

    /// Asserts that times never fall.
    pub(super) fn check(&self) {
        assert!(self.queue.iter().map(|&(at, _)| at).is_sorted(), "times in a queue fall");
        let first = self.queue.front().map_or(Nanos::MAX, |&(at, _)| at);
        assert_eq!(first, self.first, "a queue is due at another time than its first entry");
    }
}
