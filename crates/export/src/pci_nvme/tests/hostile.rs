//! Guests that do what none may: they get a status, or a controller that has given up; never more.

use super::super::bench::{
    Bench, ENABLE, ENTRIES, completion_at, create_completion, create_submission, page,
};
use ocssd_lightnvm::Status;
use ocssd_nvme::sgl::{SglDescriptor, SglKind};
use ocssd_nvme::sqe::{Psdt, ReadWrite, Vector};
use ocssd_nvme::{AddressList, HostAddress, Lba, Sqe};

/// Far outside the guest's memory.
const NOWHERE: u64 = 1 << 40;
/// CSTS.CFS.
const FATAL: u32 = 2;

fn read(block_count: u32) -> Sqe {
    Sqe::read(1, ReadWrite { slba: Lba(0), block_count, limited_retry: false, force_unit_access: false })
}

fn write(block_count: u32) -> Sqe {
    Sqe { opcode: 0x01, ..read(block_count) }
}

#[test]
fn pointers_into_nothing_are_errors_of_the_command() {
    let mut bench = Bench::ready();
    let prps = |sqe: Sqe, one, two| sqe.with_prps(HostAddress(one), HostAddress(two));
    let many =
        |at| Vector { lbas: AddressList::Many { at: HostAddress(at), count: 4 }, limited_retry: false };
    let segment = |address, length_bytes| SglDescriptor {
        address,
        length_bytes,
        kind: SglKind::LastSegment,
        subtype: 0,
    };
    let metadata_segment = Sqe { psdt: Psdt::SglSegmentMetadata, ..read(1) };
    let table = [
        (prps(read(1), page(0) + 1, 0), Status::INVALID_PRP_OFFSET),
        (prps(write(16), page(0), page(1) + 4), Status::INVALID_PRP_OFFSET),
        (prps(read(32), page(0), page(1) + 4), Status::INVALID_PRP_OFFSET),
        (prps(read(1), NOWHERE, 0), Status::DATA_TRANSFER_ERROR),
        (prps(write(1), NOWHERE, 0), Status::DATA_TRANSFER_ERROR),
        (prps(write(1), 0, 0), Status::DATA_TRANSFER_ERROR),
        (prps(read(1), u64::MAX - 3, 0), Status::DATA_TRANSFER_ERROR),
        (prps(read(32), page(0), NOWHERE), Status::DATA_TRANSFER_ERROR),
        (prps(read(1), page(0), 0).with_mptr(HostAddress(NOWHERE)), Status::DATA_TRANSFER_ERROR),
        (prps(write(1), page(0), 0).with_mptr(HostAddress(u64::MAX)), Status::DATA_TRANSFER_ERROR),
        (prps(Sqe::vector_read(1, many(NOWHERE)), page(0), 0), Status::DATA_TRANSFER_ERROR),
        (prps(Sqe::vector_write(1, many(u64::MAX - 7)), page(0), 0), Status::DATA_TRANSFER_ERROR),
        (read(1).with_sgl(&segment(page(0), 8)), Status::INVALID_SGL_SEGMENT),
        (read(1).with_sgl(&segment(NOWHERE, 16)), Status::DATA_TRANSFER_ERROR),
        (metadata_segment.with_mptr(HostAddress(NOWHERE)), Status::INVALID_SGL_LENGTH),
    ];
    for (sqe, expected) in table {
        assert_eq!(bench.io(sqe), expected, "{sqe:?}");
    }
    assert_eq!((bench.csts(), bench.function.drive.sectors.len()), (1, 0), "nothing reached the drive");
}

#[test]
fn lengths_above_a_transfer_move_nothing() {
    let mut bench = Bench::ready();
    // 64 KiB is the most; the drive decides what it says to more, and has been given none of it.
    assert_eq!(bench.io(read(65_536).with_prps(HostAddress(NOWHERE), HostAddress(NOWHERE))), Status::SUCCESS);
    assert_eq!(bench.function.counters().sent_bytes, 0);
    let log = Sqe { opcode: 0x02, cdw10: 0xFFFF_0002, cdw11: 0xFFFF, ..Sqe::default() };
    assert_eq!(bench.admin(log.with_prps(HostAddress(page(0)), HostAddress(0))), Status::INVALID_FIELD);
}

