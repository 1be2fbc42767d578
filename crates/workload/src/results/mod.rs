//! What a run measured, and how it is shown: fio's JSON, a table for people, and fio's log files.
//!
//! The engine fills a [`RunResult`]; everything here turns that plain data into text. fio 3.33 is the reference:
//! same histogram, same percentiles, same keys, so tools that read fio's output read ours.
//!
//! Deliberately not here: clocks, files, and the decision whether a result is good (the linter in `measure`).

mod calendar;
mod depth;
mod direction;
pub mod fold;
mod group;
mod histogram;
mod histogram_log;
mod interval;
mod iolog;
pub mod json;
mod json_job;
mod latency;
pub mod logs;
mod model;
mod percentile;
mod priorities;
mod rounds;
pub mod series;
mod steady;
pub mod table;
mod tail;

pub use depth::{BatchCounts, DepthCounts};
pub use direction::{DirectionStats, IoTimes};
pub use group::{ReportedDirection, ReportedJob, reported_jobs};
pub use histogram::{BUCKET_COUNT, Histogram, bucket_index, bucket_value};
pub use histogram_log::{HistogramLog, HistogramRow};
pub use interval::{Interval, IntervalSeries, IntervalSummary, SERIES_ENTRIES_MAX, SeriesOptions};
pub use iolog::{RecordedIo, Recording, iolog_text};
pub use latency::LatencyStats;
pub use model::{
    BesideResult, ClockKind, CpuUse, Direction, JobResult, LatencyTarget, Lateness, PercentileOptions, Row,
    RunResult, SyncStats, Verdict, VerifyStats,
};
pub use percentile::{PERCENTILES_MAX, PercentileError, PercentileList};
pub use priorities::{PriorityPart, PriorityStats};
pub use rounds::RoundsReport;
pub use steady::{SteadyReport, SteadySample};
pub use tail::{Blame, Tail, TailCause};
