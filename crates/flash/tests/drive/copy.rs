//! Vector copy: content with its metadata, the rules of both sides, time, and order beside writes.

use crate::rig::{Ended, Rig, ppa, preset, run};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::Config;
use ocssd_lightnvm::{Addresses, ChunkId, Command, Completion, Device, Op, Ppa, Rule, Status};

/// Chunk 0 is full, with ids 100 and up.
fn rig(change: impl FnOnce(&mut Config)) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    change(&mut config);
    let mut rig = Rig::new(config);
    rig.fill_chunk(0, 100);
    rig
}

fn span(chunk: u32, from: u32, count: u32) -> impl Iterator<Item = Ppa> {
    (from..from + count).map(move |sector| ppa(chunk, sector))
}

fn copy(rig: &mut Rig, from: impl Iterator<Item = Ppa>, to: impl Iterator<Item = Ppa>) -> Command {
    let list: Vec<Ppa> = from.chain(to).collect();
    rig.vector(Op::Copy, &list)
}

#[test]
fn a_copy_moves_content_and_metadata_to_several_chunks() {
    let mut rig = rig(|_| ());
    let command = copy(&mut rig, span(0, 3, 8).chain(span(0, 20, 8)), span(8, 0, 8).chain(span(16, 0, 8)));
    assert_eq!(rig.one(command).1, Completion::success(command.tag));
    for (chunk, first) in [(8, 103), (16, 120)] {
        rig.read(ppa(chunk, 0), 8);
        let ids: Vec<u64> = (0..8).map(|sector| rig.id_of(rig.buffer, sector)).collect();
        assert_eq!(ids, (first..first + 8).collect::<Vec<_>>());
    }
    assert_eq!(rig.drive.counters().sectors_copied, 16);
    rig.drive.check();
}

#[test]
fn a_copy_senses_moves_and_programs_and_needs_no_link() {
    let mut rig = rig(|_| ());
    let command = copy(&mut rig, span(0, 0, 8), span(16, 0, 8));
    let unit = 1_000 + 8 * 10_280;
    assert_eq!(rig.one(command).0, Nanos(40_000 + unit + unit + 300_000 + 5_000));
}

#[test]
fn sources_follow_the_rules_of_reads_and_destinations_those_of_writes() {
    let table = [
        (
            "unwritten source",
            span(1, 0, 4).chain(span(0, 0, 0)),
            span(2, 0, 4),
            Status::UNWRITTEN,
            Rule::Readable,
        ),
        (
            "no such source",
            span(40, 0, 4).chain(span(0, 0, 0)),
            span(2, 0, 4),
            Status::UNWRITTEN,
            Rule::Readable,
        ),
        (
            "half unwritten",
            span(0, 0, 2).chain(span(1, 0, 2)),
            span(2, 0, 4),
            Status::UNWRITTEN,
            Rule::Readable,
        ),
        (
            "closed target",
            span(0, 0, 4).chain(span(0, 0, 0)),
            span(0, 0, 4),
            Status::WRITE_FAULT,
            Rule::Writable,
        ),
        (
            "not at the pointer",
            span(0, 0, 4).chain(span(0, 0, 0)),
            span(2, 4, 4),
            Status::OUT_OF_ORDER,
            Rule::WritePointer,
        ),
        (
            "below WS_MIN",
            span(0, 0, 2).chain(span(0, 0, 0)),
            span(2, 0, 2),
            Status::INVALID_FIELD,
            Rule::WriteUnit,
        ),
        (
            "no such target",
            span(0, 0, 4).chain(span(0, 0, 0)),
            span(40, 0, 4),
            Status::WRITE_FAULT,
            Rule::AddressExists,
        ),
    ];
    for (name, from, to, status, rule) in table {
        let mut rig = rig(|_| ());
        let before = rig.report();
        let command = copy(&mut rig, from, to);
        let count = command.addresses.count();
        let (_, end) = rig.one(command);
        assert_eq!((end.status, end.failed), (status, (1 << count) - 1), "{name}");
        assert_eq!(end.violation.map(|violation| violation.rule), Some(rule), "{name}");
        assert_eq!(rig.report(), before, "{name}");
    }
    let mut rig = rig(|config| config.geometry.capabilities.vector_copy = false);
    let command = copy(&mut rig, span(0, 0, 4), span(2, 0, 4));
    let (_, end) = rig.one(command);
    assert_eq!(end.violation.map(|violation| violation.rule), Some(Rule::Supported));
    assert_eq!(end.status, Status::INVALID_OPCODE);
}

#[test]
fn a_lost_source_leaves_the_destination_unwritten() {
    let mut rig = rig(|_| ());
    rig.drive.schedule_fault(ocssd_flash::ScheduledFault {
        kind: ocssd_flash::FaultKind::UnrecoveredRead,
        chunk: ChunkId(0),
        sector: Some(2),
        times: 1,
    });
    let before = rig.report();
    let command = copy(&mut rig, span(0, 0, 4), span(2, 0, 4));
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::UNRECOVERED_READ, 0b1111));
    assert_eq!(rig.report(), before);
}

