//! The threads of a campaign, and the one place where what they bring is put in order.
//!
//! A worker takes the next seed from a counter, runs it, and sends what came of it. The caller's thread takes results in
//! the order of seeds. Once enough have failed no seed is handed out any more and those that run are finished; once the time
//! is over those that run are left as they are, and what is behind the first of them does not count. So nothing below the last
//! seed is missing, and the failures reported are those of the lowest seeds.

use super::cpu;
use super::outcome::{Found, Outcome, Progress, Stopped};
use super::seed::{Simulated, run_asked};
use crate::journal::Keep;
use crate::panics::{self, Caught};
use crate::run::Ended;
use crate::swarm::{Asked, Size};
use crate::tally::Tally;
use ocssd_targets::registry::Kind;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Time between two reports of progress (chosen: an eye does not follow more).
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// What is to be searched.
#[derive(Clone)]
pub struct Campaign<'a> {
    /// The target.
    pub kind: &'a Kind,
    /// How large worlds are.
    pub size: Size,
    /// Options of the target that are not drawn, name and value.
    pub fixed: &'a [(String, String)],
    /// Seeds, from the first to before the last.
    pub seeds: Range<u64>,
    /// Threads.
    pub jobs: NonZeroUsize,
    /// No seed begins later than this after the start, and one that still runs is left as it is; `None`: all are run.
    pub time: Option<Duration>,
    /// So many failures are looked for.
    pub failures: NonZeroUsize,
}

/// What a worker made of a seed.
enum Made {
    Well(Tally),
    Failed(Box<Found>, Tally),
    Unfit(String),
    /// The time was over before its end.
    Stopped,
    /// Something outside the world failed an assertion: a bug of the simulator.
    Broke(Caught),
}

/// What a worker sends.
enum Message {
    Seed(u64, Made),
    /// The worker is done, and was so long on a processor.
    Over(Option<Duration>),
}

/// Runs a campaign; `report` is called from this thread, about four times a second.
///
/// # Panics
/// If the simulator itself is wrong; the message names the seed.
pub fn search(campaign: &Campaign<'_>, report: &mut dyn FnMut(&Progress)) -> Outcome {
    search_until(campaign, report, &|| false)
}

/// As [`search`], and no seed begins once `is_interrupted`; it is asked from this thread, about four times a second.
///
/// # Panics
/// If the simulator itself is wrong; the message names the seed.
pub fn search_until(
    campaign: &Campaign<'_>,
    report: &mut dyn FnMut(&Progress),
    is_interrupted: &dyn Fn() -> bool,
) -> Outcome {
    let started = Instant::now();
    let queue = WorkQueue {
        campaign,
        next: AtomicU64::new(campaign.seeds.start),
        is_over: AtomicBool::new(false),
        is_late: Arc::default(),
        started,
    };
    let mut gathered = Gathered::new(campaign);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..campaign.jobs.get() {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || queue.work(&sender));
        }
        drop(sender);
        receive(&receiver, &queue, &mut gathered, report, is_interrupted);
    });
    gathered.finish(campaign, started.elapsed())
}

/// Takes what workers send until all are done.
fn receive(
    receiver: &Receiver<Message>,
    queue: &WorkQueue<'_>,
    gathered: &mut Gathered,
    report: &mut dyn FnMut(&Progress),
    is_interrupted: &dyn Fn() -> bool,
) {
    let mut reported = queue.started;
    loop {
        match receiver.recv_timeout(REPORT_EVERY) {
            Ok(message) => gathered.take(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        gathered.is_interrupted |= is_interrupted();
        let is_late = queue.campaign.time.is_some_and(|time| queue.started.elapsed() >= time);
        if is_late || gathered.is_interrupted {
            queue.is_late.store(true, Ordering::Relaxed);
        }
        if gathered.has_enough() || gathered.is_interrupted {
            queue.is_over.store(true, Ordering::Relaxed);
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            report(&gathered.progress(queue.started.elapsed()));
        }
    }
}

/// Where workers get seeds.
struct WorkQueue<'a> {
    campaign: &'a Campaign<'a>,
    next: AtomicU64,
    is_over: AtomicBool,
    /// The time is over: what runs is left as it is.
    is_late: Arc<AtomicBool>,
    started: Instant,
}

impl WorkQueue<'_> {
    /// The next seed, unless it is over.
    fn seed(&self) -> Option<u64> {
        let is_late = self.campaign.time.is_some_and(|time| self.started.elapsed() >= time);
        if is_late || self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let end = self.campaign.seeds.end;
        // A counter that stays below the end cannot overflow.
        let take = |seed: u64| (seed < end).then(|| seed + 1);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()
    }

    fn work(&self, sender: &Sender<Message>) {
        while let Some(seed) = self.seed() {
            let made = panics::caught(|| self.run(seed)).unwrap_or_else(Made::Broke);
            sender.send(Message::Seed(seed, made)).expect("results are taken until every worker is done");
        }
        sender.send(Message::Over(cpu::thread_time())).expect("results are taken until every worker is done");
    }

    fn run(&self, seed: u64) -> Made {
        let Campaign { kind, size, fixed, .. } = *self.campaign;
        let asked = Asked::of(kind, size, fixed);
        match run_asked(kind, &asked, seed, &|_| true, Keep::Nothing, &self.is_late) {
            Err(unfit) => Made::Unfit(unfit.0),
            Ok(Simulated { attempt, plan, ran }) => match ran.ended {
                Ended::Failed(failure) => {
                    Made::Failed(Box::new(Found { seed, attempt, plan, failure }), ran.tally)
                }
                Ended::Well => Made::Well(ran.tally),
                Ended::Stopped => Made::Stopped,
                Ended::DoesNotFit(_) => unreachable!("such a drive is passed over"),
            },
        }
    }
}

