//! Targets on drives in images on disks that fill up, fail and forget: what was flushed is there, and everything is answered.

use ocssd_sim::campaign::{Simulated, run_seed};
use ocssd_sim::journal::Keep;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::{Size, draw};
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

/// Runs so many worlds on disks, and adds up what they exercised.
fn run_on_disks(target: &str, worlds: usize) -> Tally {
    let kind = registry::find(target).expect("a kind");
    let mut all = Tally::default();
    let seeds = (0..).filter(|&seed| draw(seed, 0, Size::Tiny, target).disk);
    for seed in seeds.take(worlds) {
        let run = run_seed(kind, Size::Tiny, seed, &|_| true, Keep::Nothing);
        let Simulated { ran, plan, .. } = run.unwrap_or_else(|unfit| panic!("seed {seed}: {unfit:?}"));
        if let Ended::Failed(failure) = &ran.ended {
            panic!(
                "{target}, seed {seed}, step {}: {}\n{plan}\n{}",
                failure.step, failure.cause, failure.state
            );
        }
        all.merge(&ran.tally);
    }
    all
}

fn check(target: &str, worlds: usize) {
    let tally = run_on_disks(target, worlds);
    for name in ["disk.kills", "disk.host_crashes", "disk.drives_failed", "disk.mounts_refused"] {
        println!("{target}: {name} {}", tally.of(name));
        assert!(tally.of(name) >= 10, "{target}: {name} happened {} times only", tally.of(name));
    }
}

#[test]
fn pblk_keeps_what_was_flushed_on_a_disk_that_fails() {
    check("pblk", 60);
}

#[test]
fn linux_pblk_keeps_what_was_flushed_on_a_disk_that_fails() {
    check("linux-pblk", 40);
}

/// The disk failed every look at a block after a power cut until a write to it was under way; then what had been there before was
/// found, and the write was forgotten (20081: by the oracle, not by the target).
#[test]
fn what_is_written_while_an_older_version_is_found_counts() {
    let kind = registry::find("pblk").expect("a kind");
    let done = run_seed(kind, Size::Tiny, 20_081, &|_| true, Keep::Nothing).expect("the drive fits");
    if let Ended::Failed(failure) = &done.ran.ended {
        panic!("seed 20081: {}\nstep {}: {}", done.plan, failure.step, failure.cause);
    }
}
