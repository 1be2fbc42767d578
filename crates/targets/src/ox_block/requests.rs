//! Requests that were taken: how far each is, and the replies that wait.
//!
//! Deliberately not here: what is refused, and how each kind is carried out.

use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart};

/// Requests at once: as pblk takes.
pub const REQUESTS_MAX: u32 = 4096;

/// A part of a transaction over several requests.
pub type Role = (BlockTransaction, TransactionPart);

/// A request that was taken and not replied to.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// As the host gave it.
    pub request: BlockRequest,
    /// Of a read, blocks asked of the device; of a write, blocks in the buffer.
    pub done: u32,
    /// Commands, or transactions, that are not over.
    pub parts: u32,
    /// A read: its blocks were looked up.
    pub is_resolved: bool,
    /// What it is of a transaction over several requests.
    pub role: Option<Role>,
    status: Status,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Requests {
    pending: Slab<Pending>,
    reads: Ring<SlabKey>,
    changes: Ring<SlabKey>,
    replies: Ring<BlockReply>,
}

impl Default for Requests {
    fn default() -> Self {
        let places = usize_of(REQUESTS_MAX);
        Self {
            pending: Slab::new(REQUESTS_MAX),
            reads: Ring::new(places),
            changes: Ring::new(places),
            replies: Ring::new(places),
        }
    }
}

impl Requests {
    /// Takes a request. Reads and changes wait for their turn; of others the caller keeps the key.
    ///
    /// # Errors
    /// The request, if there is no room.
    pub fn take(&mut self, request: BlockRequest, role: Option<Role>) -> Result<SlabKey, BlockRequest> {
        if !self.has_room() {
            return Err(request);
        }
        let fresh = Pending { request, done: 0, parts: 0, is_resolved: false, role, status: Status::SUCCESS };
        let key = self.pending.insert(fresh).map_err(|_| request)?;
        let queue = match request.op {
            // Whatever ends a transaction comes behind its writes.
            BlockOp::Flush if role.is_some() => &mut self.changes,
            BlockOp::Read => &mut self.reads,
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => &mut self.changes,
            BlockOp::Flush | BlockOp::Shutdown | BlockOp::ResetZone => return Ok(key),
        };
        queue.push(key).expect("there are as many places to wait as requests");
        Ok(key)
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

    /// The read to serve next.
    pub fn next_read(&self) -> Option<SlabKey> {
        self.reads.front().copied()
    }

    /// The change to carry out next.
    pub fn next_change(&self) -> Option<SlabKey> {
        self.changes.front().copied()
    }

    /// All of the read in front was asked of the device.
    pub fn read_issued(&mut self, key: SlabKey) {
        assert_eq!(self.reads.pop(), Some(key), "reads are served in order");
        self.end_if_over(key);
    }

    /// All of the change in front is in the buffer.
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
    pub fn fail(&mut self, key: SlabKey, status: Status) {
        assert!(!status.has_data(), "{status} is no failure");
        let pending = self.pending.get_mut(key);
        if pending.status.is_success() {
            pending.status = status;
        }
    }

    /// A command or transaction of a request is over.
    pub fn part_done(&mut self, key: SlabKey) {
        let pending = self.pending.get_mut(key);
        assert!(pending.parts > 0, "a part of a request ended twice");
        pending.parts -= 1;
        self.end_if_over(key);
    }

    fn end_if_over(&mut self, key: SlabKey) {
        let Pending { request, done, parts, .. } = *self.pending.get(key);
        assert!(done <= request.count, "more was done than asked for");
        if done == request.count
            && parts == 0
            && self.reads.front() != Some(&key)
            && self.changes.front() != Some(&key)
        {
            self.end(key);
        }
    }

    /// A request is over: its reply waits to be taken.
    pub fn end(&mut self, key: SlabKey) {
        let Pending { request, parts, status, .. } = *self.pending.get(key);
        assert_eq!(parts, 0, "a request ended before its parts");
        self.pending.free(key);
        self.reply(BlockReply { tag: request.tag, status, violation: None });
    }

    /// Ends every change that is not over with `status`, whatever became of its parts. The caller forgets these.
    pub fn fail_changes(&mut self, status: Status) -> bool {
        while self.changes.pop().is_some() {}
        let is_change = |op| matches!(op, BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes);
        let ends = |pending: &Pending| is_change(pending.request.op) || pending.role.is_some();
        let open = self.pending.iter().filter(|(_, pending)| ends(pending));
        let keys: Vec<SlabKey> = open.map(|(key, _)| key).collect();
        for &key in &keys {
            self.pending.get_mut(key).parts = 0;
            self.fail(key, status);
            self.end(key);
        }
        !keys.is_empty()
    }

    fn reply(&mut self, reply: BlockReply) {
        self.replies.push(reply).expect("there are as many places for replies as for requests");
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<BlockReply> {
        self.replies.pop()
    }

    /// True if nothing was taken that is not answered, but for `others`.
    pub fn is_idle_but_for(&self, others: usize) -> bool {
        self.pending.len() == others
    }

    /// Asserts that no request was lost.
    pub fn check(&self) {
        let is_read = |pending: &Pending| pending.request.op == BlockOp::Read;
        let waits = |pending: &Pending| is_read(pending) && pending.done < pending.request.count;
        let waiting = self.pending.iter().filter(|(_, pending)| waits(pending)).count();
        assert!(waiting <= self.reads.len(), "a read was lost on its way to the device");
        assert!(
            self.pending.len() + self.replies.len() <= usize_of(REQUESTS_MAX),
            "more requests than there is room"
        );
    }
}
