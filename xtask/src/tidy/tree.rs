//! The files the rules look at: read once, Rust files taken apart once.

use super::rust_source::RustSource;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;

/// All text files of the repository.
pub struct Tree {
    /// Sorted by path.
    pub files: Vec<File>,
}

/// One text file.
pub struct File {
    /// Path from the root, with `/` between folders.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// Whether git tracks it already; new files are checked too.
    pub is_tracked: bool,
    /// The text taken apart, for `.rs` files.
    pub rust: Option<RustSource>,
}

impl Tree {
    /// Reads every file git tracks or would track. Files that are not UTF-8 (pictures, images) are left out.
    ///
    /// Errors: git does not answer, or a file cannot be read. A file deleted but still tracked is left out.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let tracked = workspace.tracked_files()?;
        let mut files = Vec::new();
        for path in workspace.own_files()? {
            let full = workspace.root.join(&path);
            if !full.is_file() {
                continue;
            }
            let bytes = fs::read(&full).with_context(|| format!("{path} could not be read"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                let is_tracked = tracked.contains(&path);
                files.push(File::new(&path, text, is_tracked));
            }
        }
        Ok(Self { files })
    }

    /// A tree from memory, all of it tracked: what the rules' tests look at.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| File::new(path, (*text).to_string(), true)).collect() }
    }

    /// The Rust files with their parts.
    pub fn rust_files(&self) -> impl Iterator<Item = (&File, &RustSource)> {
        self.files.iter().filter_map(|file| file.rust.as_ref().map(|rust| (file, rust)))
    }

    /// The manifests: every file named `Cargo.toml`.
    pub fn manifests(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"))
    }
}

impl File {
    fn new(path: &str, text: String, is_tracked: bool) -> Self {
        let rust = path.ends_with(".rs").then(|| RustSource::new(path, &text));
        Self { path: path.to_string(), text, is_tracked, rust }
    }

    /// Folder name of the crate the file belongs to: `flash` for `crates/flash/src/lib.rs`.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name)
    }

    /// What follows the last dot of the file's name, empty when there is none.
    pub fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// The lines with their numbers from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// The lines of a file in which a rule finds something.
#[cfg(test)]
pub fn lines_found(rule: super::Rule, path: &str, text: &str) -> Vec<usize> {
    let mut findings = Vec::new();
    rule(&Tree::of(&[(path, text)]), &mut findings);
    findings.into_iter().map(|finding| finding.line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_give_crate_and_extension() {
        let cases = [
            ("crates/flash/src/lib.rs", Some("flash"), "rs"),
            ("xtask/src/main.rs", None, "rs"),
            (".ci/run", None, ""),
            ("README.md", None, "md"),
        ];
        for (path, name, extension) in cases {
            let file = File::new(path, String::new(), true);
            assert_eq!((file.crate_name(), file.extension()), (name, extension), "{path}");
        }
    }
}
