//! The workload's threads by number: whoever begins takes the least number that nobody has.
//!
//! So `n` threads that are always in flight are `0..n`, and on cores of their own if there are as many, whatever ran before
//! them. Numbers decide cores; were they given out in any other order, the end of one job would decide where the threads of
//! the next one run, which no host does.
//!
//! Deliberately not here: what a thread does (`thread`), and where it runs (`cores`).

use super::target::index;
use super::thread::Thread;
use ocssd_base::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of a thread: its name while its request is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadNumber(pub u32);

/// The threads that have a request in flight, at most as many as there were places at the start.
///
/// Beginning and ending cost the logarithm of the most there ever were.
pub(super) struct Threads<Request, Reply> {
    /// By number, those that ever were.
    places: Vec<Option<Thread<Request, Reply>>>,
    /// Of these, those nobody has.
    free: BinaryHeap<Reverse<ThreadNumber>>,
    most: u32,
    /// When one began or ended last.
    at: Nanos,
    /// The most that were in flight at once at that time.
    busy: usize,
}

impl<Request, Reply> Threads<Request, Reply> {
    /// None yet, and room for `most`.
    pub fn new(most: u32) -> Self {
        let places = index(most);
        let free = BinaryHeap::with_capacity(places);
        Self { places: Vec::with_capacity(places), free, most, at: Nanos::ZERO, busy: 0 }
    }

    /// `thread` begins: its number, or `None` if there are as many as there may be.
    pub fn begin(&mut self, now: Nanos, thread: Thread<Request, Reply>) -> Option<ThreadNumber> {
        if self.is_full() {
            return None;
        }
        self.pass_to(now);
        let number = self.free.pop().map_or_else(|| self.new_place(), |Reverse(number)| number);
        let place = &mut self.places[index(number.0)];
        assert!(place.is_none(), "somebody has the free number {}", number.0);
        *place = Some(thread);
        self.busy = self.busy.max(self.len());
        Some(number)
    }

    fn new_place(&mut self) -> ThreadNumber {
        self.places.push(None);
        ThreadNumber(u32::try_from(self.places.len() - 1).expect("below the most there may be"))
    }

    /// Thread `number` ends.
    pub fn end(&mut self, now: Nanos, number: ThreadNumber) -> Thread<Request, Reply> {
        self.pass_to(now);
        let thread = self.places[index(number.0)].take().expect("a thread ends once");
        self.free.push(Reverse(number));
        thread
    }

    pub fn get(&self, number: ThreadNumber) -> &Thread<Request, Reply> {
        self.places[index(number.0)].as_ref().expect("a number in use")
    }

    pub fn get_mut(&mut self, number: ThreadNumber) -> &mut Thread<Request, Reply> {
        self.places[index(number.0)].as_mut().expect("a number in use")
    }

    /// Those in flight, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Thread<Request, Reply>> {
        self.places.iter().flatten()
    }

    /// How many are in flight.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn is_full(&self) -> bool {
        self.len() == index(self.most)
    }

    /// The most that are in flight at once at `now`.
    ///
    /// A thread whose request ended and whose next one comes at the same time was never away, although others may look in
    /// between: threads that always have a request in flight are all counted at any time. Those of a job that is over are not
    /// counted any more once time passes.
    pub fn busy(&self, now: Nanos) -> u32 {
        let busy = if now > self.at { self.len() } else { self.busy };
        u32::try_from(busy).expect("no more than there may be")
    }

    /// Something is about to change at `now`.
    fn pass_to(&mut self, now: Nanos) {
        assert!(now >= self.at, "a thread changes at {now}, another did at {}", self.at);
        if now > self.at {
            (self.at, self.busy) = (now, self.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_cpu::hosted::{Asked, Work};

    fn thread() -> Thread<(), ()> {
        Thread::new(Nanos::ZERO, (), Asked { work: Work::Other, bytes: 0, is_change: false }, 0)
    }

    #[test]
    fn whoever_begins_takes_the_least_number_that_is_free() {
        let mut threads = Threads::new(4);
        let mut begin = |ends: &[u32]| {
            ends.iter().for_each(|&number| _ = threads.end(Nanos::ZERO, ThreadNumber(number)));
            (threads.begin(Nanos::ZERO, thread()).map(|number| number.0), threads.len())
        };
        assert_eq!([begin(&[]), begin(&[]), begin(&[])], [(Some(0), 1), (Some(1), 2), (Some(2), 3)]);
        assert_eq!(begin(&[1, 0, 2]), (Some(0), 1), "the order in which others ended does not matter");
        assert_eq!([begin(&[]), begin(&[0])], [(Some(1), 2), (Some(0), 2)]);
        assert_eq!([begin(&[]), begin(&[]), begin(&[])], [(Some(2), 3), (Some(3), 4), (None, 4)]);
    }

    #[test]
    fn a_thread_that_goes_on_at_once_was_never_away_and_one_that_does_not_is() {
        let mut threads = Threads::new(4);
        assert_eq!(threads.busy(Nanos(1)), 0);
        (0..3).for_each(|_| _ = threads.begin(Nanos(1), thread()));
        assert_eq!(threads.busy(Nanos(1)), 3);
        (0..3).for_each(|number| _ = threads.end(Nanos(5), ThreadNumber(number)));
        assert_eq!((threads.busy(Nanos(5)), threads.len()), (3, 0), "all ended, at this time");
        (0..2).for_each(|_| _ = threads.begin(Nanos(5), thread()));
        assert_eq!((threads.busy(Nanos(5)), threads.busy(Nanos(6))), (3, 2), "one of them for good");
        (0..2).for_each(|number| _ = threads.end(Nanos(7), ThreadNumber(number)));
        assert_eq!((threads.busy(Nanos(7)), threads.busy(Nanos(8))), (2, 0));
        threads.begin(Nanos(9), thread());
        assert_eq!(threads.busy(Nanos(9)), 1, "what was before does not matter");
    }
}
