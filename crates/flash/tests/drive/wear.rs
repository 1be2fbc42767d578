//! Ageing: endurance, the wear index, notifications of uneven wear, and error rates that grow.

use crate::rig::{Rig, ppa, preset};
use ocssd_flash::{Config, NotificationKind};
use ocssd_lightnvm::{ChunkId, ChunkState, Status};

fn config(endurance: u32) -> Config {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.geometry.capabilities.multiple_resets = true;
    config.geometry.wear_index_threshold = 255;
    config.wear.endurance = endurance;
    config
}

#[test]
fn a_chunk_survives_its_endurance_and_the_next_reset_takes_it_offline() {
    let mut rig = Rig::new(config(5));
    for cycle in 0..5 {
        let (_, end) = rig.reset(3);
        assert_eq!(end.status, Status::SUCCESS, "reset {cycle}");
    }
    rig.fill_chunk(3, 1);
    let (_, end) = rig.reset(3);
    assert_eq!((end.status, end.failed, end.violation), (Status::OFFLINE_CHUNK, 1, None));
    let chunk = rig.drive.chunk(ChunkId(3));
    assert_eq!((chunk.state, chunk.write_pointer), (ChunkState::Offline, None));
    assert_eq!(rig.read(ppa(3, 0), 1).1.status, Status::UNWRITTEN);
    assert_eq!(rig.write(ppa(3, 0), 8, 0).1.status, Status::WRITE_FAULT);
    assert_eq!(rig.reset(3).1.status, Status::OFFLINE_CHUNK);
    assert_eq!(rig.drive.counters().resets, 5);
    rig.drive.check();
}

#[test]
fn the_wear_index_is_cycles_over_endurance_of_255_and_never_falls() {
    let mut rig = Rig::new(config(7));
    let mut last = 0;
    for cycles in 1..=7u32 {
        rig.reset(0);
        let index = rig.drive.chunk(ChunkId(0)).wear_index;
        assert_eq!(u32::from(index), cycles * 255 / 7);
        assert!(index >= last);
        last = index;
        assert_eq!(rig.drive.cycles(ChunkId(0)), cycles);
    }
    rig.reset(0);
    assert_eq!(rig.drive.chunk(ChunkId(0)).wear_index, 255, "also once it is offline");
}

#[test]
fn a_drive_may_start_used() {
    let mut used = config(10);
    used.wear.initial_cycles = 9;
    let mut rig = Rig::new(used);
    assert!(rig.report().iter().all(|chunk| chunk.wear_index == 229));
    assert_eq!(rig.reset(0).1.status, Status::SUCCESS);
    assert_eq!(rig.reset(0).1.status, Status::OFFLINE_CHUNK);
}

#[test]
fn wear_far_from_the_average_is_noticed() {
    let mut uneven = config(100);
    uneven.geometry.wear_index_threshold = 10;
    let mut rig = Rig::new(uneven);
    // Four resets are index 10, five are 12; the average of 32 chunks stays 0.
    for _ in 0..4 {
        rig.reset(2);
    }
    assert_eq!(rig.drive.chunk_notifications().count(), 0);
    rig.reset(2);
    let notification = *rig.drive.chunk_notifications().next().expect("a notification");
    assert_eq!(
        (notification.kind, notification.at, notification.sectors),
        (NotificationKind::WearOutside, ppa(2, 0), None)
    );
    rig.drive.chunk_notifications_read(notification.count);
    assert_eq!(rig.drive.chunk_notifications().count(), 0);
}

/// New media have no unreadable sectors here, worn-out media 40 %, half-worn a quarter of that.
#[test]
fn the_error_rate_grows_with_the_square_of_wear() {
    let lost_at = |cycles: u32| {
        let mut aged = config(1_000);
        aged.wear.initial_cycles = cycles;
        aged.faults.unrecovered_read_worn = 400_000_000;
        let mut rig = Rig::new(aged);
        let mut lost = 0;
        for chunk in 0..32 {
            rig.fill_chunk(chunk, 0);
            lost += rig.read(ppa(chunk, 0), 32).1.failed.count_ones();
        }
        lost
    };
    let [new, half, worn] = [0, 500, 1_000].map(lost_at);
    assert_eq!(new, 0);
    // 1024 sectors: 10 % and 40 %, four standard deviations either way.
    assert!((64..=141).contains(&half), "{half} of 1024 sectors lost at half wear");
    assert!((347..=473).contains(&worn), "{worn} of 1024 sectors lost at full wear");
}
