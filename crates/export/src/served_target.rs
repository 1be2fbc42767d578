//! What a server asks of the targets of its host beside [`Target`]: jobs as their requests, replies as what jobs brought.
//!
//! A server is generic over it. One that serves blocks alone runs on `dyn BlockTarget`, whose requests and replies are small
//! and go through no other target; one that serves several interfaces at once runs on [`AnyTarget`]. Deliberately not here:
//! which of the two a server runs on, which is whoever's who makes its host.

use crate::as_request;
use crate::job::{Answer, Job};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::interface::key_value::KvTarget;
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget, Interface};
use ocssd_lightnvm::{Status, Tag, Target};

/// A target that a server can have.
pub trait ServedTarget: Target {
    /// The request of a job on an export of `interface`.
    ///
    /// # Panics
    /// If the interface has no such request: whoever gives a job has judged that.
    fn request_of(job: &Job, interface: Interface, tag: Tag) -> Self::Request;

    /// The tag a request has.
    fn tag_of(request: &Self::Request) -> Tag;

    /// Which request a reply is to, how that ended, and what it brought.
    fn answer_of(reply: Self::Reply) -> (Tag, Status, Answer);

    /// Whether a block holds anything; `None` of a target without blocks, or without a map.
    fn holds(&self, block: u64) -> Option<bool>;

    /// The next zone that changed by itself, of a target of zones.
    fn next_changed_zone(&mut self) -> Option<u32>;

    /// Bytes of all keys and values, of a target of those; a server asks after each turn.
    fn used_bytes(&self) -> Option<u64>;

    /// The last request to the target: it can be left afterwards.
    fn last_request(&self) -> Self::Request;
}

impl ServedTarget for dyn BlockTarget {
    #[inline]
    fn request_of(job: &Job, interface: Interface, tag: Tag) -> BlockRequest {
        assert_eq!(interface, Interface::Block, "a server of blocks alone has an export of {interface}");
        as_request::blocks(job, tag)
    }

    #[inline]
    fn tag_of(request: &BlockRequest) -> Tag {
        request.tag
    }

    #[inline]
    fn answer_of(reply: BlockReply) -> (Tag, Status, Answer) {
        (reply.tag, reply.status, Answer::Nothing)
    }

    fn holds(&self, block: u64) -> Option<bool> {
        self.is_mapped(block)
    }

    fn next_changed_zone(&mut self) -> Option<u32> {
        None
    }

    fn used_bytes(&self) -> Option<u64> {
        None
    }

    fn last_request(&self) -> BlockRequest {
        BlockRequest { tag: Tag(0), op: BlockOp::Shutdown, block: 0, count: 0, buffer: None }
    }
}

impl ServedTarget for AnyTarget {
    fn request_of(job: &Job, interface: Interface, tag: Tag) -> AnyRequest {
        as_request::request(job, interface, tag)
    }

    fn tag_of(request: &AnyRequest) -> Tag {
        request.tag()
    }

    fn answer_of(reply: AnyReply) -> (Tag, Status, Answer) {
        let tag = reply.tag();
        let (status, answer) = as_request::answer(reply);
        (tag, status, answer)
    }

    fn holds(&self, block: u64) -> Option<bool> {
        self.block()?.is_mapped(block)
    }

    fn next_changed_zone(&mut self) -> Option<u32> {
        self.zoned_mut()?.poll_changed_zone()
    }

    fn used_bytes(&self) -> Option<u64> {
        self.key_value().map(KvTarget::used_bytes)
    }

    fn last_request(&self) -> AnyRequest {
        AnyRequest::shutdown(self.interface(), Tag(0))
    }
}
