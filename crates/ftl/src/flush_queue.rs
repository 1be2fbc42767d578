//! Who waits for durability, and what may be let go of once it is there: requests in order, each for everything up to a
//! sequence number, and one barrier at a time that answers all whose writes are done.
//!
//! The owner says when a barrier can be sent and tells how it ended. Deliberately not here: commands, replies, closing what is
//! not full so that it is written.

use crate::tag::Sequence;
use ocssd_base::{Ring, SlabKey};

/// What a barrier that ended brings. If it failed, nothing of it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierEnd<F> {
    /// Requests to be answered, in the order in which they came.
    pub answered: Vec<SlabKey>,
    /// What may be let go of.
    pub freed: Vec<F>,
}

/// Requests that wait for durability; `F` is what else waits for a barrier.
#[derive(Clone, Debug)]
pub struct FlushQueue<F> {
    /// Requests and the newest block each waits for, oldest first.
    waiting: Ring<(Sequence, SlabKey)>,
    /// All of them wait for at least this.
    least: Sequence,
    /// Requests the next barrier answers, or the one in flight.
    answered: Vec<SlabKey>,
    /// What it lets go.
    freed: Vec<F>,
    is_in_flight: bool,
}

impl<F> FlushQueue<F> {
    /// A queue with room for so many requests.
    #[must_use]
    pub fn new(requests: usize) -> Self {
        let (answered, freed) = (Vec::new(), Vec::new());
        Self { waiting: Ring::new(requests), least: Sequence(0), answered, freed, is_in_flight: false }
    }

    /// A request waits for everything up to `newest`.
    ///
    /// # Panics
    /// If it waits for less than the one before, or there is no room.
    pub fn wait(&mut self, newest: Sequence, key: SlabKey) {
        let before = self.waiting.iter().next_back().map_or(Sequence(0), |&(before, _)| before);
        assert!(before <= newest, "a flush waits for {}, the one before for {}", newest.0, before.0);
        self.waiting.push((newest, key)).expect("there are as many places as requests");
    }

    /// Whoever waits now waits for this block, too: one that was written before and is written again.
    pub fn raise(&mut self, sequence: Sequence) {
        assert!(self.least <= sequence, "flushes waited for {} already", self.least.0);
        if !self.waiting.is_empty() {
            self.least = sequence;
        }
    }

    /// The newest block that anybody waits for.
    #[must_use]
    pub fn newest(&self) -> Option<Sequence> {
        self.waiting.iter().next_back().map(|&(newest, _)| newest.max(self.least))
    }

    /// True if somebody was promised that a block of this age will be durable.
    #[must_use]
    pub fn covers(&self, sequence: Sequence) -> bool {
        self.newest().is_some_and(|newest| newest >= sequence)
    }

