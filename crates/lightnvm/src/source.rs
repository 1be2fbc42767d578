//! Where requests come from: workloads, and the servers of real clients.
//!
//! Deliberately not here: the loop that asks (`engine`).

use crate::block::BlockTarget;
use crate::buffers::Buffers;
use crate::target::Target;
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

/// Where requests to targets of one interface come from and replies go to. Reads no clock: `now` is told.
pub trait Source<T: Target + ?Sized = dyn BlockTarget> {
    /// When the next request arrives; `None` if that depends on replies, or none will come.
    fn next_arrival(&self) -> Option<Nanos>;

    /// Takes the next request that has arrived by `now`.
    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, T::Request)>;

    /// Fills `blocks` with those of requests that are likely to come next, all of one target, so that it can prepare
    /// ([`Target::prefetch`]); which target, and how many. A wrong guess costs a little time and changes nothing. The host cannot
    /// find out by itself: in virtual time a turn of a closed loop brings one request, and taking arrivals in batches made random
    /// reads of a target with a map a third slower (`experiments/bench/decisions.md`).
    ///
    /// [`Target::prefetch`]: crate::Target::prefetch
    fn expected(&self, blocks: &mut [u64]) -> Option<(TargetId, usize)> {
        let _ = blocks;
        None
    }

    /// The target could not take the request yet; it is offered again before any other.
    fn on_refused(&mut self, now: Nanos, target: TargetId, request: T::Request);

    /// True of a source of several askers: while one waits for room in its target, the others ask on, and the next arrival is
    /// theirs. Such a source offers a refused request again only after it had nothing else to offer. The refusal of any other
    /// source ends its turn, and its arrivals wait for the room.
    fn asks_on(&self) -> bool {
        false
    }

    /// A request ended.
    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: T::Reply, buffers: &mut Buffers);

    /// True once no more requests will come and every reply is in.
    fn is_finished(&self) -> bool;
}
