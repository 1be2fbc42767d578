//! Many seeds: until one fails, the time is over, or all are run.
//!
//! Deliberately not here: the threads (`ocssd_sim::campaign`).

use super::ask;
use super::failure::{self, World};
use super::progress::Bar;
use super::summary::{self, Speed};
use crate::args::SimulateArgs;
use crate::interrupt::Interrupt;
use crate::table;
use ocssd_sim::campaign::{Campaign, Found, Outcome, Stopped, search_until};
use ocssd_targets::registry::Kind;
use ocssd_workload::results::fold::fold;
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// Most threads (chosen: more than any machine has processors, fewer than a system refuses).
const JOBS_MAX: usize = 1024;

/// Runs the seeds asked for.
pub fn many(
    args: &SimulateArgs,
    kind: &Kind,
    fixed: &[(String, String)],
    as_json: bool,
) -> anyhow::Result<crate::Outcome> {
    let campaign = campaign(args, kind, fixed)?;
    let mut bar = Bar::new(args.quiet, campaign.time, campaign.seeds.end - campaign.seeds.start);
    let interrupt = Interrupt::listen()?;
    let outcome =
        search_until(&campaign, &mut |progress| bar.show(progress), &|| interrupt.heard().is_some());
    bar.finish();
    if let (Some(reason), true) = (&outcome.unfit_reason, outcome.unfit == seed_count(&outcome)) {
        anyhow::bail!("no drive drawn for seeds {} is one it fits on: {reason}", in_words(&outcome));
    }
    if as_json {
        table::print_json(&as_value(args, &campaign, &outcome));
    } else {
        print(args, &campaign, &outcome);
    }
    Ok(match (outcome.failures.is_empty(), outcome.stopped) {
        (false, _) => crate::Outcome::Failed,
        (true, Stopped::Interrupted) => crate::Outcome::Interrupted,
        (true, _) => crate::Outcome::Good,
    })
}

fn campaign<'a>(
    args: &SimulateArgs,
    kind: &'a Kind,
    fixed: &'a [(String, String)],
) -> anyhow::Result<Campaign<'a>> {
    let asked = args.seeds.unwrap_or_default();
    let every_processor = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = args.jobs.unwrap_or_else(every_processor);
    anyhow::ensure!(
        jobs.get() <= JOBS_MAX,
        "--jobs is at most {JOBS_MAX} threads, but {jobs} were asked for"
    );
    Ok(Campaign {
        kind,
        size: ask::size(args.size),
        fixed,
        seeds: asked.range(),
        jobs,
        time: asked.time(args.time),
        failures: args.keep_going,
    })
}

const fn seed_count(outcome: &Outcome) -> u64 {
    outcome.seeds.end - outcome.seeds.start
}

fn in_words(outcome: &Outcome) -> String {
    format!("{}..{}", outcome.seeds.start, outcome.seeds.end)
}

fn world<'a>(args: &'a SimulateArgs, campaign: &Campaign<'a>, found: &Found) -> World<'a> {
    World { kind: campaign.kind, target: &args.target, size: ask::size_name(args.size), seed: found.seed }
}

fn print(args: &SimulateArgs, campaign: &Campaign<'_>, outcome: &Outcome) {
    summary::print(&outcome.tally, campaign.size);
    table::line(&fold(&format!(
        "\nseeds {} of {} worlds, target {}, {} threads: {}",
        in_words(outcome),
        ask::size_name(args.size),
        campaign.kind.name,
        campaign.jobs,
        Speed::of(outcome).in_words()
    )));
    if let Some(reason) = &outcome.unfit_reason {
        table::line(&fold(&format!("no drive could be found for {} seeds, as: {reason}", outcome.unfit)));
    }
    let (first, others) = match outcome.failures.as_slice() {
        [] => (None, &[][..]),
        [first, others @ ..] => (Some(first), others),
    };
    let told = first.map(|found| {
        table::line("");
        let told = failure::shorten(world(args, campaign, found), &found.plan, &found.failure, false);
        told.print();
        told
    });
    for found in others {
        table::line(&format!("\n{}", failure::brief(&world(args, campaign, found), &found.failure)));
    }
    table::line(&format!("\nverdict: {}", verdict(outcome)));
    if let Some(told) = told {
        told.print_command();
    }
}

fn verdict(outcome: &Outcome) -> String {
    let count = seed_count(outcome);
    let run = count - outcome.unfit;
    match (outcome.failures.len(), outcome.stopped) {
        (0, Stopped::Interrupted) => {
            format!("interrupted: every promise was kept in the {run} seeds that were run")
        }
        (0, _) if run == 0 => "nothing: no seed was run".to_owned(),
        (0, _) => format!("pass: every promise was kept in {run} seeds"),
        (failed, Stopped::Failures) => {
            format!("fail: {failed} of {run} seeds failed, and no more were looked for")
        }
        (failed, Stopped::Exhausted | Stopped::Time | Stopped::Interrupted) => {
            format!("fail: {failed} of {run} seeds failed")
        }
    }
}