#[test]
fn data_pointers_of_no_kind_are_refused() {
    let mut bench = Bench::ready();
    let identify = Sqe { opcode: 0x06, cdw10: 1, ..Sqe::default() };
    for psdt in [Psdt::SglContiguousMetadata, Psdt::SglSegmentMetadata, Psdt::Reserved] {
        assert_eq!(bench.admin(Sqe { psdt, ..identify }), Status::INVALID_FIELD, "{psdt:?}");
    }
    assert_eq!(bench.io(Sqe { psdt: Psdt::Reserved, ..read(1) }), Status::INVALID_FIELD);
    assert!(bench.function.drive.asked.is_empty());
}

#[test]
fn queues_that_cannot_be_are_refused() {
    let mut bench = Bench::ready();
    let (completion, submission) = (create_completion(2), create_submission(2));
    let size = |sqe: Sqe, size: u32, qid: u32| Sqe { cdw10: size << 16 | qid, ..sqe };
    let at = |sqe: Sqe, at| sqe.with_prps(HostAddress(at), HostAddress(0));
    let refused = [
        (size(completion, 0, 2), Status::INVALID_QUEUE_SIZE),
        (size(completion, 1024, 2), Status::INVALID_QUEUE_SIZE),
        (size(completion, 0xFFFF, 2), Status::INVALID_QUEUE_SIZE),
        (size(completion, 7, 0), Status::INVALID_QUEUE_ID),
        (size(completion, 7, 1), Status::INVALID_QUEUE_ID),
        (size(completion, 7, 65), Status::INVALID_QUEUE_ID),
        (size(completion, 7, 0xFFFF), Status::INVALID_QUEUE_ID),
        (Sqe { cdw11: 65 << 16 | 3, ..completion }, Status::INVALID_INTERRUPT_VECTOR),
        (Sqe { cdw11: 2, ..completion }, Status::INVALID_FIELD),
        (at(completion, page(0) + 8), Status::INVALID_PRP_OFFSET),
        (size(submission, 0, 2), Status::INVALID_QUEUE_SIZE),
        (size(submission, 7, 1), Status::INVALID_QUEUE_ID),
        (Sqe { cdw11: 1, ..submission }, Status::INVALID_QUEUE_ID),
        (Sqe { cdw11: 66 << 16 | 1, ..submission }, Status::INVALID_QUEUE_ID),
        (Sqe { cdw11: 3 << 16 | 1, ..submission }, Status::CQ_INVALID),
        (Sqe { opcode: 0x00, cdw10: 0, ..Sqe::default() }, Status::INVALID_QUEUE_ID),
        (Sqe { opcode: 0x00, cdw10: 9, ..Sqe::default() }, Status::INVALID_QUEUE_ID),
        (Sqe { opcode: 0x04, cdw10: 0, ..Sqe::default() }, Status::INVALID_QUEUE_ID),
        (Sqe { opcode: 0x04, cdw10: 1, ..Sqe::default() }, Status::INVALID_QUEUE_DELETION),
    ];
    for (sqe, expected) in refused {
        assert_eq!(bench.admin(sqe), expected, "{sqe:?}");
    }
    assert_eq!((bench.admin(completion), bench.admin(submission)), (Status::SUCCESS, Status::SUCCESS));
}

#[test]
fn doorbells_beyond_their_queue_change_nothing() {
    let mut bench = Bench::ready();
    for (offset, value) in [
        (0x1008, ENTRIES),
        (0x1008, u32::MAX),
        (0x100C, 5),
        (0x100C, ENTRIES),
        (0x1010, 1),
        (0x1014, 1),
        (0x1FF8, 1),
        (0x1FFC, 0xFFFF),
    ] {
        bench.write(offset, value);
        bench.run();
    }
    assert_eq!(bench.csts(), 1);
    assert_eq!(bench.io(Sqe::flush(1)), Status::SUCCESS);
}

