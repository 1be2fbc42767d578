//! The key `ocssd` of our own results.

use serde_json::{Map, Value};

use crate::lint::{Attested, Clock, Evidence, Format, Moved, OwnProfile, OwnRun};
use crate::storage::Surroundings;

/// The row of a drive's description with the shortest time in which its media can be read, in nanoseconds.
pub const MEDIA_READ_ROW: &str = "media_read_ns";

/// Adds what it says to evidence made of the rest.
pub(super) fn add(evidence: &mut Evidence, run: &Map<String, Value>) {
    evidence.format = Format::Ocssd;
    let clock = match run.get("clock").and_then(Value::as_str) {
        Some("virtual") => Some(Clock::Virtual),
        Some("wall") => Some(Clock::Wall),
        _ => None,
    };
    let lateness = run.get("lateness");
    let number = |object: Option<&Value>, key: &str| object?.get(key)?.as_u64();
    let counters = run.get("counters");
    evidence.own = Some(OwnRun {
        clock,
        late: number(lateness, "replies").zip(number(lateness, "late")),
        capacity_bytes: row(run, "capacity_bytes").and_then(|text| text.parse().ok()),
        sectors_read: number(counters, "sectors_read").zip(number(counters, "sectors_read_from_cache")),
        media_read_ns: row(run, MEDIA_READ_ROW).and_then(|text| text.parse().ok()),
        bad_verdict: bad_verdict(run),
        profile: run.get("profile").and_then(Value::as_object).map(profile),
    });
    let is_real = run.get("profile").is_some_and(|profile| profile["attestation"].is_object());
    let jobs = run.get("jobs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let setup = format!(" on {}", run.get("drive").unwrap_or(&Value::Null));
    for (cell, job) in evidence.cells.iter_mut().zip(jobs) {
        let verify = job.get("verify").filter(|verify| verify.is_object());
        cell.own_verify = number(verify, "checked").zip(number(verify, "failed"));
        cell.open_loop = Some(job.get("response_ns").is_some_and(Value::is_object));
        // Where the job is placed stands behind the `#` of its fio command.
        let extension = job.get("fio").and_then(Value::as_str).and_then(|text| text.split_once('#'));
        cell.workload += &format!(" {}{setup}", extension.map_or("", |(_, extension)| extension.trim()));
        // A virtual drive has no page cache below it.
        cell.direct = if is_real { cell.direct } else { Some(true) };
    }
}

fn row<'a>(run: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let rows = run.get("drive")?.as_array()?;
    rows.iter().find(|row| row["name"] == name)?.get("value")?.as_str()
}

fn bad_verdict(run: &Map<String, Value>) -> Option<String> {
    let verdict = run.get("verdict")?;
    let outcome = verdict.get("outcome")?.as_str().filter(|outcome| *outcome != "pass")?;
    let reasons: Vec<&str> = verdict.get("reasons")?.as_array()?.iter().filter_map(Value::as_str).collect();
    Some(format!("{outcome}: {}", reasons.join("; ")))
}

/// What only profiles say.
fn profile(object: &Map<String, Value>) -> OwnProfile {
    let float = |key: &str| object.get(key).and_then(Value::as_f64);
    let rest = object.get("steady").and_then(Value::as_object).and_then(|steady| {
        Some((steady.get("is_steady")?.as_bool()?, steady.get("sentence")?.as_str()?.to_owned()))
    });
    OwnProfile {
        attested: object.get("attestation").and_then(Value::as_object).and_then(attested),
        ceiling_iops: float("ceiling_iops"),
        link_bytes_per_second: float("link_bytes_per_second"),
        surroundings: object.get("surroundings").and_then(surroundings),
        rest,
    }
}

fn surroundings(value: &Value) -> Option<(Surroundings, Surroundings)> {
    Some((Surroundings::from_value(value.get("before")?), Surroundings::from_value(value.get("after")?)))
}

fn attested(object: &Map<String, Value>) -> Option<Attested> {
    let moved = |key: &str| {
        let pair = object.get(key)?;
        Some(Moved {
            read_bytes: pair.get("read_bytes")?.as_u64()?,
            written_bytes: pair.get("written_bytes")?.as_u64()?,
        })
    };
    Some(Attested {
        asked: moved("asked")?,
        process: moved("process"),
        disk: moved("disk"),
        resident_share: object.get("resident_share").and_then(Value::as_f64),
    })
}
