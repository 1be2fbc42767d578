//! `linux-pblk`, made on fresh drives: power cuts at any time, in the format that Linux mounts.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::exhaustive;
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

#[test]
fn tiny_worlds_keep_every_promise() {
    let kind = registry::find("linux-pblk").expect("a kind");
    let mut tally = Tally::default();
    for seed in 0..30 {
        let done =
            run_seed(kind, Size::Tiny, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
        if let Ended::Failed(failure) = &done.ran.ended {
            panic!("seed {seed}: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
        }
        tally.merge(&done.ran.tally);
    }
    assert!(tally.of("cuts.in_flight") > 300, "{tally:?}");
    assert!(tally.of("cuts.in_mount") > 30, "{tally:?}");
}

/// What the format has no place for is excused where the media harmed it, and nowhere else: starts of lines that were lost (16,
/// 60; 218: an older version was harmed, too), content that changed without a word (261: in the zeroes of a line's start metadata),
/// devices that shrink as chunks go bad.
#[test]
fn worlds_with_faults_keep_what_the_format_can_promise() {
    let kind = registry::find("linux-pblk").expect("a kind");
    for seed in (0..20).chain([60, 218, 261]) {
        let done = run_seed(kind, Size::Any, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
        if let Ended::Failed(failure) = &done.ran.ended {
            panic!("seed {seed}: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
        }
    }
}

/// A write with FUA was refused though nothing had failed: power cuts left lines that no mount gave back, until none was free.
#[test]
fn lines_that_power_cuts_leave_are_free_again() {
    let kind = registry::find("linux-pblk").expect("a kind");
    for seed in [2637, 902_654] {
        let done =
            run_seed(kind, Size::Tiny, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
        if let Ended::Failed(failure) = &done.ran.ended {
            panic!("seed {seed}: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
        }
    }
}

#[test]
fn every_cut_of_a_short_workload_is_survived() {
    let kind = registry::find("linux-pblk").expect("a kind");
    let found = exhaustive::explore(kind, &[], 5, 10).expect("one of the drives fits");
    assert!(found.failure.is_none(), "seed 5: {:?} at {}", found.failure, found.failed_at);
    assert!(found.events > 10 && found.states > found.events, "{found:?}");
}
