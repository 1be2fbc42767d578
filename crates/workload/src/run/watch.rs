//! What is looked at from time to time while jobs run: least rates, histograms over time, steady state; and the search
//! for a depth, which is looked at when an I/O ends.
//!
//! A watch has a timer of its own, in the numbers behind the workers; it ends with its jobs. Nothing here costs anything
//! per I/O, but for a job that searches. Deliberately not here: judging, which small machines without a clock do.

use super::latency_search::{Drained, SearchStep};
use super::minimum_rate::{MinimumRate, Work};
use super::report;
use super::round_watch::RoundWatch;
use super::runner::{Runner, index};
use super::steady_state::SteadyState;
use super::worker::Phase;
use crate::job::SteadyOptions;
use crate::results::{JobResult, SteadySample};
use ocssd_base::Nanos;

/// One thing that is watched.
pub(super) enum Watch {
    /// A worker must keep a rate.
    Rate { worker: u32, rate: MinimumRate },
    /// A worker's histograms are logged.
    Histogram { worker: u32, interval: Nanos },
    /// Workers are judged as one.
    Steady(Box<SteadyWatch>),
    /// Workers are judged by rounds, as one.
    Rounds(Box<RoundWatch>),
}

/// The steady state of a job, or of the jobs of a group that is reported as one.
pub(super) struct SteadyWatch {
    members: Vec<u32>,
    options: SteadyOptions,
    state: SteadyState,
    last: Totals,
    is_started: bool,
    /// The first look only remembers where it starts.
    is_sampling: bool,
}

/// What some workers did so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    ios: u64,
    bytes: u64,
    latency_ns: u128,
}

impl Totals {
    pub(super) fn of<'a>(results: impl Iterator<Item = &'a JobResult>) -> Self {
        let mut totals = Self::default();
        for stats in results.flat_map(JobResult::directions) {
            totals.ios += stats.total_ios;
            totals.bytes += stats.io_bytes;
            totals.latency_ns += stats.lat.sum_ns();
        }
        totals
    }

    /// What was done after `last`, in an interval.
    pub(super) fn since(self, last: Self, interval: Nanos) -> SteadySample {
        let rate = |amount: u64| {
            let rate = u128::from(amount) * 1_000_000_000 / u128::from(interval.0);
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let ios = self.ios.saturating_sub(last.ios);
        let latency = self.latency_ns.saturating_sub(last.latency_ns).checked_div(u128::from(ios));
        SteadySample {
            iops: rate(ios),
            bandwidth: rate(self.bytes.saturating_sub(last.bytes)),
            latency_ns: u64::try_from(latency.unwrap_or(0)).unwrap_or(u64::MAX),
        }
    }
}

impl Runner {
    /// Every watch the jobs ask for.
    pub(super) fn make_watches(&mut self) {
        for (id, worker) in (0_u32..).zip(&self.plan.workers) {
            let options = &self.plan.jobs[worker.job].job.options;
            if let Some(rate) = MinimumRate::new(options) {
                self.watches.push(Watch::Rate { worker: id, rate });
            }
            if options.logs.hist.is_some() && options.logs.hist_msec > 0 {
                let interval = Nanos::from_millis(options.logs.hist_msec);
                self.watches.push(Watch::Histogram { worker: id, interval });
            }
        }
        self.make_steady_watches();
        self.make_round_watches();
    }

    fn make_steady_watches(&mut self) {
        for (id, worker) in (0_u32..).zip(&self.plan.workers) {
            let options = &self.plan.jobs[worker.job].job.options;
            let steady = options.steady;
            if !steady.is_on() {
                continue;
            }
            let joined = self.watches.iter_mut().find_map(|watch| match watch {
                Watch::Steady(watch) if options.group_reporting => {
                    let first = &self.plan.workers[index(watch.members[0])];
                    let grouped = self.plan.jobs[first.job].job.options.group_reporting;
                    (grouped && first.group == worker.group).then_some(watch)
                }
                _ => None,
            });
            if let Some(watch) = joined {
                watch.members.push(id);
                continue;
            }
            let window = usize::try_from(steady.window()).expect("bounded when the job was read");
            self.watches.push(Watch::Steady(Box::new(SteadyWatch {
                members: vec![id],
                options: steady,
                state: SteadyState::new(steady.criterion, window, steady.duration),
                last: Totals::default(),
                is_started: false,
                is_sampling: false,
            })));
        }
    }

    /// A worker has started: what watches it starts too.
    pub(super) fn start_watches(&mut self, id: u32) {
        let worker = &self.workers[index(id)];
        let (started, measured) = (worker.started_at, worker.measured_from);
        for number in 0..self.watches.len() {
            let first = match &mut self.watches[number] {
                Watch::Rate { worker, .. } if *worker == id => MinimumRate::first(started, measured),
                Watch::Histogram { worker, interval } if *worker == id => measured + *interval,
                Watch::Steady(watch) if watch.members.contains(&id) && !watch.is_started => {
                    watch.is_started = true;
                    Nanos(measured.0.saturating_add(watch.options.ramp_time.0))
                }
                Watch::Rounds(watch) if watch.waits_for(id) => {
                    watch.start();
                    measured
                }
                _ => continue,
            };
            self.set_watch(first, number);
        }
    }

