//! The FTL's own threads: writers, which prepare every command that is not for a request's own buffer, and the reader of
//! garbage collection.
//!
//! Commands are started in the order the inner target gave them; with several writers, two commands to one chunk are
//! never prepared at once, so that a chunk is still written in order. Deliberately not here: reads of users, and writes
//! of targets without a buffer; those threads submit them themselves.

use super::cores::Cores;
use super::costs::Costs;
use super::stats::{FtlThreadStats, StatsHandle};
use ocssd_base::{EventQueue, Nanos, Ring};
use ocssd_lightnvm::{Addresses, Buffers, ChunkId, Command, Op};

use super::target::Event;

/// Commands that wait for one kind of thread (chosen: as many as pblk here has in flight).
const QUEUE_MAX: usize = 8192;

/// A command, when it came, and the chunk it changes.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    came: Nanos,
    command: Command,
    chunk: Option<ChunkId>,
}

/// What a thread has in its hands.
#[derive(Clone, Copy, Debug)]
struct Job {
    command: Command,
    chunk: Option<ChunkId>,
    core: u32,
    /// When it was prepared; `None` while it is not.
    prepared: Option<Nanos>,
}

/// The threads. The last is that of garbage collection.
#[derive(Clone, Debug)]
pub(super) struct FtlThreads {
    jobs: Vec<Option<Job>>,
    writes: Ring<Waiting>,
    gc_reads: Ring<Waiting>,
    /// Threads with a prepared command, in order.
    prepared: Ring<u32>,
    /// Threads at work on a core.
    running: u32,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl FtlThreads {
    pub fn new(writers: u32) -> Self {
        let threads = index(writers) + 1;
        Self {
            jobs: vec![None; threads],
            writes: Ring::new(QUEUE_MAX),
            gc_reads: Ring::new(QUEUE_MAX),
            prepared: Ring::new(threads),
            running: 0,
        }
    }

    /// Room for one more command, whatever it is.
    pub fn has_room(&self) -> bool {
        !self.writes.is_full() && !self.gc_reads.is_full()
    }

    /// Takes a command to prepare.
    pub fn queue(&mut self, now: Nanos, command: Command, buffers: &Buffers) {
        let chunk = match command.addresses {
            Addresses::Run { first, .. } => Some(first.chunk),
            Addresses::List { offset, .. } => command
                .buffer
                .and_then(|list| buffers.addresses(list).get(index(offset)))
                .map(|first| first.chunk),
            Addresses::None => None,
        };
        let queue = if command.op == Op::Read { &mut self.gc_reads } else { &mut self.writes };
        queue.push(Waiting { came: now, command, chunk }).expect("room was asked for before");
    }

    /// Starts what can be started.
    pub fn start(&mut self, now: Nanos, around: &mut Around<'_>) {
        while let Some(waiting) = self.writes.front().copied() {
            let Some(thread) = self.free_writer(waiting.chunk) else { break };
            self.writes.pop();
            let pages = around.costs.pages_of_sectors(waiting.command.addresses.count());
            let is_data = matches!(waiting.command.op, Op::Write { .. } | Op::Copy);
            let pages = if is_data { pages } else { 0 };
            let cpu = around.costs.writer_command(pages, around.sockets);
            self.begin(now, thread, waiting, cpu, around);
        }
        let gc = self.jobs.len() - 1;
        if self.jobs[gc].is_none()
            && let Some(waiting) = self.gc_reads.pop()
        {
            let pages = around.costs.pages_of_sectors(waiting.command.addresses.count());
            let cpu = around.costs.gc_command(pages);
            self.begin(now, gc, waiting, cpu, around);
        }
    }

    /// A writer with empty hands, unless another has a command to the same chunk. Cost: a look at each writer.
    fn free_writer(&self, chunk: Option<ChunkId>) -> Option<usize> {
        let writers = &self.jobs[..self.jobs.len() - 1];
        let is_held = chunk.is_some() && writers.iter().flatten().any(|job| job.chunk == chunk);
        if is_held { None } else { writers.iter().position(Option::is_none) }
    }

    fn begin(&mut self, now: Nanos, thread: usize, waiting: Waiting, cpu: Nanos, around: &mut Around<'_>) {
        let Waiting { came, command, chunk } = waiting;
        let (core, stretch) = around.cores.place_ftl_thread();
        self.jobs[thread] = Some(Job { command, chunk, core, prepared: None });
        self.running += 1;
        let number = u32::try_from(thread).expect("as many as configured");
        around.events.push(now + cpu * stretch, Event::FtlThread(number));
        self.note(thread, around.stats, |stats| {
            stats.commands += 1;
            stats.cpu_ns += cpu;
            stats.starved_ns += cpu * (stretch - 1);
            stats.queued_ns += now - came;
        });
    }

    /// A thread's time for its command is over.
    pub fn on_prepared(&mut self, now: Nanos, thread: u32, cores: &mut Cores) {
        let job = self.jobs[index(thread)].as_mut().expect("a thread that ends has a command");
        assert!(job.prepared.is_none(), "a command is prepared once");
        job.prepared = Some(now);
        self.running -= 1;
        cores.ftl_thread_leaves(job.core);
        self.prepared.push(thread).expect("there are as many places as threads");
    }

    /// Gives the next command to the device; its thread can start another.
    pub fn take(&mut self, now: Nanos, stats: &StatsHandle) -> Option<Command> {
        let thread = index(self.prepared.pop()?);
        let job = self.jobs[thread].take().expect("a prepared command is in its thread's hands");
        let prepared = job.prepared.expect("it is prepared");
        self.note(thread, stats, |stats| stats.held_ns += now - prepared);
        Some(job.command)
    }

    fn note(&self, thread: usize, stats: &StatsHandle, change: impl FnOnce(&mut FtlThreadStats)) {
        let is_gc = thread + 1 == self.jobs.len();
        stats.with(|all| change(if is_gc { &mut all.gc } else { &mut all.writers[thread] }));
    }

    /// Threads at work on a core.
    pub const fn running(&self) -> u32 {
        self.running
    }

    pub fn check(&self) {
        let prepared = self.jobs.iter().flatten().filter(|job| job.prepared.is_some()).count();
        assert_eq!(prepared, self.prepared.len(), "prepared commands");
        let held = self.jobs.iter().flatten().count();
        assert_eq!(held - prepared, index(self.running), "threads at work");
    }
}

/// What the threads act on.
pub(super) struct Around<'a> {
    pub costs: &'a Costs,
    pub cores: &'a mut Cores,
    pub events: &'a mut EventQueue<Event>,
    pub stats: &'a StatsHandle,
    /// Sockets that threads of the workload run on.
    pub sockets: u32,
}
