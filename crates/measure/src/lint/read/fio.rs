//! fio's JSON, versions 2 and 3, and ours, which is fio's with one key more.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document::kind;
use super::error::ReadProblem;
use super::options::{Options, whole_as_float};
use super::{own, size};
use crate::lint::evidence::thousandths;
use crate::lint::{
    Cell, DiskCounters, Evidence, Format, Latency, Percentiles, Side, SideKind, Steady, SyncWork,
};

/// A sector in the kernel's counters is 512 bytes, whatever the disk's.
const KERNEL_SECTOR: u64 = 512;
/// Times are printed in whole milliseconds, so of shorter runs no sum of them is compared (chosen: 1 % off at most).
const RUN_SECS_MIN: f64 = 0.1;

/// Reads fio's root object.
pub(super) fn from_object(name: &str, root: &Map<String, Value>) -> Result<Evidence, ReadProblem> {
    let Some(jobs) = root.get("jobs").or_else(|| root.get("client_stats")).and_then(Value::as_array) else {
        return Err(ReadProblem::OtherJson(kind(&Value::Object(root.clone()))));
    };
    let global = root.get("global options");
    let mut cells = Vec::new();
    let mut notes = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let found = || ReadProblem::NotAJob { index, found: kind(job) };
        let object = job.as_object().ok_or_else(found)?;
        if object.get("jobname").and_then(Value::as_str) == Some("All clients") {
            continue;
        }
        if !["read", "write", "trim"].iter().any(|side| object.get(*side).is_some_and(Value::is_object)) {
            return Err(found());
        }
        cells.push(cell(index, object, jobs, global));
    }
    if cells.is_empty() {
        return Err(ReadProblem::NoJobs);
    }
    if cells.iter().any(|cell| cell.workload.is_empty()) {
        let sentence = "a job lists no options, or stands for several sections (group_reporting): its depth is not known";
        notes.push(sentence.to_owned());
    }
    let version =
        root.get("fio version").and_then(Value::as_str).unwrap_or("fio of unknown version").to_owned();
    let mut evidence = Evidence {
        name: name.to_owned(),
        format: Format::Fio(version),
        cells,
        disk: disk(root),
        own: None,
        notes,
    };
    if let Some(run) = root.get("ocssd").and_then(Value::as_object) {
        own::add(&mut evidence, run);
    }
    stand_beside(&mut evidence.cells);
    Ok(evidence)
}

fn cell(index: usize, job: &Map<String, Value>, jobs: &[Value], global: Option<&Value>) -> Cell {
    let mut cell = Cell {
        name: text(job, "jobname").map_or_else(|| format!("job {index}"), str::to_owned),
        group: job.get("groupid").and_then(Value::as_u64).unwrap_or_default(),
        ..Cell::default()
    };
    let kinds = [("read", SideKind::Read), ("write", SideKind::Write), ("trim", SideKind::Trim)];
    for (key, kind) in kinds {
        let side = job.get(key).and_then(Value::as_object).and_then(|object| side(kind, object));
        cell.sides.extend(side);
    }
    cell.runtime_secs = cell.sides.iter().filter_map(|side| side.runtime_secs).reduce(f64::max);
    let parts = [job.get("usr_cpu"), job.get("sys_cpu")].map(|part| part.and_then(Value::as_f64));
    cell.cpu_percent = parts[0].zip(parts[1]).map(|(user, system)| user + system);
    cell.error = job.get("error").and_then(Value::as_u64);
    cell.survived = job.get("total_err").and_then(Value::as_u64);
    cell.sync = job.get("sync").and_then(sync);
    cell.steady = Some(steady(job.get("steadystate")));
    cell.block_bytes = uniform_block(&cell.sides);
    if let Some(options) = Options::of(global, job.get("job options")) {
        cell.workload = format!("fio {}", options.workload());
        options.describe(&mut cell);
        cell.block_bytes = block_bytes(&options, cell.block_bytes);
        match members(&options, job, jobs, &cell) {
            Members::Outstanding(count) => cell.outstanding = count,
            Members::OtherSections => forget_options(&mut cell),
        }
    }
    cell
}

/// What one section's options say does not hold for a group of them.
fn forget_options(cell: &mut Cell) {
    cell.workload.clear();
    cell.read_percent = None;
    cell.order = None;
    cell.footprint_bytes = None;
}

/// What an entry of `jobs` stands for.
enum Members {
    /// So many I/Os outstanding; `None` if the options do not say.
    Outstanding(Option<u64>),
    /// Several sections in one entry, which lists the options of one of them.
    OtherSections,
}

/// Depth times the jobs this entry stands for. fio prints one entry for a whole group with `group_reporting`, else one for
/// each clone. The option itself is not printed when it is given bare; `job_runtime`, a sum over the jobs, gives it away.
fn members(options: &Options, job: &Map<String, Value>, jobs: &[Value], cell: &Cell) -> Members {
    let (Some(depth), Some(clones)) = (options.iodepth(), options.numjobs()) else {
        return Members::Outstanding(None);
    };
    let name = text(job, "jobname");
    let is_clone = |other: &&Value| {
        other.get("jobname").and_then(Value::as_str) == name && other.get("groupid") == job.get("groupid")
    };
    if jobs.iter().filter(is_clone).count() > 1 {
        return Members::Outstanding(Some(depth));
    }
    let summed = job.get("job_runtime").and_then(Value::as_f64).map(|millis| millis / 1_000.0);
    // The sum has ramp time in it, the run time has not.
    let longest = cell.runtime_secs.filter(|secs| *secs >= RUN_SECS_MIN && cell.ramp == Some(false));
    // Half a job more than there are clones: another section is in this entry.
    if summed.zip(longest).is_some_and(|(sum, longest)| sum / longest > whole_as_float(clones) + 0.5) {
        return Members::OtherSections;
    }
    Members::Outstanding(depth.checked_mul(clones))
}

