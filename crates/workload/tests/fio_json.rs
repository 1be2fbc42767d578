//! Our results against fio itself: the same percentiles from the same bins, and the same JSON.
//!
//! Needs the `fio` program, version 3.33 as in Debian 12.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use ocssd_base::Nanos;
use ocssd_workload::results::json::{Format, to_value};
use ocssd_workload::results::{
    ClockKind, Direction, Histogram, JobResult, LatencyStats, PercentileList, RunResult, SeriesOptions,
    Verdict,
};
use serde_json::{Map, Value};

/// Jobs that between them make fio print all it prints without a trim-capable device. The last two have as many
/// samples as it takes to see how fio rounds: in doubles, 0.1 % of 1000 samples would be another sample; if fio
/// divided by 100 in 80-bit floats, 15 % of 100 samples would be.
const JOB_FILE: &str = "\
[global]
size=4m
bs=4k
randseed=7
[mixed]
description=reads and writes
rw=randrw
ioengine=libaio
iodepth=8
fsync=32
time_based
runtime=2
lat_percentiles=1
slat_percentiles=1
continue_on_error=all
[group]
stonewall
rw=randread
ioengine=psync
numjobs=2
number_ios=500
group_reporting
percentile_list=0.1:0.2:0.4:0.8:1.6:2.1:99.9:100
[hundred]
stonewall
rw=randwrite
ioengine=psync
number_ios=100
percentile_list=15:30:54
";

/// Objects whose keys are data.
const OPEN_OBJECTS: [&str; 4] = ["bins", "percentile", "job options", "global options"];

/// Paths that only fio has, each with its reason. Everything else fio prints, we print with the same type.
const FIO_ONLY: [(&str, &str); 1] = [("disk_util[]", "no kernel disk lies below the virtual drive")];

/// What fio printed for `JOB_FILE`, run once for all tests.
fn fio() -> &'static Value {
    static OUTPUT: OnceLock<Value> = OnceLock::new();
    OUTPUT.get_or_init(|| {
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fio-json-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        std::fs::write(folder.join("job.fio"), JOB_FILE).expect("the folder was just made");
        let run = Command::new("fio")
            .args(["--output-format=json+", "--output=out.json", "job.fio"])
            .current_dir(&folder)
            .output()
            .unwrap_or_else(|error| {
                panic!("this test compares with the program `fio`: install the package `fio` ({error})")
            });
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "fio ended with {}: {said}", run.status);
        let text = std::fs::read_to_string(folder.join("out.json")).expect("fio wrote its output");
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
        let value: Value = serde_json::from_str(&text).expect("fio writes JSON");
        assert_eq!(value["fio version"], "fio-3.33", "these tests describe fio 3.33");
        value
    })
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("an object was expected, not {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a whole number was expected, not {value}"))
}

/// The bins fio printed in one latency object, as (value, count).
fn bins(latency: &Value) -> Vec<(u64, u64)> {
    let parse = |name: &String| name.parse().expect("a bin is named by its nanoseconds");
    latency.get("bins").map_or_else(Vec::new, |bins| {
        object(bins).iter().map(|(name, count)| (parse(name), number(count))).collect()
    })
}

