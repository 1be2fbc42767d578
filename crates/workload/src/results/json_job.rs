//! One entry of fio's `jobs` array.

use ocssd_base::Nanos;
use serde_json::{Map, Value, json};

use super::group::{ReportedDirection, ReportedJob};
use super::interval::{IntervalSummary, rate_per_second};
use super::json::{Format, float};
use super::latency::LatencyStats;
use super::model::Direction;
use super::percentile::PercentileList;

/// fio's classes of latency: names, and their upper limits in nanoseconds, exclusive.
const LATENCY_NAMES: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
const LATENCY_LIMITS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1_000];
/// The two more classes of `latency_ms`.
const SLOW_NAMES: [&str; 2] = ["2000", ">=2000"];

/// The job as fio prints it; `all` are the jobs of the run, because `bw_agg` is a share of the group's bandwidth.
pub(super) fn job_object(job: &ReportedJob<'_>, all: &[ReportedJob<'_>], format: Format) -> Value {
    let mut root = Map::new();
    root.insert("jobname".into(), job.first.name.clone().into());
    root.insert("groupid".into(), job.first.group.into());
    root.insert("error".into(), job.error.into());
    root.insert("eta".into(), 0.into());
    root.insert("elapsed".into(), job.elapsed.0.div_ceil(1_000_000_000).into());
    if !job.last.options.is_empty() {
        root.insert("job options".into(), options_object(&job.last.options));
    }
    for (index, (direction, _)) in job.directions.iter().enumerate() {
        let group = group_bandwidth(job.first.group, index, all);
        root.insert(direction.name().into(), direction_object(job, *direction, group, format));
    }
    root.insert("sync".into(), sync_object(job, format));
    insert_cpu(&mut root, job);
    root.insert("iodepth_level".into(), shares(job.iodepth_level.percentages(job.total_ios())));
    root.insert("iodepth_submit".into(), shares(job.iodepth_submit.percentages()));
    root.insert("iodepth_complete".into(), shares(job.iodepth_complete.percentages()));
    insert_latency_classes(&mut root, job);
    insert_optional(&mut root, job);
    Value::Object(root)
}

/// Options as fio prints them: values are strings.
pub(super) fn options_object(options: &[(String, String)]) -> Value {
    options.iter().map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect()
}

/// fio's object of one latency; `percentiles` is `None` where the job does not ask for them.
pub(super) fn latency_object(
    stats: &LatencyStats,
    percentiles: Option<&PercentileList>,
    format: Format,
) -> Value {
    let mut object = Map::new();
    object.insert("min".into(), stats.min().unwrap_or_default().0.into());
    object.insert("max".into(), stats.max().unwrap_or_default().0.into());
    object.insert("mean".into(), float(stats.mean_ns()));
    object.insert("stddev".into(), float(stats.stddev_ns()));
    object.insert("N".into(), stats.count().into());
    if let Some(list) = percentiles.filter(|_| stats.count() > 0) {
        let found = stats.histogram().percentiles(list);
        let percentile: Map<String, Value> =
            found.into_iter().map(|(p, value)| (format!("{p:.6}"), value.0.into())).collect();
        object.insert("percentile".into(), percentile.into());
        if format == Format::JsonPlus {
            let bins: Map<String, Value> =
                stats.histogram().bins().map(|(value, count)| (value.0.to_string(), count.into())).collect();
            object.insert("bins".into(), bins.into());
        }
    }
    Value::Object(object)
}

fn direction_object(
    job: &ReportedJob<'_>,
    direction: Direction,
    group_bandwidth: u64,
    format: Format,
) -> Value {
    let (_, stats) = job.directions.iter().find(|(each, _)| *each == direction).expect("all three are there");
    let options = &job.last.percentiles;
    let list = |is_wanted: bool| is_wanted.then_some(&options.list);
    let mut object = Map::new();
    insert_work(&mut object, stats);
    object.insert("slat_ns".into(), latency_object(&stats.slat, list(options.slat), format));
    object.insert("clat_ns".into(), latency_object(&stats.clat, list(options.clat), format));
    object.insert("lat_ns".into(), latency_object(&stats.lat, list(options.lat), format));
    if stats.priorities.len() > 1 {
        let latency = if options.lat { "lat_ns" } else { "clat_ns" };
        let parts = stats.priorities.iter().map(|(priority, lat)| {
            json!({
                "prioclass": priority.class(),
                "prio": priority.level(),
                latency: latency_object(lat, list(options.clat || options.lat), format),
            })
        });
        object.insert("prios".into(), parts.collect());
    }
    let bandwidth = &stats.bandwidth;
    object.insert("bw_min".into(), bandwidth.min.into());
    object.insert("bw_max".into(), bandwidth.max.into());
    object.insert("bw_agg".into(), float(share_of_group(bandwidth, group_bandwidth)));
    object.insert("bw_mean".into(), float(bandwidth.mean));
    object.insert("bw_dev".into(), float(bandwidth.stddev()));
    object.insert("bw_samples".into(), bandwidth.samples.into());
    let iops = &stats.iops_samples;
    object.insert("iops_min".into(), iops.min.into());
    object.insert("iops_max".into(), iops.max.into());
    object.insert("iops_mean".into(), float(iops.mean));
    object.insert("iops_stddev".into(), float(iops.stddev()));
    object.insert("iops_samples".into(), iops.samples.into());
    Value::Object(object)
}

