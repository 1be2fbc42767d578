//! The series over run time as fio's log files: `ms, value, direction, block size, offset` per line.
//!
//! Values are averages over an interval, as fio writes them with `log_avg_msec`; like fio's, such lines have 0 for
//! block size and offset. The time is the end of the interval. Unlike fio, an interval without I/O is a line with
//! zero bandwidth and zero I/Os, so that a stall is seen; latencies of nothing are left out. An incomplete last
//! interval is left out too, unless it is the only one. With `log_prio` a line is of one priority, in place of the last 0, where
//! fio's averages have 0x0000. File names are those that fio-plot looks for.

use std::fmt::Write;

use ocssd_base::Nanos;

use super::interval::{Interval, IntervalSeries, rate_per_second};
use super::model::{Direction, JobResult};
use crate::job::IoPriority;

/// A file to be written by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// File name without directory.
    pub name: String,
    /// Lines as fio writes them.
    pub content: String,
}

/// What makes up the file names of a job, as fio-plot expects them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogName<'a> {
    /// fio's `rw`: `randread`.
    pub rw: &'a str,
    /// fio's `iodepth`.
    pub iodepth: u32,
    /// fio's `numjobs`.
    pub numjobs: u32,
}

impl LogName<'_> {
    /// `randread-iodepth-8-numjobs-1`
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("{}-iodepth-{}-numjobs-{}", self.rw, self.iodepth, self.numjobs)
    }
}

/// A value of an interval of the given length; `None` leaves the line out.
type Measure = fn(&Interval, Nanos) -> Option<u64>;

/// The kinds of logs, with fio's names: KiB/s, I/Os per second, and three latencies in nanoseconds.
const KINDS: [(&str, Measure); 5] = [
    ("bw", |interval, length| Some(rate_per_second(interval.bytes, length) / 1_024)),
    ("iops", |interval, length| Some(rate_per_second(interval.ios, length))),
    ("lat", |interval, _| interval.lat_ns_sum.checked_div(interval.ios)),
    ("clat", |interval, _| interval.clat_ns_sum.checked_div(interval.ios)),
    ("slat", |interval, _| interval.slat_ns_sum.checked_div(interval.ios)),
];

/// The five logs of a job, `<prefix>_{bw,iops,lat,clat,slat}.<number>.log`; `number` counts jobs from 1.
#[must_use]
pub fn log_files(job: &JobResult, prefix: &str, number: u32) -> Vec<LogFile> {
    KINDS
        .iter()
        .map(|(kind, measure)| LogFile {
            name: format!("{prefix}_{kind}.{number}.log"),
            content: content(job, *measure),
        })
        .collect()
}

/// The lines of one kind, by fio's name for it.
///
/// # Panics
/// If there is no such kind.
pub(super) fn kind_content(job: &JobResult, kind: &str) -> String {
    let (_, measure) = KINDS.iter().find(|(name, _)| *name == kind).expect("a kind of log");
    content(job, *measure)
}

/// Lines of all directions that did anything, by time and then by direction.
fn content(job: &JobResult, measure: Measure) -> String {
    let mut lines: Vec<(u64, u8, Option<IoPriority>, u64)> = Vec::new();
    for direction in Direction::ALL {
        let stats = job.direction(direction);
        if stats.total_ios == 0 {
            continue;
        }
        for (priority, series) in series_of(job, direction) {
            for (end, length, interval) in intervals(series, stats.runtime) {
                let value = measure(&interval, length);
                lines.extend(value.map(|value| (end.0 / 1_000_000, direction.number(), priority, value)));
            }
        }
    }
    lines.sort_unstable();
    lines.into_iter().fold(String::new(), |mut text, (ms, direction, priority, value)| {
        let priority = priority.map_or_else(|| "0".to_owned(), |priority| format!("0x{:04x}", priority.0));
        writeln!(text, "{ms}, {value}, {direction}, 0, {priority}").expect("a string takes all text");
        text
    })
}

/// What the lines of a direction are made from: all of it, or each priority.
fn series_of(job: &JobResult, direction: Direction) -> Vec<(Option<IoPriority>, &IntervalSeries)> {
    match job.priorities.as_ref().filter(|_| job.logs.priority) {
        Some(priorities) => {
            priorities.of(direction).map(|(priority, part)| (Some(priority), &part.series)).collect()
        }
        None => vec![(None, &job.direction(direction).series)],
    }
}