/// Every object in `value` that has bins, with its path.
fn objects_with_bins(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            if members.contains_key("bins") {
                found.push((path.to_owned(), value.clone()));
            }
            members
                .iter()
                .for_each(|(name, member)| objects_with_bins(member, &format!("{path}/{name}"), found));
        }
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(index, item)| objects_with_bins(item, &format!("{path}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn percentiles_from_fios_bins_are_fios_percentiles() {
    let mut found = Vec::new();
    objects_with_bins(fio(), "", &mut found);
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    for needed in
        ["/jobs/0/read/clat_ns", "/jobs/0/write/clat_ns", "/jobs/0/sync/lat_ns", "/jobs/1/read/clat_ns"]
    {
        assert!(paths.contains(&needed), "fio printed no bins at {needed}, only at {paths:?}");
    }
    let samples = |job: usize, direction: &str| &fio()["jobs"][job][direction]["clat_ns"]["N"];
    assert_eq!(
        (samples(1, "read"), samples(2, "write")),
        (&1_000.into(), &100.into()),
        "where fio's rounding shows"
    );
    for (path, latency) in &found {
        let mut histogram = Histogram::default();
        bins(latency).into_iter().for_each(|(value, count)| histogram.record_many(Nanos(value), count));
        assert_eq!(histogram.count(), number(&latency["N"]), "samples at {path}");
        let printed = object(&latency["percentile"]);
        let list =
            printed.keys().map(|name| name.parse().expect("a percentile is named by its number")).collect();
        let list = PercentileList::new(list).expect("fio's own list");
        let ours: Map<String, Value> = histogram
            .percentiles(&list)
            .into_iter()
            .map(|(p, value)| (format!("{p:.6}"), value.0.into()))
            .collect();
        assert_eq!(&ours, printed, "at {path}");
        let reread: Vec<(u64, u64)> = histogram.bins().map(|(value, count)| (value.0, count)).collect();
        assert_eq!(reread, bins(latency), "a bin changes its bucket at {path}");
    }
}

/// Statistics that hold what fio printed: its bins, or `stand_in` where it printed only moments.
fn latency_like(latency: &Value, stand_in: &Value) -> LatencyStats {
    let mut stats = LatencyStats::default();
    let own = bins(latency);
    let bins = if own.is_empty() && number(&latency["N"]) > 0 { bins(stand_in) } else { own };
    for (value, count) in bins {
        (0..count).for_each(|_| stats.record(Nanos(value)));
    }
    stats
}

fn options_like(options: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("fio prints options as strings").to_owned();
    object(options).iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn job_like(fio_job: &Value) -> JobResult {
    let text = |key: &str| fio_job.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let mut job = JobResult::new(text("jobname"), SeriesOptions::default());
    job.group = u32::try_from(number(&fio_job["groupid"])).expect("three groups");
    job.options = options_like(&fio_job["job options"]);
    job.description = text("desc");
    job.percentiles.lat = fio_job["read"]["lat_ns"].get("bins").is_some();
    job.percentiles.slat = fio_job["read"]["slat_ns"].get("bins").is_some();
    job.first_error = fio_job.get("first_error").map(|_| 0);
    job.run_time = Nanos::from_millis(number(&fio_job["job_runtime"]));
    for direction in Direction::ALL {
        let theirs = &fio_job[direction.name()];
        let ours = job.direction_mut(direction);
        ours.total_ios = number(&theirs["total_ios"]);
        ours.io_bytes = number(&theirs["io_bytes"]);
        ours.runtime = Nanos::from_millis(number(&theirs["runtime"]));
        ours.slat = latency_like(&theirs["slat_ns"], &theirs["clat_ns"]);
        ours.clat = latency_like(&theirs["clat_ns"], &theirs["clat_ns"]);
        ours.lat = latency_like(&theirs["lat_ns"], &theirs["clat_ns"]);
    }
    job.sync.total_ios = number(&fio_job["sync"]["total_ios"]);
    job.sync.lat = latency_like(&fio_job["sync"]["lat_ns"], &Value::Null);
    job
}

/// Our output for a run that did what fio did.
fn ours() -> Value {
    let fio = fio();
    let jobs = fio["jobs"].as_array().expect("fio prints jobs").iter().map(job_like).collect();
    let run = RunResult {
        version: "0.1.0".into(),
        started_unix_secs: Some(number(&fio["timestamp"])),
        clock: ClockKind::Virtual,
        seed: 7,
        rerun_command: String::new(),
        environment: Vec::new(),
        drive: Vec::new(),
        limits: Vec::new(),
        tails: Vec::new(),
        notes: Vec::new(),
        global_options: options_like(&fio["global options"]),
        jobs,
        beside: Vec::new(),
        trace_hash: None,
        lateness: None,
        counters: None,
        verdict: Verdict::Pass,
    };
    to_value(&run, Format::JsonPlus)
}

/// Adds the type of `value` and of everything in it, by path.
fn collect_types(value: &Value, path: &str, types: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    types.entry(path.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_types(item, &format!("{path}[]"), types)),
        Value::Object(members) => {
            let is_open = OPEN_OBJECTS.iter().any(|name| path.ends_with(name));
            for (name, member) in members {
                let name = if is_open { "*" } else { name };
                collect_types(member, &format!("{path}/{name}"), types);
            }
        }
        _ => {}
    }
}

fn types_of(value: &Value) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut types = BTreeMap::new();
    collect_types(value, "", &mut types);
    types
}

