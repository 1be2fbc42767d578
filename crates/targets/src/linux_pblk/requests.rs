//! Requests that were taken: how far each is, and the replies that wait.
//!
//! Deliberately not here: what is refused, and how each kind is carried out.

use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::block::{BlockReply, BlockRequest};
use ocssd_lightnvm::{Status, Violation};

/// Requests at once: as pblk takes.
const REQUESTS_MAX: u32 = 4096;

/// A request that was taken and not replied to.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// As the host gave it.
    pub request: BlockRequest,
    /// Blocks looked up.
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
    /// Those with blocks not looked up yet, first come, first served.
    waiting: Ring<SlabKey>,
    replies: Ring<BlockReply>,
}

impl Default for Requests {
    fn default() -> Self {
        let places = usize_of(REQUESTS_MAX);
        Self { pending: Slab::new(REQUESTS_MAX), waiting: Ring::new(places), replies: Ring::new(places) }
    }
}

impl Requests {
    /// Takes a request that waits to be looked up.
    ///
    /// # Errors
    /// The request, if there is no room.
    pub fn take(&mut self, request: BlockRequest) -> Result<(), BlockRequest> {
        if !self.has_room() {
            return Err(request);
        }
        let pending = Pending { request, done: 0, commands: 0, status: Status::SUCCESS, violation: None };
        let key = self.pending.insert(pending).map_err(|_| request)?;
        self.waiting.push(key).expect("there are as many places to wait as requests");
        Ok(())
    }

    /// Replies at once.
    ///
    /// # Errors
    /// The request, if there is no room.
    pub fn answer(&mut self, request: BlockRequest, status: Status) -> Result<(), BlockRequest> {
        if !self.has_room() {
            return Err(request);
        }
        self.reply(BlockReply { tag: request.tag, status, violation: None });
        Ok(())
    }

    /// Room for one more, and for its reply.
    fn has_room(&self) -> bool {
        self.pending.len() + self.replies.len() < usize_of(REQUESTS_MAX)
    }

    /// The one to look up next.
    pub fn front(&self) -> Option<SlabKey> {
        self.waiting.front().copied()
    }

    /// All of the one in front was looked up: it ends with its last command.
    pub fn looked_up(&mut self, key: SlabKey) {
        assert_eq!(self.waiting.pop(), Some(key), "requests are looked up in order");
        self.end_if_over(key);
    }

    /// A request.
    pub fn get_mut(&mut self, key: SlabKey) -> &mut Pending {
        self.pending.get_mut(key)
    }

    /// Notes a failure; the first one is what the host hears.
    pub fn fail(&mut self, key: SlabKey, status: Status, violation: Option<Violation>) {
        assert!(!status.is_success(), "a success is no failure");
        let pending = self.pending.get_mut(key);
        if pending.status.is_success() {
            (pending.status, pending.violation) = (status, violation);
        }
    }

    /// A command for a request ended.
    pub fn command_done(&mut self, key: SlabKey) {
        let pending = self.pending.get_mut(key);
        assert!(pending.commands > 0, "a command ended that nobody sent");
        pending.commands -= 1;
        self.end_if_over(key);
    }

    fn end_if_over(&mut self, key: SlabKey) {
        let Pending { request, done, commands, status, violation } = *self.pending.get(key);
        assert!(done <= request.count, "more was looked up than asked for");
        if done == request.count && commands == 0 {
            self.pending.free(key);
            self.reply(BlockReply { tag: request.tag, status, violation });
        }
    }

    fn reply(&mut self, reply: BlockReply) {
        self.replies.push(reply).expect("there are as many places for replies as for requests");
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<BlockReply> {
        self.replies.pop()
    }

    /// Asserts that no request was lost.
    pub fn check(&self, commands: usize) {
        let sent: u32 = self.pending.iter().map(|(_, pending)| pending.commands).sum();
        assert_eq!(usize_of(sent), commands, "commands and requests disagree");
        let waiting = self.pending.iter().filter(|(_, pending)| pending.done < pending.request.count).count();
        assert_eq!(waiting, self.waiting.len(), "a request was lost on its way to the map");
    }
}
