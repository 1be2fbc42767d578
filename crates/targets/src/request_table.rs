//! Requests that were taken and not replied to, those that wait for their turn, and the replies that wait to be taken.
//!
//! A request is over once all of it was done and none of its parts (commands, transactions, zones) is out. A request has a place
//! for its reply from when it is taken. Deliberately not here: what is refused, what a request means, and how each kind is
//! carried out.

use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::{BlockReply, BlockRequest};
use std::fmt::Debug;

/// What a target keeps of each request, and how it replies.
pub trait RequestKind: Copy + Debug {
    /// What the host asks.
    type Request: Copy + Debug;
    /// What it is told.
    type Reply: Clone + Debug;

    /// How many blocks the request has.
    fn count(request: &Self::Request) -> u32;

    /// The reply to a request that ended like this.
    fn reply(&self, request: &Self::Request, status: Status) -> Self::Reply;
}

/// Requests for blocks of which nothing else is kept.
#[derive(Clone, Copy, Debug)]
pub struct PlainBlocks;

impl RequestKind for PlainBlocks {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn count(request: &BlockRequest) -> u32 {
        request.count
    }

    fn reply(&self, request: &BlockRequest, status: Status) -> BlockReply {
        BlockReply { tag: request.tag, status, violation: None }
    }
}

/// A request that was taken and not replied to.
#[derive(Clone, Copy, Debug)]
pub struct Pending<K: RequestKind> {
    /// As the host gave it.
    pub request: K::Request,
    /// Blocks looked up or asked of the device, of a read; in the buffer, of a change.
    pub done: u32,
    /// What the target keeps of it.
    pub own: K,
    /// Parts that are not over.
    parts: u32,
    status: Status,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct RequestTable<K: RequestKind> {
    pending: Slab<Pending<K>>,
    /// Reads that wait, first come, first served.
    reads: Ring<SlabKey>,
    /// Changes that wait, first come, first served.
    changes: Ring<SlabKey>,
    replies: Ring<K::Reply>,
    /// Places for requests and replies together.
    places: usize,
    /// Parts that are not over, of all.
    parts: usize,
}

impl<K: RequestKind> RequestTable<K> {
    /// A table with room for so many.
    pub fn new(requests: u32) -> Self {
        let places = usize_of(requests);
        Self {
            pending: Slab::new(requests),
            reads: Ring::new(places),
            changes: Ring::new(places),
            replies: Ring::new(places),
            places,
            parts: 0,
        }
    }

    /// Room for one more, and for its reply.
    pub fn has_room(&self) -> bool {
        self.pending.len() + self.replies.len() < self.places
    }

    /// Takes a request, for which there is room.
    pub fn insert(&mut self, request: K::Request, own: K) -> SlabKey {
        assert!(self.has_room(), "a request is taken without room for its reply");
        let fresh = Pending { request, done: 0, own, parts: 0, status: Status::SUCCESS };
        self.pending.insert(fresh).unwrap_or_else(|_| unreachable!("there is room"))
    }

    /// Takes a request, for which there is room, of which all is asked of the device already, in one part.
    #[inline(always)]
    pub fn insert_issued(&mut self, request: K::Request, own: K) -> SlabKey {
        assert!(self.has_room(), "a request is taken without room for its reply");
        self.parts += 1;
        let done = K::count(&request);
        let issued = Pending { request, done, own, parts: 1, status: Status::SUCCESS };
        self.pending.insert(issued).unwrap_or_else(|_| unreachable!("there is room"))
    }

    /// A read waits for its turn.
    pub fn queue_read(&mut self, key: SlabKey) {
        assert_eq!(self.pending.get(key).done, 0, "a read is queued twice");
        self.reads.push(key).expect("there are as many places to wait as requests");
    }

    /// A change waits for its turn.
    pub fn queue_change(&mut self, key: SlabKey) {
        assert_eq!(self.pending.get(key).done, 0, "a change is queued twice");
        self.changes.push(key).expect("there are as many places to wait as requests");
    }

    /// The read whose turn it is.
    pub fn next_read(&self) -> Option<SlabKey> {
        self.reads.front().copied()
    }

