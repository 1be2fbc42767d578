//! What the model counted: where a request's time went, and what the FTL's threads did.
//!
//! Deliberately not here: how it is printed.

use ocssd_base::Nanos;
use std::sync::{Arc, Mutex};

/// One thread of the workload: what was in flight under one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// Requests replied to.
    pub requests: u64,
    /// Their blocks; where content is no run of blocks, the sectors it touches at least.
    pub blocks: u64,
}

/// One thread of the FTL. What is left of a run's time, it waited for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlThreadStats {
    /// Commands prepared.
    pub commands: u64,
    /// CPU they needed.
    pub cpu_ns: Nanos,
    /// Time on top because the core was shared: runnable, but not running.
    pub starved_ns: Nanos,
    /// Time commands waited before it took them.
    pub queued_ns: Nanos,
    /// Time it held a prepared command the device had no room for.
    pub held_ns: Nanos,
}

impl FtlThreadStats {
    /// Time it was busy with a command, on its core or waiting for it.
    #[must_use]
    pub fn busy_ns(&self) -> Nanos {
        self.cpu_ns + self.starved_ns
    }
}

/// Counters since the start. Times are sums over requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCpuStats {
    /// Requests replied to.
    pub requests: u64,
    /// Of these, refused at least once by the inner target.
    pub refused: u64,
    /// Time from the end of a request's own CPU work until the inner target took it.
    pub refused_ns: Nanos,
    /// Time threads waited for their core.
    pub core_wait_ns: Nanos,
    /// CPU of threads, without the lock.
    pub cpu_ns: Nanos,
    /// Time on top because the core was shared with spinners or FTL threads.
    pub starved_ns: Nanos,
    /// Holds of the ring lock, retries not counted.
    pub lock_holds: u64,
    /// Time in these holds.
    pub lock_held_ns: Nanos,
    /// Time until they were granted.
    pub lock_wait_ns: Nanos,
    /// Writes that found no room.
    pub spun: u64,
    /// Their retries.
    pub retries: u64,
    /// Time they retried.
    pub spin_ns: Nanos,
    /// Requests that slept and were woken.
    pub slept: u64,
    /// The threads of the workload, by number.
    pub threads: Vec<ThreadStats>,
    /// The writers.
    pub writers: Vec<FtlThreadStats>,
    /// The garbage collector's reading thread.
    pub gc: FtlThreadStats,
}

/// The counters of a [`HostCpu`](super::HostCpu), to be read while a loop owns it. It may be sent to another thread with
/// the target, as targets of tables must be.
#[derive(Clone, Debug, Default)]
pub struct StatsHandle {
    stats: Arc<Mutex<HostCpuStats>>,
}

impl StatsHandle {
    pub(super) fn new(threads: u32, writers: u32) -> Self {
        let many = |count: u32| usize::try_from(count).expect("32 bits fit an index");
        let handle = Self::default();
        handle.with(|stats| {
            stats.threads = vec![ThreadStats::default(); many(threads)];
            stats.writers = vec![FtlThreadStats::default(); many(writers)];
        });
        handle
    }

    /// The counters now. `threads` ends with the last thread that did anything.
    #[must_use]
    pub fn read(&self) -> HostCpuStats {
        let mut stats = self.stats.lock().expect("counting does not panic").clone();
        let used = stats.threads.iter().rposition(|thread| thread.requests > 0).map_or(0, |last| last + 1);
        stats.threads.truncate(used);
        stats
    }

    pub(super) fn with(&self, change: impl FnOnce(&mut HostCpuStats)) {
        change(&mut self.stats.lock().expect("counting does not panic"));
    }
}
