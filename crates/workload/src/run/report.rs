//! From a worker to a job's result: what is known before the run, and what is closed after it.

use super::plan::WorkerPlan;
use super::sizes::Sizes;
use super::worker::Worker;
use crate::job::{Job, Response, equivalent_command};
use crate::results::{
    Direction, HistogramLog, JobResult, LatencyStats, LatencyTarget, PercentileList, PercentileOptions,
    PriorityStats, Recording, SeriesOptions, VerifyStats,
};
use ocssd_base::Nanos;

/// `errno` of a failed I/O, as fio reports it (Linux).
pub(super) const EIO: u32 = 5;
/// `errno` of a job that has nothing left to read (Linux).
pub(super) const ENODATA: u32 = 61;
/// `errno` of a job that has no zone left to write (Linux).
pub(super) const ENOSPC: u32 = 28;
/// `errno` of a job that cannot keep its latency target, as fio reports it (Linux).
pub(super) const ETIMEDOUT: u32 = 110;
/// `errno` of content that did not verify, as fio reports it (Linux).
pub(super) const EILSEQ: u32 = 84;

/// Blocks of the longest I/O a worker makes.
pub(super) fn largest_io(plan: &WorkerPlan) -> u32 {
    plan.sizes.as_array().into_iter().flatten().map(Sizes::max).max().unwrap_or(1)
}

/// A result with all its memory, measured from `start` of the run on.
pub(super) fn job_result(job: &Job, plan: &WorkerPlan, start: Nanos) -> JobResult {
    let options = &job.options;
    let logs = [&options.logs.bw, &options.logs.iops, &options.logs.lat];
    let every = if logs.into_iter().any(Option::is_some) && options.logs.avg_msec > 0 {
        options.logs.avg_msec
    } else {
        1_000
    };
    let series = SeriesOptions { start, interval: Nanos::from_millis(every) };
    let mut result = JobResult::new(&job.name, series);
    result.priorities = options.says_priorities().then(|| PriorityStats::new(series));
    result.group = plan.group;
    result.group_reporting = options.group_reporting;
    result.options.clone_from(&job.own);
    result.description = options.description.clone().unwrap_or_default();
    result.fio_command = equivalent_command(job);
    result.response = (job.response() == Response::Intended).then(LatencyStats::default);
    // Of a job that leaves reading back to another (do_verify=0) and reads nothing, there is nothing to say.
    let verifies = options.verify.is_some() && (options.do_verify || options.rw.operations.reads());
    result.verify = verifies.then(VerifyStats::default);
    result.latency_target = LatencyTarget {
        depth: options.iodepth,
        target: options.latency.target,
        percentile: options.latency.percentile,
        window: options.latency.window,
    };
    result.logs.clone_from(&options.logs);
    let histograms = options.logs.hist.is_some() && options.logs.hist_msec > 0;
    result.histogram_log = histograms.then(|| HistogramLog::new(options.logs.hist_coarseness));
    result.recording = options.logs.iolog.is_some().then(|| Recording::new(job.file_name(plan.clone)));
    result.percentiles = PercentileOptions {
        slat: options.percentiles.slat,
        clat: options.percentiles.clat,
        lat: options.percentiles.lat,
        list: PercentileList::new(options.percentiles.list.clone()).unwrap_or_default(),
    };
    result
}

/// Ends an interval of the histogram log at run time `at`, if there is such a log.
pub(super) fn close_histograms(result: &mut JobResult, at: Nanos) {
    if let Some(mut log) = result.histogram_log.take() {
        log.close_interval(at, result.directions());
        result.histogram_log = Some(log);
    }
}

/// Closes a result when its worker is done.
pub(super) fn finish(result: &mut JobResult, worker: &Worker, origin: Nanos, ended: Nanos) {
    close_histograms(result, ended - origin);
    for direction in Direction::ALL {
        result.direction_mut(direction).finish(ended - origin);
    }
    if let Some(priorities) = &mut result.priorities {
        priorities.finish(ended - origin);
    }
    if let Some(recording) = &mut result.recording {
        recording.span = (worker.started_at - origin, ended - origin);
    }
    result.run_time = ended.saturating_since(worker.measured_from);
    result.elapsed = ended - origin;
}
