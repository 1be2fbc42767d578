//! fio-plot, the usual program for pictures of fio's results, draws ours.
//!
//! `OCSSD_FIO_PLOT` may name a ready `fio-plot`; without it the test installs one from PyPI into the target folder,
//! which needs Python 3 and, the first time, the network. With `OCSSD_KEEP_PICTURES` set, the pictures stay in the
//! target folder to be looked at.

use std::path::{Path, PathBuf};
use std::process::Command;

use ocssd_base::{Nanos, Prng};
use ocssd_workload::results::json::{Format, to_text};
use ocssd_workload::results::series::{LogName, log_files};
use ocssd_workload::results::{ClockKind, IoTimes, JobResult, Row, RunResult, SeriesOptions, Verdict};

const FIO_PLOT_REQUIREMENT: &str = "fio-plot==1.1.21";
const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");
/// Queue depths of the runs drawn side by side.
const DEPTHS: [u32; 4] = [1, 2, 4, 8];

/// Runs a command to its end.
///
/// # Errors
/// A sentence with what it said, if it could not start or failed.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("`{name}` does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("`{name}` ended with {}: {}", output.status, String::from_utf8_lossy(&said)))
}

/// The `fio-plot` to use: the one named, else one of our own that is installed if it is missing.
fn fio_plot() -> PathBuf {
    if let Some(ready) = std::env::var_os("OCSSD_FIO_PLOT") {
        return PathBuf::from(ready);
    }
    let environment = Path::new(FOLDER).join("fio-plot-venv");
    let program = environment.join("bin/fio-plot");
    if !program.exists() {
        let made = run(Command::new("python3").args(["-m", "venv"]).arg(&environment)).and_then(|()| {
            run(Command::new(environment.join("bin/pip")).args(["install", FIO_PLOT_REQUIREMENT]))
        });
        if let Err(reason) = made {
            panic!(
                "{FIO_PLOT_REQUIREMENT} could not be installed; install python3-venv and allow PyPI, \
                 or set OCSSD_FIO_PLOT to a ready fio-plot. {reason}"
            );
        }
    }
    program
}

/// A run of random reads with writes beside them: one job, the given depth, a few seconds of virtual time.
fn result(depth: u32) -> RunResult {
    let mut prng = Prng::new(u64::from(depth));
    let mut job = JobResult::new("sample", SeriesOptions::default());
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    job.options = vec![option("rw", "randrw"), option("bs", "4k"), option("numjobs", "1")];
    job.options.push(option("iodepth", &depth.to_string()));
    job.latency_target.depth = depth;
    for millis in 0..20_000 {
        let now = Nanos::from_millis(millis);
        for _ in 0..depth {
            job.iodepth_level.record(depth);
            let clat = Nanos(60_000 + prng.below(30_000) + if prng.below(100) == 0 { 2_000_000 } else { 0 });
            let times = IoTimes { slat: Nanos(900), clat, lat: clat + Nanos(900) };
            let direction = if prng.below(10) < 7 { &mut job.read } else { &mut job.write };
            direction.record(now, 4_096, times);
        }
    }
    let end = Nanos::from_secs(20);
    (job.run_time, job.elapsed) = (end, end);
    [&mut job.read, &mut job.write].into_iter().for_each(|direction| direction.finish(end));
    RunResult {
        version: "0.1.0".into(),
        started_unix_secs: None,
        clock: ClockKind::Virtual,
        seed: u64::from(depth),
        rerun_command: "ocssd fio sample.fio".into(),
        environment: Vec::new(),
        drive: vec![Row::new("drive", "sample")],
        limits: Vec::new(),
        tails: Vec::new(),
        notes: Vec::new(),
        global_options: vec![option("ioengine", "libaio")],
        jobs: vec![job],
        beside: Vec::new(),
        trace_hash: None,
        lateness: None,
        counters: None,
        verdict: Verdict::Pass,
    }
}

/// Writes results and logs where fio-plot looks for them.
fn write_results(folder: &Path) {
    for depth in DEPTHS {
        let run = result(depth);
        let prefix = LogName { rw: "randrw", iodepth: depth, numjobs: 1 }.prefix();
        let json = to_text(&run, Format::JsonPlus);
        std::fs::write(folder.join(format!("{prefix}.json")), json)
            .expect("the target folder can be written");
        for log in log_files(&run.jobs[0], &prefix, 1) {
            std::fs::write(folder.join(log.name), log.content).expect("the target folder can be written");
        }
    }
}

/// Width and height of a PNG file, from its header.
fn png_size(file: &Path) -> (u32, u32) {
    let bytes =
        std::fs::read(file).unwrap_or_else(|error| panic!("fio-plot drew no {}: {error}", file.display()));
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{} is no PNG", file.display());
    let field = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (field(16), field(20))
}

#[test]
fn fio_plot_draws_our_files() {
    let program = fio_plot();
    let folder = Path::new(FOLDER).join(format!("fio-plot-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    write_results(&folder);
    let depths = DEPTHS.map(|depth| depth.to_string());
    let pictures: [(&str, &[&str], &[String]); 5] = [
        ("bars", &["-l", "-f", "read"], &depths),
        ("surface", &["-L", "-t", "iops", "-f", "read"], &depths),
        ("histogram", &["-H", "-f", "read"], &depths[3..]),
        ("log_rates", &["-g", "-t", "bw", "iops"], &depths),
        ("log_latencies", &["-g", "-t", "lat", "clat", "slat"], &depths[3..]),
    ];
    for (name, arguments, depths) in pictures {
        let file = folder.join(format!("{name}.png"));
        let mut command = Command::new(&program);
        command.arg("-i").arg(&folder).args(["-T", name, "-r", "randrw", "-n", "1"]);
        command.args(arguments).arg("-d").args(depths).arg("-o").arg(&file);
        // A picture is drawn to a file; no window system is there.
        command.env("MPLBACKEND", "Agg").env("MPLCONFIGDIR", Path::new(FOLDER).join("matplotlib"));
        run(&mut command)
            .unwrap_or_else(|reason| panic!("fio-plot cannot draw \"{name}\" from our files: {reason}"));
        let (width, height) = png_size(&file);
        assert!(width > 400 && height > 200, "{name} is only {width} x {height}");
    }
    if std::env::var_os("OCSSD_KEEP_PICTURES").is_none() {
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }
}
