//! `kv`: every key holds what was stored last and durably, or later, after a power cut at any time; batches and staged values
//! are whole.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

fn assert_ends_well(size: Size, seed: u64, tally: &mut Tally) {
    let kind = registry::find("kv").expect("a kind");
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
    for (name, least) in [
        ("cuts.in_flight", 1000),
        ("cuts.in_mount", 100),
        ("requests.stages", 500),
        ("requests.batches", 500),
        ("victims", 50),
    ] {
        assert!(tally.of(name) > least, "{name}: {tally:?}");
    }
}

#[test]
fn worlds_with_faults_keep_every_promise() {
    let mut tally = Tally::default();
    for seed in 0..20 {
        assert_ends_well(Size::Any, seed, &mut tally);
    }
    assert!(tally.of("checkpoints") > 20, "{tally:?}");
}
