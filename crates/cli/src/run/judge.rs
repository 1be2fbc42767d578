//! The result of a run, with its verdict: may these numbers be used?

use super::Choice;
use super::execute::Finished;
use super::jobs::Request;
use crate::args::RunArgs;
use ocssd_base::Nanos;
use ocssd_workload::results::{
    ClockKind, Direction, JobResult, LatencyStats, Lateness, Row, RunResult, Verdict,
};
use serde_json::json;

/// Fewest I/Os a job's latencies should rest on: ten above the 99th percentile (rule L11: 10 / (1 - p)).
const SAMPLES_MIN: u64 = 1_000;

/// Everything measured and known, ready to be shown.
pub fn result(args: &RunArgs, choice: &Choice, request: &Request, finished: &Finished) -> RunResult {
    let wall = choice.clock == ClockKind::Wall;
    RunResult {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_secs: wall.then(unix_seconds).flatten(),
        clock: choice.clock,
        seed: args.seed,
        rerun_command: rerun(args, choice),
        environment: environment(wall),
        drive: finished.drive.iter().map(|(name, value)| Row::new(name, value)).collect(),
        limits: super::limit::sentences(finished),
        tails: finished.tails.clone(),
        notes: finished.notes.clone(),
        global_options: request.parsed.global.clone(),
        jobs: finished.jobs.clone(),
        beside: finished.beside.clone(),
        trace_hash: (!wall).then_some(finished.hash),
        lateness: lateness(finished),
        counters: Some(counters(finished)),
        verdict: verdict(finished),
    }
}

fn unix_seconds() -> Option<u64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.ok().map(|duration| duration.as_secs())
}

/// The machine, in wall time; virtual time is the same on all of them.
fn environment(wall: bool) -> Vec<Row> {
    if !wall {
        return Vec::new();
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| Some(line.strip_prefix("model name")?.trim_matches([' ', '\t', ':']).to_owned()));
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let cores =
        std::thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |count| count.to_string());
    vec![
        Row::new("processor", cpu.unwrap_or_else(|| "unknown".to_owned())),
        Row::new("cores", cores),
        Row::new("kernel", kernel),
        Row::new("load average", read("/proc/loadavg").trim()),
    ]
}

fn rerun(args: &RunArgs, choice: &Choice) -> String {
    let quoted = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,%+@".contains(&b));
        if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let mut words = vec!["ocssd run".to_owned(), format!("--drive {}", quoted(&choice.drive))];
    words.extend(args.set.iter().map(|set| format!("--set {}", quoted(set))));
    words.extend(args.target.iter().map(|target| format!("--target {}", quoted(target))));
    words.extend(args.host_cpu.iter().map(|host| format!("--host-cpu {}", quoted(host))));
    words.extend(args.beside.iter().map(|beside| format!("--beside {}", quoted(&beside.text))));
    words.push(format!("--clock {} --seed {}", choice.clock.name(), args.seed));
    words.extend(args.fio.iter().map(|argument| quoted(argument)));
    words.join(" ")
}

fn lateness(finished: &Finished) -> Option<Lateness> {
    finished.lateness?;
    let threshold = threshold(finished);
    let mut delay = LatencyStats::default();
    let mut late = 0;
    for &(at, count) in &finished.late_samples {
        (0..count).for_each(|_| delay.record(at));
        late += if at > threshold { count } else { 0 };
    }
    Some(Lateness { threshold, late, delay })
}

/// A tenth of the read time: later than that, latencies are the machine's and not the drive's.
fn threshold(finished: &Finished) -> Nanos {
    Nanos(finished.read_time.0 / 10)
}

fn verdict(finished: &Finished) -> Verdict {
    let mut fails = Vec::new();
    for (job, direction, sentence) in &finished.failures {
        fails.push(format!("job \"{job}\": a {} failed: {sentence}", direction.name()));
    }
    for job in &finished.jobs {
        fails.extend(against(job, finished));
    }
    fails.extend(finished.beside.iter().filter_map(|one| one.against.clone()));
    if let Some(late) = finished.lateness.filter(|late| late.p99 > threshold(finished)) {
        fails.push(format!(
            "the machine was late: 99 % of completions came within {} of their time, more than a tenth of the read time \
             ({}); use an idle machine, less load or --clock virtual",
            late.p99, finished.read_time
        ));
    }
    if let Some(by) = &finished.interrupted {
        fails.insert(0, by.clone());
        return Verdict::Interrupted(fails);
    }
    if !fails.is_empty() {
        return Verdict::Fail(fails);
    }
    let caution = |job: &JobResult| {
        let few = || format!("job \"{}\" has {} I/Os, too few for its tail", job.name, measured(job));
        if took_no_time(job) { Some(no_rate(job, finished)) } else { (measured(job) < SAMPLES_MIN).then(few) }
    };
    let mut warnings: Vec<String> = finished.jobs.iter().filter_map(caution).collect();
    warnings.extend(super::buffered::cautions(finished));
    if warnings.is_empty() { Verdict::Pass } else { Verdict::Warn(warnings) }
}

