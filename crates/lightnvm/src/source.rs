//! Where requests come from: workloads, and the servers of real clients.
//!
//! Deliberately not here: the loop that asks (`engine`).

use crate::block::{BlockReply, BlockRequest};
use crate::buffers::Buffers;
use ocssd_base::Nanos;

/// A target of a host, in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub u32);

impl TargetId {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

/// Where requests come from and replies go to. Reads no clock: `now` is told.
pub trait Source {
    /// When the next request arrives; `None` if that depends on replies, or none will come.
    fn next_arrival(&self) -> Option<Nanos>;

    /// Takes the next request that has arrived by `now`.
    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)>;

    /// Fills `blocks` with those of requests that are likely to come next, all of one target, so that it can prepare
    /// ([`BlockTarget::expect`]); which target, and how many. A wrong guess costs a little time and changes nothing.
    ///
    /// [`BlockTarget::expect`]: crate::block::BlockTarget::expect
    fn expected(&self, blocks: &mut [u64]) -> Option<(TargetId, usize)> {
        let _ = blocks;
        None
    }

    /// The target could not take the request yet; it is offered again before any other.
    fn on_refused(&mut self, now: Nanos, target: TargetId, request: BlockRequest);

    /// A request ended.
    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: BlockReply, buffers: &mut Buffers);

    /// True once no more requests will come and every reply is in.
    fn is_finished(&self) -> bool;
}
