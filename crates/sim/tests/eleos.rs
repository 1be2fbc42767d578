//! `eleos`: flushes whole or absent after a power cut at any time, in the order of their sessions, and present once durable.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::exhaustive;
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

fn assert_ends_well(size: Size, seed: u64, tally: &mut Tally) {
    let kind = registry::find("eleos").expect("a kind");
    let done = run_seed(kind, size, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
    if let Ended::Failed(failure) = &done.ran.ended {
        panic!("seed {seed}: {}\nstep {}: {}\n{}", done.plan, failure.step, failure.cause, failure.state);
    }
    tally.merge(&done.ran.tally);
}

#[test]
fn tiny_worlds_keep_every_promise() {
    let mut tally = Tally::default();
    for seed in 0..60 {
        assert_ends_well(Size::Tiny, seed, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.of("cuts.in_flight") > 300, "{tally:?}");
    assert!(tally.of("cuts.in_mount") > 50, "{tally:?}");
    assert!(tally.of("victims") > 20, "{tally:?}");
}

/// Copies were not made true while nobody waited for the log, and took all chunks.
#[test]
fn copies_become_true_while_nobody_waits() {
    assert_ends_well(Size::Tiny, 99, &mut Tally::default());
}

#[test]
fn worlds_with_faults_keep_every_promise() {
    let mut tally = Tally::default();
    for seed in 0..15 {
        assert_ends_well(Size::Any, seed, &mut tally);
    }
    println!("{tally:?}");
}

#[test]
fn every_cut_of_a_short_workload_is_survived() {
    let kind = registry::find("eleos").expect("a kind");
    let (mut events, mut states) = (0, 0);
    for seed in 3..7 {
        let found = exhaustive::explore(kind, &[], seed, 14).expect("one of the drives fits");
        assert!(found.failure.is_none(), "seed {seed}: {:?} at {}", found.failure, found.failed_at);
        (events, states) = (events + found.events, states + found.states);
    }
    assert!(events > 30 && states > 10 * events, "{events} events, {states} states");
}
