//! Requests that were taken: how far each is, and the replies that wait.
//!
//! Deliberately not here: what is refused, and how each kind is carried out.

use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Status, Violation};

/// Requests at once: as pblk takes.
pub const REQUESTS_MAX: u32 = 4096;

/// A request that was taken and not replied to.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// As the host gave it.
    pub request: BlockRequest,
    /// Blocks looked up, or taken into the buffer.
    pub done: u32,
    /// Commands in flight for it.
    pub commands: u32,
    status: Status,
    violation: Option<Violation>,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Requests {
    pending: Slab<Pending>,
    /// Reads with blocks not looked up yet, first come, first served.
    reads: Ring<SlabKey>,
    /// Changes with blocks not in the buffer yet, first come, first served.
    changes: Ring<SlabKey>,
    replies: Ring<BlockReply>,
    /// Commands in flight for reads.
    commands: usize,
}

impl Default for Requests {
    fn default() -> Self {
        let places = usize_of(REQUESTS_MAX);
        Self {
            pending: Slab::new(REQUESTS_MAX),
            reads: Ring::new(places),
            changes: Ring::new(places),
            replies: Ring::new(places),
            commands: 0,
        }
    }
}

impl Requests {
    /// Takes a request, for which there is room. Reads and changes wait for their turn; of others the caller keeps the key.
    pub fn take(&mut self, request: BlockRequest) -> SlabKey {
        assert!(self.has_room(), "a request was taken without room for its reply");
        let pending = Pending { request, done: 0, commands: 0, status: Status::SUCCESS, violation: None };
        let key = self.pending.insert(pending).expect("there is room");
        let queue = match request.op {
            BlockOp::Read => &mut self.reads,
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => &mut self.changes,
            BlockOp::Flush | BlockOp::Shutdown | BlockOp::ResetZone => return key,
        };
        queue.push(key).expect("there are as many places to wait as requests");
        key
    }

    /// Replies at once to a request for which there is room.
    pub fn answer(&mut self, request: &BlockRequest, status: Status) {
        assert!(self.has_room(), "a request was answered without room for its reply");
        self.reply(BlockReply { tag: request.tag, status, violation: None });
    }

    /// Room for one more, and for its reply.
    pub fn has_room(&self) -> bool {
        self.pending.len() + self.replies.len() < usize_of(REQUESTS_MAX)
    }

    /// The read to look up next.
    pub fn next_read(&self) -> Option<SlabKey> {
        self.reads.front().copied()
    }

    /// The change to carry out next.
    pub fn next_change(&self) -> Option<SlabKey> {
        self.changes.front().copied()
    }

    /// All of the read in front was looked up: it ends with its last command.
    pub fn looked_up(&mut self, key: SlabKey) {
        assert_eq!(self.reads.pop(), Some(key), "reads are looked up in order");
        self.end_if_over(key);
    }

    /// The change in front is in the buffer, or failed.
    pub fn admitted(&mut self, key: SlabKey) {
        assert_eq!(self.changes.pop(), Some(key), "changes are carried out in order");
    }

    /// A request.
    pub fn get(&self, key: SlabKey) -> &Pending {
        self.pending.get(key)
    }

    /// A request, to change.
    pub fn get_mut(&mut self, key: SlabKey) -> &mut Pending {
        self.pending.get_mut(key)
    }

    /// Notes a failure; the first one is what the host hears.
    pub fn fail(&mut self, key: SlabKey, status: Status, violation: Option<Violation>) {
        assert!(!status.has_data(), "{status} is no failure");
        let pending = self.pending.get_mut(key);
        if pending.status.is_success() {
            (pending.status, pending.violation) = (status, violation);
        }
    }

    /// A command for a read was sent.
    pub fn command_sent(&mut self, key: SlabKey) {
        self.pending.get_mut(key).commands += 1;
        self.commands += 1;
    }

    /// Commands in flight for reads.
    pub const fn commands(&self) -> usize {
        self.commands
    }

    /// A command for a read ended.
    pub fn command_done(&mut self, key: SlabKey) {
        let pending = self.pending.get_mut(key);
        assert!(pending.commands > 0, "a command ended that nobody sent");
        pending.commands -= 1;
        self.commands -= 1;
        if self.reads.front() != Some(&key) {
            self.end_if_over(key);
        }
    }

    fn end_if_over(&mut self, key: SlabKey) {
        let Pending { request, done, commands, .. } = *self.pending.get(key);
        assert!(done <= request.count, "more was looked up than asked for");
        if done == request.count && commands == 0 {
            self.end(key);
        }
    }

    /// A request is over: its reply waits to be taken.
    pub fn end(&mut self, key: SlabKey) {
        let Pending { request, commands, status, violation, .. } = *self.pending.get(key);
        assert_eq!(commands, 0, "a request ended before its commands");
        self.pending.free(key);
        self.reply(BlockReply { tag: request.tag, status, violation });
    }

    fn reply(&mut self, reply: BlockReply) {
        self.replies.push(reply).expect("there are as many places for replies as for requests");
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<BlockReply> {
        self.replies.pop()
    }

    /// Asserts that no request was lost, with so many commands in flight.
    pub fn check(&self, commands: usize) {
        let sent: u32 = self.pending.iter().map(|(_, pending)| pending.commands).sum();
        assert_eq!(usize_of(sent), self.commands, "commands of reads are counted wrong");
        assert!(self.commands <= commands, "reads have more commands than there are");
        let is_read = |pending: &Pending| pending.request.op == BlockOp::Read;
        let is_waiting = |pending: &Pending| is_read(pending) && pending.done < pending.request.count;
        let waiting = self.pending.iter().filter(|(_, pending)| is_waiting(pending)).count();
        assert_eq!(waiting, self.reads.len(), "a read was lost on its way to the map");
    }
}
