//! What a mount after a power cut has to read: what was written since the checkpoint, and that is bounded.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::pblk::{Mode, MountReport, Options};

/// Writes of one block each, nothing else.
const WRITES: Mix = Mix { longest: 1, reads: 0, flushes: 0, discards: 0, fua: 0, depth: 32, ..MIX };

fn filled(lines: u32, options: Options, label: &str) -> World {
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(2, 2, lines, 64, 4) };
    let mut world = World::new(config(geometry), options, label);
    let blocks = world.blocks();
    let mut block = 0;
    while block < blocks {
        let count = u32::try_from((blocks - block).min(64)).expect("small");
        world.write(block, count);
        block += u64::from(count);
    }
    assert!(world.failures.is_empty(), "{label}: {:?}", world.failures);
    world
}

/// Mounts after a shutdown, and after a cut with some more written.
fn clean_and_cut(lines: u32, seed: u64) -> (MountReport, MountReport) {
    let mut prng = Prng::new(seed);
    let spec = Options { checkpoint_interval_bytes: Some(0), ..options(Mode::Improved) };
    let mut world = filled(lines, spec, &format!("{lines} lines, seed {seed}"));
    world.shut_down(&mut prng);
    let clean = world.mount();
    assert!(clean.clean, "{}", world.label);
    assert!(world.run(&Mix { requests: 300, ..WRITES }, &mut prng), "{}: the power stays on", world.label);
    for block in [7, 40] {
        world.send(BlockOp::Discard, block, 20);
    }
    world.flush();
    let stats = world.pblk().stats();
    let (written, superseded) = (stats.user_written, stats.superseded);
    world.cut(&mut prng);
    let cut = world.mount();
    assert!(written >= 100, "{}: only {written} blocks were written", world.label);
    let found = written - superseded..=written;
    assert!(found.contains(&cut.records), "{}: {found:?} versions, {cut:?}", world.label);
    world.read_all(true);
    world.check();
    (clean, cut)
}

#[test]
fn a_drive_four_times_as_large_takes_no_more_reads_but_for_its_map() {
    for seed in 0..4 {
        let more = [64, 256].map(|lines| {
            let (clean, cut) = clean_and_cut(lines, seed);
            assert!(!cut.clean && !cut.passed_over, "{lines} lines, seed {seed}: {cut:?}");
            // One of each line, and those of a few lines in full.
            assert!(cut.heads_read <= u64::from(lines) + 8 * 4, "{lines} lines, seed {seed}: {cut:?}");
            cut.sectors_read - clean.sectors_read
        });
        // The same was written, but for a few requests that found the buffer full.
        assert!(more[1] <= more[0] + 200, "seed {seed}: {more:?} sectors more than after a shutdown");
    }
}

#[test]
fn users_wait_for_checkpoints_that_take_longer_than_an_interval() {
    let interval = 100;
    let mut waits = 0;
    for seed in 0..6 {
        let mut prng = Prng::new(seed);
        let spec = Options { checkpoint_interval_bytes: Some(interval * 4096), ..options(Mode::Improved) };
        let mut world = filled(256, spec, &format!("seed {seed}"));
        let blocks = world.blocks();
        for _ in 0..1000 + prng.below(500) {
            assert!(world.run_until(|world| world.in_flight() < 32), "seed {seed}: the power stays on");
            let block = prng.below(blocks);
            assert!(world.run_until(|world| !world.is_busy(block, 1)), "seed {seed}: the power stays on");
            world.send(BlockOp::Write { fua: false }, block, 1);
        }
        waits += world.pblk().stats().waits_for_checkpoint;
        let buffered = u64::from(world.pblk().capacity().slots());
        world.cut(&mut prng);
        let report = world.mount();
        assert!(report.checkpoint.is_some() && !report.passed_over, "seed {seed}: {report:?}");
        assert!(
            report.records <= 2 * interval + buffered,
            "seed {seed}: {buffered} in the buffer, {report:?}"
        );
        world.read_all(true);
        assert!(world.failures.is_empty(), "seed {seed}: {:?}", world.failures);
    }
    assert!(waits > 0, "checkpoints were never slower than an interval");
}

/// Nothing but a checkpoint lets the record of a discard go, and none is taken by time: they must not fill the instance, also
/// where the checkpoint waits for records in the buffer (8 and 17), or empty lines wait for records that wait for a line (18, 54).
#[test]
fn records_of_discards_do_not_fill_an_instance() {
    for seed in [2, 8, 17, 18, 54] {
        discard_twice_the_drive(seed);
    }
}

fn discard_twice_the_drive(seed: u64) {
    let spec = Options {
        checkpoint_interval_bytes: Some(0),
        over_provisioning_percent: 70,
        ..options(Mode::Improved)
    };
    let (mut world, mut prng) = (World::new(config(geometry()), spec, "records"), Prng::new(seed));
    let sectors =
        u64::from(geometry().chunks_per_pu) * u64::from(geometry().pu_count() * geometry().sectors_per_chunk);
    let mix = Mix { requests: 2_000, longest: 2, reads: 0, flushes: 20, discards: 60, ..MIX };
    let mut discards = 0;
    while discards < 2 * sectors {
        assert!(world.run(&mix, &mut prng), "seed {seed}: read-only after {discards} discards");
        discards += u64::from(mix.requests) * mix.discards / 100;
    }
    assert!(world.pblk().stats().checkpoints > 0, "records were let go of without a checkpoint");
    world.read_all(false);
    world.check();
    assert!(world.failures.is_empty(), "{:?}", world.failures);
}
