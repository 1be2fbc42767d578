//! `ocssd profile`: what a drive really does, in a time that is kept.
//!
//! A [`Session`] fills what is measured, brings random writes to rest and runs a [`Schedule`] of [`Cell`]s on a
//! [`DeviceUnderTest`]: a real file or device ([`FileUnderTest`]), or a virtual drive ([`HostUnderTest`]). A [`Profile`] is
//! what comes out; it is turned into JSON that the linter and fio's readers take, CSV, a report, and sentences that explain
//! each number.
//!
//! Deliberately not here: arguments, terminals, files.

#![forbid(unsafe_code)]

mod cell;
mod compare;
mod datasheet;
mod device_under_test;
mod explain;
mod file_under_test;
mod host_under_test;
mod open_loop;
mod picture;
mod record;
mod result;
mod schedule;
mod session;
mod statistics;
mod timeline;
mod write_history;
mod writers;

pub use cell::{Cell, JobSetting, Order, short_size, size_word};
pub use compare::{ComparedRow, Comparison, Saved, SavedCell, read_saved, with_datasheet, with_saved};
pub use datasheet::{Datasheet, Quoted, datasheets, find_datasheet};
pub use device_under_test::{DeviceUnderTest, Done, GoOn, Look, TestError};
pub use explain::{
    CELL_COLUMNS, Explained, PERCENTILES, cell_row, depth_curve, depth_knee, explain, in_order, rate_word,
    time_word,
};
pub use file_under_test::FileUnderTest;
pub use host_under_test::{HostUnderTest, Probe};
pub use open_loop::{OpenPoint, OpenRun};
pub use picture::{report, summed};
pub use record::{CellRecord, FillRecord, Profile, RoundsRecord, RunRecord, SAMPLES_BEYOND, Series};
pub use result::{Judged, csv, judge, timeline_csv};
pub use schedule::{Bounds, Effort, Effortful, IN_FLIGHT_MAX, MIXES, Schedule, cells, possible};
pub use session::{Session, Step, Watch};
pub use statistics::{DepthPoint, Knee, Mean, knee};
pub use timeline::{DriveState, Moment, Timeline};
pub use write_history::{Interval, WriteHistory};
pub use writers::{CURVES_MAX, WRITE_BUFFERS, WRITERS, WritersCurve, WritersPoint, measure_writers};
