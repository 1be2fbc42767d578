//! Jobs as they are reported: one by one, or the jobs of a group as one (fio's `group_reporting`).
//!
//! As in fio: counts and histograms add up, a direction's runtime is the longest, run times and processor times add
//! up, rates per interval add up; name and description are those of the first job, options those of the last.

use std::collections::BTreeMap;

use ocssd_base::Nanos;

use super::depth::{BatchCounts, DepthCounts};
use super::direction::DirectionStats;
use super::interval::{IntervalSummary, rate_per_second};
use super::latency::LatencyStats;
use super::model::{CpuUse, Direction, JobResult, SyncStats, VerifyStats};
use crate::job::IoPriority;

/// One direction of one job, or of a group of jobs.
#[derive(Clone, Debug, Default)]
pub struct ReportedDirection {
    /// I/Os completed without error.
    pub total_ios: u64,
    /// Bytes completed without error.
    pub io_bytes: u64,
    /// The longest runtime of the jobs.
    pub runtime: Nanos,
    /// Short I/Os.
    pub short_ios: u64,
    /// I/Os given up.
    pub drop_ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Submission latencies.
    pub slat: LatencyStats,
    /// Completion latencies.
    pub clat: LatencyStats,
    /// Total latencies.
    pub lat: LatencyStats,
    /// Latencies by priority; empty where all have the same.
    pub priorities: BTreeMap<IoPriority, LatencyStats>,
    /// Bandwidth samples in KiB/s.
    pub bandwidth: IntervalSummary,
    /// I/O rate samples per second.
    pub iops_samples: IntervalSummary,
}

impl ReportedDirection {
    fn add(&mut self, stats: &DirectionStats) {
        self.total_ios += stats.total_ios;
        self.io_bytes += stats.io_bytes;
        self.runtime = self.runtime.max(stats.runtime);
        self.short_ios += stats.short_ios;
        self.drop_ios += stats.drop_ios;
        self.errors += stats.errors;
        self.slat.merge(&stats.slat);
        self.clat.merge(&stats.clat);
        self.lat.merge(&stats.lat);
        self.bandwidth.add(&stats.series.bandwidth());
        self.iops_samples.add(&stats.series.iops());
    }

    /// Bytes per second over the runtime, rounded down; zero without runtime.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        rate_per_second(self.io_bytes, self.runtime)
    }

    /// I/Os per second over the runtime; zero without runtime.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate shown with six decimals")]
    pub fn iops(&self) -> f64 {
        if self.runtime == Nanos::ZERO { 0.0 } else { self.total_ios as f64 / self.runtime.as_secs_f64() }
    }
}

/// One job of the report: a job, or the sum of a group.
#[derive(Clone, Debug)]
pub struct ReportedJob<'a> {
    /// The job that gives its name, description and group.
    pub first: &'a JobResult,
    /// The job that gives its options, percentile list and latency target.
    pub last: &'a JobResult,
    /// How many jobs it sums up.
    pub members: usize,
    /// Reads, writes and trims.
    pub directions: [(Direction, ReportedDirection); 3],
    /// Flushes.
    pub sync: SyncStats,
    /// Open loop: latency from the intended start.
    pub response: Option<LatencyStats>,
    /// Depths at submission.
    pub iodepth_level: DepthCounts,
    /// I/Os per submitting call.
    pub iodepth_submit: BatchCounts,
    /// I/Os per reaping call.
    pub iodepth_complete: BatchCounts,
    /// Processor use.
    pub cpu: CpuUse,
    /// Sum of the run times.
    pub run_time: Nanos,
    /// The latest end of a job.
    pub elapsed: Nanos,
    /// The first error that ended a job, or zero.
    pub error: u32,
    /// Errors of all jobs.
    pub error_count: u64,
    /// What verification found.
    pub verify: Option<VerifyStats>,
}

impl<'a> ReportedJob<'a> {
    fn new(job: &'a JobResult) -> Self {
        let mut reported = Self {
            first: job,
            last: job,
            members: 0,
            directions: Direction::ALL.map(|direction| (direction, ReportedDirection::default())),
            sync: SyncStats::default(),
            response: None,
            iodepth_level: DepthCounts::default(),
            iodepth_submit: BatchCounts::default(),
            iodepth_complete: BatchCounts::default(),
            cpu: CpuUse::default(),
            run_time: Nanos::ZERO,
            elapsed: Nanos::ZERO,
            error: 0,
            error_count: 0,
            verify: None,
        };
        reported.add(job);
        reported
    }

