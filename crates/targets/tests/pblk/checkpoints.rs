//! Checkpoints write the shards of the map that changed, and name the others where older ones have them.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_ftl::ShardSize;
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::pblk::{Knobs, Mode, Options};

/// Shards of 32 blocks, and checkpoints only when they are asked for.
fn by_hand(mode: Mode) -> Options {
    let map_shard = ShardSize::new(32).expect("the smallest");
    let knobs = Knobs { map_shard, checkpoint_piece_bytes: Some(64), ..Knobs::default() };
    Options { knobs, over_provisioning_percent: 60, checkpoint_interval_bytes: Some(0), ..options(mode) }
}

/// Writes blocks up to `end`.
fn write_up_to(world: &mut World, end: u64) {
    for block in (0..end).step_by(20) {
        world.write(block, u32::try_from((end - block).min(20)).expect("small"));
    }
}

/// Shuts down, and says how many shards of the map were written, and how many were not.
fn shut_down(world: &mut World, prng: &mut Prng) -> (u64, u64) {
    assert!(world.send(BlockOp::Shutdown, 0, 0));
    assert!(world.drain(), "{}: the power went", world.label);
    let stats = world.pblk().stats();
    let shards = (stats.map_shards_written, stats.map_shards_kept);
    world.cut(prng);
    shards
}

fn checkpoint(world: &mut World) {
    let before = world.pblk().stats().checkpoints;
    world.pblk_mut().force_checkpoint();
    assert!(world.settle(), "{}: the power went", world.label);
    assert_eq!(world.pblk().stats().checkpoints, before + 1, "{}", world.label);
}

#[test]
fn a_shutdown_writes_the_shards_that_changed_since_the_mount() {
    for mode in [Mode::Improved, Mode::Faithful] {
        let mut world = World::new(config(geometry()), by_hand(mode), &format!("{mode}"));
        let mut prng = Prng::new(1);
        write_up_to(&mut world, 400);
        assert_eq!(shut_down(&mut world, &mut prng), (13, 0), "{mode}: all of them");
        for changed in 0..4 {
            assert!(world.mount().clean, "{mode}");
            (0..changed).for_each(|shard| world.write(shard * 64 + 5, 1));
            assert_eq!(shut_down(&mut world, &mut prng), (changed, 13 - changed), "{mode}");
        }
        let report = world.mount();
        assert!(report.clean && report.records == 0 && !report.passed_over, "{mode}: {report:?}");
        world.read_all(true);
        world.check();
    }
}

/// Pieces are cut in another way than those that are on media: none of these can be named.
#[test]
fn what_was_cut_otherwise_is_written_again() {
    let mut world = World::new(config(geometry()), by_hand(Mode::Improved), "cut otherwise");
    let mut prng = Prng::new(2);
    write_up_to(&mut world, 400);
    let whole = Options { knobs: Knobs::default(), ..by_hand(Mode::Improved) };
    let halves = Knobs { map_shard: ShardSize::new(64).expect("a size"), ..by_hand(Mode::Improved).knobs };
    let others = [whole, Options { knobs: halves, ..by_hand(Mode::Improved) }, by_hand(Mode::Improved)];
    assert_eq!(shut_down(&mut world, &mut prng), (13, 0));
    for (options, shards) in others.into_iter().zip([1, 7, 13]) {
        world.options = options;
        assert!(world.mount().clean);
        assert_eq!(shut_down(&mut world, &mut prng), (shards, 0), "{:?}", world.options.knobs);
    }
    assert!(world.mount().clean);
    world.read_all(true);
}

/// What waits in the buffer when a checkpoint is begun is on media before the next: its entry in the map stays the same, and what
/// the checkpoint has of it does not.
#[test]
fn a_block_that_waited_under_a_checkpoint_is_in_the_next() {
    let mut world = World::new(config(geometry()), by_hand(Mode::Improved), "waiting");
    let mut prng = Prng::new(3);
    write_up_to(&mut world, 400);
    world.flush();
    checkpoint(&mut world);
    world.write(7, 1);
    checkpoint(&mut world);
    // Those of the block, and of what was in the buffer unit before it.
    assert!(world.pblk().stats().map_shards_kept >= 10, "{:?}", world.pblk().stats());
    world.flush();
    checkpoint(&mut world);
    world.survive_cut(&mut prng);
}

/// The log of checkpoints ends again and again: shards that nobody changes are written once more before their line goes.
#[test]
fn shards_that_never_change_outlive_the_lines_they_were_written_to() {
    for seed in 0..3 {
        let mut world = World::new(config(geometry()), by_hand(Mode::Improved), &format!("seed {seed}"));
        let mut prng = Prng::new(seed);
        let half = world.blocks() / 2;
        write_up_to(&mut world, half);
        world.flush();
        checkpoint(&mut world);
        let (mut written, mut kept) = (0, 0);
        for round in 0..150 {
            world.write(prng.below(3) * 40, 1);
            world.flush();
            checkpoint(&mut world);
            if round % 40 == 39 {
                let stats = world.pblk().stats();
                (written, kept) = (written + stats.map_shards_written, kept + stats.map_shards_kept);
                world.survive_cut(&mut prng);
                assert!(world.settle(), "{}", world.label);
            }
        }
        assert!(!world.pblk().is_read_only() && world.failures.is_empty(), "{}", world.label);
        assert!(kept > 3 * written, "{}: {written} shards were written, {kept} were not", world.label);
        assert!(written > 2 * 120, "{}: {written} shards in 120 checkpoints, no old one", world.label);
    }
}

/// Whatever is written and discarded, at whatever moment the power goes, also within a checkpoint.
#[test]
fn what_checkpoints_name_is_what_there_was() {
    let mut kept = 0;
    for seed in 0..12 {
        let options = Options { checkpoint_interval_bytes: Some(60 * 4096), ..by_hand(Mode::Improved) };
        let mut world = World::new(config(geometry()), options, &format!("seed {seed}"));
        let mut prng = Prng::new(seed);
        let all = world.blocks();
        write_up_to(&mut world, all);
        let span = [60, 200, 400][usize::try_from(seed % 3).expect("small")];
        for round in 0..6 {
            let requests = 100 + u32::try_from(prng.below(300)).expect("small");
            world.cut_at = Some(world.commands + 200 + prng.below(600));
            if world.run(&Mix { requests, span, ..MIX }, &mut prng) {
                world.check();
            }
            world.cut_at = None;
            kept += world.pblk().stats().map_shards_kept;
            world.label = format!("seed {seed}, round {round}");
            world.survive_cut(&mut prng);
        }
    }
    assert!(kept > 200, "{kept} shards of all had not changed");
}
