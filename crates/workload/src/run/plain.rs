//! The ways requests and replies of a worker go: the way of any worker, and shorter ones for workers with few options.
//!
//! What happens per request and per reply is written once and compiled for each [`Way`]. A way's constants leave out what
//! only an option needs. Most jobs have none of two dozen options, and asking for each of them was half of what the job
//! engine cost. Each condition of [`WayOf::of`] stands for code behind a constant; `tests/run/plain.rs` runs random jobs
//! their own way and the way of any worker. Deliberately not here: that code.

use super::plan::WorkerPlan;
use super::shared::Shared;
use crate::job::{Job, Operations, Response};
use ocssd_base::Nanos;

/// What a way leaves in.
pub(super) trait Way {
    /// What options of the job ask for, per I/O.
    const OPTIONS: bool;
    /// There are reads and nothing else.
    const ONLY_READS: bool;
}

/// The way of any worker.
pub(super) struct Any;

/// The way of workers without options that matter per I/O.
pub(super) struct Plain;

/// The same, for workers that only read.
pub(super) struct PlainReads;

impl Way for Any {
    const OPTIONS: bool = true;
    const ONLY_READS: bool = false;
}

impl Way for Plain {
    const OPTIONS: bool = false;
    const ONLY_READS: bool = false;
}

impl Way for PlainReads {
    const OPTIONS: bool = false;
    const ONLY_READS: bool = true;
}

/// Which way a worker goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WayOf {
    /// [`Any`].
    Any,
    /// [`Plain`].
    Plain,
    /// [`PlainReads`].
    PlainReads,
}

impl WayOf {
    /// The shortest way for a worker of this job on this target.
    pub(super) fn of(job: &Job, plan: &WorkerPlan, target: &Shared) -> Self {
        if !is_plain(job, plan, target) {
            Self::Any
        } else if job.options.rw.operations == Operations::Read {
            Self::PlainReads
        } else {
            Self::Plain
        }
    }
}

fn is_plain(job: &Job, plan: &WorkerPlan, target: &Shared) -> bool {
    let options = &job.options;
    let flushes = options.fsync > 0 || options.fdatasync > 0;
    let rated = options.rate.as_array().into_iter().any(Option::is_some)
        || options.rate_iops.as_array().into_iter().any(Option::is_some)
        || options.thinktime.pause > Nanos::ZERO;
    let elsewhere =
        plan.replay.is_some() || plan.strides.is_some() || plan.files.is_some() || plan.skip_bytes > 0;
    // A verifying job must know of the reads and writes of all jobs of its target.
    let verified = options.verify.is_some() || target.oracle.is_some();
    let watched = options.logs.iolog.is_some()
        || options.latency.target > Nanos::ZERO
        || options.says_priorities()
        || job.response() == Response::Intended;
    let held = options.flow.weight > 0 || options.rw.operations == Operations::TrimWrite;
    !(flushes || rated || elsewhere || verified || watched || held)
}
