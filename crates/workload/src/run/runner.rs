//! The source that carries out a plan: asks each worker what it wants, keeps its requests in flight, and records and
//! checks what comes back.
//!
//! A worker that can ask for more stands in the ready queue, first come first served; one that waits for a time has a
//! timer; one that waits for a reply is in neither. Deliberately not here: the decisions of one worker (`worker`), whose
//! turn it is (`turns`), what follows from a reply (`replies`), and what is looked at from time to time (`watch`).

use super::content::fill_noise;
use super::flow::Flows;
use super::meanwhile::Meanwhile;
use super::plan::{JobPlan, TargetShape};
use super::report;
use super::shared::Shared;
use super::slots::{Purpose, Slot};
use super::slowest::{SlowIo, Slowest};
use super::watch::Watch;
use super::worker::{Phase, Want, Worker};
use super::worker_profile::{Any, NoOptions, Profile, WorkerProfile};
use super::zones::ZoneTable;
use crate::job::{IoPriority, IologOp};
use crate::results::{Direction, Histogram, JobResult, RecordedIo};
use ocssd_base::{EventQueue, Nanos, Prng};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Buffers, Source, Tag, TargetId};
use std::collections::VecDeque;

/// What was measured so far, for whoever watches a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// I/Os that ended.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their latencies.
    pub latency: Histogram,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Thousandths of the slowest worker's work.
    pub thousandths: u64,
    /// I/Os measured so far.
    pub ios: u64,
    /// Workers done, and all.
    pub done: usize,
    /// All workers.
    pub workers: usize,
}

/// The source.
pub struct Runner {
    pub(super) plan: JobPlan,
    pub(super) origin: Nanos,
    pub(super) workers: Vec<Worker>,
    pub(super) results: Vec<JobResult>,
    pub(super) targets: Vec<Shared>,
    pub(super) slots: Vec<Slot>,
    pub(super) ready: VecDeque<u32>,
    /// By worker; numbers behind the workers are watches.
    pub(super) timers: EventQueue<u32>,
    pub(super) watches: Vec<Watch>,
    pub(super) flows: Flows,
    /// Each worker's earliest timer, so that replies do not pile up timers for the same wait.
    pub(super) timer_at: Vec<Nanos>,
    pub(super) refused: Option<(TargetId, BlockRequest)>,
    pub(super) sequence: u64,
    pub(super) in_flight: u32,
    /// The worker that asked last. While all are busy, whose turn comes next is anyone's guess, and this one's best.
    pub(super) last: u32,
    pub(super) done: usize,
    /// What went wrong first, in each worker.
    pub(super) failures: Vec<Option<(Direction, BlockReply)>>,
    pub(super) unread: u64,
    pub(super) slowest: Slowest,
    pub(super) meanwhile: Meanwhile,
}

