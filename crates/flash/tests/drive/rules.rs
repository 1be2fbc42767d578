//! Every row of the write and reset tables in `docs/ppa.md`: status, bitmap, which rule, and that nothing else changed.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_engine::{Caller, VirtualClock};
use ocssd_flash::{Config, FaultKind, FlashCounters, ScheduledFault};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, ChunkDescriptor, ChunkId, ChunkState, Command, Completion, Op, PlaneMode, Ppa,
    Rule, Status, Tag,
};

const WRITE: Op = Op::Write { fua: false };

fn config() -> Config {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config
}

/// Chunk 0 closed, 1 open at 16, 2 free, 3 offline, 4 closed early at 8; chunks of 32 sectors, WS_MIN 4, WS_OPT 8.
fn rig(change: impl FnOnce(&mut Config)) -> Rig {
    let mut config = config();
    change(&mut config);
    let mut rig = Rig::new(config);
    for chunk in [0, 3] {
        assert!(rig.write(ppa(chunk, 0), 32, 0).1.status.is_success());
    }
    rig.write_ok(4, 0..8, 0);
    let fault = |kind, chunk| ScheduledFault { kind, chunk: ChunkId(chunk), sector: None, times: 1 };
    rig.drive.schedule_fault(fault(FaultKind::ResetFailure, 3));
    assert_eq!(rig.reset(3).1.status, Status::OFFLINE_CHUNK);
    rig.drive.schedule_fault(fault(FaultKind::EarlyClose, 4));
    assert_eq!(rig.write(ppa(4, 8), 8, 0).1.status, Status::EARLY_CLOSE);
    rig.write_ok(1, 0..16, 0);
    rig
}

/// Everything a refused command must leave alone; that it was refused is counted.
fn fingerprint(rig: &Rig) -> (Vec<ChunkDescriptor>, FlashCounters) {
    (rig.report(), FlashCounters { refused: 0, ..rig.drive.counters() })
}

/// Runs a command that breaks `rule`; it must end with `status` on all its entries and change nothing.
fn refused(
    name: &str,
    rig: &mut Rig,
    command: Command,
    entries: u32,
    status: Status,
    rule: Rule,
) -> Completion {
    let before = fingerprint(rig);
    let refusals = rig.drive.counters().refused;
    let mut clock = VirtualClock::default();
    let Rig { drive, buffers, .. } = rig;
    let mut caller = Caller { device: drive, clock: &mut clock, buffers, cut_at: None };
    ocssd_engine::Clock::wait_until(caller.clock, rig.now);
    let end = caller.call(&[command]).expect("nobody cuts the power")[0];
    rig.now = ocssd_engine::Clock::now(&clock);
    let all = if entries >= 64 { u64::MAX } else { (1 << entries) - 1 };
    assert_eq!((end.status, end.failed), (status, all), "{name}");
    assert_eq!(end.violation.map(|violation| violation.rule), Some(rule), "{name}");
    assert_eq!(fingerprint(rig), before, "{name} changed the drive");
    assert_eq!(rig.drive.counters().refused, refusals + 1, "{name}");
    rig.drive.check();
    end
}

#[test]
fn every_row_of_the_write_table_that_refuses_changes_nothing() {
    let table = [
        ("open, below the pointer", ppa(1, 8), 8, Status::OUT_OF_ORDER, Rule::WritePointer),
        ("open, above the pointer", ppa(1, 20), 8, Status::OUT_OF_ORDER, Rule::WritePointer),
        ("free, not at its start", ppa(2, 4), 8, Status::OUT_OF_ORDER, Rule::WritePointer),
        ("closed", ppa(0, 0), 8, Status::WRITE_FAULT, Rule::Writable),
        ("closed early, at its pointer", ppa(4, 8), 8, Status::WRITE_FAULT, Rule::Writable),
        ("offline", ppa(3, 0), 8, Status::WRITE_FAULT, Rule::Writable),
        ("past the chunk's end", ppa(1, 16), 20, Status::WRITE_FAULT, Rule::WithinChunk),
        ("beyond the sectors", ppa(2, 32), 8, Status::WRITE_FAULT, Rule::AddressExists),
        ("no such chunk", ppa(32, 0), 8, Status::WRITE_FAULT, Rule::AddressExists),
        ("no address at all", Ppa::NOWHERE, 8, Status::WRITE_FAULT, Rule::AddressExists),
        ("not a multiple of WS_MIN", ppa(1, 16), 6, Status::INVALID_FIELD, Rule::WriteUnit),
        ("no sector", ppa(1, 16), 0, Status::INVALID_FIELD, Rule::VectorLength),
    ];
    for (name, first, count, status, rule) in table {
        let mut rig = rig(|_| ());
        let command = rig.command(WRITE, run(first, count));
        let end = refused(name, &mut rig, command, count, status, rule);
        let violation = end.violation.expect("a refusal says why");
        if count > 0 {
            assert_eq!(violation.at, first, "{name}");
            let list: Vec<Ppa> = (0..count).map(|step| Ppa::new(first.chunk, first.sector + step)).collect();
            let command = rig.vector(WRITE, &list);
            refused(name, &mut rig, command, count, status, rule);
        }
        let exists = first.chunk.0 < 32 && count > 0;
        assert_eq!(violation.chunk.is_some(), exists, "{name}: the state is told of a chunk that exists");
    }
}

