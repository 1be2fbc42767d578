//! A source for a caller that asks by itself and looks at the replies between turns: a simulator, a test, a shutdown.
//!
//! Deliberately not here: what is asked, and what is right.

use ocssd_base::Nanos;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::{Buffers, Source, Target, TargetId};
use std::collections::VecDeque;

/// Requests to the first target of a host, and its replies.
pub struct Requests<T: Target + ?Sized = dyn BlockTarget> {
    /// Oldest first; none passes another.
    waiting: VecDeque<T::Request>,
    replies: Vec<T::Reply>,
    /// The target had no room for the oldest, and has replied to nothing since.
    is_full: bool,
    /// Requests the target had no room for when they were offered.
    refused: u64,
    /// Requests the target has, and has not replied to.
    in_flight: usize,
}

impl<T: Target + ?Sized> Default for Requests<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), replies: Vec::new(), is_full: false, refused: 0, in_flight: 0 }
    }
}

impl<T: Target + ?Sized> Requests<T> {
    /// Asks for something: the target is offered it in the next turn.
    pub fn push(&mut self, request: T::Request) {
        self.waiting.push_back(request);
        self.is_full = false;
    }

    /// Forgets what was asked and answered.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.replies.clear();
        self.in_flight = 0;
        self.is_full = false;
    }

    /// The replies since the last call, oldest first.
    pub fn take_replies(&mut self) -> Vec<T::Reply> {
        std::mem::take(&mut self.replies)
    }

    /// How often the target had no room since the last call.
    pub const fn take_refused(&mut self) -> u64 {
        std::mem::replace(&mut self.refused, 0)
    }
}

impl<T: Target + ?Sized> Source<T> for Requests<T> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, T::Request)> {
        let request = if self.is_full { None } else { self.waiting.pop_front() }?;
        self.in_flight += 1;
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: T::Request) {
        self.refused += 1;
        self.in_flight -= 1;
        self.is_full = true;
        self.waiting.push_front(request);
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: T::Reply, _buffers: &mut Buffers) {
        self.replies.push(reply);
        self.in_flight -= 1;
        self.is_full = false;
    }

    fn is_finished(&self) -> bool {
        self.waiting.is_empty() && self.in_flight == 0
    }
}