/// What was sent, put in order.
struct Gathered {
    /// What came of seeds behind one that still runs.
    early: BTreeMap<u64, Made>,
    /// The first seed nothing is known of.
    next: u64,
    /// A seed was stopped: those behind it do not count.
    is_cut_off: bool,
    failures_max: usize,
    is_interrupted: bool,
    progress: Progress,
    cpu: Option<Duration>,
    outcome: Outcome,
}

impl Gathered {
    fn new(campaign: &Campaign<'_>) -> Self {
        let start = campaign.seeds.start;
        let outcome = Outcome {
            seeds: start..start,
            unfit: 0,
            unfit_reason: None,
            failures: Vec::new(),
            tally: Tally::default(),
            stopped: Stopped::Exhausted,
            elapsed: Duration::ZERO,
            cpu: None,
        };
        let progress = Progress { seeds: 0, cuts: 0, failures: 0, elapsed: Duration::ZERO };
        Self {
            early: BTreeMap::new(),
            next: start,
            is_cut_off: false,
            failures_max: campaign.failures.get(),
            is_interrupted: false,
            progress,
            cpu: Some(Duration::ZERO),
            outcome,
        }
    }

    fn has_enough(&self) -> bool {
        self.progress.failures >= self.failures_max
    }

    fn progress(&self, elapsed: Duration) -> Progress {
        Progress { elapsed, ..self.progress }
    }

    fn take(&mut self, message: Message) {
        let (seed, made) = match message {
            Message::Seed(seed, made) => (seed, made),
            Message::Over(cpu) => {
                self.cpu = self.cpu.zip(cpu).map(|(sum, cpu)| sum + cpu);
                return;
            }
        };
        self.progress.seeds += u64::from(!matches!(made, Made::Stopped));
        match &made {
            Made::Well(tally) => self.progress.cuts += cuts(tally),
            Made::Failed(_, tally) => {
                self.progress.cuts += cuts(tally);
                self.progress.failures += 1;
            }
            Made::Unfit(_) | Made::Stopped => {}
            Made::Broke(Caught { message, place }) => {
                panic!("seed {seed} broke the simulator itself, at {place}: {message}")
            }
        }
        self.early.insert(seed, made);
        while let Some(made) = self.early.remove(&self.next) {
            self.next += 1;
            self.settle(made);
        }
    }

    /// Adds what came of the next seed, unless there were failures enough below it.
    fn settle(&mut self, made: Made) {
        let outcome = &mut self.outcome;
        self.is_cut_off |= matches!(made, Made::Stopped);
        if outcome.failures.len() == self.failures_max || self.is_cut_off {
            return;
        }
        outcome.seeds.end = self.next;
        match made {
            Made::Well(tally) => outcome.tally.merge(&tally),
            Made::Failed(found, tally) => {
                outcome.tally.merge(&tally);
                outcome.failures.push(*found);
            }
            Made::Unfit(reason) => {
                outcome.unfit += 1;
                outcome.unfit_reason = Some(reason);
            }
            Made::Stopped | Made::Broke(_) => unreachable!("told before"),
        }
    }

    fn finish(mut self, campaign: &Campaign<'_>, elapsed: Duration) -> Outcome {
        assert!(self.early.is_empty(), "seed {} was handed out and never came back", self.next);
        self.outcome.stopped = if self.outcome.failures.len() == self.failures_max {
            Stopped::Failures
        } else if self.outcome.seeds.end == campaign.seeds.end {
            Stopped::Exhausted
        } else if self.is_interrupted {
            Stopped::Interrupted
        } else {
            Stopped::Time
        };
        self.outcome.elapsed = elapsed;
        self.outcome.cpu = self.cpu;
        self.outcome
    }
}

/// Power cuts of all kinds.
#[must_use]
pub fn cuts(tally: &Tally) -> u64 {
    tally.iter().filter(|(name, _)| name.starts_with("cuts.")).map(|(_, count)| count).sum()
}
