//! Garbage collection in marked groups must not end changes while there is room: copies that find no place in their group.
//!
//! Found by a benchmark: a drive of 16 groups, written over at random at depth 256, became read-only with 467 chunks free, all but
//! a few of them in one group (`ocssd-bench ox_rand_write_4k_steady --chunks=1067`, which takes minutes). A small drive comes to it
//! when a group loses its chunks. Deliberately not here: which chunk is chosen (`ocssd_ftl`).

use crate::rig::{Rig, config};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::Requests;
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::{ChunkId, Geometry, Target, TargetId};

/// Writes in flight.
const DEPTH: usize = 64;

/// Writes an instance over at random, several times; every write must succeed.
fn write_over(groups: u32, pus_per_group: u32, options: &[(&'static str, &'static str)], seed: u64) {
    write_over_with(groups, pus_per_group, options, 0, seed);
}

/// The same; the first reset of each of the first `failing` chunks fails: all are of the first group.
fn write_over_with(
    groups: u32,
    pus_per_group: u32,
    options: &[(&'static str, &'static str)],
    failing: u32,
    seed: u64,
) {
    let label = format!("{groups} groups of {pus_per_group} units, seed {seed}");
    let mut drive = config(24);
    drive.geometry = Geometry { mw_cunits: 8, ..Geometry::example(groups, pus_per_group, 24, 32, 4) };
    let mut rig = Rig::new(drive, options, Nanos(0), &label);
    for chunk in (0..failing).map(ChunkId) {
        let kind = FaultKind::ResetFailure;
        rig.host.device_mut().schedule_fault(ScheduledFault { kind, chunk, sector: None, times: 1 });
    }
    let blocks = rig.host.target(TargetId(0)).block_count();
    let mut prng = Prng::new(seed);
    let mut left = blocks * 5;
    while left > 0 {
        let mut requests = Requests::default();
        let mut sent = Vec::new();
        for nth in 0..u64::try_from(DEPTH).expect("small").min(left) {
            // First all blocks in order: one that was never written is as good as spare.
            let block = if left > blocks * 4 { blocks * 5 - left } else { prng.below(blocks) };
            let request = rig.write_of(u32::try_from(block).expect("small"), 1, left + nth);
            requests.push(request);
            sent.push(request);
            left -= 1;
        }
        for reply in rig.run(&mut requests, Nanos::MAX) {
            assert!(reply.status.is_success(), "{label}, {left} writes left: {}", reply.status);
        }
        sent.iter().for_each(|request| rig.done(request));
    }
    rig.host.target(TargetId(0)).check();
    assert!(rig.counter("victims") > 0, "{label}: no garbage was collected");
}

#[test]
fn a_group_without_room_for_copies_does_not_end_changes() {
    for seed in 0..8 {
        write_over(8, 1, &[], seed);
        write_over(4, 2, &[("checkpoint_log_bytes", "131072")], seed);
        write_over(3, 1, &[("gc_groups_max", "3")], seed);
    }
}

/// The chunks of one group go bad one after the other, until what is open there has room for a part of a victim only.
#[test]
fn a_group_that_loses_its_chunks_does_not_end_changes() {
    for seed in 0..8 {
        for failing in [20, 22, 23, 24] {
            write_over_with(4, 1, &[("over_provisioning_percent", "75")], failing, seed);
        }
    }
}