pub(super) fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl Runner {
    /// Makes the plan's workers, with all the memory they need. The run starts at `now`.
    ///
    /// # Panics
    /// If the targets are not those of the plan.
    #[must_use]
    pub fn new(
        plan: JobPlan,
        targets: &[TargetShape<'_>],
        buffers: &mut Buffers,
        seed: u64,
        now: Nanos,
    ) -> Self {
        let root = Prng::new(seed);
        let mut runner = Self {
            origin: now,
            workers: Vec::new(),
            results: Vec::new(),
            targets: (0..targets.len()).map(|target| Shared::new(&plan, targets, target)).collect(),
            slots: Vec::new(),
            ready: VecDeque::with_capacity(plan.workers.len()),
            timers: EventQueue::with_capacity(8 * plan.workers.len()),
            watches: Vec::new(),
            flows: Flows::new(plan.workers.iter().map(|worker| {
                let options = &plan.jobs[worker.job].job.options;
                (options.flow.id, options.flow.weight)
            })),
            timer_at: vec![Nanos::MAX; plan.workers.len()],
            refused: None,
            // Above every sequence number of the layout, so that no stamp of it is taken for a later write's.
            sequence: 1 << 48,
            in_flight: 0,
            last: 0,
            done: 0,
            failures: vec![None; plan.workers.len()],
            unread: 0,
            slowest: Slowest::default(),
            meanwhile: Meanwhile::default(),
            plan,
        };
        runner.make_workers(&root, buffers);
        runner.make_watches();
        runner.start_eligible(now);
        runner
    }

    fn make_workers(&mut self, root: &Prng, buffers: &mut Buffers) {
        for (id, worker_plan) in (0u32..).zip(self.plan.workers.clone()) {
            let job = &self.plan.jobs[worker_plan.job].job;
            let mut prng = root.split(&format!("job {} clone {}", worker_plan.job, worker_plan.clone));
            if let Some(seed) = job.options.randseed {
                prng = Prng::new(seed).split(&format!("clone {}", worker_plan.clone));
            }
            let zones = self.targets[worker_plan.target.index()].zones.as_ref().map(ZoneTable::zone_blocks);
            let largest = report::largest_io(&worker_plan);
            let first = u32::try_from(self.slots.len()).expect("fewer than 2^32 places");
            for _ in 0..job.options.iodepth {
                let sectors = buffers.format().sectors_of_blocks(largest, worker_plan.block_bytes);
                let buffer = buffers.take(sectors);
                fill_noise(buffers, buffer, &mut prng);
                self.slots.push(Slot {
                    worker: id,
                    purpose: Purpose::Read,
                    block: 0,
                    count: 0,
                    issued: Nanos::ZERO,
                    intended: Nanos::ZERO,
                    sequence: 0,
                    buffer,
                    priority: IoPriority::default(),
                });
            }
            self.results.push(report::job_result(job, &worker_plan, Nanos::ZERO));
            let profile = WorkerProfile::of(job, &worker_plan, &self.targets[worker_plan.target.index()]);
            let mut worker = Worker::new(worker_plan, &job.options, prng, zones);
            worker.free = (first..first + job.options.iodepth).rev().collect();
            worker.profile = profile;
            self.workers.push(worker);
        }
    }

    /// The next request of the first ready worker that has one.
    #[inline(always)]
    fn ask_ready(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        while let Some(&id) = self.ready.front() {
            let request = match self.workers[index(id)].profile {
                WorkerProfile::Any => self.ask::<Any>(now, id, buffers),
                WorkerProfile::NoOptions => self.ask::<NoOptions>(now, id, buffers),
            };
            if request.is_some() {
                return request;
            }
            self.ready.pop_front();
            // A worker that moved on asked to be ready again while it still stood in the queue.
            let worker = &mut self.workers[index(id)];
            worker.is_ready = false;
            if matches!(worker.phase, Phase::Flushing | Phase::Verifying) && worker.outstanding == 0 {
                self.make_ready(id);
            }
        }
        None
    }

    /// The next request of a worker; `None` if it has none now. `P` as in [`super::worker_profile`].
    #[inline(never)]
    fn ask<P: Profile>(
        &mut self,
        now: Nanos,
        id: u32,
        buffers: &mut Buffers,
    ) -> Option<(TargetId, BlockRequest)> {
        let worker = &mut self.workers[index(id)];
        let slot = *worker.free.last()?;
        if worker.outstanding >= worker.depth_limit || (P::OPTIONS && self.is_held(now, id)) {
            return None;
        }
        let worker = &mut self.workers[index(id)];
        let target = worker.plan.target;
        let want = worker.want::<P>(now, id, self.targets[target.index()].zones.as_mut());
        let Want::Request { purpose, block, count, intended } = want else {
            self.put_off(now, id, want);
            return None;
        };
        worker.free.pop();
        if worker.free.is_empty() {
            // It would be asked in vain.
            worker.is_ready = false;
            self.ready.pop_front();
        }
        if P::OPTIONS && self.flows.is_in_one(id) {
            self.flows.on_issued(id);
            self.wake_held(id);
        }
        self.wake_blocked(target, purpose, block);
        let issue = Issue { purpose, block, count, intended };
        Some((target, self.issue::<P>(now, id, slot, issue, buffers)))
    }

    /// True if a worker is ahead of its share of a flow; it is asked again when it may be no more.
    fn is_held(&mut self, now: Nanos, id: u32) -> bool {
        let worker = &self.workers[index(id)];
        let flow = &self.plan.jobs[worker.plan.job].job.options.flow;
        let held = flow.weight > 0
            && worker.phase == Phase::Running
            && !worker.is_spent(now)
            && self.flows.holds(id, flow.sleep == Nanos::ZERO);
        if held && flow.sleep > Nanos::ZERO {
            let at = now + flow.sleep;
            self.set_timer(at, id);
        }
        held
    }

    /// A worker wants something else than a request.
    #[inline(never)]
    fn put_off(&mut self, now: Nanos, id: u32, want: Want) {
        match want {
            Want::Later(at) => self.set_timer(at, id),
            Want::Zone => self.block(id),
            Want::Nothing(direction) => self.on_nothing(now, id, direction),
            Want::Reply => self.move_on(now, id),
            Want::Request { .. } => unreachable!("a request is issued"),
        }
    }

    /// True if a write in flight touches these blocks of a target without zones: a read may then return either content.
    fn is_racing(&self, target: TargetId, block: u64, count: u32) -> bool {
        let shared = &self.targets[target.index()];
        let touches = |slot: &Slot| {
            let overlaps =
                slot.block < block + u64::from(count) && block < slot.block + u64::from(slot.count);
            slot.purpose == Purpose::Write
                && overlaps
                && self.workers[index(slot.worker)].plan.target == target
        };
        shared.zones.as_ref().is_none_or(ZoneTable::is_emulated)
            && shared.oracle.is_some()
            && self.slots.iter().any(touches)
    }

    #[inline(always)]
    fn issue<P: Profile>(
        &mut self,
        now: Nanos,
        id: u32,
        number: u32,
        issue: Issue,
        buffers: &mut Buffers,
    ) -> BlockRequest {
        let Issue { purpose, block, count, intended } = issue;
        let reads = matches!(purpose, Purpose::Read | Purpose::Verify);
        let racing = P::OPTIONS && reads && self.is_racing(self.workers[index(id)].plan.target, block, count);
        let sequence = if racing { 0 } else { self.sequence };
        let slot = &mut self.slots[index(number)];
        (slot.purpose, slot.block, slot.count) = (purpose, block, count);
        (slot.issued, slot.intended, slot.sequence) = (now, intended, sequence);
        let worker = &mut self.workers[index(id)];
        worker.outstanding += 1;
        self.in_flight += 1;
        self.last = id;
        let result = &mut self.results[index(id)];
        if P::OPTIONS
            && let Some(recording) = &mut result.recording
            && let Some(op) = recorded_op(purpose)
        {
            let unit = u64::from(worker.plan.block_bytes);
            let (offset, bytes) = (block * unit, u64::from(count) * unit);
            recording.ios.push(RecordedIo { at: now - self.origin, op, offset, bytes });
        }
        if P::OPTIONS
            && let Some(priorities) = &mut worker.priorities
        {
            slot.priority = priorities.draw(purpose, u64::from(count) * u64::from(worker.plan.block_bytes));
        }
        let transfers = matches!(purpose, Purpose::Read | Purpose::Write | Purpose::Trim);
        if now >= worker.measured_from && transfers {
            result.iodepth_level.record(worker.outstanding);
            result.iodepth_submit.record(1);
        }
        let moves = reads || purpose == Purpose::Write;
        let buffer = moves.then_some(slot.buffer);
        let op = if reads { BlockOp::Read } else { self.change(id, number, buffers) };
        BlockRequest { tag: Tag(number), op, block, count, buffer }
    }

    /// What a request about to be made changes, once it is asked for; how it is asked for.
    fn change(&mut self, id: u32, number: u32, buffers: &mut Buffers) -> BlockOp {
        let slot = &mut self.slots[index(number)];
        let Slot { purpose, block, count, .. } = *slot;
        let worker = &self.workers[index(id)];
        let shared = &mut self.targets[worker.plan.target.index()];
        match purpose {
            Purpose::Read | Purpose::Verify => BlockOp::Read,
            Purpose::Write => {
                self.sequence += 1;
                slot.sequence = self.sequence;
                let unit = buffers.format().block_place_bytes(worker.plan.block_bytes);
                let blocks = block..block + u64::from(count);
                worker.plan.content.fill(buffers, slot.buffer, unit, blocks, self.sequence);
                if let Some(oracle) = &mut shared.oracle {
                    oracle.wrote(block, count, self.sequence, id);
                }
                BlockOp::Write { fua: worker.is_durable }
            }
            Purpose::Trim => {
                if let Some(oracle) = &mut shared.oracle {
                    oracle.forget(block..block + u64::from(count));
                }
                BlockOp::Discard
            }
            Purpose::Reset => {
                if let (Some(oracle), Some(zones)) = (&mut shared.oracle, &shared.zones) {
                    oracle.forget(block..block + zones.zone_blocks());
                }
                BlockOp::ResetZone
            }
            Purpose::Flush => BlockOp::Flush,
        }
    }

    /// Gives every worker the profile of any worker, though a narrower one would do. Nothing else changes: for tests of
    /// that, and to see what the shorter ways save.
    pub fn go_the_long_way(&mut self) {
        for worker in &mut self.workers {
            worker.profile = WorkerProfile::Any;
        }
    }

    /// How far the run is at `now`.
    #[must_use]
    pub fn progress(&self, now: Nanos) -> Progress {
        let ios = |result: &JobResult| result.read.total_ios + result.write.total_ios + result.trim.total_ios;
        Progress {
            thousandths: self.workers.iter().map(|worker| worker.progress(now)).min().unwrap_or(1000),
            ios: self.results.iter().map(ios).sum(),
            done: self.done,
            workers: self.workers.len(),
        }
    }

    /// What was measured so far, of all workers together. Cost: a pass over the histograms of every worker.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for stats in self.results.iter().flat_map(JobResult::directions) {
            tally.ios += stats.total_ios;
            tally.bytes += stats.io_bytes;
            tally.latency.merge(stats.lat.histogram());
        }
        tally
    }

    /// Stops starting I/O; the run ends when what is in flight has. Workers whose turn has not come never start.
    pub fn stop(&mut self) {
        for worker in &mut self.workers {
            worker.stopping = true;
            if worker.phase == Phase::Waiting {
                worker.phase = Phase::Done;
                self.done += 1;
            }
        }
        (0..u32::try_from(self.workers.len()).expect("fewer than 2^32 workers"))
            .for_each(|id| self.make_ready(id));
    }

    /// The first failure of each worker that had one: its job's name, the direction, the reply.
    pub fn failures(&self) -> impl Iterator<Item = (&str, Direction, &BlockReply)> {
        let names = self.workers.iter().map(|worker| self.plan.jobs[worker.plan.job].job.name.as_str());
        names.zip(&self.failures).filter_map(|(name, failure)| {
            let (direction, reply) = failure.as_ref()?;
            Some((name, *direction, reply))
        })
    }

    /// Written blocks that could not be read back because too little was written after them (MW_CUNITS).
    #[must_use]
    pub const fn unread(&self) -> u64 {
        self.unread
    }

    /// The slowest measured reads or writes, the slowest first: at most 100, whoever's they are. None of trims.
    #[must_use]
    pub fn slowest(&self, direction: Direction) -> Vec<SlowIo> {
        self.slowest.of(direction)
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &JobPlan {
        &self.plan
    }

    /// The results, and the buffers back to their pool.
    #[must_use]
    pub fn into_results(mut self, buffers: &mut Buffers) -> Vec<JobResult> {
        self.report_watches();
        for slot in &self.slots {
            buffers.give_back(slot.buffer);
        }
        self.results
    }
}

