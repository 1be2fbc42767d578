//! Guests that do as the specification says.

use super::super::bench::{Bench, ENABLE, ENTRIES, completion_at, create_submission, page};
use super::super::pretend::{OOB_BYTES, SECTOR_BYTES};
use super::super::{BAR0, CONFIG, NoSuchPlace, PciFunction};
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController};
use ocssd_nvme::sqe::{GetFeatures, Identify, ReadWrite, SetFeatures, Vector};
use ocssd_nvme::{AddressList, HostAddress, Lba, Sqe};

fn scalar(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

#[test]
fn data_and_metadata_of_a_vector_come_from_memory_and_go_there() {
    let mut bench = Bench::ready();
    bench.put(page(0), &[7; 3 * SECTOR_BYTES]);
    bench.put(page(1), &[9; 3 * OOB_BYTES]);
    let list: Vec<u8> = [5u64, 70, 900].iter().flat_map(|lba| lba.to_le_bytes()).collect();
    bench.put(page(2), &list);
    let lbas = AddressList::Many { at: HostAddress(page(2)), count: 3 };
    let vector = Vector { lbas, limited_retry: false };
    let write = Sqe::vector_write(1, vector).with_prps(HostAddress(page(0)), HostAddress(0));
    assert_eq!(bench.io(write.with_mptr(HostAddress(page(1)))), Status::SUCCESS);
    assert_eq!(bench.function.drive.sectors.keys().copied().collect::<Vec<_>>(), [5, 70, 900]);
    let read = Sqe::vector_read(1, vector).with_prps(HostAddress(page(3)), HostAddress(0));
    assert_eq!(bench.io(read.with_mptr(HostAddress(page(4)))), Status::SUCCESS);
    assert_eq!(bench.get(page(3), 3 * SECTOR_BYTES), [7; 3 * SECTOR_BYTES]);
    assert_eq!(bench.get(page(4), 3 * OOB_BYTES + 1), [[9; 3 * OOB_BYTES].as_slice(), &[0]].concat());
    let counters = bench.function.counters();
    let moved = u64::try_from(3 * (SECTOR_BYTES + OOB_BYTES)).unwrap();
    assert_eq!(counters.received_bytes, moved);
    assert_eq!(counters.sent_bytes, moved);
}

#[test]
fn completions_turn_their_phase_and_wait_for_room() {
    let mut bench = Bench::ready();
    for round in 0..3 {
        for _ in 0..ENTRIES {
            assert_eq!(bench.io(Sqe::flush(1)), Status::SUCCESS);
        }
        let last = bench.get(completion_at(1) + 16 * u64::from(ENTRIES - 1) + 14, 1)[0] & 1;
        assert_eq!(last, u8::from(round % 2 == 0), "round {round}");
    }
    // One entry stays free; what does not fit comes when there is room, and nothing is fetched until then.
    for _ in 0..ENTRIES - 1 {
        bench.queue(1, Sqe::flush(1));
    }
    bench.ring(1);
    bench.run();
    bench.submit(1, Sqe::flush(1));
    bench.run();
    let waiting = bench.function.port.completion(1).unwrap().backlog.len();
    assert_eq!(waiting, 1);
    for _ in 0..ENTRIES {
        assert!(bench.take(1).is_some());
        bench.run();
    }
    assert!(bench.take(1).is_none());
}

#[test]
fn a_full_drive_takes_the_rest_later() {
    let mut bench = Bench::ready();
    bench.function.drive.is_quick = false;
    bench.function.drive.room = Some(2);
    for _ in 0..5 {
        bench.submit(1, Sqe::flush(1));
    }
    bench.run();
    assert_eq!((bench.function.drive.begun.len(), bench.function.port.submission(1).unwrap().head), (2, 2));
    for _ in 0..5 {
        bench.function.drive.end_one();
        bench.run();
        assert!(bench.take(1).is_some());
    }
}

#[test]
fn a_submission_queue_goes_with_its_last_command() {
    let mut bench = Bench::ready();
    bench.function.drive.is_quick = false;
    bench.submit(1, Sqe::flush(1));
    bench.run();
    let delete = bench.submit(0, Sqe { opcode: 0x00, cdw10: 1, ..Sqe::default() });
    bench.submit(1, Sqe::flush(1));
    bench.run();
    assert!(bench.peek(0).is_none(), "a command is in progress");
    let completion_queue = Sqe { opcode: 0x04, cdw10: 1, ..Sqe::default() };
    assert_eq!(bench.admin(completion_queue), Status::INVALID_QUEUE_DELETION);
    bench.function.drive.end_one();
    bench.run();
    assert!(bench.take(1).is_some());
    assert_eq!(bench.take(0).map(|cqe| (cqe.cid, cqe.status.status)), Some((delete, Status::SUCCESS)));
    assert_eq!(bench.admin(completion_queue), Status::SUCCESS);
    bench.function.drive.is_quick = true;
    bench.make_queue(1);
    assert_eq!(bench.io(Sqe::flush(1)), Status::SUCCESS);
}

#[test]
fn a_shutdown_flushes_when_commands_have_ended() {
    let mut bench = Bench::ready();
    bench.function.drive.is_quick = false;
    bench.submit(1, Sqe::flush(1));
    bench.run();
    bench.write(0x14, ENABLE | 1 << 14);
    bench.run();
    assert_eq!(
        (bench.csts(), bench.function.drive.begun.len()),
        (1 | 1 << 2, 1),
        "SHST says it is on its way"
    );
    bench.function.drive.end_one();
    bench.run();
    assert_eq!((bench.csts(), bench.function.drive.begun.len()), (1 | 1 << 2, 1), "its own flush");
    // Asked for again: the same.
    bench.write(0x14, ENABLE);
    bench.write(0x14, ENABLE | 1 << 14);
    bench.run();
    bench.function.drive.end_one();
    bench.run();
    assert_eq!(bench.csts(), 1 | 2 << 2);
    bench.write(0x14, ENABLE & !1);
    assert_eq!((bench.csts(), bench.function.drive.resets), (0, 1));
}

#[test]
fn identify_and_the_number_of_queues_are_those_of_the_function() {
    let mut bench = Bench::ready();
    let identify = Sqe::identify(0, Identify { cns: Cns::CONTROLLER, cntid: 0, csi: 0 });
    let identify = identify.with_prps(HostAddress(page(0) + 2048), HostAddress(page(5)));
    assert_eq!(bench.admin(identify), Status::SUCCESS);
    let bytes = [bench.get(page(0) + 2048, 2048), bench.get(page(5), 2048)].concat();
    let controller = IdentifyController::decode(&bytes).unwrap();
    assert_eq!((controller.oacs, controller.sgls & 3, controller.aerl), (1 << 8, 1, 3));
    let set =
        |value| Sqe::set_features(0, SetFeatures { fid: FeatureId::NUMBER_OF_QUEUES, save: false, value });
    assert_eq!(bench.carry_out(0, set(0x00FF_0001)).dw0, 0x003F_0001);
    assert_eq!(bench.function.drive.asked.last().map(|sqe| sqe.cdw11), Some(0x003F_0001));
    assert_eq!(bench.admin(create_submission(3)), Status::INVALID_QUEUE_ID, "two were granted");
    let get = GetFeatures {
        fid: FeatureId::NUMBER_OF_QUEUES,
        select: ocssd_nvme::feature::Select::Current,
        selector: 0,
    };
    assert_eq!(bench.carry_out(0, Sqe::get_features(0, get)).dw0, 0x003F_003F);
}

#[test]
fn events_are_told_to_who_asked_first() {
    let mut bench = Bench::ready();
    let requests: Vec<u16> = (0..4).map(|_| bench.submit(0, Sqe::async_event_request())).collect();
    bench.run();
    assert_eq!(bench.admin(Sqe::async_event_request()), Status::AER_LIMIT_EXCEEDED);
    bench.function.drive.news = Some(0xD00007);
    bench.run();
    assert_eq!(bench.take(0).map(|cqe| (cqe.cid, cqe.dw0)), Some((requests[0], 0xD00007)));
    // A doorbell of a queue that is not there: an error (type 0, information 0), to be read in log 1.
    bench.write(0x1000 + 8 * 3, 1);
    bench.run();
    assert_eq!(bench.take(0).map(|cqe| (cqe.cid, cqe.dw0)), Some((requests[1], 0x01_0000)));
    bench.write(0x1008, ENTRIES);
    bench.run();
    assert!(bench.peek(0).is_none(), "no second error until the log is read");
    bench.function.drive.news = Some(0x020001);
    bench.run();
    assert_eq!(bench.take(0).map(|cqe| (cqe.cid, cqe.dw0)), Some((requests[2], 0x020001)));
    let read = Sqe { opcode: 0x02, cdw10: 15 << 16 | 1, ..Sqe::default() };
    assert_eq!(bench.admin(read.with_prps(HostAddress(page(0)), HostAddress(0))), Status::SUCCESS);
    bench.run();
    assert_eq!(bench.take(0).map(|cqe| (cqe.cid, cqe.dw0)), Some((requests[3], 0x01_0100)), "a value");
}

#[test]
fn interrupts_come_once_for_what_came_together() {
    let mut bench = Bench::ready();
    while bench.function.take_interrupt().is_some() {}
    for _ in 0..3 {
        bench.queue(1, Sqe::flush(1));
    }
    bench.ring(1);
    bench.run();
    assert_eq!((bench.function.take_interrupt(), bench.function.take_interrupt()), (Some(1), None));
    bench.function.mask(1, true);
    bench.submit(1, Sqe::flush(1));
    bench.run();
    assert_eq!((bench.function.take_interrupt(), bench.read(0x3000)), (None, 0b10));
    bench.function.mask(1, false);
    assert_eq!(bench.function.take_interrupt(), Some(1));
}

#[test]
fn a_function_level_reset_is_a_power_cycle_but_for_content() {
    let mut bench = Bench::ready();
    assert_eq!(
        bench.io(Sqe::write(1, scalar(4, 1)).with_prps(HostAddress(page(0)), HostAddress(0))),
        Status::SUCCESS
    );
    bench.function.write(Nanos::ZERO, CONFIG, 4, &[6, 0]).unwrap();
    bench.function.write(Nanos::ZERO, CONFIG, 0x69, &[0x80]).unwrap();
    let mut command = [9; 2];
    bench.function.read(CONFIG, 4, &mut command).unwrap();
    assert_eq!((command, bench.csts(), bench.read(0x14), bench.read(0x24)), ([0, 0], 0, 0, 0));
    bench.enable();
    bench.make_queue(1);
    assert_eq!(bench.io(Sqe::flush(1)), Status::SUCCESS);
    assert!(bench.function.drive.sectors.contains_key(&4));
}

#[test]
fn places_that_are_not_there_are_refused_and_the_msix_table_is_kept() {
    let mut bench = Bench::new();
    let mut byte = [0];
    for (region, offset) in [(BAR0, 0x4000), (CONFIG, 4096), (1, 0), (6, 0), (9, 0), (BAR0, u64::MAX)] {
        assert_eq!(bench.function.read(region, offset, &mut byte), Err(NoSuchPlace), "{region} {offset:#x}");
        assert_eq!(bench.function.write(Nanos::ZERO, region, offset, &byte), Err(NoSuchPlace));
    }
    bench.write(0x2000 + 16 * 64, 0xFEE0_0000);
    bench.write(0x2000 + 16 * 65, 5);
    assert_eq!((bench.read(0x2000 + 16 * 64), bench.read(0x2000 + 16 * 65)), (0xFEE0_0000, 0));
}