#[test]
fn a_refusal_reads_as_a_sentence_with_status_place_rule_and_state() {
    let mut rig = rig(|_| ());
    let (_, end) = rig.write(ppa(1, 8), 8, 0);
    let geometry = rig.drive.config().geometry.clone();
    let sentence = end.violation.expect("refused").explain(&geometry, end.status);
    assert_eq!(
        sentence,
        "status 2F2h at g0/p0/c1/s8: a write starts at the chunk's write pointer (chunk is OPEN, write pointer 16)"
    );
}

#[test]
fn sound_writes_move_the_pointer_and_the_state() {
    let mut rig = rig(|_| ());
    let state = |rig: &Rig, chunk| {
        let descriptor = rig.drive.chunk(ChunkId(chunk));
        (descriptor.state, descriptor.write_pointer)
    };
    for (sector, count, after) in
        [(0, 4, ChunkState::Open), (4, 8, ChunkState::Open), (12, 20, ChunkState::Closed)]
    {
        assert_eq!(rig.write(ppa(2, sector), count, 0).1.status, Status::SUCCESS);
        assert_eq!(state(&rig, 2), (after, Some(sector + count)));
    }
    assert_eq!(rig.write(ppa(5, 0), 32, 0).1.status, Status::SUCCESS);
    assert_eq!(state(&rig, 5), (ChunkState::Closed, Some(32)), "one write may fill a FREE chunk");
    assert_eq!(state(&rig, 4), (ChunkState::Closed, Some(8)), "closed early");
    assert_eq!(state(&rig, 3), (ChunkState::Offline, None));
}

/// A vector write over several chunks; the same chunk may come twice, each run judged by where the one before ends.
#[test]
fn a_vector_write_is_taken_or_refused_as_a_whole() {
    let span = |chunk: u32, from: u32, count: u32| (from..from + count).map(move |sector| ppa(chunk, sector));
    let sound: Vec<Ppa> =
        span(1, 16, 4).chain(span(2, 0, 8)).chain(span(1, 20, 12)).chain(span(2, 8, 4)).collect();
    let mut rig = rig(|_| ());
    for (name, spoiled, status, rule) in [
        ("second run not at the new pointer", span(2, 8, 4), Status::OUT_OF_ORDER, Rule::WritePointer),
        ("a chunk that the first runs close", span(1, 20, 4), Status::WRITE_FAULT, Rule::Writable),
        ("a chunk that is closed", span(0, 0, 4), Status::WRITE_FAULT, Rule::Writable),
        ("a chunk that does not exist", span(32, 0, 4), Status::WRITE_FAULT, Rule::AddressExists),
        ("a short run at the end", span(5, 0, 3), Status::INVALID_FIELD, Rule::WriteUnit),
    ] {
        let mut list = sound.clone();
        list.extend(spoiled);
        let entries = u32::try_from(list.len()).expect("a short list");
        let command = rig.vector(WRITE, &list);
        refused(name, &mut rig, command, entries, status, rule);
    }
    for (sector, id) in (0..).zip(0..u64::try_from(sound.len()).expect("a short list")) {
        rig.fill(rig.buffer, sector, 500 + id);
    }
    let command = rig.vector(WRITE, &sound);
    assert_eq!(rig.one(command).1, Completion::success(command.tag));
    let pointers: Vec<_> = [1, 2].map(|chunk| rig.drive.chunk(ChunkId(chunk)).write_pointer).into();
    assert_eq!(pointers, [Some(32), Some(12)]);
    rig.read(ppa(1, 16), 16);
    let ids: Vec<u64> = (0..16).map(|sector| rig.id_of(rig.buffer, sector)).collect();
    assert_eq!(ids, (500..504).chain(512..524).collect::<Vec<_>>());
}

