//! What limited the jobs: the busiest of what their I/O went through.
//!
//! A party is a target with the jobs on it. Of each it is known how long its parallel units and channels were busy, what the
//! host's processors had to do, and what went over the link. Whatever was busy for nearly all of the time is the limit; if
//! nothing was, the jobs asked for too little at once. Deliberately not here: why a single I/O was slow.

use super::execute::Finished;
use ocssd_base::Nanos;
use ocssd_lightnvm::PuId;
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_workload::results::{Direction, JobResult};

/// From this share of the time on something is the limit (chosen: queues in front of it are then five I/Os long and more, by
/// M/M/1).
const BUSY: f64 = 0.8;
/// A unit that is busier than the mean of all by this factor is named (chosen).
const UNEVEN: f64 = 1.5;
/// I/Os in flight from which it matters that they meet in one unit (chosen: below, they seldom do).
const CROWD: f64 = 1.5;
/// Write amplification from which it is named.
const AMPLIFIED: f64 = 1.05;

/// A target, and who used it.
pub struct Party {
    /// Results of its jobs, by number.
    pub jobs: Vec<usize>,
    /// Its parallel units; none of a target that keeps nothing.
    pub units: Vec<PuId>,
    /// The writer threads of its host, if the host's processors take time.
    pub writers: Option<u32>,
    /// Cores of its host that the I/Os in flight, a thread each, keep busy at once at most.
    pub cores: u32,
    /// One of its jobs holds itself back, by a rate or by thinking.
    pub is_paced: bool,
}

/// Something that I/O goes through, and the share of the time it was busy.
struct Resource {
    name: String,
    share: f64,
}

/// One sentence for each party that did anything.
pub fn sentences(finished: &Finished) -> Vec<String> {
    let several = finished.parties.len() > 1;
    let one = |(number, party): (usize, &Party)| {
        let jobs: Vec<&JobResult> = party.jobs.iter().map(|&job| &finished.jobs[job]).collect();
        let elapsed = jobs.iter().map(|job| job.run_time).max().filter(|&time| time > Nanos::ZERO)?;
        let limited = sentence(finished, number, party, &jobs, elapsed)?;
        let mut names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        names.dedup();
        Some(if several { format!("{}: {limited}", names.join(", ")) } else { limited })
    };
    finished.parties.iter().enumerate().filter_map(one).collect()
}

fn sentence(
    finished: &Finished,
    number: usize,
    party: &Party,
    jobs: &[&JobResult],
    elapsed: Nanos,
) -> Option<String> {
    if party.units.is_empty() && party.writers.is_none() {
        // A target that keeps nothing is as fast as whoever asks it.
        return None;
    }
    let mut resources = media(finished, party, elapsed);
    resources.extend(link(finished));
    resources.extend(host(&finished.targets[number].1, &finished.targets_before[number], party, elapsed));
    let busiest = resources.iter().enumerate().max_by(|(_, a), (_, b)| a.share.total_cmp(&b.share))?;
    let (place, Resource { name, share }) = busiest;
    let others = |left_out: Option<usize>| {
        let shown = resources.iter().enumerate().filter(|(index, _)| Some(*index) != left_out);
        let shown: Vec<String> =
            shown.map(|(_, one)| format!("{} {:.0} %", one.name, 100.0 * one.share)).collect();
        shown.join(", ")
    };
    let amplification = amplification(&finished.targets[number].1);
    if *share >= BUSY {
        return Some(format!(
            "limited by {name}, {:.0} % busy ({}){amplification}",
            100.0 * share,
            others(Some(place))
        ));
    }
    let depth = in_flight(jobs, elapsed);
    let why = if let Some(unit) = crowded(finished, party).filter(|_| depth >= CROWD) {
        unit
    } else if party.is_paced {
        "its own rate or thinktime".to_owned()
    } else {
        format!("queue depth: {depth:.1} I/Os in flight")
    };
    Some(format!("limited by {why} (busy: {}){amplification}", others(None)))
}

/// The unit that nearly all commands went to, if one did: a deeper queue is no faster then, however idle the others are.
fn crowded(finished: &Finished, party: &Party) -> Option<String> {
    let of = |&unit: &PuId| {
        let counts = &finished.units[unit.index()];
        counts.read.commands + counts.write.commands
    };
    let all: u64 = party.units.iter().map(of).sum();
    let most = *party.units.iter().max_by_key(|unit| of(unit)).filter(|_| party.units.len() > 1)?;
    let address = address(finished, most);
    let is_crowded = all > 0 && 10 * of(&most) >= 9 * all;
    is_crowded.then(|| format!("unit {address}: {} of {all} commands went there", of(&most)))
}

/// A unit as addresses are written, group first.
fn address(finished: &Finished, unit: PuId) -> String {
    let group = finished.geometry.group_of(unit).0;
    format!("g{group}/p{}", unit.0 % finished.geometry.pus_per_group)
}

