//! What jobs must keep to or reach: steady state, a latency target, least rates, shares of a flow.

use crate::world::{Outcome, Shape, World};
use ocssd_base::Nanos;
use ocssd_workload::results::JobResult;
use ocssd_workload::results::json::{Format, to_value};
use ocssd_workload::results::{ClockKind, RunResult, Verdict};
use serde_json::{Value, json};

fn run(settings: &str) -> Outcome {
    World::memory().run(&settings.replace(' ', "\n"))
}

/// The first job as fio's JSON.
fn reported(results: Vec<JobResult>) -> Value {
    let run = RunResult {
        version: "0".into(),
        started_unix_secs: None,
        clock: ClockKind::Virtual,
        seed: 1,
        rerun_command: String::new(),
        environment: Vec::new(),
        drive: Vec::new(),
        notes: Vec::new(),
        global_options: Vec::new(),
        jobs: results,
        beside: Vec::new(),
        trace_hash: None,
        lateness: None,
        counters: None,
        limits: Vec::new(),
        tails: Vec::new(),
        verdict: Verdict::Pass,
    };
    to_value(&run, Format::Json)["jobs"][0].clone()
}

const STEADY: &str = "[j] rw=randread time_based runtime=60s ss_dur=4s ss=iops:1%";

#[test]
fn a_steady_job_ends_after_its_window() {
    // 100 us each: 10 000 a second, without any deviation.
    for (ramp, took) in [("", 4), ("ss_ramp=2s", 6), ("ramp_time=3s", 7), ("ramp_time=1s ss_ramp=2s", 7)] {
        let outcome = run(&format!("{STEADY} {ramp}"));
        assert_eq!(outcome.took.0.div_ceil(1_000_000), took * 1_000, "{ramp}");
        let report = outcome.only().steady.clone().expect("a judged job");
        assert!(report.attained && report.samples.iter().all(|sample| sample.iops.abs_diff(10_000) <= 1));
    }
}

#[test]
fn a_job_that_is_never_steady_runs_to_its_end_and_says_so() {
    let outcome = run("[j] rw=randread time_based runtime=6s ss_dur=4s ss=iops:0");
    let report = outcome.only().steady.as_ref().expect("a judged job");
    assert_eq!((outcome.took, report.attained, report.samples.len()), (Nanos::from_secs(6), false, 4));
}

#[test]
fn steady_state_stands_in_the_json_as_fio_writes_it() {
    let job = reported(run(STEADY).results);
    let steady = &job["steadystate"];
    assert_eq!(steady["ss"], json!("iops:1.000000%"));
    assert_eq!((&steady["duration"], &steady["attained"]), (&json!(4), &json!(1)));
    let mean = steady["data"]["iops_mean"].as_u64().expect("a whole number");
    assert!(mean.abs_diff(10_000) <= 1 && steady["slope"] == json!(0.0), "{steady}");
    assert_eq!(steady["data"]["bw"].as_array().map(Vec::len), Some(4));
    assert!(reported(run("[j] rw=read").results).get("steadystate").is_none());
}

#[test]
fn a_group_that_is_reported_as_one_is_judged_as_one() {
    let text = "[global] group_reporting time_based runtime=60s ss_dur=2s ss=iops_slope:1% [a] rw=read numjobs=2 \
                [b] rw=randread startdelay=500ms";
    let outcome = run(text);
    assert_eq!(outcome.took.0.div_ceil(1_000_000_000), 3, "until the late job is in the whole window");
    let reports: Vec<bool> = outcome.results.iter().map(|result| result.steady.is_some()).collect();
    assert_eq!(reports, [false, false, true]);
    let last = reported(outcome.results);
    let mean = last["steadystate"]["data"]["iops_mean"].as_u64().expect("a whole number");
    assert!(mean.abs_diff(30_000) <= 2, "{mean}");
    let refusal =
        World::memory().refusal("[a]\nrw=read\ngroup_reporting\nss_dur=2\n[b]\nrw=read\ngroup_reporting");
    assert!(refusal.contains("give all of the group the same"), "{refusal}");
}

