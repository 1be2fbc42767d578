//! Requests that were taken: how far each is, and the replies that wait.
//!
//! Deliberately not here: what is refused, and how each kind is carried out.

use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::zoned::{ZonedAnswer, ZonedReply, ZonedRequest};

/// Requests at once: as pblk takes.
pub const REQUESTS_MAX: u32 = 4096;

/// A request that was taken and not replied to.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// As the host gave it.
    pub request: ZonedRequest,
    /// Of a read, blocks asked of the device; of a write, blocks in the buffer.
    pub done: u32,
    /// What must happen before it is answered: commands of a read, zones of a request for all.
    pub parts: u32,
    /// What it is answered with if nothing fails.
    pub answer: ZonedAnswer,
    status: Status,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Requests {
    pending: Slab<Pending>,
    /// Reads that wait for room to send commands.
    reads: Ring<SlabKey>,
    replies: Ring<ZonedReply>,
}

impl Default for Requests {
    fn default() -> Self {
        let places = usize_of(REQUESTS_MAX);
        Self { pending: Slab::new(REQUESTS_MAX), reads: Ring::new(places), replies: Ring::new(places) }
    }
}

impl Requests {
    /// Room for one more, and for its reply.
    pub fn has_room(&self) -> bool {
        self.pending.len() + self.replies.len() < usize_of(REQUESTS_MAX)
    }

    /// Takes a request, for which there is room.
    pub fn take(&mut self, request: ZonedRequest, answer: ZonedAnswer) -> SlabKey {
        assert!(self.has_room(), "a request is taken without room for its reply");
        let fresh = Pending { request, done: 0, parts: 0, answer, status: Status::SUCCESS };
        self.pending.insert(fresh).unwrap_or_else(|_| unreachable!("there is room"))
    }

    /// Replies at once to a request that is not taken; there is room.
    pub fn answer(&mut self, request: &ZonedRequest, status: Status, answer: ZonedAnswer) {
        assert!(self.has_room(), "a request is answered without room for its reply");
        self.reply(ZonedReply { tag: request.tag, status, answer });
    }

    /// A request.
    pub fn get(&self, key: SlabKey) -> &Pending {
        self.pending.get(key)
    }

    /// A request, to change.
    pub fn get_mut(&mut self, key: SlabKey) -> &mut Pending {
        self.pending.get_mut(key)
    }

    /// A read waits for its commands to be sent.
    pub fn queue_read(&mut self, key: SlabKey) {
        assert_eq!(self.pending.get(key).done, 0, "a read is queued twice");
        self.reads.push(key).expect("there are as many places to wait as requests");
    }

    /// The read to send next.
    pub fn next_read(&self) -> Option<SlabKey> {
        self.reads.front().copied()
    }

    /// All of the read in front was asked of the device.
    pub fn read_issued(&mut self, key: SlabKey) {
        assert_eq!(self.reads.pop(), Some(key), "reads are served in order");
        self.end_if_over(key);
    }

    /// Notes a failure; the first one is what the host hears.
    pub fn fail(&mut self, key: SlabKey, status: Status) {
        assert!(!status.has_data(), "{status} is no failure");
        let pending = self.pending.get_mut(key);
        if pending.status.is_success() {
            pending.status = status;
        }
    }

    /// One of the things a request waits for happened.
    pub fn part_done(&mut self, key: SlabKey) {
        let pending = self.pending.get_mut(key);
        assert!(pending.parts > 0, "a part of a request ended twice");
        pending.parts -= 1;
        self.end_if_over(key);
    }

    /// One of the things a request waits for will not happen, and no more of it is done.
    pub fn give_up(&mut self, key: SlabKey, status: Status) {
        self.fail(key, status);
        let pending = self.pending.get_mut(key);
        assert!(pending.done <= pending.request.count, "more was done than asked for");
        pending.done = pending.request.count;
        self.part_done(key);
    }

    fn end_if_over(&mut self, key: SlabKey) {
        let Pending { request, done, parts, .. } = *self.pending.get(key);
        assert!(done <= request.count, "more was done than asked for");
        if parts == 0 && done == request.count && self.reads.front() != Some(&key) {
            self.end(key);
        }
    }

    /// A request is over: its reply waits to be taken.
    pub fn end(&mut self, key: SlabKey) {
        let Pending { request, parts, status, answer, .. } = *self.pending.get(key);
        assert_eq!(parts, 0, "a request ended before its parts");
        self.pending.free(key);
        let answer = if status.is_success() { answer } else { ZonedAnswer::Done };
        self.reply(ZonedReply { tag: request.tag, status, answer });
    }

    fn reply(&mut self, reply: ZonedReply) {
        self.replies.push(reply).expect("there are as many places for replies as for requests");
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<ZonedReply> {
        self.replies.pop()
    }

    /// True if nothing was taken that is not answered, but for `others`.
    pub fn is_idle_but_for(&self, others: usize) -> bool {
        self.pending.len() == others
    }

    /// Asserts that no request was lost.
    pub fn check(&self) {
        assert!(
            self.pending.len() + self.replies.len() <= usize_of(REQUESTS_MAX),
            "more requests than there is room"
        );
    }
}
