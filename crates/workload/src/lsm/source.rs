//! The database as a source of requests: its events in virtual time, its requests and their replies.
//!
//! Deliberately not here: what puts (`writes`), gets (`reads`) and jobs (`background`) do.

use super::client::{Client, Doing, Work};
use super::job::Job;
use super::layout::Layout;
use super::memtable::Memtables;
use super::options::{Benchmark, LsmOptions};
use super::report::Phase;
use super::throttle::Throttle;
use super::tree::Tree;
use super::wire::Ask;
use super::writes::WriteQueue;
use ocssd_base::{EventQueue, Nanos, Prng};
use ocssd_lightnvm::interface::table::{TableLimits, TableReply, TableRequest};
use ocssd_lightnvm::{BufId, Buffers, Source, Tag, Target, TargetId};
use std::collections::{BTreeMap, VecDeque};

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The processor of a thread of this benchmark is done.
    Client { client: usize, benchmark: usize },
    /// The put before is done.
    Write,
    /// The processor of a job is done.
    Job(u64),
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Client(usize),
    Job(u64),
    /// Tables are deleted; nobody waits for it.
    Nobody,
}

/// A request without a reply.
#[derive(Clone, Debug)]
struct Asked {
    owner: Owner,
    ask: Ask,
    buffer: Option<BufId>,
}

/// An LSM tree with its benchmark.
#[derive(Debug)]
pub struct Lsm {
    pub(super) options: LsmOptions,
    pub(super) layout: Layout,
    /// What the target takes.
    pub(super) limits: TableLimits,
    pub(super) memtables: Memtables,
    pub(super) tree: Tree,
    pub(super) throttle: Throttle,
    pub(super) queue: WriteQueue,
    pub(super) clients: Vec<Client>,
    pub(super) jobs: BTreeMap<u64, Job>,
    pub(super) events: EventQueue<Event>,
    /// Requests that are not made yet.
    pub(super) asks: VecDeque<(Owner, Ask)>,
    /// Memtables are flushed, whatever is in them.
    pub(super) is_draining: bool,
    /// Puts so far.
    pub(super) versions: u64,
    pub(super) next_table: u64,
    pub(super) next_job: u64,
    /// The oracle: the newest version of every key, whatever became of it.
    pub(super) newest: BTreeMap<u64, u64>,
    asked: BTreeMap<u32, Asked>,
    next_tag: u32,
    /// What the target had no room for; it is offered again after a reply.
    refused: Option<TableRequest>,
    is_full: bool,
    phases: Vec<Phase>,
    /// The benchmark that is on.
    benchmark: usize,
    prng: Prng,
    is_stopped: bool,
    failure: Option<String>,
    /// When it was asked or answered last.
    heard: Nanos,
}

impl Lsm {
    /// An empty database on a target without tables, with randomness of `prng`.
    #[must_use]
    pub fn new(options: LsmOptions, limits: TableLimits, prng: &Prng) -> Self {
        let layout = Layout::new(&options);
        Self {
            layout,
            limits,
            memtables: Memtables::default(),
            tree: Tree::new(options.levels, layout, options.bloom_bits),
            throttle: Throttle::new(&options),
            queue: WriteQueue::default(),
            clients: Vec::new(),
            jobs: BTreeMap::new(),
            events: EventQueue::with_capacity(64),
            asks: VecDeque::new(),
            is_draining: false,
            versions: 0,
            next_table: 1,
            next_job: 1,
            newest: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_tag: 0,
            refused: None,
            is_full: false,
            phases: Vec::new(),
            benchmark: 0,
            prng: prng.split("lsm"),
            is_stopped: false,
            failure: None,
            heard: Nanos::ZERO,
            options,
        }
    }

    /// The benchmarks so far, in order.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Tables and bytes of each level.
    #[must_use]
    pub fn levels(&self) -> Vec<(usize, u64)> {
        (0..self.tree.levels.len())
            .map(|level| (self.tree.levels[level].len(), self.tree.level_bytes(level)))
            .collect()
    }

    /// The first failure in words; nothing was asked after it.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Asks for nothing more; what is outstanding is waited for. The benchmark that is on ends when it was asked or answered last.
    pub fn stop(&mut self) {
        self.end_early();
        self.is_stopped = true;
    }