fn side(kind: SideKind, object: &Map<String, Value>) -> Option<Side> {
    let whole = |key: &str| object.get(key).and_then(Value::as_u64);
    let float = |key: &str| object.get(key).and_then(Value::as_f64);
    let ios = whole("total_ios");
    if ios == Some(0) || (ios.is_none() && float("iops").is_none_or(|iops| iops <= 0.0)) {
        return None;
    }
    let spread = float("iops_stddev").zip(float("iops_samples")).filter(|(_, count)| *count >= 2.0);
    Some(Side {
        kind,
        ios,
        iops: float("iops"),
        iops_half_width: spread.map(|(deviation, count)| 1.96 * deviation / count.sqrt()),
        bytes: whole("io_bytes"),
        bytes_per_second: float("bw_bytes"),
        runtime_secs: float("runtime").map(|millis| millis / 1_000.0),
        dropped: whole("drop_ios"),
        latency: latency(object),
    })
}

fn latency(side: &Map<String, Value>) -> Latency {
    // fio 2 printed microseconds and did not say so in the name.
    let is_in_ns = side.contains_key("lat_ns") || side.contains_key("clat_ns");
    let (suffix, scale) = if is_in_ns { ("_ns", 1.0) } else { ("", 1_000.0) };
    let part = |name: &str| side.get(&format!("{name}{suffix}")).and_then(Value::as_object);
    let mean = |name: &str| {
        let mean = part(name)?.get("mean").and_then(Value::as_f64)?;
        (mean > 0.0).then_some(mean * scale)
    };
    let samples = |name: &str| part(name)?.get("N").and_then(Value::as_u64).filter(|&count| count > 0);
    let list = |name: &str, is_of_clat| {
        let printed = part(name)?.get("percentile")?.as_object()?;
        let values: BTreeMap<u64, f64> = printed
            .iter()
            .filter_map(|(p, value)| Some((thousandths(p.parse().ok()?)?, value.as_f64()? * scale)))
            .collect();
        (!values.is_empty()).then_some(Percentiles { is_of_clat, values })
    };
    Latency {
        mean_ns: mean("lat"),
        clat_mean_ns: mean("clat"),
        slat_mean_ns: mean("slat"),
        is_whole: Some(mean("lat").is_some()),
        samples: samples("lat").or_else(|| samples("clat")),
        percentiles: list("lat", false).or_else(|| list("clat", true)),
        is_in_ns: Some(is_in_ns),
    }
}

fn sync(object: &Value) -> Option<SyncWork> {
    let count = object.get("total_ios")?.as_u64()?;
    let mean_ns = object.get("lat_ns")?.get("mean")?.as_f64()?;
    (count > 0).then_some(SyncWork { count, mean_ns })
}

fn steady(object: Option<&Value>) -> Steady {
    let Some(object) = object.filter(|object| object.is_object()) else { return Steady::NotAsked };
    let criterion = object.get("ss").and_then(Value::as_str).unwrap_or("an unnamed criterion").to_owned();
    Steady::Asked { criterion, attained: object.get("attained").and_then(Value::as_u64) == Some(1) }
}

/// The block size asked for, if it is one; else the one seen. Counts around a ramp may be off by an I/O, so that bytes over
/// I/Os is no whole number although all blocks are alike.
fn block_bytes(options: &Options, seen: Option<u64>) -> Option<u64> {
    let is_mixed = ["bssplit", "bsrange"].iter().any(|name| options.get(name).is_some());
    if is_mixed {
        return None;
    }
    options.get("bs").and_then(size::bytes).or(seen)
}

/// Bytes of an I/O, if they divide without rest and are the same in all directions.
fn uniform_block(sides: &[Side]) -> Option<u64> {
    let mut sizes = sides.iter().map(|side| {
        let (bytes, ios) = (side.bytes?, side.ios?);
        bytes.checked_rem(ios).filter(|rest| *rest == 0).map(|_| bytes / ios)
    });
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first)
}

fn disk(root: &Map<String, Value>) -> Option<DiskCounters> {
    let disks = root.get("disk_util")?.as_array().filter(|disks| !disks.is_empty())?;
    let sum = |key: &str| -> Option<u64> {
        disks.iter().try_fold(0_u64, |sum, disk| sum.checked_add(disk.get(key)?.as_u64()?))
    };
    let bytes = |key: &str| sum(key)?.checked_mul(KERNEL_SECTOR);
    Some(DiskCounters {
        read_ios: sum("read_ios")?,
        read_merges: sum("read_merges")?,
        write_ios: sum("write_ios")?,
        write_merges: sum("write_merges")?,
        read_bytes: bytes("read_sectors"),
        write_bytes: bytes("write_sectors"),
    })
}

/// Adds to each workload what ran at the same time: the same job beside another neighbour is another measurement.
fn stand_beside(cells: &mut [Cell]) {
    let describe = |cell: &Cell| {
        format!("[{} {:?} {:?} {:?}]", cell.workload, cell.read_percent, cell.block_bytes, cell.outstanding)
    };
    let described: Vec<String> = cells.iter().map(describe).collect();
    let groups: Vec<u64> = cells.iter().map(|cell| cell.group).collect();
    for (index, cell) in cells.iter_mut().enumerate() {
        let mut beside: Vec<&str> = (0..described.len())
            .filter(|&other| other != index && groups[other] == cell.group)
            .map(|other| described[other].as_str())
            .collect();
        if !beside.is_empty() && !cell.workload.is_empty() {
            beside.sort_unstable();
            cell.workload += &format!(" beside {}", beside.concat());
        }
    }
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}