fn as_value(args: &SimulateArgs, campaign: &Campaign<'_>, outcome: &Outcome) -> Value {
    let (counts, never) = summary::as_json(&outcome.tally, campaign.size);
    let failures: Vec<Value> = outcome
        .failures
        .iter()
        .enumerate()
        .map(|(at, found)| {
            let world = world(args, campaign, found);
            if at > 0 {
                return failure::brief_as_json(&world, &found.failure);
            }
            failure::shorten(world, &found.plan, &found.failure, false).as_json()
        })
        .collect();
    let stopped = match outcome.stopped {
        Stopped::Exhausted => "all seeds were run",
        Stopped::Time => "the time was over",
        Stopped::Failures => "enough failures were found",
        Stopped::Interrupted => "it was interrupted",
    };
    let word = match (failures.is_empty(), outcome.stopped) {
        (false, _) => "fail",
        (true, Stopped::Interrupted) => "interrupted",
        (true, _) => "pass",
    };
    json!({ "verdict": word, "target": campaign.kind.name,
        "size": ask::size_name(args.size), "jobs": campaign.jobs,
        "seeds": { "from": outcome.seeds.start, "to": outcome.seeds.end, "unfit": outcome.unfit,
            "unfit_reason": outcome.unfit_reason },
        "stopped": stopped, "speed": Speed::of(outcome).as_json(), "counts": counts, "never": never,
        "failures": failures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Verb};
    use clap::Parser;
    use ocssd_lightnvm::{ChunkId, ChunkState};
    use ocssd_sim::campaign::run_seed;
    use ocssd_sim::campaign::search;
    use ocssd_sim::journal::Keep;
    use ocssd_sim::run::Ended;

    /// pblk that cannot be mounted once anything was written. Called pblk, so that options are drawn as for pblk.
    const FORGETFUL: Kind = Kind::new("pblk", "cannot be mounted again", |device, spec| {
        let mut chunks = (0..device.geometry().chunk_count()).map(ChunkId);
        if chunks.any(|chunk| device.chunk(chunk).state == ChunkState::Closed) {
            return Err("it forgot how".to_owned());
        }
        crate::kinds::find("pblk")?.make_blocks(device, spec)
    });

    fn args(command: &str) -> SimulateArgs {
        let cli = Cli::try_parse_from(command.split(' ')).expect(command);
        let Verb::Simulate(args) = cli.command else { panic!("{command} is another verb") };
        args
    }

    #[test]
    fn a_failure_is_told_with_a_line_that_runs_it_again() {
        let args = args("ocssd simulate --size tiny --seeds 0..40 --jobs 2 --keep-going 2");
        let campaign = campaign(&args, &FORGETFUL, &[]).expect("it can be run");
        let outcome = search(&campaign, &mut |_| {});
        let value = as_value(&args, &campaign, &outcome);
        assert_eq!(
            (&value["verdict"], &value["stopped"]),
            (&"fail".into(), &"enough failures were found".into())
        );
        let failures = value["failures"].as_array().expect("a list");
        assert_eq!(failures.len(), 2);
        assert!(failures[0]["seed"].as_u64() < failures[1]["seed"].as_u64(), "{value}");
        for failure in failures {
            assert!(failure["cause"]["found"].to_string().contains("it forgot how"), "{failure}");
            let line = failure["command"].as_str().expect("a command");
            let again = super::tests::args(line);
            assert_eq!((again.seed, again.target.as_str()), (failure["seed"].as_u64(), "pblk"), "{line}");
            let only = |index| again.only.as_ref().is_none_or(|steps| steps.contains(index));
            let seed = again.seed.expect("the line names it");
            let done =
                run_seed(&FORGETFUL, ask::size(again.size), seed, &only, Keep::Nothing).expect("it fits");
            assert!(matches!(done.ran.ended, Ended::Failed(_)), "{line} does not fail");
        }
        let first = &failures[0];
        assert!(first["command"].to_string().contains(" --only "), "it was not made short: {first}");
        assert!(first["events"].as_array().is_some_and(|events| (1..=30).contains(&events.len())), "{first}");
        assert!(verdict(&outcome).starts_with("fail: 2 of "), "{}", verdict(&outcome));
    }

    #[test]
    fn more_threads_than_any_machine_has_are_refused() {
        let args = args("ocssd simulate --jobs 99999");
        let Err(error) = campaign(&args, &FORGETFUL, &[]) else { panic!("99999 threads were taken") };
        assert!(error.to_string().contains("1024"), "{error}");
    }
}
