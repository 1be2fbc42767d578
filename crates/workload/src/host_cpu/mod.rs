//! Virtual host CPUs: in virtual time, the threads of a workload and an FTL's own threads cost CPU.
//!
//! [`HostCpu`] is a target around a target of the same interface. A request passes through CPU work before the inner target sees
//! it; commands of the inner target pass through the FTL's threads before the device sees them; replies pass through a
//! wake-up and completion work. Nothing else changes, and with every cost zero all of them pass at once. Like every target
//! it is a state machine without a clock: `target` and `way_back` route, and each part is a file: `cores` (who runs where), `lock`,
//! `ftl_threads` (the writer and garbage collection), `host_order`, `hosted` (all it knows of interfaces), `costs` (the
//! equations), `config` and `parse` (parameters), `stats` and `counters` (what it counts).
//!
//! The model, all of it mean values, so that no event is spent on a retry:
//!
//! - A request in flight is a synchronous thread, the least free number its name, pinned to core `number % cores`. Cores
//!   are online from the first socket up. A core works off its threads first come, first served; work that starts while
//!   `s` spinners and `f` FTL threads are on the core takes `1 + s + f` times as long (a fair scheduler).
//! - An FTL thread takes the highest idle core for each command, else the least loaded one, and takes `1 + load`
//!   times as long there. So one spinner on every core halves a single writer, and one core more heals it.
//! - Writing: submit work, one hold of the ring lock to test for space, then the inner target. Until that replies (pblk
//!   does when the data is in its ring) the thread spins (`busy_retry`) or sleeps (`fair`). Then one hold of the lock to
//!   take the places, the copy, the reply. A spinner notices its place half a retry period late.
//! - The lock is one first-in first-out resource. With `S` spinners, test hold `h` and yield `z`, whoever comes waits
//!   behind the holds of those it finds there: `max(S h h / (h + z), S h - z)`. A spinner retries every
//!   `max((h + z) ceil(S / cores), S h)`.
//! - With threads on `n` sockets each hold is `(n - 1) / n` of a cache line transfer longer. A ring that fits one
//!   socket's third-level cache is copied faster on one socket, slower on several, and costs the writer remote lines. The
//!   sockets are those of the threads in flight: what ran before them does not matter.
//!
//! Deliberately not here: processors executing anything, migration between cores, hyperthreads, frequency, lines of the ring
//! that threads left in their caches when they ended, unfairness between spinners (the inner target serves them in order),
//! retries of garbage collection (its inserts are not seen), and CPU of the drive's completions of the FTL's own commands. A
//! share is taken when work starts and holds until it ends.

mod as_target;
mod config;
mod cores;
mod costs;
mod counters;
mod ftl_threads;
mod host_order;
mod hosted;
mod lock;
mod parse;
mod stats;
mod target;
mod thread;
mod threads;
mod way_back;

pub use config::{CORES_MAX, HostCpuConfig, REQUESTS_MAX, WRITERS_MAX, Waiting};
pub use hosted::{Asked, Hosted, Ordered, Work};
pub use stats::{FtlThreadStats, HostCpuStats, StatsHandle, ThreadStats};
pub use target::HostCpu;
