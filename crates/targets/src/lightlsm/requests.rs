//! Requests that were taken and not replied to, and the replies that wait.
//!
//! Deliberately not here: what is refused, and how each kind is carried out.

use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::table::{TableAnswer, TableOp, TableReply, TableRequest};
use std::collections::VecDeque;

/// Requests at once (chosen: more than the threads of any database).
pub const REQUESTS_MAX: u32 = 4096;

/// A request that was taken.
#[derive(Clone, Copy, Debug)]
pub struct PendingTableRequest {
    /// As the host gave it.
    pub request: TableRequest,
    /// What it is answered with if nothing fails.
    pub answer: TableAnswer,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Requests {
    pending: Slab<PendingTableRequest>,
    replies: VecDeque<TableReply>,
}

impl Default for Requests {
    fn default() -> Self {
        Self { pending: Slab::new(REQUESTS_MAX), replies: VecDeque::with_capacity(usize_of(REQUESTS_MAX)) }
    }
}

impl Requests {
    /// Room for one more, and for its reply.
    pub fn has_room(&self) -> bool {
        self.pending.len() + self.replies.len() < usize_of(REQUESTS_MAX)
    }

    /// Takes a request that is answered later. There is room.
    pub fn take(&mut self, request: TableRequest, answer: TableAnswer) -> SlabKey {
        let key = self.pending.insert(PendingTableRequest { request, answer });
        key.unwrap_or_else(|_| unreachable!("room was asked for"))
    }

    /// A request.
    pub fn get(&self, key: SlabKey) -> &PendingTableRequest {
        self.pending.get(key)
    }

    /// A request is over.
    pub fn end(&mut self, key: SlabKey, status: Status) {
        let PendingTableRequest { request, answer } = self.pending.remove(key);
        let mut reply = TableReply::success(request.tag, answer);
        if !status.is_success() {
            (reply.status, reply.answer) = (status, TableAnswer::Done);
        }
        self.reply(reply);
    }

    /// A reply waits to be taken.
    pub fn reply(&mut self, reply: TableReply) {
        assert!(self.replies.len() < usize_of(REQUESTS_MAX), "more replies than requests");
        self.replies.push_back(reply);
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<TableReply> {
        self.replies.pop_front()
    }

    /// Requests that are not over.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Ends every request but reads and a shutdown with `status`.
    pub fn fail_changes(&mut self, status: Status) {
        let is_change = |pending: &PendingTableRequest| {
            !matches!(pending.request.op, TableOp::Read { .. } | TableOp::Shutdown)
        };
        let open = self.pending.iter().filter(|(_, pending)| is_change(pending));
        let keys: Vec<SlabKey> = open.map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.end(key, status));
    }

    /// Asserts the bound.
    pub fn check(&self) {
        let all = self.pending.len() + self.replies.len();
        assert!(all <= usize_of(REQUESTS_MAX), "{all} requests, more than there is room for");
    }
}
