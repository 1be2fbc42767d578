//! Times of single operations, computed by hand from the settings of `tiny`, and what waits for what.
//!
//! A sector is 4096 + 16 bytes: 10 280 ns on the channel (400 MB/s), 1 028 ns on the link (4 GB/s). A channel command is
//! 1 us, a host command 5 us. Page rows take 40 and 60 us to sense in turn, write units 300 and 900 us to program.

use crate::rig::{Rig, index, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_lightnvm::{Command, Device, Op, Ppa};

const CHANNEL_COMMAND: u64 = 1_000;
const CHANNEL_SECTOR: u64 = 10_280;
const LINK_SECTOR: u64 = 1_028;
const COMMAND: u64 = 5_000;
/// One sector over the channel.
const OUT: u64 = CHANNEL_COMMAND + CHANNEL_SECTOR;
/// The rest of a read of one sector.
const LINK: u64 = LINK_SECTOR + COMMAND;
/// A write unit over the link, and over the channel.
const UNIT_LINK: u64 = 8 * LINK_SECTOR;
const UNIT_IN: u64 = CHANNEL_COMMAND + 8 * CHANNEL_SECTOR;

fn rig(change: impl FnOnce(&mut Config)) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    change(&mut config);
    Rig::new(config)
}

/// A rig whose chunk 0 of each of the four units is full.
fn written(change: impl FnOnce(&mut Config)) -> Rig {
    let mut rig = rig(change);
    for unit in 0..4 {
        rig.fill_chunk(unit * 8, u64::from(unit) << 32);
    }
    rig
}

/// When each command ends, counted from now on, by the order of `commands`.
fn ends<const N: usize>(rig: &mut Rig, commands: [(u64, Command); N]) -> [u64; N] {
    let start = rig.now;
    let ended = rig.play(&commands.map(|(at, command)| (start + Nanos(at), command)));
    assert!(ended.is_sorted_by_key(|end| end.at), "ends are told in the order of their times");
    commands.map(|(_, command)| {
        let end = ended.iter().find(|end| end.completion.tag == command.tag).expect("every command ends");
        assert!(end.completion.status.is_success(), "{end:?}");
        (end.at - start).0
    })
}

fn read(rig: &mut Rig, first: Ppa, count: u32) -> Command {
    rig.command(Op::Read, run(first, count))
}

fn write(rig: &mut Rig, first: Ppa, count: u32) -> Command {
    rig.command(Op::Write { fua: false }, run(first, count))
}

#[test]
fn a_read_takes_sense_channel_link_and_command_and_the_row_decides_the_sense() {
    let mut rig = written(|_| ());
    assert_eq!(rig.read(ppa(0, 0), 1).0, Nanos(40_000 + OUT + LINK));
    assert_eq!(rig.read(ppa(0, 8), 1).0, Nanos(60_000 + OUT + LINK));
    assert_eq!(rig.read(ppa(0, 16), 1).0, Nanos(40_000 + OUT + LINK));
    assert_eq!(rig.read(ppa(8, 24), 1).0, Nanos(60_000 + OUT + LINK));
}

#[test]
fn a_row_still_in_the_page_register_is_not_sensed_again() {
    let mut rig = written(|_| ());
    rig.read(ppa(0, 0), 1);
    assert_eq!(rig.read(ppa(0, 7), 1).0, Nanos(OUT + LINK));
    assert_eq!(rig.read(ppa(0, 0), 8).0, Nanos(UNIT_IN + UNIT_LINK + COMMAND));
    assert_eq!(rig.drive.counters().media.register_hits, 2);
    rig.write(ppa(1, 0), 8, 0);
    assert_eq!(rig.read(ppa(0, 7), 1).0, Nanos(40_000 + OUT + LINK), "a program took the register");
    rig.reset(0);
    rig.fill_chunk(0, 9);
    rig.read(ppa(0, 0), 1);
    rig.reset(0);
    rig.write_ok(0, 0..8, 7);
    rig.read(ppa(0, 0), 1);
    assert_eq!(rig.id_of(rig.buffer, 0), 7, "the register holds no earlier life of the chunk");
}

