//! When things are done: depth, rates, pauses, times, the order of jobs.

use crate::world::{Outcome, Shape, World};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::BlockOp;

const SERVICE: Nanos = Nanos::from_micros(100);

fn run(settings: &str) -> (World, Outcome) {
    let mut world = World::memory();
    let outcome = world.run(&settings.replace(' ', "\n"));
    (world, outcome)
}

/// Start and end of each job's requests, by the part of the device it uses: 100 blocks each.
fn spans(world: &World) -> Vec<(Nanos, Nanos)> {
    let seen = world.seen();
    let jobs = seen.iter().map(|seen| seen.block / 100).max().map_or(0, |last| last + 1);
    (0..jobs)
        .map(|job| {
            let mut times = seen.iter().filter(|seen| seen.block / 100 == job).map(|seen| seen.at);
            let first = times.next().expect("each job asks something");
            (first, times.next_back().unwrap_or(first))
        })
        .collect()
}

#[test]
fn a_closed_loop_keeps_exactly_its_depth_in_flight() {
    for depth in [1, 3, 8, 40] {
        let (world, outcome) = run(&format!("[j] rw=randread ioengine=libaio iodepth={depth}"));
        let seen = world.seen();
        assert!(seen.iter().all(|seen| seen.depth <= depth), "depth {depth}");
        // Completions of one moment are all answered by new requests before time goes on.
        let mut moments = seen.windows(2).filter(|pair| pair[0].at != pair[1].at).map(|pair| pair[0].depth);
        assert!(moments.all(|reached| reached == depth), "depth {depth}");
        // Little's law on four servers: 1000 I/Os take 1000 / min(depth, 4) services.
        let rounds = 1000u64.div_ceil(u64::from(depth.min(4)));
        assert!(outcome.took.0.abs_diff(SERVICE.0 * rounds) <= SERVICE.0, "depth {depth}: {}", outcome.took);
    }
    let (world, _) = run("[j] rw=randread ioengine=psync iodepth=8");
    assert!(world.seen().iter().all(|seen| seen.depth == 1), "a synchronous engine keeps one");
    let (world, _) = run("[j] rw=randread ioengine=libaio iodepth=3 numjobs=2 io_size=400k");
    assert_eq!(world.seen().iter().map(|seen| seen.depth).max(), Some(6), "each clone has its own");
}

#[test]
fn a_rate_is_met_and_not_exceeded() {
    for (setting, per_second) in
        [("rate_iops=1k", 1_000.0), ("rate=4m", 1_000.0 * 1.024), ("rate_iops=500", 500.0)]
    {
        for process in ["linear", "poisson"] {
            let (_, outcome) =
                run(&format!("[j] rw=randread {setting} rate_process={process} kb_base=1000 loops=3"));
            let rate = 3_000.0 / outcome.took.as_secs_f64();
            let expected = if setting == "rate=4m" { 4_000_000.0 / 4096.0 } else { per_second };
            let spread = if process == "linear" { 0.01 } else { 0.06 };
            assert!(
                (rate / expected - 1.0).abs() < spread,
                "{setting} {process}, seed 1: {rate} of {expected}"
            );
        }
    }
    let (world, _) = run("[j] rw=randrw rate_iops=,200 number_ios=200");
    let writes: Vec<Nanos> =
        world.seen().iter().filter(|seen| seen.op != BlockOp::Read).map(|seen| seen.at).collect();
    let spaced = writes.windows(2).all(|pair| pair[1] - pair[0] >= Nanos::from_micros(4_800));
    assert!(spaced, "writes alone are capped");
}

