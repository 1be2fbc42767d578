//! Requests: what is taken, and what is refused. They are kept in the table of all targets (`crate::request_table`).
//!
//! Deliberately not here: how each kind is carried out.

use super::Pblk;
use super::due::Due;
use crate::refusal::{Takes, refusal};
use crate::request_table::RequestKind;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Admission, Status};

/// Requests that were taken and not replied to.
pub type RequestTable = crate::request_table::RequestTable<Taken>;

/// What is kept of a request beside what the host gave.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// When it was taken.
    pub since: Nanos,
}

impl RequestKind for Taken {
    type Request = BlockRequest;
    type Reply = BlockReply;

    #[inline(always)]
    fn count(request: &BlockRequest) -> u32 {
        request.count
    }

    #[inline(always)]
    fn reply(&self, request: &BlockRequest, status: Status) -> BlockReply {
        BlockReply { tag: request.tag, status, violation: None }
    }
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

    /// Queues a request for the procedure that carries it out.
    pub(super) fn take_request(&mut self, request: BlockRequest) -> Admission {
        if !self.requests.has_room() {
            return Admission::Full;
        }
        if let Some(status) = self.refusal(&request) {
            self.requests.reply(BlockReply { tag: request.tag, status, violation: None });
            return Admission::Taken;
        }
        let key = self.requests.insert(request, Taken { since: self.now });
        match request.op {
            BlockOp::Read => self.requests.queue_read(key),
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => {
                self.write_came();
                self.requests.queue_change(key);
            }
            BlockOp::Flush => self.await_durable(key),
            BlockOp::Shutdown => {
                self.shutdown.begin(key);
                self.call(Due::ALL);
            }
            BlockOp::ResetZone => unreachable!("it was refused"),
        }
        Admission::Taken
    }
}
