//! Guests that do as the specification says, on blocks.

use super::super::super::bench::page;
use super::{ENABLE_ALL, QUEUE_MAX, io, powered, ready};
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController, IdentifyNamespace};
use ocssd_nvme::log_page::{EffectsLog, ErrorLogEntry, LogPageId};
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::sgl::{SglDescriptor, SglKind};
use ocssd_nvme::sqe::{DatasetManagement, GetFeatures, GetLogPage, Identify, SetFeatures};
use ocssd_nvme::{HostAddress, Lba, Sqe};

fn log(lid: LogPageId, bytes: u64) -> Sqe {
    let get =
        GetLogPage { lid, lsp: 0, retain_event: false, dword_count: bytes / 4, offset_bytes: 0, csi: 0 };
    Sqe::get_log_page(0, get)
}

fn set(fid: FeatureId, value: u32) -> Sqe {
    Sqe::set_features(0, SetFeatures { fid, save: false, value })
}

fn get(fid: FeatureId) -> Sqe {
    Sqe::get_features(0, GetFeatures { fid, select: ocssd_nvme::feature::Select::Current, selector: 0 })
}

#[test]
fn a_controller_says_what_it_is_on_pci() {
    let mut bench = ready(Vec::new());
    let identify = |nsid, cns| Sqe::identify(nsid, Identify { cns, cntid: 0, csi: 0 });
    let controller = bench.ask(identify(0, Cns::CONTROLLER)).unwrap();
    let controller = IdentifyController::decode(&controller).unwrap();
    assert_eq!((controller.ver, controller.mdts, controller.nn), (0x0002_0000, 6, 2));
    assert_eq!((controller.kas, controller.ctratt, controller.fabrics.ioccsz), (0, 0, 0), "it is no fabric");
    assert_eq!((controller.oacs, controller.sgls & 3, controller.aerl), (1 << 8, 1, 3));
    let namespace = IdentifyNamespace::decode(&bench.ask(identify(2, Cns::NAMESPACE)).unwrap()).unwrap();
    assert_eq!((namespace.nsze, namespace.nsattr), (64, 1));
    let effects = EffectsLog::decode(&bench.ask(log(LogPageId::COMMAND_EFFECTS, 4096)).unwrap()).unwrap();
    let is_there = |opcode: usize| effects.admin[opcode] != Default::default();
    assert_eq!(
        [0x00, 0x01, 0x04, 0x05, 0x06, 0x7C, 0x18].map(is_there),
        [true, true, true, true, true, true, false]
    );
    assert_eq!(bench.admin(Sqe { opcode: 0x18, ..Sqe::default() }), Status::INVALID_OPCODE, "no Keep Alive");
    assert_eq!(bench.admin(get(FeatureId::KEEP_ALIVE_TIMER)), Status::INVALID_FIELD);
    bench.end();
}

#[test]
fn data_of_a_command_comes_from_pages_lists_and_gather_lists_and_goes_there() {
    let mut bench = ready(Vec::new());
    for blocks in [1u32, 8, 16, 24, 512] {
        let data: Vec<u8> = (0..blocks * 512).map(|at| u8::try_from(at % 251).unwrap()).collect();
        assert_eq!(bench.send(Sqe::write(1, io(5, blocks)), &data).status.status, Status::SUCCESS);
        let (found, cqe) = bench.fetch(Sqe::read(1, io(5, blocks)), data.len());
        assert!(cqe.status.status.is_success() && found == data, "{blocks} blocks");
    }
    let half = |address| SglDescriptor { address, length_bytes: 256, kind: SglKind::DataBlock, subtype: 0 };
    let list: Vec<u8> =
        [half(page(60) + 3), half(page(50) + 9)].iter().flat_map(SglDescriptor::encode).collect();
    bench.put(page(7), &list);
    let last = SglDescriptor { address: page(7), length_bytes: 32, kind: SglKind::LastSegment, subtype: 0 };
    bench.put(page(60) + 3, &[1; 256]);
    bench.put(page(50) + 9, &[2; 256]);
    assert_eq!(bench.io(Sqe::write(1, io(100, 1)).with_sgl(&last)), Status::SUCCESS);
    let (found, _) = bench.fetch(Sqe::read(1, io(100, 1)), 512);
    assert_eq!(found, [[1; 256], [2; 256]].concat());
    let stats = &bench.function.dispatcher.stats;
    assert_eq!((stats.writes, stats.reads, stats.errors), (6, 6, 0));
    assert_eq!((stats.received_bytes, stats.sent_bytes), (562 * 512, 562 * 512));
    assert_eq!(stats.received_bytes, stats.received_copied_bytes);
    bench.end();
}

