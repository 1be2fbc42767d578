//! What the drive says its slow commands waited for. Times as in `timing`.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::config::{Scheduler, Suspension};
use ocssd_flash::{SlowCommand, Wait, WaitFor};
use ocssd_lightnvm::{Op, PuId};

/// The longest wait of the only read, which came at 1 ms, behind one change that came at 0.
fn wait_of_a_read_behind(scheduler: Scheduler, op: Op, chunk: u32) -> Option<Wait> {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.scheduler = scheduler;
    let write_unit = config.geometry.ws_opt;
    let mut rig = Rig::new(config);
    rig.fill_chunk(0, 100);
    rig.fill_chunk(1, 200);
    rig.drive.watch_waits();
    let count = if op == Op::Reset { 1 } else { write_unit };
    let change = rig.command(op, run(ppa(chunk, 0), count));
    let read = rig.command(Op::Read, run(ppa(1, 0), 1));
    let start = rig.now;
    rig.play(&[(start, change), (start + Nanos::from_micros(200), read)]);
    let mut reads: Vec<SlowCommand> =
        rig.drive.slowest_commands().copied().filter(|command| command.is_read).collect();
    let only = reads.pop().expect("a read ended");
    assert!(reads.is_empty(), "one read ended");
    assert_eq!((only.submitted, only.buffer), (start + Nanos::from_micros(200), rig.buffer));
    only.longest()
}

#[test]
fn a_read_behind_an_erase_waited_for_it_at_its_unit() {
    let erase = preset("tiny").media.erase;
    let expected = Wait { what: WaitFor::Erase, pu: PuId(0), time: erase - Nanos::from_micros(200) };
    assert_eq!(wait_of_a_read_behind(Scheduler::Fifo, Op::Reset, 0), Some(expected));
}

#[test]
fn a_read_behind_a_program_waited_for_that() {
    let wait = wait_of_a_read_behind(Scheduler::Fifo, Op::Write { fua: false }, 2).expect("it waited");
    assert_eq!((wait.what, wait.pu), (WaitFor::Program, PuId(0)));
}

#[test]
fn a_read_of_another_unit_waited_for_no_array() {
    let other = preset("tiny").geometry.chunks_per_pu;
    let wait = wait_of_a_read_behind(Scheduler::Fifo, Op::Reset, other);
    assert_eq!(wait, None);
}

#[test]
fn a_read_that_an_erase_made_way_for_waited_for_less() {
    let suspend = Nanos::from_micros(50);
    let erase = Suspension { suspend, resume: suspend, suspends_max: 1 };
    let scheduler = Scheduler::ReadPriority { erase, program: Suspension::NEVER, bypasses_max: 8 };
    let wait = wait_of_a_read_behind(scheduler, Op::Reset, 0);
    assert!(wait.is_none_or(|wait| wait.time <= suspend), "{wait:?}");
}

/// The unit did nothing: both its registers had data that were on their way, or waited for that.
#[test]
fn a_read_behind_those_whose_data_take_long_waited_for_the_channel() {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.scheduler = Scheduler::Fifo;
    // A sector takes four milliseconds, more than any other step.
    config.channel.bytes_per_second = 1 << 20;
    let mut rig = Rig::new(config);
    (0..4).for_each(|chunk| rig.fill_chunk(chunk, 100 * u64::from(chunk)));
    rig.drive.watch_waits();
    let start = rig.now;
    let arrivals: Vec<_> = (0..4)
        .map(|chunk| (start + Nanos(chunk.into()), rig.command(Op::Read, run(ppa(chunk, 0), 1))))
        .collect();
    rig.play(&arrivals);
    let last = rig.drive.slowest_commands().max_by_key(|command| command.submitted).expect("four ended");
    assert_eq!(last.submitted, start + Nanos(3));
    assert!(last.time() >= Nanos::from_micros(15_000), "four sectors go over the channel: {last:?}");
    let wait = last.longest().expect("it waited");
    assert_eq!((wait.what, wait.pu), (WaitFor::Channel, PuId(0)), "{last:?}");
    assert!(last.own_time() < wait.time, "{last:?} had {} of its own", last.own_time());
}

#[test]
fn nothing_is_kept_before_somebody_asks() {
    let mut rig = Rig::new(preset("tiny"));
    rig.fill_chunk(0, 100);
    assert_eq!(rig.drive.slowest_commands().count(), 0);
}

#[test]
fn only_the_slowest_are_kept() {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    let mut rig = Rig::new(config);
    rig.fill_chunk(0, 100);
    rig.drive.watch_waits();
    for _ in 0..5_000 {
        let read = rig.command(Op::Read, run(ppa(0, 0), 1));
        let now = rig.now;
        rig.play(&[(now, read)]);
    }
    assert!(rig.drive.slowest_commands().count() <= 4_096, "more is kept than there is room for");
}
