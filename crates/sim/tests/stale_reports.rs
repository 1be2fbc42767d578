//! Chunk reports that are behind, too low or garbled after a power cycle cost nothing: every target keeps every promise.
//!
//! Of the seeds only those are run in which such reports are drawn.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::journal::Keep;
use ocssd_sim::plan::Step;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::stale_reports::Untrue;
use ocssd_sim::swarm::{Asked, Size, draw_asked};
use ocssd_targets::registry;

/// Tiny seeds (chosen: without the mends of mounts `pblk` failed at 115, `ox-block` at 37, `eleos` at 22, `lightlsm` at 3).
const SEEDS: u64 = 200;
/// Where that many have none of some kind, so many at most (chosen: `linux-pblk` and `zns` seldom have two OPEN chunks on a unit,
/// and none of 0..800 has a chunk of which all is hidden).
const SEEDS_MAX: u64 = 4000;

fn check(target: &str) {
    let kind = registry::find(target).expect("a kind");
    let asked = Asked::of(kind, Size::Tiny, &[]);
    for untrue in [Untrue::Stale, Untrue::Low, Untrue::Hidden, Untrue::Garbled] {
        let is_untrue = |step: &Step| matches!(step, Step::StaleReports { how, .. } if *how == untrue);
        let counted = if untrue == Untrue::Hidden { "faults.reports_hidden" } else { "faults.reports_stale" };
        let mut shown = 0;
        for seed in 0..SEEDS_MAX {
            if seed >= SEEDS && shown > 0 {
                break;
            }
            let plan = draw_asked(seed, 0, &asked);
            if !plan.steps.iter().any(is_untrue) {
                continue;
            }
            let ran = run(&plan, kind, &|_| true, Keep::Nothing);
            if let Ended::Failed(failure) = ran.ended {
                panic!("{target}, {untrue:?}, seed {seed}, step {}: {}", failure.step, failure.cause);
            }
            shown += ran.tally.of(counted);
        }
        assert!(shown > 0, "no report was {untrue:?}");
    }
}

/// A checkpoint covered sectors that a stale report told of, and the mount after it went on with the chunk where it really ended:
/// what was written there then, no later mount read.
#[test]
fn pblk_does_not_go_on_with_a_chunk_of_which_a_checkpoint_knew_more() {
    let kind = registry::find("pblk").expect("a kind");
    for (size, seed, attempt) in [(Size::Tiny, 2535, 0), (Size::Any, 199, 2)] {
        let ran =
            run(&draw_asked(seed, attempt, &Asked::of(kind, size, &[])), kind, &|_| true, Keep::Nothing);
        if let Ended::Failed(failure) = ran.ended {
            panic!("{size:?}, seed {seed}, step {}: {}", failure.step, failure.cause);
        }
        assert!(ran.tally.of("faults.reports_stale") > 0, "{size:?}, seed {seed}: no report was stale");
    }
}

/// A power cut undid the second unit of padding behind a table of one sector, and the report still told of it: a mount took the
/// sector for one that can be read, and padded no further.
#[test]
fn lightlsm_pads_what_only_a_stale_report_takes_for_padded() {
    let kind = registry::find("lightlsm").expect("a kind");
    let ran =
        run_seed(kind, Size::Tiny, 13231, &|_| true, Keep::Nothing).expect("one of the drives fits").ran;
    if let Ended::Failed(failure) = ran.ended {
        panic!("step {}: {}", failure.step, failure.cause);
    }
    assert!(ran.tally.of("faults.reports_stale") > 0, "no report was stale");
}

/// Reports told of a pointer up to which the newest checkpoint knew all, and MW_CUNITS hid the durable writes behind it, so that no
/// read found them and no mount padded the chunk.
#[test]
fn what_mw_cunits_hides_is_found_behind_a_pointer_that_is_too_low() {
    for (target, seeds) in
        [("pblk", &[224, 247, 1086][..]), ("block_ssd", &[49, 1739, 1798]), ("zns", &[2218])]
    {
        let kind = registry::find(target).expect("a kind");
        for &seed in seeds {
            let plan = draw_asked(seed, 0, &Asked::of(kind, Size::Tiny, &[]));
            let ran = run(&plan, kind, &|_| true, Keep::Nothing);
            if let Ended::Failed(failure) = ran.ended {
                panic!("{target}, seed {seed}, step {}: {}", failure.step, failure.cause);
            }
            assert!(ran.tally.of("faults.reports_stale") > 0, "{target}, seed {seed}: no report was too low");
        }
    }
}

/// Chunks of which MW_CUNITS hid all were shown as FREE or OFFLINE, beside one that was shown too low: believed, they cost durable
/// writes, or what was discarded came back. Of each kind the first tiny world that showed it; `linux-pblk` has none up to 4000.
#[test]
fn a_drive_that_was_caught_is_not_believed_that_chunks_are_empty() {
    for (target, seed) in [
        ("pblk", 567),
        ("block_ssd", 567),
        ("ox-block", 272),
        ("eleos", 343),
        ("lightlsm", 588),
        ("kv", 165),
        ("kv-block", 2271),
        ("table-block", 677),
        ("zns", 1225),
    ] {
        let kind = registry::find(target).expect("a kind");
        let plan = draw_asked(seed, 0, &Asked::of(kind, Size::Tiny, &[]));
        let ran = run(&plan, kind, &|_| true, Keep::Nothing);
        if let Ended::Failed(failure) = ran.ended {
            panic!("{target}, seed {seed}, step {}: {}", failure.step, failure.cause);
        }
        assert!(ran.tally.of("faults.reports_hidden") > 0, "{target}, seed {seed}: no chunk was hidden");
    }
}

#[test]
fn pblk_mounts_by_reports_that_are_not_true() {
    check("pblk");
}

#[test]
fn linux_pblk_mounts_by_reports_that_are_not_true() {
    check("linux-pblk");
}

#[test]
fn ox_block_mounts_by_reports_that_are_not_true() {
    check("ox-block");
}

#[test]
fn eleos_mounts_by_reports_that_are_not_true() {
    check("eleos");
}

#[test]
fn lightlsm_mounts_by_reports_that_are_not_true() {
    check("lightlsm");
}

#[test]
fn kv_mounts_by_reports_that_are_not_true() {
    check("kv");
}

#[test]
fn zns_mounts_by_reports_that_are_not_true() {
    check("zns");
}