#[test]
fn a_job_that_is_steady_by_the_snias_rule_ends_after_its_window() {
    // 10 000 a second without any change: five rounds of a second, after the ramp.
    let snia = "[j]\n;ocssd: steady=snia:round=1s\nrw=randread\ntime_based\nruntime=60s";
    for (more, took) in [("", 5), ("ramp_time=3s", 8)] {
        let outcome = World::memory().run(&format!("{snia}\n{more}"));
        assert_eq!(outcome.took.0.div_ceil(1_000_000), took * 1_000, "{more}");
        let report = outcome.only().rounds.clone().expect("a judged job");
        assert!(report.is_attained() && report.samples.len() == 5, "{report:?}");
        let job = reported(outcome.results);
        assert_eq!(job["steadystate"]["attained"], json!(1));
        assert!(
            job["steadystate"]["data"]["iops_mean"].as_u64().is_some_and(|mean| mean.abs_diff(10_000) <= 1)
        );
    }
}

#[test]
fn rounds_go_on_until_the_floor_is_written_or_they_are_given_up() {
    let job = |steady: &str| {
        let text = format!("[j]\n;ocssd: steady={steady}\nrw=randwrite\nbs=4k\ntime_based\nruntime=4s");
        let outcome = World::memory().run(&text);
        let report = outcome.only().rounds.clone().expect("a judged job");
        (outcome.took.0.div_ceil(1_000_000), report.is_attained(), report.samples.len())
    };
    // 10 000 writes of 4 KiB a second are 8 MB in a round of 200 ms; 75 MB take ten of them.
    assert_eq!(job("snia:round=200ms,floor=75m"), (2_000, true, 10));
    assert_eq!(job("snia:round=200ms,floor=75m,rounds=6"), (4_000, false, 6));
    assert_eq!(job("snia:round=1s"), (4_000, false, 4), "no window was full before the job ended");
    // A window more, moved on by one round.
    assert_eq!(job("contract:round=200ms"), (1_200, true, 6));
}

#[test]
fn the_rounds_of_a_group_are_those_of_all_its_jobs() {
    let text = "[global]\n;ocssd: steady=snia:round=500ms\ngroup_reporting\ntime_based\nruntime=60s\n\
                [a]\nrw=read\nnumjobs=2\n[b]\nrw=randread";
    let outcome = World::memory().run(text);
    let reports: Vec<bool> = outcome.results.iter().map(|result| result.rounds.is_some()).collect();
    assert_eq!(reports, [false, false, true]);
    let mean = reported(outcome.results)["steadystate"]["data"]["iops_mean"].as_u64();
    assert!(mean.is_some_and(|mean| mean.abs_diff(30_000) <= 4), "{mean:?}");
}

/// A device of `servers` that takes 100 us: `depth` in flight take `depth / servers` times as long.
fn search(servers: usize, settings: &str) -> Outcome {
    let shape = Shape { blocks: 1000, service: Nanos::from_micros(100), servers };
    let text = format!("[j] rw=randread ioengine=libaio norandommap time_based runtime=20s {settings}");
    World::memory_of(shape).run(&text.replace(' ', "\n"))
}

#[test]
fn a_latency_target_finds_the_deepest_queue_that_keeps_it() {
    for (servers, target, found) in [(1, 400, 4), (1, 1_250, 12), (4, 100, 4), (4, 200, 8), (2, 5_000, 64)] {
        let outcome = search(servers, &format!("iodepth=64 latency_target={target}us latency_window=20ms"));
        let result = outcome.only();
        assert_eq!((result.latency_target.depth, result.error), (found, 0), "{servers} servers, {target} us");
        assert!(outcome.took < Nanos::from_secs(2), "{}", outcome.took);
        // What is reported is the found depth alone: Little's law.
        let expected = 10_000.0 * f64::from(u32::try_from(servers.min(64)).expect("small"));
        let iops = result.read.total_ios as f64 / result.read.runtime.as_secs_f64();
        assert!((iops / expected - 1.0).abs() < 0.05, "{servers} servers, {target} us: {iops}");
        assert!(result.read.clat.max() <= Some(Nanos::from_micros(target)), "{servers}, {target}");
    }
}

#[test]
fn a_latency_target_is_in_the_json_in_fios_units() {
    let outcome = search(1, "iodepth=8 latency_target=300us latency_window=20ms latency_percentile=90");
    let job = reported(outcome.results);
    let keys = ["latency_depth", "latency_target", "latency_percentile", "latency_window"];
    assert_eq!(keys.map(|key| job[key].clone()), [json!(3), json!(300_000), json!(90.0), json!(20_000)]);
}

