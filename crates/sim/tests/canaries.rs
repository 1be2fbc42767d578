//! Canaries: bugs that can be planted in pblk are found within 200 seeds, and without one there is nothing to find.
//!
//! What each does is told at `ocssd_targets::pblk::Canary`, how soon it is found in `docs/simulate.md`. `cargo test -p
//! ocssd-sim --test canaries -- --nocapture` tells both again.

use ocssd_lightnvm::BlockingDevice;
use ocssd_sim::campaign::{Campaign, Outcome, Stopped, search};
use ocssd_sim::journal::Keep;
use ocssd_sim::part::Part;
use ocssd_sim::plan::Plan;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::shrink::{Short, shrink};
use ocssd_sim::swarm::Size;
use ocssd_targets::pblk::Canary;
use ocssd_targets::registry::{self, Kind, Made, Wish};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Seeds within which a bug must be found (chosen: what one command looks through in some seconds).
const SEEDS: Range<u64> = 0..200;

/// pblk with a bug, whatever else its options are.
fn planted(device: &mut dyn BlockingDevice, wish: &Wish<'_>, canary: &str) -> Result<Made, String> {
    let mut options = wish.options.to_vec();
    options.push(("canary".to_owned(), canary.to_owned()));
    let wish = Wish { units: wish.units, layout: wish.layout, options: &options };
    registry::find("pblk")?.make(device, &wish)
}

fn look(kind: &Kind, size: Size, seeds: Range<u64>) -> Outcome {
    let one = NonZeroUsize::MIN;
    search(&Campaign { kind, size, seeds, jobs: one, time: None, failures: one }, &mut |_| {})
}

fn assert_found(kind: &Kind, size: Size) {
    let outcome = look(kind, size, SEEDS);
    assert_eq!(outcome.stopped, Stopped::Failures, "{} was not found, {size:?}, seeds {SEEDS:?}", kind.about);
    let found = &outcome.failures[0];
    println!(
        "{}, {size:?}: seed {}, step {}, cpu {:?}: {}",
        kind.about, found.seed, found.failure.step, outcome.cpu, found.failure.cause
    );
}

/// A test for each, and the list of all.
macro_rules! canaries {
    ($($test:ident: $name:literal, $size:ident;)*) => {
        const TESTED: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                // Called pblk, so that options are drawn as for pblk.
                let kind = Kind::new("pblk", $name, |device, wish| planted(device, wish, $name));
                assert_found(&kind, Size::$size);
            }
        )*
    };
}

canaries! {
    flush_too_early_is_found: "flush-too-early", Tiny;
    fua_ignored_is_found: "fua-ignored", Tiny;
    flushed_becomes_fill_is_found: "flushed-becomes-fill", Tiny;
    read_unchecked_is_found: "read-unchecked", Any;
    reset_without_barrier_is_found: "reset-without-barrier", Tiny;
    reset_before_discard_is_found: "reset-before-discard", Tiny;
    reset_under_reads_is_found: "reset-under-reads", Any;
    overwritten_too_early_is_found: "overwritten-too-early", Tiny;
    moved_too_early_is_found: "moved-too-early", Tiny;
    moves_stale_is_found: "moves-stale", Tiny;
    window_ignored_is_found: "window-ignored", Any;
    failed_write_lands_is_found: "failed-write-lands", Any;
    discard_unrecorded_is_found: "discard-unrecorded", Tiny;
    discard_not_replayed_is_found: "discard-not-replayed", Tiny;
    oldest_wins_is_found: "oldest-wins", Tiny;
    stale_generation_is_found: "stale-generation", Tiny;
    window_forgotten_is_found: "window-forgotten", Tiny;
    wear_ignored_is_found: "wear-ignored", Any;
    snapshot_unordered_is_found: "snapshot-unordered", Tiny;
    snapshot_unchecked_is_found: "snapshot-unchecked", Any;
    shard_misplaced_is_found: "shard-misplaced", Tiny;
    discards_overflow_is_found: "discards-overflow", Tiny;
    snapshot_tears_discard_is_found: "snapshot-tears-discard", Tiny;
    commands_overrun_is_found: "commands-overrun", Tiny;
}

#[test]
fn every_canary_is_looked_for() {
    let names: BTreeSet<&str> = Canary::ALL.iter().map(|&(_, name)| name).collect();
    assert_eq!(names, TESTED.iter().copied().collect());
}

/// Media faults have no part in a FUA that is ignored: of a world full of them nothing is left but the power cut.
#[test]
fn a_failure_is_told_without_the_faults_it_does_not_need() {
    let kind = Kind::new("pblk", "fua-ignored", |device, wish| planted(device, wish, "fua-ignored"));
    let (jobs, failures) = (NonZeroUsize::MIN, NonZeroUsize::new(8).expect("not zero"));
    let campaign = Campaign { kind: &kind, size: Size::Any, seeds: SEEDS, jobs, time: None, failures };
    let has = |plan: &Plan| Part::ALL.into_iter().filter(|&part| plan.without(part).is_some()).count();
    let all = search(&campaign, &mut |_| {}).failures;
    let found = all.iter().max_by_key(|found| has(&found.plan)).expect("it was found before");
    assert!(has(&found.plan) >= 3, "seed {} has too little to leave out: {}", found.seed, found.plan);
    let Short { plan, without, steps } = shrink(&found.plan, &kind, &found.failure, 100);
    assert_eq!((has(&plan), without.len()), (0, has(&found.plan)), "seed {}: {without:?}", found.seed);
    let ended = run(&plan, &kind, &|index| steps.contains(&index), Keep::Nothing).ended;
    let Ended::Failed(again) = ended else { panic!("seed {} does not fail any more: {ended:?}", found.seed) };
    assert!(again.cause.is_like(&found.failure.cause), "seed {}: it is {} now", found.seed, again.cause);
}

#[test]
fn without_a_canary_nothing_is_found() {
    let pblk = registry::find("pblk").expect("a kind");
    for (size, seeds) in [(Size::Tiny, 0..30), (Size::Any, 0..4)] {
        let outcome = look(pblk, size, seeds);
        assert_eq!(outcome.stopped, Stopped::Exhausted, "{size:?}: {:?}", outcome.failures);
    }
}
