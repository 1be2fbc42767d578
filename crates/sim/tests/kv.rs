//! `kv`: every key holds what was stored last and durably, or later, after a power cut at any time; batches and staged values
//! are whole. The same on block targets.

use ocssd_sim::campaign::run_seed;
use ocssd_sim::journal::Keep;
use ocssd_sim::plan::Step;
use ocssd_sim::run::Ended;
use ocssd_sim::swarm::{Asked, Size, draw_asked};
use ocssd_sim::tally::Tally;
use ocssd_targets::registry;

fn assert_ends_well(kind: &str, size: Size, seed: u64, tally: &mut Tally, unfit: &mut u32) {
    let kind = registry::find(kind).expect("a kind");
    let done = run_seed(kind, size, seed, &|_| true, Keep::Nothing);
    let Ok(done) = done else {
        // Two FTLs do not fit every tiny drive; `kv` alone does.
        assert_eq!(kind.name, "kv-block", "seed {seed}: no drive fits");
        *unfit += 1;
        return;
    };
    if let Ended::Failed(failure) = &done.ran.ended {
        panic!(
            "{} seed {seed}: {}\nstep {}: {}\n{}",
            kind.name, done.plan, failure.step, failure.cause, failure.state
        );
    }
    tally.merge(&done.ran.tally);
}

#[test]
fn tiny_worlds_keep_every_promise() {
    let (mut tally, mut unfit) = (Tally::default(), 0);
    for seed in 0..60 {
        assert_ends_well("kv", Size::Tiny, seed, &mut tally, &mut unfit);
    }
    for (name, least) in [
        ("cuts.in_flight", 1000),
        ("cuts.in_mount", 100),
        ("requests.stages", 500),
        ("requests.batches", 500),
        ("victims", 50),
        ("index_reads", 50),
    ] {
        assert!(tally.of(name) > least, "{name}: {tally:?}");
    }
}

/// Of two batches that deleted the same key the power took the first and left the second: the second had written nothing of the
/// key, as it was gone by then, and the key came back beside the rest of that batch.
#[test]
fn a_batch_deletes_a_key_also_if_the_deletion_before_it_is_lost() {
    assert_ends_well("kv", Size::Tiny, 1242, &mut Tally::default(), &mut 0);
}

/// In seed 200 sectors cannot be read now and then: of a write unit that garbage collection read as a whole three times another
/// one failed in each try, and the value there was noted as lost.
#[test]
fn what_can_be_read_sector_by_sector_is_not_lost() {
    let mut tally = Tally::default();
    assert_ends_well("kv", Size::Any, 200, &mut tally, &mut 0);
    assert!(tally.of("read_again") > 0, "no read was tried again: {tally:?}");
    assert_eq!(tally.of("lost_values"), 0, "{tally:?}");
}

#[test]
fn worlds_with_faults_keep_every_promise() {
    let (mut tally, mut unfit) = (Tally::default(), 0);
    for seed in 0..20 {
        assert_ends_well("kv", Size::Any, seed, &mut tally, &mut unfit);
    }
    assert!(tally.of("checkpoints") > 20, "{tally:?}");
}

#[test]
fn tiny_worlds_on_block_targets_keep_every_promise() {
    let (mut tally, mut unfit) = (Tally::default(), 0);
    for seed in 0..100 {
        assert_ends_well("kv-block", Size::Tiny, seed, &mut tally, &mut unfit);
    }
    assert!(unfit <= 5, "no drive fits for {unfit} of 100 seeds");
    for (name, least) in [
        ("cuts.in_flight", 1000),
        ("cuts.in_mount", 100),
        ("requests.stages", 500),
        ("requests.batches", 500),
        ("victims", 50),
        ("index_reads", 50),
    ] {
        assert!(tally.of(name) > least, "{name}: {tally:?}");
    }
}

#[test]
fn worlds_on_block_targets_with_faults_keep_every_promise() {
    let (mut tally, mut unfit) = (Tally::default(), 0);
    for seed in 0..20 {
        assert_ends_well("kv-block", Size::Any, seed, &mut tally, &mut unfit);
    }
    assert_eq!(unfit, 0, "no drive fits");
    assert!(tally.of("checkpoints") > 20, "{tally:?}");
}

/// Worlds in which the media lose pages of the index: their keys answer errors, all others what they hold, and mounts go on.
#[test]
fn lost_pages_of_the_index_cost_their_keys_only() {
    let kind = registry::find("kv").expect("a kind");
    let asked = Asked::of(kind, Size::Any, &[]);
    let loses = |seed: &u64| {
        let plan = draw_asked(*seed, 0, &asked);
        plan.steps.iter().any(|step| matches!(step, Step::LosePage { .. }))
    };
    let (mut tally, mut unfit) = (Tally::default(), 0);
    for seed in (0..400).filter(loses) {
        assert_ends_well("kv", Size::Any, seed, &mut tally, &mut unfit);
    }
    for name in
        ["faults.index_pages_lost", "requests.failed_for_lost_pages", "requests.refused_for_lost_pages"]
    {
        assert!(tally.of(name) > 10, "{name}: {tally:?}");
    }
}
