//! Random write areas: blocks in any order and again, commits, what a power cut leaves of them, and how many there are.

use crate::rig::{Rig, config};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Requests};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneArea, ZoneState, ZonedOp};

/// Two units wide, write units of eight blocks, areas of two of them.
const OPTIONS: &[(&str, &str)] = &[("zone_chunks", "4"), ("area_units", "2")];
const FUA: ZonedOp = ZonedOp::Write { durability: Durability::AtReply };
const APPEND: ZonedOp = ZonedOp::Append { durability: Durability::AtFlush };

/// The first byte of each of so many blocks.
fn bytes(rig: &mut Rig, block: u64, count: u32) -> Vec<u8> {
    let (status, content) = rig.read(block, count);
    assert_eq!(status, Status::SUCCESS);
    content.chunks(4_096).map(|block| block[0]).collect()
}

fn pointer(rig: &Rig, zone: u32) -> Option<u64> {
    let descriptor = rig.target().zone(zone);
    descriptor.write_pointer.map(|pointer| pointer - descriptor.start)
}

fn open(rig: &mut Rig, block: u64) -> Status {
    rig.ask(ZonedOp::OpenWithArea, block, 0, None).0.status
}

fn commit(rig: &mut Rig, block: u64) -> Status {
    rig.ask(ZonedOp::CommitArea, block, 0, None).0.status
}

/// What stands in a row where nothing was written.
fn row(blocks: u32, written: &[(usize, u8)]) -> Vec<u8> {
    let mut row = vec![0; usize::try_from(blocks).expect("few")];
    written.iter().for_each(|&(at, byte)| row[at] = byte);
    row
}

#[test]
fn blocks_go_into_an_area_in_any_order_and_are_on_media_as_they_were_last() {
    let mut rig = Rig::new(OPTIONS);
    let start = rig.geometry().start_of(1);
    assert_eq!(open(&mut rig, start), Status::SUCCESS);
    for (at, count, fill) in [(9, 1, 3), (0, 2, 4), (9, 2, 5), (14, 1, 6)] {
        assert_eq!(rig.write(start + at, count, fill), Status::SUCCESS);
    }
    let expected = row(20, &[(0, 4), (1, 4), (9, 5), (10, 5), (14, 6)]);
    assert_eq!(bytes(&mut rig, start, 20), expected, "from the area");
    assert_eq!((pointer(&rig, 1), rig.target().zone(1).has_area), (Some(0), true));
    assert_eq!(rig.ask(APPEND, start, 1, Some(1)).0.status, Status::INVALID_ZONE_OPERATION);
    assert_eq!(commit(&mut rig, start + 8), Status::INVALID_FIELD, "not the last of a unit");
    assert_eq!(commit(&mut rig, start + 7), Status::SUCCESS);
    assert_eq!(rig.write(start + 7, 1, 9), Status::ZONE_INVALID_WRITE, "it is committed");
    // Two units behind the pointer and one block more: one unit moves on, and with it what was written there.
    assert_eq!(rig.write(start + 24, 1, 7), Status::SUCCESS);
    assert_eq!(pointer(&rig, 1), Some(16));
    assert_eq!(rig.manage(ZoneAction::Finish, start), Status::SUCCESS);
    let expected = [&expected[..], &row(12, &[(4, 7)])].concat();
    assert_eq!((bytes(&mut rig, start, 32), rig.state(1)), (expected.clone(), ZoneState::Full));
    let mut rig = rig.cut();
    assert_eq!((bytes(&mut rig, start, 32), rig.state(1)), (expected, ZoneState::Full), "after a cut");
}

/// A chunk takes its units one after the other, the next chunk meanwhile: a unit may be on media before one that precedes it, and
/// needs no buffer unit then where what was written last can be read.
#[test]
fn a_unit_that_was_programmed_before_another_is_read_from_its_place() {
    let mut config = config();
    config.geometry.mw_cunits = 0;
    let waits = (0..12).map(|nth| Nanos::from_micros(200 * nth));
    for (units, wait) in waits.flat_map(|wait| (1..16).map(move |units| (units, wait))) {
        for unit in 1..=units {
            let options = [("zone_chunks", "4"), ("width", "1"), ("area_units", "3")];
            let mut rig = Rig::with(config.clone(), &options);
            let start = rig.geometry().start_of(1);
            assert_eq!(open(&mut rig, start), Status::SUCCESS);
            for fill in 1..=units {
                assert_eq!(rig.write(start + u64::from(fill - 1) * 8, 8, fill), Status::SUCCESS);
            }
            let stop = rig.host.clock().now() + wait;
            rig.host.run(&mut Requests::default(), stop);
            let found = bytes(&mut rig, start + u64::from(unit - 1) * 8, 8);
            assert_eq!(found, [unit; 8], "unit {unit} of {units}, {wait} later");
        }
    }
}

