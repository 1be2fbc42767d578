//! Small knobs: what happens beyond a bound that no small drive reaches otherwise.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_ftl::ShardSize;
use ocssd_lightnvm::ChunkId;
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::pblk::{Knobs, Mode, Options};

fn with(knobs: Knobs) -> Options {
    Options { knobs, over_provisioning_percent: 60, ..options(Mode::Improved) }
}

/// A checkpoint was begun between two slices of a discard whose record was on media: it covered the record, and not all of what
/// was discarded.
#[test]
fn a_checkpoint_has_all_of_a_discard_or_nothing() {
    for seed in 0..6 {
        let knobs = Knobs { discard_slice_blocks: 8, ..Knobs::default() };
        let options = Options { checkpoint_interval_bytes: Some(0), ..with(knobs) };
        let mut world = World::new(config(geometry()), options, &format!("seed {seed}"));
        let mut prng = Prng::new(seed);
        for block in (0..400).step_by(20) {
            world.write(block, 20);
        }
        world.flush();
        world.pblk_mut().force_checkpoint();
        assert!(world.send(BlockOp::Discard, 0, 400));
        assert!(world.drain());
        world.flush();
        assert!(world.settle());
        assert_eq!(world.pblk().stats().checkpoints, 1);
        // What was discarded must not come back.
        world.survive_cut(&mut prng);
    }
}

/// Discards waited for a checkpoint, which covered nothing: the record that filled the table was in the buffer. Checkpoints were
/// taken for ever, or the instance became read-only.
#[test]
fn a_full_table_of_discards_is_emptied() {
    let knobs = Knobs { discard_records_max: 1, ..Knobs::default() };
    let mut world = World::new(config(geometry()), with(knobs), "a table of one");
    world.write(0, 8);
    for block in 0..6 {
        world.send(BlockOp::Discard, block, 1);
    }
    assert!(world.drain());
    assert!(world.failures.is_empty(), "{:?}", world.failures);
    assert!(!world.pblk().is_read_only());
    let checkpoints = world.pblk().stats().checkpoints;
    assert!((5..15).contains(&checkpoints), "{checkpoints} checkpoints for 6 discards");
}

/// Every size of shard and piece is read back, also by an instance that writes others.
#[test]
fn checkpoints_in_shards_and_pieces_of_any_size_are_read_back() {
    let shapes =
        [(65_536, None), (32, Some(64)), (64, Some(2048)), (256, None), (65_536, Some(256)), (32, None)];
    let mut world = World::new(config(geometry()), with(Knobs::default()), "any size");
    let mut prng = Prng::new(5);
    for (shard, checkpoint_piece_bytes) in shapes {
        let map_shard = ShardSize::new(shard).expect("a size");
        world.options = with(Knobs { map_shard, checkpoint_piece_bytes, ..Knobs::default() });
        world.survive_cut(&mut prng);
        assert!(world.run(&Mix { requests: 300, ..MIX }, &mut prng));
        world.shut_down(&mut prng);
        let report = world.mount();
        assert!(
            report.clean && report.checkpoint.is_some(),
            "{shard}, {checkpoint_piece_bytes:?}: {report:?}"
        );
        assert!(!report.passed_over && report.records == 0, "{report:?}");
        world.read_all(true);
    }
}

/// Bounds of queues and pools as small as they may be: everything is answered, and nothing lost.
#[test]
fn the_smallest_queues_and_pools_are_enough() {
    let smallest = Knobs {
        discard_slice_blocks: 1,
        discard_records_max: 1,
        commands_max: 4,
        metadata_buffers: 1,
        gc_reads_max: 1,
        refresh_max: 1,
        draining_lines_max: 2,
        mount_batch: 1,
        ..Knobs::default()
    };
    let mut world = World::new(config(geometry()), with(smallest), "smallest");
    let mut prng = Prng::new(9);
    for _ in 0..3 {
        assert!(world.run(&Mix { requests: 400, ..MIX }, &mut prng));
        world.survive_cut(&mut prng);
        world.read_all(true);
    }
    world.shut_down(&mut prng);
    world.mount();
    world.read_all(true);
    world.check();
}

/// With every buffer of checkpoints holding pieces whose write had failed, none was written again: a shutdown took no checkpoint,
/// and the instance became read-only.
#[test]
fn lost_pieces_are_written_again_though_no_buffer_is_spare() {
    let knobs = Knobs { metadata_buffers: 1, ..Knobs::default() };
    let mut world = World::new(config(geometry()), with(knobs), "one buffer");
    let mut prng = Prng::new(3);
    for block in (0..200).step_by(20) {
        world.write(block, 20);
    }
    world.flush();
    for chunk in (0..geometry().chunk_count()).map(ChunkId) {
        let fault = ScheduledFault { kind: FaultKind::WriteNextUnit, chunk, sector: Some(4), times: 1 };
        world.host.device_mut().inner_mut().schedule_fault(fault);
    }
    world.shut_down(&mut prng);
    let report = world.mount();
    assert!(report.clean && report.checkpoint.is_some(), "{report:?}");
    world.read_all(true);
}
