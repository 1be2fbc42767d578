//! What is counted is what the host asked and what the drive did.

use crate::rig::{Rig, UNITS};
use ocssd_base::Prng;
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::block::CounterValue;
use ocssd_lightnvm::interface::zoned::ZoneAction;
use ocssd_lightnvm::{ChunkId, Status};

/// Requests of a run.
const REQUESTS: u32 = 4_000;
/// Zones that are used.
const ZONES: u32 = 6;

fn count(rig: &Rig, name: &str) -> u64 {
    let counters = rig.target().counters();
    let counter = counters.iter().find(|counter| counter.name == name).expect("it is counted");
    let CounterValue::Count(count) = counter.value else { panic!("{name} is no count") };
    count
}

/// Sectors the drive read and wrote, and chunks it reset, beyond those the target knows of its own mount.
fn of_drive(rig: &mut Rig) -> [u64; 3] {
    rig.host.settle();
    let counters = rig.host.device().counters();
    [counters.sectors_read, counters.sectors_written, counters.resets]
}

/// Sectors of every chunk are lost; then each block before a write pointer is read alone, and those that fail are counted.
fn assert_lost(rig: &mut Rig, pointers: &[u64], label: &str) {
    let chunks = rig.host.device().config().geometry.chunks_per_pu * UNITS;
    for (chunk, sector) in (0..chunks).flat_map(|chunk| [3, 9, 18].map(|sector| (chunk, sector))) {
        let (kind, chunk) = (FaultKind::UnrecoveredRead, ChunkId(chunk));
        let fault = ScheduledFault { kind, chunk, sector: Some(sector), times: u32::MAX };
        rig.host.device_mut().schedule_fault(fault);
    }
    let (mut lost, geometry) = (0, rig.geometry());
    let before = (count(rig, "read_failed_sectors"), count(rig, "read_again_sectors"));
    for (zone, &pointer) in (0..).zip(pointers) {
        let start = geometry.start_of(zone);
        for block in start..start + pointer {
            let (status, _) = rig.read(block, 1);
            assert!(status.is_success() || status == Status::UNRECOVERED_READ, "{label}: {status}");
            lost += u64::from(!status.is_success());
        }
    }
    println!("{label}: {lost} blocks before {pointers:?} are lost");
    assert!(lost > 0, "{label}: no block is lost");
    assert_eq!(count(rig, "read_failed_sectors") - before.0, lost, "{label}");
    let again = count(rig, "read_again_sectors") - before.1;
    assert!(again >= lost && again.is_multiple_of(lost), "{label}: {again} tries of {lost} blocks");
}

#[test]
fn blocks_of_the_host_and_programs_reads_and_resets_of_the_drive_are_counted() {
    let runs: [&[(&str, &str)]; 3] = [&[], &[("partial", "pad"), ("finish", "pad")], &[("log_copies", "1")]];
    for (seed, options) in (0..).zip(runs) {
        let label = format!("seed {seed}, {options:?}");
        let (mut rig, mut prng) = (Rig::new(options), Prng::new(seed));
        let geometry = rig.geometry();
        let names = ["programmed_sectors", "resets"];
        let own = names.map(|name| count(&rig, name));
        let [read, written, resets] = of_drive(&mut rig);
        let (before, mut pointers) = ([read, written - own[0], resets - own[1]], [0_u64; ZONES as usize]);
        let [mut user_read, mut user_written, mut empty, mut zone_resets, mut finished] = [0; 5];
        for _ in 0..REQUESTS {
            let zone = u32::try_from(prng.below(ZONES.into())).expect("few");
            let (start, pointer) = (geometry.start_of(zone), &mut pointers[zone as usize]);
            let left = geometry.capacity_blocks - *pointer;
            match prng.below(20) {
                0..=9 if left > 0 => {
                    let blocks = (1 + prng.below(11)).min(left);
                    let short = u32::try_from(blocks).expect("few");
                    assert_eq!(rig.write(start + *pointer, short, 7), Status::SUCCESS, "{label}");
                    (*pointer, user_written) = (*pointer + blocks, user_written + blocks);
                }
                10..=16 => {
                    let first = prng.below(geometry.capacity_blocks);
                    let blocks = (1 + prng.below(11)).min(geometry.capacity_blocks - first);
                    let (status, _) = rig.read(start + first, u32::try_from(blocks).expect("few"));
                    assert_eq!(status, Status::SUCCESS, "{label}");
                    let behind = (first + blocks).saturating_sub((*pointer).max(first));
                    (user_read, empty) = (user_read + blocks, empty + behind);
                }
                17 => assert_eq!(rig.flush(), Status::SUCCESS, "{label}"),
                18 if *pointer > 0 && left > 0 => {
                    assert_eq!(rig.manage(ZoneAction::Finish, start), Status::SUCCESS, "{label}");
                    assert_eq!(rig.manage(ZoneAction::Reset, start), Status::SUCCESS, "{label}");
                    (*pointer, finished, zone_resets) = (0, finished + 1, zone_resets + 1);
                }
                19 if left < 20 && *pointer > 0 => {
                    assert_eq!(rig.manage(ZoneAction::Reset, start), Status::SUCCESS, "{label}");
                    (*pointer, zone_resets) = (0, zone_resets + 1);
                }
                _ => {}
            }
        }
        assert_eq!(rig.flush(), Status::SUCCESS, "{label}");
        let [read, written, resets] = of_drive(&mut rig);
        println!("{label}: {:?}", rig.target().counters());
        let of = |name: &str| count(&rig, name);
        assert_eq!(
            (of("user_read_sectors"), of("user_written_sectors")),
            (user_read, user_written),
            "{label}"
        );
        assert_eq!(of("read_empty_sectors"), empty, "{label}");
        assert_eq!((of("zone_resets"), of("zones_finished")), (zone_resets, finished), "{label}");
        assert!(of("log_entries") >= zone_resets + finished, "{label}: each is an entry of the log");
        let from_media = user_read - empty - of("read_cached_sectors");
        assert_eq!(from_media, read - before[0], "{label}: reads");
        assert_eq!(of("programmed_sectors"), written - before[1], "{label}: programs");
        assert_eq!(of("resets"), resets - before[2], "{label}: resets");
        assert!(of("resets") > 50 && of("data_written_sectors") <= user_written, "{label}");
        assert_lost(&mut rig, &pointers, &label);
    }
}
