//! One clone of a job: what it asks next. A small state machine; time and replies come in, requests go out.
//!
//! ```text
//!   Waiting ─► Running ─► Flushing (end_fsync) ─► Verifying ─► Done
//! ```
//! Deliberately not here: slots and targets in general (`runner`), measuring (`report`).

use super::offsets::{DrawOptions, Offsets};
use super::plan::WorkerPlan;
use super::rate::Schedule;
use super::sizes::Sizes;
use super::slots::Purpose;
use super::zones::{OpenZones, WriteStep, ZoneTable};
use crate::job::{JobOptions, Operations, Order};
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
struct Drawn {
    direction: Direction,
    count: u32,
    /// Where, if that is decided: what was trimmed is written.
    block: Option<u64>,
}

/// A worker's state.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) plan: WorkerPlan,
    pub(super) phase: Phase,
    pub(super) outstanding: u32,
    /// When it may start, once its turn has come.
    pub(super) eligible_at: Option<Nanos>,
    pub(super) started_at: Nanos,
    pub(super) measured_from: Nanos,
    pub(super) ended_at: Nanos,
    ends_at: Nanos,
    /// No more I/O is started.
    pub(super) stopping: bool,
    pub(super) open: OpenZones,
    /// Written and not read back yet, for verifying jobs.
    pub(super) history: VecDeque<(u64, u32)>,
    pub(super) keeps_history: bool,
    /// Trimmed and not written yet, for jobs that write what they trimmed.
    pub(super) to_write: VecDeque<(u64, u32)>,
    verify_backlog: Option<u64>,
    reading_backlog: bool,
    prng: Prng,
    reads: Offsets,
    writes: Offsets,
    trims: Offsets,
    rates: [Option<Schedule>; 3],
    drawn: Option<Drawn>,
    budget: u64,
    ios_left: u64,
    writes_since_flush: u32,
    flush_every: u32,
    end_fsync: bool,
    think_after: u32,
    think_pause: Nanos,
    not_before: Nanos,
    operations: Operations,
    read_percent: u8,
    random: bool,
}

