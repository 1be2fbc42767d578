//! A run as fio's `--output-format=json` and `json+`: the keys, their order and their types are those of fio 3.33.
//!
//! Everything fio does not know is under one more key, `ocssd`. Numbers are computed as fio does, with these
//! differences:
//! - rates are over the runtime in nanoseconds, where fio rounds it up to milliseconds first;
//! - `latency_ns`, `latency_us`, `latency_ms` come from the histogram, so a latency within 1/64 of a class limit may
//!   count in the class next to it;
//! - `eta` is 0 for a finished run, where fio prints 2147483647;
//! - `disk_util` is empty: there is no kernel disk below.

use serde_json::{Map, Value, json};

use super::calendar::ctime;
use super::group::{ReportedJob, reported_jobs};
use super::json_job::{job_object, latency_object, options_object};
use super::model::{ClockKind, Lateness, Row, RunResult};
use super::tail::Tail;

/// The fio whose format is written; readers only print it or compare its start.
const FIO_VERSION: &str = "fio-3.33";

/// Whether `json+` is written, which adds the `bins` of every histogram shown with percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `--output-format=json`
    Json,
    /// `--output-format=json+`
    JsonPlus,
}

/// The run as fio's JSON object. Equal runs give equal objects, in the same key order.
#[must_use]
pub fn to_value(run: &RunResult, format: Format) -> Value {
    let reported = reported_jobs(&run.jobs);
    let finished = finished_unix_secs(run);
    let mut root = Map::new();
    root.insert("fio version".into(), format!("{FIO_VERSION}-ocssd-{}", run.version).into());
    root.insert("timestamp".into(), finished.into());
    root.insert("timestamp_ms".into(), (finished * 1_000).into());
    root.insert("time".into(), ctime(finished).into());
    // fio leaves the key out when there are no global options.
    if !run.global_options.is_empty() {
        root.insert("global options".into(), options_object(&run.global_options));
    }
    let jobs = reported.iter().map(|job| job_object(job, &reported, format)).collect();
    root.insert("jobs".into(), Value::Array(jobs));
    root.insert("disk_util".into(), Value::Array(Vec::new()));
    root.insert("ocssd".into(), own_object(run, &reported, format));
    Value::Object(root)
}

/// The run as text, indented by two spaces, with a line end.
#[must_use]
pub fn to_text(run: &RunResult, format: Format) -> String {
    format!("{:#}\n", to_value(run, format))
}

/// A number with fio's six decimals, always with a fraction so that its type never changes.
///
/// # Panics
/// If the number is infinite or not a number.
pub(super) fn float(number: f64) -> Value {
    let rounded = (number * 1e6).round() / 1e6;
    assert!(rounded.is_finite(), "{number} cannot be written as JSON");
    Value::from(rounded)
}

/// When the run ended: fio stamps its output. Virtual time does not move the calendar.
fn finished_unix_secs(run: &RunResult) -> u64 {
    let longest = run.jobs.iter().map(|job| job.elapsed.0 / 1_000_000_000).max().unwrap_or(0);
    match (run.started_unix_secs, run.clock) {
        (None, _) => 0,
        (Some(started), ClockKind::Virtual) => started,
        (Some(started), ClockKind::Wall) => started + longest,
    }
}