#[test]
fn the_intended_start_counts_when_the_device_cannot_follow() {
    let job = |rate: u32, more: &str| {
        let (_, outcome) = run(&format!(
            "[j] rw=randread ioengine=libaio iodepth=4 rate_iops={rate} rate_process=poisson norandommap loops=4 {more}"
        ));
        outcome.only().clone()
    };
    // 4 servers of 100 us serve 40 000 a second.
    let calm = job(4_000, "");
    let response = calm.response.as_ref().expect("an open loop has a response time");
    assert!(response.mean_ns() < 1.5 * calm.read.clat.mean_ns(), "{}", response.mean_ns());
    let overloaded = job(80_000, "");
    let response = overloaded.response.as_ref().expect("an open loop has a response time");
    assert!(
        overloaded.read.clat.mean_ns() <= 100_001.0,
        "the device itself is never asked for more than four"
    );
    assert!(response.mean_ns() > 20.0 * overloaded.read.clat.mean_ns(), "{}", response.mean_ns());
    assert!(response.max() > Some(Nanos::from_millis(40)), "half of 4000 I/Os wait for the others");
    assert!(run("[j] rw=randread rate_iops=1k io_size=40k").1.only().response.is_none());
}

#[test]
fn the_extension_decides_from_when_latency_counts() {
    let response = |process: &str, word: &str| {
        let text = format!("[j]\nrw=read\nrate_iops=1k\nio_size=40k\n{process}\n;ocssd: response={word}");
        World::memory().run(&text).only().response.is_some()
    };
    assert!(response("", "intended") && !response("rate_process=poisson", "issued"));
}

#[test]
fn thinktime_pauses_after_so_many_ios() {
    for (blocks, pauses) in [(1, 99), (5, 19), (100, 0)] {
        let (world, outcome) = run(&format!("[j] rw=read size=400k thinktime=2ms thinktime_blocks={blocks}"));
        let seen = world.seen();
        let long = seen.windows(2).filter(|pair| pair[1].at - pair[0].at >= Nanos::from_millis(2)).count();
        assert_eq!(long, pauses, "{blocks}");
        assert!(outcome.took >= Nanos::from_millis(2) * u64::try_from(pauses).expect("a count"));
    }
}

#[test]
fn runtime_ends_a_job_and_time_based_repeats_it_until_then() {
    let (_, long) = run("[j] rw=read size=40k runtime=50ms");
    assert_eq!((long.only().read.total_ios, long.took), (10, SERVICE * 10));
    let (_, cut) = run("[j] rw=read runtime=50ms");
    assert_eq!((cut.only().read.total_ios, cut.took), (500, Nanos::from_millis(50)));
    let (_, repeated) = run("[j] rw=read size=40k runtime=50ms time_based");
    assert_eq!((repeated.only().read.total_ios, repeated.took), (500, Nanos::from_millis(50)));
    let (_, waiting) = run("[j] rw=read runtime=50ms rate_iops=1");
    assert_eq!(waiting.took, Nanos::from_millis(50), "time ends a job that waits");
}

#[test]
fn ramp_time_is_run_but_not_measured() {
    let (world, outcome) = run("[j] rw=read runtime=50ms time_based ramp_time=20ms");
    let result = outcome.only();
    assert_eq!(world.seen().len(), 700);
    // What was started just before the ramp ended is measured, as it completes after it.
    assert!(result.read.total_ios.abs_diff(500) <= 1, "{}", result.read.total_ios);
    assert_eq!((outcome.took, result.run_time), (Nanos::from_millis(70), Nanos::from_millis(50)));
}

#[test]
fn jobs_start_when_their_turn_comes() {
    let part = |job: u32, more: &str| format!("[j{job}] rw=read offset={}k size=400k {more} ", job * 400);
    let ends = |more: [&str; 3]| {
        let text: String = (0..).zip(more).map(|(job, more)| part(job, more)).collect();
        let (world, outcome) = run(&text);
        let start = outcome.start;
        spans(&world)
            .into_iter()
            .map(|(from, to)| ((from - start).0 / 1_000_000, (to - start).0 / 1_000_000))
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(["", "", ""]), [(0, 9), (0, 9), (0, 9)]);
    assert_eq!(ends(["", "startdelay=20ms", ""]), [(0, 9), (20, 29), (0, 9)]);
    assert_eq!(ends(["", "", "stonewall"]), [(0, 9), (0, 9), (10, 19)]);
    assert_eq!(ends(["", "stonewall", "stonewall"]), [(0, 9), (10, 19), (20, 29)]);
    assert_eq!(ends(["loops=2", "", "wait_for=j1"]), [(0, 19), (0, 9), (10, 19)]);
    assert_eq!(ends(["", "stonewall startdelay=5ms", ""]), [(0, 9), (15, 24), (10, 19)]);
}

