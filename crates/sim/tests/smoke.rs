//! Tiny worlds end well, with many power cuts.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

#[test]
fn tiny_worlds_keep_every_promise() {
    let kind = registry::find("pblk").expect("a kind");
    let mut tally = Tally::default();
    for seed in 0..30 {
        let done =
            run_seed(kind, Size::Tiny, seed, &|_| true, Keep::Nothing).expect("one of the drives fits");
        if let Ended::Failed(failure) = &done.ran.ended {
            panic!("seed {seed}: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
        }
        tally.merge(&done.ran.tally);
    }
    assert!(tally.of("cuts.in_flight") > 500, "{tally:?}");
    assert!(tally.of("cuts.in_mount") > 50, "{tally:?}");
}