/// End (since the start of the series), length and content of each interval.
fn intervals(series: &IntervalSeries, runtime: Nanos) -> Vec<(Nanos, Nanos, Interval)> {
    if series.complete().is_empty() {
        return vec![(runtime, runtime, series.current())];
    }
    (1..).zip(series.complete()).map(|(k, each)| (series.interval() * k, series.interval(), *each)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{DirectionStats, IoTimes, PriorityStats, SeriesOptions};

    fn record(stats: &mut DirectionStats, at_ms: u64, lat: u64) {
        let times = IoTimes { slat: Nanos(1), clat: Nanos(lat - 1), lat: Nanos(lat) };
        stats.record(Nanos::from_millis(at_ms), 4_096, times);
    }

    fn lines(job: &JobResult, kind: usize) -> Vec<String> {
        log_files(job, "p", 1)[kind].content.lines().map(str::to_owned).collect()
    }

    #[test]
    fn names_are_those_fio_plot_looks_for() {
        let name = LogName { rw: "randread", iodepth: 8, numjobs: 2 };
        let files = log_files(&JobResult::new("j", SeriesOptions::default()), &name.prefix(), 2);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names[0], "randread-iodepth-8-numjobs-2_bw.2.log");
        assert_eq!((names.len(), names[4]), (5, "randread-iodepth-8-numjobs-2_slat.2.log"));
        assert!(files.iter().all(|file| file.content.is_empty()), "a job without I/O has no lines");
    }

    #[test]
    fn directions_share_a_file_in_order_of_time() {
        let mut job = JobResult::new("j", SeriesOptions::default());
        for (at_ms, lat) in [(100, 10), (200, 20), (1_100, 50)] {
            record(&mut job.read, at_ms, lat);
            record(&mut job.write, at_ms, lat * 2);
        }
        job.read.finish(Nanos::from_secs(2));
        job.write.finish(Nanos::from_secs(2));
        assert_eq!(
            lines(&job, 0),
            ["1000, 8, 0, 0, 0", "1000, 8, 1, 0, 0", "2000, 4, 0, 0, 0", "2000, 4, 1, 0, 0"]
        );
        assert_eq!(lines(&job, 2)[0..2], ["1000, 15, 0, 0, 0", "1000, 30, 1, 0, 0"]);
        assert_eq!(lines(&job, 4)[0], "1000, 1, 0, 0, 0");
    }

    #[test]
    fn a_stall_is_a_zero_and_has_no_latency() {
        let mut job = JobResult::new("j", SeriesOptions::default());
        record(&mut job.write, 0, 10);
        record(&mut job.write, 2_500, 10);
        job.write.finish(Nanos::from_millis(3_200));
        assert_eq!(lines(&job, 1), ["1000, 1, 1, 0, 0", "2000, 0, 1, 0, 0", "3000, 1, 1, 0, 0"]);
        assert_eq!(lines(&job, 3), ["1000, 9, 1, 0, 0", "3000, 9, 1, 0, 0"]);
    }

    #[test]
    fn a_run_shorter_than_an_interval_has_one_line_over_its_own_length() {
        let mut job = JobResult::new("j", SeriesOptions::default());
        record(&mut job.trim, 10, 10);
        job.trim.finish(Nanos::from_millis(250));
        assert_eq!(lines(&job, 1), ["250, 4, 2, 0, 0"]);
    }

    #[test]
    fn with_log_prio_each_priority_has_lines_of_its_own() {
        let mut job = JobResult::new("j", SeriesOptions::default());
        let mut priorities = PriorityStats::new(SeriesOptions::default());
        for (at_ms, lat, priority) in [(100, 10, (3, 2)), (200, 40, (1, 0)), (1_100, 20, (3, 2))] {
            let (at, priority) = (Nanos::from_millis(at_ms), IoPriority::new(priority.0, priority.1));
            job.read.record_whole(at, 4_096, Nanos(lat));
            priorities.record(Direction::Read, priority, at, 4_096, Nanos(lat));
        }
        job.read.finish(Nanos::from_secs(2));
        priorities.finish(Nanos::from_secs(2));
        job.priorities = Some(priorities);
        assert_eq!(lines(&job, 2), ["1000, 25, 0, 0, 0", "2000, 20, 0, 0, 0"]);
        job.logs.priority = true;
        assert_eq!(
            lines(&job, 2),
            ["1000, 40, 0, 0, 0x2000", "1000, 10, 0, 0, 0x6002", "2000, 20, 0, 0, 0x6002"]
        );
    }
}
