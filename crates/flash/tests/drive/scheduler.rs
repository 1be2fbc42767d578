//! Read priority, and erases and programs suspended for reads, against the same commands in order of arrival. Times as in `timing`.

use crate::rig::{Ended, Rig, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::config::{Scheduler, Suspension};
use ocssd_lightnvm::{Command, Op};

const SUSPEND: Nanos = Nanos::from_micros(50);
const RESUME: Nanos = Nanos::from_micros(30);
/// One sector of row 0: sense, channel, link, command.
const READ: u64 = 40_000 + 11_280 + 6_028;
const ERASE: u64 = 3_000_000;
const COMMAND: u64 = 5_000;

fn priority(suspends_max: u32, bypasses_max: u32) -> Scheduler {
    let erase = Suspension { suspend: SUSPEND, resume: RESUME, suspends_max };
    Scheduler::ReadPriority { erase, program: Suspension::NEVER, bypasses_max }
}

/// The same, for programs.
fn programs(suspends_max: u32, bypasses_max: u32) -> Scheduler {
    let program = Suspension { suspend: SUSPEND, resume: RESUME, suspends_max };
    Scheduler::ReadPriority { erase: Suspension::NEVER, program, bypasses_max }
}

/// A rig whose chunks 0 and 1, of one unit, are full.
fn rig(scheduler: Scheduler) -> Rig {
    rig_with(scheduler, preset("tiny").media.registers)
}

fn rig_with(scheduler: Scheduler, registers: u32) -> Rig {
    let mut config = preset("tiny");
    config.media.registers = registers;
    config.geometry.mw_cunits = 0;
    config.scheduler = scheduler;
    let mut rig = Rig::new(config);
    rig.fill_chunk(0, 100);
    rig.fill_chunk(1, 200);
    rig
}

/// Plays commands from now on; gives when each ended, counted from now.
fn play(rig: &mut Rig, commands: &[(u64, Command)]) -> Vec<u64> {
    let start = rig.now;
    let arrivals: Vec<_> = commands.iter().map(|&(at, command)| (start + Nanos(at), command)).collect();
    let ended: Vec<Ended> = rig.play(&arrivals);
    let of =
        |command: &Command| ended.iter().find(|end| end.completion.tag == command.tag).expect("it ended");
    commands.iter().map(|(_, command)| (of(command).at - start).0).collect()
}

/// A reset of chunk 0 at 0 and reads of chunk 1, alternating between its rows, at these times.
fn reset_and_reads(rig: &mut Rig, reads: &[u64]) -> Vec<u64> {
    let mut commands = vec![(0, rig.command(Op::Reset, run(ppa(0, 0), 1)))];
    for &at in reads {
        commands.push((at, rig.command(Op::Read, run(ppa(1, 0), 1))));
    }
    play(rig, &commands)
}

#[test]
fn in_order_a_read_waits_for_the_whole_erase() {
    let mut rig = rig(Scheduler::Fifo);
    let ended = reset_and_reads(&mut rig, &[1_000_000]);
    assert_eq!(ended, [ERASE + COMMAND, ERASE + READ]);
    assert_eq!(rig.drive.counters().media.suspends, 0);
}

#[test]
fn a_read_behind_an_erase_waits_for_the_suspend_and_the_erase_grows_by_what_it_lost() {
    let mut rig = rig(priority(4, 8));
    let ended = reset_and_reads(&mut rig, &[1_000_000]);
    assert_eq!(ended[1], 1_000_000 + SUSPEND.0 + READ);
    // The array goes back to the erase as soon as the row is sensed.
    assert_eq!(ended[0], ERASE + SUSPEND.0 + 40_000 + RESUME.0 + COMMAND);
    assert_eq!(rig.drive.counters().media.suspends, 1);
}

#[test]
fn an_erase_that_is_about_to_end_is_not_suspended() {
    let mut rig = rig(priority(4, 8));
    let ended = reset_and_reads(&mut rig, &[ERASE - SUSPEND.0]);
    assert_eq!(ended, [ERASE + COMMAND, ERASE + READ]);
    assert_eq!(rig.drive.counters().media.suspends, 0);
}

#[test]
fn an_erase_is_suspended_only_so_often() {
    let mut rig = rig(priority(2, 8));
    let ended = reset_and_reads(&mut rig, &[500_000, 1_000_000, 1_500_000]);
    let lost = 2 * (SUSPEND.0 + RESUME.0);
    assert_eq!(rig.drive.counters().media.suspends, 2);
    // The second read finds its row in the register: it needs no array time.
    assert_eq!(ended[0], ERASE + lost + 40_000 + COMMAND);
    assert_eq!(ended[2], 1_000_000 + SUSPEND.0 + READ - 40_000);
    assert!(ended[3] > ended[0], "the third read waited for the erase");
    let again = reset_and_reads(&mut rig, &[]);
    assert_eq!(again.len(), 1);
}

#[test]
fn the_limit_on_suspends_starts_anew_with_the_next_erase() {
    let mut rig = rig(priority(1, 8));
    reset_and_reads(&mut rig, &[500_000]);
    rig.settle();
    rig.fill_chunk(0, 1);
    reset_and_reads(&mut rig, &[500_000]);
    assert_eq!(rig.drive.counters().media.suspends, 2);
}

#[test]
fn reads_pass_a_waiting_write_so_often_and_no_more() {
    let ended_of = |scheduler| {
        let mut rig = rig(scheduler);
        for sector in 0..8 {
            rig.fill(rig.buffer, sector, 7);
        }
        let mut commands: Vec<(u64, Command)> =
            (0..6).map(|_| (0, rig.command(Op::Read, run(ppa(1, 0), 8)))).collect();
        commands.push((0, rig.command(Op::Write { fua: false }, run(ppa(2, 0), 8))));
        // Alternating rows, so that every read needs the array.
        for (place, command) in commands.iter_mut().take(6).enumerate() {
            let row = u32::try_from(place % 2).expect("two rows") * 8;
            command.1.addresses = run(ppa(1, row), 8);
        }
        play(&mut rig, &commands)
    };
    let passed = |ended: &[u64]| ended[..6].iter().filter(|&&read| read < ended[6]).count();
    assert_eq!(passed(&ended_of(priority(4, 100))), 6, "without a bound all reads go first");
    // Reads begun before the write is over the link do not count as passing it.
    let bounded = passed(&ended_of(priority(4, 1)));
    assert!((2..=3).contains(&bounded), "{bounded} reads before the write");
}

/// A stream of reads that never leaves the queue empty must not keep a suspended erase from its end.
#[test]
fn an_endless_stream_of_reads_does_not_starve_a_suspended_erase() {
    let mut rig = rig(priority(2, 4));
    let mut commands = vec![(0, rig.command(Op::Reset, run(ppa(0, 0), 1)))];
    for number in 0..60u32 {
        // Rows in turn, two waiting at any time: 40 and 60 us of sensing every 100 us.
        let command = rig.command(Op::Read, run(ppa(1, number % 2 * 8), 1));
        commands.push((1_000_000 + u64::from(number) * 10, command));
    }
    let ended = play(&mut rig, &commands);
    let before = ended[1..].iter().filter(|&&read| read < ended[0]).count();
    assert_eq!(before, 4, "of 60 waiting reads, bypasses_max may pass");
    assert_eq!(rig.drive.counters().media.suspends, 1, "no read came after the erase was resumed");
}

#[test]
fn reads_that_keep_coming_pass_at_most_suspends_max_times_bypasses_max() {
    let mut rig = rig(priority(2, 4));
    let reads: Vec<u64> = (0..60).map(|number| 500_000 + number * 40_000).collect();
    let ended = reset_and_reads(&mut rig, &reads);
    let before = ended[1..].iter().filter(|&&read| read < ended[0]).count();
    assert!((3..=8).contains(&before), "{before} reads passed");
    assert_eq!(rig.drive.counters().media.suspends, 2);
}

/// A program was loaded into the only register, and a read that came then waited for that register, the program for it.
#[test]
fn reads_and_writes_that_share_one_register_all_end() {
    let mut rig = rig_with(priority(4, 8), 1);
    for sector in 0..8 {
        rig.fill(rig.buffer, sector, 7);
    }
    let mut commands = vec![(0, rig.command(Op::Read, run(ppa(1, 0), 1)))];
    commands.push((0, rig.command(Op::Write { fua: false }, run(ppa(2, 0), 8))));
    commands.extend((0..9).map(|at| (at * 20_000, rig.command(Op::Read, run(ppa(1, 0), 1)))));
    assert_eq!(play(&mut rig, &commands).len(), 11);
}

/// A write of one unit of chunk 2 at 0, and reads of chunk 1, alternating between its rows, at these times. When each ended.
fn write_and_reads(rig: &mut Rig, reads: &[u64]) -> Vec<u64> {
    for sector in 0..8 {
        rig.fill(rig.buffer, sector, 7);
    }
    let mut commands = vec![(0, rig.command(Op::Write { fua: false }, run(ppa(2, 0), 8)))];
    for (number, &at) in (0u32..).zip(reads) {
        commands.push((at, rig.command(Op::Read, run(ppa(1, number % 2 * 8), 1))));
    }
    play(rig, &commands)
}

/// When the write of such a run ends if nobody reads, and one sector of a slower row.
fn alone() -> u64 {
    write_and_reads(&mut rig(Scheduler::Fifo), &[])[0]
}

/// While the program is in the array.
const DURING: u64 = 300_000;

#[test]
fn a_read_behind_a_program_waits_for_the_suspend_and_the_program_grows_by_what_it_lost() {
    let alone = alone();
    let (mut fifo, mut priority, mut suspended) =
        (rig(Scheduler::Fifo), rig(priority(4, 8)), rig(programs(4, 8)));
    let waits = write_and_reads(&mut fifo, &[DURING]);
    // The array is free a command's time before the host is told of the write.
    assert_eq!(waits, [alone, alone - COMMAND + READ]);
    assert_eq!(write_and_reads(&mut priority, &[DURING]), waits, "programs are not suspended unless asked");
    let ended = write_and_reads(&mut suspended, &[DURING]);
    assert_eq!(ended, [alone + SUSPEND.0 + 40_000 + RESUME.0, DURING + SUSPEND.0 + READ]);
    let counted = |rig: &Rig| {
        let media = rig.drive.counters().media;
        (media.suspends, media.program_suspends, media.programs)
    };
    let before = counted(&fifo).2;
    assert_eq!(
        [counted(&fifo), counted(&priority), counted(&suspended)],
        [(0, 0, before), (0, 0, before), (0, 1, before)]
    );
}

#[test]
fn a_program_is_suspended_only_so_often_and_ends_with_every_read() {
    let mut rig = rig(programs(2, 64));
    let reads: Vec<u64> = (0..8).map(|number| 150_000 + number * 150_000).collect();
    let ended = write_and_reads(&mut rig, &reads);
    assert_eq!(rig.drive.counters().media.program_suspends, 2);
    let before = ended[1..].iter().filter(|&&read| read < ended[0]).count();
    assert_eq!(before, 2, "what comes after two suspends waits");
    let senses = 40_000 + 60_000;
    assert_eq!(ended[0], alone() + 2 * (SUSPEND.0 + RESUME.0) + senses);
}

/// Reads that never leave the queue empty must not keep a suspended program from its end.
#[test]
fn an_endless_stream_of_reads_does_not_starve_a_suspended_program() {
    let mut rig = rig(programs(8, 4));
    let reads: Vec<u64> = (0..60).map(|number| DURING + number * 10).collect();
    let ended = write_and_reads(&mut rig, &reads);
    let before = ended[1..].iter().filter(|&&read| read < ended[0]).count();
    assert_eq!(before, 4, "of 60 waiting reads, bypasses_max may pass");
    assert_eq!(rig.drive.counters().media.program_suspends, 1);
}

/// The next write is in the other register while the first is suspended: both end, in order, and read back.
#[test]
fn what_is_loaded_behind_a_suspended_program_waits_for_it() {
    for registers in [1, 2, 4] {
        let mut rig = rig_with(programs(3, 4), registers);
        for sector in 0..16 {
            rig.fill(rig.buffer, sector, 7);
        }
        let mut commands = vec![(0, rig.command(Op::Write { fua: false }, run(ppa(2, 0), 8)))];
        commands.push((1_000, rig.command(Op::Write { fua: false }, run(ppa(2, 8), 8))));
        commands.extend((0u32..40).map(|number| {
            (DURING + u64::from(number) * 45_000, rig.command(Op::Read, run(ppa(1, number % 2 * 8), 8)))
        }));
        let ended = play(&mut rig, &commands);
        assert!(ended[0] < ended[1], "{registers} registers: the second write ended first");
        let suspends = rig.drive.counters().media.program_suspends;
        assert!(suspends > 0, "{registers} registers: nothing was suspended");
        rig.drive.check();
    }
}