#[test]
fn our_json_has_fios_keys_and_types_and_only_one_more_key() {
    let (theirs, ours) = (types_of(fio()), types_of(&ours()));
    assert!(theirs.len() > 200, "fio printed only {} paths", theirs.len());
    for (path, kinds) in &theirs {
        if FIO_ONLY.iter().any(|(prefix, _)| path.trim_start_matches('/').starts_with(prefix)) {
            continue;
        }
        assert_eq!(ours.get(path), Some(kinds), "types at {path}");
    }
    for path in ours.keys() {
        // fio says how busy a disk was where its file lies on one, which it does not on tmpfs or in a container.
        let is_fios = theirs.contains_key(path) || path.starts_with("/disk_util");
        assert!(is_fios || path.starts_with("/ocssd"), "fio has no {path}");
    }
}

#[test]
fn every_exception_from_fios_keys_is_still_one() {
    let ours = types_of(&ours());
    for (prefix, reason) in FIO_ONLY {
        let has_it = ours.keys().any(|path| path.trim_start_matches('/').starts_with(prefix));
        assert!(!has_it, "{prefix} is printed now; remove the exception \"{reason}\"");
    }
}

/// Asserts that members both sides have stand in the same order, at every level.
fn assert_same_order(theirs: &Value, ours: &Value, path: &str) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let their_keys: Vec<&String> = theirs.keys().filter(|name| ours.contains_key(*name)).collect();
            let our_keys: Vec<&String> = ours.keys().filter(|name| theirs.contains_key(*name)).collect();
            assert_eq!(our_keys, their_keys, "order of keys at {path}");
            their_keys
                .iter()
                .for_each(|name| assert_same_order(&theirs[*name], &ours[*name], &format!("{path}/{name}")));
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.iter().zip(ours).for_each(|(theirs, ours)| assert_same_order(theirs, ours, path));
        }
        _ => {}
    }
}

#[test]
fn our_keys_stand_in_fios_order() {
    assert_same_order(fio(), &ours(), "");
}

#[test]
fn what_follows_from_counts_equals_fios_numbers() {
    let (theirs, ours) = (fio(), ours());
    for job in 0..3 {
        for direction in Direction::ALL {
            let (theirs, ours) =
                (&theirs["jobs"][job][direction.name()], &ours["jobs"][job][direction.name()]);
            for key in ["io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios"] {
                assert_eq!(ours[key], theirs[key], "{key} of {} of job {job}", direction.name());
            }
            assert_eq!(
                ours["clat_ns"]["bins"],
                theirs["clat_ns"]["bins"],
                "bins of {} of job {job}",
                direction.name()
            );
            let mean = |value: &Value| value["clat_ns"]["mean"].as_f64().expect("a float");
            let tolerance = mean(theirs) / 64.0;
            assert!(
                (mean(ours) - mean(theirs)).abs() <= tolerance,
                "mean of {} of job {job}",
                direction.name()
            );
        }
    }
}

/// The share, in percent, of the job's completions that lie so close to a class limit that their bucket may hide on
/// which side they were.
#[expect(clippy::cast_precision_loss, reason = "a share in percent")]
fn undecided_share(fio_job: &Value) -> f64 {
    let limits = [2_u64, 4, 10, 20, 50, 100, 250, 500, 750, 1_000, 2_000];
    let limits: Vec<u64> =
        [1, 1_000, 1_000_000].iter().flat_map(|unit| limits.map(|limit| limit * unit)).collect();
    let all: Vec<(u64, u64)> =
        Direction::ALL.iter().flat_map(|direction| bins(&fio_job[direction.name()]["clat_ns"])).collect();
    let is_undecided = |value: u64| limits.iter().any(|limit| limit.abs_diff(value) <= limit / 64);
    let undecided: u64 = all.iter().filter(|(value, _)| is_undecided(*value)).map(|(_, count)| count).sum();
    undecided as f64 / all.iter().map(|(_, count)| count).sum::<u64>() as f64 * 100.0
}

#[test]
fn latency_classes_are_fios_but_for_buckets_on_a_limit() {
    let ours = ours();
    for (job, theirs) in fio()["jobs"].as_array().expect("fio prints jobs").iter().enumerate() {
        // fio shows at least 0.01 % for any class that is not empty.
        let tolerance = undecided_share(theirs) + 0.01;
        for key in ["latency_ns", "latency_us", "latency_ms"] {
            for (class, share) in object(&theirs[key]) {
                let (theirs, ours) = (share.as_f64(), ours["jobs"][job][key][class].as_f64());
                let difference = (theirs.expect("a float") - ours.expect("a float")).abs();
                assert!(
                    difference <= tolerance,
                    "{key} {class} of job {job}: {theirs:?} and {ours:?}, {tolerance} allowed"
                );
            }
        }
    }
}