#[test]
fn what_was_durable_of_an_area_is_committed_by_a_power_cut() {
    for partial in ["log", "pad"] {
        let mut rig = Rig::new(&[OPTIONS, &[("partial", partial)]].concat());
        let start = rig.geometry().start_of(2);
        assert_eq!(rig.write(start, 16, 1), Status::SUCCESS);
        assert_eq!(open(&mut rig, start), Status::SUCCESS);
        for (op, at, fill) in [(FUA, 18, 2), (FUA, 29, 3), (FUA, 18, 4), (FUA, 29, 5)] {
            assert_eq!(rig.ask(op, start + at, 1, Some(fill)).0.status, Status::SUCCESS);
        }
        assert_eq!(rig.write(start + 18, 1, 6), Status::SUCCESS, "nobody waits for it");
        let mut rig = rig.cut();
        assert_eq!((pointer(&rig, 2), rig.target().zone(2).has_area), (Some(32), false));
        let expected = [vec![1; 16], row(16, &[(2, 4), (13, 5)])].concat();
        assert_eq!(bytes(&mut rig, start, 32), expected, "{partial}");
        // The zone goes on, and what was committed by the cut is on media by the next one.
        assert_eq!(rig.write(start + 32, 3, 7), Status::SUCCESS);
        assert_eq!(rig.flush(), Status::SUCCESS);
        let mut rig = rig.cut();
        assert_eq!(pointer(&rig, 2), Some(35));
        assert_eq!(bytes(&mut rig, start, 35), [expected, vec![7; 3]].concat(), "{partial}");
        assert_eq!(open(&mut rig, start), Status::ZRWA_RESOURCES_UNAVAILABLE, "not at a unit's start");
    }
}

/// A power cut takes back a row whose end is in tails and whose begin is nowhere. Where an area leaves a gap then, the next cuts
/// must not fill it with that end: nobody wrote it since.
#[test]
fn what_a_power_cut_took_back_does_not_come_to_light_in_the_gaps_of_an_area() {
    let mut config = config();
    config.geometry.mw_cunits = 0;
    let options = [("zone_chunks", "4"), ("width", "1"), ("area_units", "3"), ("writes_per_unit", "1")];
    let expected = [vec![1; 8], row(16, &[(12, 2)])].concat();
    let mut taken_back = 0;
    for wait in (0..40).map(|nth| Nanos::from_micros(100 * nth)) {
        let mut rig = Rig::with(config.clone(), &options);
        let [start, other] = [1, 2].map(|zone| rig.geometry().start_of(zone));
        for (at, count) in [(start, 8), (other, 5)] {
            assert_eq!(rig.ask(FUA, at, count, Some(1)).0.status, Status::SUCCESS);
        }
        // The log waits for the zone's new chunk, and tails have one already.
        let mut rig = rig.cut();
        rig.begin(FUA, start + 8, 13, 1, wait);
        let mut rig = rig.cut();
        if pointer(&rig, 1) != Some(8) {
            continue;
        }
        taken_back += 1;
        assert_eq!(open(&mut rig, start), Status::SUCCESS);
        assert_eq!(rig.ask(FUA, start + 20, 1, Some(2)).0.status, Status::SUCCESS);
        // One unit after the other goes to its place meanwhile.
        for reads in 0..5 {
            let mut rig = rig.cut();
            assert_eq!(bytes(&mut rig, start, 24), expected, "cut {wait} later, and at once");
            for _ in 0..reads {
                assert_eq!(bytes(&mut rig, start, 1), [1]);
            }
            let mut rig = rig.cut();
            assert_eq!(pointer(&rig, 1), Some(24));
            assert_eq!(bytes(&mut rig, start, 24), expected, "cut {wait} later, and {reads} reads later");
        }
    }
    assert!((5..30).contains(&taken_back), "{taken_back} of 40 cuts took the row back");
}

#[test]
fn the_write_buffer_says_how_many_zones_have_an_area() {
    // Of 32 buffer units four are slack. An open zone takes ten: two for its units, three for each of two active ones, its area's
    // two.
    let options = [OPTIONS, &[("buffer_bytes", "1048576")]].concat();
    let mut rig = Rig::new(&options);
    let geometry = rig.geometry();
    assert_eq!(geometry.area, Some(ZoneArea { blocks: 16, granularity: 8, areas_max: 2 }));
    let starts = [0, 1, 2].map(|zone| geometry.start_of(zone));
    assert_eq!(open(&mut rig, starts[0] + 1), Status::INVALID_FIELD, "no zone starts there");
    assert_eq!(starts.map(|start| open(&mut rig, start))[2], Status::ZRWA_RESOURCES_UNAVAILABLE);
    // All of it is written over and over, and to the end of the zone.
    for round in 0..40_u32 {
        let at = starts[0] + u64::from(round % 16);
        assert_eq!(rig.ask(FUA, at, 1, Some(1)).0.status, Status::SUCCESS, "round {round}");
    }
    for at in (0..geometry.capacity_blocks).step_by(8) {
        assert_eq!(rig.write(starts[1] + at, 8, 2), Status::SUCCESS, "at {at}");
    }
    assert_eq!(pointer(&rig, 1), Some(geometry.capacity_blocks - 16), "only a commit makes it full");
    assert_eq!(commit(&mut rig, starts[1] + geometry.capacity_blocks - 1), Status::SUCCESS);
    assert_eq!((rig.state(1), open(&mut rig, starts[2])), (ZoneState::Full, Status::SUCCESS));
    assert_eq!(rig.manage(ZoneAction::Reset, starts[0]), Status::SUCCESS);
    assert_eq!((pointer(&rig, 0), open(&mut rig, starts[0])), (Some(0), Status::SUCCESS));
    let none = Rig::new(&[]).ask(ZonedOp::OpenWithArea, 0, 0, None).0.status;
    assert_eq!(none, Status::INVALID_ZONE_OPERATION, "areas are asked for");
}