#[test]
fn vectors_have_1_to_64_entries() {
    for count in [0u32, 65, 120] {
        let list: Vec<Ppa> = (0..count).map(|entry| ppa(8 + entry / 32, entry % 32)).collect();
        let mut rig = rig(|_| ());
        let command = rig.vector(WRITE, &list);
        refused("write", &mut rig, command, count, Status::INVALID_FIELD, Rule::VectorLength);
    }
    let mut rig = rig(|_| ());
    let list: Vec<Ppa> = (0..64).map(|entry| ppa(8 + entry / 32, entry % 32)).collect();
    let command = rig.vector(WRITE, &list);
    assert_eq!(rig.one(command).1.status, Status::SUCCESS);
}

#[test]
fn a_write_needs_a_buffer_for_every_sector() {
    let mut rig = rig(|_| ());
    let mut command = rig.command(WRITE, run(ppa(2, 0), 8));
    command.buffer = None;
    refused("no buffer", &mut rig, command, 8, Status::INVALID_FIELD, Rule::BufferLength);
    command.buffer = Some(rig.buffers.take(4));
    refused("a short buffer", &mut rig, command, 8, Status::INVALID_FIELD, Rule::BufferLength);
    command.buffer = Some(rig.buffer);
    command.buffer_first = crate::rig::BUFFER_SECTORS - 4;
    refused("too near the buffer's end", &mut rig, command, 8, Status::INVALID_FIELD, Rule::BufferLength);
    command.buffer_first = 10_000;
    refused("beyond the buffer", &mut rig, command, 8, Status::INVALID_FIELD, Rule::BufferLength);
}

#[test]
fn every_row_of_the_reset_table() {
    let row = |name, first, status, rule: Option<Rule>| (name, first, status, rule);
    let table = [
        row("closed", ppa(0, 0), Status::SUCCESS, None),
        row("closed early", ppa(4, 0), Status::SUCCESS, None),
        row("free", ppa(2, 0), Status::INVALID_RESET, Some(Rule::Resettable)),
        row("open", ppa(1, 0), Status::INVALID_RESET, Some(Rule::Resettable)),
        row("offline", ppa(3, 0), Status::OFFLINE_CHUNK, Some(Rule::Resettable)),
        row("not a chunk's start", ppa(0, 4), Status::INVALID_RESET, Some(Rule::ResetAddress)),
        row("no such chunk", ppa(32, 0), Status::INVALID_RESET, Some(Rule::AddressExists)),
        row("no address at all", Ppa::NOWHERE, Status::INVALID_RESET, Some(Rule::AddressExists)),
    ];
    for (name, first, status, rule) in table {
        let mut rig = rig(|_| ());
        let command = rig.command(Op::Reset, run(first, 1));
        if let Some(rule) = rule {
            refused(name, &mut rig, command, 1, status, rule);
            continue;
        }
        assert_eq!(rig.one(command).1, Completion::success(command.tag), "{name}");
        let chunk = rig.drive.chunk(first.chunk);
        assert_eq!((chunk.state, chunk.write_pointer), (ChunkState::Free, Some(0)), "{name}");
        assert_eq!(rig.read(first, 1).1.status, Status::UNWRITTEN, "{name}");
        assert_eq!(rig.write(first, 8, 7).1.status, Status::SUCCESS, "{name}");
    }
}

#[test]
fn capabilities_allow_resets_of_free_and_open_chunks() {
    let mut rig = rig(|config| {
        config.geometry.capabilities.multiple_resets = true;
        config.geometry.capabilities.early_reset = true;
    });
    for chunk in [1, 2, 2] {
        assert_eq!(rig.reset(chunk).1.status, Status::SUCCESS, "chunk {chunk}");
        assert_eq!(rig.drive.chunk(ChunkId(chunk)).state, ChunkState::Free);
    }
    assert_eq!((rig.drive.cycles(ChunkId(2)), rig.drive.cycles(ChunkId(1))), (2, 1));
}

