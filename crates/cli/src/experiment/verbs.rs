//! `ocssd experiment list`, `run`, `report` and `claims`.

use super::catalogue::{self, Experiment};
use super::claims;
use super::compare::Comparison;
use super::data::Data;
use super::keep::{self, Provenance};
use super::lab::{Lab, Size};
use crate::args::ExperimentVerb;
use crate::interrupt::{Interrupt, Interrupted};
use crate::{Outcome, table};
use anyhow::Context;
use ocssd_report::{PaperTable, Report};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Most rows of a table shown on a terminal (chosen: a screenful); the page has all.
const ROWS_MAX: usize = 30;

/// Carries out the verb.
pub fn experiment(verb: ExperimentVerb, as_json: bool) -> anyhow::Result<Outcome> {
    match verb {
        ExperimentVerb::List => list(as_json),
        ExperimentVerb::Run { id, small, seed, out, quiet } => {
            let experiment = catalogue::find(&id)?;
            let folder = folder(out, experiment);
            let size = if small { Size::Small } else { Size::Full };
            let mut lab = Lab::new(size, seed, quiet);
            let interrupt = Interrupt::listen()?;
            let (data, interrupted) = match (experiment.run)(&mut lab) {
                Ok(data) => (data, None),
                Err(error) if error.chain().any(|cause| cause.is::<Interrupted>()) => {
                    interrupt.say(quiet);
                    let (data, how) = lab.so_far();
                    (data, Some(how))
                }
                Err(error) => return Err(error.context(format!("experiment {}", experiment.id))),
            };
            let provenance = Provenance {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seed,
                command: command(experiment, size, seed),
                is_small: small,
                interrupted,
                seconds: lab.took().as_secs_f64(),
            };
            if provenance.interrupted.is_some() {
                return keep_part(experiment, &data, &provenance, &folder, as_json);
            }
            keep::write_run(&folder, &data.to_csv(), &provenance)?;
            let ours = data.to_table().context("rows of this run")?;
            present(experiment, ours, &provenance, &folder, as_json)?;
        }
        ExperimentVerb::Claims { folder, write } => claims::claims(&folder, write.as_deref())?,
        ExperimentVerb::Report { id, out } => {
            let experiment = catalogue::find(&id)?;
            let folder = folder(out, experiment);
            let (ours, provenance) = keep::read_run(&folder, experiment)?;
            present(experiment, ours, &provenance, &folder, as_json)?;
        }
    }
    Ok(Outcome::Good)
}

/// Keeps what an interrupted run has, beside what whole runs have: those stay as they are.
fn keep_part(
    experiment: &Experiment,
    data: &Data,
    provenance: &Provenance,
    folder: &Path,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let folder = folder.join("interrupted");
    let how = provenance.interrupted.as_deref().unwrap_or_default();
    let place = if data.is_empty() {
        "nothing was measured yet, and nothing is kept".to_owned()
    } else {
        keep::write_run(&folder, &data.to_csv(), provenance)?;
        format!(
            "the rows until then are in {}; `ocssd experiment report {} --out {}` shows them",
            folder.display(),
            experiment.id,
            folder.display()
        )
    };
    if as_json {
        let kept = (!data.is_empty()).then_some(&folder);
        table::print_json(
            &json!({ "id": experiment.id, "verdict": "interrupted", "how": how, "folder": kept }),
        );
    } else {
        table::line(&format!("verdict: {how}: {place}"));
    }
    Ok(Outcome::Interrupted)
}

fn folder(out: Option<PathBuf>, experiment: &Experiment) -> PathBuf {
    out.unwrap_or_else(|| PathBuf::from("ocssd-results/experiments").join(experiment.id))
}

fn command(experiment: &Experiment, size: Size, seed: u64) -> String {
    let small = size.pick(" --small", "");
    format!("ocssd experiment run {}{small} --seed {seed}", experiment.id)
}

fn list(as_json: bool) {
    if as_json {
        let list: Vec<_> = catalogue::ALL
            .iter()
            .map(|one| json!({ "id": one.id, "aliases": one.aliases, "title": one.title, "source": one.source }))
            .collect();
        table::print_json(&json!(list));
        return;
    }
    let row = |one: &Experiment| {
        let mut id = one.id.to_owned();
        one.aliases.iter().for_each(|alias| id += &format!(" ({alias})"));
        vec![id, one.title.to_owned(), one.source.to_owned()]
    };
    let rows: Vec<Vec<String>> = catalogue::ALL.iter().map(row).collect();
    table::print_folded(&["experiment", "what it shows", "source"], &rows);
}

fn present(
    experiment: &Experiment,
    ours: PaperTable,
    provenance: &Provenance,
    folder: &Path,
    as_json: bool,
) -> anyhow::Result<()> {
    let (report, comparison) = keep::make_report(experiment, ours, provenance)?;
    keep::write_report(folder, &report)?;
    if as_json {
        let verdicts: Vec<_> = report
            .verdicts
            .iter()
            .map(|one| {
                json!({ "id": one.id, "claim": one.claim, "outcome": one.outcome.word(), "sentence": one.sentence })
            })
            .collect();
        table::print_json(&json!({ "id": report.id, "folder": folder, "verdicts": verdicts,
            "compared": comparison.compared, "off": comparison.off, "deviation": comparison.sentence() }));
        return Ok(());
    }
    print(&report, &comparison, folder);
    Ok(())
}

/// The table of claims, what is off and why, and where the files are.
fn print(report: &Report, comparison: &Comparison, folder: &Path) {
    table::line(&format!("{}: {}\n\n{}\n", report.id, report.title, report.opening.text));
    let verdicts: Vec<Vec<String>> = report
        .verdicts
        .iter()
        .map(|one| vec![one.id.clone(), one.outcome.word().to_owned(), one.sentence.clone()])
        .collect();
    table::print(&["claim", "verdict", "by these numbers"], &verdicts);
    table::line(&format!("\n{}.", comparison.sentence()));
    for shown in &report.tables {
        table::line(&format!("\n{}", shown.title));
        let columns: Vec<&str> = shown.columns.iter().map(String::as_str).collect();
        let rows = &shown.rows[..shown.rows.len().min(ROWS_MAX)];
        table::print(&columns, rows);
        if rows.len() < shown.rows.len() {
            table::line(&format!("and {} more on the page", shown.rows.len() - rows.len()));
        }
    }
    table::line(&format!("\nRows, page and pictures: {}", folder.display()));
}