/// Plays commands that change chunk 8 in this order, and cuts the power at every end: what the host was told is there.
fn told_changes_survive(mut rig: Rig, name: &str, arrivals: &[(u64, Command, u32)]) {
    let start = rig.now;
    let mut told: Vec<(Ended, u32)> = Vec::new();
    let mut waiting = arrivals.iter().peekable();
    while told.len() < arrivals.len() {
        let arrival = waiting.peek().map(|&&(at, ..)| start + Nanos(at));
        rig.now =
            rig.now.max(arrival.into_iter().chain(rig.drive.deadline()).min().expect("commands in flight"));
        while let Some(completion) = rig.drive.poll_completion(rig.now, &mut rig.buffers) {
            assert!(completion.status.is_success(), "{name}: {completion:?}");
            let (.., end) =
                arrivals.iter().find(|(_, command, _)| command.tag == completion.tag).expect("ours");
            told.push((Ended { at: rig.now, completion }, *end));
            let mut cut = rig.drive.fork().expect("content is in memory");
            cut.power_cut(rig.now, &mut Prng::new(5)).expect("memory does not fail");
            let pointer = cut.chunk(ChunkId(8)).write_pointer.expect("the chunk is not offline");
            assert!(pointer >= *end, "{name}: told of {end} sectors, {pointer} survived");
            cut.check();
        }
        while let Some((_, command, _)) = waiting.next_if(|&&(at, ..)| start + Nanos(at) <= rig.now) {
            rig.drive.submit(rig.now, *command, &mut rig.buffers).expect("room");
        }
    }
    rig.settle();
    assert_eq!(rig.read(ppa(8, 0), arrivals[arrivals.len() - 1].2).1.status, Status::SUCCESS, "{name}");
}

/// A copy's programs wait for its reads and a write's for the link; each must wait for the other if it came first.
#[test]
fn writes_and_copies_of_one_chunk_reach_the_media_in_their_order() {
    for (name, cache, protected) in [("no cache", 0, false), ("cache with protection", 128, true)] {
        let prepare =
            || rig(|config| (config.cache.sectors, config.cache.power_loss_protection) = (cache, protected));
        let mut first = prepare();
        let commands = [
            (0, copy(&mut first, span(0, 0, 8), span(8, 0, 8)), 8),
            (1, first.command(Op::Write { fua: false }, run(ppa(8, 8), 8)), 16),
        ];
        told_changes_survive(first, &format!("{name}, copy then write"), &commands);

        let mut second = prepare();
        // A long write keeps the link busy; the copy's source row is in the register, so that its reads are fast.
        second.read(ppa(0, 0), 8);
        let write = second.command(Op::Write { fua: false }, run(ppa(8, 0), 8));
        let long = second.command(Op::Write { fua: false }, run(ppa(16, 0), 32));
        let others = second.command(Op::Write { fua: false }, run(ppa(17, 0), 32));
        for command in [long, others] {
            second.drive.submit(second.now, command, &mut second.buffers).expect("room");
        }
        let start = second.now;
        second.drive.submit(start, write, &mut second.buffers).expect("room");
        let moved = copy(&mut second, span(0, 0, 8), span(8, 8, 8));
        second.drive.submit(start, moved, &mut second.buffers).expect("room");
        let mut order = Vec::new();
        while let Some(at) = second.drive.deadline() {
            second.now = at;
            while let Some(end) = second.drive.poll_completion(at, &mut second.buffers) {
                order.push(end.tag);
            }
        }
        let place = |tag| order.iter().position(|&other| other == tag).expect("it ended");
        assert!(place(write.tag) < place(moved.tag), "{name}: the copy overtook the write it follows");
    }
}

#[test]
fn a_reset_of_a_chunk_that_a_copy_fills_comes_after_the_copy() {
    let mut rig = rig(|_| ());
    let command = copy(&mut rig, span(0, 0, 32), span(8, 0, 32));
    let reset = rig.command(Op::Reset, run(ppa(8, 0), 1));
    let start = rig.now;
    let ended = rig.play(&[(start, command), (start, reset)]);
    let tags: Vec<_> = ended.iter().map(|end| end.completion.tag).collect();
    assert_eq!(tags, [command.tag, reset.tag]);
    assert_eq!(rig.read(ppa(8, 0), 1).1.status, Status::UNWRITTEN);
}

#[test]
fn a_copy_in_a_flush_is_waited_for() {
    let mut rig = rig(|_| ());
    let command = copy(&mut rig, span(0, 0, 8), span(8, 0, 8));
    let flush = rig.command(Op::Flush, Addresses::None);
    let start = rig.now;
    let ended = rig.play(&[(start, command), (start, flush)]);
    assert_eq!(ended[0].at, ended[1].at);
}
