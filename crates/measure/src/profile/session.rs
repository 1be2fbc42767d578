//! Carries out a profile: fill, rounds until steady, then every run of the schedule, within the time there is.
//!
//! Of the time, a quarter is for filling, a fifth for rounds and a tenth for the open loop; what they leave is the cells'.
//! With the contract grade filling and rounds take as long as they need, and the others have all of the time. A profile that
//! is stopped, or whose drive fails, keeps what it has.

use super::cell::{Cell, JobSetting, fill_job};
use super::device_under_test::{DeviceUnderTest, Done, Look, TestError};
use super::file_under_test::iops;
use super::record::{
    CellRecord, FillRecord, Profile, RoundsRecord, RunRecord, SAMPLES_BEYOND, Series, as_f64,
};
use super::schedule::{Effortful, Schedule, cells, possible};
use super::statistics::Mean;
use super::write_history::WriteHistory;
use ocssd_base::Nanos;
use ocssd_workload::job::{Job, RoundRule};
use ocssd_workload::results::json::{Format, to_value};
use ocssd_workload::results::{ClockKind, JobResult, LatencyStats, PercentileList, RunResult, Verdict};
use ocssd_workload::run::{Rounds, RoundsState};
use serde_json::Value;

/// What a profile tells whoever waits for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is done now.
    pub what: String,
    /// Time gone, and an estimate of what is left, on the device's clock.
    pub gone: Nanos,
    /// The second of these.
    pub left: Nanos,
    /// True while it is not known how long rounds take: what is left is then the most it can be.
    pub is_most: bool,
}

/// Who waits.
pub trait Watch {
    /// Something begins.
    fn on_step(&mut self, step: &Step);

    /// Whether to go on; `look` shows the job under way.
    fn go_on(&mut self, look: &dyn Look) -> bool;
}

/// Shares of the time for filling and for rounds, in percent (chosen: the cells get half or more).
const FILL_PERCENT: u64 = 25;
const ROUNDS_PERCENT: u64 = 20;
/// Rounds that fit their share: a window of five may fail five times and still pass (chosen).
const ROUNDS_IN_SHARE: u64 = 10;
/// SNIA's round.
const CONTRACT_ROUND: Nanos = Nanos::from_secs(60);
/// The workload that is brought to rest: what wears a drive out most.
const ROUND_CELL: Cell = Cell::random(4096, 0, 32);

/// One profile under way.
pub struct Session<'a> {
    pub(super) device: &'a mut dyn DeviceUnderTest,
    watch: &'a mut dyn Watch,
    pub(super) asked: Effortful,
    pub(super) seed: u64,
    began: Nanos,
    jobs: u64,
    /// Cells in place of the effort's.
    only: Vec<Cell>,
    pub(super) profile: Profile,
}

impl<'a> Session<'a> {
    /// A profile of `device`.
    pub fn new(
        device: &'a mut dyn DeviceUnderTest,
        watch: &'a mut dyn Watch,
        asked: Effortful,
        seed: u64,
    ) -> Self {
        let profile = Profile {
            started_unix_secs: None,
            clock: device.clock(),
            seed,
            description: device.description(),
            environment: device.environment(),
            bytes: 0,
            fill: None,
            rounds: None,
            history: WriteHistory::default(),
            runs: Vec::new(),
            cells: Vec::new(),
            open: Vec::new(),
            open_runs: Vec::new(),
            planned: 0,
            run: Nanos::ZERO,
            ceiling_iops: None,
            attestation: None,
            surroundings: device.surroundings().map(|now| (now.clone(), now)),
            link_bytes_per_second: device.link_bytes_per_second(),
            phases: Vec::new(),
            sector_bytes: device.sector_bytes(),
            timeline: None,
            writers: Vec::new(),
            ended_early: None,
            is_interrupted: false,
            notes: Vec::new(),
            took: Nanos::ZERO,
        };
        let began = device.now();
        Self { device, watch, asked, seed, began, jobs: 0, only: Vec::new(), profile }
    }

    /// Measures these cells and no others, unless there are none.
    #[must_use]
    pub fn only(mut self, cells: &[Cell]) -> Self {
        self.only = cells.to_vec();
        self
    }

    /// Carries it out. What failed or was stopped is said in the profile, which has what there is.
    #[must_use]
    pub fn carry_out(mut self) -> Profile {
        if let Err(TestError(sentence)) = self.all() {
            self.profile.ended_early = Some(sentence);
        }
        self.profile.bytes = self.device.bounds().bytes;
        self.profile.description = self.device.description();
        self.profile.attestation = self.device.attestation();
        if let (Some((_, after)), Some(now)) = (&mut self.profile.surroundings, self.device.surroundings()) {
            *after = now;
        }
        self.profile.took = self.gone();
        self.profile.timeline = self.device.timeline().map(|timeline| timeline.since(self.began));
        let notes = self.device.notes();
        self.profile.notes.splice(0..0, notes);
        self.profile
    }