#[test]
fn commands_without_data_are_carried_out_and_a_compare_looks_at_what_is_there() {
    let mut bench = ready(Vec::new());
    let compare = |count| Sqe { opcode: 0x05, ..Sqe::write(1, io(0, count)) };
    assert_eq!(bench.send(Sqe::write(1, io(0, 16)), &[7; 8192]).status.status, Status::SUCCESS);
    assert_eq!(bench.send(compare(16), &[7; 8192]).status.status, Status::SUCCESS);
    assert_eq!(bench.send(compare(16), &[8; 8192]).status.status, Status::COMPARE_FAILURE);
    assert_eq!(bench.io(Sqe { opcode: 0x08, ..Sqe::write(1, io(0, 8)) }), Status::SUCCESS, "write zeroes");
    let range = DsmRange { cattr: 0, nlb: 8, slba: Lba(8) };
    let dsm =
        DatasetManagement { range_count: 1, deallocate: true, integral_read: false, integral_write: false };
    assert_eq!(bench.send(Sqe::dataset_management(1, dsm), &range.encode()).status.status, Status::SUCCESS);
    assert_eq!(bench.fetch(Sqe::read(1, io(0, 16)), 8192).0, [0; 8192]);
    assert_eq!([bench.io(Sqe::flush(1)), bench.io(Sqe::flush(u32::MAX))], [Status::SUCCESS; 2]);
    let page = bench.ask(log(LogPageId::ERROR_INFORMATION, 4096)).unwrap();
    let newest = ErrorLogEntry::decode(&page[..64]).unwrap();
    assert_eq!((newest.error_count, newest.status.status, newest.sqid), (1, Status::COMPARE_FAILURE, 1));
    bench.end();
}

#[test]
fn a_transaction_of_a_megabyte_is_one_request_over_lists_of_pages() {
    let mut bench = powered(&[("a-whole", 4096)], Vec::new(), [8, 4, 4]);
    bench.enable_with(ENABLE_ALL);
    bench.make_queue(1);
    let data: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
    assert_eq!(bench.send(Sqe::write(1, io(1024, 2048)), &data).status.status, Status::SUCCESS);
    assert_eq!(bench.function.disks.log.len(), 1, "one request");
    let (found, cqe) = bench.fetch(Sqe::read(1, io(1024, 2048)), data.len());
    assert!(cqe.status.status.is_success() && found == data);
    assert_eq!(bench.io(Sqe::write(1, io(0, 2049))), Status::INVALID_FIELD, "more than MDTS");
    bench.end();
}

#[test]
fn commands_that_find_no_memory_wait_and_all_are_answered() {
    // One piece of each size: commands of other queues wait too, and the admin queue does not.
    let mut bench = powered(&[("a", 1 << 11)], Vec::new(), [1, 1, 1]);
    bench.enable_with(ENABLE_ALL);
    bench.make_queue(1);
    bench.make_queue(2);
    bench.function.is_stuck = true;
    for queue in [1, 2] {
        for slot in 0..QUEUE_MAX {
            let sqe = bench.pointed(Sqe::read(1, io(slot.into(), 8)), 4096);
            bench.submit(queue, sqe);
        }
    }
    bench.run();
    assert_eq!(bench.function.dispatcher.pool.lent(), 3);
    assert!(bench.function.function.waits_for_room());
    assert!(bench.ask(log(LogPageId::SMART, 512)).is_ok(), "the admin queue goes on");
    bench.function.is_stuck = false;
    for queue in [1, 2] {
        for _ in 0..QUEUE_MAX {
            bench.run();
            assert_eq!(bench.take(queue).map(|cqe| cqe.status.status), Some(Status::SUCCESS));
        }
    }
    bench.end();
}