/// What forbids the numbers of a job.
fn against(job: &JobResult, finished: &Finished) -> Vec<String> {
    let name = &job.name;
    let mut fails = Vec::new();
    let wrong = job.verify.is_some_and(|verify| verify.failed > 0);
    if let Some(verify) = job.verify.filter(|_| wrong) {
        fails.push(format!(
            "job \"{name}\": {} of {} blocks held other data than was written",
            verify.failed, verify.checked
        ));
    }
    let told = finished.failures.iter().any(|(failed, ..)| failed == name);
    if job.error != 0 && !told && !wrong {
        fails.push(format!("job \"{name}\": {}", ending(job.error)));
    }
    if job.error != 0 || finished.interrupted.is_some() {
        // What it did not come to is no wonder then.
        return fails;
    }
    let ios = measured(job);
    if ios == 0 {
        fails.push(format!("job \"{name}\" did no I/O: give it more to do, or something that can be read"));
    } else if took_no_time(job) && !has_verified(job) {
        fails.push(no_rate(job, finished));
    } else if job.verify.is_some_and(|verify| verify.checked == 0) {
        fails.push(format!(
            "job \"{name}\" was to verify, but compared no block: let it read what it wrote (no exitall, no other job that \
             overwrites it), or a target that keeps data"
        ));
    }
    fails
}

/// True of a job that did something and took no time for it.
fn took_no_time(job: &JobResult) -> bool {
    measured(job) > 0 && job.run_time == Nanos::ZERO
}

/// True of a job that compared what it read: that is a result, with or without a rate.
fn has_verified(job: &JobResult) -> bool {
    job.verify.is_some_and(|verify| verify.checked > 0)
}

fn no_rate(job: &JobResult, finished: &Finished) -> String {
    let buffers = finished.parties.iter().any(|party| !party.units.is_empty());
    let why = match job.write.total_ios {
        // A target without units keeps nothing, and buffers nothing.
        _ if !buffers => {
            "its target answered all at once; ask another, or use --clock wall or --host-cpu".to_owned()
        }
        0 => "its target answered all at once; ask more of it, or use --clock wall or --host-cpu".to_owned(),
        writes => format!(
            "the write buffer took all {writes} writes; write more than it holds, flush at the end (end_fsync=1), or give \
             the host's processors a time (--host-cpu)"
        ),
    };
    format!("job \"{}\" took no time, so it has no rate: {why}", job.name)
}

/// What ended a job that no failed I/O ended.
fn ending(error: u32) -> String {
    match error {
        28 => "every zone it could write failed; use other parallel units, or a drive with fewer faults"
            .to_owned(),
        61 => "nothing it could read was left, and nobody writes; lay out more, or let it write".to_owned(),
        5 => "did less than its rate_min or rate_iops_min; lower it, or use a faster drive".to_owned(),
        110 => "not even one I/O at a time kept its latency_target; raise it, or give a latency_percentile"
            .to_owned(),
        other => format!("ended with error {other} (errno)"),
    }
}

fn measured(job: &JobResult) -> u64 {
    Direction::ALL.iter().map(|&direction| job.direction(direction).total_ios).sum()
}

fn counters(finished: &Finished) -> serde_json::Value {
    let counters = &finished.counters;
    let units: Vec<_> = finished
        .units
        .iter()
        .zip(&counters.unit_busy)
        .map(|(unit, busy)| {
            json!({ "reads": unit.read.commands, "sectors_read": unit.read.sectors, "writes": unit.write.commands,
                "sectors_written": unit.write.sectors, "resets": unit.reset.commands, "busy_ns": busy.0 })
        })
        .collect();
    json!({
        "sectors_read": counters.sectors_read,
        "sectors_read_from_cache": counters.sectors_read_cached,
        "sectors_written": counters.sectors_written,
        "sectors_copied": counters.sectors_copied,
        "resets": counters.resets,
        "refused": counters.refused,
        "senses": counters.media.senses,
        "register_hits": counters.media.register_hits,
        "programs": counters.media.programs,
        "erases": counters.media.erases,
        "erases_suspended": counters.media.suspends,
        "programs_suspended": counters.media.program_suspends,
        "targets": super::metrics::to_json(&finished.targets),
        "channel_busy_ns": counters.channel_busy.iter().map(|busy| busy.0).collect::<Vec<_>>(),
        "units": units,
    })
}
