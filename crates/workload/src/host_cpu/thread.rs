//! A thread of the workload: one request, and how far it is.
//!
//! Deliberately not here: what moves it on (`target`).

use super::config::Waiting;
use super::hosted::{Asked, Work};
use ocssd_base::Nanos;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// On its core, or waiting for it: the way to the inner target.
    Submit,
    /// On its core, at the lock or under it: the first look for room.
    Test,
    /// Waits to be offered to the inner target.
    Outside,
    /// The inner target has it.
    Inside,
    /// It has its reply, but has not looked yet.
    Notice,
    /// It has its reply and is being woken.
    Waking,
    /// On its core, or waiting for it: the way back.
    Finish,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread<Request, Reply> {
    /// As the host gave it.
    pub request: Request,
    /// What it is to the processors.
    pub asked: Asked,
    pub step: Step,
    pub core: u32,
    pub pages: u64,
    /// Since when it waits: for its core, or for the inner target to take it and reply.
    pub since: Nanos,
    /// When the inner target took it.
    pub entered: Nanos,
    pub was_refused: bool,
    pub spins: bool,
    /// It slept, so an interrupt and a switch are due.
    pub slept: bool,
    /// Its data is copied by its own core: into the ring, or out of memory.
    pub copies: bool,
    pub reply: Option<Reply>,
}

impl<Request, Reply> Thread<Request, Reply> {
    pub const fn new(now: Nanos, request: Request, asked: Asked, pages: u64) -> Self {
        Self {
            request,
            asked,
            step: Step::Submit,
            core: 0,
            pages,
            since: now,
            entered: now,
            was_refused: false,
            spins: false,
            slept: false,
            copies: false,
            reply: None,
        }
    }

    pub const fn is_write(&self) -> bool {
        matches!(self.asked.work, Work::Write { .. })
    }

    pub const fn is_read(&self) -> bool {
        matches!(self.asked.work, Work::Read)
    }

    /// A write that waits for room, not for the media, retries if that is how it waits. When a durable write gets its
    /// room cannot be seen, so it sleeps.
    pub fn may_spin(&self, waiting: Waiting) -> bool {
        waiting == Waiting::BusyRetry && self.asked.work == Work::Write { may_spin: true }
    }

    /// On its way back into the ring: it takes its places under the lock.
    pub const fn stores(&self) -> bool {
        self.is_write() && self.copies
    }

    /// Before the inner target took it.
    pub const fn is_outside(&self) -> bool {
        matches!(self.step, Step::Submit | Step::Test | Step::Outside)
    }

    /// Takes the reply: what is left to do for it.
    pub fn answered(&mut self, now: Nanos, reply: Reply, is_success: bool) {
        assert_eq!(self.step, Step::Inside, "a reply to a request the inner target does not have");
        self.copies = is_success
            && match self.asked.work {
                Work::Write { .. } => true,
                // Answered at once, so it came from memory.
                Work::Read => self.entered == now,
                Work::Other | Work::Shutdown => false,
            };
        self.reply = Some(reply);
    }
}
