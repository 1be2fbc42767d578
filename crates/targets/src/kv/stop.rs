//! Ends: replies that wait for durability, shutdown, and what happens when nothing can be written any more.
//!
//! A drive that fails as such, or so many bad chunks that no room is left, ends changes; reads go on, and what was answered
//! as durable stays. Deliberately not here: chunks that fail one by one.

use super::buffer_units::Stream;
use super::canary::Canary;
use super::state::{Changes, Kv};
use ocssd_lightnvm::interface::key_value::{KvAnswer, KvReply};
use ocssd_lightnvm::{Status, Tag};

impl Kv {
    /// Answers those that waited for what is durable now. True if there was one.
    pub(super) fn answer_durable(&mut self) -> bool {
        if self.waiters.is_empty() {
            return false;
        }
        let forgets = self.has_canary(Canary::FlushForgetsLong);
        let streams = if forgets { &[Stream::Small][..] } else { &Stream::USERS };
        let durable = self.buffer_units.durable_before(streams, self.sequence + 1);
        let last = self.waiters.back().map_or(0, |waiter| waiter.until);
        assert!(last <= self.sequence, "a reply waits for record {last}, and {} is the last", self.sequence);
        let mut any = false;
        while let Some(waiter) = self.waiters.pop_front_if(|waiter| waiter.until < durable) {
            self.replies.push_back(waiter.reply);
            any = true;
        }
        any
    }

    /// Everything that was asked for but the shutdown is over.
    fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.waiters.is_empty() && self.reads.jobs() == 0
    }

    /// True if a shutdown waits for a checkpoint that is not begun.
    pub(super) fn is_last_checkpoint_due(&self) -> bool {
        self.shutdown.is_some() && self.is_quiet() && self.checkpoint.covered() != Some(self.sequence)
    }

    /// Ends the instance once its last checkpoint is there. True if it did.
    pub(super) fn shut_down(&mut self) -> bool {
        let Some(tag) = self.shutdown else { return false };
        let is_covered = self.checkpoint.covered() == Some(self.sequence) && !self.checkpoint.is_writing();
        let is_over = self.refuses_changes().is_some() || is_covered && !self.buffer_units.has_ready();
        if !self.is_quiet() || !is_over || self.flight.len() > 0 {
            return false;
        }
        assert!(!self.is_shut_down, "an instance is shut down twice");
        self.shutdown = None;
        self.is_shut_down = true;
        match self.changes {
            Changes::DriveFailed(status) => self.fail(tag, status),
            Changes::Taken | Changes::NoSpare | Changes::IndexLost => {
                self.replies.push_back(KvReply::success(tag, KvAnswer::Done));
            }
        }
        true
    }

    /// The drive failed with `status`.
    pub(super) fn stop(&mut self, status: Status) {
        assert!(status.is_drive_failure(), "{status} says nothing of the drive");
        if !matches!(self.changes, Changes::DriveFailed(_)) {
            self.end_changes(Changes::DriveFailed(status));
        }
    }

    /// No more changes are taken: those that wait to be durable fail.
    pub(super) fn end_changes(&mut self, how: Changes) {
        assert!(how != Changes::Taken, "changes end by being taken");
        self.changes = how;
        let status = self.refuses_changes().expect("changes are not taken");
        self.abandon_checkpoint();
        let waiting: Vec<Tag> = self.waiters.drain(..).map(|waiter| waiter.reply.tag).collect();
        waiting.into_iter().for_each(|tag| self.fail(tag, status));
        self.work_due = true;
    }

    /// Nothing is in flight and somebody waits: something is tried that would not be otherwise, or changes end. True if
    /// there is something to go on with.
    pub(super) fn give_up(&mut self) -> bool {
        let waits = !self.queue.is_empty()
            || !self.waiters.is_empty()
            || self.checkpoint.is_writing()
            || self.buffer_units.has_ready()
            || self.buffer_units.next_again().is_some();
        // What waits for the next turn goes on in it.
        let goes_on = self.flight.len() > 0 || self.copies.is_waited_for();
        if !waits || goes_on || self.refuses_changes().is_some() {
            return false;
        }
        let closes = |kv: &mut Self| Stream::ALL.into_iter().any(|stream| kv.buffer_units.close(stream));
        if closes(self) {
            return true;
        }
        if !self.checkpoint.is_writing() && (self.space.waits_for_checkpoint() > 0 || self.pages.waits()) {
            self.begin_checkpoint();
            return true;
        }
        if self.gc.victims() == 0 && self.choose_victim() {
            return true;
        }
        self.end_changes(Changes::NoSpare);
        true
    }
}
