//! Throughput by writers and write buffer of a virtual drive: a drive is made for every point.

use super::subject;
use super::wait::Waiting;
use crate::args::ProfileArgs;
use ocssd_base::Nanos;
use ocssd_measure::profile::{
    CURVES_MAX, Profile, Step, WRITE_BUFFERS, WRITERS, Watch, WritersCurve, WritersPoint, measure_writers,
};
use ocssd_workload::host_cpu::HostCpuConfig;

/// Of the profile's time, all points together take a tenth, and none longer or shorter than this (chosen: in 60 ms a drive of
/// 16 units writes its least buffers several times after the ramp; a point costs less than a second of a processor).
const SHARE: u64 = 10;
const RUN: (Nanos, Nanos) = (Nanos::from_millis(60), Nanos::from_millis(100));

/// Puts the curves into a profile of the virtual drive `name`; what fails is a note. Buffers that the drive cannot work with
/// have none.
pub fn measure(args: &ProfileArgs, name: &str, time: Nanos, profile: &mut Profile, waiting: &mut Waiting) {
    // What is given for the buffer on the command line is the user's choice, and pblk alone has the option.
    if args.ftl.contains("write_buffer") || !args.ftl.starts_with("pblk") || !args.cell.is_empty() {
        return;
    }
    let count = u64::try_from(WRITERS.len() * CURVES_MAX).expect("a few");
    waiting.begin(true);
    let run = Nanos(time.0 / SHARE / count).clamp(RUN.0, RUN.1);
    for buffer_bytes in WRITE_BUFFERS {
        if profile.writers.len() == CURVES_MAX {
            return;
        }
        let done = profile.writers.len() * WRITERS.len();
        match curve(args, name, (buffer_bytes, run), (waiting, done)) {
            Ok(points) => profile.writers.push(WritersCurve { buffer_bytes, points }),
            // Too small for the drive to work with, or larger than its room: another may do.
            Err(Refused::Drive) => {}
            Err(Refused::Run(sentence)) => {
                profile.notes.push(sentence);
                return;
            }
        }
    }
}

/// The machine of the KSC 2017 paper with a core for each writer, as it has them.
fn processors(writers: u32, buffer_bytes: u64) -> HostCpuConfig {
    HostCpuConfig { cores: writers, ring_bytes: buffer_bytes, ..HostCpuConfig::e7_8870v3_x4() }
}

/// Why there is no curve.
enum Refused {
    /// The drive takes no such buffer.
    Drive,
    /// A job failed, or was stopped.
    Run(String),
}

fn curve(
    args: &ProfileArgs,
    name: &str,
    (buffer_bytes, run): (u64, Nanos),
    (waiting, done): (&mut Waiting, usize),
) -> Result<Vec<WritersPoint>, Refused> {
    let joint = if args.ftl.contains(':') { "," } else { ":" };
    let ftl = format!("{}{joint}write_buffer_bytes={buffer_bytes}", args.ftl);
    let mut points = Vec::new();
    for (number, writers) in WRITERS.into_iter().enumerate() {
        let processors = processors(writers, buffer_bytes);
        let mut device =
            subject::virtual_drive(name, &ftl, args.size, Some(processors)).map_err(|_| Refused::Drive)?;
        let what = format!("{writers} writers, a write buffer of {} MiB", buffer_bytes >> 20);
        // Points take about as long as each other: they are the seconds of this clock.
        let seconds = |points: usize| Nanos::from_secs(u64::try_from(points).expect("a few"));
        let (gone, left) = (done + number, WRITERS.len() * CURVES_MAX - done - number);
        waiting.on_step(&Step { what, gone: seconds(gone), left: seconds(left), is_most: true });
        let point = measure_writers(device.as_mut(), (writers, buffer_bytes), run, args.seed, &mut |look| {
            waiting.go_on(look)
        });
        points.push(point.map_err(|error| Refused::Run(error.0))?);
    }
    Ok(points)
}
