//! A mutant, and what it is called from one commit to the next.
//!
//! cargo-mutants names a mutant by line and column, which change with every line above. Here it is known by its file, what is
//! done where, and the text of its line; where several are alike, by their number among them. So what is known of a mutant
//! stays until its line or its function's name changes.

use super::{copy::Copy, tool::TOOL, woven::change::Change};
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

/// Packages that get mutants.
pub const PACKAGES: &[&str] = &["ocssd-ftl", "ocssd-targets"];

/// Bugs planted on purpose, which only the simulator's own tests compile in: mutants of them are never run.
const LEFT_OUT: &str = "crates/targets/src/pblk/canary.rs";

/// What a mutant is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// From the root.
    pub file: String,
    /// What is done in which function, in the words of cargo-mutants.
    pub mutant: String,
    /// The line it begins in, without the space around it.
    pub at: String,
    /// Which of those that are alike, from 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub nth: u32,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(nth: &u32) -> bool {
    *nth == 1
}

/// A mutant of the tree as it is.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub key: Key,
    /// What cargo-mutants calls it now, with line and column.
    pub name: String,
    pub package: String,
    /// What it changes.
    pub change: Change,
}

impl Key {
    /// Names of its modules, without the crate's.
    pub fn module_words(&self) -> Vec<&str> {
        let path = self.file.trim_end_matches(".rs").split('/').skip(2);
        path.filter(|part| !matches!(*part, "src" | "mod")).collect()
    }
}

impl Mutant {
    /// The row of the table it belongs to: crate, and at most two levels of modules, as `targets/pblk/mount`.
    pub fn module(&self) -> String {
        let path = self.key.file.trim_start_matches("crates/").trim_end_matches(".rs");
        let parts = path.split('/').filter(|part| !matches!(*part, "src" | "mod"));
        parts.take(3).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
impl Mutant {
    /// One of a file that does not exist.
    pub fn made_up(key: Key, name: &str) -> Self {
        use super::woven::change::{Genre, Position, Span};
        let at = Position { line: 1, column: 1 };
        let change = Change {
            genre: Genre::BinaryOperator,
            span: Span { start: at, end: at },
            replacement: String::new(),
        };
        Self { key, name: name.to_owned(), package: String::new(), change }
    }
}

/// One mutant as cargo-mutants lists it.
#[derive(Serialize, Deserialize)]
struct Listed {
    name: String,
    package: String,
    file: String,
    #[serde(flatten)]
    change: Change,
}

/// All mutants of packages in the copy, in the order of packages, files and lines.
///
/// Errors: cargo-mutants fails, or lists what cannot be understood.
pub fn list(workspace: &Workspace, copy: &Copy, packages: &[&str]) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for package in packages {
        let listed = listed(workspace, copy, package)?;
        let read = |file: &str| fs::read_to_string(copy.root.join(file)).context("a mutant has a file");
        mutants.extend(with_keys(listed, read)?);
    }
    Ok(mutants)
}

/// The list of a package. It takes a while to make, so it is kept with a number that stands for the sources it is about.
fn listed(workspace: &Workspace, copy: &Copy, package: &str) -> Result<Vec<Listed>> {
    let folder = copy.root.join("crates").join(package.trim_start_matches("ocssd-")).join("src");
    let mut hasher = DefaultHasher::new();
    (TOOL.version, LEFT_OUT).hash(&mut hasher);
    hash_files(&folder, &mut hasher).context("the sources could not be read")?;
    let kept = copy.root.with_file_name(format!("{package}-{:016x}.json", hasher.finish()));
    if let Ok(text) = fs::read_to_string(&kept)
        && let Ok(listed) = serde_json::from_str(&text)
    {
        return Ok(listed);
    }
    let mut command = copy.prepare(TOOL.command(workspace));
    command.args(["--list", "--json", "--no-config", "--exclude", LEFT_OUT, "--package", package]);
    let text = process::output(&mut command)?;
    let listed: Vec<Listed> = serde_json::from_str(&text).context("cargo-mutants listed no JSON")?;
    fs::write(&kept, serde_json::to_string(&listed)?).context("the list could not be kept")?;
    Ok(listed)
}

fn hash_files(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_files(&path, hasher)?;
        } else {
            (&path, fs::read(&path)?).hash(hasher);
        }
    }
    Ok(())
}

fn with_keys(listed: Vec<Listed>, read: impl Fn(&str) -> Result<String>) -> Result<Vec<Mutant>> {
    let (mut texts, mut seen) = (BTreeMap::new(), BTreeMap::<Key, u32>::new());
    let mut mutants = Vec::new();
    for Listed { name, package, file, change } in listed {
        if !texts.contains_key(&file) {
            texts.insert(file.clone(), read(&file)?);
        }
        let line = texts[&file].lines().nth(change.span.start.line - 1).context("a mutant lies in a line")?;
        // The name begins with `file:line:column: `.
        let mutant = name.split_once(": ").context("a mutant's name has a place")?.1.to_owned();
        let mut key = Key { file, mutant, at: line.trim().to_owned(), nth: 1 };
        let alike = seen.entry(key.clone()).or_default();
        *alike += 1;
        key.nth = *alike;
        mutants.push(Mutant { key, name, package, change });
    }
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::woven::change::{Genre, Position, Span};

    fn change(line: usize, column: usize) -> Change {
        let span = Span { start: Position { line, column }, end: Position { line, column: column + 1 } };
        Change { genre: Genre::BinaryOperator, span, replacement: String::new() }
    }

    #[test]
    fn mutants_are_told_apart_without_line_and_column() {
        let listed = [(2, 7, "< with <="), (2, 12, "< with <="), (2, 7, "< with >"), (3, 1, "< with <=")];
        let listed = listed.map(|(line, column, what)| Listed {
            name: format!("crates/ftl/src/a/b.rs:{line}:{column}: replace {what} in f"),
            package: "ocssd-ftl".to_owned(),
            file: "crates/ftl/src/a/b.rs".to_owned(),
            change: change(line, column),
        });
        let text = |_: &str| Ok("fn f() {\n    a < b < c;\nx < y\n".to_owned());
        let mutants = with_keys(listed.into(), text).unwrap();
        let keys: Vec<_> =
            mutants.iter().map(|m| (m.key.mutant.as_str(), m.key.at.as_str(), m.key.nth)).collect();
        let (le, gt) = ("replace < with <= in f", "replace < with > in f");
        assert_eq!(
            keys,
            [(le, "a < b < c;", 1), (le, "a < b < c;", 2), (gt, "a < b < c;", 1), (le, "x < y", 1)]
        );
        assert_eq!(mutants[0].module(), "ftl/a/b");
    }

    #[test]
    fn a_module_has_at_most_two_levels() {
        for (file, module) in [
            ("crates/ftl/src/l2p.rs", "ftl/l2p"),
            ("crates/targets/src/pblk/mount/mod.rs", "targets/pblk/mount"),
            ("crates/targets/src/pblk/mount/load.rs", "targets/pblk/mount"),
            ("crates/targets/src/pblk/mod.rs", "targets/pblk"),
        ] {
            let key = Key { file: file.to_owned(), mutant: String::new(), at: String::new(), nth: 1 };
            assert_eq!(Mutant::made_up(key, "").module(), module);
        }
    }
}
