//! The target: what a request and a command go through, one step after the other.
//!
//! Deliberately not here: what becomes of replies (`way_back`), what a step costs, and who waits.

use super::config::HostCpuConfig;
use super::cores::Cores;
use super::costs::Costs;
use super::ftl_threads::{Around, FtlThreads};
use super::host_order::HostOrder;
use super::hosted::{Hosted, Work};
use super::lock::Lock;
use super::stats::StatsHandle;
use super::thread::{Step, Thread};
use super::threads::{ThreadNumber, Threads};
use ocssd_base::{EventQueue, Nanos, Problems, Ring};
use ocssd_lightnvm::block::{BlockTarget, Counter};
use ocssd_lightnvm::{Admission, BufId, Buffers, Command, Completion, Op, Out, Tag, Target};

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A thread's step is over.
    Thread(ThreadNumber),
    /// An FTL thread has prepared its command.
    FtlThread(u32),
}

/// A target on virtual host CPUs; see the module for the model.
///
/// The inner target sees requests under other tags, as late as their threads reach it, and is offered what it refused
/// again, in order. Each request costs a few events, no memory after the start, whatever it waits for.
pub struct HostCpu<T: Hosted + ?Sized = dyn BlockTarget> {
    pub(super) inner: Box<T>,
    /// What the inner target gave.
    pub(super) inner_out: Out<T::Reply>,
    pub(super) costs: Costs,
    pub(super) threads: Threads<T::Request, T::Reply>,
    pub(super) cores: Cores,
    pub(super) lock: Lock,
    pub(super) map_lock: Lock,
    pub(super) ftl_threads: FtlThreads,
    pub(super) events: EventQueue<Event>,
    /// Requests the inner target may be offered, in order. What is ordered is in `order` instead.
    pub(super) outside: Ring<ThreadNumber>,
    pub(super) order: Option<HostOrder>,
    /// Wait until nothing else is outside.
    pub(super) shutdowns: Ring<ThreadNumber>,
    /// Requests the inner target has not taken.
    pub(super) outside_count: u32,
    /// The inner target refused the next one, and nothing has changed since.
    pub(super) is_blocked: bool,
    pub(super) replies: Ring<T::Reply>,
    /// Pieces of requests in flight by buffer.
    pub(super) buffer_users: Vec<u32>,
    /// Requests the inner target has that read.
    pub(super) reads_inside: u32,
    pub(super) now: Nanos,
    pub(super) stats: StatsHandle,
}

impl HostCpu {
    /// `inner` on CPUs like `config`. Its blocks are the drive's sectors.
    ///
    /// # Errors
    /// What is wrong with `config`.
    pub fn new(inner: Box<dyn BlockTarget>, config: HostCpuConfig) -> Result<Self, Problems> {
        let sector_bytes = inner.block_bytes();
        Self::on_sectors(inner, sector_bytes, config)
    }
}

