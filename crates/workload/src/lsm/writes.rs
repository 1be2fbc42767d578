//! The write queue: puts of all threads, one after the other.
//!
//! A put waits for those before it, for room in a memtable, until puts go on if they are stopped, and as long as the rate asks
//! if they are slowed down; only then it is there. What its thread does beside (`Costs::put`) others do at the same time.
//! Deliberately not here: the rules (`throttle`).

use super::client::Doing;
use super::run::Record;
use super::source::{Event, Lsm};
use super::throttle::{Cause, Condition, Facts};
use ocssd_base::Nanos;
use std::collections::VecDeque;

/// The queue.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteQueue {
    /// Threads that wait, in order.
    waiting: VecDeque<usize>,
    /// When the put before is done.
    free_at: Nanos,
    /// There is an event at that time.
    is_awaited: bool,
    /// Since when puts are stopped, and why.
    stopped: Option<(Nanos, Cause)>,
}

impl Lsm {
    /// A thread puts a key.
    pub(super) fn queue_put(&mut self, now: Nanos, client: usize) {
        let key = self.clients[client].next_key();
        self.clients[client].doing = Doing::Put { key, began: now };
        self.queue.waiting.push_back(client);
        self.write(now);
    }

    /// A thread that puts beside others puts a key, or waits until it may. A put that came late makes none after it come sooner.
    pub(super) fn put_beside(&mut self, now: Nanos, client: usize) {
        let state = &mut self.clients[client];
        if now < state.puts_from {
            let from = state.puts_from;
            return self.wake(from, client);
        }
        let (bytes, rate) = (self.options.record_bytes, self.options.writer_rate);
        if rate > 0 {
            state.puts_from = now + Nanos((bytes * 1_000_000_000).div_ceil(rate));
        }
        self.queue_put(now, client);
    }

    /// The put before is done.
    pub(super) fn on_write_turn(&mut self, now: Nanos) {
        self.queue.is_awaited = false;
        self.write(now);
    }

    /// Goes on with puts as far as they can now.
    pub(super) fn write(&mut self, now: Nanos) {
        while let Some(&client) = self.queue.waiting.front() {
            if now < self.queue.free_at {
                if !std::mem::replace(&mut self.queue.is_awaited, true) {
                    self.events.push(self.queue.free_at, Event::Write);
                }
                return;
            }
            if self.memtables.puts() * self.options.record_bytes >= self.options.write_buffer_bytes {
                self.switch_memtable(now);
            }
            if let Condition::Stopped(cause) = self.throttle.condition() {
                self.hold_up(now, Some(cause));
                return;
            }
            self.hold_up(now, None);
            self.queue.waiting.pop_front();
            self.put(now, client);
        }
    }

    /// Puts are stopped for a cause, or go on.
    fn hold_up(&mut self, now: Nanos, cause: Option<Cause>) {
        let (since, before) = self.queue.stopped.unzip();
        if before == cause {
            return;
        }
        if let Some((since, before)) = since.zip(before) {
            self.phase().stall((since, now), before, true);
        }
        self.queue.stopped = cause.map(|cause| (now, cause));
    }

    fn put(&mut self, now: Nanos, client: usize) {
        let Doing::Put { key, began } = self.clients[client].doing else {
            unreachable!("thread {client} is in the write queue and puts nothing")
        };
        let bytes = self.options.record_bytes;
        let delay = self.throttle.delay(now, bytes);
        if let Condition::Delayed(cause) = self.throttle.condition() {
            let rate = self.throttle.rate();
            let phase = self.phase();
            phase.stall((now, now + delay), cause, false);
            phase.rate_min = Some(phase.rate_min.map_or(rate, |before| before.min(rate)));
        }
        self.versions += 1;
        self.memtables.put(Record { key, version: self.versions });
        self.newest.insert(key, self.versions);
        self.queue.free_at = now + delay + self.options.costs.put_serial;
        let done = self.queue.free_at + self.options.costs.put;
        let phase = self.phase();
        phase.work.put_bytes += bytes;
        phase.puts.record(done.saturating_since(began));
        phase.point(done).puts += 1;
        self.wake(done, client);
    }

    /// The memtable is full: another begins.
    pub(super) fn switch_memtable(&mut self, now: Nanos) {
        self.memtables.switch();
        self.look(now);
        self.begin_jobs(now);
    }

    /// Looks at whether puts go on.
    pub(super) fn look(&mut self, now: Nanos) {
        let level0 = self.tree.levels[0].len();
        let facts = Facts {
            unflushed: self.memtables.unflushed(),
            level0,
            pending_bytes: super::pick::pending_bytes(&self.tree, &self.options),
        };
        self.throttle.look(now, facts, &self.options);
        let point = self.phase().point(now);
        point.level0_max = point.level0_max.max(level0);
    }

    /// Puts that are stopped when a benchmark ends are stopped in it until then.
    pub(super) fn end_stall(&mut self, now: Nanos) {
        self.hold_up(now, None);
        self.queue.waiting.clear();
    }
}
