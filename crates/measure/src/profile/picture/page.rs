//! A profile as a report: pictures, tables and sentences on one page.

use super::super::cell::{Cell, size_word};
use super::super::compare::Comparison;
use super::super::explain::{CELL_COLUMNS, cell_row, explain, in_order, rate_word, time_word};
use super::super::record::{CellRecord, Profile, SAMPLES_BEYOND};
use super::super::result::Judged;
use super::{curves, grid, inside, writers};
use crate::lint::Severity;
use ocssd_report::{Report, Table, Tile, Verdict};

/// The cell in order that every schedule has.
const IN_ORDER_BYTES: u64 = 128 << 10;
const IN_ORDER_DEPTH: u32 = 32;

/// The report of a profile.
#[must_use]
pub fn report(profile: &Profile, judged: &Judged, rerun: &str, comparisons: &[Comparison]) -> Report {
    let row =
        |name: &str| profile.description.iter().find(|row| row.name == name).map(|row| row.value.clone());
    let name = row("target").unwrap_or_default();
    let sentences: Vec<String> = explain(profile).into_iter().map(|one| one.sentence).collect();
    let mut report = Report::new("profile", &format!("What {name} really does"))
        .opening("What was found", &sentences.join("\n\n"))
        .verdicts(verdicts(profile, judged))
        .method(&method(profile));
    for tile in tiles(profile) {
        report = report.tile(tile);
    }
    let charts = [
        curves::all(profile),
        grid::grids(profile),
        curves::cpu(profile),
        inside::all(profile),
        writers::chart(profile).into_iter().collect(),
    ];
    for chart in charts.into_iter().flatten() {
        report = report.chart(chart);
    }
    report = report.table(cells(profile));
    for comparison in comparisons {
        report = report
            .table(compared(comparison))
            .section(&format!("Reading it {}", comparison.title), &comparison.remarks.join("\n\n"));
    }
    report = report.table(findings(judged));
    if !profile.notes.is_empty() {
        report = report.section("What to know", &profile.notes.join("\n\n"));
    }
    for row in profile.description.iter().chain(&profile.environment) {
        report = report.fact(&row.name, &row.value);
    }
    let fio = profile.runs.first().and_then(|run| run.own["fio"].as_str()).unwrap_or_default();
    report
        .fact("seed", &profile.seed.to_string())
        .fact("run again", rerun)
        .fact("the first run, for fio", fio)
}

/// Latency, IOPS, bytes in order, and what writes keep up: each if it was measured.
fn tiles(profile: &Profile) -> Vec<Tile> {
    let tile = |label: &str, value: String, note: String| Tile { label: label.to_owned(), value, note };
    let latency = profile.find(Cell::BASE).map(|record| {
        let tail =
            record.percentile(99.0).map_or_else(String::new, |nanos| format!(", p99 {}", time_word(nanos)));
        tile("Latency", time_word(record.mean_ns.value), format!("mean of {}{tail}", record.cell.label()))
    });
    let at_depth = |record: &&CellRecord| Cell { depth: 1, ..record.cell } == Cell::BASE;
    let most = profile.cells.iter().filter(at_depth).max_by(|a, b| a.iops.value.total_cmp(&b.iops.value));
    let most = most.map(|record| tile("IOPS", grouped(record.iops.value), record.cell.label()));
    let in_order = |reads| profile.find(Cell::sequential(IN_ORDER_BYTES, reads, IN_ORDER_DEPTH));
    let in_order = in_order(100).map(|record| {
        let writes =
            in_order(0).map(|record| format!("; writes {}", rate_word(record.bytes_per_second.value)));
        let note = format!("{}{}", record.cell.label(), writes.unwrap_or_default());
        tile("In order", rate_word(record.bytes_per_second.value), note)
    });
    let sustained = profile.rounds.as_ref().and_then(|rounds| {
        let (burst, sustained) = rounds.burst_and_sustained()?;
        let rest = if rounds.is_steady() { "at rest" } else { "not at rest yet" };
        let note = format!("IOPS of 4 KiB random writes, {rest}; {} at first", grouped(burst));
        Some(tile("Sustained writes", grouped(sustained), note))
    });
    [latency, most, in_order, sustained].into_iter().flatten().collect()
}

/// A number whose thousands can be told.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

