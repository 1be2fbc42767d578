//! The write-back cache: early ends, drain, room, reads from it, FUA, and what a flush waits for. Times as in `timing`.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_lightnvm::{Addresses, Command, Op, Status};

const UNIT_LINK: u64 = 8 * 1_028;
const UNIT_IN: u64 = 1_000 + 8 * 10_280;
const COMMAND: u64 = 5_000;

fn rig(change: impl FnOnce(&mut Config)) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.cache.sectors = 64;
    change(&mut config);
    Rig::new(config)
}

fn write(rig: &mut Rig, chunk: u32, sector: u32, fua: bool) -> Command {
    rig.command(Op::Write { fua }, run(ppa(chunk, sector), 8))
}

/// Plays commands from now on; gives when each ended, counted from now.
fn play(rig: &mut Rig, commands: &[(u64, Command)]) -> Vec<u64> {
    let start = rig.now;
    let arrivals: Vec<_> = commands.iter().map(|&(at, command)| (start + Nanos(at), command)).collect();
    let ended = rig.play(&arrivals);
    let of =
        |command: &Command| ended.iter().find(|end| end.completion.tag == command.tag).expect("it ended");
    commands.iter().map(|(_, command)| (of(command).at - start).0).collect()
}

#[test]
fn a_cached_write_ends_when_it_is_over_the_link() {
    let mut rig = rig(|_| ());
    assert_eq!(rig.write(ppa(0, 0), 8, 1).0, Nanos(UNIT_LINK + COMMAND));
    assert_eq!(rig.drive.counters().media.programs, 0);
    rig.settle();
    assert_eq!(rig.now, Nanos(UNIT_LINK + UNIT_IN + 300_000), "it is programmed afterwards");
    assert_eq!(rig.drive.counters().media.programs, 1);
}

#[test]
fn forced_unit_access_waits_for_the_media() {
    let mut rig = rig(|_| ());
    let command = write(&mut rig, 0, 0, true);
    assert_eq!(play(&mut rig, &[(0, command)]), [UNIT_LINK + UNIT_IN + 300_000 + COMMAND]);
}

#[test]
fn data_in_the_cache_is_read_without_the_media() {
    let mut rig = rig(|_| ());
    rig.write(ppa(0, 0), 8, 40);
    let (time, end) = rig.read(ppa(0, 2), 3);
    assert_eq!((time, end.status), (Nanos(3 * 1_028 + COMMAND), Status::SUCCESS));
    assert_eq!((0..3).map(|sector| rig.id_of(rig.buffer, sector)).collect::<Vec<_>>(), [42, 43, 44]);
    assert_eq!((rig.drive.counters().sectors_read_cached, rig.drive.counters().media.senses), (3, 0));
    rig.settle();
    let (time, _) = rig.read(ppa(0, 2), 3);
    assert_eq!(time, Nanos(40_000 + 1_000 + 3 * 10_280 + 3 * 1_028 + COMMAND));
    assert_eq!(rig.drive.counters().sectors_read_cached, 3);
}

#[test]
fn a_read_over_programmed_and_cached_sectors_takes_each_from_where_it_is() {
    let mut rig = rig(|_| ());
    rig.write_ok(0, 0..8, 10);
    rig.write(ppa(0, 8), 8, 18);
    let (_, end) = rig.read(ppa(0, 4), 8);
    assert!(end.status.is_success());
    assert_eq!(
        (0..8).map(|sector| rig.id_of(rig.buffer, sector)).collect::<Vec<_>>(),
        (14..22).collect::<Vec<_>>()
    );
    let counters = rig.drive.counters();
    assert_eq!((counters.sectors_read_cached, counters.media.senses), (4, 1));
}

#[test]
fn a_full_cache_lets_the_next_write_in_when_a_program_makes_room() {
    let mut rig = rig(|_| ());
    // Nine writes of 8 sectors into 64: the ninth waits for the first program. All go to one unit.
    let commands: Vec<(u64, Command)> =
        (0..9).map(|number| (0, write(&mut rig, number / 4, number % 4 * 8, false))).collect();
    let ended = play(&mut rig, &commands);
    for (number, &end) in (1..).zip(&ended[..8]) {
        assert_eq!(end, number * UNIT_LINK + COMMAND);
    }
    let first_program = UNIT_LINK + UNIT_IN + 300_000;
    assert_eq!(ended[8], first_program + UNIT_LINK + COMMAND);
}

