//! How things stand, and what happened between two such times.

use ocssd_base::Nanos;
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_workload::results::Histogram;
use ocssd_workload::run::Tally;

/// The inside of a virtual drive.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// Groups of units; each has as many.
    pub groups: u32,
    /// How long each unit has been busy.
    pub unit_busy: Vec<Nanos>,
    /// What each target counts, with its name.
    pub targets: Vec<(String, Vec<Counter>)>,
}

/// How things stand.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time of whatever is measured.
    pub now: Nanos,
    /// What was measured.
    pub tally: Tally,
    /// The drive, if it is a virtual one.
    pub inside: Option<Inside>,
}

/// What happened between two samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The time between them.
    pub time: Nanos,
    /// I/Os and bytes each second.
    pub iops: f64,
    /// The second of these.
    pub bytes_per_second: f64,
    /// Median and 99th percentile of latency in nanoseconds, if there are ten samples beyond it.
    pub p50_ns: Option<u64>,
    /// The second of these.
    pub p99_ns: Option<u64>,
    /// How much of the time each unit was busy.
    pub busy: Vec<f64>,
    /// Groups of units.
    pub groups: u32,
    /// What targets say of collection and buffer.
    pub targets: Vec<TargetChange>,
}

/// What a target did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetChange {
    /// Its name.
    pub name: String,
    /// Free lines now.
    pub lines_free: Option<u64>,
    /// Lines emptied since the last sample.
    pub victims: Option<u64>,
    /// Sectors moved by collection since the last sample.
    pub gc_sectors: Option<u64>,
    /// Sectors written by users since the last sample.
    pub user_sectors: Option<u64>,
    /// Sectors programmed for each that users wrote, from the beginning.
    pub amplification: Option<f64>,
    /// Units of the write buffer: not acknowledged, not readable yet, kept as a cache.
    pub buffer: Option<[u64; 3]>,
}

#[expect(clippy::cast_precision_loss, reason = "numbers to look at")]
pub const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// Samples beyond a percentile that carry it, as everywhere.
const SAMPLES_BEYOND: f64 = 10.0;

impl Change {
    /// From `before` to `now`. A new job begins counting at nothing, so what is less than before is all new.
    pub fn between(before: &Sample, now: &Sample) -> Self {
        let time = now.now.saturating_since(before.now);
        let seconds = time.as_secs_f64().max(1e-9);
        let is_new = now.tally.ios < before.tally.ios || now.tally.bytes < before.tally.bytes;
        let more = |now: u64, before: u64| if is_new { now } else { now.saturating_sub(before) };
        let latencies = recent(&now.tally.latency, if is_new { None } else { Some(&before.tally.latency) });
        let (groups, busy) = busy(before, now);
        Self {
            time,
            iops: as_f64(more(now.tally.ios, before.tally.ios)) / seconds,
            bytes_per_second: as_f64(more(now.tally.bytes, before.tally.bytes)) / seconds,
            p50_ns: percentile(&latencies, 50.0),
            p99_ns: percentile(&latencies, 99.0),
            busy,
            groups,
            targets: targets(before, now),
        }
    }
}

/// What was recorded after `before`.
fn recent(now: &Histogram, before: Option<&Histogram>) -> Histogram {
    let mut found = Histogram::default();
    let mut older = before.into_iter().flat_map(Histogram::bins).peekable();
    for (value, count) in now.bins() {
        while older.next_if(|(older, _)| *older < value).is_some() {}
        let known = older.next_if(|(older, _)| *older == value).map_or(0, |(_, count)| count);
        if count > known {
            found.record_many(value, count - known);
        }
    }
    found
}

fn percentile(latencies: &Histogram, percent: f64) -> Option<u64> {
    let enough = as_f64(latencies.count()) * (100.0 - percent) / 100.0 >= SAMPLES_BEYOND;
    enough.then(|| latencies.percentile(percent)).flatten().map(|value| value.0)
}