#[test]
fn exitall_ends_the_jobs_of_its_group_only() {
    let text = "[a] rw=read size=40k exitall [b] rw=read runtime=1 time_based [c] rw=read runtime=30ms time_based new_group";
    let (_, outcome) = run(text);
    let ends: Vec<u64> = outcome.results.iter().map(|result| result.run_time.0 / 1_000_000).collect();
    assert_eq!(ends, [1, 1, 30]);
}

#[test]
fn exit_what_says_whom_exitall_ends() {
    let ends = |what: &str| {
        let text = format!(
            "[a] rw=read size=40k exitall {what} [b] rw=read runtime=1 time_based [c] rw=read runtime=30ms \
             time_based new_group [d] rw=read runtime=20ms time_based stonewall startdelay=10ms"
        );
        let (_, outcome) = run(&text);
        outcome.results.iter().map(|result| result.elapsed.0 / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(ends(""), [1, 1, 30, 60]);
    assert_eq!(ends("exit_what=group"), ends(""));
    assert_eq!(ends("exit_what=stonewall"), [1, 1, 1, 31]);
    // Neither the last job nor its delay begins.
    assert_eq!(ends("exit_what=all"), [1, 1, 1, 1]);
}

#[test]
fn a_job_whose_delay_is_not_over_ends_with_its_group() {
    let (world, outcome) = run("[a] rw=read size=40k exitall [b] rw=write startdelay=1");
    assert!(outcome.took <= Nanos::from_millis(1), "{}", outcome.took);
    assert!(world.seen().iter().all(|seen| seen.op == BlockOp::Read));
}

#[test]
fn offload_submits_at_its_rate_whatever_the_engine_and_counts_from_then() {
    let job = "[j] rw=randread ioengine=psync iodepth=8 number_ios=500";
    let (world, _) = run(&format!("{job} io_submit_mode=offload"));
    assert_eq!(world.seen().iter().map(|seen| seen.depth).max(), Some(8), "threads of its own wait");
    let (world, _) = run(&format!("{job} io_submit_mode=inline"));
    assert_eq!(world.seen().iter().map(|seen| seen.depth).max(), Some(1), "the job waits itself");
    // One thread needs 100 us an I/O and is asked for twice as many: it falls behind, and the delay counts.
    let late = "[j] rw=randread ioengine=psync rate_iops=20k number_ios=500";
    let (_, outcome) = run(&format!("{late} io_submit_mode=offload"));
    let response = outcome.only().response.as_ref().expect("counted from when the rate let it start");
    assert!(response.max() > Some(SERVICE * 200), "{:?}", response.max());
    let (_, outcome) = run(late);
    assert!(outcome.only().response.is_none());
}

#[test]
fn flushes_come_after_so_many_writes_and_at_the_end() {
    for (setting, flushes) in
        [("fsync=8", 12), ("fdatasync=10", 9), ("end_fsync=1", 1), ("fsync=8 end_fsync=1", 13), ("", 0)]
    {
        let (world, outcome) = run(&format!("[j] rw=write size=400k {setting}"));
        let seen = world.seen();
        let at: Vec<usize> = seen
            .iter()
            .enumerate()
            .filter(|(_, seen)| seen.op == BlockOp::Flush)
            .map(|(place, _)| place)
            .collect();
        assert_eq!(at.len(), flushes, "{setting}");
        assert_eq!(outcome.only().sync.total_ios, u64::try_from(flushes).expect("a count"), "{setting}");
        if setting == "fsync=8" {
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] == 9), "{at:?}");
        }
        if setting.contains("end_fsync") {
            assert_eq!(at.last(), Some(&(seen.len() - 1)), "{setting}");
        }
    }
}