#[test]
fn a_vector_reset_acts_entry_by_entry() {
    let mut rig = rig(|_| ());
    let list = [ppa(0, 0), ppa(1, 0), ppa(4, 0), ppa(0, 0), ppa(3, 0), ppa(77, 0)];
    let command = rig.vector(Op::Reset, &list);
    let (_, end) = rig.one(command);
    // Of 2C1h (chunks 1, 0 again and 77) and 2C0h (chunk 3) the gravest is the status; all have a bit.
    assert_eq!((end.status, end.failed), (Status::OFFLINE_CHUNK, 0b11_1010));
    let states: Vec<_> = [0, 1, 3, 4].map(|chunk| rig.drive.chunk(ChunkId(chunk)).state).into();
    assert_eq!(states, [ChunkState::Free, ChunkState::Open, ChunkState::Offline, ChunkState::Free]);
}

/// An address whose sector is the largest number there is must be refused like any other.
#[test]
fn a_run_reset_at_the_end_of_all_numbers_is_refused() {
    let mut rig = rig(|_| ());
    let command = rig.command(Op::Reset, run(ppa(0, u32::MAX), 2));
    refused("reset", &mut rig, command, 2, Status::INVALID_RESET, Rule::ResetAddress);
}

#[test]
fn no_more_chunks_are_open_than_maxoc_and_maxocpu_allow() {
    // The rig has one open chunk, on unit 0. Units have 8 chunks.
    let mut per_drive = rig(|config| config.geometry.max_open_chunks = 2);
    assert_eq!(per_drive.write(ppa(8, 0), 8, 0).1.status, Status::SUCCESS);
    let command = per_drive.command(WRITE, run(ppa(16, 0), 8));
    refused("MAXOC", &mut per_drive, command, 8, Status::WRITE_FAULT, Rule::MaxOpenChunks);
    assert_eq!(
        per_drive.write(ppa(16, 0), 32, 0).1.status,
        Status::SUCCESS,
        "a chunk filled at once is never open"
    );
    assert_eq!(per_drive.write(ppa(8, 8), 24, 0).1.status, Status::SUCCESS, "it closes");
    assert_eq!(per_drive.write(ppa(24, 0), 8, 0).1.status, Status::SUCCESS, "there is room again");

    let mut per_unit = rig(|config| config.geometry.max_open_chunks_per_pu = 1);
    let command = per_unit.command(WRITE, run(ppa(2, 0), 8));
    refused("MAXOCPU", &mut per_unit, command, 8, Status::WRITE_FAULT, Rule::MaxOpenChunksPerPu);
    assert_eq!(per_unit.write(ppa(8, 0), 8, 0).1.status, Status::SUCCESS, "another unit has room");
    let both: Vec<Ppa> = (0..16).map(|entry| ppa(16 + entry / 8, entry % 8)).collect();
    let command = per_unit.vector(WRITE, &both);
    refused("two of one unit", &mut per_unit, command, 16, Status::WRITE_FAULT, Rule::MaxOpenChunksPerPu);
}

/// Runs are taken one after the other: a chunk that an earlier run closes makes room for one that a later run opens.
#[test]
fn a_chunk_closed_by_an_earlier_run_makes_room_for_a_later_one() {
    let mut rig = rig(|config| {
        config.geometry.max_open_chunks = 1;
        config.geometry.max_open_chunks_per_pu = 1;
    });
    let list: Vec<Ppa> =
        (16..32).map(|sector| ppa(1, sector)).chain((0..8).map(|sector| ppa(2, sector))).collect();
    let command = rig.vector(WRITE, &list);
    assert_eq!(rig.one(command).1.status, Status::SUCCESS);
    let opens_and_closes: Vec<Ppa> = [(2, 8, 24), (8, 0, 16), (16, 0, 0), (8, 16, 16), (16, 0, 4)]
        .iter()
        .flat_map(|&(chunk, from, count)| (from..from + count).map(move |sector| ppa(chunk, sector)))
        .collect();
    assert_eq!(opens_and_closes.len(), 60);
    let command = rig.vector(WRITE, &opens_and_closes);
    assert_eq!(rig.one(command).1.status, Status::SUCCESS);
    rig.drive.check();
}

#[test]
fn a_command_without_a_list_names_no_sector() {
    let mut rig = rig(|_| ());
    for op in [Op::Read, WRITE, Op::Reset, Op::Copy] {
        let addresses = Addresses::List { offset: 0, count: 4 };
        let command = Command {
            tag: Tag(1),
            op,
            addresses,
            buffer: None,
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        };
        let (_, end) = rig.one(command);
        assert_eq!(end.status, Status::INVALID_FIELD, "{op:?}");
    }
}
