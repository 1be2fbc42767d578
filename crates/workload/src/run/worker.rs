//! One clone of a job: what it asks next. A small state machine; time and replies come in, requests go out.
//!
//! ```text
//!   Waiting ─► Running ─► Flushing (end_fsync) ─► Verifying ─► Done
//! ```
//! Deliberately not here: slots and targets in general (`runner`), measuring (`report`).

use super::files::{FilePlan, Files};
use super::latency_search::LatencySearch;
use super::offsets::{DrawOptions, Offsets};
use super::plan::WorkerPlan;
use super::priorities::Priorities;
use super::rate::Schedule;
use super::replay::{Replay, ReplayStep};
use super::slots::Purpose;
use super::strides::Strides;
use super::worker_profile::{Any, Profile, WorkerProfile};
use super::zones::{OpenLimits, OpenZones, ZoneTable};
use crate::job::{IologOp, JobOptions, Operations, Order, SyncMode};
use crate::results::Direction;
use ocssd_base::{Nanos, Prng};
use std::collections::VecDeque;

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its turn has not come.
    Waiting,
    /// Doing its I/O.
    Running,
    /// Its I/O is done, the last flush is not.
    Flushing,
    /// Reading back what it wrote.
    Verifying,
    /// Finished.
    Done,
}

/// What a worker wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// A request.
    Request { purpose: Purpose, block: u64, count: u32, intended: Nanos },
    /// To be asked again then.
    Later(Nanos),
    /// To be asked again when one of its requests ended.
    Reply,
    /// To be asked again when any zone of its target was reset or given up.
    Zone,
    /// There is nothing it can read, or no zone it can write, unless somebody else changes that.
    Nothing(Direction),
}

/// An I/O whose kind and length are drawn, but which may not start yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    pub(super) direction: Direction,
    pub(super) count: u32,
    /// Where, if that is decided: what was trimmed is written.
    pub(super) block: Option<u64>,
}

/// A worker's state.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) plan: WorkerPlan,
    pub(super) phase: Phase,
    /// What its requests and replies may need (`plain`).
    pub(super) profile: WorkerProfile,
    /// It stands in the queue of those that can ask for more.
    pub(super) is_ready: bool,
    pub(super) outstanding: u32,
    /// Its places that are free.
    pub(super) free: Vec<u32>,
    /// I/Os that may be in flight: fewer than `iodepth` while a latency target is searched.
    pub(super) depth_limit: u32,
    /// What few jobs have lies apart, so that what all have lies together.
    pub(super) search: Option<Box<LatencySearch>>,
    /// When it may start, once its turn has come.
    pub(super) eligible_at: Option<Nanos>,
    pub(super) started_at: Nanos,
    pub(super) measured_from: Nanos,
    pub(super) ended_at: Nanos,
    pub(super) ends_at: Nanos,
    /// No more I/O is started.
    pub(super) stopping: bool,
    pub(super) open: OpenZones,
    /// Written and not read back yet, for verifying jobs.
    pub(super) history: VecDeque<(u64, u32)>,
    pub(super) keeps_history: bool,
    /// Trimmed and not written yet, for jobs that write what they trimmed.
    pub(super) to_write: VecDeque<(u64, u32)>,
    pub(super) verify_backlog: Option<u64>,
    pub(super) reading_backlog: bool,
    pub(super) prng: Prng,
    pub(super) reads: Offsets,
    pub(super) writes: Offsets,
    pub(super) trims: Offsets,
    pub(super) strides: Option<Box<Strides>>,
    pub(super) files: Option<Box<Files>>,
    pub(super) replay: Option<Box<Replay>>,
    pub(super) priorities: Option<Box<Priorities>>,
    /// Reads go where they are drawn, written or not.
    pub(super) read_anywhere: bool,
    pub(super) rates: [Option<Schedule>; 3],
    pub(super) drawn: Option<Drawn>,
    pub(super) budget: u64,
    pub(super) ios_left: u64,
    pub(super) writes_since_flush: u32,
    pub(super) flush_every: u32,
    pub(super) end_fsync: bool,
    pub(super) think_after: u32,
    pub(super) think_pause: Nanos,
    pub(super) think_blocks: u32,
    /// Its writes are durable when they are replied to.
    pub(super) is_durable: bool,
    pub(super) not_before: Nanos,
    pub(super) operations: Operations,
    pub(super) read_percent: u8,
    pub(super) random: bool,
}