fn method(profile: &Profile) -> String {
    let early =
        profile.ended_early.as_ref().map_or_else(String::new, |why| format!(" It ended early: {why}."));
    let attested = profile.attestation.map_or_else(
        || "A virtual drive in virtual time: no machine is in these numbers.".to_owned(),
        |attested| format!("Direct I/O is attested, not assumed; {}.", attested.sentence()),
    );
    format!(
        "{} of {} runs of {:.2} s each, every cell once before any is repeated, each time in another random order; a tenth of \
         that before each run is not counted. Means are over repetitions, with 95 % intervals. Percentiles are of all \
         repetitions together, and blank where fewer than {SAMPLES_BEYOND:.0} samples lie beyond them.{early}\n\n{attested}",
        profile.runs.len(),
        profile.planned,
        profile.run.as_secs_f64()
    )
}

/// The linter's verdict, and ours on rest.
fn verdicts(profile: &Profile, judged: &Judged) -> Vec<Verdict> {
    let count = |severity| judged.report.count(severity);
    let (fails, warns) = (count(Severity::Fail), count(Severity::Warn));
    let numbers = format!(
        "{fails} findings to fail, {warns} to warn, {} to label; the table below has each",
        count(Severity::Label)
    );
    // What stands beside the word of a verdict says the same as the word.
    let sentence =
        |holds: bool, then: &'static str, otherwise: &'static str| if holds { then } else { otherwise };
    let lint = sentence(
        fails == 0,
        "The linter's rules find nothing that forbids these numbers.",
        "The linter's rules forbid some of these numbers.",
    );
    let mut all = vec![Verdict::decided("lint", lint, fails == 0, numbers)];
    if let Some(rounds) = &profile.rounds {
        let numbers = rounds.window.map_or_else(
            || format!("{} rounds, too few", rounds.iops.len()),
            |window| {
                format!(
                    "range {:.1} % of {:.0}, line {:+.1} % of {:.0}, written {} of {}",
                    window.excursion_percent,
                    rounds.rule.excursion_percent,
                    window.slope_percent,
                    rounds.rule.slope_percent,
                    size_word(rounds.written),
                    size_word(rounds.rule.floor_bytes)
                )
            },
        );
        let steady = sentence(
            rounds.is_steady(),
            "Random writes came to rest before cells were measured.",
            "Random writes had not come to rest when cells were measured.",
        );
        all.push(Verdict::decided("steady", steady, rounds.is_steady(), numbers));
    }
    all
}

fn cells(profile: &Profile) -> Table {
    let mut table = Table::new("Every cell", &CELL_COLUMNS);
    in_order(profile).into_iter().for_each(|record| table.push(cell_row(record)));
    table
}

fn compared(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        &format!("This profile {}", comparison.title),
        &["what", "here", "there", "ratio", "reading"],
    );
    for row in &comparison.rows {
        table.push(vec![
            row.what.clone(),
            row.ours.clone(),
            row.theirs.clone(),
            format!("{:.3}", row.ratio),
            row.remark.clone(),
        ]);
    }
    table
}

fn findings(judged: &Judged) -> Table {
    let mut table = Table::new("What the linter found", &["level", "rule", "runs", "first of them", "means"]);
    for (severity, judged_rule, count, sentence) in summed(judged) {
        table.push(vec![
            severity.to_string(),
            format!("{} {}", judged_rule.id, judged_rule.name),
            count.to_string(),
            sentence,
            judged_rule.means.to_owned(),
        ]);
    }
    table
}

/// Findings by rule and level: how many, and the first.
#[must_use]
pub fn summed(judged: &Judged) -> Vec<(Severity, &'static crate::lint::Rule, usize, String)> {
    let mut all: Vec<(Severity, &'static crate::lint::Rule, usize, String)> = Vec::new();
    for (one, severity, sentence) in judged.report.findings() {
        match all.iter_mut().find(|(level, rule, ..)| *level == severity && rule.id == one.rule.id) {
            Some((_, _, count, _)) => *count += 1,
            None => {
                let cell = &judged.evidence.cells[one.cell].name;
                all.push((severity, one.rule, 1, format!("{cell}: {sentence}")));
            }
        }
    }
    all.sort_by_key(|(severity, rule, ..)| (std::cmp::Reverse(*severity), rule.id));
    all
}