    /// Reads that wait, the one whose turn it is first.
    pub fn waiting_reads(&self) -> impl Iterator<Item = SlabKey> + '_ {
        self.reads.iter().copied()
    }

    /// Changes that wait, the one whose turn it is first.
    pub fn waiting_changes(&self) -> impl Iterator<Item = SlabKey> + '_ {
        self.changes.iter().copied()
    }

    /// The change whose turn it is.
    pub fn next_change(&self) -> Option<SlabKey> {
        self.changes.front().copied()
    }

    /// All of the read in front was looked up, or asked of the device: it ends with its last part.
    pub fn read_issued(&mut self, key: SlabKey) {
        assert_eq!(self.reads.pop(), Some(key), "reads are served in order");
        self.end_if_over(key);
    }

    /// No more of the read in front is looked up; it is in the table still.
    pub fn drop_read(&mut self, key: SlabKey) {
        assert_eq!(self.reads.pop(), Some(key), "reads are given up in order");
    }

    /// All of the change in front is in the buffer, or it failed.
    pub fn admitted(&mut self, key: SlabKey) {
        assert_eq!(self.changes.pop(), Some(key), "changes are carried out in order");
    }

    /// No change waits any more; they are in the table still.
    pub fn drop_changes(&mut self) {
        while self.changes.pop().is_some() {}
    }

    /// A request.
    pub fn get(&self, key: SlabKey) -> &Pending<K> {
        self.pending.get(key)
    }

    /// A request, to change.
    pub fn get_mut(&mut self, key: SlabKey) -> &mut Pending<K> {
        self.pending.get_mut(key)
    }

    /// Keys of requests of which this is true.
    pub fn keys(&self, is_wanted: impl Fn(&Pending<K>) -> bool) -> Vec<SlabKey> {
        self.pending.iter().filter(|(_, pending)| is_wanted(pending)).map(|(key, _)| key).collect()
    }

    /// Notes a failure; the first one is what the host hears. False if there was one before.
    pub fn fail(&mut self, key: SlabKey, status: Status) -> bool {
        assert!(!status.has_data(), "{status} is no failure");
        let pending = self.pending.get_mut(key);
        let is_first = pending.status.is_success();
        if is_first {
            pending.status = status;
        }
        is_first
    }

    /// So many parts more must be over before the request is.
    pub fn begin_parts(&mut self, key: SlabKey, parts: u32) {
        self.pending.get_mut(key).parts += parts;
        self.parts += usize_of(parts);
    }

    /// Parts that are not over, of all requests.
    pub const fn parts(&self) -> usize {
        self.parts
    }

    /// A part of a request is over.
    pub fn part_done(&mut self, key: SlabKey) {
        if let Some(reply) = self.part_over(key) {
            self.push_reply(reply);
        }
    }

    /// As [`Self::part_done`], and the caller gives the reply, if the request is over.
    #[inline(always)]
    pub fn part_over(&mut self, key: SlabKey) -> Option<K::Reply> {
        let pending = self.pending.get_mut(key);
        assert!(pending.parts > 0, "a part of a request ended twice");
        pending.parts -= 1;
        self.parts -= 1;
        self.is_over(key).then(|| self.remove(key))
    }

    /// A part of a request will not happen, and no more of it is done.
    pub fn give_up(&mut self, key: SlabKey, status: Status) {
        self.fail(key, status);
        let pending = self.pending.get_mut(key);
        let count = K::count(&pending.request);
        assert!(pending.done <= count, "more was done than asked for");
        pending.done = count;
        self.part_done(key);
    }

    /// The request ends with `status`, whatever became of its parts; the caller forgets these.
    pub fn abandon(&mut self, key: SlabKey, status: Status) {
        let parts = std::mem::take(&mut self.pending.get_mut(key).parts);
        self.parts -= usize_of(parts);
        self.fail(key, status);
        self.end(key);
    }

    fn end_if_over(&mut self, key: SlabKey) {
        if self.is_over(key) {
            self.end(key);
        }
    }

    #[inline(always)]
    fn is_over(&self, key: SlabKey) -> bool {
        let Pending { request, done, parts, .. } = self.pending.get(key);
        let count = K::count(request);
        assert!(*done <= count, "{done} blocks were done of {count}");
        let waits = self.reads.front() == Some(&key) || self.changes.front() == Some(&key);
        *done == count && *parts == 0 && !waits
    }

    /// A request is over: its reply waits to be taken.
    pub fn end(&mut self, key: SlabKey) {
        let reply = self.remove(key);
        self.push_reply(reply);
    }

    /// A request is over: its reply.
    #[inline(always)]
    fn remove(&mut self, key: SlabKey) -> K::Reply {
        let Pending { request, parts, own, status, .. } = *self.pending.get(key);
        assert_eq!(parts, 0, "a request ended before its parts");
        assert!(self.replies.len() < self.places, "a request ended without room for its reply");
        self.pending.free(key);
        own.reply(&request, status)
    }

    /// Replies to a request that was not taken.
    pub fn reply(&mut self, reply: K::Reply) {
        assert!(self.has_room(), "a request is answered without room for its reply");
        self.push_reply(reply);
    }

    fn push_reply(&mut self, reply: K::Reply) {
        self.replies.push(reply).expect("there are as many places for replies as for requests");
    }

    /// A reply waits to be taken.
    pub fn has_reply(&self) -> bool {
        !self.replies.is_empty()
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<K::Reply> {
        self.replies.pop()
    }

    /// Reads that wait, changes that wait, and all requests.
    pub fn counts(&self) -> [usize; 3] {
        [self.reads.len(), self.changes.len(), self.pending.len()]
    }

    /// True if nothing was taken that is not answered, but for `others`.
    pub fn is_idle_but_for(&self, others: usize) -> bool {
        self.pending.len() == others
    }

    /// Asserts that no request was lost.
    pub fn check(&self) {
        let all = self.pending.len() + self.replies.len();
        assert!(all <= self.places, "{all} requests, more than there is room for");
        let parts: u32 = self.pending.iter().map(|(_, pending)| pending.parts).sum();
        assert_eq!(usize_of(parts), self.parts, "parts of requests are counted wrong");
        for key in self.reads.iter().chain(self.changes.iter()) {
            let Pending { request, done, .. } = self.pending.get(*key);
            assert!(*done <= K::count(request), "more was done of {request:?} than asked for");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::{BTreeMap, VecDeque};

    /// A request: its number, whether it is a read, and how many blocks it has.
    #[derive(Clone, Copy, Debug)]
    struct Asked {
        number: u32,
        is_read: bool,
        count: u32,
    }

    /// Something to be told with the reply.
    #[derive(Clone, Copy, Debug)]
    struct Word(u32);

    impl RequestKind for Word {
        type Request = Asked;
        type Reply = (u32, u32, Status);

        fn count(request: &Asked) -> u32 {
            request.count
        }

        fn reply(&self, request: &Asked, status: Status) -> Self::Reply {
            (request.number, self.0, status)
        }
    }

    /// A request as a list has it.
    #[derive(Clone, Copy, Debug)]
    struct Naive {
        asked: Asked,
        done: u32,
        parts: u32,
        status: Status,
        waits: bool,
    }

    /// The same in lists, with the keys the table gave.
    #[derive(Default)]
    struct Model {
        open: BTreeMap<u32, (SlabKey, Naive)>,
        reads: VecDeque<u32>,
        changes: VecDeque<u32>,
        replies: VecDeque<(u32, u32, Status)>,
    }

    impl Model {
        fn end_if_over(&mut self, number: u32) {
            let (_, naive) = self.open[&number];
            if naive.done == naive.asked.count && naive.parts == 0 && !naive.waits {
                self.end(number);
            }
        }

        fn end(&mut self, number: u32) {
            let (_, naive) = self.open.remove(&number).expect("it is open");
            self.replies.push_back((number, number + 7, naive.status));
        }

        /// One of those that are open, at random.
        fn some(&self, prng: &mut Prng) -> Option<u32> {
            let count = u64::try_from(self.open.len()).expect("few");
            let which = (count > 0).then(|| usize_of(u32::try_from(prng.below(count)).expect("few")))?;
            self.open.keys().nth(which).copied()
        }
    }

    fn step(table: &mut RequestTable<Word>, model: &mut Model, prng: &mut Prng, next: &mut u32) {
        match prng.below(6) {
            0 if table.has_room() => {
                *next += 1;
                let asked = Asked { number: *next, is_read: prng.below(2) == 0, count: 2 };
                let key = table.insert(asked, Word(*next + 7));
                let queue = if asked.is_read { &mut model.reads } else { &mut model.changes };
                queue.push_back(*next);
                if asked.is_read {
                    table.queue_read(key)
                } else {
                    table.queue_change(key)
                }
                let naive = Naive { asked, done: 0, parts: 0, status: Status::SUCCESS, waits: true };
                model.open.insert(*next, (key, naive));
            }
            1 => {
                // The front of a queue gets on by a block, with a part of its own.
                let is_read = prng.below(2) == 0;
                let queue = if is_read { &mut model.reads } else { &mut model.changes };
                let Some(&number) = queue.front() else { return };
                let (key, naive) = model.open.get_mut(&number).expect("it waits");
                let front = if is_read { table.next_read() } else { table.next_change() };
                assert_eq!(front, Some(*key), "another is in front");
                table.begin_parts(*key, 1);
                table.get_mut(*key).done += 1;
                (naive.done, naive.parts) = (naive.done + 1, naive.parts + 1);
                if naive.done == naive.asked.count {
                    naive.waits = false;
                    queue.pop_front();
                    if is_read { table.read_issued(*key) } else { table.admitted(*key) }
                }
            }
            2 | 3 => {
                let Some(number) = model.some(prng) else { return };
                let (key, naive) = model.open.get_mut(&number).expect("it is open");
                if naive.parts > 0 {
                    naive.parts -= 1;
                    table.part_done(*key);
                    model.end_if_over(number);
                }
            }
            4 => {
                let Some(number) = model.some(prng) else { return };
                let (key, naive) = model.open.get_mut(&number).expect("it is open");
                let is_first = naive.status.is_success();
                assert_eq!(table.fail(*key, Status::WRITE_FAULT), is_first);
                naive.status = if is_first { Status::WRITE_FAULT } else { naive.status };
                if !naive.waits && naive.parts > 1 {
                    table.abandon(*key, Status::UNRECOVERED_READ);
                    model.end(number);
                }
            }
            _ => assert_eq!(
                table.poll_reply(),
                model.replies.pop_front(),
                "replies come in the order of their ends"
            ),
        }
    }

    #[test]
    fn every_request_is_answered_once_when_all_of_it_is_over_with_its_first_failure() {
        for seed in 0..100 {
            let mut prng = Prng::new(seed);
            let (mut table, mut model, mut next) = (RequestTable::new(8), Model::default(), 0);
            for _ in 0..500 {
                step(&mut table, &mut model, &mut prng, &mut next);
                table.check();
                let has_room = model.open.len() + model.replies.len() < 8;
                assert_eq!(table.has_room(), has_room, "seed {seed}");
                let parts: u32 = model.open.values().map(|(_, naive)| naive.parts).sum();
                assert_eq!(table.parts(), usize_of(parts), "seed {seed}");
                assert!(table.is_idle_but_for(model.open.len()), "seed {seed}");
            }
            assert!(next > 20, "seed {seed}: {next} requests");
        }
    }

    #[test]
    fn what_will_not_happen_ends_a_request_as_what_happened_does() {
        let mut table = RequestTable::new(2);
        let key = table.insert(Asked { number: 1, is_read: false, count: 9 }, Word(5));
        table.begin_parts(key, 2);
        table.give_up(key, Status::WRITE_FAULT);
        assert_eq!((table.parts(), table.poll_reply()), (1, None));
        table.give_up(key, Status::UNRECOVERED_READ);
        assert_eq!(table.poll_reply(), Some((1, 5, Status::WRITE_FAULT)));
    }
}
