//! What the documentation says compiles for other systems is compiled for them: nothing is linked or run.

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use std::process::Command;

/// The systems of `crates/measure/src/storage/system/`, by the compiler's names.
const TARGETS: [&str; 3] = ["x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-pc-windows-gnu"];
/// The crate that measures real files, with all it stands on.
const PACKAGE: &str = "ocssd-measure";

/// Checks the crate for each.
///
/// Errors: the compiler has no standard library for a target and rustup gives none, or something does not compile.
pub fn run(workspace: &Workspace) -> Result<()> {
    for target in TARGETS {
        process::run(Command::new("rustup").args(["target", "add", target])).with_context(|| {
            format!("the standard library for {target} is missing: `rustup target add {target}`")
        })?;
        process::run(workspace.cargo().args(["check", "-p", PACKAGE, "--target", target]))?;
    }
    Ok(())
}