    fn all(&mut self) -> Result<(), TestError> {
        self.profile.ceiling_iops = self.device.ceiling();
        if self.device.bounds().writable {
            self.fill()?;
            self.rounds()?;
        }
        self.measure()?;
        self.open_loop()
    }

    pub(super) fn gone(&self) -> Nanos {
        self.device.now().saturating_since(self.began)
    }

    fn time(&self) -> Nanos {
        self.asked.time.unwrap_or(self.asked.effort.time())
    }

    pub(super) fn begin(&mut self, phase: &'static str) {
        let gone = self.gone();
        self.profile.phases.push((phase, gone));
    }

    pub(super) fn share(&self, percent: u64) -> Nanos {
        Nanos(self.time().0 / 100 * percent)
    }

    pub(super) fn say(&mut self, what: String, left: Nanos) {
        let step = Step { what, gone: self.gone(), left, is_most: false };
        self.watch.on_step(&step);
    }

    /// Says what is done before cells: they take the rest of the time, or more if they are many; with the contract grade rounds
    /// may go on for long.
    fn say_before_cells(&mut self, what: String, rounds: usize) {
        let rounds = if self.asked.contract { self.contract_round() * as_u64(rounds) } else { Nanos::ZERO };
        let runs = self.schedule().0.time() + self.open_loop_time();
        let left = self.time().saturating_since(self.gone()).max(rounds + runs);
        let step = Step { what, gone: self.gone(), left, is_most: self.asked.contract };
        self.watch.on_step(&step);
    }

    /// SNIA's round; a tenth of it in virtual time, where there is no noise that time would average out.
    fn contract_round(&self) -> Nanos {
        match self.profile.clock {
            ClockKind::Wall => CONTRACT_ROUND,
            ClockKind::Virtual => Nanos(CONTRACT_ROUND.0 / 10),
        }
    }

    /// The runs, in the time there is: what is left, or all of it with the contract grade; and what is left out.
    fn schedule(&self) -> (Schedule, Vec<String>) {
        let bounds = self.device.bounds();
        let (cells, notes) = if self.only.is_empty() {
            cells(self.asked.effort, bounds)
        } else {
            possible(&self.only, bounds)
        };
        let left = if self.asked.contract { self.time() } else { self.time().saturating_since(self.gone()) };
        let left = left.saturating_since(self.open_loop_time());
        (Schedule::new(cells, self.asked, left, self.seed), notes)
    }

    pub(super) fn setting(&self, name: String, depth: u32, runtime: Nanos, ramp: Nanos) -> JobSetting {
        JobSetting {
            name,
            size: self.device.bounds().bytes,
            runtime,
            ramp,
            seed: self.seed_of(self.jobs + 1),
            engine: self.device.engine(depth),
            direct: self.device.direct(),
            filename: self.device.filename(),
        }
    }

    /// The seed of the job of this number. Each has its own: random reads in the order in which the places were written at random
    /// find them side by side on any drive with a log, and rounds that write the same places in the same order leave it nothing to
    /// collect.
    const fn seed_of(&self, job: u64) -> u64 {
        self.seed.wrapping_mul(1 << 20).wrapping_add(job)
    }

    /// Runs a job with a seed of its own.
    pub(super) fn job(&mut self, job: &Job) -> Result<Done, TestError> {
        self.job_seen(job, &mut |_| ())
    }

    /// The same; `see` looks at it from time to time.
    fn job_seen(&mut self, job: &Job, see: &mut dyn FnMut(&dyn Look)) -> Result<Done, TestError> {
        self.jobs += 1;
        let seed = self.seed_of(self.jobs);
        let watch = &mut *self.watch;
        let mut go_on = |look: &dyn Look| {
            see(look);
            watch.go_on(look)
        };
        let done = self.device.carry_out(job, seed, &mut go_on)?;
        if done.stopped {
            self.profile.is_interrupted = true;
            return Err(TestError("it was interrupted; what was measured before stands".to_owned()));
        }
        Ok(done)
    }