/// In steady state a cache changes when a write ends, not how many end: all eight units' worth of the cache are in use.
#[test]
fn a_full_cache_drains_at_the_speed_of_the_media() {
    let mut rig = rig(|_| ());
    let commands: Vec<(u64, Command)> =
        (0..32).map(|number| (0, write(&mut rig, number / 4, number % 4 * 8, false))).collect();
    let ended = play(&mut rig, &commands);
    // Units alternate 300 and 900 us: eight writes in 4.8 ms.
    assert_eq!(ended[31] - ended[23], 4_800_000);
}

#[test]
fn a_write_larger_than_the_cache_is_taken_when_the_cache_is_empty() {
    let mut rig = rig(|_| ());
    let list: Vec<_> = (0..2).flat_map(|chunk| (0..32).map(move |sector| ppa(chunk * 8, sector))).collect();
    let small = write(&mut rig, 16, 0, false);
    let large = rig.vector(Op::Write { fua: false }, &list);
    let ended = play(&mut rig, &[(0, small), (0, large)]);
    assert_eq!(ended[0], UNIT_LINK + COMMAND);
    assert_eq!(
        ended[1],
        UNIT_LINK + UNIT_IN + 300_000 + 8 * UNIT_LINK + COMMAND,
        "64 sectors, when the 8 are gone"
    );
}

#[test]
fn writes_wait_for_room_in_their_order() {
    let mut rig = rig(|_| ());
    let commands: Vec<(u64, Command)> =
        (0..16).map(|number| (0, write(&mut rig, number % 4 * 8, number / 4 * 8, number == 10))).collect();
    let start = rig.now;
    let arrivals: Vec<_> = commands.iter().map(|&(at, command)| (start + Nanos(at), command)).collect();
    let order: Vec<_> = rig.play(&arrivals).iter().map(|end| end.completion.tag).collect();
    let forced = commands[10].1.tag;
    let expected: Vec<_> =
        commands.iter().map(|(_, command)| command.tag).filter(|&tag| tag != forced).collect();
    let unforced: Vec<_> = order.iter().copied().filter(|&tag| tag != forced).collect();
    assert_eq!(unforced, expected);
    assert!(order.iter().position(|&tag| tag == forced) > Some(10), "the forced one waits for the media");
}

#[test]
fn a_flush_waits_for_what_was_taken_before_it_and_for_nothing_else() {
    let mut rig = rig(|_| ());
    let before = write(&mut rig, 0, 0, false);
    let flush = rig.command(Op::Flush, Addresses::None);
    // On another channel, three programs, the second of which takes 900 us.
    let after: Vec<Command> = (0..3).map(|unit| write(&mut rig, 16, unit * 8, false)).collect();
    let second = rig.command(Op::Flush, Addresses::None);
    let commands = [(0, before), (1, flush), (2, after[0]), (2, after[1]), (2, after[2]), (3, second)];
    let ended = play(&mut rig, &commands);
    assert_eq!(ended[1], UNIT_LINK + UNIT_IN + 300_000 + COMMAND, "the first flush");
    let programs = 2 * UNIT_LINK + UNIT_IN + 300_000 + 900_000 + 300_000;
    assert_eq!(ended[5], programs + COMMAND, "the second flush waits for all");
    assert_eq!(rig.flush().0, Nanos(COMMAND), "nothing is left to wait for");
}

#[test]
fn a_flush_waits_for_a_write_that_still_waits_for_room() {
    let mut rig = rig(|_| ());
    let mut commands: Vec<(u64, Command)> =
        (0..9).map(|number| (0, write(&mut rig, number / 4, number % 4 * 8, false))).collect();
    commands.push((1, rig.command(Op::Flush, Addresses::None)));
    let ended = play(&mut rig, &commands);
    let programs = 4 * (300_000 + 900_000) + 300_000;
    assert_eq!(ended[9], UNIT_LINK + UNIT_IN + programs + COMMAND);
    assert_eq!(rig.drive.counters().media.programs, 9);
}

#[test]
fn without_a_cache_a_flush_waits_for_writes_in_flight() {
    let mut rig = rig(|config| config.cache.sectors = 0);
    let (a, b) = (write(&mut rig, 0, 0, false), rig.command(Op::Flush, Addresses::None));
    let ended = play(&mut rig, &[(0, a), (1, b)]);
    assert_eq!(ended, [UNIT_LINK + UNIT_IN + 300_000 + COMMAND; 2]);
}
