//! Whose turn it is: which workers start, wait, are woken, move on and end.
//!
//! Deliberately not here: requests and replies (`runner`, `replies`), and the decisions of one worker (`worker`).

use super::plan::WorkerPlan;
use super::report;
use super::runner::{Runner, index};
use super::slots::Purpose;
use super::worker::{Phase, Worker};
use crate::job::ExitWhat;
use crate::results::Direction;
use ocssd_base::Nanos;
use ocssd_lightnvm::TargetId;
use std::collections::VecDeque;

/// A worker stands in the queue of those that can ask for more, if it does not already.
#[inline(always)]
pub(super) fn stand_in_line(worker: &mut Worker, ready: &mut VecDeque<u32>, id: u32) {
    if !worker.is_ready {
        worker.is_ready = true;
        ready.push_back(id);
    }
}

impl Runner {
    /// Starts every worker whose turn has come.
    pub(super) fn start_eligible(&mut self, now: Nanos) {
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
            let at = if worker.stopping { now } else { now + options.startdelay };
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
    pub(super) fn set_timer(&mut self, at: Nanos, id: u32) {
        if at < self.timer_at[index(id)] {
            self.timer_at[index(id)] = at;
            self.timers.push(at, id);
        }
    }

    pub(super) fn make_ready(&mut self, id: u32) {
        stand_in_line(&mut self.workers[index(id)], &mut self.ready, id);
    }

    pub(super) fn on_timers(&mut self, now: Nanos) {
        while let Some((at, id)) = self.timers.pop_due(now) {
            if let Some(timer) = self.timer_at.get_mut(index(id)).filter(|timer| **timer == at) {
                *timer = Nanos::MAX;
            }
            let Some(worker) = self.workers.get_mut(index(id)) else {
                self.on_watch(now, index(id) - self.workers.len());
                continue;
            };
            if worker.phase == Phase::Waiting && worker.eligible_at.is_some_and(|eligible| eligible <= at) {
                let options = &self.plan.jobs[worker.plan.job].job.options;
                worker.start(now, options);
                let (measured, ends) = (worker.measured_from, worker.ends_at());
                let job = &self.plan.jobs[worker.plan.job].job;
                self.results[index(id)] = report::job_result(job, &worker.plan, measured - self.origin);
                self.note_turn(id);
                if ends < Nanos::MAX {
                    // Beside any other timer: time may end a worker that waits for nothing else.
                    self.timers.push(ends, id);
                }
                self.flows.join(id);
                self.start_watches(id);
            }
            self.make_ready(id);
        }
    }

    /// A worker can go on only after somebody else wrote; it ends with an error if nobody will.
    pub(super) fn on_nothing(&mut self, now: Nanos, id: u32, direction: Direction) {
        let target = self.workers[index(id)].plan.target;
        let writes = |worker: &Worker| worker.phase == Phase::Running && worker.operations().writes();
        let helped = (0..)
            .zip(&self.workers)
            .any(|(other, worker)| other != id && worker.plan.target == target && writes(worker));
        if direction == Direction::Read && helped {
            self.block(id);
            return;
        }
        let result = &mut self.results[index(id)];
        result.error = if direction == Direction::Read { report::ENODATA } else { report::ENOSPC };
        result.error_count += 1;
        self.workers[index(id)].stopping = true;
        self.move_on(now, id);
    }

    /// A zone whose last block is being written is anybody's again.
    pub(super) fn wake_blocked(&mut self, target: TargetId, purpose: Purpose, block: u64) {
        let shared = &mut self.targets[target.index()];
        if purpose != Purpose::Write || shared.blocked.is_empty() {
            return;
        }
        if shared.zones.as_ref().is_some_and(|zones| zones.is_released(block)) {
            self.wake_all_blocked(target);
        }
    }

    pub(super) fn wake_all_blocked(&mut self, target: TargetId) {
        for id in std::mem::take(&mut self.targets[target.index()].blocked) {
            if self.workers[index(id)].phase == Phase::Running {
                self.flows.join(id);
            }
            self.make_ready(id);
        }
    }

    /// A worker waits until something changes on its target; nobody waits for it meanwhile.
    pub(super) fn block(&mut self, id: u32) {
        let target = self.workers[index(id)].plan.target;
        let blocked = &mut self.targets[target.index()].blocked;
        if !blocked.contains(&id) {
            blocked.push(id);
        }
        self.leave_flow(id);
    }

    fn leave_flow(&mut self, id: u32) {
        self.flows.leave(id);
        self.wake_held(id);
    }

    /// Who was ahead of its share in the flow of a worker may be no more.
    pub(super) fn wake_held(&mut self, id: u32) {
        while let Some(held) = self.flows.release(id) {
            self.make_ready(held);
        }
    }

    /// Lets a worker go to its next phase, and others start when it is done.
    pub(super) fn move_on(&mut self, now: Nanos, id: u32) {
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
            zones.release(id, &mut worker.open);
        }
        let ended = worker.ended_at;
        report::finish(&mut self.results[index(id)], worker, self.origin, ended);
        self.note_turn(id);
        let options = &self.plan.jobs[self.workers[index(id)].plan.job].job.options;
        if options.exit.all {
            self.exit_all(now, id, options.exit.what);
        }
        self.leave_flow(id);
        self.wake_all_blocked(self.workers[index(id)].plan.target);
        self.start_eligible(now);
    }

    /// A job with `exitall` ended: so do others.
    fn exit_all(&mut self, now: Nanos, ended: u32, what: ExitWhat) {
        let WorkerPlan { group, stage, .. } = self.workers[index(ended)].plan;
        self.stop_where(now, |plan| match what {
            ExitWhat::Group => plan.group == group,
            ExitWhat::Stonewall => plan.stage == stage,
            ExitWhat::All => true,
        });
    }

    /// Whoever has not started does so without its delay, and ends.
    fn stop_where(&mut self, now: Nanos, ends: impl Fn(&WorkerPlan) -> bool) {
        for id in 0..u32::try_from(self.workers.len()).expect("fewer than 2^32 workers") {
            let worker = &mut self.workers[index(id)];
            if ends(&worker.plan) {
                worker.stopping = true;
                let waits = worker.phase == Phase::Waiting && worker.eligible_at.is_some_and(|at| at > now);
                if waits {
                    worker.eligible_at = Some(now);
                    self.set_timer(now, id);
                }
                self.make_ready(id);
            }
        }
    }
}
