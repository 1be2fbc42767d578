//! Two or three targets on one drive: each keeps its promises, and one that touches what is not its own is found.

use ocssd_lightnvm::interface::Interface;
use ocssd_lightnvm::{
    Addresses, BlockingDevice, ChunkId, ChunkState, Command, Op, PlaneMode, Ppa, PuId, Tag,
};
use ocssd_sim::campaign::{Campaign, Outcome, Stopped, search};
use ocssd_sim::journal::Keep;
use ocssd_sim::plan::Step;
use ocssd_sim::run::{Ended, run};
use ocssd_sim::swarm::{self, Size};
use ocssd_targets::registry::{self, BlocksMade, Kind, TargetSpec};
use std::num::NonZeroUsize;
use std::ops::Range;

fn look(kind: &Kind, size: Size, seeds: Range<u64>) -> Outcome {
    let one = NonZeroUsize::MIN;
    search(&Campaign { kind, size, fixed: &[], seeds, jobs: one, time: None, failures: one }, &mut |_| {})
}

#[test]
fn targets_of_one_kind_of_several_and_of_several_interfaces_keep_their_promises_side_by_side() {
    let (mut two, mut three, mut mixed) = (0, 0, 0);
    for name in ["pblk", "ox-block", "linux-pblk", "kv", "zns", "eleos", "lightlsm"] {
        let kind = registry::find(name).expect("a kind");
        // Tiny drives have units for two.
        for (size, seeds) in [(Size::Tiny, 0..40), (Size::Any, 0..30)] {
            let outcome = look(kind, size, seeds);
            assert_eq!(outcome.stopped, Stopped::Exhausted, "{name}: {:?}", outcome.failures);
            two += outcome.tally.of("worlds.two_targets");
            three += outcome.tally.of("worlds.three_targets");
            mixed += outcome.tally.of("worlds.of_several_interfaces");
        }
    }
    let words = format!("{two} worlds have two, {three} three, {mixed} several interfaces");
    assert!(two >= 20 && three >= 5 && mixed >= 10, "only {words}");
    println!("{words}");
}

/// What takes content away is not drawn beside interfaces whose contracts know of no loss.
#[test]
fn a_world_of_several_interfaces_loses_no_content() {
    let mut mixed = 0;
    for seed in 0..600 {
        let plan = swarm::draw(seed, 0, Size::Any, "pblk");
        let is_of_blocks =
            |name: &str| registry::find(name).expect("a kind").make_of().interface() == Interface::Block;
        if plan.beside.iter().all(|beside| is_of_blocks(&beside.kind)) {
            continue;
        }
        mixed += 1;
        let faults = &plan.config.faults;
        assert_eq!(faults.unrecovered_read, 0, "seed {seed}: {plan}");
        let harms = |step: &Step| matches!(step, Step::Flip { .. } | Step::Stray { .. } | Step::Death { .. });
        assert!(!plan.steps.iter().any(harms), "seed {seed}: {plan}");
    }
    assert!(mixed > 5, "only {mixed} worlds have several interfaces");
}

#[test]
fn units_are_of_one_target_and_some_worlds_have_another_kind_beside() {
    let (mut two, mut others) = (0, 0);
    for seed in 0..400 {
        let plan = swarm::draw(seed, 0, Size::Any, "pblk");
        let Some(beside) = plan.beside.first() else { continue };
        assert!(beside.units.iter().all(|unit| !plan.units.contains(unit)), "seed {seed}: {plan}");
        assert!(!plan.units.is_empty() && !beside.units.is_empty(), "seed {seed}: {plan}");
        assert!(plan.to_string().contains("beside it: "), "seed {seed}: {plan}");
        two += 1;
        others += u32::from(beside.kind != "pblk");
    }
    assert!(two > 10 && others > 1, "{two} worlds of two targets, {others} of two kinds");
}

/// A pblk that takes what it finds on any unit for left-overs, and resets the first chunk of each at its mount.
fn make_careless(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let chunks = device.geometry().chunks_per_pu;
    for unit in (0..device.geometry().pu_count()).map(PuId).filter(|unit| !spec.units.contains(unit)) {
        let chunk = ChunkId(unit.0 * chunks);
        if device.chunk(chunk).state == ChunkState::Closed {
            let addresses = Addresses::Run { first: Ppa::new(chunk, 0), count: 1 };
            let reset = Command {
                tag: Tag(0),
                op: Op::Reset,
                addresses,
                buffer: None,
                buffer_first: 0,
                oob: false,
                plane_mode: PlaneMode::Single,
            };
            device.call(&[reset]).map_err(|cut| format!("{cut:?}"))?;
        }
    }
    registry::find("pblk").expect("a kind").make_blocks(device, spec)
}

#[test]
fn a_target_that_erases_its_neighbours_chunks_is_found() {
    // The name says which options are drawn.
    let careless = Kind::new("pblk", "resets what is not its own", make_careless);
    let outcome = look(&careless, Size::Tiny, 0..200);
    assert_eq!(outcome.stopped, Stopped::Failures, "it was not found with seeds 0 to 199");
    let found = &outcome.failures[0];
    assert!(!found.plan.beside.is_empty(), "seed {}: {}", found.seed, found.plan);
    println!("seed {}, step {}: {}", found.seed, found.failure.step, found.failure.cause);
    let mut alone = found.plan.clone();
    alone.beside.clear();
    let ended = run(&alone, &careless, &|_| true, Keep::Nothing).ended;
    assert!(matches!(ended, Ended::Well), "seed {}: alone it harms nobody: {ended:?}", found.seed);
}
