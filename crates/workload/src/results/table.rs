//! A run for people: verdict first, one aligned row per job and direction, and how to run it again.
//!
//! Latencies are total latencies (fio's `lat`), from start to completion. A percentile is blank when it rests on
//! fewer than ten samples beyond it, that is on fewer than `10 / (1 - p)` samples (rule L11 of the result checks).

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use ocssd_base::Nanos;

use super::group::{ReportedDirection, ReportedJob, reported_jobs};
use super::latency::LatencyStats;
use super::model::{Row, RunResult};

/// Percentiles shown, with the samples each needs by rule L11.
const PERCENTILES: [(&str, f64, u64); 3] = [("p50", 50.0, 20), ("p99", 99.0, 1_000), ("p99.9", 99.9, 10_000)];
const INDENT: &str = "    ";

/// The whole run as text, lines of at most what the names and commands need, with a line end.
#[must_use]
pub fn render(run: &RunResult) -> String {
    let reported = reported_jobs(&run.jobs);
    let mut lines = vec![
        format!("verdict: {}", run.verdict),
        format!("ocssd {}, {} time, seed {}", run.version, run.clock.name(), run.seed),
    ];
    lines.extend(run.trace_hash.map(|hash| format!("trace hash: {hash:016x}")));
    lines.extend(run.lateness.as_ref().map(|lateness| {
        let max = lateness.delay.max().unwrap_or_default();
        let (late, replies) = (lateness.late, lateness.delay.count());
        format!("late replies: {late} of {replies} by more than {}, at most {max}", lateness.threshold)
    }));
    lines.extend(run.drive.iter().chain(&run.environment).map(row_line));
    lines.push(String::new());
    lines.extend(job_lines(&reported));
    lines.push(String::new());
    lines.extend(run.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!("run again: {}", run.rerun_command));
    lines.into_iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{}", line.trim_end()).expect("a string takes all text");
        text
    })
}

fn row_line(row: &Row) -> String {
    format!("{}: {}", row.name, row.value)
}

/// The table, with the lines that belong to a job under the job's rows.
fn job_lines(reported: &[ReportedJob<'_>]) -> Vec<String> {
    let rows: Vec<Vec<[String; 10]>> = reported.iter().map(rows_of).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let percentile_names = PERCENTILES.map(|(name, ..)| name);
    table.set_header(
        ["job", "what", "I/Os", "IOPS", "bandwidth", "mean"]
            .into_iter()
            .chain(percentile_names)
            .chain(["max"]),
    );
    rows.iter().flatten().for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut table_lines = table.lines();
    let mut lines: Vec<String> = table_lines.by_ref().take(1).collect();
    for (job, rows) in reported.iter().zip(&rows) {
        lines.extend(table_lines.by_ref().take(rows.len()));
        lines.extend(lines_under(job));
    }
    if rows.iter().flatten().any(|row| row[6..9].iter().any(String::is_empty)) {
        lines.push("A blank percentile has fewer than 10/(1-p) samples.".into());
    }
    lines
}

/// One row per direction with I/O, then flushes and response time; a job that did nothing has one row that says so.
fn rows_of(job: &ReportedJob<'_>) -> Vec<[String; 10]> {
    let mut rows: Vec<[String; 10]> = Vec::new();
    for (direction, stats) in &job.directions {
        if stats.total_ios + stats.errors > 0 {
            rows.push(row(direction.name(), stats.total_ios, rates(stats), &stats.lat));
        }
    }
    if job.sync.total_ios > 0 {
        rows.push(row("flush", job.sync.total_ios, [String::new(), String::new()], &job.sync.lat));
    }
    if let Some(response) = &job.response {
        rows.push(row("response", response.count(), [String::new(), String::new()], response));
    }
    if rows.is_empty() {
        let mut nothing: [String; 10] = Default::default();
        nothing[1] = "no I/O".into();
        rows.push(nothing);
    }
    let name = &job.first.name;
    rows[0][0] = if job.members > 1 { format!("{name} (x{})", job.members) } else { name.clone() };
    rows
}

fn row(what: &str, ios: u64, [iops, bandwidth]: [String; 2], latency: &LatencyStats) -> [String; 10] {
    let percentile = |index: usize| {
        let (_, percent, samples_needed) = PERCENTILES[index];
        let value = latency.histogram().percentile(percent).filter(|_| latency.count() >= samples_needed);
        // A bucket stands for its middle, which may lie above the largest latency; no reader should wonder at that.
        let value = value.zip(latency.max()).map(|(value, max)| value.min(max));
        value.map_or_else(String::new, |value| value.to_string())
    };
    let (mean, max) = match latency.max() {
        Some(max) => (mean(latency).to_string(), max.to_string()),
        None => Default::default(),
    };
    let [p50, p99, p999] = [0, 1, 2].map(percentile);
    [String::new(), what.into(), ios.to_string(), iops, bandwidth, mean, p50, p99, p999, max]
}

/// The mean rounded to a nanosecond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive time below 584 years"
)]
fn mean(latency: &LatencyStats) -> Nanos {
    Nanos(latency.mean_ns().round() as u64)
}

/// Rates; blank of I/O that took no time, which has none.
fn rates(stats: &ReportedDirection) -> [String; 2] {
    if stats.runtime == Nanos::ZERO {
        return Default::default();
    }
    let iops = stats.iops();
    let decimals = if iops < 100.0 { 1 } else { 0 };
    [format!("{iops:.decimals$}"), bandwidth(stats.bytes_per_second())]
}

