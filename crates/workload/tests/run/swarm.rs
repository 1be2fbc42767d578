//! Random jobs from a seed: whatever the options, a run ends, does what it was asked, and every block read is right.

use crate::world::{Outcome, Shape, World, jobs, preset};
use ocssd_base::Prng;
use ocssd_flash::Config;
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{Geometry, Payload};
use ocssd_workload::job::{Job, Operations};
use ocssd_workload::results::JobResult;

const SECTOR: u64 = 4096;
/// `errno` of a job that found nothing to read.
const ENODATA: u32 = 61;
/// Runs of each test.
const RUNS: u64 = 150;

fn pick<'a>(prng: &mut Prng, words: &[&'a str]) -> &'a str {
    words[usize::try_from(prng.below(u64::try_from(words.len()).expect("a length"))).expect("an index")]
}

/// One option from a theme, or none.
fn maybe(prng: &mut Prng, text: &mut String, words: &[&str]) {
    if prng.below(2) == 0 {
        text.push_str(pick(prng, words));
        text.push('\n');
    }
}

/// Options that hold for any target.
fn options(prng: &mut Prng, text: &mut String, job: u64) {
    maybe(prng, text, &["iodepth=2", "iodepth=7", "iodepth=33"]);
    maybe(prng, text, &["numjobs=2", "numjobs=3"]);
    maybe(prng, text, &["loops=2", "io_size=30%", "io_size=80%\nloops=2", "number_ios=57"]);
    maybe(
        prng,
        text,
        &["runtime=5ms", "runtime=50ms\ntime_based", "runtime=80ms\ntime_based\nramp_time=10ms"],
    );
    maybe(prng, text, &["startdelay=3ms", "thinktime=200us", "thinktime=1ms\nthinktime_blocks=5"]);
    maybe(
        prng,
        text,
        &["offset=25%\nsize=50%", "size=50%", "offset=10%\nsize=40%", "size=25%\noffset_increment=25%"],
    );
    maybe(
        prng,
        text,
        &[
            "norandommap",
            "random_distribution=zipf:0.9",
            "random_distribution=pareto:0.3",
            "percentage_random=40",
        ],
    );
    maybe(prng, text, &["fsync=3", "fdatasync=7", "end_fsync=1", "sync=1"]);
    maybe(
        prng,
        text,
        &["verify=crc32c", "verify=md5\nverify_backlog=4", "verify=sha1\ndo_verify=0", "verify=null"],
    );
    maybe(prng, text, &["zero_buffers", "refill_buffers", "buffer_pattern=\"abc\""]);
    if !text.ends_with("thinktime=200us\n") && !text.contains("thinktime") {
        maybe(prng, text, &["rate_iops=20k", "rate_iops=3k\nrate_process=poisson", "rate=20m"]);
    }
    maybe(prng, text, &["cmdprio_percentage=30", "cmdprio_bssplit=4k/20/1/1:8k/50,"]);
    maybe(prng, text, &["rwmixread=20", "rwmixread=90"]);
    maybe(prng, text, &["flow=1", "flow=7", "flow=3\nflow_id=4", "flow=2\nflow_sleep=300"]);
    maybe(prng, text, &["write_iolog=x", "write_hist_log=x\nlog_hist_msec=3", "rate_iops_min=1"]);
    if prng.below(3) == 0 {
        let early = [
            "latency_target=300us\nlatency_window=2ms\nlatency_percentile=90",
            "latency_target=300us\nlatency_window=1ms\nlatency_percentile=50\nlatency_run=1",
            "ss_dur=12ms\nss_interval=3ms\nss=iops:30%",
        ];
        maybe(prng, text, &early);
    }
    if job > 0 {
        maybe(
            prng,
            text,
            &["stonewall", "wait_for=j0", "exitall", "exitall\nexit_what=stonewall", "new_group"],
        );
    }
}

fn job_file(seed: u64, rw: &[&str], sizes: &[&str], extra: &[&str]) -> String {
    let mut prng = Prng::new(seed);
    let mut text = String::from("[global]\nioengine=libaio\n");
    for job in 0..=prng.below(3) {
        text.push_str(&format!("[j{job}]\nrw={}\nbs={}\n", pick(&mut prng, rw), pick(&mut prng, sizes)));
        options(&mut prng, &mut text, job);
        maybe(&mut prng, &mut text, extra);
    }
    text
}