/// What fio has no key for. 64-bit values are strings where readers that hold numbers as doubles would change them.
fn own_object(run: &RunResult, reported: &[ReportedJob<'_>], format: Format) -> Value {
    let mut object = json!({
        "version": run.version,
        "clock": run.clock.name(),
        "started_unix_secs": run.started_unix_secs,
        "seed": run.seed.to_string(),
        "rerun": run.rerun_command,
        "trace_hash": run.trace_hash.map(|hash| format!("{hash:016x}")),
        "verdict": { "outcome": run.verdict.outcome(), "reasons": run.verdict.reasons() },
        "limits": run.limits,
        "tails": run.tails.iter().map(Tail::to_json).collect::<Vec<_>>(),
        "notes": run.notes,
        "drive": rows_object(&run.drive),
        "environment": rows_object(&run.environment),
        "lateness": run.lateness.as_ref().map(lateness_object),
        "jobs": reported.iter().map(|job| own_job_object(job, format)).collect::<Vec<_>>(),
        "counters": run.counters,
    });
    if !run.beside.is_empty() {
        object["beside"] = run.beside.iter().map(|beside| beside.object.clone()).collect();
    }
    object
}

/// Lines of a description as a list of one-entry rows, because names may repeat.
fn rows_object(rows: &[Row]) -> Value {
    rows.iter().map(|row| json!({ "name": row.name, "value": row.value })).collect()
}

fn lateness_object(lateness: &Lateness) -> Value {
    let delay = &lateness.delay;
    json!({
        "threshold_ns": lateness.threshold.0,
        "replies": delay.count(),
        "late": lateness.late,
        "delay_ns": {
            "mean": float(delay.mean_ns()),
            "p99": delay.histogram().percentile(99.0).map(|value| value.0),
            "max": delay.max().map(|value| value.0),
        },
    })
}

fn own_job_object(job: &ReportedJob<'_>, format: Format) -> Value {
    let list = &job.last.percentiles.list;
    let errors: Map<String, Value> =
        job.directions.iter().map(|(ddir, stats)| (ddir.name().into(), stats.errors.into())).collect();
    json!({
        "jobname": job.first.name,
        "groupid": job.first.group,
        "members": job.members,
        "fio": job.first.fio_command,
        "errors": errors,
        "error_count": job.error_count,
        "verify": job.verify.map(|verify| json!({ "checked": verify.checked, "failed": verify.failed })),
        "steady_rounds": job.last.rounds.as_ref().map(|rounds| rounds.own_object()),
        "response_ns": job.response.as_ref().map(|stats| latency_object(stats, Some(list), format)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{JobResult, LatencyStats, SeriesOptions, Verdict};
    use ocssd_base::Nanos;

    fn run() -> RunResult {
        RunResult {
            version: "0.1.0".into(),
            started_unix_secs: None,
            clock: ClockKind::Virtual,
            seed: u64::MAX,
            rerun_command: "ocssd fio a.fio --seed 7".into(),
            environment: Vec::new(),
            drive: vec![Row::new("drive", "tiny")],
            limits: Vec::new(),
            tails: Vec::new(),
            notes: Vec::new(),
            global_options: Vec::new(),
            jobs: vec![JobResult::new("j", SeriesOptions::default())],
            beside: Vec::new(),
            trace_hash: Some(0xAB),
            lateness: None,
            counters: Some(json!({ "pu": [1, 2] })),
            verdict: Verdict::Pass,
        }
    }

    #[test]
    fn keys_stand_in_fios_order_and_ours_last() {
        let value = to_value(&run(), Format::Json);
        let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["fio version", "timestamp", "timestamp_ms", "time", "jobs", "disk_util", "ocssd"]);
        assert_eq!(value["fio version"], "fio-3.33-ocssd-0.1.0");
    }

    #[test]
    fn wide_numbers_survive_readers_that_use_doubles() {
        let own = &to_value(&run(), Format::Json)["ocssd"];
        assert_eq!(
            (&own["seed"], &own["trace_hash"]),
            (&json!("18446744073709551615"), &json!("00000000000000ab"))
        );
        assert_eq!(own["counters"], json!({ "pu": [1, 2] }));
    }

    #[test]
    fn a_run_without_a_start_has_the_same_text_every_time() {
        assert_eq!(to_text(&run(), Format::JsonPlus), to_text(&run(), Format::JsonPlus));
        assert_eq!(to_value(&run(), Format::Json)["time"], "Thu Jan  1 00:00:00 1970");
    }

    #[test]
    fn only_wall_time_moves_the_timestamp_to_the_end() {
        let mut run = run();
        run.started_unix_secs = Some(1_000);
        run.jobs[0].elapsed = Nanos::from_secs(5);
        assert_eq!(to_value(&run, Format::Json)["timestamp"], 1_000);
        run.clock = ClockKind::Wall;
        assert_eq!(to_value(&run, Format::Json)["timestamp"], 1_005);
    }

    #[test]
    fn response_time_and_lateness_appear_when_measured() {
        let mut run = run();
        assert_eq!(to_value(&run, Format::Json)["ocssd"]["lateness"], Value::Null);
        let mut delay = LatencyStats::default();
        delay.record(Nanos(100));
        run.jobs[0].response = Some(delay.clone());
        run.lateness = Some(Lateness { threshold: Nanos(50), late: 1, delay });
        let own = &to_value(&run, Format::JsonPlus)["ocssd"];
        assert_eq!(own["lateness"]["delay_ns"]["max"], 100);
        assert_eq!(own["jobs"][0]["response_ns"]["bins"], json!({ "100": 1 }));
    }
}