    fn add(&mut self, job: &'a JobResult) {
        self.last = job;
        self.members += 1;
        for (direction, sum) in &mut self.directions {
            sum.add(job.direction(*direction));
            for (priority, part) in job.priorities.iter().flat_map(|stats| stats.of(*direction)) {
                sum.priorities.entry(priority).or_default().merge(&part.lat);
            }
        }
        self.sync.total_ios += job.sync.total_ios;
        self.sync.lat.merge(&job.sync.lat);
        if let Some(response) = &job.response {
            self.response.get_or_insert_default().merge(response);
        }
        self.iodepth_level.merge(&job.iodepth_level);
        self.iodepth_submit.merge(&job.iodepth_submit);
        self.iodepth_complete.merge(&job.iodepth_complete);
        self.cpu.merge(&job.cpu);
        self.run_time += job.run_time;
        self.elapsed = self.elapsed.max(job.elapsed);
        if self.error == 0 {
            self.error = if job.error == 0 { job.first_error.unwrap_or(0) } else { job.error };
        }
        self.error_count += job.error_count;
        if let Some(verify) = job.verify {
            let sum = self.verify.get_or_insert_default();
            sum.checked += verify.checked;
            sum.failed += verify.failed;
        }
    }

    /// I/Os of all directions.
    #[must_use]
    pub fn total_ios(&self) -> u64 {
        self.directions.iter().map(|(_, direction)| direction.total_ios).sum()
    }
}

/// The jobs of a run as they are reported, in order.
#[must_use]
pub fn reported_jobs(jobs: &[JobResult]) -> Vec<ReportedJob<'_>> {
    let mut reported: Vec<ReportedJob<'_>> = Vec::new();
    for job in jobs {
        match reported.last_mut() {
            Some(open) if job.group_reporting && open.first.group == job.group => open.add(job),
            _ => reported.push(ReportedJob::new(job)),
        }
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{IoTimes, SeriesOptions};

    fn job(name: &str, group: u32, group_reporting: bool, secs: u64) -> JobResult {
        let mut job = JobResult::new(name, SeriesOptions::default());
        (job.group, job.group_reporting, job.run_time) = (group, group_reporting, Nanos::from_secs(secs));
        for at in 0..secs {
            job.read.record(Nanos::from_secs(at), 4_096, IoTimes { lat: Nanos(at), ..IoTimes::default() });
        }
        job.read.finish(Nanos::from_secs(secs));
        job
    }

    fn names<'a>(reported: &[ReportedJob<'a>]) -> Vec<(&'a str, &'a str, usize)> {
        reported.iter().map(|job| (job.first.name.as_str(), job.last.name.as_str(), job.members)).collect()
    }

    #[test]
    fn neighbours_of_a_group_are_one_if_they_ask_for_it() {
        let jobs = [
            job("a", 0, true, 1),
            job("b", 0, true, 1),
            job("c", 1, true, 1),
            job("d", 1, false, 1),
            job("e", 2, false, 1),
        ];
        assert_eq!(
            names(&reported_jobs(&jobs)),
            [("a", "b", 2), ("c", "c", 1), ("d", "d", 1), ("e", "e", 1)]
        );
        assert!(reported_jobs(&[]).is_empty());
    }

    #[test]
    fn a_group_adds_work_and_rates_and_takes_the_longest_runtime() {
        let jobs = [job("a", 0, true, 2), job("b", 0, true, 4)];
        let reported = &reported_jobs(&jobs)[0];
        let (_, read) = &reported.directions[0];
        assert_eq!((read.total_ios, read.io_bytes, read.runtime), (6, 6 * 4_096, Nanos::from_secs(4)));
        assert_eq!((read.bytes_per_second(), reported.run_time), (6 * 1_024, Nanos::from_secs(6)));
        assert_eq!((read.bandwidth.min, read.bandwidth.samples), (8, 6));
        assert_eq!((read.lat.count(), read.lat.max()), (6, Some(Nanos(3))));
    }

    #[test]
    fn the_first_error_of_a_group_is_its_error() {
        let mut jobs = [job("a", 0, true, 1), job("b", 0, true, 1), job("c", 0, true, 1)];
        (jobs[1].first_error, jobs[1].error_count) = (Some(5), 2);
        (jobs[2].error, jobs[2].error_count) = (28, 1);
        let reported = &reported_jobs(&jobs)[0];
        assert_eq!((reported.error, reported.error_count), (5, 3));
    }
}