    /// Writes everything once, in order; twice for the contract grade.
    fn fill(&mut self) -> Result<(), TestError> {
        let limit = (!self.asked.contract).then(|| self.share(FILL_PERCENT));
        self.begin("filling");
        self.say_before_cells("filling, in order".to_owned(), RoundRule::contract(0).rounds_max);
        let wanted = self.device.bounds().bytes;
        let before = self.device.now();
        let setting = self.setting("fill".to_owned(), 8, Nanos::ZERO, Nanos::ZERO);
        let result = self.job(&fill_job(&setting, limit))?.result;
        let bytes = result.write.io_bytes;
        let took = self.device.now().saturating_since(before);
        self.profile.fill = Some(FillRecord { bytes, wanted, took, series: Series::of_writes(&result) });
        if bytes < wanted {
            self.device.shrink_to(bytes);
            let least = crate::storage::BYTES_MIN;
            if self.device.bounds().bytes < least {
                let sentence =
                    format!("only {bytes} bytes could be written in the time for it; give more --time");
                return Err(TestError(sentence));
            }
            self.profile.notes.push(format!(
                "only {bytes} of {wanted} bytes were written in the time for filling, and only these are used; give more \
                 --time, or a --size that fits it"
            ));
        }
        if self.asked.contract {
            let rounds = RoundRule::contract(0).rounds_max;
            self.say_before_cells("filling a second time".to_owned(), rounds);
            self.job(&fill_job(&setting, None))?;
        }
        self.device.set_written();
        Ok(())
    }

    /// Random writes until they are steady, or the time for that is over.
    fn rounds(&mut self) -> Result<(), TestError> {
        let bytes = self.device.bounds().bytes;
        let rule = if self.asked.contract { RoundRule::contract(2 * bytes) } else { RoundRule::snia(bytes) };
        let share = self.share(ROUNDS_PERCENT);
        let round =
            if self.asked.contract { self.contract_round() } else { Nanos(share.0 / ROUNDS_IN_SHARE) };
        let mut rounds = Rounds::new(rule);
        self.begin("random writes");
        let began = self.gone();
        let mut history = WriteHistory::new(Nanos(share.0 / HISTORY_INTERVALS));
        let result = loop {
            let number = rounds.values().len() + 1;
            let what = format!("random writes to steady state, round {number}");
            self.say_before_cells(what, rule.rounds_max.saturating_sub(number - 1));
            let setting = self.setting(format!("round-{number}"), ROUND_CELL.depth, round, Nanos::ZERO);
            history.begin_job();
            let origin = self.began;
            let mut see = |look: &dyn Look| history.see(origin, look);
            let done = match self.job_seen(&ROUND_CELL.job(&setting), &mut see) {
                Ok(done) => done,
                Err(error) => break Err(error),
            };
            let state = rounds.observe(iops(&done.result), done.result.write.io_bytes);
            let is_late = !self.asked.contract && self.gone() + round > began + share;
            if state != RoundsState::More || is_late {
                break Ok(());
            }
        };
        self.profile.history = history;
        self.profile.rounds = Some(RoundsRecord {
            rule,
            state: rounds.state(),
            iops: rounds.values().to_vec(),
            round,
            written: rounds.written(),
            window: rounds.window(),
        });
        result
    }

