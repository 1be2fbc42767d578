//! Host-side logic above a device: what LightNVM calls a target.

use crate::command::{Command, Completion};
use crate::counter::Counter;
use crate::out::Out;
use ocssd_base::Nanos;

/// What became of a request given to [`Target::submit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// The target took the request, and will reply to it.
    Taken,
    /// A bound of the target is reached, and nothing changed: the caller offers the request again after a reply.
    Full,
}

impl Admission {
    /// True if the target took the request.
    #[inline(always)]
    #[must_use]
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Taken)
    }
}

/// A target turns requests of a host interface into commands, and completions into replies. Same rules as a device:
/// it never blocks, reads no clock, and every queue in it is bounded.
///
/// A target gives commands and replies to the [`Out`] of each call. Order of calls in one turn of the loop:
/// `on_completion`, `submit`, `on_deadline`, `advance`.
pub trait Target {
    /// What the host asks.
    type Request: Copy;
    /// What the host is told.
    type Reply;

    /// Takes a request. A target that needs one command for it, and has nothing older to send, gives the command at once if
    /// the [`Out`] has room.
    fn submit(&mut self, now: Nanos, request: &Self::Request, out: &mut Out<Self::Reply>) -> Admission;

    /// Hears of a command's end, and gives the replies it brings. Commands that follow from it may wait for
    /// [`Self::advance`].
    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<Self::Reply>);

    /// Hears that its deadline has passed.
    fn on_deadline(&mut self, now: Nanos, out: &mut Out<Self::Reply>) {
        let _ = (now, out);
    }

    /// Goes on with whatever can be done now: gives commands while the [`Out`] has room, and the replies that are due. The
    /// loop calls it at the end of every turn, with room or without, and again after it has made room.
    fn advance(&mut self, now: Nanos, out: &mut Out<Self::Reply>);

    /// When the target wants to be woken for reasons of its own.
    fn deadline(&self) -> Option<Nanos> {
        None
    }

    /// False of a target that never has a deadline: the loop then asks it for none. Asked once.
    fn has_deadlines(&self) -> bool {
        true
    }

    /// Requests for these blocks may come soon: brings what is looked up for them into the processor's cache, all together
    /// so that the misses overlap. Changes nothing else; blocks that do not exist are passed over.
    fn prefetch(&self, blocks: &[u64]) {
        let _ = blocks;
    }

    /// False of a target for which [`Self::prefetch`] does nothing. Asked once.
    fn prefetches(&self) -> bool {
        false
    }

    /// Asserts every invariant of the whole state. Slow; for simulators and tests.
    fn check(&self);

    /// What the target counted since it was made, in a fixed order.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    /// The state in words, for whoever looks for a bug. Empty of targets with nothing to say.
    fn summary(&self) -> String {
        String::new()
    }
}

/// A command's tag names a command of one target in this many low bits; the host keeps the target's number above them.
pub const TARGET_TAG_BITS: u32 = 24;

/// Asserts that a target left the high bits of a command's tag to the host.
#[inline(always)]
pub(crate) fn assert_tag(command: &Command) {
    assert!(command.tag.0 >> TARGET_TAG_BITS == 0, "a target's tags have {TARGET_TAG_BITS} bits");
}
