//! What is printed of a profile, and what is kept: result.json, rows of CSV, report.html and its pictures.

use crate::args::{EngineArg, ProfileArgs};
use crate::run::HOST_CPU_DEFAULT;
use crate::{Outcome, table};
use anyhow::Context;
use clap::ValueEnum;
use ocssd_measure::lint::Severity;
use ocssd_measure::profile::{
    CELL_COLUMNS, ComparedRow, Comparison, Judged, Profile, cell_row, csv, explain, in_order, report, summed,
    timeline_csv,
};
use ocssd_report::{ChartSpec, html, png, svg, tidy_csv};
use ocssd_workload::results::fold::{fold, fold_command};
use serde_json::{Value, json};
use std::path::Path;

/// Makes sure that the result can be kept, before anything is measured.
pub fn prepare(args: &ProfileArgs) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.out).with_context(|| {
        format!("the folder {} cannot be made; choose another with --out", args.out.display())
    })
}

/// The command line that does the same again.
pub fn rerun(args: &ProfileArgs) -> String {
    let quoted = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,%+@".contains(&b));
        if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let mut words = vec!["ocssd profile".to_owned()];
    words.extend(args.target.iter().map(|path| quoted(&path.display().to_string())));
    words.extend(args.emulated.iter().map(|drive| format!("--emulated {}", quoted(drive))));
    let ftl = (args.ftl != "pblk").then(|| format!("--ftl {}", quoted(&args.ftl)));
    words.extend(ftl);
    let host = (args.host_cpu != HOST_CPU_DEFAULT).then(|| format!("--host-cpu {}", quoted(&args.host_cpu)));
    words.extend(host);
    let switches = [
        (args.quick, "--quick"),
        (args.full, "--full"),
        (args.contract_grade, "--contract-grade"),
        (args.buffered, "--buffered"),
        (args.overwrite, "--overwrite"),
    ];
    words.extend(switches.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned()));
    words.extend(
        args.time.map(|time| format!("--time {}", quoted(&humantime::format_duration(time).to_string()))),
    );
    words.extend(args.repetitions.map(|count| format!("--repetitions {count}")));
    words.extend(args.cell.iter().map(|cell| format!("--cell {}", cell.name())));
    words.extend(args.size.map(|size| format!("--size {size}")));
    words.push(format!("--seed {}", args.seed));
    let engine = args.engine.to_possible_value().map(|value| value.get_name().to_owned());
    words.extend(engine.filter(|_| args.engine != EngineArg::Best).map(|name| format!("--engine {name}")));
    // The serial number is left out: results are shared, and it must be typed.
    words.extend(args.facts.words());
    words.extend(args.compare.iter().map(|name| format!("--compare {}", quoted(name))));
    words.join(" ")
}

/// Keeps and prints; failed if a rule says that the numbers must not be used, or it ended early.
pub fn show(
    args: &ProfileArgs,
    profile: &Profile,
    judged: &Judged,
    comparisons: &[Comparison],
    as_json: bool,
) -> anyhow::Result<Outcome> {
    keep(args, profile, judged, comparisons)?;
    if as_json {
        table::print_json(&judged.value);
    } else {
        print(args, profile, judged, comparisons);
    }
    let is_bad = judged.report.count(Severity::Fail) > 0 || profile.ended_early.is_some();
    Ok(match (profile.is_interrupted, is_bad) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Failed,
        (false, false) => Outcome::Good,
    })
}

fn keep(
    args: &ProfileArgs,
    profile: &Profile,
    judged: &Judged,
    comparisons: &[Comparison],
) -> anyhow::Result<()> {
    let report = report(profile, judged, &rerun(args), comparisons);
    let page = html::render(&report).context("the page cannot be made")?;
    write(&args.out, "result.json", format!("{:#}\n", judged.value).as_bytes())?;
    write(&args.out, "runs.csv", csv(profile).as_bytes())?;
    if let Some(timeline) = timeline_csv(profile) {
        write(&args.out, "timeline.csv", timeline.as_bytes())?;
    }
    write(&args.out, "report.html", page.as_bytes())?;
    keep_pictures(&args.out, &report.charts)
}

/// Pixels of a picture for each of its own (chosen: sharp on the screens of today).
const PNG_SCALE: f64 = 2.0;
/// Draws `pictures.json` again.
const PLOT: &str = include_str!("plot.py");

