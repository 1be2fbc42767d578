//! What the engine shows of a turn: every event goes into the journal and is counted, and the power goes at a count.
//!
//! Deliberately not here: what a power cut does (`world`).

use crate::journal::Journal;
use ocssd_base::Nanos;
use ocssd_engine::Observer;
use ocssd_lightnvm::{Buffers, Command, Completion};

/// The observer of one turn.
pub(super) struct Events<'a> {
    /// Commands the target gave, and completions the device gave, so far.
    pub count: &'a mut u64,
    /// The turn ends once there were so many.
    pub cut_at: u64,
    /// Where they are written down.
    pub journal: &'a mut Journal,
}

impl Observer for Events<'_> {
    fn events_left(&self) -> u64 {
        self.cut_at.saturating_sub(*self.count)
    }

    fn on_completion(&mut self, now: Nanos, completion: &Completion) {
        self.journal.completion(now, completion);
        *self.count += 1;
    }

    fn on_command(&mut self, now: Nanos, command: &Command, buffers: &Buffers) {
        self.journal.command(now, command, buffers, false);
        *self.count += 1;
    }
}
