//! The target: what a request and a command go through, one step after the other.
//!
//! Deliberately not here: what becomes of replies (`way_back`), what a step costs, and who waits.

use super::config::HostCpuConfig;
use super::cores::Cores;
use super::costs::Costs;
use super::ftl_threads::{Around, FtlThreads};
use super::lock::Lock;
use super::stats::StatsHandle;
use super::thread::{Step, Thread};
use super::threads::{ThreadNumber, Threads};
use super::zone_order::ZoneOrder;
use ocssd_base::{EventQueue, Nanos, Problems, Ring};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, Zones};
use ocssd_lightnvm::{Admission, BufId, Command, Completion, Out, Tag, Target};

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A thread's step is over.
    Thread(ThreadNumber),
    /// An FTL thread has prepared its command.
    FtlThread(u32),
}

/// A block target on virtual host CPUs; see the module for the model.
///
/// The inner target sees requests under other tags, as late as their threads reach it, and is offered what it refused
/// again, in order. Each request costs a few events, no memory after the start, whatever it waits for.
pub struct HostCpu {
    pub(super) inner: Box<dyn BlockTarget>,
    /// What the inner target gave.
    pub(super) inner_out: Out<BlockReply>,
    pub(super) costs: Costs,
    pub(super) threads: Threads,
    pub(super) cores: Cores,
    pub(super) lock: Lock,
    pub(super) map_lock: Lock,
    pub(super) ftl_threads: FtlThreads,
    pub(super) events: EventQueue<Event>,
    /// Requests the inner target may be offered, in order. Changes of zones are in `zone_order` instead.
    pub(super) outside: Ring<ThreadNumber>,
    pub(super) zone_order: Option<ZoneOrder>,
    /// Wait until nothing else is outside.
    pub(super) shutdowns: Ring<ThreadNumber>,
    /// Requests the inner target has not taken.
    pub(super) outside_count: u32,
    /// The inner target refused the next one, and nothing has changed since.
    pub(super) is_blocked: bool,
    pub(super) replies: Ring<BlockReply>,
    /// Requests in flight by buffer.
    pub(super) buffer_users: Vec<u32>,
    pub(super) now: Nanos,
    pub(super) stats: StatsHandle,
}

impl HostCpu {
    /// `inner` on CPUs like `config`.
    ///
    /// # Errors
    /// What is wrong with `config`.
    pub fn new(inner: Box<dyn BlockTarget>, config: HostCpuConfig) -> Result<Self, Problems> {
        config.check()?;
        let places = index(config.requests_max);
        Ok(Self {
            threads: Threads::new(config.requests_max),
            cores: Cores::new(config.cores, config.requests_max, config.spinner_starvation),
            lock: Lock::new(config.sockets()),
            map_lock: Lock::new(config.sockets()),
            ftl_threads: FtlThreads::new(config.writers),
            events: EventQueue::with_capacity(places),
            outside: Ring::new(places),
            zone_order: inner.zones().map(|_| ZoneOrder::new(places)),
            shutdowns: Ring::new(places),
            outside_count: 0,
            is_blocked: false,
            replies: Ring::new(places),
            buffer_users: Vec::new(),
            now: Nanos::ZERO,
            stats: StatsHandle::new(config.requests_max, config.writers),
            costs: Costs::new(config, inner.block_bytes()),
            inner,
            inner_out: Out::below(),
        })
    }

    /// The counters, to be kept when the loop takes the target.
    #[must_use]
    pub fn stats(&self) -> StatsHandle {
        self.stats.clone()
    }

    /// What it is like.
    #[must_use]
    pub const fn config(&self) -> &HostCpuConfig {
        self.costs.config()
    }

    /// The target within.
    #[must_use]
    pub fn inner(&self) -> &dyn BlockTarget {
        self.inner.as_ref()
    }

