//! What Prometheus reads of a server: requests and their latency, what the server counted, its targets and the drive.

use super::observe::{KINDS, Served};
use crate::run::metrics::{exposition, head};
use ocssd_base::Nanos;
use ocssd_export::Stats;
use ocssd_flash::Flash;
use ocssd_workload::results::LatencyStats;
use std::fmt::Write as _;

/// Bounds of latency in powers of two of a nanosecond, from 4 us to 17 s: fio's buckets begin there, so counts are exact.
const BOUNDS: std::ops::RangeInclusive<u32> = 12..=34;

/// The page.
pub fn page(served: &Served, stats: &Stats, flash: &Flash) -> String {
    let counters = flash.counters();
    let mut out = exposition(&served.targets, &counters.unit_busy, &counters.channel_busy);
    let name = "ocssd_io_latency_seconds";
    head(&mut out, name, "histogram", "from when a target was given a request until it answered");
    for (kind, found) in KINDS.iter().zip(&served.kinds) {
        histogram(&mut out, name, kind, &found.latency);
    }
    let name = "ocssd_io_bytes_total";
    head(&mut out, name, "counter", "bytes of payload that requests moved");
    for (kind, found) in KINDS.iter().zip(&served.kinds) {
        let _ = writeln!(out, "{name}{{op=\"{kind}\"}} {}", found.bytes);
    }
    for (row, value) in stats.rows() {
        // The most at once is no count of events.
        let (name, kind) = match row.as_str() {
            "connections_max" => (format!("ocssd_server_{row}"), "gauge"),
            _ => (format!("ocssd_server_{row}_total"), "counter"),
        };
        head(&mut out, &name, kind, "counted by the server, as in its report");
        let _ = writeln!(out, "{name} {value}");
    }
    out
}

fn histogram(out: &mut String, name: &str, kind: &str, latency: &LatencyStats) {
    let bins: Vec<(Nanos, u64)> = latency.histogram().bins().collect();
    for power in BOUNDS {
        let bound = 1_u64 << power;
        let below: u64 = bins.iter().take_while(|(value, _)| value.0 < bound).map(|(_, count)| count).sum();
        // The bound itself belongs to the next bucket, and what is counted here is at most a nanosecond less.
        let _ =
            writeln!(out, "{name}_bucket{{op=\"{kind}\",le=\"{}\"}} {below}", Nanos(bound - 1).as_secs_f64());
    }
    let _ = writeln!(out, "{name}_bucket{{op=\"{kind}\",le=\"+Inf\"}} {}", latency.count());
    let sum = Nanos(u64::try_from(latency.sum_ns()).unwrap_or(u64::MAX)).as_secs_f64();
    let _ =
        writeln!(out, "{name}_sum{{op=\"{kind}\"}} {sum}\n{name}_count{{op=\"{kind}\"}} {}", latency.count());
}
