//! Future events in time order, equal times first in, first out.
//!
//! Most events of a simulation are due a constant time after they are made: all page reads one time later, all transfers
//! another. Events of one such delay come in order already. So a queue holds a few *lanes*, each in order by itself: an
//! event goes to the end of the first lane whose last one is not later, and the earliest is one of the lanes' first. Only
//! what fits no lane goes into a binary heap. With as many lanes as there are delays nothing is ever sorted.
//!
//! The key is 128 bits (time, sequence number, and last the lane, so that the earliest key says where its event is). Ties
//! can never depend on where an event lies: no two have the same sequence number. Deliberately not here: cancelling an
//! event. Owners keep a generation and ignore what is stale.

use crate::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How many lanes: page reads, transfers in and out, programs, with one to spare (chosen; each costs a comparison).
const LANES: usize = 4;
/// What stands for the key of the earliest event where there is none.
const NEVER: u128 = u128::MAX;
/// Bits of a key that say which lane; [`LANES`] is the heap.
const LANE_BITS: u32 = 3;
const _: () = assert!(LANES < 1 << LANE_BITS, "the lanes and the heap have a number each");

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
    lanes: [VecDeque<Entry<T>>; LANES],
    rest: BinaryHeap<Reverse<Entry<T>>>,
    /// The key of each lane's first event and, last, of the heap's; [`NEVER`] if there is none.
    firsts: [u128; LANES + 1],
    /// The key of the last event of each lane; 0 if it is empty.
    lasts: [u128; LANES],
    /// The earliest key of all.
    next: u128,
    /// The sequence number of the next event, above the bits of the lane.
    sequence: u64,
}

impl<T> EventQueue<T> {
    /// Room for `capacity` events in each lane without allocation; more are possible.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            lanes: std::array::from_fn(|_| VecDeque::with_capacity(capacity)),
            rest: BinaryHeap::new(),
            firsts: [NEVER; LANES + 1],
            lasts: [0; LANES],
            next: NEVER,
            // An empty lane has a last key of 0: no event has that.
            sequence: 1 << LANE_BITS,
        }
    }

    /// Adds `event`, due at `at`. Cost: O(1) if a lane fits, else O(log n).
    #[inline(always)]
    pub fn push(&mut self, at: Nanos, event: T) {
        let bare = (u128::from(at.0) << 64) | u128::from(self.sequence);
        self.sequence += 1 << LANE_BITS;
        let lane = self.lasts.iter().position(|&last| last < bare).unwrap_or(LANES);
        let key = bare | u128::try_from(lane).expect("a small number");
        self.next = self.next.min(key);
        let entry = Entry { key, event };
        if lane == LANES {
            self.push_rest(entry);
        } else {
            // Behind others it is not the first; an empty lane has a last key of 0.
            if self.lasts[lane] == 0 {
                self.firsts[lane] = key;
            }
            self.lasts[lane] = key;
            self.lanes[lane].push_back(entry);
        }
    }

    /// When the earliest event is due. Cost: O(1).
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        (!is_never(self.next)).then(|| time_of(self.next))
    }

    /// As [`Self::deadline`]; [`Nanos::MAX`] if nothing waits.
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> Nanos {
        time_of(self.next)
    }

    /// Takes the earliest event if it is due at `now`.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if is_never(self.next) || time_of(self.next) > now {
            return None;
        }
        let lane = lane_of(self.next);
        let Entry { key, event } = if lane == LANES { self.pop_rest() } else { self.pop_lane(lane) };
        assert!(low(key) == low(self.next), "the earliest event is not where it should be");
        self.find_next();
        Some((time_of(key), event))
    }

    fn pop_lane(&mut self, lane: usize) -> Entry<T> {
        let queue = &mut self.lanes[lane];
        let first = queue.pop_front().expect("the lane of the earliest event has one");
        match queue.front() {
            Some(next) => self.firsts[lane] = next.key,
            // An empty lane takes any event again.
            None => (self.firsts[lane], self.lasts[lane]) = (NEVER, 0),
        }
        first
    }

    #[cold]
    fn push_rest(&mut self, entry: Entry<T>) {
        self.firsts[LANES] = self.firsts[LANES].min(entry.key);
        self.rest.push(Reverse(entry));
    }

    #[cold]
    fn pop_rest(&mut self) -> Entry<T> {
        let Reverse(first) = self.rest.pop().expect("the heap of the earliest event has one");
        self.firsts[LANES] = self.rest.peek().map_or(NEVER, |Reverse(next)| next.key);
        first
    }

    /// Finds the earliest of the first events. Without branches: which lane it is, nobody can predict. But events of two
    /// delays, as reads have, fill two lanes and leave the others empty for long.
    fn find_next(&mut self) {
        let earlier = |a: u128, b: u128| std::hint::select_unpredictable(b < a, b, a);
        let [a, b, c, d, rest] = self.firsts;
        self.next = earlier(a, b);
        if low(c) & low(d) & low(rest) != low(NEVER) {
            self.next = earlier(self.next, earlier(earlier(c, d), rest));
        }
    }

    /// Forgets every event.
    pub fn clear(&mut self) {
        self.lanes.iter_mut().for_each(VecDeque::clear);
        self.rest.clear();
        (self.firsts, self.lasts) = ([NEVER; LANES + 1], [0; LANES]);
        self.find_next();
    }

    /// How many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.len() + self.lanes.iter().map(VecDeque::len).sum::<usize>()
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        is_never(self.next)
    }
}

/// The low half of a key: the sequence number, which no other event has, and the lane. Looked at alone where it is enough:
/// to compare a whole key that was written a moment ago, half by half, makes the processor wait.
fn low(key: u128) -> u64 {
    u64::try_from(key & u128::from(u64::MAX)).expect("the low half of a 128-bit key")
}

/// True of [`NEVER`]: a sequence number never comes to its low half.
fn is_never(key: u128) -> bool {
    low(key) == low(NEVER)
}

/// The lane a key names.
fn lane_of(key: u128) -> usize {
    usize::try_from(low(key) & ((1 << LANE_BITS) - 1)).expect("a few bits")
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
    fn any_mix_of_delays_agrees_with_a_stable_sort() {
        // One delay, as many as lanes, and more than lanes: the heap comes in.
        for (seed, delays) in [(1u64, 1u64), (2, 3), (3, 4), (4, 9), (5, 50)] {
            let mut prng = Prng::new(seed);
            let mut queue = EventQueue::with_capacity(2);
            let mut model: Vec<(Nanos, u32)> = Vec::new();
            let mut now = Nanos::ZERO;
            for event in 0..2_000 {
                let at = now + Nanos(7 * prng.below(delays));
                queue.push(at, event);
                let place = model.partition_point(|&(due, _)| due <= at);
                model.insert(place, (at, event));
                assert_eq!((queue.len(), queue.deadline()), (model.len(), Some(model[0].0)), "seed {seed}");
                if prng.below(3) > 0 {
                    assert_eq!(queue.pop_due(Nanos::MAX), Some(model[0]), "seed {seed}, event {event}");
                    now = model.remove(0).0;
                }
            }
            queue.clear();
            assert!(queue.is_empty() && queue.deadline().is_none(), "seed {seed}");
        }
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