    /// Does everything that is due, until nothing is; true if there was anything.
    fn pump(&mut self, now: Nanos, out: &mut Out<BlockReply>) -> bool {
        self.now = now;
        let mut any = false;
        loop {
            let mut moved = false;
            while let Some((_, event)) = self.events.pop_due(now) {
                moved = true;
                match event {
                    Event::Thread(number) => self.step(now, number),
                    Event::FtlThread(thread) => {
                        self.ftl_threads.on_prepared(now, thread, &mut self.cores);
                    }
                }
            }
            moved |= self.offer(now, out);
            moved |= self.take_replies(now);
            any |= moved;
            if !moved {
                return any;
            }
        }
    }

    /// The step a thread was at is over.
    fn step(&mut self, now: Nanos, number: ThreadNumber) {
        let thread = *self.threads.get(number);
        match thread.step {
            Step::Submit if thread.is_write() => self.test(now, number),
            Step::Submit | Step::Test => self.ready(now, number),
            Step::Notice => {
                self.stop_spinning(now, number);
                self.finish(now, number);
            }
            Step::Waking => self.finish(now, number),
            Step::Finish => self.end(now, number),
            Step::Outside | Step::Inside => {
                unreachable!("a thread that waits for the inner target has no event")
            }
        }
    }

    /// Puts a thread on its core for its step, at once or when it is its turn.
    pub(super) fn enter_core(&mut self, now: Nanos, number: ThreadNumber) {
        let thread = self.threads.get_mut(number);
        thread.since = now;
        if self.cores.enter(thread.core, number) {
            self.run(now, number);
        }
    }

    /// A thread has its core.
    fn run(&mut self, now: Nanos, number: ThreadNumber) {
        let thread = *self.threads.get(number);
        let costs = &self.costs;
        let cpu = match thread.step {
            Step::Submit => costs.submit(thread.request.op),
            Step::Finish => {
                let copied = if thread.copies { thread.pages } else { 0 };
                let woken = if thread.slept { costs.config().completion_ns } else { Nanos::ZERO };
                costs.copy(copied, costs.sockets_of(self.threads.busy(now))) + woken
            }
            step => unreachable!("a thread has no core for {step:?}"),
        };
        let locked = if thread.step == Step::Finish && thread.stores() {
            let hold = costs.store_hold(thread.pages, self.lock.crowd());
            self.take_lock(now, hold)
        } else if thread.step == Step::Submit && thread.is_read() {
            self.look_up(now, thread.pages)
        } else {
            now
        };
        let stretch = self.cores.stretch(thread.core);
        self.events.push(locked + cpu * stretch, Event::Thread(number));
        self.stats.with(|stats| {
            stats.core_wait_ns += now - thread.since;
            stats.cpu_ns += cpu;
            stats.starved_ns += cpu * (stretch - 1);
        });
    }

    /// When a read that begins now has looked up its pages: under the map's lock, and slower the more sockets read.
    fn look_up(&mut self, now: Nanos, pages: u64) -> Nanos {
        let crowd = self.map_lock.crowd();
        let slower = self.costs.sockets_of_reads(crowd.sockets);
        if self.config().map_lock_page_ns == Nanos::ZERO {
            return now + slower;
        }
        let hold = self.costs.look_up_hold(pages, crowd);
        let granted = self.map_lock.take(now, hold, &self.costs);
        self.counts_hold(hold, granted.wait);
        granted.end + slower
    }

    /// When a hold asked for now ends.
    fn take_lock(&mut self, now: Nanos, hold: Nanos) -> Nanos {
        let granted = self.lock.take(now, hold, &self.costs);
        self.counts_hold(hold, granted.wait);
        granted.end
    }

    fn counts_hold(&self, hold: Nanos, wait: Nanos) {
        self.stats.with(|stats| {
            stats.lock_holds += 1;
            stats.lock_held_ns += hold;
            stats.lock_wait_ns += wait;
        });
    }

    /// A write looks for room: it keeps its core meanwhile.
    fn test(&mut self, now: Nanos, number: ThreadNumber) {
        self.threads.get_mut(number).step = Step::Test;
        let end = self.take_lock(now, self.costs.test_hold(self.lock.crowd()));
        self.events.push(end, Event::Thread(number));
    }

    pub(super) fn leave_core(&mut self, now: Nanos, number: ThreadNumber) {
        let core = self.threads.get(number).core;
        if let Some(next) = self.cores.leave(core, number) {
            self.run(now, next);
        }
    }

