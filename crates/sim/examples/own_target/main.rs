//! The simulator on a target of one's own: `cargo run --release -p ocssd-sim --example own_target`.
//!
//! A `Kind` is all the simulator has to be given. Options are drawn for kinds it knows, by name; others run with none.
//! `hasty` is the target, and has a bug.

mod hasty;

use hasty::HASTY;
use ocssd_sim::campaign::{Campaign, search};
use ocssd_sim::shrink::shrink;
use ocssd_sim::swarm::Size;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

/// Ends with 1 if a promise was broken, which it is.
fn main() -> ExitCode {
    let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let campaign = Campaign {
        kind: &HASTY,
        size: Size::Tiny,
        fixed: &[],
        seeds: 0..u64::MAX,
        jobs,
        time: Some(Duration::from_secs(10)),
        failures: NonZeroUsize::MIN,
    };
    let outcome = search(&campaign, &mut |progress| eprintln!("{} seeds", progress.seeds));
    let Some(found) = outcome.failures.first() else {
        println!("seeds {:?}: every promise was kept", outcome.seeds);
        return ExitCode::SUCCESS;
    };
    println!("seed {}, step {}: {}", found.seed, found.failure.step, found.failure.cause);
    let short = shrink(&found.plan, campaign.kind, &found.failure, 500);
    for part in &short.without {
        println!("without {part}");
    }
    for &index in &short.steps {
        println!("step {index}: {}", short.plan.steps[index]);
    }
    ExitCode::FAILURE
}
