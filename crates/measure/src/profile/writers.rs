//! How throughput grows with writers, for several sizes of the write buffer: the picture of the KSC 2017 paper.
//!
//! A writer is a thread of fio with one write of 4 KiB outstanding (`numjobs`, `iodepth=1`). Every point begins on a drive that
//! was just made, so that nothing is collected and only the host, the buffer and the media count. Deliberately not here: making
//! drives and hosts.

use super::device_under_test::{DeviceUnderTest, GoOn, TestError};
use super::record::as_f64;
use ocssd_base::Nanos;
use ocssd_workload::job::parse_command_line;

/// One write buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct WritersCurve {
    /// Its size in bytes.
    pub buffer_bytes: u64,
    /// A point for each number of writers, rising.
    pub points: Vec<WritersPoint>,
}

/// One number of writers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WritersPoint {
    /// Writers.
    pub writers: u32,
    /// Bytes per second of all together.
    pub bytes_per_second: f64,
    /// Bytes written while it was measured, in write buffers.
    pub buffers_written: f64,
}

/// Numbers of writers (the paper has 2 to 72 on as many processors; powers of two do for a curve).
pub const WRITERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Sizes of the buffer that are tried, least first: how large it must be depends on the drive (the paper has 32 MiB to 1 GiB).
pub const WRITE_BUFFERS: [u64; 11] = [
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    64 << 20,
    128 << 20,
    256 << 20,
    512 << 20,
    1 << 30,
];
/// Of these, so many that the drive takes (chosen: eight times the least it can work with is plenty).
pub const CURVES_MAX: usize = 4;

/// Measures one point for `run`, after two thirds of that which are not counted: the buffer is to be full first.
///
/// # Errors
/// If the job cannot run, or was stopped.
pub fn measure_writers(
    device: &mut dyn DeviceUnderTest,
    (writers, buffer_bytes): (u32, u64),
    run: Nanos,
    seed: u64,
    go_on: GoOn<'_>,
) -> Result<WritersPoint, TestError> {
    let words: Vec<String> = [
        format!("--name=writers-{writers}"),
        "--rw=randwrite".to_owned(),
        "--bs=4096".to_owned(),
        "--iodepth=1".to_owned(),
        format!("--numjobs={writers}"),
        format!("--size={}", device.bounds().bytes),
        "--norandommap".to_owned(),
        "--time_based".to_owned(),
        format!("--runtime={}us", run.0 / 1_000),
        format!("--ramp_time={}us", run.0 / 1_500),
        format!("--filename={}", device.filename()),
    ]
    .into();
    let parsed = parse_command_line(&words, &|_| None, &|_| Err("no files are read".to_owned()));
    let jobs = parsed.map_or_else(|errors| panic!("{errors}: {words:?}"), |parsed| parsed.jobs);
    let done = device.carry_out(&jobs[0], seed, go_on)?;
    if done.stopped {
        return Err(TestError("it was stopped (Ctrl-C); the curves of writers are left out".to_owned()));
    }
    let all = std::iter::once(&done.result).chain(&done.clones);
    let bytes: u64 = all.map(|result| result.write.io_bytes).sum();
    let seconds = done.result.run_time.as_secs_f64().max(1e-9);
    Ok(WritersPoint {
        writers,
        bytes_per_second: as_f64(bytes) / seconds,
        buffers_written: as_f64(bytes) / as_f64(buffer_bytes),
    })
}