fn offsets_for(plan: &WorkerPlan, options: &JobOptions, align: u32, prng: &mut Prng, percent: u8) -> Offsets {
    let places = (plan.region.blocks() / u64::from(align)).max(1);
    match options.rw.order {
        Order::Sequential { .. } => Offsets::sequential(places),
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

impl Worker {
    pub(super) fn new(
        plan: WorkerPlan,
        options: &JobOptions,
        mut prng: Prng,
        zone_blocks: Option<u64>,
    ) -> Self {
        let percent = options.percentage_random;
        let open = match zone_blocks {
            Some(blocks) => OpenZones::new(options.max_open_zones, plan.region, blocks),
            None => OpenZones::default(),
        };
        Self {
            phase: Phase::Waiting,
            outstanding: 0,
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
            rates: [None, None, None],
            drawn: None,
            budget: plan.budget,
            ios_left: options.number_ios.unwrap_or(u64::MAX),
            writes_since_flush: 0,
            flush_every: if options.fsync > 0 { options.fsync } else { options.fdatasync },
            end_fsync: options.end_fsync && options.rw.operations.writes(),
            think_after: 0,
            think_pause: options.thinktime.pause,
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
    }

    /// What it wants next. `block_bytes` and `zones` are its target's.
    pub(super) fn want(
        &mut self,
        now: Nanos,
        id: u32,
        options: &JobOptions,
        zones: Option<&mut ZoneTable>,
    ) -> Want {
        match self.phase {
            Phase::Running => self.want_running(now, id, options, zones),
            Phase::Flushing if self.outstanding == 0 => {
                Want::Request { purpose: Purpose::Flush, block: 0, count: 0, intended: now }
            }
            Phase::Verifying => self.want_verify(now, None).unwrap_or(Want::Reply),
            Phase::Waiting | Phase::Flushing | Phase::Done => Want::Reply,
        }
    }

    fn want_running(
        &mut self,
        now: Nanos,
        id: u32,
        options: &JobOptions,
        zones: Option<&mut ZoneTable>,
    ) -> Want {
        if self.is_spent(now) {
            return Want::Reply;
        }
        if let Some(backlog) = self.verify_backlog {
            let due = u64::try_from(self.history.len()).expect("a length fits 64 bits") >= backlog;
            self.reading_backlog = (self.reading_backlog || due) && !self.history.is_empty();
            let next = if self.reading_backlog { self.want_verify(now, zones.as_deref()) } else { None };
            match next {
                Some(want) => return want,
                // What cannot be read yet waits for more writes.
                None => self.reading_backlog = false,
            }
        }
        if self.flush_every > 0 && self.writes_since_flush >= self.flush_every {
            self.writes_since_flush = 0;
            return Want::Request { purpose: Purpose::Flush, block: 0, count: 0, intended: now };
        }
        if now < self.not_before {
            return Want::Later(self.not_before);
        }
        let Drawn { direction, count, block } = self.draw();
        let rate = self.rates[usize::from(direction.number())].as_ref();
        let intended = rate.map_or(now, Schedule::next);
        if intended > now {
            return Want::Later(intended);
        }
        let placed = match block {
            Some(block) => Some(Want::Request { purpose: Purpose::Write, block, count, intended }),
            None => self.place(id, direction, count, zones),
        };
        match placed {
            Some(Want::Request { purpose, block, count, .. }) => {
                if purpose != Purpose::Reset {
                    self.on_issued(direction, count, options);
                }
                Want::Request { purpose, block, count, intended }
            }
            Some(want) => want,
            None => Want::Nothing(direction),
        }
    }

    /// True once no more I/O is to be started.
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

    fn draw(&mut self) -> Drawn {
        if let Some(drawn) = self.drawn {
            return drawn;
        }
        if let Some(&(block, count)) = self.to_write.front() {
            return Drawn { direction: Direction::Write, count, block: Some(block) };
        }
        let direction = match self.operations {
            Operations::Read => Direction::Read,
            Operations::Write => Direction::Write,
            Operations::Trim | Operations::TrimWrite => Direction::Trim,
            Operations::ReadWrite if self.prng.below(100) < u64::from(self.read_percent) => Direction::Read,
            Operations::ReadWrite => Direction::Write,
        };
        let sizes = match direction {
            Direction::Read => &self.plan.sizes.read,
            Direction::Write => &self.plan.sizes.write,
            Direction::Trim => &self.plan.sizes.trim,
        };
        let count = sizes.as_ref().map_or(1, |sizes: &Sizes| sizes.draw(&mut self.prng));
        let drawn = Drawn { direction, count, block: None };
        self.drawn = Some(drawn);
        drawn
    }

    /// Where the drawn I/O goes. `None` if there is nothing it could do.
    fn place(
        &mut self,
        id: u32,
        direction: Direction,
        count: u32,
        zones: Option<&mut ZoneTable>,
    ) -> Option<Want> {
        let request =
            |purpose, block, count| Some(Want::Request { purpose, block, count, intended: Nanos::ZERO });
        match (direction, zones) {
            (Direction::Write, Some(zones)) => {
                let draw = self.random.then_some(&mut self.prng);
                match zones.place_write(id, &mut self.open, count, self.plan.region, draw) {
                    WriteStep::Write { block, count } => request(Purpose::Write, block, count),
                    WriteStep::Reset { block } => request(Purpose::Reset, block, 0),
                    WriteStep::Blocked => Some(Want::Zone),
                    WriteStep::Gone => None,
                }
            }
            (Direction::Read, Some(zones)) => {
                let block = self.next_block(direction, count);
                match zones.place_read(block, count, self.plan.region, &mut self.prng) {
                    Some(block) => request(Purpose::Read, block, count),
                    None if self.operations == Operations::ReadWrite => {
                        // Nothing is readable yet: write instead, so that something will be.
                        let count =
                            self.plan.sizes.write.as_ref().map_or(count, |sizes| sizes.draw(&mut self.prng));
                        self.drawn = Some(Drawn { direction: Direction::Write, count, block: None });
                        self.place(id, Direction::Write, count, Some(zones))
                    }
                    None => None,
                }
            }
            (Direction::Read, None) => request(Purpose::Read, self.next_block(direction, count), count),
            (Direction::Write, None) => request(Purpose::Write, self.next_block(direction, count), count),
            (Direction::Trim, None) => request(Purpose::Trim, self.next_block(direction, count), count),
            (Direction::Trim, Some(_)) => unreachable!("the plan refuses trims of zones"),
        }
    }

    /// The block at which the next I/O of a direction lies within the region.
    fn next_block(&mut self, direction: Direction, count: u32) -> u64 {
        let (offsets, align) = match direction {
            Direction::Read => (&mut self.reads, self.plan.align.read),
            Direction::Write => (&mut self.writes, self.plan.align.write),
            Direction::Trim => (&mut self.trims, self.plan.align.trim),
        };
        let align = u64::from(align);
        // Nearly every job has one block size and leaves nothing out: no division for those.
        let places = if u64::from(count) == align { 1 } else { u64::from(count).div_ceil(align) };
        let skip = if self.plan.skip_bytes == 0 { 0 } else { self.plan.skip_places(align) };
        let step = places + skip;
        let place = offsets.next(step, &mut self.prng).unwrap_or_else(|| {
            offsets.rewind(&mut self.prng);
            offsets.next(step, &mut self.prng).expect("a region has at least one place")
        });
        let last = self.plan.region.blocks() - u64::from(count);
        self.plan.region.first + (place * align).min(last)
    }

    fn on_issued(&mut self, direction: Direction, count: u32, options: &JobOptions) {
        // A mixed job that read nothing wrote instead.
        let direction = self.drawn.take().map_or(direction, |drawn| drawn.direction);
        if self.operations == Operations::TrimWrite && direction == Direction::Write {
            // Counted when it was trimmed, as fio does.
            self.to_write.pop_front();
        } else {
            self.budget =
                if self.budget == u64::MAX { u64::MAX } else { self.budget.saturating_sub(u64::from(count)) };
            self.ios_left = if self.ios_left == u64::MAX { u64::MAX } else { self.ios_left - 1 };
        }
        self.writes_since_flush += u32::from(direction == Direction::Write);
        if let Some(schedule) = &mut self.rates[usize::from(direction.number())] {
            schedule.on_started(u64::from(count) * u64::from(self.plan.block_bytes), &mut self.prng);
        }
        if self.think_pause > Nanos::ZERO {
            self.think_after += 1;
            if self.think_after >= options.thinktime.blocks {
                // Until a reply says when the pause begins.
                self.not_before = Nanos::MAX;
            }
        }
    }

    /// One of its requests ended.
    pub(super) fn on_reply(&mut self, now: Nanos) {
        assert!(self.outstanding > 0, "a worker got more replies than it asked");
        self.outstanding -= 1;
        if self.not_before == Nanos::MAX && self.outstanding == 0 {
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
                by_blocks.max(by_time)
            }
            Phase::Flushing | Phase::Verifying | Phase::Done => 1000,
        };
        u64::try_from(thousandths).expect("at most a thousand")
    }
}
