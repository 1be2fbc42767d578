//! Rules held against evidence.

use super::evidence::{Cell, Evidence};
use super::judgement::{Judgement, Severity};
use super::rule::{Case, Rule};
use super::settings::{Selection, Settings};

/// What one rule said of one cell.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The rule.
    pub rule: &'static Rule,
    /// Index of the file.
    pub file: usize,
    /// Index of the cell in the file.
    pub cell: usize,
    /// What it said.
    pub judgement: Judgement,
}

/// What all rules said.
#[derive(Clone, Debug)]
pub struct Report {
    /// By rule, then file, then cell; every selected rule has one entry for each cell.
    pub judged: Vec<Judged>,
}

/// Holds the selected rules against results; some rules compare cells across `files`. Cost: cells squared.
///
/// # Panics
/// If a rule finds something worse than it says it can.
#[must_use]
pub fn lint(files: &[Evidence], settings: &Settings, selection: &Selection) -> Report {
    let case = Case::new(files, settings);
    let mut judged = Vec::new();
    for rule in selection.iter() {
        for (file, evidence) in files.iter().enumerate() {
            for (cell, one) in evidence.cells.iter().enumerate() {
                let judgement = (rule.judge)(&case, evidence, one);
                if let Judgement::Finding(severity, sentence) = &judgement {
                    assert!(
                        *severity <= rule.severity,
                        "{} is at most {}: {sentence}",
                        rule.id,
                        rule.severity
                    );
                }
                judged.push(Judged { rule, file, cell, judgement });
            }
        }
    }
    Report { judged }
}

impl Report {
    /// The findings, with what they say.
    pub fn findings(&self) -> impl Iterator<Item = (&Judged, Severity, &str)> {
        self.judged.iter().filter_map(|one| match &one.judgement {
            Judgement::Finding(severity, sentence) => Some((one, *severity, sentence.as_str())),
            _ => None,
        })
    }

    /// The worst severity found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings().map(|(_, severity, _)| severity).max()
    }

    /// Findings of exactly this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings().filter(|(_, found, _)| *found == severity).count()
    }

    /// The cell a judgement is about.
    ///
    /// # Panics
    /// If `files` are not those the report was made of.
    #[must_use]
    pub fn cell<'a>(&self, files: &'a [Evidence], judged: &Judged) -> &'a Cell {
        &files[judged.file].cells[judged.cell]
    }
}
