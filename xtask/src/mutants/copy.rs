//! A copy of the repository, in which mutants are made: the tree a person works on never holds one.
//!
//! It is kept, and only files that differ are written, so that cargo compiles little anew. Its build directory is kept too,
//! and is not the project's: paths differ, so nothing could be shared.

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// Folders that no test of `ftl`, `targets` or `sim` looks into.
const LEFT_OUT: &[&str] = &["experiments/", "docs/"];

/// The copy.
pub struct Copy {
    /// Its root.
    pub root: PathBuf,
    /// Where cargo builds it.
    pub build: PathBuf,
    /// Locked as long as this lives: two at a time would judge each other's mutants.
    lock: File,
}

impl Drop for Copy {
    /// Unlocks in words: a program that another thread is starting has the file too until it runs, and would keep the lock.
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            eprintln!("the copy's lock is left: {error}");
        }
    }
}

impl Copy {
    /// Makes the copy what the repository is, new files included.
    ///
    /// Errors: somebody else works in the copy, git does not answer, or a file cannot be read or written.
    pub fn refresh(workspace: &Workspace) -> Result<Self> {
        Self::refresh_with(workspace, "tree", &BTreeMap::new())
    }

    /// As [`Self::refresh`], of the copy with a name, where some files have another text.
    pub fn refresh_with(workspace: &Workspace, name: &str, texts: &BTreeMap<String, String>) -> Result<Self> {
        let folder = workspace.target.join("mutants");
        fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
        let lock =
            File::create(folder.join(format!("{name}.lock"))).context("the copy's lock could not be made")?;
        lock.try_lock()
            .context("another `cargo xtask mutants` is at work here: wait until it ends, or end it")?;
        let copy = Self { root: folder.join(name), build: folder.join(format!("{name}-build")), lock };
        let is_wanted = |path: &String| !LEFT_OUT.iter().any(|folder| path.starts_with(folder));
        let mut files: BTreeSet<String> = workspace.own_files()?.into_iter().filter(is_wanted).collect();
        files.retain(|path| workspace.root.join(path).is_file());
        files.extend(texts.keys().cloned());
        for path in &files {
            let bytes = match texts.get(path) {
                Some(text) => Ok(text.clone().into_bytes()),
                None => fs::read(workspace.root.join(path)),
            };
            bytes
                .map_err(anyhow::Error::from)
                .and_then(|bytes| write_if_other(&bytes, &copy.root.join(path)))
                .with_context(|| format!("{path} could not be copied"))?;
        }
        let is_gone = |path: &str| !files.contains(path);
        remove_others(&copy.root, &copy.root, &is_gone).context("old files could not be removed")?;
        Ok(copy)
    }

    /// A command that works in the copy. Settings of profiles that only cost time are off.
    pub fn prepare(&self, mut command: Command) -> Command {
        command
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.build)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "1");
        command
    }
}

/// Cargo compiles what was written last, so what is the same must not be written.
fn write_if_other(bytes: &[u8], to: &Path) -> Result<()> {
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    fs::write(to, bytes)?;
    Ok(())
}

fn remove_others(root: &Path, folder: &Path, is_gone: &impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(root, &path, is_gone)?;
        } else if is_gone(&path.strip_prefix(root)?.to_string_lossy()) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_what_is_there_and_nothing_else_and_leaves_alone_what_is_the_same() {
        let root = std::env::temp_dir().join(format!("ocssd-mutants-copy-{}", std::process::id()));
        let workspace = Workspace { target: root.join("target"), root: root.clone() };
        fs::create_dir_all(root.join("src")).unwrap();
        assert!(workspace.git().args(["init", "--quiet"]).status().unwrap().success());
        fs::write(root.join(".gitignore"), "/target\n").unwrap();
        fs::write(root.join("src/a.rs"), "a").unwrap();
        fs::write(root.join("src/b.rs"), "b").unwrap();
        let copy = Copy::refresh(&workspace).unwrap();
        let written = || fs::metadata(copy.root.join("src/a.rs")).unwrap().modified().unwrap();
        let refused = Copy::refresh(&workspace).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|error| error.contains("another")), "the copy is in use");
        let (tree, before) = (copy.root.clone(), written());
        drop(copy);
        fs::remove_file(root.join("src/b.rs")).unwrap();
        fs::write(root.join("src/c.rs"), "c").unwrap();
        Copy::refresh(&workspace).unwrap();
        assert!(!tree.join("src/b.rs").exists());
        assert_eq!(fs::read(tree.join("src/c.rs")).unwrap(), b"c");
        assert_eq!(fs::metadata(tree.join("src/a.rs")).unwrap().modified().unwrap(), before);
        fs::remove_dir_all(root).unwrap();
    }
}
