//! A run for people: verdict first, one aligned row per job and direction, what limited it, and how to run it again.
//!
//! [`brief`] fits a terminal of 80 columns; [`render`] has everything, as wide as that is.
//!
//! Latencies are total latencies (fio's `lat`), from start to completion. A percentile is blank when it rests on
//! fewer than ten samples beyond it, that is on fewer than `10 / (1 - p)` samples (rule L11 of the result checks).

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use ocssd_base::Nanos;

use super::fold::{COLUMNS, fold, fold_command};
use super::group::{ReportedDirection, ReportedJob, reported_jobs};
use super::latency::LatencyStats;
use super::model::{Row, RunResult, Verdict};
use super::tail::Tail;

/// The columns, in order.
const HEADER: [&str; 10] = ["job", "what", "I/Os", "IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "max"];
/// Percentiles shown, with the samples each needs by rule L11.
const PERCENTILES: [(&str, f64, u64); 3] = [("p50", 50.0, 20), ("p99", 99.0, 1_000), ("p99.9", 99.9, 10_000)];
/// What a brief table goes without first: the rate says how many I/Os there were, and the mean little beside percentiles.
const SPARED: [&str; 3] = ["I/Os", "mean", "p50"];
/// Rows of the drive's description that a brief report shows.
const BRIEF_ROWS: [&str; 4] = ["drive", "shape", "set", "target"];
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
    lines.extend(job_lines(&reported, &HEADER, usize::MAX, lines_under));
    lines.push(String::new());
    lines.extend(run.beside.iter().flat_map(|beside| [beside.text.clone(), String::new()]));
    lines.extend(run.limits.iter().cloned());
    lines.extend(run.tails.iter().map(Tail::sentence));
    lines.extend(run.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!("run again: {}", run.rerun_command));
    text(&lines)
}

/// What most readers want of it: verdict, table, what limited it, and how to run it again, within [`COLUMNS`]. `colour` paints
/// the verdict for a terminal.
#[must_use]
pub fn brief(run: &RunResult, colour: bool) -> String {
    let reported = reported_jobs(&run.jobs);
    let verdict = fold(&format!("verdict: {}", run.verdict));
    let mut lines = vec![if colour { painted(&verdict, &run.verdict) } else { verdict }, String::new()];
    let columns = |spared: usize| -> Vec<&str> {
        HEADER.into_iter().filter(|name| !SPARED[..spared].contains(name)).collect()
    };
    let mut narrower =
        (1..=SPARED.len()).map(|spared| job_lines(&reported, &columns(spared), usize::MAX, trouble_under));
    let is_narrow = |lines: &Vec<String>| lines.iter().all(|line| line.chars().count() <= COLUMNS);
    let cut = || job_lines(&reported, &columns(SPARED.len()), COLUMNS, trouble_under);
    lines.extend(narrower.find(is_narrow).unwrap_or_else(cut));
    lines.push(String::new());
    lines.extend(run.beside.iter().flat_map(|beside| [beside.text.clone(), String::new()]));
    lines.extend(run.limits.iter().map(|limit| fold(limit)));
    lines.extend(run.tails.iter().map(|tail| fold(&tail.sentence())));
    lines.extend(verified(&reported));
    let drive: Vec<&str> = run
        .drive
        .iter()
        .filter(|row| BRIEF_ROWS.contains(&row.name.as_str()))
        .map(|row| row.value.as_str())
        .collect();
    if !drive.is_empty() {
        let (clock, seed) = (run.clock.name(), run.seed);
        lines.push(fold(&format!("drive: {}; {clock} time, seed {seed}", drive.join("; "))));
    }
    lines.extend(run.notes.iter().map(|note| fold(&format!("note: {note}"))));
    lines.push(fold_command(&format!("run again: {}", run.rerun_command)));
    text(&lines)
}

fn text(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{}", line.trim_end()).expect("a string takes all text");
        text
    })
}