/// A request about to be made.
#[derive(Clone, Copy)]
struct Issue {
    purpose: Purpose,
    block: u64,
    count: u32,
    intended: Nanos,
}

/// How fio's log calls it; a reset has no word there.
const fn recorded_op(purpose: Purpose) -> Option<IologOp> {
    match purpose {
        Purpose::Read | Purpose::Verify => Some(IologOp::Read),
        Purpose::Write => Some(IologOp::Write),
        Purpose::Trim => Some(IologOp::Trim),
        Purpose::Flush => Some(IologOp::Flush),
        Purpose::Reset => None,
    }
}

impl Source for Runner {
    #[inline(always)]
    fn next_arrival(&self) -> Option<Nanos> {
        self.timers.deadline()
    }

    #[inline(always)]
    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if self.refused.is_some() {
            return self.refused.take();
        }
        if self.timers.next_at() <= now {
            self.on_timers(now);
        }
        // Every second question finds nobody: it shall cost nothing.
        if self.ready.is_empty() { None } else { self.ask_ready(now, buffers) }
    }

    fn expected(&self, blocks: &mut [u64]) -> Option<(TargetId, usize)> {
        let worker = self.workers.get(index(self.last))?;
        Some((worker.plan.target, worker.blocks_ahead(blocks)))
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        self.refused = Some((target, request));
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        let number = reply.tag.0;
        let id = self.slots[index(number)].worker;
        assert!(self.in_flight > 0, "more replies than requests");
        self.in_flight -= 1;
        match self.workers[index(id)].profile {
            WorkerProfile::Any => self.take_reply::<Any>(now, number, &reply, buffers),
            WorkerProfile::NoOptions => self.take_reply::<NoOptions>(now, number, &reply, buffers),
        }
    }

    fn is_finished(&self) -> bool {
        self.is_done() || self.is_paused()
    }
}
