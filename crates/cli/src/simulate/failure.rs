//! A failure, made short and told: where, what was promised, what came, the events before it, and how to run it again.

use super::plan::steps_in_words;
use super::steps::Steps;
use crate::table;
use ocssd_sim::failure::{Cause, Failure};
use ocssd_sim::journal::{Journal, Keep};
use ocssd_sim::part::PlanPart;
use ocssd_sim::plan::WorldPlan;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::shrink::{Short, shrink};
use ocssd_targets::registry::Kind;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Events shown (chosen: about a screenful).
const EVENTS: usize = 30;
/// How long making a run short may take, about (chosen: what one waits for without looking elsewhere).
const SHRINK_TIME: Duration = Duration::from_secs(20);
/// Fewest and most runs of that (chosen: halving 1500 steps takes a few dozen, the last steps one by one some hundred).
const SHRINK_RUNS: (u128, u128) = (30, 2000);

/// Which world a seed is of.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The target.
    pub kind: &'a Kind,
    /// The size, as on the command line.
    pub size: &'static str,
    /// The kind and the options held at a value, as they are given on the command line.
    pub target: &'a str,
    /// The seed.
    pub seed: u64,
}

impl World<'_> {
    /// The command that runs it again, with these steps or all, and without these parts.
    pub fn command(&self, only: Option<&Steps>, without: &[PlanPart]) -> String {
        let Self { target, size, seed, .. } = self;
        let mut command = format!("ocssd simulate --target {target} --size {size} --seed {seed}");
        if let Some(steps) = only.filter(|steps| !steps.is_empty()) {
            command += &format!(" --only {steps}");
        }
        if !without.is_empty() {
            command += &format!(" --without {}", names(without).join(","));
        }
        command
    }
}

fn names(parts: &[PlanPart]) -> Vec<&'static str> {
    parts.iter().map(|part| part.name()).collect()
}

/// A failure with everything there is to say about it.
pub struct Told<'a> {
    world: World<'a>,
    /// The plan, without these parts.
    plan: WorldPlan,
    without: Vec<PlanPart>,
    /// How the run of these steps fails.
    failure: Failure,
    steps: Steps,
    steps_count: usize,
    /// The run of these steps failed as well.
    is_repeated: bool,
    /// What happened in it.
    pub journal: Journal,
}

/// Makes a failing run short, and runs what is left of it with a journal.
pub fn shorten<'a>(world: World<'a>, plan: &WorldPlan, failure: &Failure, is_whole: bool) -> Told<'a> {
    let started = Instant::now();
    let again = run(plan, world.kind, &|_| true, Keep::Nothing);
    drop(again);
    let took = started.elapsed().max(Duration::from_micros(1));
    let runs = (SHRINK_TIME.as_nanos() / took.as_nanos()).clamp(SHRINK_RUNS.0, SHRINK_RUNS.1);
    let budget = u32::try_from(runs).expect("no more than the most");
    tell(world, shrink(plan, world.kind, failure, budget), failure, is_whole)
}

/// Runs what is left of a plan that failed with a journal, of everything or of the last events.
pub fn tell<'a>(world: World<'a>, left: Short, failure: &Failure, is_whole: bool) -> Told<'a> {
    let keep = if is_whole { Keep::All } else { Keep::Newest(EVENTS) };
    let Short { plan, without, steps } = left;
    let ran = run(&plan, world.kind, &|index| steps.contains(&index), keep);
    let (failure, is_repeated) = match ran.ended {
        Ended::Failed(again) => (again, true),
        Ended::Well | Ended::Stopped | Ended::DoesNotFit(_) => (failure.clone(), false),
    };
    let (steps, steps_count) = (Steps::of(&steps), steps.len());
    Told { world, plan, without, failure, steps, steps_count, is_repeated, journal: ran.journal }
}

impl Told<'_> {
    /// The command that runs what is left.
    fn command(&self) -> String {
        let is_all = self.steps_count == self.plan.steps.len();
        self.world.command((!is_all).then_some(&self.steps), &self.without)
    }

    /// The last events, oldest first.
    fn events(&self) -> Vec<String> {
        let count = self.journal.iter().count();
        let last = self.journal.iter().skip(count.saturating_sub(EVENTS));
        last.map(|(at, event)| format!("{at}  {event}")).collect()
    }

    /// Prints all of it but the command.
    pub fn print(&self) {
        table::line(&format!("seed {} failed in step {}", self.world.seed, self.failure.step));
        for (name, sentence) in cause_in_words(&self.failure.cause) {
            table::line(&format!("  {:10} {sentence}", format!("{name}:")));
        }
        if !self.is_repeated {
            table::line("  It did not fail again: something in the target is not decided by the seed.");
        }
        table::line(&format!("\n{}", self.plan));
        if !self.without.is_empty() {
            table::line(&format!("left out: {}", names(&self.without).join(", ")));
        }
        table::line(&format!("steps left: {} of {}", self.steps_count, self.plan.steps.len()));
        for line in steps_in_words(&self.plan, &self.steps) {
            table::line(&format!("  {line}"));
        }
        table::line("\nlast events:");
        for line in self.events() {
            table::line(&format!("  {line}"));
        }
    }

    /// Prints the command.
    pub fn print_command(&self) {
        table::line(&format!("run again: {}", self.command()));
    }

    /// All of it.
    pub fn as_json(&self) -> Value {
        let mut value = brief_as_json(&self.world, &self.failure);
        value["command"] = json!(self.command());
        value["is_repeated"] = json!(self.is_repeated);
        value["plan"] = json!(self.plan.to_string());
        value["without"] = json!(names(&self.without));
        value["steps"] = json!(steps_in_words(&self.plan, &self.steps));
        value["events"] = json!(self.events());
        value
    }
}

/// One line about a failure that is not looked into.
pub fn brief(world: &World<'_>, failure: &Failure) -> String {
    format!(
        "seed {}, step {}: {}\n  run again: {}",
        world.seed,
        failure.step,
        failure.cause,
        world.command(None, &[])
    )
}

/// The same as JSON.
pub fn brief_as_json(world: &World<'_>, failure: &Failure) -> Value {
    let cause: serde_json::Map<String, Value> = cause_in_words(&failure.cause)
        .into_iter()
        .map(|(name, text)| (name.to_owned(), json!(text)))
        .collect();
    json!({ "seed": world.seed, "step": failure.step, "cause": cause, "command": world.command(None, &[]) })
}

fn cause_in_words(cause: &Cause) -> Vec<(&'static str, String)> {
    match cause {
        Cause::Broken(broken) => vec![("promised", broken.promised.clone()), ("found", broken.found.clone())],
        Cause::Panic { message, place } => vec![("assertion", message.clone()), ("at", place.clone())],
        Cause::NotMounted(sentence) => {
            vec![("promised", "it can be mounted again".to_owned()), ("found", sentence.clone())]
        }
    }
}