/// Mean number of I/Os under way, by Little's law.
fn in_flight(jobs: &[&JobResult], elapsed: Nanos) -> f64 {
    let spent = |job: &&JobResult| {
        let data = Direction::ALL.iter().map(|&direction| job.direction(direction).lat.sum_ns());
        data.sum::<u128>() + job.sync.lat.sum_ns()
    };
    ratio_wide(jobs.iter().map(spent).sum(), elapsed)
}

/// Parallel units, the busiest of them if it stands out, and the channels of their groups.
fn media(finished: &Finished, party: &Party, elapsed: Nanos) -> Vec<Resource> {
    let busy = &finished.counters.unit_busy;
    let shares: Vec<f64> = party.units.iter().map(|unit| share(busy[unit.index()], elapsed)).collect();
    let Some((hottest, most)) = shares.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Vec::new();
    };
    let mut resources = vec![Resource { name: "media".to_owned(), share: mean(&shares) }];
    if shares.len() > 1 && most >= BUSY && most > UNEVEN * mean(&shares) {
        let address = address(finished, party.units[hottest]);
        resources.push(Resource { name: format!("unit {address} alone"), share: most });
    }
    let group_of = |&unit: &PuId| usize::try_from(finished.geometry.group_of(unit).0).expect("few groups");
    let mut groups: Vec<usize> = party.units.iter().map(group_of).collect();
    groups.sort_unstable();
    groups.dedup();
    let channels: Vec<f64> =
        groups.iter().map(|&group| share(finished.counters.channel_busy[group], elapsed)).collect();
    resources.push(Resource { name: "channels".to_owned(), share: mean(&channels) });
    resources
}

/// The link to the host, which all targets share.
fn link(finished: &Finished) -> Option<Resource> {
    let elapsed = finished.jobs.iter().map(|job| job.run_time).max().filter(|&time| time > Nanos::ZERO)?;
    let counters = &finished.counters;
    let sector_bytes = u128::from(finished.geometry.sector_bytes);
    let time = |sectors: u64, bytes_per_second: u64| {
        let nanos = u128::from(sectors) * sector_bytes * 1_000_000_000 / u128::from(bytes_per_second.max(1));
        // Sectors are counted when a command comes, and may be on the link after the jobs.
        ratio_wide(nanos, elapsed).min(1.0)
    };
    let share = time(counters.sectors_read, finished.link.read_bytes_per_second)
        .max(time(counters.sectors_written, finished.link.write_bytes_per_second));
    Some(Resource { name: "link".to_owned(), share })
}

/// The host's processors: the jobs' threads, the writers', and the lock between them.
fn host(after: &[Counter], before: &[Counter], party: &Party, elapsed: Nanos) -> Vec<Resource> {
    let Some(writers) = party.writers else { return Vec::new() };
    let spent = |name: &str| Nanos(count(after, name).saturating_sub(count(before, name)));
    // Work is counted whole when a request begins, and some of it may come after the jobs.
    let each = |time: Nanos, of: u32| (ratio(time, elapsed) / f64::from(of.max(1))).min(1.0);
    let job_threads = spent("host_cpu_ns") + spent("host_lock_held_ns") + spent("host_spin_ns");
    let all = [
        ("host threads", each(job_threads, party.cores)),
        ("host writers", each(spent("host_writer_cpu_ns"), writers)),
        ("ring lock", each(spent("host_lock_held_ns"), 1)),
    ];
    // What was hardly used says nothing, but the threads themselves.
    let shown = all.into_iter().enumerate().filter(|(index, (_, share))| *index == 0 || *share >= 0.01);
    shown.map(|(_, (name, share))| Resource { name: name.to_owned(), share }).collect()
}

fn count(counters: &[Counter], name: &str) -> u64 {
    counters.iter().find(|counter| counter.name == name).map_or(0, |counter| match counter.value {
        CounterValue::Count(count) | CounterValue::Gauge(count) => count,
        CounterValue::Ratio(_) => 0,
    })
}

fn amplification(counters: &[Counter]) -> String {
    let found = counters.iter().find(|counter| counter.name == "write_amplification");
    match found.map(|counter| counter.value) {
        Some(CounterValue::Ratio(Some(ratio))) if ratio >= AMPLIFIED => {
            format!("; write amplification {ratio:.2}")
        }
        _ => String::new(),
    }
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / f64_of(shares.len().max(1))
}

/// The share of the jobs' time that something of the drive was busy. The drive counts a transfer or program whole when it begins,
/// or is put in line, so that there is more than that time where a write buffer goes on after the jobs.
fn share(busy: Nanos, elapsed: Nanos) -> f64 {
    ratio(busy.min(elapsed), elapsed)
}

fn ratio(part: Nanos, whole: Nanos) -> f64 {
    ratio_wide(u128::from(part.0), whole)
}

#[expect(clippy::cast_precision_loss, reason = "shown in percent")]
fn ratio_wide(part: u128, whole: Nanos) -> f64 {
    part as f64 / whole.0 as f64
}

#[expect(clippy::cast_precision_loss, reason = "few of anything here")]
fn f64_of(count: usize) -> f64 {
    count as f64
}