    /// A request is ready for the inner target.
    fn ready(&mut self, now: Nanos, number: ThreadNumber) {
        self.leave_core(now, number);
        let waiting = self.config().waiting;
        let thread = self.threads.get_mut(number);
        (thread.step, thread.since) = (Step::Outside, now);
        let (op, core) = (thread.request.op, thread.core);
        if thread.may_spin(waiting) {
            thread.spins = true;
            self.cores.spin(core);
            self.lock.spin();
        }
        let queue = if op == BlockOp::Shutdown { &mut self.shutdowns } else { &mut self.outside };
        if self.zone_order.is_none() || !ZoneOrder::covers(op) {
            queue.push(number).expect("there are as many places as requests");
        }
    }

    /// Offers what is ready, until the inner target refuses; true if it took any.
    fn offer(&mut self, now: Nanos, out: &mut Out<BlockReply>) -> bool {
        let mut any = false;
        while !self.is_blocked
            && let Some(number) = self.next_outside()
        {
            let request = BlockRequest { tag: Tag(number.0), ..self.threads.get(number).request };
            let inner = &mut self.inner;
            let taken =
                out.lend(&mut self.inner_out, 0, |below| inner.submit(now, &request, below)).is_taken();
            let thread = self.threads.get_mut(number);
            if !taken {
                self.is_blocked = true;
                let first = !std::mem::replace(&mut thread.was_refused, true);
                self.stats.with(|stats| stats.refused += u64::from(first));
                break;
            }
            (thread.step, thread.entered) = (Step::Inside, now);
            let waited = now - thread.since;
            self.stats.with(|stats| stats.refused_ns += waited);
            self.taken(number);
            any = true;
        }
        any
    }

    fn next_outside(&self) -> Option<ThreadNumber> {
        let change = || self.zone_order.as_ref()?.ready(&self.threads);
        let last = || self.shutdowns.front().copied().filter(|_| self.only_shutdowns_are_outside());
        self.outside.front().copied().or_else(change).or_else(last)
    }

    /// The inner target takes nothing after a shutdown, so whatever arrived before must not come later.
    fn only_shutdowns_are_outside(&self) -> bool {
        self.shutdowns.len() == index(self.outside_count)
    }

    /// The inner target took what [`Self::next_outside`] said.
    fn taken(&mut self, number: ThreadNumber) {
        self.outside_count -= 1;
        if self.outside.front() == Some(&number) {
            self.outside.pop();
        } else if self.shutdowns.front() == Some(&number) {
            self.shutdowns.pop();
        } else {
            self.zone_order.as_mut().expect("a change of a zone").taken(number);
        }
    }

    fn uses(&mut self, buffer: BufId) {
        let place = index(buffer.0);
        if self.buffer_users.len() <= place {
            self.buffer_users.resize(place + 1, 0);
        }
        self.buffer_users[place] += 1;
    }

    /// Whether a request's own thread submits a command.
    fn is_of_request(&self, command: &Command) -> bool {
        let users = |buffer: BufId| self.buffer_users.get(index(buffer.0)).copied();
        command.buffer.and_then(users).is_some_and(|users| users > 0)
    }

    /// Lets the inner target go on, by one command if the FTL's threads and the device have room for it: that command.
    fn advance_inner(&mut self, now: Nanos, out: &mut Out<BlockReply>) -> Option<Command> {
        let inner = &mut self.inner;
        let room = usize::from(out.has_room() && self.ftl_threads.has_room());
        out.lend(&mut self.inner_out, room, |below| inner.advance(now, below));
        self.inner_out.commands_mut().0.pop()
    }

    /// Gives the replies that wait.
    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.replies.pop() {
            out.reply(reply);
        }
    }

    fn start_ftl_threads(&mut self, now: Nanos) {
        let sockets = self.costs.sockets_of(self.threads.busy(now));
        let Self { costs, cores, events, stats, .. } = self;
        self.ftl_threads.start(now, &mut Around { costs, cores, events, stats, sockets });
    }
}