/// Bytes of one result in all directions; a write of what was trimmed counts as the trim.
fn bytes(job: &Job, result: &JobResult) -> u64 {
    let writes = if job.options.rw.operations == Operations::TrimWrite { 0 } else { result.write.io_bytes };
    result.read.io_bytes + writes + result.trim.io_bytes
}

/// True if only the amount of I/O ends the job.
fn ends_by_amount(jobs: &[Job], job: &Job) -> bool {
    let options = &job.options;
    let alone = jobs.iter().all(|job| !job.options.exit.all);
    let early = options.latency.target.0 > 0 || options.steady.is_on();
    alone && !early && options.runtime.is_none() && options.number_ios.is_none() && options.ramp_time.0 == 0
}

fn check(seed: u64, text: &str, capacity: u64, outcome: &Outcome) {
    let what = format!("seed {seed}\n{text}");
    assert!(outcome.failures.is_empty(), "{what}{:?}", outcome.failures);
    let jobs = jobs(text);
    let owners = jobs.iter().flat_map(|job| (0..job.options.numjobs).map(move |_| job));
    for (job, result) in owners.zip(&outcome.results) {
        let others_write = jobs.iter().any(|job| job.options.rw.operations.writes());
        if result.error == ENODATA && job.options.rw.operations == Operations::Read && others_write {
            // Those who write emptied the zones it reads, and ended.
            continue;
        }
        assert_eq!((result.error, result.error_count), (0, 0), "{what}{}", result.name);
        assert_eq!(result.verify.map_or(0, |verify| verify.failed), 0, "{what}{}", result.name);
        let done = bytes(job, result);
        let options = &job.options;
        let share =
            |name: &str| job.given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let percent =
            |value: Option<&str>| value.and_then(|value| value.strip_suffix('%')?.parse::<u64>().ok());
        let blocks = capacity / SECTOR;
        let offset = blocks * percent(share("offset")).unwrap_or(0) / 100;
        let region = percent(share("size")).map_or(blocks - offset, |size| blocks * size / 100);
        let amount = percent(share("io_size")).map_or(region, |size| blocks * size / 100);
        let expected = amount * SECTOR * u64::from(options.loops);
        let largest = options.block_sizes.as_array().iter().map(|sizes| sizes.max_bytes()).max().unwrap_or(0);
        // Of several files, each has whole I/Os.
        let cut = if options.file_set.count > 1 { u64::from(options.file_set.count) * largest } else { 0 };
        let least = if options.io_size.is_some() {
            expected
        } else {
            expected.saturating_sub(cut * u64::from(options.loops))
        };
        if ends_by_amount(&jobs, job) {
            assert!(
                (least..expected + largest).contains(&done),
                "{what}{}: {done} of {expected}",
                result.name
            );
        }
        if let Some(ios) = options.number_ios {
            let all = result.read.total_ios + result.write.total_ios + result.trim.total_ios;
            let twice = if options.rw.operations == Operations::TrimWrite { 2 } else { 1 };
            assert!(all <= ios * twice, "{what}{}: {all} I/Os", result.name);
        }
    }
}

fn total(outcome: &Outcome, of: fn(&JobResult) -> u64) -> u64 {
    outcome.results.iter().map(of).sum()
}

const ZONES: [&str; 4] = [
    "max_open_zones=2",
    "max_open_zones=3\nzonemode=zbd",
    "job_max_open_zones=2",
    "max_open_zones=1\nzonemode=zbd",
];

const ON_PLAIN: [&str; 6] = [
    "bssplit=4k/50:12k/50",
    "bsrange=4k-12k",
    "blockalign=8k",
    "nrfiles=3",
    "nrfiles=4\nfile_service_type=random",
    "nrfiles=4\nopenfiles=2",
];

