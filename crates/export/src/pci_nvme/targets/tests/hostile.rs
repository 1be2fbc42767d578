//! Guests that do what none may: a status, or a controller that has given up; never more.

use super::super::super::bench::{ENABLE, page};
use super::{ENABLE_ALL, io, powered, ready};
use crate::model_targets::{keys, pages, zones};
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::pages::FlushPages;
use ocssd_nvme::sqe::Psdt;
use ocssd_nvme::{HostAddress, Sqe};

#[test]
fn what_cannot_be_asked_has_its_status_and_reaches_no_target() {
    let mut bench = ready(vec![("z", zones()), ("k", keys()), ("p", pages())]);
    let too_long =
        FlushPages { session: 1, wsn: 1, bytes: 300 << 10, rows: 0, force_unit_access: false, stage: None };
    let at = |sqe: Sqe| sqe.with_prps(HostAddress(page(16)), HostAddress(page(17)));
    let table = [
        (at(Sqe::read(1, io(1 << 11, 1))), Status::LBA_OUT_OF_RANGE),
        (at(Sqe::write(2, io(0, 1))), Status::WRITE_TO_READ_ONLY),
        (at(Sqe::read(9, io(0, 1))), Status::INVALID_NAMESPACE),
        (at(Sqe::read(0, io(0, 1))), Status::INVALID_NAMESPACE),
        (at(Sqe::read(1, io(0, 513))), Status::INVALID_FIELD),
        (at(Sqe::read(1, io(0, 1 << 16))), Status::INVALID_FIELD),
        (Sqe { psdt: Psdt::Reserved, ..at(Sqe::read(1, io(0, 1))) }, Status::INVALID_FIELD),
        (
            Sqe::read(1, io(0, 8)).with_prps(HostAddress(page(16) + 1), HostAddress(0)),
            Status::INVALID_PRP_OFFSET,
        ),
        (
            Sqe::read(1, io(0, 16)).with_prps(HostAddress(page(16)), HostAddress(4)),
            Status::INVALID_PRP_OFFSET,
        ),
        (Sqe { opcode: 0x0D, ..at(Sqe::read(1, io(0, 1))) }, Status::INVALID_OPCODE),
        // Opcodes of other command sets.
        (Sqe { opcode: 0x7D, ..at(Sqe::write(1, io(0, 1))) }, Status::INVALID_OPCODE),
        (Sqe { opcode: 0x93, ..at(Sqe::read(3, io(0, 1))) }, Status::INVALID_OPCODE),
        (Sqe { opcode: 0x03, ..at(Sqe::read(4, io(0, 1))) }, Status::INVALID_OPCODE),
        (Sqe { opcode: 0x02, ..at(Sqe::read(5, io(0, 1))) }, Status::INVALID_OPCODE),
        // A report longer than any transfer, and one too short for its header.
        (Sqe { opcode: 0x7A, cdw12: u32::MAX, ..at(Sqe::read(3, io(0, 1))) }, Status::INVALID_FIELD),
        (Sqe { opcode: 0x7A, cdw12: 3, ..at(Sqe::read(3, io(0, 1))) }, Status::INVALID_FIELD),
        // Keys of no length there is, and values longer than a transfer.
        (Sqe { opcode: 0x01, cdw10: 8, cdw11: 17, ..at(Sqe::write(4, io(0, 1))) }, Status::INVALID_KEY_SIZE),
        (
            Sqe { opcode: 0x01, cdw10: u32::MAX, cdw11: 1, ..at(Sqe::write(4, io(0, 1))) },
            Status::INVALID_FIELD,
        ),
        (at(Sqe::flush_pages(5, too_long)), Status::INVALID_FIELD),
    ];
    for (sqe, expected) in table {
        assert_eq!(bench.io(sqe), expected, "{sqe:?}");
    }
    assert!(bench.function.disks.log.is_empty());
    assert_eq!(bench.csts(), 1, "it goes on");
    bench.end();
}

