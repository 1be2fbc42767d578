//! Chunks that cannot be reset any more, until none is left for a zone: it becomes read only, and others go on.

use crate::rig::{Rig, UNITS, config};
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneState, ZonedOp};
use ocssd_lightnvm::{ChunkId, Status};
use std::ops::Range;

const OPTIONS: &[(&str, &str)] = &[("width", "1"), ("zone_chunks", "2")];

/// The byte that fills a block.
fn fill(zone: u32, block: u64) -> u8 {
    u8::try_from((u64::from(zone) * 31 + block * 7) % 251 + 1).expect("below 256")
}

/// Writes zones one after the other until one is given up: which, and how many of its blocks were answered.
fn write_until_given_up(rig: &mut Rig) -> (u32, u64) {
    let geometry = rig.geometry();
    for zone in 0..geometry.zone_count {
        for block in 0..geometry.capacity_blocks {
            let status = rig.write(geometry.start_of(zone) + block, 1, fill(zone, block));
            if status == Status::ZONE_IS_READ_ONLY {
                return (zone, block);
            }
            assert_eq!(status, Status::SUCCESS, "block {block} of zone {zone}");
            if block % 8 == 5 && rig.flush() != Status::SUCCESS {
                return (zone, block + 1);
            }
        }
    }
    panic!("no zone was given up: {}", rig.target().summary());
}

/// A drive that lost so many chunks to failed resets that not all zones can be written any more.
fn worn_rig(options: &[(&'static str, &'static str)], failing: Range<u32>) -> Rig {
    let mut rig = Rig::new(options);
    let chunks = config().geometry.chunks_per_pu;
    for chunk in (0..UNITS * chunks).filter(|chunk| failing.contains(&(chunk % chunks))) {
        let fault =
            ScheduledFault { kind: FaultKind::ResetFailure, chunk: ChunkId(chunk), sector: None, times: 1 };
        rig.host.device_mut().schedule_fault(fault);
    }
    let geometry = rig.geometry();
    for zone in 0..geometry.zone_count {
        let count = u32::try_from(geometry.capacity_blocks).expect("small");
        assert_eq!(rig.write(geometry.start_of(zone), count, 1), Status::SUCCESS, "zone {zone}");
    }
    for zone in 0..geometry.zone_count {
        assert_eq!(rig.manage(ZoneAction::Reset, geometry.start_of(zone)), Status::SUCCESS, "zone {zone}");
    }
    rig
}

#[test]
fn a_zone_without_a_chunk_becomes_read_only_and_is_told_once() {
    let mut rig = worn_rig(OPTIONS, 20..32);
    let (zone, answered) = write_until_given_up(&mut rig);
    let geometry = rig.geometry();
    let start = geometry.start_of(zone);
    assert_eq!(rig.state(zone), ZoneState::ReadOnly);
    assert_eq!(
        (rig.target_mut().poll_changed_zone(), rig.target_mut().poll_changed_zone()),
        (Some(zone), None)
    );
    for block in 0..answered {
        let (status, content) = rig.read(start + block, 1);
        assert_eq!(
            (status, content[0]),
            (Status::SUCCESS, fill(zone, block)),
            "block {block} of what was answered"
        );
    }
    assert_eq!(rig.write(start + answered, 1, 1), Status::ZONE_IS_READ_ONLY);
    for action in [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish, ZoneAction::Reset] {
        assert_eq!(rig.manage(action, start), Status::INVALID_ZONE_TRANSITION, "{action:?}");
    }
    assert_eq!(rig.flush(), Status::SUCCESS, "whoever waited for the zone was told");
    // Others go on: what a reset frees is there for them.
    assert_eq!(rig.manage(ZoneAction::Reset, geometry.start_of(0)), Status::SUCCESS);
    assert_eq!(rig.write(geometry.start_of(0), 8, 3), Status::SUCCESS);
    assert_eq!(rig.flush(), Status::SUCCESS);
}

