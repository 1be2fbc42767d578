//! Zones that nobody writes again while others are written all the time: their chunks take their share of wear.

use crate::rig::{Rig, UNITS, config};
use ocssd_lightnvm::interface::zoned::ZoneAction;
use ocssd_lightnvm::{ChunkId, Status};

/// Zones that are written once.
const COLD: u32 = 40;
/// Times each of the others is written.
const ROUNDS: u32 = 500;

/// The byte that fills a block.
fn fill(zone: u32, block: u64) -> u8 {
    u8::try_from((u64::from(zone) * 31 + block * 7) % 251 + 1).expect("below 256")
}

fn write_zone(rig: &mut Rig, zone: u32) {
    let geometry = rig.geometry();
    let start = geometry.start_of(zone);
    for block in (0..geometry.capacity_blocks).step_by(8) {
        let status = rig.write(start + block, 8, fill(zone, block));
        assert_eq!(status, Status::SUCCESS, "block {block} of zone {zone}");
    }
}

fn check_cold(rig: &mut Rig, cold: u32) {
    let geometry = rig.geometry();
    for zone in 0..cold {
        for block in (0..geometry.capacity_blocks).step_by(8) {
            let (status, content) = rig.read(geometry.start_of(zone) + block, 8);
            let is_right = content.iter().all(|&byte| byte == fill(zone, block));
            assert!(
                status.is_success() && is_right,
                "block {block} of zone {zone}: {status}, {}",
                content[0]
            );
        }
    }
}

/// How far the resets of chunks differ after a few hot zones were written again and again, and how many chunks were moved.
fn spread(options: &[(&'static str, &'static str)], cuts: bool) -> (u32, u64) {
    let mut rig = Rig::new(options);
    let zones = rig.geometry().zone_count;
    let cold = COLD.min(zones - 4);
    let hot = cold..cold + 4;
    (0..cold).for_each(|zone| write_zone(&mut rig, zone));
    let mut moves = 0;
    let moves_of = |rig: &Rig| {
        let counters = rig.target().counters();
        let found = counters.iter().find(|counter| counter.name == "wear_moves").map(|counter| counter.value);
        let Some(ocssd_lightnvm::block::CounterValue::Count(moves)) = found else { panic!("it is counted") };
        moves
    };
    for round in 0..ROUNDS {
        for zone in hot.clone() {
            write_zone(&mut rig, zone);
            let start = rig.geometry().start_of(zone);
            assert_eq!(rig.manage(ZoneAction::Reset, start), Status::SUCCESS, "zone {zone}");
        }
        rig.host.settle();
        if cuts && round % 13 == 5 {
            moves += moves_of(&rig);
            rig = rig.cut();
            check_cold(&mut rig, cold);
        }
    }
    check_cold(&mut rig, cold);
    let device = rig.host.device();
    let all = (0..UNITS * config().geometry.chunks_per_pu).map(|chunk| device.cycles(ChunkId(chunk)));
    let cycles: Vec<u32> = all.collect();
    let least = cycles.iter().min().expect("there are chunks");
    let most = cycles.iter().max().expect("there are chunks");
    (most - least, moves + moves_of(&rig))
}

#[test]
fn cold_zones_take_their_share_of_wear_and_keep_what_they_hold() {
    for width in ["1", "all"] {
        let (without, none) = spread(&[("width", width)], false);
        let (with, moves) = spread(&[("width", width), ("wear_spread", "4")], false);
        println!("width {width}: spread {without} without, {with} with, {moves} moves");
        assert_eq!(none, 0, "width {width}: nothing was to be moved");
        assert!(with <= 3 * 4, "width {width}: {with} with, {without} without, {moves} moves");
        assert!(without > 2 * with, "width {width}: {with} with, {without} without");
    }
}

#[test]
fn what_was_moved_is_there_after_power_cuts_and_wear_goes_on_to_be_levelled() {
    let (spread, moves) = spread(&[("width", "1"), ("zone_chunks", "2"), ("wear_spread", "2")], true);
    println!("spread {spread}, {moves} moves");
    assert!(moves > 20 && spread <= 12, "{spread}, {moves} moves");
}
