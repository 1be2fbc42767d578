//! The source that carries out a plan: asks each worker what it wants, keeps its requests in flight, and records and
//! checks what comes back.
//!
//! A worker that can ask for more stands in the ready queue, first come first served; one that waits for a time has a
//! timer; one that waits for a reply is in neither. Deliberately not here: the decisions of one worker (`worker`).

use super::content::fill_noise;
use super::plan::{Plan, TargetShape};
use super::report;
use super::shared::Shared;
use super::slots::{Purpose, Slot};
use super::worker::{Phase, Want, Worker};
use crate::results::{Direction, JobResult, VerifyStats};
use ocssd_base::{EventQueue, Nanos, Prng};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Buffers, Source, Status, Tag, TargetId};
use std::collections::VecDeque;

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
    plan: Plan,
    origin: Nanos,
    workers: Vec<Worker>,
    results: Vec<JobResult>,
    targets: Vec<Shared>,
    slots: Vec<Slot>,
    /// Free places of each worker.
    free: Vec<Vec<u32>>,
    ready: VecDeque<u32>,
    is_ready: Vec<bool>,
    timers: EventQueue<u32>,
    /// Each worker's earliest timer, so that replies do not pile up timers for the same wait.
    timer_at: Vec<Nanos>,
    refused: Option<(TargetId, BlockRequest)>,
    sequence: u64,
    in_flight: u32,
    done: usize,
    /// What went wrong first, in each worker.
    failures: Vec<Option<(Direction, BlockReply)>>,
    unread: u64,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl Runner {
    /// Makes the plan's workers, with all the memory they need. The run starts at `now`.
    ///
    /// # Panics
    /// If the targets are not those of the plan.
    #[must_use]
    pub fn new(
        plan: Plan,
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
            free: Vec::new(),
            ready: VecDeque::with_capacity(plan.workers.len()),
            is_ready: vec![false; plan.workers.len()],
            timers: EventQueue::with_capacity(4 * plan.workers.len()),
            timer_at: vec![Nanos::MAX; plan.workers.len()],
            refused: None,
            // Above every sequence number of the layout, so that no stamp of it is taken for a later write's.
            sequence: 1 << 48,
            in_flight: 0,
            done: 0,
            failures: vec![None; plan.workers.len()],
            unread: 0,
            plan,
        };
        runner.make_workers(targets, &root, buffers);
        runner.start_eligible(now);
        runner
    }

    fn make_workers(&mut self, targets: &[TargetShape<'_>], root: &Prng, buffers: &mut Buffers) {
        for (id, worker_plan) in (0u32..).zip(self.plan.workers.clone()) {
            let job = &self.plan.jobs[worker_plan.job].job;
            let mut prng = root.split(&format!("job {} clone {}", worker_plan.job, worker_plan.clone));
            if let Some(seed) = job.options.randseed {
                prng = Prng::new(seed).split(&format!("clone {}", worker_plan.clone));
            }
            let zones = targets[worker_plan.target.index()].0.zones().map(|zones| zones.blocks);
            let largest = report::largest_io(&worker_plan);
            let first = u32::try_from(self.slots.len()).expect("fewer than 2^32 places");
            for _ in 0..job.options.iodepth {
                let buffer = buffers.take(largest);
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
                });
            }
            self.free.push((first..first + job.options.iodepth).rev().collect());
            self.results.push(report::job_result(job, &worker_plan, Nanos::ZERO));
            self.workers.push(Worker::new(worker_plan, &job.options, prng, zones));
        }
    }

    /// Starts every worker whose turn has come.
    fn start_eligible(&mut self, now: Nanos) {
        let open_stage =
            self.workers.iter().filter(|worker| worker.phase != Phase::Done).map(|w| w.plan.stage).min();
        for id in 0..u32::try_from(self.workers.len()).expect("fewer than 2^32 workers") {
            let worker = &self.workers[index(id)];
            let options = &self.plan.jobs[worker.plan.job].job.options;
            let waits = options.wait_for.as_ref().is_some_and(|name| self.is_running(name, worker.plan.job));
            if worker.phase != Phase::Waiting
                || worker.eligible_at.is_some()
                || Some(worker.plan.stage) != open_stage
                || waits
            {
                continue;
            }
            let at = now + options.startdelay;
            self.workers[index(id)].eligible_at = Some(at);
            self.set_timer(at, id);
        }
    }

    fn is_running(&self, name: &str, before: usize) -> bool {
        let named =
            |worker: &&Worker| worker.plan.job < before && self.plan.jobs[worker.plan.job].job.name == name;
        self.workers.iter().filter(named).any(|worker| worker.phase != Phase::Done)
    }

    /// Asks the worker again at `at`, unless it is asked earlier anyway.
    fn set_timer(&mut self, at: Nanos, id: u32) {
        if at < self.timer_at[index(id)] {
            self.timer_at[index(id)] = at;
            self.timers.push(at, id);
        }
    }

    fn make_ready(&mut self, id: u32) {
        if !self.is_ready[index(id)] {
            self.is_ready[index(id)] = true;
            self.ready.push_back(id);
        }
    }

    fn on_timers(&mut self, now: Nanos) {
        while let Some((at, id)) = self.timers.pop_due(now) {
            if self.timer_at[index(id)] == at {
                self.timer_at[index(id)] = Nanos::MAX;
            }
            let worker = &mut self.workers[index(id)];
            if worker.phase == Phase::Waiting && worker.eligible_at.is_some_and(|eligible| eligible <= at) {
                let options = &self.plan.jobs[worker.plan.job].job.options;
                worker.start(now, options);
                let (measured, ends) = (worker.measured_from, worker.ends_at());
                let job = &self.plan.jobs[worker.plan.job].job;
                self.results[index(id)] = report::job_result(job, &worker.plan, measured - self.origin);
                if ends < Nanos::MAX {
                    // Beside any other timer: time may end a worker that waits for nothing else.
                    self.timers.push(ends, id);
                }
            }
            self.make_ready(id);
        }
    }

    /// The next request of a worker; `None` if it has none now.
    fn ask(&mut self, now: Nanos, id: u32, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        let slot = *self.free[index(id)].last()?;
        let worker = &mut self.workers[index(id)];
        let options = &self.plan.jobs[worker.plan.job].job.options;
        let target = worker.plan.target;
        let want = worker.want(now, id, options, self.targets[target.index()].zones.as_mut());
        match want {
            Want::Request { purpose, block, count, intended } => {
                self.free[index(id)].pop();
                self.wake_blocked(target, purpose, block);
                Some((target, self.issue(now, slot, Issue { purpose, block, count, intended }, buffers)))
            }
            Want::Later(at) => {
                self.set_timer(at, id);
                None
            }
            Want::Zone => {
                let blocked = &mut self.targets[target.index()].blocked;
                if !blocked.contains(&id) {
                    blocked.push(id);
                }
                None
            }
            Want::Nothing(direction) => {
                self.on_nothing(now, id, direction);
                None
            }
            Want::Reply => {
                self.move_on(now, id);
                None
            }
        }
    }

    /// A worker can go on only after somebody else wrote; it ends with an error if nobody will.
    fn on_nothing(&mut self, now: Nanos, id: u32, direction: Direction) {
        let target = self.workers[index(id)].plan.target;
        let writes = |worker: &Worker| worker.phase == Phase::Running && worker.operations().writes();
        let helped = (0..)
            .zip(&self.workers)
            .any(|(other, worker)| other != id && worker.plan.target == target && writes(worker));
        if direction == Direction::Read && helped {
            let blocked = &mut self.targets[target.index()].blocked;
            if !blocked.contains(&id) {
                blocked.push(id);
            }
            return;
        }
        let result = &mut self.results[index(id)];
        result.error = if direction == Direction::Read { report::ENODATA } else { report::ENOSPC };
        result.error_count += 1;
        self.workers[index(id)].stopping = true;
        self.move_on(now, id);
    }

    /// A zone whose last block is being written is anybody's again.
    fn wake_blocked(&mut self, target: TargetId, purpose: Purpose, block: u64) {
        let shared = &mut self.targets[target.index()];
        if purpose != Purpose::Write || shared.blocked.is_empty() {
            return;
        }
        if shared.zones.as_ref().is_some_and(|zones| zones.is_released(block)) {
            self.wake_all_blocked(target);
        }
    }

    fn wake_all_blocked(&mut self, target: TargetId) {
        for id in std::mem::take(&mut self.targets[target.index()].blocked) {
            self.make_ready(id);
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
        shared.zones.is_none() && shared.oracle.is_some() && self.slots.iter().any(touches)
    }

    fn issue(&mut self, now: Nanos, number: u32, issue: Issue, buffers: &mut Buffers) -> BlockRequest {
        let Issue { purpose, block, count, intended } = issue;
        let id = self.slots[index(number)].worker;
        let reads = matches!(purpose, Purpose::Read | Purpose::Verify);
        let racing = reads && self.is_racing(self.workers[index(id)].plan.target, block, count);
        let sequence = if racing { 0 } else { self.sequence };
        let slot = &mut self.slots[index(number)];
        *slot = Slot { purpose, block, count, issued: now, intended, sequence, ..*slot };
        let worker = &mut self.workers[index(id)];
        worker.outstanding += 1;
        self.in_flight += 1;
        let shared = &mut self.targets[worker.plan.target.index()];
        let options = &self.plan.jobs[worker.plan.job].job.options;
        let (op, buffer) = match purpose {
            Purpose::Read | Purpose::Verify => (BlockOp::Read, Some(slot.buffer)),
            Purpose::Write => {
                self.sequence += 1;
                slot.sequence = self.sequence;
                worker.plan.content.fill(buffers, slot.buffer, block, count, self.sequence);
                if let Some(oracle) = &mut shared.oracle {
                    oracle.wrote(block, count, self.sequence, id);
                }
                (BlockOp::Write { fua: options.sync != crate::job::SyncMode::None }, Some(slot.buffer))
            }
            Purpose::Trim => {
                if let Some(oracle) = &mut shared.oracle {
                    oracle.forget(block..block + u64::from(count));
                }
                (BlockOp::Discard, None)
            }
            Purpose::Reset => {
                if let (Some(oracle), Some(zones)) = (&mut shared.oracle, &shared.zones) {
                    oracle.forget(block..block + zones.zone_blocks());
                }
                (BlockOp::ResetZone, None)
            }
            Purpose::Flush => (BlockOp::Flush, None),
        };
        if now >= worker.measured_from && matches!(purpose, Purpose::Read | Purpose::Write | Purpose::Trim) {
            let result = &mut self.results[index(id)];
            result.iodepth_level.record(worker.outstanding);
            result.iodepth_submit.record(1);
        }
        BlockRequest { tag: Tag(number), op, block, count, buffer }
    }

    fn finish(&mut self, now: Nanos, number: u32, reply: &BlockReply, buffers: &Buffers) {
        let slot = self.slots[index(number)];
        self.slots[index(number)].count = 0;
        let id = slot.worker;
        let measured = now >= self.workers[index(id)].measured_from;
        let failed = !reply.status.has_data();
        let result = &mut self.results[index(id)];
        match slot.purpose {
            Purpose::Read | Purpose::Write | Purpose::Trim if !failed && measured => {
                let direction = direction_of(slot.purpose);
                let bytes = u64::from(slot.count) * u64::from(self.workers[index(id)].plan.block_bytes);
                let latency = now - slot.issued;
                result.direction_mut(direction).record_whole(now - self.origin, bytes, latency);
                result.iodepth_complete.record(1);
                if let Some(response) = &mut result.response {
                    response.record(now - slot.intended);
                }
            }
            Purpose::Flush if !failed && measured => {
                result.sync.total_ios += 1;
                result.sync.lat.record(now - slot.issued);
            }
            _ => {}
        }
        match slot.purpose {
            Purpose::Read | Purpose::Verify if !failed => self.compare(&slot, buffers),
            Purpose::Write if !failed => {
                if self.workers[index(id)].keeps_history {
                    self.workers[index(id)].history.push_back((slot.block, slot.count));
                }
                self.wake_all_blocked(self.workers[index(id)].plan.target);
            }
            Purpose::Trim if !failed && self.workers[index(id)].writes_what_it_trims() => {
                self.workers[index(id)].to_write.push_back((slot.block, slot.count));
            }
            Purpose::Reset => self.on_reset(&slot, !failed),
            Purpose::Flush => self.workers[index(id)].on_end_flush(now),
            _ => {}
        }
        if failed {
            self.on_failed(&slot, *reply);
        }
    }

    fn on_reset(&mut self, slot: &Slot, success: bool) {
        let worker = &mut self.workers[index(slot.worker)];
        let shared = &mut self.targets[worker.plan.target.index()];
        if let Some(zones) = &mut shared.zones {
            zones.on_reset(slot.block, success, &mut worker.open);
        }
        for id in std::mem::take(&mut shared.blocked) {
            self.make_ready(id);
        }
    }

    /// Checks what a read returned: in full for verifying jobs, else that every stamp names its own block.
    fn compare(&mut self, slot: &Slot, buffers: &Buffers) {
        let worker = &self.workers[index(slot.worker)];
        let shared = &self.targets[worker.plan.target.index()];
        if !shared.stamped && shared.oracle.is_none() {
            return;
        }
        let options = &self.plan.jobs[worker.plan.job].job.options;
        let fatal = options.verify.is_some() && options.verify_fatal;
        let written_by = |writer: u32| &self.workers[index(writer)].plan.content;
        let VerifyStats { checked, failed: wrong } =
            shared.compare(slot, self.sequence, fatal, buffers, &written_by);
        let result = &mut self.results[index(slot.worker)];
        let verify = result.verify.get_or_insert_default();
        verify.checked += checked;
        verify.failed += wrong;
        if wrong > 0 {
            result.error_count += 1;
            if fatal || !options.continue_on_error.verify {
                result.error = report::EILSEQ;
                self.workers[index(slot.worker)].stopping = true;
            } else {
                result.first_error.get_or_insert(report::EILSEQ);
            }
        }
    }

    fn is_zoned(&self, worker: u32) -> bool {
        self.targets[self.workers[index(worker)].plan.target.index()].zones.is_some()
    }

    fn on_failed(&mut self, slot: &Slot, reply: BlockReply) {
        let id = index(slot.worker);
        // The newest blocks of an open zone cannot be read back yet (MW_CUNITS): said in the report, no failure.
        if slot.purpose == Purpose::Verify && reply.status == Status::UNWRITTEN && self.is_zoned(slot.worker)
        {
            self.unread += u64::from(slot.count);
            return;
        }
        let direction = direction_of(slot.purpose);
        let worker = &mut self.workers[id];
        let shared = &mut self.targets[worker.plan.target.index()];
        if slot.purpose == Purpose::Write {
            if let Some(zones) = &mut shared.zones {
                zones.on_write_failed(slot.block, slot.worker, &mut worker.open);
            }
            if let Some(oracle) = &mut shared.oracle {
                oracle.forget(slot.block..slot.block + u64::from(slot.count));
            }
        }
        self.failures[id].get_or_insert((direction, reply));
        let result = &mut self.results[id];
        result.error_count += 1;
        result.direction_mut(direction).errors += 1;
        let go_on = self.plan.jobs[worker.plan.job].job.options.continue_on_error;
        let survives = if direction == Direction::Read { go_on.read } else { go_on.write };
        if survives {
            result.first_error.get_or_insert(report::EIO);
        } else {
            result.error = report::EIO;
            worker.stopping = true;
        }
    }

    /// Lets a worker go to its next phase, and others start when it is done.
    fn move_on(&mut self, now: Nanos, id: u32) {
        let worker = &mut self.workers[index(id)];
        let before = worker.phase;
        if before == Phase::Done {
            return;
        }
        let done = worker.move_on(now);
        if !done {
            if worker.phase != before {
                self.make_ready(id);
            }
            return;
        }
        self.done += 1;
        if let Some(zones) = &mut self.targets[worker.plan.target.index()].zones {
            zones.release(&mut worker.open);
        }
        let ended = worker.ended_at;
        report::finish(&mut self.results[index(id)], worker, self.origin, ended);
        if self.plan.jobs[worker.plan.job].job.options.exitall {
            self.stop_group(self.workers[index(id)].plan.group);
        }
        for blocked in std::mem::take(&mut self.targets[self.workers[index(id)].plan.target.index()].blocked)
        {
            self.make_ready(blocked);
        }
        self.start_eligible(now);
    }

    fn stop_group(&mut self, group: u32) {
        for id in 0..u32::try_from(self.workers.len()).expect("fewer than 2^32 workers") {
            if self.workers[index(id)].plan.group == group {
                self.workers[index(id)].stopping = true;
                self.make_ready(id);
            }
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

    /// Stops starting I/O; the run ends when what is in flight has.
    pub fn stop(&mut self) {
        for worker in &mut self.workers {
            worker.stopping = true;
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

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The results, and the buffers back to their pool.
    #[must_use]
    pub fn into_results(self, buffers: &mut Buffers) -> Vec<JobResult> {
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

const fn direction_of(purpose: Purpose) -> Direction {
    match purpose {
        Purpose::Read | Purpose::Verify => Direction::Read,
        Purpose::Trim => Direction::Trim,
        Purpose::Write | Purpose::Reset | Purpose::Flush => Direction::Write,
    }
}

impl Source for Runner {
    fn next_arrival(&self) -> Option<Nanos> {
        self.timers.deadline()
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if let Some(refused) = self.refused.take() {
            return Some(refused);
        }
        if self.timers.deadline().is_some_and(|at| at <= now) {
            self.on_timers(now);
        }
        while let Some(&id) = self.ready.front() {
            if let Some(request) = self.ask(now, id, buffers) {
                return Some(request);
            }
            self.ready.pop_front();
            self.is_ready[index(id)] = false;
            // A worker that moved on asked to be ready again while it still stood in the queue.
            let worker = &self.workers[index(id)];
            if matches!(worker.phase, Phase::Flushing | Phase::Verifying) && worker.outstanding == 0 {
                self.make_ready(id);
            }
        }
        None
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        self.refused = Some((target, request));
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        let number = reply.tag.0;
        let id = self.slots[index(number)].worker;
        self.workers[index(id)].on_reply(now);
        assert!(self.in_flight > 0, "more replies than requests");
        self.in_flight -= 1;
        self.finish(now, number, &reply, buffers);
        self.free[index(id)].push(number);
        self.make_ready(id);
    }

    fn is_finished(&self) -> bool {
        self.done == self.workers.len() && self.in_flight == 0
    }
}
