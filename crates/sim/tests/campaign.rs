//! Campaigns: the same whatever the number of threads, failures lowest seed first, and a planted bug is found.

#[path = "../examples/own_target/hasty.rs"]
mod hasty;

use ocssd_sim::campaign::{Campaign, Outcome, Stopped, cuts, run_seed, search};
use ocssd_sim::failure::Cause;
use ocssd_sim::journal::Keep;
use ocssd_sim::part::PlanPart;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::shrink::{Short, shrink};
use ocssd_sim::swarm::Size;
use ocssd_targets::registry::{self, Kind};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

fn campaign(kind: &Kind, seeds: Range<u64>, jobs: usize, failures: usize) -> Campaign<'_> {
    let number = |count| NonZeroUsize::new(count).expect("not zero");
    Campaign {
        kind,
        size: Size::Tiny,
        fixed: &[],
        seeds,
        jobs: number(jobs),
        time: None,
        failures: number(failures),
    }
}

fn failing_seeds(outcome: &Outcome) -> Vec<u64> {
    outcome.failures.iter().map(|found| found.seed).collect()
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let pblk = registry::find("pblk").expect("a kind");
    for (kind, seeds, failures) in [(pblk, 0..2, 1), (&hasty::HASTY, 0..60, 2)] {
        let one = search(&campaign(kind, seeds.clone(), 1, failures), &mut |_| {});
        let many = search(&campaign(kind, seeds.clone(), 3, failures), &mut |_| {});
        assert_eq!(one.tally, many.tally, "{}", kind.about);
        assert_eq!((&one.seeds, one.stopped), (&many.seeds, many.stopped), "{}", kind.about);
        assert_eq!(failing_seeds(&one), failing_seeds(&many), "{}", kind.about);
        assert!(cuts(&one.tally) > 0, "nothing was cut: {:?}", one.tally);
    }
}

#[test]
fn a_range_of_seeds_that_keep_every_promise_is_exhausted() {
    let pblk = registry::find("pblk").expect("a kind");
    let outcome = search(&campaign(pblk, 3..6, 2, 1), &mut |_| {});
    assert_eq!((outcome.seeds, outcome.stopped, outcome.unfit), (3..6, Stopped::Exhausted, 0));
    let nothing = search(&campaign(pblk, 5..5, 2, 1), &mut |_| {});
    assert_eq!((nothing.seeds, nothing.tally.iter().count()), (5..5, 0));
}

#[test]
fn no_seed_begins_when_the_time_is_over() {
    let pblk = registry::find("pblk").expect("a kind");
    let timed = Campaign { time: Some(Duration::ZERO), ..campaign(pblk, 0..u64::MAX, 2, 1) };
    let outcome = search(&timed, &mut |_| {});
    assert_eq!((outcome.seeds, outcome.stopped), (0..0, Stopped::Time));
}

#[test]
fn progress_is_told_while_seeds_run() {
    let pblk = registry::find("pblk").expect("a kind");
    let timed = Campaign { time: Some(Duration::from_millis(800)), ..campaign(pblk, 0..u64::MAX, 1, 9) };
    let mut seeds = Vec::new();
    let outcome = search(&timed, &mut |progress| seeds.push(progress.seeds));
    assert!(!seeds.is_empty() && seeds.is_sorted(), "told {seeds:?}");
    let last = seeds.last().copied().unwrap_or_default();
    assert!(last <= outcome.seeds.end, "{seeds:?}, and there were {:?}", outcome.seeds);
}

#[test]
fn seeds_without_a_drive_are_counted_and_are_no_success() {
    let large = Kind::new("large", "fits nowhere", |_, _| Err("it needs more".to_owned()));
    let outcome = search(&campaign(&large, 0..3, 2, 1), &mut |_| {});
    assert_eq!((outcome.unfit, outcome.unfit_reason.as_deref()), (3, Some("target large: it needs more")));
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
}

/// The canary: a flush that is answered too early loses what it should have kept, and the simulator says so.
#[test]
fn a_planted_bug_is_found_and_made_short() {
    let outcome = search(&campaign(&hasty::HASTY, 0..200, 2, 1), &mut |_| {});
    assert_eq!(outcome.stopped, Stopped::Failures);
    let found = &outcome.failures[0];
    let Cause::Broken(broken) = &found.failure.cause else {
        panic!("seed {}: {}", found.seed, found.failure.cause)
    };
    assert!(broken.promised.starts_with("block "), "seed {}: {broken}", found.seed);
    let Short { plan, without, steps } = shrink(&found.plan, &hasty::HASTY, &found.failure, 150);
    assert!(
        steps.len() <= 20,
        "seed {}: {} steps are left of {}",
        found.seed,
        steps.len(),
        found.plan.steps.len()
    );
    let only = |index: usize| steps.contains(&index);
    let ended = run(&plan, &hasty::HASTY, &only, Keep::Nothing).ended;
    let Ended::Failed(again) = ended else { panic!("seed {} does not fail any more: {ended:?}", found.seed) };
    assert!(again.cause.is_like(&found.failure.cause), "seed {}: it is {} now", found.seed, again.cause);
    assert!(
        plan.without(PlanPart::MountCuts).is_none(),
        "seed {}: only {without:?} were left out",
        found.seed
    );
    let same = run_seed(&hasty::HASTY, Size::Tiny, found.seed, &only, Keep::Nothing).expect("it fits");
    assert!(
        matches!(same.ran.ended, Ended::Failed(_)),
        "seed {} with only {steps:?} does not fail",
        found.seed
    );
}
