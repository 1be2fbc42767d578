//! The model's counters, for whoever shows those of the target within.
//!
//! Deliberately not here: counting (`stats`), and threads one by one, of which there may be thousands.

use super::stats::{FtlThreadStats, HostCpuStats};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{Counter, CounterValue};

/// What was counted, in a fixed order; every name begins with `host_`. Times are sums over requests, in nanoseconds.
pub(super) fn counters(stats: &HostCpuStats) -> Vec<Counter> {
    let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
    let time = |name, about, value: Nanos| count(name, about, value.0);
    let writers = stats.writers.iter().fold(FtlThreadStats::default(), |all, one| FtlThreadStats {
        commands: all.commands + one.commands,
        cpu_ns: all.cpu_ns + one.cpu_ns,
        starved_ns: all.starved_ns + one.starved_ns,
        queued_ns: all.queued_ns + one.queued_ns,
        held_ns: all.held_ns + one.held_ns,
    });
    vec![
        count("host_requests", "requests the host's threads made", stats.requests),
        time("host_cpu_ns", "processor time of threads, without the lock", stats.cpu_ns),
        time("host_core_wait_ns", "time threads waited for their core", stats.core_wait_ns),
        time("host_starved_ns", "time on top because a core was shared", stats.starved_ns),
        count("host_lock_holds", "times the ring lock was held, retries not counted", stats.lock_holds),
        time("host_lock_held_ns", "time it was held", stats.lock_held_ns),
        time("host_lock_wait_ns", "time threads waited for it", stats.lock_wait_ns),
        count("host_spun_requests", "writes that found no room and retried", stats.spun),
        count("host_retries", "their retries", stats.retries),
        time("host_spin_ns", "time they retried", stats.spin_ns),
        count("host_slept_requests", "requests that slept and were woken", stats.slept),
        count("host_refused_requests", "requests the target had no place for at first", stats.refused),
        time("host_refused_ns", "time from a request's own work until the target took it", stats.refused_ns),
        count("host_writer_commands", "commands the writer threads prepared", writers.commands),
        time("host_writer_cpu_ns", "their processor time", writers.cpu_ns),
        time("host_writer_starved_ns", "their time on top because a core was shared", writers.starved_ns),
        time("host_writer_queued_ns", "time commands waited for a writer thread", writers.queued_ns),
        time("host_writer_held_ns", "time writers held commands the device had no room for", writers.held_ns),
        count("host_gc_commands", "reads the garbage collector's thread prepared", stats.gc.commands),
        time("host_gc_cpu_ns", "its processor time", stats.gc.cpu_ns),
        time("host_gc_starved_ns", "its time on top because a core was shared", stats.gc.starved_ns),
        time("host_gc_queued_ns", "time its reads waited for it", stats.gc.queued_ns),
    ]
}
