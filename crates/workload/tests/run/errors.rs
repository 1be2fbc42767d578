//! Failures on the way: what ends a job, what it survives, what is kept for the report; and that no run gets stuck.

use crate::world::{Outcome, World, preset};
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::wrap::{FaultRule, OpKind};
use ocssd_lightnvm::{ChunkId, Status};
use ocssd_targets::Layout;
use ocssd_workload::results::Direction;

fn faulty(rules: &[(OpKind, u64)], text: &str) -> Outcome {
    let rule = |&(kind, after)| FaultRule { kind, after, status: Status::WRITE_FAULT };
    let mut world = World::drive(preset("tiny"), rules.iter().map(rule).collect(), &[]);
    world.add_linear(0..4, Layout::Striped);
    world.run(text)
}

#[test]
fn a_failure_ends_its_job_with_error_5_and_is_kept() {
    let cases = [
        (OpKind::Read, "rw=randread\nbs=4k", Direction::Read),
        (OpKind::Write, "rw=write\nbs=16k", Direction::Write),
        (OpKind::Flush, "rw=write\nbs=16k\nfsync=1", Direction::Write),
        (OpKind::Reset, "rw=write\nbs=16k\nloops=3", Direction::Write),
    ];
    for (kind, settings, direction) in cases {
        let outcome =
            faulty(&[(kind, 5)], &format!("[j]\n{settings}\n[k]\nrw=write\nbs=16k\nstonewall\nio_size=64k"));
        let result = &outcome.results[0];
        assert_eq!((result.error, result.error_count), (5, 1), "{kind:?}");
        assert_eq!(result.direction(direction).errors, 1, "{kind:?}");
        let [(name, found, reply)] = &outcome.failures[..] else {
            panic!("{kind:?}: {:?}", outcome.failures)
        };
        assert_eq!((name.as_str(), *found, reply.status), ("j", direction, Status::WRITE_FAULT), "{kind:?}");
        let all = result.read.io_bytes + result.write.io_bytes;
        assert!(all < 6 << 20, "{kind:?}: it went on");
        assert_eq!(
            (outcome.results[1].error, outcome.results[1].write.io_bytes),
            (0, 64 << 10),
            "{kind:?}: the next job"
        );
    }
}

#[test]
fn continue_on_error_goes_on_after_the_errors_it_names() {
    let read = "[j]\nrw=randread\nbs=4k\ncontinue_on_error=";
    for (word, goes_on) in
        [("none", false), ("write", false), ("verify", false), ("read", true), ("io", true), ("all", true)]
    {
        let outcome = faulty(&[(OpKind::Read, 5), (OpKind::Read, 9)], &format!("{read}{word}"));
        let result = outcome.only();
        let expected = if goes_on { (0, Some(5), 1022) } else { (5, None, 5) };
        assert_eq!((result.error, result.first_error, result.read.total_ios), expected, "{word}");
    }
    let write = "[j]\nrw=write\nbs=16k\nsize=1m\ncontinue_on_error=";
    for (word, goes_on) in [("none", false), ("read", false), ("write", true), ("io", true), ("all", true)] {
        let outcome = faulty(&[(OpKind::Write, 5)], &format!("{write}{word}"));
        let result = outcome.only();
        assert_eq!(
            (result.error, result.first_error.is_some()),
            if goes_on { (0, true) } else { (5, false) },
            "{word}"
        );
        assert_eq!(result.write.total_ios, if goes_on { 63 } else { 5 }, "{word}");
    }
}

#[test]
fn a_zone_that_cannot_be_reset_is_left_and_the_others_go_on() {
    let fault = |chunk| ScheduledFault {
        kind: FaultKind::ResetFailure,
        chunk: ChunkId(chunk),
        sector: None,
        times: 1,
    };
    for lost in [1, 8] {
        let faults: Vec<ScheduledFault> = (0..lost).map(fault).collect();
        let mut world = World::drive(preset("tiny"), Vec::new(), &faults);
        world.add_linear(0..4, Layout::Striped);
        let outcome =
            world.run("[j]\nrw=write\nbs=16k\nloops=3\ncontinue_on_error=all\niodepth=4\nioengine=libaio");
        let result = outcome.only();
        assert_eq!(result.write.errors, u64::from(lost), "one failed reset each");
        let all = 3 * 4 * 8 * 32 * 4096;
        if lost == 8 {
            assert!(result.write.io_bytes < all, "no zone is left to write");
        } else {
            assert_eq!(result.write.io_bytes, all);
        }
    }
}

#[test]
fn a_zone_whose_write_failed_is_left_and_the_others_go_on() {
    for kind in [FaultKind::EarlyClose, FaultKind::WriteNextUnit] {
        let fault = ScheduledFault { kind, chunk: ChunkId(0), sector: None, times: 1 };
        let mut world = World::drive(preset("tiny"), Vec::new(), &[fault]);
        world.add_linear(0..4, Layout::Striped);
        let outcome =
            world.run("[j]\nrw=write\nbs=16k\nloops=3\ncontinue_on_error=all\niodepth=8\nioengine=libaio");
        assert!(outcome.only().write.errors >= 1, "{kind:?}");
        assert!(outcome.only().write.io_bytes > 2 * (4 << 20), "{kind:?}: {}", outcome.only().write.io_bytes);
    }
}

#[test]
fn a_sector_that_cannot_be_read_is_a_failed_read() {
    let fault =
        ScheduledFault { kind: FaultKind::UnrecoveredRead, chunk: ChunkId(3), sector: Some(5), times: 1 };
    let mut world = World::drive(preset("tiny"), Vec::new(), &[fault]);
    world.add_linear(0..4, Layout::Striped);
    let outcome = world.run("[j]\nrw=randread\nbs=4k\ncontinue_on_error=read");
    assert_eq!((outcome.only().read.errors, outcome.only().read.total_ios), (1, 1023));
    assert_eq!(outcome.failures[0].2.status, Status::UNRECOVERED_READ);
}

#[test]
fn a_broken_rule_is_named() {
    let mut world = World::drive(preset("tiny"), Vec::new(), &[]);
    world.add_linear(0..4, Layout::Striped);
    // A second window over the same units: each believes the write pointers are where it left them.
    world.add_linear(0..4, Layout::Striped);
    let outcome = world.run_on(
        "[a]\nrw=write\nbs=16k\nio_size=64k\n[b]\nrw=write\nbs=16k\nio_size=64k\nstonewall",
        &[0, 1],
        1,
    );
    assert_eq!((outcome.results[0].error, outcome.results[1].error), (0, 5));
    let reply = &outcome.failures[0].2;
    assert!(reply.violation.is_some() && !reply.status.is_success(), "{reply:?}");
}

#[test]
fn plain_devices_fail_trims_and_writes_of_what_was_trimmed() {
    for (word, place) in [("trim", 4), ("trimwrite", 4), ("trimwrite", 5)] {
        for (go_on, ends) in [("none", true), ("write", false)] {
            let mut world = World::memory();
            world.memory.borrow_mut().fail = vec![place];
            let outcome = world.run(&format!("[j]\nrw={word}\nsize=400k\ncontinue_on_error={go_on}"));
            let result = outcome.only();
            assert_eq!(result.trim.errors + result.write.errors, 1, "{word} {place}");
            assert_eq!(result.error, if ends { 5 } else { 0 }, "{word} {place}");
            assert_eq!(result.trim.total_ios + result.trim.errors == 100, !ends, "{word} {place}");
        }
    }
}
