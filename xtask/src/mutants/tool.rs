//! cargo-mutants, the program that makes mutants and runs tests on them, in the build directory.
//!
//! It is installed once from crates.io, and again when another version is wanted. Chosen because it needs neither a change of
//! the code nor a nightly compiler, and is kept: it was first released in 2021 and last this year. What it generates, tests and
//! cannot do is told at <https://mutants.rs>.

use crate::{
    process,
    workspace::{Workspace, shown},
};
use anyhow::{Context, Result, ensure};
use std::{path::PathBuf, process::Command};

/// The version whose list of mutants `experiments/mutants` is about: another may make others.
pub const VERSION: &str = "27.1.0";

/// Installs the program unless it is there in the right version.
///
/// Errors: crates.io cannot be reached, or the program does not compile.
pub fn ensure_installed(workspace: &Workspace) -> Result<()> {
    if !is_installed(workspace) {
        println!("installing cargo-mutants {VERSION} in {}", shown(&workspace.root, &folder(workspace)));
        let mut install = workspace.cargo();
        // Unoptimised: it waits for cargo nearly all the time, and compiles three times as fast.
        install.args(["install", "cargo-mutants", "--version", VERSION, "--locked", "--debug", "--quiet"]);
        install.arg("--root").arg(folder(workspace)).env("CARGO_TARGET_DIR", folder(workspace).join("build"));
        process::run(&mut install).context("cargo-mutants could not be installed from crates.io")?;
        std::fs::remove_dir_all(folder(workspace).join("build"))
            .context("what cargo-mutants was built from could not be removed")?;
    }
    ensure!(is_installed(workspace), "{} does not start", program(workspace).display());
    println!("found: cargo-mutants {VERSION} at {}", shown(&workspace.root, &program(workspace)));
    Ok(())
}

/// A command that starts it, as cargo would.
pub fn command(workspace: &Workspace) -> Command {
    let mut command = Command::new(program(workspace));
    command.arg("mutants");
    command
}

fn is_installed(workspace: &Workspace) -> bool {
    let output = command(workspace).arg("--version").output();
    output.is_ok_and(|output| output.stdout == format!("cargo-mutants {VERSION}\n").as_bytes())
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("cargo-mutants")
}

fn program(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("bin/cargo-mutants")
}