    /// The benchmark that is on, if there is one, ended when something was heard of last.
    fn end_early(&mut self) {
        if !self.is_over() && self.benchmark > 0 {
            let heard = self.heard;
            self.end_stall(heard);
            self.phase().ended = heard;
        }
    }

    /// How long a point of a phase's series lasts.
    #[must_use]
    pub const fn interval(&self) -> Nanos {
        self.options.interval
    }

    /// Requests without a reply.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.asked.len()
    }

    /// Operations that ended, and how many there will be.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let threads = self.options.threads as u64;
        let of = |benchmark: &Benchmark| match benchmark {
            Benchmark::FillSeq | Benchmark::FillRandom | Benchmark::Overwrite => self.options.num * threads,
            Benchmark::ReadSeq | Benchmark::ReadRandom | Benchmark::ReadWhileWriting => {
                self.options.reads * threads
            }
            Benchmark::WaitForCompaction => 0,
        };
        let done = self.phases.iter().map(Phase::operations).sum();
        (done, self.options.benchmarks.iter().map(of).sum())
    }

    /// Asserts the whole state. Cost: a look at every table.
    pub fn check(&self) {
        self.tree.check();
        let jobs = self.jobs.len() - self.tree.running.len();
        assert!(jobs <= 1, "{jobs} flushes at a time");
    }

    /// The benchmark that is on, or was.
    pub(super) fn phase(&mut self) -> &mut Phase {
        self.phases.last_mut().expect("a benchmark has begun")
    }

    pub(super) fn fail(&mut self, sentence: String) {
        self.end_early();
        self.failure.get_or_insert(sentence);
    }

    fn is_over(&self) -> bool {
        let is_done = self.benchmark > 0 && self.benchmark > self.options.benchmarks.len();
        is_done || self.is_stopped || self.failure.is_some()
    }

    /// The next benchmark begins; none, behind the last.
    fn begin_benchmark(&mut self, now: Nanos) {
        self.benchmark += 1;
        let Some(&benchmark) = self.options.benchmarks.get(self.benchmark - 1) else { return };
        self.phases.push(Phase::new(benchmark.name(), now, self.options.interval));
        let counts = (self.options.num, self.options.reads);
        self.clients = Client::all(
            benchmark,
            self.options.threads,
            counts,
            &self.prng.split(&self.benchmark.to_string()),
        );
        self.is_draining = benchmark == Benchmark::WaitForCompaction;
        (0..self.clients.len()).for_each(|client| self.wake(now, client));
        if self.is_draining {
            self.switch_memtable(now);
            self.end_if_drained(now);
        }
    }

    /// The processor of a thread is done then.
    pub(super) fn wake(&mut self, at: Nanos, client: usize) {
        self.events.push(at, Event::Client { client, benchmark: self.benchmark });
    }

    fn end_benchmark(&mut self, now: Nanos) {
        self.end_stall(now);
        self.phase().ended = now;
        self.begin_benchmark(now);
    }

    /// Nothing goes on behind any more, and that was waited for.
    pub(super) fn end_if_drained(&mut self, now: Nanos) {
        let nobody = |owner: &Owner| *owner == Owner::Nobody;
        let is_deleting = || {
            self.asks.iter().any(|(owner, _)| nobody(owner))
                || self.asked.values().any(|asked| nobody(&asked.owner))
        };
        if self.is_draining && self.jobs.is_empty() && self.memtables.unflushed() == 0 && !is_deleting() {
            self.end_benchmark(now);
        }
    }

    fn handle(&mut self, now: Nanos, event: Event) {
        match event {
            Event::Write => self.on_write_turn(now),
            Event::Job(number) => self.go_on_job(now, number),
            Event::Client { client, benchmark } if benchmark == self.benchmark => {
                self.go_on_client(now, client);
            }
            // Its benchmark ended while it put.
            Event::Client { .. } => {}
        }
        self.bury_dead();
    }

    fn go_on_client(&mut self, now: Nanos, client: usize) {
        let state = &mut self.clients[client];
        let is_free = match state.doing {
            Doing::Nothing => true,
            Doing::Put { .. } => {
                state.doing = Doing::Nothing;
                true
            }
            Doing::Get(_) => self.go_on_get(now, client),
            Doing::Scan(_) => self.go_on_scan(now, client),
            Doing::Over => false,
        };
        if is_free {
            self.begin_operation(now, client);
        }
    }

    fn begin_operation(&mut self, now: Nanos, client: usize) {
        let state = &mut self.clients[client];
        if state.left == 0 {
            state.doing = Doing::Over;
            if self.clients.iter().all(|client| client.is_over() || client.is_beside()) {
                self.end_benchmark(now);
            }
            return;
        }
        match state.work {
            Work::PutInOrder | Work::PutRandom => {
                state.left -= 1;
                self.queue_put(now, client);
            }
            Work::PutRandomBeside => self.put_beside(now, client),
            Work::GetRandom => {
                state.left -= 1;
                self.begin_get(now, client);
            }
            Work::Scan => self.begin_scan(now, client),
        }
    }

    /// What the target had no room for is not asked any more.
    fn forget_refused(&mut self, buffers: &mut Buffers) {
        let Some(request) = self.refused.take() else { return };
        let asked = self.asked.remove(&request.tag.0).expect("it was asked");
        asked.buffer.into_iter().for_each(|buffer| buffers.give_back(buffer));
    }

    /// A request for the next ask.
    fn make(&mut self, buffers: &mut Buffers) -> Option<TableRequest> {
        let (owner, ask) = self.asks.pop_front()?;
        let (op, buffer) = ask.operation(self.layout, buffers);
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        let before = self.asked.insert(tag, Asked { owner, ask, buffer });
        assert!(before.is_none(), "two requests have the tag {tag}");
        Some(TableRequest { tag: Tag(tag), op })
    }

    fn judge(&self, asked: &Asked, reply: &TableReply, buffers: &Buffers) -> Option<String> {
        if let Some(refusal) = reply.refusal {
            return Some(self.sentence_of(&asked.ask, refusal));
        }
        if !reply.status.has_data() {
            let (name, status) = (asked.ask.name(), reply.status);
            return Some(format!(
                "{name}: status {:03X}h, {}: {}",
                status.0,
                status.name(),
                status.meaning()
            ));
        }
        let buffer = asked.buffer?;
        asked.ask.judge(self.layout, buffer, buffers)
    }
}