#[test]
fn features_are_the_guests_until_a_reset() {
    let mut bench = ready(Vec::new());
    assert_eq!(bench.carry_out(0, get(FeatureId::NUMBER_OF_QUEUES)).dw0, 0x003F_003F);
    assert_eq!(bench.admin(set(FeatureId::NUMBER_OF_QUEUES, 1 << 16 | 1)), Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(bench.admin(set(FeatureId::VOLATILE_WRITE_CACHE, 0)), Status::SUCCESS);
    bench.send(Sqe::write(1, io(0, 1)), &[1; 512]);
    let (_, op) = *bench.function.disks.log.last().unwrap();
    assert_eq!(op, ocssd_lightnvm::block::BlockOp::Write { fua: true }, "without a cache all is durable");
    bench.write(0x14, ENABLE_ALL & !1);
    bench.enable_with(ENABLE_ALL);
    assert_eq!(bench.carry_out(0, get(FeatureId::VOLATILE_WRITE_CACHE)).dw0, 1);
    let granted = bench.carry_out(0, set(FeatureId::NUMBER_OF_QUEUES, 1 << 16 | 1));
    assert_eq!((granted.status.status, granted.dw0), (Status::SUCCESS, 0x0001_0001));
    bench.make_queue(2);
    let third = super::super::super::bench::create_completion(3);
    assert_eq!(bench.admin(third), Status::INVALID_QUEUE_ID, "two were granted");
    bench.end();
}

#[test]
fn a_reset_ends_commands_unheard_and_what_comes_next_is_not_overtaken() {
    let mut bench = ready(Vec::new());
    bench.function.is_stuck = true;
    bench.put(page(16), &[1; 4096]);
    for _ in 0..3 {
        let sqe = bench.pointed(Sqe::write(1, io(0, 8)), 4096);
        bench.submit(1, sqe);
    }
    bench.run();
    bench.write(0x14, ENABLE_ALL & !1);
    assert_eq!(bench.csts(), 0);
    bench.enable_with(ENABLE_ALL);
    assert!(bench.take(0).is_none() && bench.csts() == 1);
    bench.function.is_stuck = false;
    bench.make_queue(1);
    assert_eq!(bench.send(Sqe::write(1, io(0, 8)), &[2; 4096]).status.status, Status::SUCCESS);
    assert_eq!(bench.fetch(Sqe::read(1, io(0, 8)), 4096).0, [2; 4096]);
    assert!(bench.take(1).is_none(), "nobody hears of the others");
    bench.end();
}

#[test]
fn a_shutdown_flushes_every_export_once_commands_have_ended() {
    let mut bench = ready(Vec::new());
    bench.function.is_stuck = true;
    bench.put(page(16), &[1; 512]);
    let sqe = bench.pointed(Sqe::write(1, io(0, 1)), 512);
    bench.submit(1, sqe);
    bench.write(0x14, ENABLE_ALL | 1 << 14);
    bench.run();
    assert_eq!(bench.csts(), 1 | 1 << 2, "it is on its way");
    bench.function.is_stuck = false;
    bench.run();
    assert_eq!(bench.csts(), 1 | 2 << 2);
    let flushes =
        bench.function.disks.log.iter().filter(|(_, op)| *op == ocssd_lightnvm::block::BlockOp::Flush);
    assert_eq!(flushes.count(), 2);
    let (last, first) = (bench.function.disks.log.len() - 1, bench.function.disks.log[0].1);
    assert!(last == 2 && first == ocssd_lightnvm::block::BlockOp::Write { fua: false });
    bench.end();
}

#[test]
fn an_unmapped_page_of_lists_is_seen_before_anything_is_asked() {
    let mut bench = ready(Vec::new());
    let nowhere = HostAddress(1 << 40);
    let here = HostAddress(page(16));
    for sqe in [
        Sqe::write(1, io(0, 8)).with_prps(nowhere, HostAddress(0)),
        Sqe::write(1, io(0, 16)).with_prps(here, nowhere),
        Sqe::read(1, io(0, 8)).with_prps(nowhere, HostAddress(0)),
        Sqe::read(1, io(0, 32)).with_prps(here, nowhere),
    ] {
        assert_eq!(bench.io(sqe), Status::DATA_TRANSFER_ERROR, "{sqe:?}");
    }
    assert!(bench.function.disks.log.is_empty(), "{:?}", bench.function.disks.log);
    bench.end();
}
