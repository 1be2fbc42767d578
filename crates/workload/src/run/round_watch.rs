//! Rounds of jobs that are to come to rest by the SNIA's rule: our `steady=`.
//!
//! A round ends by a timer; what was done in it is what the results grew by. A job that is steady ends, as by fio's
//! `steadystate`; one that has had all its rounds runs to its own end, and its result says that it was not steady.

use super::rounds::{Rounds, RoundsState};
use super::runner::{Runner, index};
use super::watch::{Totals, Watch};
use super::worker::Phase;
use crate::job::SteadyRounds;
use crate::results::{RoundsReport, SteadySample};
use ocssd_base::Nanos;

/// The rounds of a job, or of the jobs of a group that is reported as one.
pub(super) struct RoundWatch {
    members: Vec<u32>,
    asked: SteadyRounds,
    rounds: Rounds,
    samples: Vec<SteadySample>,
    last: Totals,
    written: u64,
    is_started: bool,
    /// The first look only remembers where it starts.
    is_sampling: bool,
}

impl RoundWatch {
    fn new(member: u32, asked: SteadyRounds) -> Self {
        Self {
            members: vec![member],
            asked,
            rounds: Rounds::new(asked.rule),
            samples: Vec::new(),
            last: Totals::default(),
            written: 0,
            is_started: false,
            is_sampling: false,
        }
    }

    /// True if it begins with this worker.
    pub(super) fn waits_for(&self, id: u32) -> bool {
        self.members.contains(&id) && !self.is_started
    }

    /// Its first worker has started.
    pub(super) const fn start(&mut self) {
        self.is_started = true;
    }

    /// What was found, for the last of its workers.
    pub(super) fn report(&self) -> (u32, RoundsReport) {
        let last = *self.members.last().expect("a watch has members");
        let report = RoundsReport {
            asked: self.asked,
            state: self.rounds.state(),
            window: self.rounds.window(),
            samples: self.samples.clone(),
            written: self.rounds.written(),
        };
        (last, report)
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

impl Runner {
    pub(super) fn make_round_watches(&mut self) {
        for (id, worker) in (0_u32..).zip(&self.plan.workers) {
            let job = &self.plan.jobs[worker.job].job;
            let Some(text) = &job.extension.steady else { continue };
            let joined = self.watches.iter_mut().find_map(|watch| match watch {
                Watch::Rounds(watch) if job.options.group_reporting => {
                    let first = &self.plan.workers[index(watch.members[0])];
                    let other = &self.plan.jobs[first.job].job;
                    let is_same =
                        first.group == worker.group && other.extension.steady.as_ref() == Some(text);
                    (other.options.group_reporting && is_same).then_some(watch)
                }
                _ => None,
            });
            if let Some(watch) = joined {
                watch.members.push(id);
                continue;
            }
            let asked = SteadyRounds::parse(text).expect("it was read with the job");
            self.watches.push(Watch::Rounds(Box::new(RoundWatch::new(id, asked))));
        }
    }

    pub(super) fn look_at_rounds(&mut self, now: Nanos, number: usize) -> Option<Nanos> {
        let Watch::Rounds(watch) = &mut self.watches[number] else { return None };
        let results = || watch.members.iter().map(|&id| &self.results[index(id)]);
        let totals = Totals::of(results());
        let written: u64 = results().map(|result| result.write.io_bytes).sum();
        let sample = totals.since(watch.last, watch.asked.round);
        let round_written = written.saturating_sub(watch.written);
        (watch.last, watch.written) = (totals, written);
        if std::mem::replace(&mut watch.is_sampling, true) {
            watch.samples.push(sample);
            watch.rounds.observe(as_f64(sample.metric(watch.asked.metric)), round_written);
        }
        let (members, state) = (watch.members.clone(), watch.rounds.state());
        let next = now + watch.asked.round;
        match state {
            RoundsState::Steady => {
                members.iter().for_each(|&id| self.end(id));
                None
            }
            RoundsState::GivenUp => None,
            RoundsState::More => {
                let all_done = members.iter().all(|&id| self.workers[index(id)].phase == Phase::Done);
                (!all_done).then_some(next)
            }
        }
    }
}
