//! Recorded I/O: written as fio writes it, replayed as it was.

use crate::world::{World, preset, try_jobs};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::BlockOp;
use ocssd_workload::job::{IologOp, ReplayOptions, parse_iolog};
use ocssd_workload::results::logs::requested_logs;

/// The log that a job writes.
fn recorded(text: &str) -> (World, String) {
    let mut world = World::memory();
    let outcome = world.run(&text.replace(' ', "\n"));
    let files = requested_logs(&outcome.results);
    let file = files.into_iter().find(|file| file.name == "x").expect("the log that was asked for");
    (world, file.content)
}

#[test]
fn a_recording_holds_every_request_in_order() {
    let (world, log) = recorded("[w] rw=randrw bssplit=4k/50:12k/50 fsync=7 size=400k write_iolog=x");
    let seen: Vec<_> = world
        .seen()
        .iter()
        .map(|seen| {
            let op = match seen.op {
                BlockOp::Read => IologOp::Read,
                BlockOp::Write { .. } => IologOp::Write,
                BlockOp::Flush => IologOp::Flush,
                other => panic!("{other:?} was not asked for"),
            };
            (op, seen.block * 4_096, u64::from(seen.count) * 4_096)
        })
        .collect();
    let actions = parse_iolog(&log, &ReplayOptions::default()).expect("our own log");
    let found: Vec<_> = actions.iter().map(|action| (action.op, action.offset, action.bytes)).collect();
    assert_eq!(found, seen);
    assert!(log.starts_with("fio version 3 iolog\n0 w.0.0 add\n0 w.0.0 open\n0 w.0.0 "), "{log}");
    assert!(log.trim_end().ends_with("w.0.0 close"), "{log}");
}

#[test]
fn clones_share_the_log_they_name() {
    let (_, log) =
        recorded("[w] rw=read size=8k numjobs=2 write_iolog=x directory=/d filename_format=f.$jobnum");
    for name in ["/d/f.0", "/d/f.1"] {
        assert_eq!(log.lines().filter(|line| line.contains(&format!(" {name} read "))).count(), 2, "{log}");
    }
    assert_eq!(log.lines().filter(|line| line.contains("iolog")).count(), 1, "one head");
}

#[test]
fn a_log_is_replayed_as_it_stands() {
    let mut world = World::memory();
    let outcome = world.run("[j]\nread_iolog=replay.log\nioengine=libaio\niodepth=4");
    let seen: Vec<_> =
        world.seen().iter().map(|seen| ((seen.at - outcome.start).0 / 1_000, seen.op, seen.block)).collect();
    let write = BlockOp::Write { fua: false };
    let expected = [
        (0, BlockOp::Read, 0),
        (100, BlockOp::Read, 10),
        (200, write, 0),
        (300, BlockOp::Read, 1),
        (400, BlockOp::Flush, 0),
        (500, BlockOp::Discard, 2),
        (600, BlockOp::Read, 3),
        (700, write, 4),
        (800, BlockOp::Read, 0),
        (900, BlockOp::Read, 20),
        (1_200, BlockOp::Read, 22),
        (1_500, BlockOp::Read, 0),
    ];
    assert_eq!(seen, expected);
    let result = outcome.only();
    assert_eq!((result.read.total_ios, result.write.total_ios, result.trim.total_ios), (8, 2, 1));
    assert_eq!((result.write.io_bytes, result.sync.total_ios, result.error), (20_480, 1, 0));
}

#[test]
fn a_device_that_cannot_follow_shifts_what_comes_after() {
    let took = |settings: &str| {
        World::memory().run(&format!("[j]\nread_iolog=replay.log\nioengine=libaio\n{settings}")).took.0
            / 1_000
    };
    assert_eq!(took("iodepth=4"), 1_600);
    assert_eq!(took("iodepth=1"), 1_600, "it is just fast enough");
    assert_eq!(took("iodepth=4\nreplay_time_scale=50"), 3_100);
    assert_eq!(took("iodepth=1\nreplay_no_stall=1"), 1_200, "one after the other");
    assert_eq!(took("iodepth=4\nreplay_no_stall=1"), 300);
    assert_eq!(took("iodepth=4\nruntime=550us"), 600, "time ends it too");
}

