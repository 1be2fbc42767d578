//! What a profile is carried out on: a real file or device, or a virtual drive.
//!
//! Deliberately not here: which jobs, and what they mean.

use super::schedule::Bounds;
use super::timeline::{DriveState, Timeline};
use crate::storage::{Attestation, Surroundings};
use ocssd_base::Nanos;
use ocssd_workload::job::Job;
use ocssd_workload::results::{ClockKind, CpuUse, JobResult, Row};
use ocssd_workload::run::Tally;

/// A job that has ended.
#[derive(Debug)]
pub struct Done {
    /// What it measured; the first of its clones.
    pub result: JobResult,
    /// What the other clones measured, of a job with fio's `numjobs`.
    pub clones: Vec<JobResult>,
    /// Processor time of this program for each I/O, those before measuring included; `None` in virtual time.
    pub cpu_ns_per_io: Option<f64>,
    /// True if it was stopped from outside; it is then shorter than it was to be.
    pub stopped: bool,
}

/// Why a job could not be carried out. What was measured before it stands.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TestError(pub String);

/// A job under way, for whoever is asked whether to go on. Nothing is counted unless it is asked for.
pub trait Look {
    /// The time on the device's clock.
    fn now(&self) -> Nanos;

    /// What the job has measured so far.
    fn tally(&self) -> Tally;

    /// The inside of the drive; `None` of real ones, which do not show it.
    fn drive(&self) -> Option<DriveState>;
}

/// Asked from time to time whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut(&dyn Look) -> bool;

/// Where jobs run.
pub trait DeviceUnderTest {
    /// What can be measured.
    fn bounds(&self) -> Bounds;

    /// Uses no more than the first `bytes` bytes from now on.
    fn shrink_to(&mut self, bytes: u64);

    /// The time on its clock.
    fn now(&self) -> Nanos;

    /// Whose time that is.
    fn clock(&self) -> ClockKind;

    /// fio's name of the way I/O is done at this depth.
    fn engine(&self, depth: u32) -> &'static str;

    /// Whether I/O passes the page cache by, as far as asked for.
    fn direct(&self) -> bool;

    /// What fio would be told to open.
    fn filename(&self) -> String;

    /// Runs one job; `go_on` is asked from time to time.
    ///
    /// # Errors
    /// If the job cannot run, or one of its I/Os failed; the sentence says what happened and what to do.
    fn carry_out(&mut self, job: &Job, seed: u64, go_on: GoOn<'_>) -> Result<Done, TestError>;

    /// The same generator on nothing: I/Os per second that this program can do. `None` in virtual time.
    fn ceiling(&mut self) -> Option<f64>;

    /// True of blocks that every later read may expect to be written.
    fn set_written(&mut self);

    /// What it is.
    fn description(&self) -> Vec<Row>;

    /// The machine.
    fn environment(&self) -> Vec<Row>;

    /// What the system saw of it all; `None` of a virtual drive, which has no page cache above it.
    fn attestation(&self) -> Option<Attestation>;

    /// Heat, link and other users now; `None` of a virtual drive.
    fn surroundings(&self) -> Option<Surroundings>;

    /// What happened inside the drive since it was made; `None` of real ones.
    fn timeline(&self) -> Option<&Timeline>;

    /// Bytes of a sector of the drive, in which its counters count; `None` of real ones.
    fn sector_bytes(&self) -> Option<u32>;

    /// Rate of the drive's link in bytes per second, if it is known.
    fn link_bytes_per_second(&self) -> Option<u64>;

    /// Sentences for the reader.
    fn notes(&self) -> Vec<String>;
}

/// Processor time of this thread so far, as Linux counts it in hundredths of a second (proc(5), fields 14 and 15).
#[must_use]
pub fn thread_cpu() -> CpuUse {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // The name in parentheses may hold anything.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest.split_whitespace().skip(11).map(|word| word.parse::<u64>().unwrap_or_default());
    let mut ticks = || Nanos::from_millis(10 * fields.next().unwrap_or_default());
    CpuUse { user: ticks(), system: ticks(), ..CpuUse::default() }
}