    /// True if nobody waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_in_flight
    }

    /// True while a barrier is in flight.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        self.is_in_flight
    }

    /// What waits for a barrier, or for the end of the one in flight.
    #[must_use]
    pub fn freed(&self) -> &[F] {
        &self.freed
    }

    /// More waits for the next barrier.
    ///
    /// # Panics
    /// If one is in flight, which does not cover it.
    pub fn free(&mut self, more: impl IntoIterator<Item = F>) {
        assert!(!self.is_in_flight, "the barrier in flight does not make that durable");
        self.freed.extend(more);
    }

    /// Gives the next barrier those in front of whom `is_written` is true: that nothing up to a block waits to be written. It is
    /// told how many are before them, too.
    ///
    /// # Panics
    /// If a barrier is in flight, which does not cover them.
    pub fn gather(&mut self, is_written: impl Fn(Sequence, usize) -> bool) {
        assert!(!self.is_in_flight, "the barrier in flight does not answer who comes now");
        while let Some(&(newest, key)) = self.waiting.front() {
            if !is_written(newest.max(self.least), self.answered.len()) {
                return;
            }
            self.waiting.pop();
            self.answered.push(key);
        }
    }

    /// True if a barrier would answer somebody or let something go.
    #[must_use]
    pub fn wants_barrier(&self) -> bool {
        let has_any = !self.answered.is_empty() || !self.freed.is_empty();
        has_any && !self.is_in_flight
    }

    /// The barrier goes out.
    ///
    /// # Panics
    /// If one is in flight.
    pub fn sent(&mut self) {
        assert!(!self.is_in_flight, "two barriers are in flight");
        self.is_in_flight = true;
    }

    /// The barrier ended.
    ///
    /// # Panics
    /// If none was in flight.
    pub fn ended(&mut self) -> BarrierEnd<F> {
        assert!(self.is_in_flight, "a barrier ended that was not sent");
        self.is_in_flight = false;
        BarrierEnd { answered: std::mem::take(&mut self.answered), freed: std::mem::take(&mut self.freed) }
    }

    /// The oldest that waits is given up: what it waits for will not be written.
    pub fn give_up(&mut self) -> Option<SlabKey> {
        self.waiting.pop().map(|(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeSet;

    /// Everything in lists: who waits and for what, and blocks that are not written.
    #[derive(Default)]
    struct Naive {
        waiting: Vec<(u64, SlabKey)>,
        unwritten: BTreeSet<u64>,
        due: Vec<SlabKey>,
        freed: Vec<u64>,
        in_flight: bool,
    }

    impl Naive {
        fn is_written(&self, newest: u64) -> bool {
            self.unwritten.first().is_none_or(|&oldest| oldest > newest)
        }

        fn gather(&mut self) {
            while self.waiting.first().is_some_and(|&(newest, _)| self.is_written(newest)) {
                self.due.push(self.waiting.remove(0).1);
            }
        }
    }

    fn check_seed(seed: u64) {
        let mut prng = Prng::new(seed);
        let (mut queue, mut naive) = (FlushQueue::<u64>::new(1000), Naive::default());
        let (mut sequence, mut keys) = (0, 0);
        for _ in 0..400 {
            match prng.below(8) {
                0 | 1 => {
                    sequence += 1;
                    naive.unwritten.insert(sequence);
                }
                2 => {
                    let which = prng.below(1 + sequence);
                    naive.unwritten.remove(&which);
                }
                3 => {
                    keys += 1;
                    queue.wait(Sequence(sequence), SlabKey(keys));
                    naive.waiting.push((sequence, SlabKey(keys)));
                }
                4 => {
                    // A block is written again, under a new number.
                    sequence += 1;
                    naive.unwritten.insert(sequence);
                    queue.raise(Sequence(sequence));
                    naive.waiting.iter_mut().for_each(|(newest, _)| *newest = sequence);
                }
                5 | 6 if !naive.in_flight => {
                    queue.gather(|newest, _| naive.is_written(newest.0));
                    naive.gather();
                    if prng.below(3) == 0 {
                        queue.free([sequence]);
                        naive.freed.push(sequence);
                    }
                    let wants = !(naive.due.is_empty() && naive.freed.is_empty());
                    assert_eq!(queue.wants_barrier(), wants, "seed {seed}");
                    if wants {
                        queue.sent();
                        naive.in_flight = true;
                    }
                }
                _ if naive.in_flight => {
                    let end = queue.ended();
                    naive.in_flight = false;
                    let expected = (std::mem::take(&mut naive.due), std::mem::take(&mut naive.freed));
                    assert_eq!((end.answered, end.freed), expected, "seed {seed}");
                }
                _ => {}
            }
            let newest = naive.waiting.last().map(|&(newest, _)| Sequence(newest));
            assert_eq!(queue.newest(), newest, "seed {seed}");
            assert_eq!(queue.covers(Sequence(sequence)), newest.is_some_and(|newest| newest.0 >= sequence));
            assert_eq!(queue.freed(), naive.freed, "seed {seed}");
            assert_eq!(queue.is_idle(), naive.waiting.is_empty() && !naive.in_flight, "seed {seed}");
        }
        let left: Vec<SlabKey> = std::iter::from_fn(|| queue.give_up()).collect();
        assert!(left.iter().eq(naive.waiting.iter().map(|(_, key)| key)), "seed {seed}: somebody was lost");
    }

    #[test]
    fn a_barrier_answers_those_whose_writes_are_done_in_order_and_nobody_else() {
        (0..200).for_each(check_seed);
    }

    #[test]
    fn an_owner_may_let_one_go_along_with_another() {
        let mut queue = FlushQueue::<()>::new(4);
        (1..4).for_each(|key| queue.wait(Sequence(key.into()), SlabKey(key)));
        queue.gather(|newest, before| newest == Sequence(1) || before > 0);
        assert!(queue.wants_barrier());
        queue.sent();
        assert!(!queue.wants_barrier() && queue.is_in_flight());
        assert_eq!(queue.ended().answered, [1, 2, 3].map(SlabKey));
    }
}