/// The verdict's word in green, yellow or red (ECMA-48, SGR 32, 33 and 31).
fn painted(text: &str, verdict: &Verdict) -> String {
    let colour = match verdict {
        Verdict::Pass => 32,
        Verdict::Warn(_) => 33,
        Verdict::Fail(_) | Verdict::Interrupted(_) => 31,
    };
    let word = verdict.outcome();
    text.replacen(word, &format!("\x1b[1;{colour}m{word}\x1b[0m"), 1)
}

/// All that was compared, if anything was.
fn verified(reported: &[ReportedJob<'_>]) -> Option<String> {
    let all: Vec<_> = reported.iter().filter_map(|job| job.verify).collect();
    let (checked, failed) =
        all.iter().fold((0, 0), |(checked, failed), one| (checked + one.checked, failed + one.failed));
    (!all.is_empty()).then(|| format!("verified: {checked} blocks, {failed} wrong"))
}

fn row_line(row: &Row) -> String {
    format!("{}: {}", row.name, row.value)
}

/// The table of these columns, with the lines that belong to a job under the job's rows. Names are cut where a line would be
/// wider than `columns_max`.
fn job_lines(
    reported: &[ReportedJob<'_>],
    header: &[&str],
    columns_max: usize,
    under: fn(&ReportedJob<'_>) -> Vec<String>,
) -> Vec<String> {
    let mut rows: Vec<Vec<[String; 10]>> = reported.iter().map(rows_of).collect();
    let mut grid = grid(&rows, header);
    let excess = grid.iter().map(|line| line.chars().count()).max().unwrap_or(0).saturating_sub(columns_max);
    if excess > 0 {
        shorten_names(&mut rows, excess);
        grid = self::grid(&rows, header);
    }
    let mut grid = grid.into_iter();
    let mut lines: Vec<String> = grid.by_ref().take(1).collect();
    for (job, rows) in reported.iter().zip(&rows) {
        lines.extend(grid.by_ref().take(rows.len()));
        lines.extend(under(job));
    }
    let has_blank = |row: &[String; 10]| {
        row.iter()
            .zip(HEADER)
            .any(|(cell, name)| cell.is_empty() && name.starts_with('p') && header.contains(&name))
    };
    if rows.iter().flatten().any(has_blank) {
        lines.push("A blank percentile has fewer than 10/(1-p) samples.".into());
    }
    lines
}

/// The aligned lines of a table with some of the columns; words to the left, numbers to the right.
fn grid(rows: &[Vec<[String; 10]>], header: &[&str]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows.iter().flatten() {
        table.add_row(row.iter().zip(HEADER).filter(|(_, name)| header.contains(name)).map(|(cell, _)| cell));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Cuts the longest names by this much; where something is missing two dots say so.
fn shorten_names(rows: &mut [Vec<[String; 10]>], excess: usize) {
    let longest = rows.iter().flatten().map(|row| row[0].chars().count()).max().unwrap_or(0);
    let room = longest.saturating_sub(excess).max(4);
    for row in rows.iter_mut().flatten().filter(|row| row[0].chars().count() > room) {
        row[0] = row[0].chars().take(room - 2).chain("..".chars()).collect();
    }
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
    let [mean, p50, p99, p999, max] = latency_cells(latency);
    [String::new(), what.into(), ios.to_string(), iops, bandwidth, mean, p50, p99, p999, max]
}

/// Mean, p50, p99, p99.9 and maximum; a percentile is blank that rests on too few samples (rule L11), and all are without any.
#[must_use]
pub fn latency_cells(latency: &LatencyStats) -> [String; 5] {
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
    [mean, p50, p99, p999, max]
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

/// What went wrong, and what was found out besides rates and latencies.
fn trouble_under(job: &ReportedJob<'_>) -> Vec<String> {
    let mut lines: Vec<String> = error_line(job).into_iter().collect();
    lines.extend(found_under(job));
    lines.iter().map(|line| fold(line)).collect()
}

fn error_line(job: &ReportedJob<'_>) -> Option<String> {
    let is_bad = job.error_count > 0 || job.error != 0;
    is_bad.then(|| format!("{INDENT}errors: {} (first errno {})", job.error_count, job.error))
}

/// What went wrong, what was verified, and the same workload for fio.
fn lines_under(job: &ReportedJob<'_>) -> Vec<String> {
    let mut lines: Vec<String> = error_line(job).into_iter().collect();
    if let Some(verify) = job.verify {
        lines.push(format!("{INDENT}verified: {} blocks, {} wrong", verify.checked, verify.failed));
    }
    lines.extend(found_under(job));
    if !job.first.fio_command.is_empty() {
        lines.push(format!("{INDENT}{}", job.first.fio_command));
    }
    lines
}

/// How long I/Os of each priority took, of directions that had several.
fn priority_lines(job: &ReportedJob<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (direction, stats) in job.directions.iter().filter(|(_, stats)| stats.priorities.len() > 1) {
        for (priority, lat) in &stats.priorities {
            let p99 = lat.histogram().percentile(99.0).filter(|_| lat.count() >= 1_000);
            let p99 = p99.map_or_else(String::new, |p99| format!(", p99 {p99}"));
            lines.push(format!(
                "{INDENT}{} of priority {}/{}: {} I/Os, mean {}{p99}",
                direction.name(),
                priority.class(),
                priority.level(),
                lat.count(),
                mean(lat)
            ));
        }
    }
    lines
}

/// What priorities, searching for a latency or a steady state ended with.
fn found_under(job: &ReportedJob<'_>) -> Vec<String> {
    let mut lines = priority_lines(job);
    let target = &job.last.latency_target;
    if target.target > Nanos::ZERO {
        lines.push(format!(
            "{INDENT}latency target: {} for {} % of I/Os in windows of {}, at depth {}",
            target.target, target.percentile, target.window, target.depth
        ));
    }
    lines.extend(job.last.steady.as_ref().map(|steady| format!("{INDENT}{}", steady.line())));
    lines.extend(job.last.rounds.as_ref().map(|rounds| format!("{INDENT}{}", rounds.line())));
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
            limits: vec!["limited by depth".into()],
            tails: Vec::new(),
            notes: vec!["direct=1 has no effect".into()],
            global_options: Vec::new(),
            jobs,
            beside: Vec::new(),
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

limited by depth
note: direct=1 has no effect
run again: ocssd fio a.fio --seed 7
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_brief_report_has_verdict_table_limit_and_command_and_nothing_for_machines() {
        let text = brief(&run(vec![job("reader", 1_000), job("x", 10)]), false);
        let expected = "\
verdict: warn: short run

 job     what  IOPS  bandwidth     mean      p50      p99  p99.9      max
 reader  read  1000  3.9 MiB/s  70.5 us  70.1 us  71.0 us         71.0 us
 x       read  1000  3.9 MiB/s  70.0 us                           70.0 us
A blank percentile has fewer than 10/(1-p) samples.

limited by depth
drive: tiny, 4 parallel units; virtual time, seed 7
note: direct=1 has no effect
run again: ocssd fio a.fio --seed 7
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_brief_report_fits_a_terminal_whatever_its_names() {
        for length in 1..120 {
            let mut run = run(vec![job(&"n".repeat(length), 20_000), job("x", 10)]);
            run.notes = vec!["word ".repeat(length)];
            run.verdict = Verdict::Fail(vec!["reason ".repeat(length)]);
            run.rerun_command = format!("ocssd run{}", " --name=a".repeat(length));
            let text = brief(&run, false);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(COLUMNS), "{widest:?} columns:\n{text}");
            assert!(text.contains("p99.9"), "the tail is not spared:\n{text}");
        }
    }

    #[test]
    fn only_the_verdict_is_painted_and_only_if_asked() {
        let run = run(vec![job("j", 10)]);
        let (plain, painted) = (brief(&run, false), brief(&run, true));
        assert!(!plain.contains('\x1b'), "{plain:?}");
        assert!(painted.starts_with("verdict: \x1b[1;33mwarn\x1b[0m: short run\n"), "{painted:?}");
        assert_eq!(plain.lines().skip(1).collect::<Vec<_>>(), painted.lines().skip(1).collect::<Vec<_>>());
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
