//! The shorter ways of workers with few options against the way of any worker: the same requests, replies and results.

use crate::world::{Outcome, Shape, World, preset};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::Config;
use ocssd_lightnvm::{Geometry, Payload};

/// Runs of each test.
const RUNS: u64 = 60;

/// One line each; a job has few of them, and often none.
const OPTIONS: [&[&str]; 14] = [
    &["thinktime=200us", "rate_iops=20k", "rate_iops=3k\nrate_process=poisson", "rate=20m"],
    &["fsync=3", "fdatasync=7"],
    &["verify=crc32c", "verify=md5\nverify_backlog=4", "verify=sha1\ndo_verify=0", "verify=null"],
    &["flow=1", "flow=7", "flow=2\nflow_sleep=300"],
    &["write_iolog=x", "write_hist_log=x\nlog_hist_msec=3"],
    &["latency_target=300us\nlatency_window=2ms\nlatency_percentile=90"],
    &["random_distribution=zipf:0.9", "percentage_random=40"],
    &["stonewall", "exitall", "exitall\nexit_what=all"],
    &["cmdprio_percentage=30", "write_lat_log=x\nlog_prio=1"],
    &["runtime=5ms", "runtime=80ms\ntime_based\nramp_time=10ms"],
    &["number_ios=57", "loops=2", "io_size=30%"],
    &["sync=1", "end_fsync=1"],
    &["numjobs=2", "numjobs=3"],
    &["size=50%", "offset=25%\nsize=50%"],
];

fn pick<'a>(prng: &mut Prng, words: &[&'a str]) -> &'a str {
    words[usize::try_from(prng.below(u64::try_from(words.len()).expect("a length"))).expect("an index")]
}

fn job_file(seed: u64, rw: &[&str], sizes: &[&str]) -> String {
    let mut prng = Prng::new(seed);
    let mut text = String::from("[global]\nioengine=libaio\n");
    for job in 0..=prng.below(3) {
        let (rw, size) = (pick(&mut prng, rw), pick(&mut prng, sizes));
        let depth = 1 + prng.below(40);
        text.push_str(&format!("[j{job}]\nrw={rw}\nbs={size}\niodepth={depth}\n"));
        if prng.below(2) == 0 {
            text.push_str("norandommap\n");
        }
        for words in OPTIONS {
            if prng.below(10) == 0 {
                text.push_str(pick(&mut prng, words));
                text.push('\n');
            }
        }
    }
    text
}

/// All that a run left behind; results by everything they hold.
fn left_behind(world: &mut World, text: &str, seed: u64, long: bool) -> String {
    world.goes_the_long_way = long;
    let Outcome { results, failures, unread, hash, took, .. } = world.run_on(text, &[], seed);
    format!("{hash} {took:?} {unread} {failures:?} {:?} {results:?}", world.seen())
}

fn compare(make: impl Fn() -> World, text: &str, seed: u64) {
    let [short, long] = [false, true].map(|long| left_behind(&mut make(), text, seed, long));
    let differs = short.bytes().zip(long.bytes()).position(|(a, b)| a != b);
    let around =
        differs.map(|at| [&short, &long].map(|all| &all[at.saturating_sub(80)..(at + 40).min(all.len())]));
    assert!(short == long, "seed {seed}: {around:?}\n{text}");
}

#[test]
fn every_way_of_a_raw_window_ends_the_same() {
    let small = Geometry { mw_cunits: 16, ..Geometry::example(1, 3, 5, 48, 8) };
    let drives = [preset("tiny"), Config { geometry: small, ..preset("tiny") }];
    let words = ["read", "write", "randread", "randwrite", "rw", "randrw", "randread"];
    for seed in 0..RUNS {
        let mut config = drives[usize::from(seed % 2 == 1)].clone();
        config.payload = if seed % 3 == 0 { Payload::Bytes } else { Payload::Stamp };
        let text = job_file(seed, &words, &["32k", "4k,64k", "96k", "8k,32k", "4k,32k"]);
        compare(|| World::linear(config.clone()), &text, seed);
    }
}

#[test]
fn every_way_of_a_plain_device_ends_the_same() {
    let words = [
        "read",
        "randread",
        "write",
        "randwrite",
        "randrw",
        "trim",
        "randtrim",
        "trimwrite",
        "read:4k",
        "randread:3",
    ];
    for seed in 0..RUNS {
        let text = job_file(seed, &words, &["4k", "8k", "4k,16k,12k", "20k"]);
        let shape = Shape { blocks: 700, service: Nanos::from_micros(30), servers: 3 };
        compare(|| World::memory_of(shape), &text, seed);
    }
}
