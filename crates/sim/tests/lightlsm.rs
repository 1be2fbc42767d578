//! `lightlsm`: edits whole or absent and in order after a power cut at any time, synced bytes of logs there, tables untouched.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::exhaustive;
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

fn assert_ends_well(size: Size, seed: u64, tally: &mut Tally) {
    let kind = registry::find("lightlsm").expect("a kind");
    let done = run_seed(kind, size, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
    if let Ended::Failed(failure) = &done.ran.ended {
        panic!("seed {seed}: {}\nstep {}: {}\n{}", done.plan, failure.step, failure.cause, failure.state);
    }
    tally.merge(&done.ran.tally);
}

#[test]
fn tiny_worlds_keep_every_promise() {
    let mut tally = Tally::default();
    for seed in 0..40 {
        assert_ends_well(Size::Tiny, seed, &mut tally);
    }
    assert!(tally.of("cuts.in_flight") > 100, "{tally:?}");
    assert!(tally.of("edits") > 300 && tally.of("published_tables") > 80, "{tally:?}");
}

#[test]
fn worlds_with_faults_keep_every_promise() {
    let mut tally = Tally::default();
    for seed in 0..8 {
        assert_ends_well(Size::Any, seed, &mut tally);
    }
    assert!(tally.of("rewritten_sectors") > 0, "writes failed: {tally:?}");
}

#[test]
fn every_cut_of_a_short_workload_is_survived() {
    let kind = registry::find("lightlsm").expect("a kind");
    let (mut events, mut states) = (0, 0);
    for seed in 3..6 {
        let found = exhaustive::explore(kind, &[], seed, 40).expect("one of the drives fits");
        assert!(found.failure.is_none(), "seed {seed}: {:?} at {}", found.failure, found.failed_at);
        (events, states) = (events + found.events, states + found.states);
    }
    assert!(events > 60 && states > 5 * events, "{events} events, {states} states");
}

/// `table-block`: the same promises, on whatever block target was drawn; two FTLs do not fit every tiny drive.
#[test]
fn worlds_on_block_targets_keep_every_promise() {
    let kind = registry::find("table-block").expect("a kind");
    let (mut tally, mut unfit) = (Tally::default(), 0);
    let worlds = (0..40).map(|seed| (Size::Tiny, seed)).chain((0..8).map(|seed| (Size::Any, seed)));
    for (size, seed) in worlds {
        let Ok(done) = run_seed(kind, size, seed, &|_| true, Keep::Nothing) else {
            unfit += 1;
            continue;
        };
        if let Ended::Failed(failure) = &done.ran.ended {
            panic!("seed {seed} of {size:?} worlds: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
        }
        tally.merge(&done.ran.tally);
    }
    assert!(unfit <= 5, "no drive fits for {unfit} of 48 seeds");
    for (name, least) in
        [("cuts.in_flight", 1000), ("cuts.in_mount", 100), ("edits", 300), ("published_tables", 80)]
    {
        assert!(tally.of(name) > least, "{name}: {tally:?}");
    }
}
