//! Host-side logic above a device: what LightNVM calls a target.

use crate::buffers::Buffers;
use crate::command::{Command, Completion};
use ocssd_base::Nanos;

/// What became of a request given to [`Target::submit_direct`].
#[derive(Clone, Copy, Debug)]
pub enum Taken {
    /// It is this one command. The target has nothing else to give, neither commands nor replies, before it is called
    /// again.
    Command(Command),
    /// It was taken: its commands and its reply are to be polled for.
    Queued,
    /// A bound is reached; try again after a reply.
    Refused,
}

/// A target turns requests of a host interface into commands, and completions into replies. Same rules as a device:
/// it never blocks, reads no clock, and every queue in it is bounded.
///
/// Order of calls in one turn of the loop: `on_completion`, `submit`, `on_deadline`, `poll_command`, `poll_reply`. Most
/// requests are one command, and need neither of the last two: see [`Target::submit_direct`].
pub trait Target {
    /// What the host asks.
    type Request: Copy;
    /// What the host is told.
    type Reply;

    /// Takes a request.
    ///
    /// # Errors
    /// The request itself, if a bound is reached; try again after a reply.
    fn submit(&mut self, now: Nanos, request: Self::Request) -> Result<(), Self::Request>;

    /// As [`Self::submit`], for a caller that gives the command to the device at once: most requests are one command.
    fn submit_direct(&mut self, now: Nanos, request: &Self::Request, buffers: &mut Buffers) -> Taken {
        let _ = buffers;
        self.submit(now, *request).map_or(Taken::Refused, |()| Taken::Queued)
    }

    /// As [`Self::on_completion`], for a caller that passes the reply on at once: the reply of a request that is over by
    /// it, if the target has nothing else to give then, neither commands nor replies, before it is called again.
    fn complete_direct(
        &mut self,
        now: Nanos,
        completion: Completion,
        buffers: &mut Buffers,
    ) -> Option<Self::Reply> {
        self.on_completion(now, completion, buffers);
        None
    }

    /// Hears of a command's end.
    fn on_completion(&mut self, now: Nanos, completion: Completion, buffers: &mut Buffers);

    /// Hears that its deadline has passed.
    fn on_deadline(&mut self, now: Nanos);

    /// When it wants to be woken for reasons of its own.
    fn deadline(&self) -> Option<Nanos>;

    /// False of a target that never has a deadline: the loop then asks it for none. Asked once.
    fn has_deadlines(&self) -> bool {
        true
    }

    /// Gives its next command for the device.
    fn poll_command(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Command>;

    /// Gives its next reply to the host.
    fn poll_reply(&mut self) -> Option<Self::Reply>;

    /// Asserts every invariant of the whole state. Slow; for simulators and tests.
    fn check(&self);
}
