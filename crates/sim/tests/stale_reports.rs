//! Chunk reports that are behind after a power cycle cost nothing: every target keeps every promise.
//!
//! Of the seeds only those are run in which such reports are drawn.

use ocssd_sim::journal::Keep;
use ocssd_sim::plan::Step;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::swarm::{Asked, Size, draw_asked};
use ocssd_targets::registry;

/// Tiny seeds (chosen: without the mends of mounts `pblk` failed at 115, `ox-block` at 37, `eleos` at 22, `lightlsm` at 3).
const SEEDS: u64 = 200;

fn check(target: &str) {
    let kind = registry::find(target).expect("a kind");
    let asked = Asked::of(kind, Size::Tiny, &[]);
    let mut stale = 0;
    for seed in 0..SEEDS {
        let plan = draw_asked(seed, 0, &asked);
        if !plan.steps.iter().any(|step| matches!(step, Step::StaleReports { .. })) {
            continue;
        }
        let ran = run(&plan, kind, &|_| true, Keep::Nothing);
        if let Ended::Failed(failure) = ran.ended {
            panic!("{target}, seed {seed}, step {}: {}", failure.step, failure.cause);
        }
        stale += ran.tally.of("faults.reports_stale");
    }
    assert!(stale > 0, "no report was behind");
}

#[test]
fn pblk_mounts_by_reports_that_are_behind() {
    check("pblk");
}

#[test]
fn ox_block_mounts_by_reports_that_are_behind() {
    check("ox-block");
}

#[test]
fn eleos_mounts_by_reports_that_are_behind() {
    check("eleos");
}

#[test]
fn lightlsm_mounts_by_reports_that_are_behind() {
    check("lightlsm");
}

#[test]
fn kv_mounts_by_reports_that_are_behind() {
    check("kv");
}

#[test]
fn linux_pblk_is_left_alone_with_them() {
    let kind = registry::find("linux-pblk").expect("a kind");
    let asked = Asked::of(kind, Size::Tiny, &[]);
    let is_stale = |step: &Step| matches!(step, Step::StaleReports { .. });
    assert!((0..SEEDS).all(|seed| !draw_asked(seed, 0, &asked).steps.iter().any(is_stale)));
}
