//! The wrappers around a real drive: what they see, what they count, what they make fail.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::wrap::{Check, Event, Fault, FaultRule, OpKind, Stats, Trace};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkId, ChunkState, Command, Completion, Device, Op,
    PlaneMode, Ppa, Status, Tag,
};

const WRITE: Op = Op::Write { fua: false };

fn drive() -> (Flash, Buffers, BufId) {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry.mw_cunits = 0;
    config.geometry.chunks_per_pu = 8;
    let flash = Flash::format(config).expect("settings that can be used");
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take(64);
    (flash, buffers, buffer)
}

fn ppa(chunk: u32, sector: u32) -> Ppa {
    Ppa::new(ChunkId(chunk), sector)
}

fn on_run(tag: u32, op: Op, first: Ppa, count: u32, buffer: Option<BufId>) -> Command {
    Command {
        tag: Tag(tag),
        op,
        addresses: Addresses::Run { first, count },
        buffer,
        buffer_first: 0,
        oob: true,
        plane_mode: PlaneMode::Single,
    }
}

fn call<D: Device>(device: &mut D, buffers: &mut Buffers, commands: &[Command]) -> Vec<Completion> {
    // One by one, so that each finds what the one before left.
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device, clock: &mut clock, buffers, cut_at: None };
    commands.iter().map(|command| caller.call(&[*command]).expect("nobody cuts the power")[0]).collect()
}

fn on_list(tag: u32, op: Op, list: &[Ppa], buffers: &mut Buffers, buffer: BufId) -> Command {
    buffers.addresses_mut(buffer)[..list.len()].copy_from_slice(list);
    let entries = u32::try_from(list.len()).expect("a short list");
    let count = if op == Op::Copy { entries / 2 } else { entries };
    let addresses = Addresses::List { offset: 0, count };
    Command {
        tag: Tag(tag),
        op,
        addresses,
        buffer: Some(buffer),
        buffer_first: 0,
        oob: true,
        plane_mode: PlaneMode::Single,
    }
}

/// The hash of a short run with one detail changed.
fn hash_of(change: impl FnOnce(&mut Vec<Command>, &mut Buffers, BufId)) -> u64 {
    let (flash, mut buffers, buffer) = drive();
    let mut commands = vec![
        on_run(1, WRITE, ppa(0, 0), 8, Some(buffer)),
        on_run(2, Op::Read, ppa(0, 0), 4, Some(buffer)),
        on_run(3, WRITE, ppa(0, 8), 24, Some(buffer)),
        on_run(4, Op::Reset, ppa(0, 0), 1, None),
    ];
    change(&mut commands, &mut buffers, buffer);
    let mut trace = Trace::new(flash, 0);
    call(&mut trace, &mut buffers, &commands);
    trace.hash()
}

#[test]
fn equal_runs_have_equal_hashes_and_any_difference_shows() {
    let same = hash_of(|_, _, _| ());
    assert_eq!(hash_of(|_, _, _| ()), same);
    type Change = fn(&mut Vec<Command>);
    let changes: [(&str, Change); 6] = [
        ("another tag", |commands| commands[1].tag = Tag(9)),
        ("another address", |commands| commands[1].addresses = Addresses::Run { first: ppa(0, 1), count: 4 }),
        ("another length", |commands| commands[1].addresses = Addresses::Run { first: ppa(0, 0), count: 3 }),
        ("forced", |commands| commands[0].op = Op::Write { fua: true }),
        ("one command less", |commands| commands.truncate(3)),
        ("another order", |commands| commands.swap(1, 2)),
    ];
    for (name, change) in changes {
        assert_ne!(hash_of(|commands, _, _| change(commands)), same, "{name}");
    }
}

#[test]
fn where_a_copy_goes_is_part_of_the_hash() {
    let to = |chunk: u32| {
        hash_of(|commands, buffers, buffer| {
            let list: Vec<Ppa> = (0..4).map(|at| ppa(0, at)).chain((0..4).map(|at| ppa(chunk, at))).collect();
            commands.truncate(1);
            commands.push(on_list(7, Op::Copy, &list, buffers, buffer));
        })
    };
    // Chunks 1 and 2 are of one unit: the copies take the same time and end alike.
    assert_ne!(to(1), to(2));
}

#[test]
fn the_latest_events_are_remembered_oldest_first() {
    let (flash, mut buffers, buffer) = drive();
    let mut trace = Trace::new(flash, 3);
    let commands: Vec<Command> =
        (1..=4).map(|tag| on_run(tag, Op::Read, ppa(0, 0), 1, Some(buffer))).collect();
    call(&mut trace, &mut buffers, &commands[..1]);
    assert_eq!(trace.latest().count(), 2);
    call(&mut trace, &mut buffers, &commands[1..]);
    let seen: Vec<(bool, Tag)> = trace
        .latest()
        .map(|event| match event {
            Event::Submitted(_, command) => (false, command.tag),
            Event::Completed(_, completion) => (true, completion.tag),
        })
        .collect();
    assert_eq!(seen, [(true, Tag(3)), (false, Tag(4)), (true, Tag(4))]);
}