#[test]
fn a_latency_target_that_cannot_be_kept_ends_the_job_as_fio_does() {
    let missed = search(1, "iodepth=8 latency_target=50us latency_window=20ms");
    assert_eq!((missed.only().error, missed.took), (110, Nanos::from_micros(100)));
    let lenient = search(1, "iodepth=8 latency_target=50us latency_window=20ms latency_percentile=90");
    assert_eq!((lenient.only().error, lenient.took), (0, Nanos::from_secs(20)), "fio goes on at depth 1");
}

#[test]
fn a_job_below_its_least_rate_fails_after_it_had_time_to_settle() {
    let job = |settings: &str| {
        let outcome = run(&format!("[j] rw=read time_based runtime=6s {settings}"));
        (outcome.only().error, outcome.took.0.div_ceil(1_000_000))
    };
    assert_eq!(job("rate_min=30m"), (0, 6_000), "it does 10 000 I/Os of 4 KiB a second");
    assert_eq!(job("rate_min=50m"), (5, 3_000), "two seconds to settle, and one to be judged");
    assert_eq!(job("rate_min=50m rate_cycle=250"), (5, 2_250));
    assert_eq!(job("rate_iops_min=11k"), (5, 3_000));
    assert_eq!(job("rate_iops_min=9k ramp_time=4s"), (0, 10_000));
    assert_eq!(job("rate_min=,50m"), (0, 6_000), "writes are not part of the job");
}

#[test]
fn jobs_of_a_flow_share_ios_by_weight() {
    let ios =
        |text: &str| -> Vec<u64> { run(text).results.iter().map(|result| result.read.total_ios).collect() };
    let flow = "[global] rw=randread time_based runtime=600ms";
    let shared = ios(&format!("{flow} [a] flow=3 [b] flow=2 [c] flow=1"));
    let sum: u64 = shared.iter().sum();
    for (weight, ios) in [3, 2, 1].into_iter().zip(&shared) {
        assert!((ios * 6).abs_diff(sum * weight) <= 36, "{shared:?}");
    }
    let apart = ios(&format!("{flow} [a] flow=3 [b] flow=1 flow_id=2"));
    assert!(apart.iter().all(|&ios| ios == 6_000), "each flow is its own: {apart:?}");
    // One that has ended holds nobody.
    let after = ios("[global] rw=randread [a] flow=1 size=40k [b] flow=1");
    assert_eq!(after, [10, 1_000]);
}

#[test]
fn flow_sleep_makes_who_is_ahead_wait() {
    let longest = |sleep: &str| {
        let text = format!(
            "[global] rw=randread time_based runtime=50ms {sleep} [a] flow=3 size=400k [b] flow=1 offset=400k size=400k"
        );
        let (mut world, text) = (World::memory(), text.replace(' ', "\n"));
        world.run(&text);
        let of_b = world.seen().into_iter().filter(|seen| seen.block >= 100);
        let times: Vec<u64> = of_b.map(|seen| seen.at.0 / 1_000).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().expect("it did more than one")
    };
    assert!(longest("") <= 500, "{}", longest(""));
    assert!(longest("flow_sleep=2000") >= 2_000, "{}", longest("flow_sleep=2000"));
}

#[test]
fn histograms_over_time_add_up_to_the_whole_run() {
    let outcome = run("[j] rw=randrw write_hist_log=h log_hist_msec=7 ioengine=libaio iodepth=6");
    let result = outcome.only();
    let log = result.histogram_log.as_ref().expect("a log");
    let times: Vec<u64> = log.rows().iter().map(|row| row.at.0 / 1_000_000).collect();
    assert!(times.len() > 5 && times.iter().rev().skip(2).all(|time| time % 7 == 0), "{times:?}");
    for stats in [&result.read, &result.write] {
        let direction = if std::ptr::eq(stats, &result.read) { 0 } else { 1 };
        let mut sums = std::collections::BTreeMap::new();
        for row in log.rows().iter().filter(|row| row.direction.number() == direction) {
            row.bins.iter().for_each(|&(bin, count)| *sums.entry(bin).or_insert(0) += count);
            assert_eq!(row.block_bytes, 4_096);
        }
        let whole = stats.clat.histogram().since(&ocssd_workload::results::Histogram::default());
        assert_eq!(sums.into_iter().collect::<Vec<_>>(), whole);
    }
}
