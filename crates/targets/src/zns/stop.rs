//! Ends: flushes, shutdown, and what happens when nothing can be written any more.
//!
//! A flush waits for what was answered before it: each zone's blocks up to where it was, or a reset of the zone after that,
//! and for the log to say where they are. A drive that fails as such, or so many bad chunks that no room is left, ends changes;
//! reads go on. Deliberately not here: chunks that fail one by one.

use super::canary::Canary;
use super::state::{Changes, Zns};
use super::writer::{Goal, ZoneOp};
use ocssd_base::SlabKey;
use ocssd_ftl::log::Lsn;
use ocssd_lightnvm::{Buffers, Status};

/// A flush that was taken.
#[derive(Clone, Debug)]
pub(super) struct Flush {
    request: SlabKey,
    /// The page of the log before which everything must be durable.
    until: Lsn,
    /// Zones with blocks that were not durable: the zone, since when it lives, and what of it must be.
    zones: Vec<(u32, u64, Goal)>,
}

impl Zns {
    /// A flush: what was answered is to be durable.
    pub(super) fn take_flush(&mut self, request: SlabKey) {
        let unit = self.sizes.unit;
        let mut zones = Vec::new();
        for nth in 0..self.turns.len() {
            let writer = self.writers.get_mut(self.turns[nth]);
            let (zone, goal) = (writer.zone, writer.goal());
            if writer.is_given_up {
                // Whoever waited for its blocks was told.
                continue;
            }
            writer.wait_for(goal);
            if !writer.has_reached(goal, unit) || writer.bound > self.journal.log.durable() {
                zones.push((zone, self.zone(zone).since, goal));
            }
        }
        self.flushes.push_back(Flush { request, until: self.journal.log.end(), zones });
        self.await_log(self.journal.log.end());
        self.work_due = true;
    }

    /// Answers flushes that are over. True if there was one.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        while let Some(mut flush) = self.flushes.pop_front() {
            let failed = self.refuses_changes();
            if failed.is_none() && !self.is_flushed(&mut flush) {
                self.flushes.push_front(flush);
                break;
            }
            if let Some(status) = failed {
                self.requests.fail(flush.request, status);
            }
            self.requests.part_done(flush.request);
            any = true;
        }
        any
    }

    fn is_flushed(&mut self, flush: &mut Flush) -> bool {
        let (unit, end) = (self.sizes.unit, self.journal.log.end());
        let forgets_log = self.has_canary(Canary::FlushForgetsLog);
        let forgets_tail = self.has_canary(Canary::FlushForgetsTail);
        let (mut until, mut is_lost) = (flush.until, false);
        flush.zones.retain(|&(number, since, goal)| {
            let zone = &self.zones[ocssd_base::usize_of(number)];
            let Some(key) = zone.writer().filter(|_| zone.since == since) else {
                // It was reset or finished meanwhile, which the log says.
                until = until.max(end);
                return false;
            };
            let writer = self.writers.get(key);
            let whole = Goal { blocks: goal.blocks / unit * unit, version: 0 };
            if !writer.has_reached(if forgets_tail { whole } else { goal }, unit) {
                is_lost |= writer.is_given_up;
                return !writer.is_given_up;
            }
            until = until.max(writer.bound);
            false
        });
        flush.until = until;
        if is_lost {
            self.requests.fail(flush.request, Status::WRITE_FAULT);
        }
        if !forgets_log {
            self.await_log(until);
        }
        flush.zones.is_empty() && (until <= self.journal.log.durable() || forgets_log)
    }

    pub(super) const fn has_drive_failed(&self) -> bool {
        matches!(self.changes, Changes::DriveFailed(_))
    }

    /// Everything that was asked for but the shutdown is over, and durable.
    fn is_quiet_but_for_shutdown(&mut self) -> bool {
        if self.shutdown.is_none() || !self.requests.is_idle_but_for(1) || self.tails.in_flight() > 0 {
            return false;
        }
        if self.journal.log.is_pending() {
            self.await_log(self.journal.log.end());
            return false;
        }
        let (unit, mut is_quiet) = (self.sizes.unit, true);
        for nth in 0..self.turns.len() {
            let writer = self.writers.get_mut(self.turns[nth]);
            let goal = writer.goal();
            let is_durable = writer.is_given_up || writer.has_reached(goal, unit);
            self.work_due |= !is_durable && writer.wait_for(goal);
            is_quiet &= is_durable && writer.is_quiet();
        }
        is_quiet
    }

    /// True if a shutdown waits for a checkpoint that is not begun.
    pub(super) fn is_last_due(&mut self) -> bool {
        let end = self.journal.log.end();
        let is_covered = self.journal.current().is_some_and(|kept| kept.start == end);
        !is_covered && self.is_quiet_but_for_shutdown()
    }

    /// Ends the instance once its last checkpoint is there. True if it did.
    pub(super) fn shut_down(&mut self) -> bool {
        let Some(request) = self.shutdown else { return false };
        let is_stopped = self.refuses_changes().is_some() && self.requests.is_idle_but_for(1);
        let is_done = self.is_quiet_but_for_shutdown() && !self.is_last_due() && !self.journal.is_writing();
        if !is_done && !is_stopped || self.flight.len() > 0 {
            return false;
        }
        assert!(!self.is_shut_down, "an instance is shut down twice");
        self.shutdown = None;
        self.is_shut_down = true;
        if let Changes::DriveFailed(status) = self.changes {
            self.requests.fail(request, status);
        }
        self.requests.part_done(request);
        true
    }

    /// The drive failed with `status`.
    pub(super) fn stop(&mut self, status: Status) {
        assert!(status.is_drive_failure(), "{status} says nothing of the drive");
        if !self.has_drive_failed() {
            self.end_changes(Changes::DriveFailed(status));
        }
    }

    /// No more changes are taken: those under way are answered. Buffer units stay, for reads.
    fn end_changes(&mut self, how: Changes) {
        assert!(how != Changes::Taken, "changes end by being taken");
        self.changes = how;
        let status = self.refuses_changes().expect("changes are not taken");
        self.journal.stop();
        let mut ended: Vec<SlabKey> = self.waits.drain(..).map(|(_, request)| request).collect();
        for nth in 0..self.turns.len() {
            let writer = self.writers.get_mut(self.turns[nth]);
            ended.extend(writer.take_waiters());
            ended.extend(writer.queue.drain(..).map(ZoneOp::request));
        }
        for request in ended {
            self.requests.give_up(request, status);
        }
        self.work_due = true;
    }

    fn somebody_waits(&self) -> bool {
        self.writers.iter().any(|(_, writer)| !writer.queue.is_empty() || writer.has_waiters())
            || !self.waits.is_empty()
            || !self.flushes.is_empty()
            || self.journal.is_writing()
            || self.shutdown.is_some() && self.zone_without_place().is_some()
    }

    /// Nothing is in flight and somebody waits: a zone that has no place for what it holds becomes read only; if there is
    /// none, changes end. True if something was given up.
    pub(super) fn give_up(&mut self, buffers: &mut Buffers) -> bool {
        let is_stuck = self.flight.len() == 0 && self.refuses_changes().is_none() && self.somebody_waits();
        if is_stuck && self.may_end_move() {
            // Its chunk may be the one that is wanted.
            self.end_move();
            return true;
        }
        if is_stuck && !self.give_up_zone(buffers) {
            self.end_changes(Changes::NoSpare);
        }
        is_stuck
    }
}