impl Target for HostCpu {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        if self.threads.is_full() || self.replies.len() + self.threads.len() >= self.replies.capacity() {
            return Admission::Full;
        }
        let pages = self.costs.pages(request.count);
        let Some(number) = self.threads.begin(now, Thread::new(now, *request, 0, pages)) else {
            return Admission::Full;
        };
        let core = self.cores.of(number);
        self.threads.get_mut(number).core = core;
        self.outside_count += 1;
        let socket = core / self.config().cores_per_socket;
        if request.op == BlockOp::Read {
            self.map_lock.user_begins(socket);
        }
        if matches!(request.op, BlockOp::Write { .. }) {
            self.lock.user_begins(socket);
        }
        if let Some(buffer) = request.buffer {
            self.uses(buffer);
        }
        if let Some(order) = self.zone_order.as_mut().filter(|_| ZoneOrder::covers(request.op)) {
            order.arrive(number);
        }
        self.enter_core(now, number);
        self.pump(now, out);
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        let inner = &mut self.inner;
        out.lend(&mut self.inner_out, 0, |below| inner.on_completion(now, completion, below));
        self.is_blocked = false;
        self.pump(now, out);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        if self.inner.deadline().is_some_and(|at| at <= now) {
            let inner = &mut self.inner;
            out.lend(&mut self.inner_out, 0, |below| inner.on_deadline(now, below));
            self.is_blocked = false;
        }
        self.pump(now, out);
    }

    fn deadline(&self) -> Option<Nanos> {
        [self.events.deadline(), self.inner.deadline()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        loop {
            self.start_ftl_threads(now);
            let moved = self.pump(now, out);
            if out.has_room()
                && let Some(command) = self.ftl_threads.take(now, &self.stats)
            {
                self.start_ftl_threads(now);
                out.command(command);
                continue;
            }
            match self.advance_inner(now, out) {
                Some(command) if self.is_of_request(&command) => {
                    self.pump(now, out);
                    out.command(command);
                }
                Some(command) => self.ftl_threads.queue(now, command, &out.buffers),
                None if !self.pump(now, out) && !moved => break,
                None => (),
            }
        }
        self.give_replies(out);
    }

    fn prefetch(&self, blocks: &[u64]) {
        self.inner.prefetch(blocks);
    }

    fn prefetches(&self) -> bool {
        self.inner.prefetches()
    }

    fn check(&self) {
        let count = |is: fn(&Thread) -> bool| {
            u32::try_from(self.threads.iter().filter(|&thread| is(thread)).count()).expect("few")
        };
        let spinners = count(|thread| thread.spins);
        assert_eq!(count(Thread::is_outside), self.outside_count, "requests outside");
        self.lock.check(spinners, count(Thread::is_write));
        self.map_lock.check(0, count(Thread::is_read));
        self.cores.check(spinners, self.ftl_threads.running());
        self.ftl_threads.check();
        let waiting =
            self.outside.len() + self.shutdowns.len() + self.zone_order.as_ref().map_or(0, ZoneOrder::len);
        assert!(waiting <= index(self.outside_count), "more requests wait than there are outside");
        assert!(self.threads.len() + self.replies.len() <= self.replies.capacity(), "room for every reply");
        self.inner.check();
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.inner.counters();
        counters.extend(super::counters::counters(&self.stats.read()));
        counters
    }
}

impl BlockTarget for HostCpu {
    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn block_count(&self) -> u64 {
        self.inner.block_count()
    }

    fn zones(&self) -> Option<Zones> {
        self.inner.zones()
    }

    fn write_unit(&self) -> u32 {
        self.inner.write_unit()
    }

    fn unreadable_tail(&self) -> u64 {
        self.inner.unreadable_tail()
    }

    fn is_mapped(&self, block: u64) -> Option<bool> {
        self.inner.is_mapped(block)
    }

    fn zone_written(&self, zone: u64) -> u64 {
        let written = self.inner.zone_written(zone);
        let (Some(zones), Some(order)) = (self.inner.zones(), &self.zone_order) else { return written };
        order.written(&self.threads, zone * zones.blocks, zones.blocks, written)
    }
}

pub(super) fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}