    fn set_watch(&mut self, at: Nanos, number: usize) {
        let event = u32::try_from(self.workers.len() + number).expect("fewer than 2^32 workers and watches");
        self.timers.push(at, event);
    }

    fn is_at_work(&self, id: u32) -> bool {
        let worker = &self.workers[index(id)];
        worker.phase == Phase::Running && !worker.stopping
    }

    /// The time of a watch has come.
    pub(super) fn on_watch(&mut self, now: Nanos, number: usize) {
        let next = match &self.watches[number] {
            Watch::Rate { worker, .. } => self.look_at_rate(now, number, *worker),
            Watch::Histogram { worker, interval } => self.look_at_histogram(now, *worker, *interval),
            Watch::Steady(_) => self.look_at_steadiness(now, number),
            Watch::Rounds(_) => self.look_at_rounds(now, number),
        };
        if let Some(next) = next {
            self.set_watch(next, number);
        }
    }

    fn look_at_rate(&mut self, now: Nanos, number: usize, id: u32) -> Option<Nanos> {
        if !self.is_at_work(id) {
            return None;
        }
        let result = &mut self.results[index(id)];
        let work = result.directions().map(|stats| Work { bytes: stats.io_bytes, ios: stats.total_ios });
        let Watch::Rate { rate, .. } = &mut self.watches[number] else { return None };
        if rate.is_met(now, work) {
            return Some(rate.next(now));
        }
        result.error = report::EIO;
        result.error_count += 1;
        self.end(id);
        None
    }

    fn look_at_histogram(&mut self, now: Nanos, id: u32, interval: Nanos) -> Option<Nanos> {
        if !self.is_at_work(id) {
            return None;
        }
        report::close_histograms(&mut self.results[index(id)], now - self.origin);
        Some(now + interval)
    }

    fn look_at_steadiness(&mut self, now: Nanos, number: usize) -> Option<Nanos> {
        let Watch::Steady(watch) = &mut self.watches[number] else { return None };
        let totals = Totals::of(watch.members.iter().map(|&id| &self.results[index(id)]));
        let interval = watch.options.check_interval;
        let sample = totals.since(watch.last, interval);
        watch.last = totals;
        let attained = std::mem::replace(&mut watch.is_sampling, true) && watch.state.observe(sample);
        let members = watch.members.clone();
        if attained {
            members.iter().for_each(|&id| self.end(id));
            return None;
        }
        let all_done = members.iter().all(|&id| self.workers[index(id)].phase == Phase::Done);
        (!all_done).then_some(now + interval)
    }

    /// Ends a worker before it is at its own end.
    pub(super) fn end(&mut self, id: u32) {
        self.workers[index(id)].stopping = true;
        self.make_ready(id);
    }

    /// An I/O of a worker ended that searches its depth.
    pub(super) fn on_searched(&mut self, now: Nanos, id: u32, latency: Nanos) {
        let worker = &mut self.workers[index(id)];
        let Some(search) = worker.search.as_mut() else { return };
        match search.on_completion(now, latency) {
            SearchStep::GoOn | SearchStep::Drain => {}
            SearchStep::Found => worker.stopping = true,
            SearchStep::Missed => {
                worker.stopping = true;
                self.results[index(id)].error = report::ETIMEDOUT;
                self.results[index(id)].error_count += 1;
            }
        }
    }

    /// Keeps a worker to the depth of its search; once the queue is drained the search goes on, or measures afresh.
    pub(super) fn follow_search(&mut self, now: Nanos, id: u32) {
        let worker = &mut self.workers[index(id)];
        let Some(search) = worker.search.as_mut() else { return };
        let drained = search.is_draining() && worker.outstanding == 0;
        let again = drained && search.on_drained(now) == Drained::MeasureAgain;
        // A worker that ends reads back what it wrote at the depth it has.
        worker.depth_limit = if worker.stopping { search.depth() } else { search.limit() };
        let depth = search.depth();
        self.results[index(id)].latency_target.depth = depth;
        if again {
            worker.measure_from(now);
            self.measure_again(now, id, depth);
        }
    }

    /// Forgets what was measured while the depth was searched; what went wrong stays.
    fn measure_again(&mut self, now: Nanos, id: u32, depth: u32) {
        let worker = &self.workers[index(id)];
        let job = &self.plan.jobs[worker.plan.job].job;
        let mut fresh = report::job_result(job, &worker.plan, now - self.origin);
        let before = &mut self.results[index(id)];
        fresh.latency_target.depth = depth;
        fresh.recording = before.recording.take();
        (fresh.verify, fresh.first_error, fresh.error_count) =
            (before.verify, before.first_error, before.error_count);
        *before = fresh;
    }

    /// Puts what was found into the results.
    pub(super) fn report_watches(&mut self) {
        for watch in &self.watches {
            match watch {
                Watch::Steady(watch) => {
                    let last = *watch.members.last().expect("a watch has members");
                    self.results[index(last)].steady = Some(watch.state.report());
                }
                Watch::Rounds(watch) => {
                    let (last, report) = watch.report();
                    self.results[index(last)].rounds = Some(report);
                }
                Watch::Rate { .. } | Watch::Histogram { .. } => {}
            }
        }
    }
}