impl<T> Source<T> for Lsm
where
    T: Target<Request = TableRequest, Reply = TableReply> + ?Sized,
{
    fn next_arrival(&self) -> Option<Nanos> {
        if self.is_over() || self.is_full {
            return None;
        }
        if self.benchmark == 0 || !self.asks.is_empty() {
            return Some(Nanos::ZERO);
        }
        self.events.deadline()
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, TableRequest)> {
        self.heard = now;
        if self.is_over() {
            self.forget_refused(buffers);
            return None;
        }
        if self.is_full {
            return None;
        }
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        if self.benchmark == 0 {
            self.begin_benchmark(now);
        }
        while self.asks.is_empty() && !self.is_over() {
            let Some((at, event)) = self.events.pop_due(now) else { break };
            self.handle(at, event);
        }
        if self.is_over() {
            return None;
        }
        self.make(buffers).map(|request| (TargetId(0), request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: TableRequest) {
        (self.refused, self.is_full) = (Some(request), true);
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: TableReply, buffers: &mut Buffers) {
        (self.is_full, self.heard) = (false, now);
        let asked = self.asked.remove(&reply.tag.0).expect("a reply answers a request");
        let failure = self.judge(&asked, &reply, buffers);
        if let Some(buffer) = asked.buffer {
            buffers.give_back(buffer);
        }
        if let Some(failure) = failure {
            self.fail(failure);
        }
        if self.is_over() {
            return;
        }
        match (asked.owner, asked.ask) {
            (Owner::Client(client), Ask::Read { bytes, .. }) => self.on_client_read(now, client, bytes),
            (Owner::Client(client), ask) => unreachable!("thread {client} asked for {ask:?}"),
            (Owner::Job(number), ask) => {
                if matches!(ask, Ask::Read { .. }) {
                    self.jobs.get_mut(&number).expect("a job waits for its reply").on_read();
                }
                self.go_on_job(now, number);
                self.bury_dead();
            }
            (Owner::Nobody, _) => self.end_if_drained(now),
        }
    }

    fn is_finished(&self) -> bool {
        self.is_over() && self.outstanding() == 0
    }
}