#[test]
fn version_2_waits_from_the_start_of_the_job() {
    let mut world = World::memory();
    let outcome = world.run("[j]\nread_iolog=reads.log\nstartdelay=1ms");
    let times: Vec<u64> = world.seen().iter().map(|seen| (seen.at - outcome.start).0 / 1_000).collect();
    assert_eq!(times, [1_000, 3_000]);
}

#[test]
fn clones_take_logs_in_turn() {
    let mut world = World::memory();
    world.run("[j]\nread_iolog=reads.log:replay.log\nnumjobs=3");
    assert_eq!(world.seen().len(), 2 + 12 + 2);
}

#[test]
fn reads_of_a_log_are_laid_out_on_a_raw_window() {
    let mut world = World::linear(preset("tiny"));
    let outcome = world.run("[j]\nread_iolog=reads.log");
    let verify = outcome.only().verify.expect("a window is stamped");
    assert_eq!((outcome.only().read.total_ios, verify.checked, verify.failed), (2, 3, 0));
}

#[test]
fn what_is_replayed_is_verified_as_what_is_made_up() {
    let outcome = World::memory().run("[j]\nread_iolog=replay.log\nverify=crc32c");
    let verify = outcome.only().verify.expect("it verifies");
    assert!(verify.checked >= 5 && verify.failed == 0, "{verify:?}");
    let mut world = World::memory();
    world.memory.borrow_mut().lie = Some(5);
    let outcome = world.run("[j]\nread_iolog=replay.log\nverify=crc32c");
    assert_eq!(outcome.only().error, 84);
}

#[test]
fn a_log_that_does_not_fit_names_its_line() {
    let refuse = |text: &str| World::memory().refusal(&format!("[j]\n{text}"));
    let odd = refuse("read_iolog=odd.log");
    assert!(odd.contains("line 5 of its log") && odd.contains("replay_align=4096"), "{odd}");
    let raw = World::linear(preset("tiny")).refusal("[j]\nread_iolog=replay.log");
    assert!(raw.contains("line 6 of its log is a write"), "{raw}");
    let errors = try_jobs("[j]\nread_iolog=two.log").expect_err("two files").to_string();
    assert!(errors.starts_with("two.log:5: [j]") && errors.contains("replay_redirect"), "{errors}");
}

#[test]
fn what_is_recorded_replays_to_the_same_requests_at_the_same_times() {
    let text = "[w] rw=randrw ioengine=libaio iodepth=3 rate_iops=2k size=200k randseed=3";
    let (world, log) = recorded(&format!("{text} write_iolog=x"));
    let of = |world: &World| -> Vec<_> {
        let first = world.seen()[0].at;
        world.seen().iter().map(|seen| (seen.at - first, seen.op, seen.block, seen.count)).collect()
    };
    let mut again = World::memory();
    let jobs = ocssd_workload::job::parse_job_file(
        "[j]\nread_iolog=x\nioengine=libaio\niodepth=3",
        "t",
        &|_| None,
        &|_| Ok(log.clone()),
    );
    again.run_jobs(jobs.expect("a valid job").jobs);
    // The first pause of a log that starts at 0 is none, as in fio: all later ones are as long as they were, as far as
    // microseconds can say.
    let pauses = |list: &[(Nanos, BlockOp, u64, u32)]| -> Vec<u64> {
        list.windows(2).skip(1).map(|pair| (pair[1].0 - pair[0].0).0).collect()
    };
    let (before, after) = (of(&world), of(&again));
    let what =
        |list: &[(Nanos, BlockOp, u64, u32)]| list.iter().map(|io| (io.1, io.2, io.3)).collect::<Vec<_>>();
    assert_eq!(what(&before), what(&after));
    let close = pauses(&before)
        .into_iter()
        .zip(pauses(&after))
        .all(|(before, after)| before.abs_diff(after) <= 1_000);
    assert!(close, "{before:?}\n{after:?}");
}
