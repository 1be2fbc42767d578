//! Lines that are emptied: when they are reset, and what of them is no block.

use super::basic::geometry;
use super::copies::{LINE, LINES, PAIR, collect, is_reset, rewrite, sparse_on, spec};
use super::world::{World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{ChunkId, ChunkState};

#[test]
fn a_victim_is_not_reset_while_a_user_reads_it() {
    let mut drive = config(geometry());
    drive.faults.spike = Nanos::from_millis(500);
    let mut world = sparse_on(drive, "a slow read");
    collect(&mut world);
    world.pblk_mut().force_gc();
    assert!(world.run_until(|world| world.pblk().stats().gc_written == 8), "all copies are on their way");
    // Each chunk of the second line is slow once.
    for chunk in (0..4).map(|unit| ChunkId(unit * LINES + 1)) {
        let slow = ScheduledFault { kind: FaultKind::LatencySpike, chunk, sector: None, times: 1 };
        world.host.device_mut().inner_mut().schedule_fault(slow);
    }
    let until = world.clock_now() + Nanos::from_millis(400);
    PAIR.iter().for_each(|&block| assert!(world.send(BlockOp::Read, block, 1)));
    let is_whole = |world: &World| {
        let state = |unit| world.host.device().inner().chunk(ChunkId(unit * LINES + 1)).state;
        (0..4).all(|unit| state(unit) == ChunkState::Closed)
    };
    world.run_until(|world| {
        let is_over = world.clock_now() >= until;
        let is_kept = world.in_flight() == 2 && is_whole(world);
        assert!(is_over || is_kept, "reset under a read: {}", world.pblk().summary());
        is_over
    });
    assert!(
        world.pblk().stats().units_programmed == world.pblk().stats().units_written,
        "all copies were programmed meanwhile"
    );
    assert!(world.drain() && world.settle());
    assert!(is_reset(&world, 1) && world.failures.is_empty(), "{}", world.pblk().summary());
    world.survive_cut(&mut Prng::new(1));
}

#[test]
fn records_of_discards_are_moved_with_their_line_and_outlive_it() {
    let mut world = World::new(config(geometry()), spec(), "records");
    // The first line stays, so that what is discarded could come back from there.
    rewrite(&mut world, |block| block < u64::from(LINE));
    // A unit of records in the second line, of which nothing else stays.
    for block in [10, 60, 110, 160] {
        assert!(world.send(BlockOp::Discard, block, 5) && world.drain());
    }
    let beside = 1000..1000 + u64::from(LINE);
    for block in beside.clone().chain(beside).step_by(56) {
        world.write(block, 56);
    }
    world.flush();
    assert!(world.settle());
    collect(&mut world);
    assert_eq!(world.pblk().stats().gc_written, 4, "{}", world.pblk().summary());
    assert!(is_reset(&world, 1) && !is_reset(&world, 0), "{}", world.pblk().summary());
    world.read_all(false);
    world.branch("records, cut").survive_cut(&mut Prng::new(2));
    // A checkpoint has what they say; they are let go of where they are now.
    world.pblk_mut().force_checkpoint();
    assert!(world.settle());
    world.survive_cut(&mut Prng::new(3));
}