fn offsets_for(plan: &WorkerPlan, options: &JobOptions, align: u32, prng: &mut Prng, percent: u8) -> Offsets {
    let walked = plan.files.map_or(plan.region.blocks(), |files| files.blocks);
    let blocks = plan.strides.map_or(walked, |strides| strides.range.min(walked));
    let places = (blocks / u64::from(align)).max(1);
    match options.rw.order {
        Order::Sequential { .. } => Offsets::sequential(places),
        // Strides, which walk by themselves, are refused with it.
        Order::Backwards { back_bytes } => {
            let bytes = u64::from(align) * u64::from(plan.block_bytes);
            Offsets::backwards(places, (back_bytes / bytes).clamp(1, places))
        }
        Order::Random { ios_per_offset } => {
            let draw = DrawOptions {
                distribution: options.random_distribution,
                no_map: options.norandommap,
                ios_per_offset,
                percent_random: percent,
            };
            Offsets::random(places, &draw, prng)
        }
    }
}

fn files_for(files: FilePlan, plan: &WorkerPlan, options: &JobOptions, prng: &mut Prng) -> Files {
    let percent = options.percentage_random;
    Files::new(files, || {
        [
            offsets_for(plan, options, plan.align.read, prng, percent.read),
            offsets_for(plan, options, plan.align.write, prng, percent.write),
            offsets_for(plan, options, plan.align.trim, prng, percent.trim),
        ]
    })
}

impl Worker {
    pub(super) fn new(
        plan: WorkerPlan,
        options: &JobOptions,
        mut prng: Prng,
        zone_blocks: Option<u64>,
    ) -> Self {
        let percent = options.percentage_random;
        let files = plan.files.map(|files| Box::new(files_for(files, &plan, options, &mut prng)));
        let open = match zone_blocks {
            Some(blocks) => {
                let limits =
                    OpenLimits { target: options.max_open_zones, worker: options.job_max_open_zones };
                OpenZones::new(limits, plan.region, blocks)
            }
            None => OpenZones::default(),
        };
        Self {
            phase: Phase::Waiting,
            profile: WorkerProfile::Any,
            is_ready: false,
            outstanding: 0,
            free: Vec::new(),
            depth_limit: options.iodepth,
            search: None,
            eligible_at: None,
            started_at: Nanos::ZERO,
            measured_from: Nanos::ZERO,
            ended_at: Nanos::ZERO,
            ends_at: Nanos::MAX,
            stopping: false,
            open,
            history: VecDeque::new(),
            keeps_history: options.verify.is_some() && options.do_verify && options.rw.operations.writes(),
            to_write: VecDeque::new(),
            verify_backlog: options.verify_backlog.filter(|&backlog| backlog > 0),
            reading_backlog: false,
            reads: offsets_for(&plan, options, plan.align.read, &mut prng, percent.read),
            writes: offsets_for(&plan, options, plan.align.write, &mut prng, percent.write),
            trims: offsets_for(&plan, options, plan.align.trim, &mut prng, percent.trim),
            strides: plan.strides.map(|strides| Box::new(Strides::new(strides, plan.region))),
            files,
            priorities: options
                .says_priorities()
                .then(|| Box::new(Priorities::new(options.priority.clone(), prng.split("priorities")))),
            replay: plan.replay.clone().map(|log| Box::new(Replay::new(log))),
            read_anywhere: options.read_beyond_wp,
            rates: [None, None, None],
            drawn: None,
            budget: plan.budget,
            ios_left: options.number_ios.unwrap_or(u64::MAX),
            writes_since_flush: 0,
            flush_every: if options.fsync > 0 { options.fsync } else { options.fdatasync },
            end_fsync: options.end_fsync && options.rw.operations.writes(),
            think_after: 0,
            think_pause: options.thinktime.pause,
            think_blocks: options.thinktime.blocks,
            is_durable: options.sync != SyncMode::None,
            not_before: Nanos::ZERO,
            operations: options.rw.operations,
            read_percent: options.rwmixread,
            random: options.rw.is_random(),
            prng,
            plan,
        }
    }

    /// Its turn has come and its delay is over.
    pub(super) fn start(&mut self, now: Nanos, options: &JobOptions) {
        assert!(self.phase == Phase::Waiting, "a worker starts once");
        self.phase = Phase::Running;
        (self.started_at, self.measured_from) = (now, now + options.ramp_time);
        self.ends_at = options.runtime.map_or(Nanos::MAX, |runtime| self.measured_from + runtime);
        let directions = options.rate.as_array().into_iter().zip(options.rate_iops.as_array());
        for (schedule, (bytes, ios)) in self.rates.iter_mut().zip(directions) {
            *schedule = Schedule::new(*bytes, *ios, options.rate_process, now);
        }
        if let Some(replay) = &mut self.replay {
            replay.start(now);
        }
        if options.latency.target > Nanos::ZERO {
            let mut search = LatencySearch::new(options.latency, options.iodepth);
            search.start(self.measured_from);
            self.depth_limit = search.limit();
            self.search = Some(Box::new(search));
        }
    }

