//! Where the repository and its build directory are, and which files belong to it.
//!
//! Deliberately not here: reading the files; `tidy::tree` does that.

use crate::process;
use anyhow::{Context, Result, ensure};
use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Names a program that is tested instead of the one that is built here.
const PROGRAM: &str = "OCSSD";

/// The repository the command was started in.
pub struct Workspace {
    /// Absolute path of the folder that holds the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's build directory: `CARGO_TARGET_DIR` when set, `target` below the root otherwise.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds the workspace from the manifest cargo was running when it started this program.
    ///
    /// Errors: the folder above that manifest holds no `Cargo.toml`.
    pub fn find() -> Result<Self> {
        // `cargo run` sets the variable; a program started by hand falls back to where it was built.
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("xtask must lie in a folder of the repository")?.to_path_buf();
        ensure!(
            root.join("Cargo.toml").is_file(),
            "expected the workspace's Cargo.toml in {}, found none: start this as `cargo xtask`",
            root.display()
        );
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Ok(Self { root, target })
    }

    /// A `git` command for this repository, also when another user owns the checkout (as in CI containers).
    pub fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.root).args(["-c", "safe.directory=*"]);
        command
    }

    /// A `cargo` command in the root, the same cargo that started this program.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// The program, built as `cargo test --workspace` builds it: libraries get the features that all crates and their tests
    /// ask for together. Built for itself it has fewer of them, and half of all libraries are compiled once more. So this
    /// names the one test that needs the program, which costs nothing where the tests ran before.
    ///
    /// If the variable [`PROGRAM`] is set, it is the program that names, such as a release.
    ///
    /// Errors: it does not compile.
    pub fn program(&self) -> Result<PathBuf> {
        if let Some(program) = env::var_os(PROGRAM) {
            println!("testing {}", Path::new(&program).display());
            return Ok(self.root.join(program));
        }
        process::run(self.cargo().args(["test", "--workspace", "--test", "cli", "--no-run"]))?;
        Ok(self.target.join("debug/ocssd"))
    }

    /// Paths of files git tracks, relative to the root, with `/` between folders.
    pub fn tracked_files(&self) -> Result<BTreeSet<String>> {
        self.list_files(&["--cached"])
    }

    /// Paths of files git tracks or would track: new files count, ignored files do not.
    pub fn own_files(&self) -> Result<BTreeSet<String>> {
        self.list_files(&["--cached", "--others", "--exclude-standard"])
    }

    fn list_files(&self, flags: &[&str]) -> Result<BTreeSet<String>> {
        let mut command = self.git();
        command.args(["ls-files", "-z"]).args(flags);
        let listing = process::output(&mut command)?;
        Ok(listing.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect())
    }
}

/// A path as text with the root taken off, for messages.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
