//! Worker profiles: what requests and replies of a worker may need, so that workers with few options pay for none.
//!
//! What happens per request and per reply is written once and compiled for each [`Profile`]. A profile's constants leave out
//! what only an option needs. Most jobs have none of two dozen options, and asking for each of them was half of what the job
//! engine cost. Each condition of [`WorkerProfile::of`] stands for code behind a constant; `tests/run/worker_profile.rs` runs
//! random jobs with their own profile and with that of any worker. Deliberately not here: that code.

use super::plan::WorkerPlan;
use super::shared::Shared;
use crate::job::{Job, Operations, Response};
use ocssd_base::Nanos;

/// What is compiled in.
pub(super) trait Profile {
    /// What options of the job ask for, per I/O.
    const OPTIONS: bool;
}

/// Of any worker.
pub(super) struct Any;

/// Of workers without options that matter per I/O.
pub(super) struct NoOptions;

impl Profile for Any {
    const OPTIONS: bool = true;
}

impl Profile for NoOptions {
    const OPTIONS: bool = false;
}

/// The profile of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerProfile {
    /// [`Any`].
    Any,
    /// [`NoOptions`].
    NoOptions,
}

impl WorkerProfile {
    /// The narrowest profile for a worker of this job on this target.
    pub(super) fn of(job: &Job, plan: &WorkerPlan, target: &Shared) -> Self {
        if is_without_options(job, plan, target) { Self::NoOptions } else { Self::Any }
    }
}

fn is_without_options(job: &Job, plan: &WorkerPlan, target: &Shared) -> bool {
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
