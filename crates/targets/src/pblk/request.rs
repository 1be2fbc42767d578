//! Requests: what is taken, what is refused, and when the host hears of the end.
//!
//! Deliberately not here: how each kind is carried out.

use super::Pblk;
use super::due::Due;
use crate::refusal::{Takes, refusal};
use ocssd_base::{Nanos, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Admission, Status, Violation};

/// A request that was taken and not replied to.
#[derive(Clone, Copy, Debug)]
pub struct PendingBlockRequest {
    /// As the host gave it.
    pub request: BlockRequest,
    /// When it was taken.
    pub since: Nanos,
    /// Blocks admitted to the buffer, discarded, or looked up.
    pub done: u32,
    /// Commands in flight for it.
    pub commands: u32,
    /// All of it has been looked at.
    pub issued: bool,
    /// Success, or the first failure.
    pub status: Status,
    /// Which rule was broken, if one was.
    pub violation: Option<Violation>,
}

impl Pblk {
    /// What is wrong with a request before any of it is tried.
    #[inline]
    pub(super) fn refusal(&self, request: &BlockRequest) -> Option<Status> {
        let takes = Takes {
            blocks: self.l2p.sectors(),
            is_shut_down: self.shutdown.is_begun(),
            refuses_changes: self.refuses_changes(),
        };
        refusal(request, takes)
    }

    /// Room for one more request, and for its reply.
    pub(super) fn has_request_room(&self) -> bool {
        !self.requests.is_full() && self.replies.len() + self.requests.len() < self.replies.capacity()
    }

    /// Queues a request for the procedure that carries it out.
    pub(super) fn take_request(&mut self, request: BlockRequest) -> Admission {
        if !self.has_request_room() {
            return Admission::Full;
        }
        let pending = PendingBlockRequest {
            request,
            since: self.now,
            done: 0,
            commands: 0,
            issued: false,
            status: Status::SUCCESS,
            violation: None,
        };
        if let Some(status) = self.refusal(&request) {
            self.queue_reply(BlockReply { tag: request.tag, status, violation: None });
            return Admission::Taken;
        }
        let Ok(key) = self.requests.insert(pending) else { return Admission::Full };
        let queue = match request.op {
            BlockOp::Read => &mut self.reads,
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => {
                self.write_came();
                &mut self.writes
            }
            BlockOp::Flush => {
                self.await_durable(key);
                return Admission::Taken;
            }
            BlockOp::Shutdown => {
                self.shutdown.begin(key);
                self.call(Due::ALL);
                return Admission::Taken;
            }
            BlockOp::ResetZone => unreachable!("it was refused"),
        };
        queue.push(key).expect("there are as many places to wait as requests");
        Admission::Taken
    }

    /// A reply waits to be taken.
    pub(super) fn queue_reply(&mut self, reply: BlockReply) {
        self.replies.push(reply).expect("there are as many places for replies as for requests");
    }

    /// The request is over; its reply waits to be taken.
    pub(super) fn finish(&mut self, key: SlabKey) {
        let reply = self.end(key);
        self.queue_reply(reply);
    }

    /// The request is over: its reply.
    #[inline]
    pub(super) fn end(&mut self, key: SlabKey) -> BlockReply {
        let pending = self.requests.get(key);
        assert!(pending.done <= pending.request.count, "more was done than was asked for");
        assert_eq!(pending.commands, 0, "a request ended before its commands");
        assert!(
            pending.done == pending.request.count || !pending.status.is_success(),
            "a request ended well before all of it was done"
        );
        let reply =
            BlockReply { tag: pending.request.tag, status: pending.status, violation: pending.violation };
        self.requests.free(key);
        reply
    }

    /// Notes a failure; the first one is what the host hears.
    pub(super) fn fail(&mut self, key: SlabKey, status: Status, violation: Option<Violation>) {
        let pending = self.requests.get_mut(key);
        assert!(!status.has_data(), "{status} is no failure");
        if pending.status.is_success() {
            pending.status = status;
            pending.violation = violation;
        }
    }
}