#[test]
fn what_a_list_names_of_one_row_is_sensed_once_and_leaves_together() {
    let mut rig = written(|_| ());
    // Rows have eight sectors; the third run is of the next row, and what follows it of the first row again.
    let list = [ppa(0, 0), ppa(0, 2), ppa(0, 3), ppa(0, 9), ppa(0, 5)];
    let command = rig.vector(Op::Read, &list);
    let (took, completion) = rig.one(command);
    assert!(completion.status.is_success());
    let media = rig.drive.counters().media;
    assert_eq!((media.senses, media.register_hits), (3, 0), "a row is sensed again once another one was");
    let three_out = CHANNEL_COMMAND + 3 * CHANNEL_SECTOR;
    let together = Nanos(40_000 + three_out + 5 * LINK_SECTOR + COMMAND);
    assert!(took > together, "{took}: the other rows take their time too");
    let mut rig = written(|_| ());
    let command = rig.vector(Op::Read, &list[..3]);
    assert_eq!(rig.one(command).0, Nanos(40_000 + three_out + 3 * LINK_SECTOR + COMMAND));
}

#[test]
fn a_write_takes_link_channel_program_and_command_and_the_unit_decides_the_program() {
    let mut rig = rig(|_| ());
    assert_eq!(rig.write(ppa(0, 0), 8, 0).0, Nanos(UNIT_LINK + UNIT_IN + 300_000 + COMMAND));
    assert_eq!(rig.write(ppa(0, 8), 8, 0).0, Nanos(UNIT_LINK + UNIT_IN + 900_000 + COMMAND));
    let half = 4 * LINK_SECTOR + CHANNEL_COMMAND + 4 * CHANNEL_SECTOR + 300_000 + COMMAND;
    assert_eq!(rig.write(ppa(0, 16), 4, 0).0, Nanos(half), "WS_MIN takes as long as WS_OPT in the array");
}

#[test]
fn a_reset_takes_erase_and_command() {
    let mut rig = written(|_| ());
    assert_eq!(rig.reset(0).0, Nanos(3_000_000 + COMMAND));
}

#[test]
fn refused_commands_and_flushes_of_an_idle_drive_take_the_command_time_alone() {
    let mut rig = rig(|_| ());
    assert_eq!(rig.flush().0, Nanos(COMMAND));
    assert_eq!(rig.write(ppa(0, 8), 8, 0).0, Nanos(COMMAND));
    assert_eq!(rig.reset(0).0, Nanos(COMMAND));
    assert_eq!(
        rig.read(ppa(0, 0), 2).0,
        Nanos(2 * LINK_SECTOR + COMMAND),
        "predefined data crosses the link"
    );
}

#[test]
fn a_unit_serves_in_order_of_arrival() {
    let mut rig = written(|_| ());
    let (a, b, c) =
        (read(&mut rig, ppa(0, 0), 1), write(&mut rig, ppa(1, 0), 8), read(&mut rig, ppa(0, 8), 1));
    // The write is over the link while the first read still senses: its data takes the idle channel, and the first
    // read's data follows. The array programs as soon as the data is there; the second read comes after that.
    let [a, b, c] = ends(&mut rig, [(0, a), (0, b), (20_000, c)]);
    assert_eq!(a, UNIT_LINK + UNIT_IN + OUT + LINK);
    assert_eq!(b, UNIT_LINK + UNIT_IN + 300_000 + COMMAND);
    assert_eq!(c, UNIT_LINK + UNIT_IN + 300_000 + 60_000 + OUT + LINK);
}

#[test]
fn two_units_of_a_channel_share_it_and_two_groups_do_not() {
    let mut rig = written(|_| ());
    let (a, b) = (read(&mut rig, ppa(0, 0), 1), read(&mut rig, ppa(8, 0), 1));
    assert_eq!(ends(&mut rig, [(0, a), (0, b)]), [40_000 + OUT + LINK, 40_000 + 2 * OUT + LINK]);
    let (a, b) = (read(&mut rig, ppa(0, 16), 1), read(&mut rig, ppa(16, 16), 1));
    let both = ends(&mut rig, [(0, a), (0, b)]);
    assert_eq!(both, [40_000 + OUT + LINK, 40_000 + OUT + LINK + LINK_SECTOR], "only the link is shared");
}