/// A bandwidth in the largest binary unit that keeps the number above one.
#[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
fn bandwidth(bytes_per_second: u64) -> String {
    let number = bytes_per_second as f64;
    match bytes_per_second {
        0..0x400 => format!("{bytes_per_second} B/s"),
        0x400..0x10_0000 => format!("{:.1} KiB/s", number / 1_024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB/s", number / 1_048_576.0),
        _ => format!("{:.2} GiB/s", number / 1_073_741_824.0),
    }
}

/// What went wrong, what was verified, and the same workload for fio.
fn lines_under(job: &ReportedJob<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if job.error_count > 0 || job.error != 0 {
        lines.push(format!("{INDENT}errors: {} (first errno {})", job.error_count, job.error));
    }
    if let Some(verify) = job.verify {
        lines.push(format!("{INDENT}verified: {} blocks, {} wrong", verify.checked, verify.failed));
    }
    let target = &job.last.latency_target;
    if target.target > Nanos::ZERO {
        lines.push(format!(
            "{INDENT}latency target: {} for {} % of I/Os in windows of {}, at depth {}",
            target.target, target.percentile, target.window, target.depth
        ));
    }
    lines.extend(job.last.steady.as_ref().map(|steady| format!("{INDENT}{}", steady.line())));
    lines.extend(job.last.rounds.as_ref().map(|rounds| format!("{INDENT}{}", rounds.line())));
    if !job.first.fio_command.is_empty() {
        lines.push(format!("{INDENT}{}", job.first.fio_command));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{ClockKind, IoTimes, JobResult, Lateness, SeriesOptions, Verdict, VerifyStats};

    fn job(name: &str, ios: u64) -> JobResult {
        let mut job = JobResult::new(name, SeriesOptions::default());
        for k in 0..ios {
            let times = IoTimes { lat: Nanos(70_000 + k), ..IoTimes::default() };
            job.read.record(Nanos(k * 1_000_000), 4_096, times);
        }
        job.read.finish(Nanos::from_millis(ios));
        job.fio_command = format!("fio --name={name} --rw=randread");
        job
    }

    fn run(jobs: Vec<JobResult>) -> RunResult {
        RunResult {
            version: "0.1.0".into(),
            started_unix_secs: None,
            clock: ClockKind::Virtual,
            seed: 7,
            rerun_command: "ocssd fio a.fio --seed 7".into(),
            environment: Vec::new(),
            drive: vec![Row::new("drive", "tiny, 4 parallel units")],
            notes: vec!["direct=1 has no effect".into()],
            global_options: Vec::new(),
            jobs,
            trace_hash: Some(0xAB),
            lateness: None,
            counters: None,
            verdict: Verdict::Warn(vec!["short run".into()]),
        }
    }

    #[test]
    fn a_report_starts_with_the_verdict_and_ends_with_how_to_run_it_again() {
        let text = render(&run(vec![job("reader", 1_000), job("x", 10)]));
        let expected = "\
verdict: warn: short run
ocssd 0.1.0, virtual time, seed 7
trace hash: 00000000000000ab
drive: tiny, 4 parallel units

 job     what  I/Os  IOPS  bandwidth     mean      p50      p99  p99.9      max
 reader  read  1000  1000  3.9 MiB/s  70.5 us  70.1 us  71.0 us         71.0 us
    fio --name=reader --rw=randread
 x       read    10  1000  3.9 MiB/s  70.0 us                           70.0 us
    fio --name=x --rw=randread
A blank percentile has fewer than 10/(1-p) samples.

note: direct=1 has no effect
run again: ocssd fio a.fio --seed 7
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_percentile_shows_from_its_number_of_samples_on() {
        for (ios, shown) in [(19, 0), (20, 1), (999, 1), (1_000, 2), (9_999, 2), (10_000, 3)] {
            let jobs = [job("j", ios)];
            let rows = rows_of(&reported_jobs(&jobs)[0]);
            let count = rows[0][6..9].iter().filter(|cell| !cell.is_empty()).count();
            assert_eq!(count, shown, "{ios} samples: {:?}", rows[0]);
        }
    }

    #[test]
    fn a_bandwidth_names_its_unit() {
        let cases = [
            (0, "0 B/s"),
            (1_023, "1023 B/s"),
            (1_024, "1.0 KiB/s"),
            (1 << 20, "1.0 MiB/s"),
            (1_500_000_000, "1.40 GiB/s"),
        ];
        for (bytes_per_second, text) in cases {
            assert_eq!(bandwidth(bytes_per_second), text);
        }
    }

    #[test]
    fn trouble_stands_under_its_job() {
        let mut bad = job("bad", 0);
        (bad.error, bad.error_count) = (5, 3);
        bad.verify = Some(VerifyStats { checked: 8, failed: 2 });
        let mut run = run(vec![bad]);
        run.lateness = Some(Lateness { threshold: Nanos(1_000), ..Lateness::default() });
        let text = render(&run);
        for part in
            ["no I/O", "errors: 3 (first errno 5)", "verified: 8 blocks, 2 wrong", "late replies: 0 of 0"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn flushes_and_response_time_have_rows_of_their_own() {
        let mut job = job("j", 5);
        job.sync.total_ios = 1;
        job.sync.lat.record(Nanos(500));
        job.response = Some(job.read.lat.clone());
        let jobs = [job];
        let what: Vec<String> =
            rows_of(&reported_jobs(&jobs)[0]).into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(what, ["read", "flush", "response"]);
    }
}