fn insert_work(object: &mut Map<String, Value>, stats: &ReportedDirection) {
    let bytes_per_second = stats.bytes_per_second();
    object.insert("io_bytes".into(), stats.io_bytes.into());
    object.insert("io_kbytes".into(), (stats.io_bytes / 1_024).into());
    object.insert("bw_bytes".into(), bytes_per_second.into());
    object.insert("bw".into(), (bytes_per_second / 1_024).into());
    object.insert("iops".into(), float(stats.iops()));
    object.insert("runtime".into(), millis_up(stats.runtime).into());
    object.insert("total_ios".into(), stats.total_ios.into());
    object.insert("short_ios".into(), stats.short_ios.into());
    object.insert("drop_ios".into(), stats.drop_ios.into());
}

fn sync_object(job: &ReportedJob<'_>, format: Format) -> Value {
    let options = &job.last.percentiles;
    let list = (options.clat || options.lat).then_some(&options.list);
    json!({ "total_ios": job.sync.total_ios, "lat_ns": latency_object(&job.sync.lat, list, format) })
}

fn insert_cpu(root: &mut Map<String, Value>, job: &ReportedJob<'_>) {
    let percent = |used: Nanos| match job.run_time {
        Nanos::ZERO => 0.0,
        run_time => 100.0 * used.as_secs_f64() / run_time.as_secs_f64(),
    };
    root.insert("job_runtime".into(), millis_up(job.run_time).into());
    root.insert("usr_cpu".into(), float(percent(job.cpu.user)));
    root.insert("sys_cpu".into(), float(percent(job.cpu.system)));
    root.insert("ctx".into(), job.cpu.context_switches.into());
    root.insert("majf".into(), job.cpu.major_faults.into());
    root.insert("minf".into(), job.cpu.minor_faults.into());
}

/// `latency_ns`, `latency_us` and `latency_ms`: in percent of all I/Os, from the completion latencies as in fio.
fn insert_latency_classes(root: &mut Map<String, Value>, job: &ReportedJob<'_>) {
    let counts = latency_classes(job);
    let total = job.total_ios();
    let mut names = LATENCY_NAMES.to_vec();
    for (key, from) in [("latency_ns", 0), ("latency_us", 10), ("latency_ms", 20)] {
        if key == "latency_ms" {
            names.extend(SLOW_NAMES);
        }
        let class_shares =
            names.iter().zip(&counts[from..]).map(|(name, &count)| (*name, class_share(count, total)));
        root.insert(key.into(), shares(class_shares));
    }
}

/// Counts in fio's 10 + 10 + 12 classes, nanoseconds first.
fn latency_classes(job: &ReportedJob<'_>) -> [u64; 32] {
    let mut counts = [0; 32];
    for (value, count) in job.directions.iter().flat_map(|(_, stats)| stats.clat.histogram().bins()) {
        let (first, scaled) = match value.0 {
            0..1_000 => (0, value.0),
            1_000..1_000_000 => (10, value.0 / 1_000),
            _ => (20, value.0 / 1_000_000),
        };
        let class = LATENCY_LIMITS.iter().position(|&limit| scaled < limit);
        let slow = if scaled < 2_000 { 10 } else { 11 };
        counts[first + class.unwrap_or(slow)] += count;
    }
    counts
}

/// A share in percent; a class that is not empty shows at least 0.01, as in fio.
#[expect(clippy::cast_precision_loss, reason = "a share shown with six decimals")]
fn class_share(count: u64, total: u64) -> f64 {
    if count == 0 || total == 0 { 0.0 } else { (count as f64 / total as f64 * 100.0).max(0.01) }
}

fn insert_optional(root: &mut Map<String, Value>, job: &ReportedJob<'_>) {
    if let Some(first_error) = job.last.first_error {
        root.insert("total_err".into(), job.error_count.into());
        root.insert("first_error".into(), first_error.into());
    }
    let target = &job.last.latency_target;
    root.insert("latency_depth".into(), target.depth.into());
    root.insert("latency_target".into(), target.target.0.into());
    root.insert("latency_percentile".into(), float(target.percentile));
    root.insert("latency_window".into(), (target.window.0 / 1_000).into());
    if !job.first.description.is_empty() {
        root.insert("desc".into(), job.first.description.clone().into());
    }
    if let Some(steady) = &job.last.steady {
        root.insert("steadystate".into(), steady.object());
    } else if let Some(rounds) = &job.last.rounds {
        root.insert("steadystate".into(), rounds.object());
    }
}