#[test]
fn the_null_engine_costs_no_time() {
    let outcome = World::null().run("[j]\nioengine=null\nrw=randread\nnumber_ios=100000\niodepth=8");
    assert_eq!((outcome.only().read.total_ios, outcome.took), (100_000, Nanos::ZERO));
    let outcome = World::null().run("[j]\nioengine=null\nrw=randtrimwrite\nnumber_ios=1000\niodepth=8");
    assert_eq!((outcome.only().trim.total_ios, outcome.only().write.total_ios), (1_000, 1_000));
}

#[test]
fn an_idle_device_adds_nothing_to_a_request() {
    let mut world = World::memory_of(Shape { blocks: 64, service: Nanos(1), servers: 1 });
    let outcome = world.run("[j]\nrw=read");
    let latency = &outcome.only().read.lat;
    assert_eq!((latency.min(), latency.max()), (Some(Nanos(1)), Some(Nanos(1))));
}

/// Goal: a run that is stopped ends as soon as what is in flight has, whatever its jobs wait for, and keeps what was measured.
/// Method: beside a job at work, jobs that wait for a time, for another job and for a pause; one verifies what it wrote, one is
/// in its ramp.
#[test]
fn a_run_that_is_stopped_ends_at_once_and_keeps_what_was_measured() {
    let mut world = World::memory();
    world.stopped_after = Some(Nanos::from_millis(20));
    let outcome = world.run(
        "[work]\nrw=randread\nbs=4k\nsize=400k\ntime_based\nruntime=100\n\
         [late]\nstartdelay=50\nrw=randread\noffset=400k\nsize=400k\n\
         [slow]\nrw=randread\noffset=800k\nsize=400k\nthinktime=60s\n\
         [checked]\nrw=write\noffset=1200k\nsize=400k\nverify=crc32c\nthinktime=1ms\n\
         [ramp]\nrw=randread\noffset=1600k\nsize=400k\nramp_time=30\ntime_based\nruntime=10\n\
         [after]\nstonewall\nrw=randread\noffset=2000k\nsize=400k\n",
    );
    assert!(outcome.took <= Nanos::from_millis(20) + SERVICE + SERVICE, "it took {}", outcome.took);
    let ios: Vec<u64> =
        outcome.results.iter().map(|result| result.read.total_ios + result.write.total_ios).collect();
    assert!(ios[0] > 50 && ios[2] == 1 && ios[3] > 5, "{ios:?}");
    assert_eq!((ios[1], ios[4], ios[5]), (0, 0, 0), "{ios:?}");
    let work = &outcome.results[0];
    assert!(work.run_time > Nanos::ZERO && work.run_time <= outcome.took, "{}", work.run_time);
    assert_eq!(work.read.runtime, work.run_time);
    assert!(outcome.results.iter().all(|result| result.error == 0));
}

#[test]
fn a_job_that_leaves_reading_back_to_another_verifies_nothing() {
    // The last finds nothing to compare: nobody wrote what it reads, and its result says so.
    for (settings, verifies, compares) in [
        ("rw=write verify=crc32c", true, true),
        ("rw=write verify=crc32c do_verify=0", false, false),
        ("rw=randread verify=crc32c do_verify=0", true, false),
    ] {
        let (_, outcome) = run(&format!("[j] {settings} size=400k"));
        let verify = outcome.only().verify;
        assert_eq!(verify.is_some(), verifies, "{settings}");
        assert_eq!(verify.is_some_and(|verify| verify.checked > 0), compares, "{settings}");
    }
}