#[test]
fn a_fault_makes_exactly_the_chosen_command_fail_with_any_status_and_leaves_the_media_alone() {
    let statuses = [
        Status::WRITE_FAULT,
        Status::UNRECOVERED_READ,
        Status::UNWRITTEN,
        Status::OFFLINE_CHUNK,
        Status::INVALID_RESET,
        Status::HIGH_ECC,
        Status::WRITE_NEXT_UNIT,
        Status::EARLY_CLOSE,
        Status::OUT_OF_ORDER,
        Status::INTERNAL_ERROR,
    ];
    for status in statuses {
        let (flash, mut buffers, buffer) = drive();
        let rules = vec![
            FaultRule { kind: OpKind::Write, after: 1, status },
            FaultRule { kind: OpKind::Reset, after: 0, status },
            FaultRule { kind: OpKind::Flush, after: 0, status },
        ];
        let mut fault = Fault::new(Check::new(flash), rules);
        let flush = Command { addresses: Addresses::None, ..on_run(4, Op::Flush, ppa(0, 0), 0, None) };
        let ends = call(
            &mut fault,
            &mut buffers,
            &[
                on_run(1, WRITE, ppa(0, 0), 8, Some(buffer)),
                on_run(2, WRITE, ppa(0, 8), 8, Some(buffer)),
                on_run(3, WRITE, ppa(0, 8), 24, Some(buffer)),
                flush,
                on_run(5, Op::Reset, ppa(0, 0), 1, None),
                on_run(6, Op::Reset, ppa(0, 0), 1, None),
            ],
        );
        let found: Vec<(Status, u64)> = ends.iter().map(|end| (end.status, end.failed)).collect();
        let fine = (Status::SUCCESS, 0);
        assert_eq!(found, [fine, (status, 0xFF), fine, (status, 0), (status, 1), fine]);
        assert_eq!(fault.pending(), 0);
    }
}

#[test]
fn a_failed_vector_of_64_has_all_its_bits() {
    let (flash, mut buffers, buffer) = drive();
    let rule = FaultRule { kind: OpKind::Read, after: 0, status: Status::UNRECOVERED_READ };
    let mut fault = Fault::new(flash, vec![rule]);
    let ends = call(&mut fault, &mut buffers, &[on_run(1, Op::Read, ppa(0, 0), 64, Some(buffer))]);
    assert_eq!(ends[0].failed, u64::MAX);
}

#[test]
fn stats_count_commands_and_sectors_of_each_unit() {
    let (flash, mut buffers, buffer) = drive();
    let mut stats = Stats::new(flash);
    // Two chunks of unit 0 and one of unit 2, coming back to the first chunk.
    let list: Vec<Ppa> = [(0, 0), (1, 0), (16, 0), (0, 4)]
        .iter()
        .flat_map(|&(chunk, from)| (from..from + 4).map(move |sector| ppa(chunk, sector)))
        .collect();
    let vector = on_list(1, WRITE, &list, &mut buffers, buffer);
    let ends = call(&mut stats, &mut buffers, &[vector]);
    assert!(ends[0].status.is_success(), "{ends:?}");
    let copy: Vec<Ppa> = (0..4).map(|at| ppa(0, at)).chain((0..4).map(|at| ppa(8, at))).collect();
    let copy = on_list(2, Op::Copy, &copy, &mut buffers, buffer);
    let flush = Command { addresses: Addresses::None, ..on_run(3, Op::Flush, ppa(0, 0), 0, None) };
    let reset = on_run(4, Op::Reset, ppa(24, 0), 1, None);
    call(&mut stats, &mut buffers, &[copy, flush, reset, on_run(5, Op::Read, ppa(99, 0), 1, Some(buffer))]);
    let counts: Vec<[(u64, u64); 3]> = stats
        .units()
        .iter()
        .map(|unit| [unit.read, unit.write, unit.reset].map(|counts| (counts.commands, counts.sectors)))
        .collect();
    let expected = [
        [(1, 4), (1, 12), (0, 0)],
        [(0, 0), (1, 4), (0, 0)],
        [(0, 0), (1, 4), (0, 0)],
        [(0, 0), (0, 0), (1, 1)],
    ];
    assert_eq!(counts, expected);
    assert_eq!((stats.flushes(), stats.failed()), (1, 2), "the reset and the read beyond the drive failed");
    assert_eq!(stats.inner().chunk(ChunkId(8)).state, ChunkState::Open);
    stats.clear();
    assert!(stats.units().iter().all(|unit| unit.write.sectors == 0));
}

#[test]
fn wrappers_stack_and_change_no_time() {
    let time = |wrapped: bool| {
        let (flash, mut buffers, buffer) = drive();
        let command = on_run(1, WRITE, ppa(0, 0), 8, Some(buffer));
        let mut clock = VirtualClock::default();
        if wrapped {
            let mut device = Check::new(Trace::new(Stats::new(Fault::new(flash, Vec::new())), 8));
            let mut caller =
                Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
            caller.call(&[command]).expect("nobody cuts the power");
        } else {
            let mut flash = flash;
            let mut caller =
                Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
            caller.call(&[command]).expect("nobody cuts the power");
        }
        ocssd_engine::Clock::now(&clock)
    };
    assert_eq!(time(true), time(false));
    assert!(time(true) > Nanos::ZERO);
}