#[test]
fn a_unit_that_is_busy_does_not_hold_the_channel() {
    let mut rig = written(|_| ());
    // The slow row was asked for first; the other unit's data is ready 20 us earlier and goes first.
    let (slow, fast) = (read(&mut rig, ppa(0, 8), 1), read(&mut rig, ppa(8, 0), 1));
    let [slow, fast] = ends(&mut rig, [(0, slow), (0, fast)]);
    assert_eq!((slow, fast), (60_000 + OUT + LINK, 40_000 + OUT + LINK));
    // A unit in a program does not hold it either.
    let (program, beside) = (write(&mut rig, ppa(1, 0), 8), read(&mut rig, ppa(8, 16), 1));
    let [program, beside] = ends(&mut rig, [(0, program), (100_000, beside)]);
    assert_eq!(beside, 100_000 + 40_000 + OUT + LINK);
    assert_eq!(program, UNIT_LINK + UNIT_IN + 300_000 + COMMAND);
}

#[test]
fn a_second_register_overlaps_transfers_with_the_array() {
    // Reads of two rows: the second is sensed while the first leaves, or after it.
    let ends_of = |registers: u32| {
        let mut rig = written(|config| config.media.registers = registers);
        let (a, b) = (read(&mut rig, ppa(0, 0), 1), read(&mut rig, ppa(0, 8), 1));
        ends(&mut rig, [(0, a), (0, b)])
    };
    assert_eq!(ends_of(2), [40_000 + OUT + LINK, 100_000 + OUT + LINK]);
    assert_eq!(ends_of(1), [40_000 + OUT + LINK, 40_000 + OUT + 60_000 + OUT + LINK]);
    // Writes of two units: the second is loaded while the first is programmed, or after it.
    let ends_of = |registers: u32| {
        let mut rig = rig(|config| config.media.registers = registers);
        let (a, b) = (write(&mut rig, ppa(0, 0), 8), write(&mut rig, ppa(0, 8), 8));
        ends(&mut rig, [(0, a), (0, b)])
    };
    let first = UNIT_LINK + UNIT_IN + 300_000;
    assert_eq!(ends_of(2), [first + COMMAND, first + 900_000 + COMMAND]);
    assert_eq!(ends_of(1), [first + COMMAND, first + UNIT_IN + 900_000 + COMMAND]);
}

#[test]
fn a_vector_over_all_units_takes_as_long_as_its_slowest_unit() {
    let mut rig = rig(|_| ());
    let list: Vec<Ppa> = (0..4).flat_map(|unit| (0..8).map(move |sector| ppa(unit * 8, sector))).collect();
    let command = rig.vector(Op::Write { fua: false }, &list);
    // Two units of a channel are loaded one after the other; their programs overlap.
    assert_eq!(ends(&mut rig, [(0, command)]), [4 * UNIT_LINK + 2 * UNIT_IN + 300_000 + COMMAND]);
    let command = rig.vector(Op::Read, &list);
    assert_eq!(ends(&mut rig, [(0, command)]), [40_000 + 2 * UNIT_IN + 4 * UNIT_LINK + COMMAND]);
    let counters = rig.drive.counters();
    assert_eq!((counters.media.programs, counters.media.senses), (4, 4));
    assert_eq!(counters.unit_busy, [Nanos(340_000); 4]);
    assert_eq!(counters.channel_busy, [Nanos(4 * UNIT_IN); 2]);
}

#[test]
fn the_link_carries_one_command_at_a_time_each_way() {
    let mut rig = written(|_| ());
    // Eight cached rows would arrive together; the link lets them through one by one.
    let commands: [(u64, Command); 4] =
        std::array::from_fn(|unit| (0, read(&mut rig, ppa(u32::try_from(unit).expect("small") * 8, 0), 8)));
    let [a, b, c, d] = ends(&mut rig, commands);
    let ready = 40_000 + UNIT_IN;
    assert_eq!([a, c], [ready + UNIT_LINK + COMMAND, ready + 2 * UNIT_LINK + COMMAND]);
    let later = ready + UNIT_IN;
    assert_eq!([b, d], [later + UNIT_LINK + COMMAND, later + 2 * UNIT_LINK + COMMAND]);
}

#[test]
fn no_more_commands_are_taken_than_the_queue_depth() {
    let mut rig = rig(|config| config.queue_depth = 3);
    let commands: Vec<Command> = (0..4).map(|sector| read(&mut rig, ppa(0, sector), 1)).collect();
    let taken =
        commands.iter().filter(|&&command| rig.drive.submit(rig.now, command, &mut rig.buffers).is_ok());
    assert_eq!(taken.count(), 3);
    let at = rig.drive.deadline().expect("commands in flight");
    assert!(rig.drive.poll_completion(at, &mut rig.buffers).is_some());
    assert!(rig.drive.submit(at, commands[index(3)], &mut rig.buffers).is_ok());
}
