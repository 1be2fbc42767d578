//! Who looks at a run: every event, as it happens, and whether the run goes on to the next.

use ocssd_base::Nanos;
use ocssd_lightnvm::{Buffers, Command, Completion};

/// Looks at the events of a turn: completions the device gives, and commands it takes. An observer may stop the turn between
/// any two of them, as a power cut does.
pub trait Observer {
    /// False of one for which any number of events may happen: it is not asked then.
    const STOPS: bool = true;

    /// How many more events may happen. Asked before each; at 0 the turn ends where it is.
    fn events_left(&self) -> u64;

    /// The device gave a completion; the target hears of it next.
    fn on_completion(&mut self, now: Nanos, completion: &Completion);

    /// The target gave a command; the device gets it next, or when it has room.
    fn on_command(&mut self, now: Nanos, command: &Command, buffers: &Buffers);
}

/// Nobody looks, and nothing stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const STOPS: bool = false;

    #[inline(always)]
    fn events_left(&self) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn on_completion(&mut self, _now: Nanos, _completion: &Completion) {}

    #[inline(always)]
    fn on_command(&mut self, _now: Nanos, _command: &Command, _buffers: &Buffers) {}
}