/// Every picture as SVG and PNG, the numbers of all of them as rows, and what they are for a script
/// that draws them with matplotlib.
fn keep_pictures(out: &Path, charts: &[ChartSpec]) -> anyhow::Result<()> {
    let folder = out.join("pictures");
    // Those of another profile would stand among these.
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{} cannot be emptied", folder.display()));
        }
        _ => {}
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (number, chart) in (1..).zip(charts) {
        let name = format!("{number:02}-{}", file_word(&chart.title));
        let drawn = svg::render(chart, svg::Width::Page).context("a picture cannot be drawn")?;
        write(&folder, &format!("{name}.svg"), drawn.as_bytes())?;
        let drawn = png::render(chart, PNG_SCALE).context("a picture cannot be drawn")?;
        write(&folder, &format!("{name}.png"), &drawn)?;
    }
    write(out, "pictures.csv", tidy_csv(charts).as_bytes())?;
    let described = serde_json::to_string(charts).context("pictures cannot be described")?;
    write(out, "pictures.json", described.as_bytes())?;
    write(out, "plot.py", PLOT.as_bytes())
}

/// A title as part of a file's name: `size-and-depth-together-throughput`.
fn file_word(title: &str) -> String {
    let plain = title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), " ");
    plain.split_whitespace().collect::<Vec<_>>().join("-")
}

fn write(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, content)
        .with_context(|| format!("{} cannot be written; choose another folder with --out", path.display()))
}

fn print(args: &ProfileArgs, profile: &Profile, judged: &Judged, comparisons: &[Comparison]) {
    let verdict = &judged.value["ocssd"]["verdict"];
    let reasons: Vec<&str> =
        verdict["reasons"].as_array().into_iter().flatten().filter_map(|reason| reason.as_str()).collect();
    let outcome = verdict["outcome"].as_str().unwrap_or_default();
    let because = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    table::line(&fold(&format!("verdict: {outcome}{because}")));
    for row in &profile.description {
        table::line(&fold(&format!("{}: {}", row.name, row.value)));
    }
    table::line(&format!("seed: {}", profile.seed));
    if let Some(attested) = profile.attestation {
        table::line(&fold(&attested.sentence()));
    }
    profile.notes.iter().for_each(|note| table::line(&fold(&format!("note: {note}"))));
    table::line("");
    let rows: Vec<Vec<String>> = in_order(profile).into_iter().map(cell_row).collect();
    table::print(&CELL_COLUMNS, &rows);
    for one in explain(profile) {
        table::line(&fold(&format!("\n{}: {}", one.about, one.sentence)));
    }
    comparisons.iter().for_each(print_comparison);
    print_findings(judged);
    table::line(&fold(&format!(
        "\ntook {:.1} s; report.html, result.json, runs.csv and pictures are in {}",
        profile.took.as_secs_f64(),
        args.out.display()
    )));
    if let Some(fio) = profile.runs.first().and_then(|run| run.own["fio"].as_str()) {
        table::line(&fold_command(&format!("the first run, for fio: {fio}")));
    }
    table::line(&fold_command(&format!("again: {}", rerun(args))));
}

/// Prints comparisons of what was kept.
pub fn comparisons(all: &[Comparison], as_json: bool) {
    if !as_json {
        return all.iter().for_each(print_comparison);
    }
    let row = |row: &ComparedRow| json!({ "what": row.what, "here": row.ours, "there": row.theirs, "ratio": row.ratio, "reading": row.remark });
    let one = |one: &Comparison| {
        let rows: Vec<Value> = one.rows.iter().map(row).collect();
        json!({ "title": one.title, "rows": rows, "remarks": one.remarks })
    };
    table::print_json(&Value::Array(all.iter().map(one).collect()));
}

fn print_comparison(comparison: &Comparison) {
    table::line(&format!("\n{}:", comparison.title));
    let rows: Vec<Vec<String>> = comparison
        .rows
        .iter()
        .map(|row| {
            let ratio = format!("{:.3}", row.ratio);
            vec![row.what.clone(), row.ours.clone(), row.theirs.clone(), ratio, row.remark.clone()]
        })
        .collect();
    table::print(&["what", "here", "there", "ratio", "reading"], &rows);
    comparison.remarks.iter().for_each(|remark| table::line(&fold(&format!("  {remark}"))));
}

fn print_findings(judged: &Judged) {
    let found = summed(judged);
    if found.is_empty() {
        table::line("\nthe linter found nothing");
        return;
    }
    table::line("\nthe linter found:");
    let rows: Vec<Vec<String>> = found
        .into_iter()
        .map(|(severity, rule, count, sentence)| {
            vec![severity.to_string(), format!("{} {}", rule.id, rule.name), count.to_string(), sentence]
        })
        .collect();
    table::print_folded(&["level", "rule", "runs", "first of them"], &rows);
    table::line("`ocssd lint --explain RULE` says what a finding means and what to do");
}