fn busy(before: &Sample, now: &Sample) -> (u32, Vec<f64>) {
    let (Some(then), Some(inside)) = (&before.inside, &now.inside) else { return (0, Vec::new()) };
    let time = as_f64(now.now.saturating_since(before.now).0).max(1.0);
    let pairs = inside.unit_busy.iter().zip(&then.unit_busy);
    let share = |now: &Nanos, before: &Nanos| (as_f64(now.saturating_since(*before).0) / time).min(1.0);
    (inside.groups, pairs.map(|(now, before)| share(now, before)).collect())
}

fn targets(before: &Sample, now: &Sample) -> Vec<TargetChange> {
    let Some(inside) = &now.inside else { return Vec::new() };
    let then = before.inside.as_ref().map_or(&[][..], |inside| &inside.targets);
    let count = |counters: &[Counter], name: &str| {
        counters.iter().find(|counter| counter.name == name).and_then(|counter| match counter.value {
            CounterValue::Count(count) | CounterValue::Gauge(count) => Some(count),
            CounterValue::Ratio(_) => None,
        })
    };
    let mut all = Vec::new();
    for (number, (name, counters)) in inside.targets.iter().enumerate() {
        let older = then.get(number).map_or(&[][..], |(_, counters)| counters.as_slice());
        let more = |name: &str| {
            let now = count(counters, name)?;
            Some(now.saturating_sub(count(older, name).unwrap_or(0)))
        };
        let amplification = counters.iter().find_map(|counter| match (counter.name, counter.value) {
            ("write_amplification", CounterValue::Ratio(ratio)) => ratio,
            _ => None,
        });
        let buffer = ["buffer_unwritten_units", "buffer_unreadable_units", "buffer_cached_units"];
        let buffer = buffer.map(|name| count(counters, name));
        all.push(TargetChange {
            name: name.clone(),
            lines_free: count(counters, "lines_free"),
            victims: more("gc_victims"),
            gc_sectors: more("gc_written_sectors"),
            user_sectors: more("user_written_sectors"),
            amplification,
            buffer: if let [Some(a), Some(b), Some(c)] = buffer { Some([a, b, c]) } else { None },
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64, ios: u64, busy_ms: u64) -> Sample {
        let mut latency = Histogram::default();
        latency.record_many(Nanos::from_micros(80), ios);
        let counter = |name, value| Counter { name, about: "", value: CounterValue::Count(value) };
        let inside = Inside {
            groups: 1,
            unit_busy: vec![Nanos::from_millis(busy_ms), Nanos::ZERO],
            targets: vec![(
                "pblk".to_owned(),
                vec![counter("gc_victims", ios / 100), counter("lines_free", 7)],
            )],
        };
        Sample {
            now: Nanos::from_secs(seconds),
            tally: Tally { ios, bytes: ios * 4096, latency },
            inside: Some(inside),
        }
    }

    #[test]
    fn what_happened_is_the_difference_of_two_samples() {
        let change = Change::between(&sample(1, 1_000, 100), &sample(3, 5_000, 600));
        assert!((change.iops - 2_000.0).abs() < 1e-9 && (change.bytes_per_second - 8_192_000.0).abs() < 1e-6);
        assert!(change.p99_ns.is_some_and(|nanos| nanos.abs_diff(80_000) < 1_000), "{change:?}");
        assert!((change.busy[0] - 0.25).abs() < 1e-9 && change.busy[1].abs() < 1e-9);
        assert_eq!((change.targets[0].victims, change.targets[0].lines_free), (Some(40), Some(7)));
        assert_eq!(change.targets[0].buffer, None, "a target without a buffer says nothing of one");
    }

    #[test]
    fn a_new_job_begins_at_nothing_and_few_samples_carry_no_tail() {
        let mut of_large = sample(1, 50, 0);
        of_large.tally.bytes = 1 << 30;
        let change = Change::between(&of_large, &sample(2, 100, 0));
        assert!((change.bytes_per_second - 409_600.0).abs() < 1e-6, "{change:?}");
        let change = Change::between(&sample(1, 5_000, 0), &sample(2, 100, 0));
        assert!((change.iops - 100.0).abs() < 1e-9, "{change:?}");
        assert!(change.p50_ns.is_some() && change.p99_ns.is_none(), "{change:?}");
    }
}