    /// Measuring starts again: what was measured before was the search for a depth.
    pub(super) const fn measure_from(&mut self, now: Nanos) {
        self.measured_from = now;
    }

    /// What it wants next. `block_bytes` and `zones` are its target's.
    #[inline(always)]
    pub(super) fn want<P: Profile>(&mut self, now: Nanos, id: u32, zones: Option<&mut ZoneTable>) -> Want {
        match self.phase {
            Phase::Running => self.want_running::<P>(now, id, zones),
            Phase::Flushing if self.outstanding == 0 => {
                Want::Request { purpose: Purpose::Flush, block: 0, count: 0, intended: now }
            }
            Phase::Verifying => self.want_verify(now, None).unwrap_or(Want::Reply),
            Phase::Waiting | Phase::Flushing | Phase::Done => Want::Reply,
        }
    }

    #[inline(always)]
    fn want_running<P: Profile>(&mut self, now: Nanos, id: u32, zones: Option<&mut ZoneTable>) -> Want {
        if self.is_spent(now) {
            return Want::Reply;
        }
        if P::OPTIONS
            && let Some(want) = self.want_before(now, zones.as_deref())
        {
            return want;
        }
        let mut drawn = if self.drawn.is_some() { self.drawn_before() } else { self.draw::<P>() };
        let wanted = drawn.direction;
        let rate = if !P::OPTIONS { None } else { self.rates[usize::from(wanted.number())].as_ref() };
        let intended = rate.map_or(now, Schedule::next);
        if intended > now {
            self.drawn = Some(drawn);
            return Want::Later(intended);
        }
        let placed = match drawn.block {
            Some(block) if P::OPTIONS => {
                Some(Want::Request { purpose: Purpose::Write, block, count: drawn.count, intended })
            }
            _ => self.place::<P>(id, &mut drawn, zones),
        };
        match placed {
            Some(Want::Request { purpose, block, count, .. }) => {
                if purpose == Purpose::Reset {
                    self.drawn = Some(drawn);
                } else {
                    self.on_issued::<P>(drawn.direction, count);
                }
                Want::Request { purpose, block, count, intended }
            }
            other => {
                self.drawn = Some(drawn);
                other.unwrap_or(Want::Nothing(wanted))
            }
        }
    }

    /// What was drawn and could not start.
    #[cold]
    fn drawn_before(&mut self) -> Drawn {
        self.drawn.take().expect("only asked of a worker that has drawn")
    }

    /// What comes before another I/O is drawn: reading back, a flush, a pause, or the whole log that is replayed.
    fn want_before(&mut self, now: Nanos, zones: Option<&ZoneTable>) -> Option<Want> {
        if let Some(backlog) = self.verify_backlog {
            let due = u64::try_from(self.history.len()).expect("a length fits 64 bits") >= backlog;
            self.reading_backlog = (self.reading_backlog || due) && !self.history.is_empty();
            let next = if self.reading_backlog { self.want_verify(now, zones) } else { None };
            if next.is_some() {
                return next;
            }
            // What cannot be read yet waits for more writes.
            self.reading_backlog = false;
        }
        if self.flush_every > 0 && self.writes_since_flush >= self.flush_every {
            self.writes_since_flush = 0;
            return Some(Want::Request { purpose: Purpose::Flush, block: 0, count: 0, intended: now });
        }
        if now < self.not_before {
            return Some(Want::Later(self.not_before));
        }
        self.replay.is_some().then(|| self.want_replay(now))
    }

    /// The next I/O of the log.
    fn want_replay(&mut self, now: Nanos) -> Want {
        let replay = self.replay.as_mut().expect("only asked of a worker that replays");
        let Some(ReplayStep { op, block, count, at }) = replay.peek(self.plan.block_bytes) else {
            return Want::Reply;
        };
        if at > now {
            return Want::Later(at);
        }
        if replay.on_issued(now) {
            self.budget = 0;
        }
        let (purpose, direction) = match op {
            IologOp::Read => (Purpose::Read, Direction::Read),
            IologOp::Write => (Purpose::Write, Direction::Write),
            IologOp::Trim => (Purpose::Trim, Direction::Trim),
            IologOp::Flush => {
                return Want::Request { purpose: Purpose::Flush, block: 0, count: 0, intended: at };
            }
        };
        self.on_issued::<Any>(direction, count);
        Want::Request { purpose, block, count, intended: at }
    }

