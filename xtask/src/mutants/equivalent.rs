//! `experiments/mutants/equivalent.toml`: mutants that no test can find, each with the reason.
//!
//! ```toml
//! [[mutant]]
//! file = "crates/ftl/src/valid_map.rs"
//! mutant = "replace < with <= in ValidMap::fetch"
//! at = "if count < FETCHED_AT_ONCE {"
//! why = "fetching only warms a cache: one turn more or less changes nothing that can be seen"
//! ```

use super::{
    FOLDER,
    mutant::{Key, Mutant},
};
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(flatten)]
    key: Key,
    why: String,
}

/// The mutants listed, as indices of the list of all mutants, with their reasons.
pub struct Equivalents {
    reasons: BTreeMap<usize, String>,
}

impl Equivalents {
    /// Reads the list.
    ///
    /// Errors: it is no such TOML, gives no reason, or names a mutant that does not exist: its code has changed, so the
    /// reason may not hold any more.
    pub fn read(workspace: &Workspace, mutants: &[Mutant]) -> Result<Self> {
        let path = format!("{FOLDER}/equivalent.toml");
        let full = workspace.root.join(&path);
        let text = if full.exists() { fs::read_to_string(full)? } else { String::new() };
        Self::parse(&text, mutants).with_context(|| path)
    }

    fn parse(text: &str, mutants: &[Mutant]) -> Result<Self> {
        let file: File =
            toml::from_str(text).context("expected entries [[mutant]] with file, mutant, at, why")?;
        let mut indices = BTreeMap::new();
        for (index, mutant) in mutants.iter().enumerate() {
            indices.insert(&mutant.key, index);
        }
        let mut reasons = BTreeMap::new();
        // Of packages that are not looked at now nothing is known.
        let folder_of = |file: &str| file.split_inclusive('/').take(2).collect::<String>();
        let folders: BTreeSet<String> = mutants.iter().map(|mutant| folder_of(&mutant.key.file)).collect();
        for Entry { key, why } in file.mutant {
            if !folders.contains(&folder_of(&key.file)) {
                continue;
            }
            let Key { file, mutant, at, nth } = &key;
            ensure!(!why.trim().is_empty(), "`{mutant}` of {file} has no reason");
            let index = indices.get(&key).with_context(|| {
                format!("{file} has no mutant `{mutant}` (number {nth}) at `{at}`: remove it, or see whether it holds")
            })?;
            ensure!(reasons.insert(*index, why).is_none(), "`{mutant}` at `{at}` is listed twice");
        }
        Ok(Self { reasons })
    }

    /// Why a mutant, by its index in the list, cannot be found; `None` if it can.
    pub fn reason(&self, index: usize) -> Option<&str> {
        self.reasons.get(&index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants() -> [Mutant; 2] {
        ["a < b", "c < d"].map(|at| {
            let key = Key {
                file: "crates/f/src/f.rs".into(),
                mutant: "replace < with <= in f".into(),
                at: at.into(),
                nth: 1,
            };
            Mutant::made_up(key, "")
        })
    }

    fn entry(at: &str, more: &str) -> String {
        format!(
            "[[mutant]]\nfile = \"crates/f/src/f.rs\"\nmutant = \"replace < with <= in f\"\nat = \"{at}\"\n{more}\n"
        )
    }

    #[test]
    fn a_mutant_that_exists_is_listed_with_its_reason() {
        let listed = Equivalents::parse(&entry("c < d", "why = \"c is never d\""), &mutants()).unwrap();
        assert_eq!((listed.reason(0), listed.reason(1)), (None, Some("c is never d")));
        let other = entry("x < y", "why = \"x\"").replace("crates/f/", "crates/g/");
        let listed = Equivalents::parse(&other, &mutants()).unwrap();
        assert_eq!((listed.reason(0), listed.reason(1)), (None, None), "mutants of `g` were not listed");
    }

    #[test]
    fn what_does_not_exist_has_no_reason_or_is_listed_twice_is_refused() {
        let good = entry("a < b", "why = \"a\"");
        let cases = [
            (entry("x < y", "why = \"a\""), "no mutant"),
            (entry("a < b", "why = \"a\"\nnth = 2"), "number 2"),
            (entry("a < b", "why = \" \""), "has no reason"),
            (good.clone() + &good, "twice"),
            (entry("a < b", ""), "expected entries"),
        ];
        for (text, part) in cases {
            let error = format!("{:#}", Equivalents::parse(&text, &mutants()).err().expect(part));
            assert!(error.contains(part), "{error}");
        }
    }
}