    fn measure(&mut self) -> Result<(), TestError> {
        let (schedule, notes) = self.schedule();
        self.profile.notes.extend(notes);
        (self.profile.planned, self.profile.run) = (schedule.order.len(), schedule.run);
        self.begin("cells");
        let mut latencies: Vec<LatencyStats> = vec![LatencyStats::default(); schedule.cells.len()];
        let began = self.gone();
        let mut result = Ok(());
        for (number, &(index, repetition)) in schedule.order.iter().enumerate() {
            let cell = schedule.cells[index];
            let left = self.estimate(&schedule, number, self.gone().saturating_since(began));
            self.say(format!("run {} of {}: {}", number + 1, schedule.order.len(), cell.label()), left);
            let name = format!("{}-r{}", cell.name(), repetition + 1);
            let setting = self.setting(name, cell.depth, schedule.run, schedule.ramp);
            let began = self.gone();
            match self.job(&cell.job(&setting)) {
                Ok(Done { mut result, cpu_ns_per_io, .. }) => {
                    result.group = u32::try_from(number).expect("fewer than 2^32 runs");
                    for side in result.directions() {
                        latencies[index].merge(&side.lat);
                    }
                    let run = record(index, repetition, began, result, self.seed);
                    self.profile.runs.push(RunRecord { cpu_ns_per_io, ..run });
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        for (index, (&cell, latency)) in schedule.cells.iter().zip(latencies).enumerate() {
            self.profile.cells.extend(summary(index, cell, latency, &self.profile.runs));
        }
        // Only cells with a run are kept, and runs name them by their place among all.
        let kept: Vec<Cell> = self.profile.cells.iter().map(|record| record.cell).collect();
        for run in &mut self.profile.runs {
            let cell = schedule.cells[run.cell];
            run.cell = kept.iter().position(|other| *other == cell).expect("a cell with a run is kept");
        }
        result
    }

    /// Time left, by how long runs have taken so far; by plan before the first.
    fn estimate(&self, schedule: &Schedule, done: usize, took: Nanos) -> Nanos {
        let all = as_u64(schedule.order.len());
        let cells = match as_u64(done) {
            0 => schedule.time(),
            done => Nanos(took.0 / done * (all - done)),
        };
        cells + self.open_loop_time()
    }

    /// Time that is kept for the open loop: none if cells were named, which it does not rest on.
    fn open_loop_time(&self) -> Nanos {
        if self.only.is_empty() { self.share(OPEN_PERCENT) } else { Nanos::ZERO }
    }
}

/// Share of the time for the open loop, in percent (chosen: half of what rounds get).
pub(super) const OPEN_PERCENT: u64 = 10;
/// Intervals of the history over the time that rounds have (chosen: as many as a picture shows).
const HISTORY_INTERVALS: u64 = 120;

pub(super) fn as_u64(number: usize) -> u64 {
    u64::try_from(number).expect("a count of rounds or runs")
}

fn summary(index: usize, cell: Cell, latency: LatencyStats, runs: &[RunRecord]) -> Option<CellRecord> {
    let of = |number: fn(&RunRecord) -> f64| -> Vec<f64> {
        runs.iter().filter(|run| run.cell == index).map(number).collect()
    };
    let iops = of(|run| run.iops);
    let cpu: Vec<f64> =
        runs.iter().filter(|run| run.cell == index).filter_map(|run| run.cpu_ns_per_io).collect();
    (!iops.is_empty()).then(|| CellRecord {
        cell,
        iops: Mean::of(&iops),
        bytes_per_second: Mean::of(&of(|run| run.bytes_per_second)),
        mean_ns: Mean::of(&of(|run| run.mean_ns)),
        cpu_ns_per_io: (!cpu.is_empty()).then(|| Mean::of(&cpu)),
        latency,
    })
}

/// Keeps of a run what a result needs, and lets go of its series: a full grid has two thousand runs.
fn record(cell: usize, repetition: u32, began: Nanos, result: JobResult, seed: u64) -> RunRecord {
    let bytes: u64 = result.directions().iter().map(|side| side.io_bytes).sum();
    let (count, sum) = result
        .directions()
        .iter()
        .fold((0, 0), |(count, sum), side| (count + side.lat.count(), sum + side.lat.sum_ns()));
    let seconds = result.run_time.as_secs_f64().max(1e-9);
    let (rate, mean_ns) = (iops(&result), u128_as_f64(sum) / as_f64(count.max(1)));
    let (job, own) = kept(result, seed);
    let bytes_per_second = as_f64(bytes) / seconds;
    RunRecord {
        cell,
        repetition,
        began,
        iops: rate,
        bytes_per_second,
        mean_ns,
        cpu_ns_per_io: None,
        job,
        own,
    }
}

/// Leaves percentiles out that fewer than ten samples carry (rule L11).
fn leave_blank(result: &mut JobResult) {
    let samples =
        result.directions().iter().map(|side| side.lat.count()).filter(|&count| count > 0).min().unwrap_or(0);
    let carried = |percent: &f64| as_f64(samples) * (100.0 - percent) / 100.0 >= SAMPLES_BEYOND;
    let list = result.percentiles.list.as_slice().iter().copied().filter(carried).collect();
    if let Ok(list) = PercentileList::new(list) {
        result.percentiles.list = list;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of latencies, to be divided")]
pub(super) const fn u128_as_f64(number: u128) -> f64 {
    number as f64
}

/// The two objects a result has for a job, without percentiles that too few samples carry.
pub(super) fn kept(mut result: JobResult, seed: u64) -> (Value, Value) {
    leave_blank(&mut result);
    let run = RunResult {
        limits: Vec::new(),
        tails: Vec::new(),
        version: String::new(),
        started_unix_secs: None,
        clock: ClockKind::Wall,
        seed,
        rerun_command: String::new(),
        environment: Vec::new(),
        drive: Vec::new(),
        notes: Vec::new(),
        global_options: Vec::new(),
        jobs: vec![result],
        beside: Vec::new(),
        trace_hash: None,
        lateness: None,
        counters: None,
        verdict: Verdict::Pass,
    };
    let mut value = to_value(&run, Format::Json);
    (value["jobs"][0].take(), value["ocssd"]["jobs"][0].take())
}