#[test]
fn random_jobs_on_raw_windows_end_and_read_what_was_written() {
    let small = Geometry { mw_cunits: 16, ..Geometry::example(1, 3, 5, 48, 8) };
    let drives = [
        (preset("tiny"), ["16k", "4k,32k", "64k", "4k,48k"]),
        (preset("odd"), ["96k", "4k,96k", "192k", "12k,96k"]),
        (Config { geometry: small, ..preset("tiny") }, ["32k", "4k,64k", "96k", "8k,32k"]),
    ];
    let words = ["read", "write", "randread", "randwrite", "rw", "randrw"];
    for seed in 0..RUNS {
        let (config, sizes) = &drives[usize::try_from(seed % 3).expect("below three")];
        let payload = if seed % 2 == 0 { Payload::Stamp } else { Payload::Bytes };
        let mut config = config.clone();
        (config.payload, config.cache.sectors) = (payload, if seed % 5 == 0 { 256 } else { 0 });
        let text = job_file(seed, &words, sizes, &ZONES);
        let capacity = config.geometry.capacity_bytes();
        let mut world = World::linear(config);
        let outcome = world.run_on(&text, &[], seed);
        check(seed, &text, capacity, &outcome);
        let counts = world.counts();
        let verified =
            outcome.results.iter().any(|result| result.verify.is_some()) && text.contains("verify");
        // What was measured is all that was done, but for what came before measuring.
        let whole = !text.contains("ramp_time") && !text.contains("latency_target");
        if whole {
            let written = total(&outcome, |result| result.write.io_bytes);
            assert_eq!(counts.write.sectors * SECTOR, written, "seed {seed}\n{text}");
        }
        if whole && !verified {
            let read = total(&outcome, |result| result.read.io_bytes);
            assert_eq!(counts.read.sectors * SECTOR, read, "seed {seed}\n{text}");
        }
    }
}

#[test]
fn random_jobs_on_a_plain_device_end_and_read_what_was_written() {
    let words = [
        "read",
        "write",
        "randread",
        "randwrite",
        "rw",
        "randrw",
        "trim",
        "randtrim",
        "trimwrite",
        "randtrimwrite",
    ];
    let sizes = ["4k", "8k", "4k,16k,12k", "20k"];
    for seed in 0..RUNS {
        let text = job_file(seed, &words, &sizes, &ON_PLAIN);
        let shape = Shape { blocks: 700, service: ocssd_base::Nanos::from_micros(30), servers: 3 };
        let mut world = World::memory_of(shape);
        let outcome = world.run_on(&text, &[], seed);
        check(seed, &text, 700 * SECTOR, &outcome);
        if text.contains("ramp_time") || text.contains("latency_target") {
            continue;
        }
        let asked = |wanted: fn(BlockOp) -> bool| {
            let seen = world.seen();
            seen.iter().filter(|seen| wanted(seen.op)).map(|seen| u64::from(seen.count) * SECTOR).sum::<u64>()
        };
        let written = total(&outcome, |result| result.write.io_bytes);
        assert_eq!(asked(|op| matches!(op, BlockOp::Write { .. })), written, "seed {seed}\n{text}");
        let trimmed = total(&outcome, |result| result.trim.io_bytes);
        assert_eq!(asked(|op| op == BlockOp::Discard), trimmed, "seed {seed}\n{text}");
        let read = total(&outcome, |result| result.read.io_bytes);
        let all = asked(|op| op == BlockOp::Read);
        assert!(
            if text.contains("verify") { all >= read } else { all == read },
            "seed {seed}: {all} {read}\n{text}"
        );
    }
}

#[test]
fn random_jobs_on_emulated_zones_end_and_read_what_was_written() {
    let words = ["write", "randwrite", "rw", "randrw", "randread"];
    for seed in 0..RUNS {
        let text = job_file(seed, &words, &["4k", "8k", "4k,16k"], &ZONES[2..3]);
        let zones = ["zonesize=64k", "zonesize=128k\nzonecapacity=100k", "zonesize=64k\nmax_open_zones=2"];
        let zones = zones[usize::try_from(seed % 3).expect("below three")];
        let text = text.replace("[global]\n", &format!("[global]\nzonemode=zbd\n{zones}\n"));
        let shape = Shape { blocks: 700, service: ocssd_base::Nanos::from_micros(30), servers: 3 };
        let mut world = World::memory_of(shape);
        let outcome = world.run_on(&text, &[], seed);
        let what = format!("seed {seed}\n{text}");
        assert!(outcome.failures.is_empty(), "{what}");
        // Nothing is laid out in emulated zones: a job may find nothing to read.
        assert!(outcome.results.iter().all(|result| [0, ENODATA].contains(&result.error)), "{what}");
        assert!(outcome.results.iter().all(|r| r.verify.is_none_or(|verify| verify.failed == 0)), "{what}");
        let within = |seen: &crate::world::Seen| {
            let zone = if seed % 3 == 1 { 32 } else { 16 };
            let capacity = if seed % 3 == 1 { 25 } else { 16 };
            seen.op == BlockOp::Flush || seen.block % zone + u64::from(seen.count) <= capacity
        };
        assert!(world.seen().iter().all(within), "{what}");
    }
}
