//! What came of each mutant, as kept in `experiments/mutants/outcomes-PACKAGE.jsonl`: a line each, in the order of the list.
//!
//! A mutant that does not exist any more is dropped when the file is written next.

use super::{
    FOLDER,
    mutant::{Key, Mutant, PACKAGES},
};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// What came of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A test failed.
    Caught,
    /// The tests did not end within ten times the processor time they take.
    Timeout,
    /// All tests of all judges passed.
    Missed,
    /// It does not compile.
    Unviable,
}

/// The judge that says of a mutant that targets behave differently, and not that anything is wrong.
pub const TRACE: &str = "trace";

/// A verdict and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    pub verdict: Verdict,
    /// The last judge asked.
    pub by: String,
    /// Of the tree when it was judged.
    pub commit: String,
}

impl Judged {
    /// True if a trace found it, and nobody before, who would say what is wrong.
    pub fn is_by_trace(&self) -> bool {
        matches!(self.verdict, Verdict::Caught | Verdict::Timeout) && self.by == TRACE
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    judged: Judged,
}

/// What came of every mutant judged.
#[derive(Default)]
pub struct Outcomes {
    judged: BTreeMap<Key, Judged>,
}

impl Outcomes {
    /// Reads what is kept of the mutants that exist.
    ///
    /// Errors: a file cannot be read, or a line of it cannot be understood.
    pub fn read(workspace: &Workspace, mutants: &[Mutant]) -> Result<Self> {
        let mut outcomes = Self::default();
        for package in PACKAGES {
            let path = path(workspace, package);
            let text = if path.exists() { fs::read_to_string(&path)? } else { String::new() };
            for (index, line) in text.lines().enumerate() {
                let line: Line = serde_json::from_str(line)
                    .with_context(|| format!("line {} of {}", index + 1, path.display()))?;
                outcomes.judged.insert(line.key, line.judged);
            }
        }
        let exists: std::collections::BTreeSet<&Key> = mutants.iter().map(|mutant| &mutant.key).collect();
        outcomes.judged.retain(|key, _| exists.contains(key));
        Ok(outcomes)
    }

    /// What came of a mutant, if it was judged.
    pub fn of(&self, mutant: &Mutant) -> Option<&Judged> {
        self.judged.get(&mutant.key)
    }

    /// Notes what came of a mutant.
    pub fn note(&mut self, mutant: &Mutant, judged: Judged) {
        self.judged.insert(mutant.key.clone(), judged);
    }

    /// Writes all of them.
    ///
    /// Errors: a file cannot be written.
    pub fn write(&self, workspace: &Workspace, mutants: &[Mutant]) -> Result<()> {
        for package in PACKAGES {
            let mut text = String::new();
            for mutant in mutants.iter().filter(|mutant| mutant.package == *package) {
                if let Some(judged) = self.of(mutant) {
                    let line = Line { key: mutant.key.clone(), judged: judged.clone() };
                    text += &serde_json::to_string(&line)?;
                    text.push('\n');
                }
            }
            let path = path(workspace, package);
            fs::create_dir_all(workspace.root.join(FOLDER))?;
            fs::write(&path, text).with_context(|| format!("{} could not be written", path.display()))?;
        }
        Ok(())
    }
}

fn path(workspace: &Workspace, package: &str) -> PathBuf {
    let name = package.trim_start_matches("ocssd-");
    workspace.root.join(FOLDER).join(format!("outcomes-{name}.jsonl"))
}