impl<T: Hosted + ?Sized> HostCpu<T> {
    /// `inner`, on a drive with sectors of so many bytes, on CPUs like `config`.
    ///
    /// # Errors
    /// What is wrong with `config`.
    pub fn on_sectors(inner: Box<T>, sector_bytes: u32, config: HostCpuConfig) -> Result<Self, Problems> {
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
            order: HostOrder::new(inner.ordered(), places),
            shutdowns: Ring::new(places),
            outside_count: 0,
            is_blocked: false,
            replies: Ring::new(places),
            buffer_users: Vec::new(),
            reads_inside: 0,
            now: Nanos::ZERO,
            stats: StatsHandle::new(config.requests_max, config.writers),
            costs: Costs::new(config, sector_bytes),
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
    pub fn inner(&self) -> &T {
        self.inner.as_ref()
    }

    /// Does everything that is due, until nothing is; true if there was anything.
    fn pump(&mut self, now: Nanos, out: &mut Out<T::Reply>) -> bool {
        self.now = now;
        let mut any = false;
        loop {
            let mut moved = false;
            while let Some((_, event)) = self.events.pop_due(now) {
                moved = true;
                match event {
                    Event::Thread(number) => self.step(now, number, &out.buffers),
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
    fn step(&mut self, now: Nanos, number: ThreadNumber, buffers: &Buffers) {
        let thread = self.threads.get(number);
        match thread.step {
            Step::Submit if thread.is_write() => self.test(now, number),
            Step::Submit | Step::Test => self.ready(now, number),
            Step::Notice => {
                self.stop_spinning(now, number);
                self.finish(now, number);
            }
            Step::Waking => self.finish(now, number),
            Step::Finish => self.end(now, number, buffers),
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
            Step::Submit => costs.submit(thread.asked.work),
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
        let (asked, core) = (thread.asked, thread.core);
        if thread.may_spin(waiting) {
            thread.spins = true;
            self.cores.spin(core);
            self.lock.spin();
        }
        let queue = if asked.work == Work::Shutdown { &mut self.shutdowns } else { &mut self.outside };
        if self.order.as_ref().is_none_or(|order| !order.covers(asked)) {
            queue.push(number).expect("there are as many places as requests");
        }
    }

    /// Offers what is ready, until the inner target refuses; true if it took any.
    fn offer(&mut self, now: Nanos, out: &mut Out<T::Reply>) -> bool {
        let mut any = false;
        while !self.is_blocked
            && let Some(number) = self.next_outside()
        {
            let request = T::with_tag(self.threads.get(number).request, Tag(number.0));
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
            self.reads_inside += u32::from(thread.is_read());
            let waited = now - thread.since;
            self.stats.with(|stats| stats.refused_ns += waited);
            self.taken(number);
            any = true;
        }
        any
    }

    fn next_outside(&self) -> Option<ThreadNumber> {
        let ordered = || self.order.as_ref()?.ready(&self.threads);
        let last = || self.shutdowns.front().copied().filter(|_| self.only_shutdowns_are_outside());
        self.outside.front().copied().or_else(ordered).or_else(last)
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
            self.order.as_mut().expect("something that is ordered").taken(number);
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
        let is_read_for_one = T::READS_ANY_BYTES && command.op == Op::Read && self.reads_inside > 0;
        is_read_for_one || command.buffer.and_then(users).is_some_and(|users| users > 0)
    }

    /// Lets the inner target go on, by one command if the FTL's threads and the device have room for it: that command.
    fn advance_inner(&mut self, now: Nanos, out: &mut Out<T::Reply>) -> Option<Command> {
        let inner = &mut self.inner;
        let room = usize::from(out.has_room() && self.ftl_threads.has_room());
        out.lend(&mut self.inner_out, room, |below| inner.advance(now, below));
        self.inner_out.commands_mut().0.pop()
    }

    /// Gives the replies that wait.
    fn give_replies(&mut self, out: &mut Out<T::Reply>) {
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

impl<T: Hosted + ?Sized> Target for HostCpu<T> {
    type Request = T::Request;
    type Reply = T::Reply;

    fn submit(&mut self, now: Nanos, request: &T::Request, out: &mut Out<T::Reply>) -> Admission {
        if self.threads.is_full() || self.replies.len() + self.threads.len() >= self.replies.capacity() {
            return Admission::Full;
        }
        let asked = self.inner.asked(request, &out.buffers);
        let thread = Thread::new(now, *request, asked, self.costs.pages(asked.bytes));
        let (is_read, is_write) = (thread.is_read(), thread.is_write());
        let Some(number) = self.threads.begin(now, thread) else {
            return Admission::Full;
        };
        let core = self.cores.of(number);
        self.threads.get_mut(number).core = core;
        self.outside_count += 1;
        let socket = core / self.config().cores_per_socket;
        if is_read {
            self.map_lock.user_begins(socket);
        }
        if is_write {
            self.lock.user_begins(socket);
        }
        T::tell_buffers(request, &out.buffers, &mut |buffer| self.uses(buffer));
        if let Some(order) = self.order.as_mut().filter(|order| order.covers(asked)) {
            order.arrive(number);
        }
        self.enter_core(now, number);
        self.pump(now, out);
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<T::Reply>) {
        let inner = &mut self.inner;
        out.lend(&mut self.inner_out, 0, |below| inner.on_completion(now, completion, below));
        self.is_blocked = false;
        self.pump(now, out);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<T::Reply>) {
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

    fn advance(&mut self, now: Nanos, out: &mut Out<T::Reply>) {
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
        let count = |is: fn(&Thread<T::Request, T::Reply>) -> bool| {
            u32::try_from(self.threads.iter().filter(|&thread| is(thread)).count()).expect("few")
        };
        let spinners = count(|thread| thread.spins);
        assert_eq!(count(Thread::is_outside), self.outside_count, "requests outside");
        let reads_inside = count(|thread| thread.is_read() && thread.step == Step::Inside);
        assert_eq!(reads_inside, self.reads_inside, "reads the inner target has");
        self.lock.check(spinners, count(Thread::is_write));
        self.map_lock.check(0, count(Thread::is_read));
        self.cores.check(spinners, self.ftl_threads.running());
        self.ftl_threads.check();
        let waiting =
            self.outside.len() + self.shutdowns.len() + self.order.as_ref().map_or(0, HostOrder::len);
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

pub(super) fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}
