//! One seed: its plan, what it exercised, how it ended, and a timeline of it.

use super::ask;
use super::failure::{self, Told, World};
use super::plan::{all_steps, steps_in_words};
use super::steps::Steps;
use super::summary;
use crate::args::SimulateArgs;
use crate::{Outcome, table};
use anyhow::Context;
use ocssd_sim::campaign::{Simulated, fitting};
use ocssd_sim::journal::{Journal, Keep};
use ocssd_sim::plan::WorldPlan;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::shrink::Short;
use ocssd_sim::swarm::Asked;
use ocssd_sim::timeline;
use ocssd_targets::registry::Kind;
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Runs the seed.
pub fn one(
    args: &SimulateArgs,
    kind: &Kind,
    fixed: &[(String, String)],
    seed: u64,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    // A file that cannot be written is met before the work, not after it.
    let file = args.trace.as_deref().map(create).transpose()?;
    let world = World { kind, target: &args.target, size: ask::size_name(args.size), seed };
    let only = |index: usize| args.only.as_ref().is_none_or(|steps| steps.contains(index));
    let keep = if file.is_some() { Keep::All } else { Keep::Nothing };
    let (attempt, mut plan) = fitting(kind, &Asked::of(kind, ask::size(args.size), fixed), seed)
        .map_err(|unfit| anyhow::anyhow!("no drive drawn for seed {seed} is one it fits on: {}", unfit.0))?;
    for &part in &args.without {
        plan = plan.without(part).with_context(|| {
            format!(
                "seed {seed} has no {part} to leave out, or it was named twice; name only what its plan has"
            )
        })?;
    }
    let ran = run(&plan, kind, &only, keep);
    let done = Simulated { attempt, plan, ran };
    check_steps(seed, &done.plan, args.only.as_ref())?;
    let told = match &done.ran.ended {
        Ended::Failed(failed) if args.only.is_none() && args.without.is_empty() => {
            Some(failure::shorten(world, &done.plan, failed, file.is_some()))
        }
        Ended::Failed(failed) => {
            let steps = (0..done.plan.steps.len()).filter(|&index| only(index)).collect();
            let asked = Short { plan: done.plan.clone(), without: args.without.clone(), steps };
            Some(failure::tell(world, asked, failed, file.is_some()))
        }
        Ended::Well | Ended::Stopped => None,
        Ended::DoesNotFit(sentence) => {
            anyhow::bail!("seed {seed} does not fit its drive without what --without leaves out: {sentence}")
        }
    };
    if let (Some(file), Some(path)) = (file, &args.trace) {
        let journal = told.as_ref().map_or(&done.ran.journal, |told| &told.journal);
        write(file, path, journal, &done.plan)?;
    }
    if as_json {
        print_json(args, &world, &done, told.as_ref());
    } else {
        print(args, &world, &done, told.as_ref());
    }
    Ok(if told.is_some() { Outcome::Failed } else { Outcome::Good })
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path)
        .with_context(|| format!("the timeline cannot be written to {}; name another file", path.display()))
}

fn write(file: File, path: &Path, journal: &Journal, plan: &WorldPlan) -> anyhow::Result<()> {
    timeline::write(journal, &plan.config.geometry, &mut BufWriter::new(file)).with_context(|| {
        format!("the timeline {} could not be written to its end; make room", path.display())
    })
}

/// Steps that were asked for exist.
fn check_steps(seed: u64, plan: &WorldPlan, only: Option<&Steps>) -> anyhow::Result<()> {
    let last = plan.steps.len() - 1;
    match only.and_then(Steps::last) {
        Some(asked) if asked > last => anyhow::bail!(
            "seed {seed} has the steps 0 to {last}, but --only names step {asked}; the steps of another size or target \
             are others"
        ),
        _ => Ok(()),
    }
}

fn steps(args: &SimulateArgs, plan: &WorldPlan) -> Steps {
    args.only.clone().unwrap_or_else(|| all_steps(plan))
}

fn print(args: &SimulateArgs, world: &World<'_>, done: &Simulated, told: Option<&Told<'_>>) {
    if let Some(told) = told {
        told.print();
    } else {
        table::line(&format!(
            "seed {}, drive {} of those drawn\n{}",
            world.seed,
            done.attempt + 1,
            done.plan
        ));
        for line in steps_in_words(&done.plan, &steps(args, &done.plan)) {
            table::line(&format!("  {line}"));
        }
        table::line("");
        summary::print(&done.ran.tally, ask::size(args.size));
    }
    if let Some(path) = &args.trace {
        table::line(&format!(
            "\ntimeline: {}; open it at ui.perfetto.dev or chrome://tracing",
            path.display()
        ));
    }
    match told {
        None => table::line("\nverdict: pass: every promise was kept"),
        Some(told) => {
            table::line("\nverdict: fail");
            told.print_command();
        }
    }
}

fn print_json(args: &SimulateArgs, world: &World<'_>, done: &Simulated, told: Option<&Told<'_>>) {
    let (counts, never) = summary::as_json(&done.ran.tally, ask::size(args.size));
    table::print_json(&json!({ "verdict": if told.is_some() { "fail" } else { "pass" },
        "target": world.kind.name, "size": world.size, "seed": world.seed, "attempt": done.attempt,
        "plan": done.plan.to_string(), "steps": steps_in_words(&done.plan, &steps(args, &done.plan)),
        "counts": counts, "never": never, "trace": args.trace,
        "failures": told.map(Told::as_json).into_iter().collect::<Vec<_>>() }));
}
