//! `--exhaustive`: every power cut of short workloads, and every cut of the mounts that follow.
//!
//! Deliberately not here: the exploration (`ocssd_sim::exhaustive`).

use super::summary;
use crate::args::SimulateArgs;
use crate::interrupt::Interrupt;
use crate::{Outcome, table};
use ocssd_sim::exhaustive::{Explored, explore};
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry::Kind;
use ocssd_workload::results::fold::fold;
use serde_json::json;
use std::ops::Range;
use std::time::{Duration, Instant};

/// What was explored so far.
#[derive(Default)]
struct All {
    seeds: u64,
    unfit: u64,
    events: u64,
    states: u64,
    states_cut_twice: u64,
    tally: Tally,
    failure: Option<(u64, Explored)>,
    is_interrupted: bool,
}

/// Explores the seeds asked for, until one fails, the time is over, or all are done.
pub fn every_cut(
    args: &SimulateArgs,
    kind: &Kind,
    fixed: &[(String, String)],
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let asked = args.seeds.unwrap_or_default();
    let (seeds, time) = match args.seed {
        Some(seed) => (seed..seed.saturating_add(1), None),
        None => (asked.range(), asked.time(args.time)),
    };
    let started = Instant::now();
    let interrupt = Interrupt::listen()?;
    let is_late = || time.is_some_and(|time| started.elapsed() >= time);
    let mut all = explore_all((kind, fixed), seeds, args, || is_late() || interrupt.heard().is_some());
    all.is_interrupted = interrupt.heard().is_some();
    anyhow::ensure!(all.seeds > all.unfit, "no drive drawn for these seeds is one {} fits on", kind.name);
    if as_json {
        print_json(args, &all);
    } else {
        print(args, &all, started.elapsed());
    }
    Ok(match (&all.failure, all.is_interrupted) {
        (Some(_), _) => Outcome::Failed,
        (None, true) => Outcome::Interrupted,
        (None, false) => Outcome::Good,
    })
}

fn explore_all(
    (kind, fixed): (&Kind, &[(String, String)]),
    seeds: Range<u64>,
    args: &SimulateArgs,
    is_over: impl Fn() -> bool,
) -> All {
    let mut all = All::default();
    for seed in seeds {
        all.seeds += 1;
        let Some(found) = explore(kind, fixed, seed, args.steps.get()) else {
            all.unfit += 1;
            continue;
        };
        all.events += found.events;
        all.states += found.states;
        all.states_cut_twice += found.states_cut_twice;
        all.tally.merge(&found.tally);
        if !args.quiet {
            eprintln!("seed {seed}: {} events, {} states", found.events, found.states);
        }
        if found.failure.is_some() {
            all.failure = Some((seed, found));
        }
        if all.failure.is_some() || is_over() {
            break;
        }
    }
    all
}

fn command(args: &SimulateArgs, seed: u64) -> String {
    format!("ocssd simulate --exhaustive --target {} --steps {} --seed {seed}", args.target, args.steps)
}

fn print(args: &SimulateArgs, all: &All, took: Duration) {
    summary::print(&all.tally, Size::Tiny);
    let seconds = took.as_secs_f64();
    table::line(&fold(&format!(
        "\n{} seeds of {} steps: {} device events, a power cut after each; {} states mounted and read, {} of them after a \
         second cut during the mount, in {seconds:.1} s",
        all.seeds, args.steps, all.events, all.states, all.states_cut_twice
    )));
    match &all.failure {
        None if all.is_interrupted => table::line(&format!(
            "\nverdict: interrupted: every promise was kept in every state of the {} seeds that were run",
            all.seeds
        )),
        None => table::line("\nverdict: pass: every promise was kept in every state"),
        Some((seed, found)) => {
            if let Some(plan) = &found.plan {
                table::line(&format!("\n{plan}"));
            }
            if let Some(failure) = &found.failure {
                let (step, cause) = (failure.step, &failure.cause);
                table::line(&format!("seed {seed}, step {step}, {}: {cause}", found.failed_at));
            }
            table::line(&format!("\nverdict: fail; run it again with\n  {}", command(args, *seed)));
        }
    }
}

fn print_json(args: &SimulateArgs, all: &All) {
    let (counts, never) = summary::as_json(&all.tally, Size::Tiny);
    let failure = all.failure.as_ref().map(|(seed, found)| {
        json!({ "seed": seed, "at": found.failed_at, "plan": found.plan.as_ref().map(ToString::to_string),
            "step": found.failure.as_ref().map(|failure| failure.step),
            "cause": found.failure.as_ref().map(|failure| failure.cause.to_string()),
            "command": command(args, *seed) })
    });
    let word = match (&failure, all.is_interrupted) {
        (Some(_), _) => "fail",
        (None, true) => "interrupted",
        (None, false) => "pass",
    };
    table::print_json(&json!({ "verdict": word, "target": args.target,
        "seeds": all.seeds, "unfit": all.unfit, "steps": args.steps, "events": all.events, "states": all.states,
        "states_cut_twice": all.states_cut_twice, "counts": counts, "never": never, "failure": failure }));
}