#[test]
fn admin_commands_that_cannot_be_carried_out_are_refused_one_by_one() {
    let mut bench = ready(Vec::new());
    let here = |sqe: Sqe| sqe.with_prps(HostAddress(page(4)), HostAddress(0));
    let identify = Sqe { opcode: 0x06, cdw10: 1, ..Sqe::default() };
    let table = [
        (Sqe { psdt: Psdt::SglContiguousMetadata, ..here(identify) }, Status::INVALID_FIELD),
        (identify.with_prps(HostAddress(1 << 40), HostAddress(0)), Status::DATA_TRANSFER_ERROR),
        (identify.with_prps(HostAddress(page(4) + 1), HostAddress(0)), Status::INVALID_PRP_OFFSET),
        (Sqe { cdw10: 0x7F, ..here(identify) }, Status::INVALID_FIELD),
        (Sqe { opcode: 0x02, cdw10: 0xFFFF_0001, cdw11: 0xFFFF, ..here(identify) }, Status::INVALID_FIELD),
        (Sqe { opcode: 0x02, cdw10: 0x0070, ..here(identify) }, Status::INVALID_LOG_PAGE),
        (Sqe { opcode: 0x80, ..here(identify) }, Status::INVALID_OPCODE),
        (Sqe { opcode: 0x7F, ..here(identify) }, Status::INVALID_OPCODE),
        (Sqe { opcode: 0xE2, nsid: 1, ..here(identify) }, Status::INVALID_OPCODE),
    ];
    for (sqe, expected) in table {
        assert_eq!(bench.admin(sqe), expected, "{sqe:?}");
    }
    bench.end();
}

#[test]
fn memory_that_is_taken_back_before_the_answer_is_an_error_of_the_transfer() {
    let mut bench = ready(Vec::new());
    bench.function.is_stuck = true;
    let sqe = bench.pointed(Sqe::read(1, io(0, 8)), 4096);
    bench.submit(1, sqe);
    bench.run();
    // The page is not the guest's any more; its queues are, which lie below.
    bench.function.function.port.memory.shrink(usize::try_from(page(16) - super::MEMORY).unwrap());
    bench.function.is_stuck = false;
    bench.run();
    let cqe = bench.take(1).expect("it has ended");
    assert_eq!((cqe.status.status, cqe.status.dnr), (Status::DATA_TRANSFER_ERROR, false));
    assert_eq!(bench.function.dispatcher.stats.sent_bytes, 0);
    bench.end();
}

#[test]
fn a_function_that_is_reset_again_and_again_keeps_nothing() {
    let mut bench = powered(&[("a", 1 << 11), ("b", 64)], vec![("k", keys())], [2, 1, 1]);
    for round in 0..20u32 {
        bench.enable_with(if round % 2 == 0 { ENABLE } else { ENABLE_ALL });
        bench.function.is_stuck = false;
        bench.make_queue(1);
        bench.function.is_stuck = true;
        for slot in 0..5 {
            let sqe = bench
                .pointed(Sqe { opcode: 1 + u8::try_from(slot % 2).unwrap(), ..Sqe::read(1, io(0, 8)) }, 4096);
            bench.submit(1, sqe);
        }
        if round % 3 == 0 {
            bench.write(0x14, ENABLE_ALL | 1 << 14);
        }
        bench.run();
        match round % 4 {
            0 => bench.write(0x14, ENABLE_ALL & !1),
            1 => crate::pci_nvme::PciFunction::reset(&mut bench.function.attended(), Nanos::ZERO),
            _ => {
                bench.write(0x14, ENABLE_ALL & !1);
                crate::pci_nvme::PciFunction::reset(&mut bench.function.attended(), Nanos::ZERO);
            }
        }
    }
    bench.end();
}

#[test]
fn there_are_so_many_controllers_and_one_more_does_not_begin() {
    let mut bench = powered(&[("a", 64)], Vec::new(), [1, 1, 1]);
    let arrival = crate::nvme_subsystem::Arrival {
        admin: (0, 0),
        local: None,
        transport: crate::nvme_subsystem::TransportTraits::EXAMPLE,
        now: Nanos::ZERO,
    };
    let subsystem = bench.function.dispatcher.subsystem.as_mut().unwrap();
    let purpose = crate::nvme_subsystem::Purpose::Io;
    let mut others: Vec<u16> = std::iter::from_fn(|| subsystem.attach(purpose, &arrival)).collect();
    assert_eq!(others.len(), 256);
    bench.enable_with(ENABLE_ALL);
    assert_eq!(bench.csts() & 2, 2, "CSTS.CFS");
    bench.write(0x14, ENABLE_ALL & !1);
    let subsystem = bench.function.dispatcher.subsystem.as_mut().unwrap();
    subsystem.leave(others.pop().unwrap(), (0, 0));
    bench.enable_with(ENABLE_ALL);
    assert_eq!(bench.csts(), 1);
    let subsystem = bench.function.dispatcher.subsystem.as_mut().unwrap();
    others.into_iter().for_each(|cntlid| drop(subsystem.leave(cntlid, (0, 0))));
    bench.end();
}
