//! A target's typed commands and a host's entries on one drive: each side hears of its own, in time.

use crate::host::{Buffers as HostBuffers, Host, SOMEWHERE, addresses, bits, scalar, tiny};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::controller::Controller;
use ocssd_lightnvm::{Addresses, Buffers, ChunkId, Command, Device, Op, PlaneMode, Ppa, Status, Tag};
use ocssd_nvme::{Cqe, Sqe};

fn typed(tag: u32, op: Op, chunk: u32, buffer: ocssd_lightnvm::BufId) -> Command {
    let addresses = Addresses::Run { first: Ppa::new(ChunkId(chunk), 0), count: 8 };
    Command {
        tag: Tag(tag),
        op,
        addresses,
        buffer: Some(buffer),
        buffer_first: 0,
        oob: false,
        plane_mode: PlaneMode::Single,
    }
}

#[test]
fn whoever_asks_first_keeps_the_ends_of_the_other_side() {
    for typed_first in [true, false] {
        let mut host = Host::new(tiny());
        let mut buffers = Buffers::new(host.controller.flash().payload_format());
        let buffer = buffers.take(8);
        buffers.data_mut(buffer, 0, 8).fill(7);
        let write = typed(5, Op::Write { fua: true }, 8, buffer);
        Device::submit(&mut host.controller, Nanos::ZERO, write, &mut buffers).expect("room");
        let mut data = HostBuffers::sectors(4, 1);
        let at = host.lba(0, 0);
        let cid = host.submit(Sqe::write(1, scalar(at, 4)).with_mptr(SOMEWHERE), &mut data);
        // Later than both.
        let late = Nanos::from_micros(100_000);
        let mut ends = (None, None);
        for ask_typed in [typed_first, !typed_first] {
            if ask_typed {
                ends.0 = host.controller.poll_completion(late, &mut buffers);
            } else {
                ends.1 = host.controller.poll(late);
            }
            let waits = Controller::deadline(&host.controller).is_some_and(|at| at <= late);
            assert_eq!(waits, ask_typed == typed_first, "the other side's end is due");
        }
        let end = ends.0.expect("the typed command has ended");
        assert_eq!((end.tag, end.status), (Tag(5), Status::SUCCESS));
        let (queue, bytes) = ends.1.expect("the entry has ended");
        let cqe = Cqe::decode(&bytes);
        assert_eq!((queue, cqe.cid, bits(&cqe)), (3, cid, 0));
        assert!(host.controller.poll(late).is_none());
        assert!(host.controller.poll_completion(late, &mut buffers).is_none());
    }
}

/// The bytes that a target wants of a sector are in its buffer when it hears of the read, whoever found its end first, and are
/// those that were there when the read was taken although an entry resets their chunk meanwhile.
#[test]
fn wanted_bytes_of_a_target_are_there_whatever_entries_come_between() {
    for (resets, found_by_host) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut host = Host::new(tiny());
        host.fill(0, 32);
        let mut buffers = Buffers::new(host.controller.flash().payload_format());
        let (whole, part) = (buffers.take_whole(8), buffers.take_whole(8));
        buffers.want(part, 4_000..8_000);
        for (tag, buffer) in [(1, whole), (2, part)] {
            let read = typed(tag, Op::Read, 0, buffer);
            Device::submit(&mut host.controller, host.now, read, &mut buffers).expect("room");
        }
        if resets {
            let chunk = host.lba(0, 0);
            host.submit(Sqe::vector_reset(1, addresses(&[chunk]), None), &mut HostBuffers::default());
        }
        let late = host.now + Nanos::from_micros(100_000);
        if found_by_host {
            assert_eq!(host.controller.poll(late).is_some(), resets, "the other ends are the target's");
        }
        for _ in 0..2 {
            let end = host.controller.poll_completion(late, &mut buffers).expect("the read has ended");
            assert_eq!(end.status, Status::SUCCESS);
        }
        let (expected, found) = (buffers.whole(whole, 0, 8), buffers.whole(part, 0, 8));
        assert!(expected.iter().any(|&byte| byte != 0), "there is content to read");
        assert!(found[4_000..8_000] == expected[4_000..8_000], "resets {resets}, by host {found_by_host}");
    }
}

#[test]
fn working_ahead_stops_at_the_controllers_own_answers() {
    let mut host = Host::new(tiny());
    let mut buffers = Buffers::new(host.controller.flash().payload_format());
    let buffer = buffers.take(8);
    let write = typed(0, Op::Write { fua: true }, 8, buffer);
    Device::submit(&mut host.controller, Nanos::ZERO, write, &mut buffers).expect("room");
    host.submit(Sqe { opcode: 0x7F, ..Sqe::flush(1) }, &mut HostBuffers::default());
    let answer = host.controller.work_ahead(Nanos::MAX).expect("an answer is due");
    let (_, bytes) = host.controller.poll(answer).expect("the refusal");
    assert_eq!(bits(&Cqe::decode(&bytes)), 0x4001);
    assert!(host.controller.poll_completion(answer, &mut buffers).is_none(), "the program takes longer");
    let end = host.controller.work_ahead(Nanos::MAX).expect("the program ends");
    assert!(end > answer && host.controller.work_ahead(end).is_none());
    assert!(host.controller.poll_completion(end, &mut buffers).is_some());
}

#[test]
fn a_power_cut_loses_the_commands_of_both_sides() {
    let mut host = Host::new(tiny());
    let mut buffers = Buffers::new(host.controller.flash().payload_format());
    let buffer = buffers.take(8);
    let write = typed(0, Op::Write { fua: true }, 8, buffer);
    Device::submit(&mut host.controller, Nanos::ZERO, write, &mut buffers).expect("room");
    let at = host.lba(0, 0);
    host.submit(Sqe::write(1, scalar(at, 4)), &mut HostBuffers::sectors(4, 1));
    let report = host.controller.power_cut(Nanos(1), &mut Prng::new(1)).expect("memory does not fail");
    assert_eq!(report.commands, 2);
    assert!(Controller::deadline(&host.controller).is_none());
}
