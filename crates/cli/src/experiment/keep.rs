//! The files of an experiment: our rows, how they were made, and the report in every form.
//!
//! `ours.csv` and `run.json` are written by a run; everything else follows from them and is written by run and report
//! alike.

use super::catalogue::{Experiment, Numbers};
use super::compare::{Comparison, compare};
use super::ratio;
use anyhow::Context;
use ocssd_report::svg::{self, Width};
use ocssd_report::{ChartSpec, PaperTable, Report, Role, html, png};
use serde_json::{Value, json};
use std::path::Path;

/// Pixels of a picture for each of its SVG.
const PNG_SCALE: f64 = 2.0;

/// How rows were made.
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// The command that makes them again.
    pub command: String,
    /// Whether only some points were run.
    pub is_small: bool,
    /// How far it came, if it was interrupted.
    pub interrupted: Option<String>,
    /// Real time it took, in seconds.
    pub seconds: f64,
}

impl Provenance {
    fn to_json(&self) -> Value {
        json!({ "version": self.version, "seed": self.seed, "command": self.command, "small": self.is_small,
            "interrupted": self.interrupted,
            "seconds": (self.seconds * 10.0).round() / 10.0 })
    }

    fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            version: value["version"].as_str()?.to_owned(),
            seed: value["seed"].as_u64()?,
            command: value["command"].as_str()?.to_owned(),
            is_small: value["small"].as_bool()?,
            // Runs of before that could be interrupted do not say.
            interrupted: value["interrupted"].as_str().map(str::to_owned),
            seconds: value["seconds"].as_f64()?,
        })
    }
}

/// Keeps what a run gave.
///
/// # Errors
/// A sentence with the file that cannot be written.
pub fn write_run(folder: &Path, rows: &str, provenance: &Provenance) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| {
        format!("the folder {} cannot be made; choose another with --out", folder.display())
    })?;
    write(folder, "ours.csv", rows.as_bytes())?;
    write(folder, "run.json", format!("{:#}\n", provenance.to_json()).as_bytes())
}

/// Reads what a run kept.
///
/// # Errors
/// A sentence with the file that is not there, or is not what a run keeps.
pub fn read_run(folder: &Path, experiment: &Experiment) -> anyhow::Result<(PaperTable, Provenance)> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).with_context(|| {
            format!("{} cannot be read; run it first: ocssd experiment run {}", path.display(), experiment.id)
        })
    };
    let ours =
        PaperTable::load(&read("ours.csv")?).with_context(|| format!("{}/ours.csv", folder.display()))?;
    let text = read("run.json")?;
    let provenance = serde_json::from_str(&text).ok().and_then(|value| Provenance::from_json(&value));
    let provenance = provenance.with_context(|| {
        format!("{}/run.json is not what a run keeps; run the experiment again", folder.display())
    })?;
    Ok((ours, provenance))
}

/// The report, and how far our numbers are from the paper's.
///
/// # Errors
/// A sentence, if rows are missing that every run has.
pub fn make_report(
    experiment: &Experiment,
    ours: PaperTable,
    provenance: &Provenance,
) -> anyhow::Result<(Report, Comparison)> {
    let paper = PaperTable::load(experiment.paper).context("the paper's numbers in this program")?;
    let comparison = compare(&paper, &ours, experiment.why);
    let scope = if provenance.is_small { "small: few points, short times" } else { "full" };
    let scope = match &provenance.interrupted {
        Some(how) => format!("{scope}; {how}"),
        None => scope.to_owned(),
    };
    let base = Report::new(experiment.id, experiment.title)
        .claim(experiment.claim)
        .method(experiment.method)
        .fact("version", &provenance.version)
        .fact("seed", &provenance.seed.to_string())
        .fact("size", &scope)
        .fact("command", &provenance.command)
        .fact("took", &format!("{:.0} s", provenance.seconds))
        .fact("paper", experiment.source);
    let mut report = (experiment.report)(base, &Numbers { paper, ours })?;
    if let Some(chart) = ratio::chart(&comparison) {
        let shows_paper = |chart: &&mut ChartSpec| {
            chart.panels.iter().flat_map(|panel| &panel.series).any(|series| series.role == Role::Paper)
        };
        for chart in report.charts.iter_mut().filter(shows_paper) {
            let words = format!(
                "Numbers within 10 % of the paper's in the whole experiment: {}.",
                comparison.count()
            );
            chart.subtitle = format!("{} {words}", chart.subtitle).trim_start().to_owned();
        }
        report = report.chart(chart);
    }
    report = report.section("How far off", &format!("{}.", comparison.sentence()));
    if !comparison.table.rows.is_empty() {
        report = report.table(comparison.table.clone());
    }
    Ok((report, comparison))
}

/// Writes the report in every form.
///
/// # Errors
/// A sentence with what cannot be drawn or written.
pub fn write_report(folder: &Path, report: &Report) -> anyhow::Result<()> {
    let page = html::render(report).context("the page cannot be made")?;
    write(folder, "report.html", page.as_bytes())?;
    for (index, chart) in report.charts.iter().enumerate() {
        let name = if index == 0 { "figure".to_owned() } else { format!("figure-{}", index + 1) };
        let picture = svg::render(chart, Width::Page).with_context(|| format!("{name} cannot be drawn"))?;
        write(folder, &format!("{name}.svg"), picture.as_bytes())?;
        let picture = png::render(chart, PNG_SCALE).with_context(|| format!("{name} cannot be drawn"))?;
        write(folder, &format!("{name}.png"), &picture)?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, content)
        .with_context(|| format!("{} cannot be written; choose another folder with --out", path.display()))
}
