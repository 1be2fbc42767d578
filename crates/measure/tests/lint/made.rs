//! Results made up for tests, and a short way to ask what a rule says.

use ocssd_measure::lint::{Evidence, Judgement, Selection, Settings, lint, read};
use serde_json::{Map, Value, json};

/// Reads a text that must be a result.
pub fn evidence(text: &str) -> Evidence {
    read("made", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What rule `id` says of each cell of all texts, in one word each: pass, label, warn, fail, unknown or apart.
pub fn words(id: &str, settings: &Settings, texts: &[String]) -> Vec<&'static str> {
    said(id, settings, texts)
        .iter()
        .map(|judgement| match judgement {
            Judgement::Pass => "pass",
            Judgement::Finding(severity, _) => severity.word(),
            Judgement::NotJudged(_) => "unknown",
            Judgement::NotApplicable(_) => "apart",
        })
        .collect()
}

/// What rule `id` says of each cell.
pub fn said(id: &str, settings: &Settings, texts: &[String]) -> Vec<Judgement> {
    let files: Vec<Evidence> = texts.iter().map(|text| evidence(text)).collect();
    let selection = Selection::new(&[id.to_owned()], &[]).expect("the rule exists");
    lint(&files, settings, &selection).judged.into_iter().map(|one| one.judgement).collect()
}

/// A table with this header and these rows.
pub fn table(header: &str, rows: &[&str]) -> String {
    format!("name,{header}\n{}\n", rows.iter().map(|row| format!("x,{row}")).collect::<Vec<_>>().join("\n"))
}

/// One direction of a closed loop of depth 8 in which nothing is odd: 4 KiB, 10 s, 800 us.
pub fn side() -> Value {
    json!({
        "io_bytes": 409_600_000, "bw_bytes": 40_960_000, "iops": 10_000.0, "runtime": 10_000, "total_ios": 100_000,
        "drop_ios": 0, "iops_stddev": 10.0, "iops_samples": 20,
        "slat_ns": { "mean": 2_000.0, "N": 100_000 },
        "clat_ns": { "mean": 798_000.0, "N": 100_000, "percentile": { "50.000000": 700_000, "99.990000": 2_000_000 } },
        "lat_ns": { "mean": 800_000.0, "N": 100_000 },
    })
}

/// A fio result of one job of random reads in which nothing is odd; `changes` are (path, value), `null` removes.
pub fn fio(changes: &[(&str, Value)]) -> String {
    let mut root = json!({
        "fio version": "fio-3.33",
        "jobs": [{
            "jobname": "made", "groupid": 0, "job_runtime": 10_000, "usr_cpu": 10.0, "sys_cpu": 20.0,
            "job options": { "rw": "randread", "bs": "4k", "iodepth": "8", "ioengine": "libaio", "direct": "1", "size": "8g" },
            "read": side(),
        }],
        "disk_util": [{ "read_ios": 100_000, "write_ios": 0, "read_merges": 0, "write_merges": 0 }],
    });
    for (path, value) in changes {
        change(&mut root, path, value.clone());
    }
    root.to_string()
}

/// A fio result of writes alone.
pub fn fio_writes(changes: &[(&str, Value)]) -> String {
    let base = [
        ("/jobs/0/read", Value::Null),
        ("/jobs/0/write", side()),
        ("/jobs/0/job options/rw", json!("randwrite")),
        ("/disk_util/0/write_ios", json!(100_000)),
        ("/disk_util/0/read_ios", json!(0)),
    ];
    fio(&base.into_iter().chain(changes.iter().cloned()).collect::<Vec<_>>())
}

/// The same as a result of ours, in virtual time.
pub fn own(changes: &[(&str, Value)]) -> String {
    let run = json!({
        "clock": "virtual", "lateness": null, "verdict": { "outcome": "pass", "reasons": [] },
        "drive": [{ "name": "capacity_bytes", "value": "409600000" }],
        "counters": { "sectors_read": 100_000, "sectors_read_from_cache": 0 },
        "jobs": [{ "fio": "fio --name=made", "verify": { "checked": 100_000, "failed": 0 }, "response_ns": null }],
    });
    let all: Vec<_> = [("/ocssd", run)].into_iter().chain(changes.iter().cloned()).collect();
    fio(&all)
}

fn change(root: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').expect("a path begins with a slash");
    let parent = root.pointer_mut(parent).unwrap_or_else(|| panic!("{path}: nothing is there"));
    let members: &mut Map<String, Value> = parent.as_object_mut().expect("only members are changed");
    match value {
        Value::Null => drop(members.remove(key)),
        value => drop(members.insert(key.to_owned(), value)),
    }
}