#[test]
fn admin_queues_outside_memory_end_in_a_fatal_status_until_a_reset() {
    for (offset, value) in [(0x28, 0x1000), (0x2C, 7), (0x30, 0x1000), (0x34, 7)] {
        let mut bench = Bench::new();
        bench.enable();
        bench.write(0x14, ENABLE & !1);
        bench.write(offset, value);
        bench.write(0x14, ENABLE);
        bench.submit(0, Sqe { opcode: 0x18, ..Sqe::default() });
        bench.run();
        assert_eq!(bench.csts(), 1 | FATAL, "{offset:#x}");
        bench.write(0x14, ENABLE & !1);
        bench.write(offset, 0);
        bench.enable();
        assert_eq!((bench.csts(), bench.admin(Sqe { opcode: 0x18, ..Sqe::default() })), (1, Status::SUCCESS));
    }
}

#[test]
fn io_queues_outside_memory_end_in_a_fatal_status() {
    for spoil_submission in [true, false] {
        let mut bench = Bench::new();
        bench.enable();
        let at = |sqe: Sqe, spoil: bool| {
            if spoil { sqe.with_prps(HostAddress(NOWHERE), HostAddress(0)) } else { sqe }
        };
        assert_eq!(bench.admin(at(create_completion(1), !spoil_submission)), Status::SUCCESS);
        assert_eq!(bench.admin(at(create_submission(1), spoil_submission)), Status::SUCCESS);
        bench.submit(1, Sqe::flush(1));
        bench.run();
        assert_eq!((bench.csts(), bench.function.counters().fatals), (1 | FATAL, 1));
    }
}

#[test]
fn configurations_that_cannot_be_are_fatal() {
    for cc in [ENABLE | 1 << 7, ENABLE | 1 << 4, ENABLE | 1 << 11, 0x45_0001, 0x36_0001] {
        let mut bench = Bench::new();
        bench.write(0x24, 7 << 16 | 7);
        bench.write(0x14, cc);
        assert_eq!(bench.csts(), FATAL, "{cc:#x}");
        bench.write(0x1000, 1);
        bench.run();
    }
}

#[test]
fn a_controller_that_is_switched_off_in_the_middle_says_nothing_more() {
    let mut bench = Bench::ready();
    bench.function.drive.is_quick = false;
    for round in 0..20 {
        for _ in 0..round % 7 {
            bench.submit(1, Sqe::flush(1));
        }
        bench.run();
        bench.write(0x14, ENABLE & !1);
        assert_eq!(bench.csts(), 0);
        let before = bench.get(completion_at(1), 128);
        bench.function.drive.end_one();
        bench.run();
        bench.ring(1);
        bench.run();
        assert_eq!(bench.get(completion_at(1), 128), before, "round {round}");
        bench.function.drive.ended = 0;
        bench.enable();
        bench.make_queue(1);
    }
}

#[test]
fn doorbell_pages_that_cannot_be_are_refused() {
    let mut bench = Bench::ready();
    let config =
        |one, two| Sqe { opcode: 0x7C, ..Sqe::default() }.with_prps(HostAddress(one), HostAddress(two));
    for (one, two, expected) in [
        (page(0) + 4, page(1), Status::INVALID_FIELD),
        (page(0), page(1) + 8, Status::INVALID_FIELD),
        (0, page(1), Status::INVALID_FIELD),
        (NOWHERE, page(1), Status::DATA_TRANSFER_ERROR),
        (page(0), NOWHERE, Status::DATA_TRANSFER_ERROR),
    ] {
        assert_eq!(bench.admin(config(one, two)), expected);
    }
    assert_eq!(bench.io(Sqe::flush(1)), Status::SUCCESS, "registers go on");
}
