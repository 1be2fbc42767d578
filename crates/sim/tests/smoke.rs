//! Seeds of every size end well, and the same seed gives the same run.

use ocssd_sim::journal::Keep;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::swarm::{Size, draw};
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

fn simulate(seed: u64, size: Size) -> Tally {
    let kind = registry::find("pblk").expect("a kind");
    for attempt in 0..32 {
        let plan = draw(seed, attempt, size, kind.name);
        let ran = run(&plan, kind, &|_| true, Keep::Newest(40));
        match ran.ended {
            Ended::Well => return ran.tally,
            Ended::DoesNotFit(_) => {}
            Ended::Failed(failure) => {
                let events: Vec<String> =
                    ran.journal.iter().map(|(at, event)| format!("{at} {event}")).collect();
                panic!(
                    "seed {seed}, attempt {attempt}: {plan}\n{}\nstep {}: {}",
                    events.join("\n"),
                    failure.step,
                    failure.cause
                );
            }
        }
    }
    panic!("seed {seed}: no drive drawn was large enough");
}

#[test]
fn tiny_worlds_keep_every_promise() {
    let mut tally = Tally::default();
    for seed in 0..30 {
        tally.merge(&simulate(seed, Size::Tiny));
    }
    assert!(tally.of("cuts.in_flight") > 500, "{tally:?}");
    assert!(tally.of("cuts.in_mount") > 50, "{tally:?}");
}