/// Nobody waits for the blocks but the shutdown, which would else wait for ever.
#[test]
fn a_shutdown_fails_that_only_a_zone_without_a_place_holds_up() {
    let (zone, answered) = write_until_given_up(&mut worn_rig(OPTIONS, 20..32));
    let mut rig = worn_rig(OPTIONS, 20..32);
    let geometry = rig.geometry();
    for before in 0..zone {
        for block in 0..geometry.capacity_blocks {
            let status = rig.write(geometry.start_of(before) + block, 1, fill(before, block));
            assert_eq!(status, Status::SUCCESS, "block {block} of zone {before}");
        }
    }
    assert_eq!(rig.flush(), Status::SUCCESS);
    assert!(answered > 0, "zone {zone} takes no block");
    for block in 0..answered {
        let status = rig.write(geometry.start_of(zone) + block, 1, fill(zone, block));
        assert_eq!(status, Status::SUCCESS, "block {block} of zone {zone}");
    }
    assert!(rig.state(zone) != ZoneState::ReadOnly, "nobody waits yet");
    assert_eq!(rig.ask(ZonedOp::Shutdown, 0, 0, None).0.status, Status::WRITE_FAULT);
    assert_eq!(rig.state(zone), ZoneState::ReadOnly);
}

#[test]
fn a_zone_stays_read_only_after_a_power_cut_and_holds_what_was_durable() {
    let mut rig = worn_rig(OPTIONS, 20..32);
    let (zone, answered) = write_until_given_up(&mut rig);
    assert_eq!(rig.flush(), Status::SUCCESS);
    let start = rig.geometry().start_of(zone);
    for _ in 0..3 {
        rig = rig.cut();
        assert_eq!(rig.state(zone), ZoneState::ReadOnly);
        // Flushes came after six blocks, fourteen, and so on.
        let durable = (answered.saturating_sub(8) / 8 * 8 + 6).min(answered);
        for block in 0..durable {
            let (status, content) = rig.read(start + block, 1);
            assert_eq!(
                (status, content[0]),
                (Status::SUCCESS, fill(zone, block)),
                "block {block} of {durable}"
            );
        }
        assert_eq!(rig.write(start + answered, 1, 1), Status::ZONE_IS_READ_ONLY);
    }
    assert_eq!(rig.manage(ZoneAction::Offline, start), Status::SUCCESS);
    assert_eq!((rig.state(zone), rig.read(start, 1).0), (ZoneState::Offline, Status::ZONE_IS_OFFLINE));
    rig = rig.cut();
    assert_eq!(rig.state(zone), ZoneState::Offline);
}

/// Zones that are given up hold more buffer units with what was answered and not flushed than others can spare.
#[test]
fn what_a_read_only_zone_lost_is_an_error_and_not_zeroes() {
    let mut rig = worn_rig(&[OPTIONS[0], OPTIONS[1], ("buffer_bytes", "262144")], 16..40);
    let geometry = rig.geometry();
    let mut answered = Vec::new();
    for zone in 0..geometry.zone_count {
        let start = geometry.start_of(zone);
        let write = |nth: &u64| rig.write(start + nth * 8, 8, fill(zone, *nth)) == Status::SUCCESS;
        let units = (0..8).take_while(write).count();
        rig.flush();
        answered.push(u64::try_from(units).expect("at most 8"));
    }
    let (mut there, mut lost) = (0, 0);
    for (zone, units) in (0..).zip(answered) {
        for nth in 0..units {
            match rig.read(geometry.start_of(zone) + nth * 8, 8) {
                (Status::SUCCESS, content) => {
                    assert_eq!(content[0], fill(zone, nth), "unit {nth} of zone {zone}");
                    there += 1;
                }
                (status, _) => {
                    assert_eq!(status, Status::UNRECOVERED_READ, "unit {nth} of zone {zone}");
                    assert_eq!(rig.state(zone), ZoneState::ReadOnly, "zone {zone}");
                    lost += 1;
                }
            }
        }
    }
    assert!(there > 0 && lost > 0, "{there} units there, {lost} lost: {}", rig.target().summary());
}