    /// True once no more I/O is to be started.
    #[inline(always)]
    pub(super) fn is_spent(&self, now: Nanos) -> bool {
        let used_up = (self.budget == 0 || self.ios_left == 0) && self.to_write.is_empty();
        self.stopping || used_up || now >= self.ends_at
    }

    pub(super) const fn operations(&self) -> Operations {
        self.operations
    }

    /// True if every block it trims is then written.
    pub(super) fn writes_what_it_trims(&self) -> bool {
        self.operations == Operations::TrimWrite
    }

    /// When time ends it.
    pub(super) const fn ends_at(&self) -> Nanos {
        self.ends_at
    }

    /// An I/O of the job was started, in the direction it has: a mixed job that can read nothing writes instead.
    #[inline(always)]
    fn on_issued<P: Profile>(&mut self, direction: Direction, count: u32) {
        if P::OPTIONS && self.operations == Operations::TrimWrite && direction == Direction::Write {
            // Counted when it was trimmed, as fio does.
            self.to_write.pop_front();
        } else {
            self.budget =
                if self.budget == u64::MAX { u64::MAX } else { self.budget.saturating_sub(u64::from(count)) };
            self.ios_left = if self.ios_left == u64::MAX { u64::MAX } else { self.ios_left - 1 };
        }
        if !P::OPTIONS {
            return;
        }
        if self.flush_every > 0 {
            self.writes_since_flush += u32::from(direction == Direction::Write);
        }
        if let Some(schedule) = &mut self.rates[usize::from(direction.number())] {
            schedule.on_started(u64::from(count) * u64::from(self.plan.block_bytes), &mut self.prng);
        }
        if self.think_pause > Nanos::ZERO {
            self.think_after += 1;
            if self.think_after >= self.think_blocks {
                // Until a reply says when the pause begins.
                self.not_before = Nanos::MAX;
            }
        }
    }

    /// One of its requests ended.
    #[inline(always)]
    pub(super) fn on_reply<P: Profile>(&mut self, now: Nanos) {
        assert!(self.outstanding > 0, "a worker got more replies than it asked");
        self.outstanding -= 1;
        if P::OPTIONS && self.not_before == Nanos::MAX && self.outstanding == 0 {
            self.not_before = now + self.think_pause;
            self.think_after = 0;
        }
    }

    /// The oldest write not read back yet; `None` if there is none, or it cannot be read from its zone yet.
    fn want_verify(&mut self, now: Nanos, zones: Option<&ZoneTable>) -> Option<Want> {
        let &(block, count) = self.history.front()?;
        if zones.is_some_and(|zones| !zones.holds(block, count)) || self.stopping {
            return None;
        }
        self.history.pop_front();
        Some(Want::Request { purpose: Purpose::Verify, block, count, intended: now })
    }

    /// Moves on when a phase has nothing in flight and nothing left; true if the worker is done.
    pub(super) fn move_on(&mut self, now: Nanos) -> bool {
        if self.outstanding > 0 {
            return false;
        }
        if self.phase == Phase::Running && self.is_spent(now) {
            self.phase = if self.end_fsync { Phase::Flushing } else { Phase::Verifying };
            self.end_measuring(now);
            return self.move_on(now);
        }
        if self.phase == Phase::Verifying && (self.history.is_empty() || !self.keeps_history || self.stopping)
        {
            self.phase = Phase::Done;
        }
        self.phase == Phase::Done
    }

    /// The last flush is done.
    pub(super) fn on_end_flush(&mut self, now: Nanos) {
        if self.phase == Phase::Flushing {
            self.phase = Phase::Verifying;
            self.end_measuring(now);
        }
    }

    fn end_measuring(&mut self, now: Nanos) {
        // A job ended by time was measured until then; what was still in flight is not its rate.
        self.ended_at = now;
    }

    /// How far it is, in thousandths.
    pub(super) fn progress(&self, now: Nanos) -> u64 {
        let share = |done: u64, all: u64| u128::from(done.min(all)) * 1000 / u128::from(all.max(1));
        let thousandths = match self.phase {
            Phase::Waiting => 0,
            Phase::Running => {
                let by_blocks = if self.plan.budget == u64::MAX {
                    0
                } else {
                    share(self.plan.budget - self.budget, self.plan.budget)
                };
                let by_time = if self.ends_at == Nanos::MAX {
                    0
                } else {
                    share(now.saturating_since(self.started_at).0, (self.ends_at - self.started_at).0)
                };
                let by_log = self.replay.as_ref().map_or(0, |replay| replay.thousandths());
                by_blocks.max(by_time).max(by_log)
            }
            Phase::Flushing | Phase::Verifying | Phase::Done => 1000,
        };
        u64::try_from(thousandths).expect("at most a thousand")
    }
}