/// The bandwidth of a whole group in one direction, in bytes per second: all bytes over the longest runtime.
fn group_bandwidth(group: u32, direction: usize, all: &[ReportedJob<'_>]) -> u64 {
    let stats = || all.iter().filter(|job| job.first.group == group).map(|job| &job.directions[direction].1);
    let longest = stats().map(|stats| stats.runtime).max().unwrap_or_default();
    rate_per_second(stats().map(|stats| stats.io_bytes).sum(), longest)
}

/// fio's `bw_agg`: mean bandwidth in percent of the group's, at most 100, and 100 for a group below 1 KiB/s.
#[expect(clippy::cast_precision_loss, reason = "a share shown with six decimals")]
fn share_of_group(bandwidth: &IntervalSummary, group_bytes_per_second: u64) -> f64 {
    match (bandwidth.samples, group_bytes_per_second) {
        (0, _) => 0.0,
        (_, 0..=1_024) => 100.0,
        (_, group) => (bandwidth.mean.trunc() * 100.0 / (group as f64 / 1_024.0)).min(100.0),
    }
}

fn shares<'a>(named: impl IntoIterator<Item = (&'a str, f64)>) -> Value {
    named.into_iter().map(|(name, share)| (name.to_owned(), float(share))).collect()
}

/// Milliseconds, rounded up as fio does.
fn millis_up(time: Nanos) -> u64 {
    time.0.div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{DirectionStats, IoTimes, JobResult, SeriesOptions, reported_jobs};

    fn job(latencies: &[u64]) -> JobResult {
        let mut job = JobResult::new("j", SeriesOptions::default());
        for &clat in latencies {
            let times = IoTimes { clat: Nanos(clat), lat: Nanos(clat), slat: Nanos::ZERO };
            job.read.record(Nanos::ZERO, 4_096, times);
        }
        job.read.finish(Nanos::from_millis(4));
        job
    }

    fn object(job: JobResult, format: Format) -> Value {
        let jobs = [job];
        let reported = reported_jobs(&jobs);
        job_object(&reported[0], &reported, format)
    }

    #[test]
    fn latencies_fall_into_fios_classes() {
        let cases = [
            (1, "latency_ns", "2"),
            (2, "latency_ns", "4"),
            (999, "latency_ns", "1000"),
            (1_500, "latency_us", "2"),
            (60_000, "latency_us", "100"),
            (900_000, "latency_us", "1000"),
            (1_500_000, "latency_ms", "2"),
            (1_500_000_000, "latency_ms", "2000"),
            (3_000_000_000, "latency_ms", ">=2000"),
        ];
        for (clat, key, name) in cases {
            let object = object(job(&[clat]), Format::Json);
            assert_eq!(object[key][name], 100.0, "{clat} ns: {}", object[key]);
            let all: f64 = ["latency_ns", "latency_us", "latency_ms"]
                .iter()
                .flat_map(|key| object[key].as_object().unwrap().values())
                .map(|share| share.as_f64().unwrap())
                .sum();
            assert!((all - 100.0).abs() < 1e-9, "{clat} ns is in one class only, and {all} % are in all");
        }
    }

    #[test]
    fn rates_are_over_the_runtime() {
        let read = &object(job(&[10; 8]), Format::Json)["read"];
        assert_eq!(
            (&read["iops"], &read["bw_bytes"], &read["bw"]),
            (&json!(2_000.0), &json!(8_192_000), &json!(8_000))
        );
        assert_eq!((&read["runtime"], &read["io_kbytes"]), (&json!(4), &json!(32)));
    }

    #[test]
    fn bins_are_in_json_plus_only_and_percentiles_where_asked() {
        let plain = object(job(&[10, 200]), Format::Json);
        assert_eq!(plain["read"]["clat_ns"]["percentile"]["99.990000"], 201);
        assert_eq!(plain["read"]["clat_ns"].get("bins"), None);
        assert_eq!(plain["write"]["clat_ns"].get("percentile"), None);
        let plus = object(job(&[10, 200]), Format::JsonPlus);
        assert_eq!(plus["read"]["clat_ns"]["bins"], json!({ "10": 1, "201": 1 }));
        assert_eq!(plus["read"]["lat_ns"].get("bins"), None);
    }

    #[test]
    fn survived_errors_and_a_description_appear_when_there_are_any() {
        let quiet = object(job(&[10]), Format::Json);
        assert_eq!((quiet.get("total_err"), quiet.get("desc"), quiet.get("job options")), (None, None, None));
        let mut loud = job(&[10]);
        (loud.first_error, loud.error_count, loud.description) = (Some(5), 3, "why".into());
        let loud = object(loud, Format::Json);
        assert_eq!(
            (&loud["total_err"], &loud["first_error"], &loud["desc"]),
            (&json!(3), &json!(5), &json!("why"))
        );
    }

    #[test]
    fn the_share_of_the_group_counts_all_its_jobs() {
        let mut jobs = [job(&[10]), job(&[10])];
        for (index, job) in (0..).zip(&mut jobs) {
            job.read = DirectionStats::default();
            job.read.record(Nanos::ZERO, 1_048_576 * (3 - 2 * index), IoTimes::default());
            job.read.finish(Nanos::from_secs(1));
        }
        let reported = reported_jobs(&jobs);
        let agg =
            |index: usize| job_object(&reported[index], &reported, Format::Json)["read"]["bw_agg"].clone();
        assert_eq!((agg(0), agg(1)), (json!(75.0), json!(25.0)));
    }
}
