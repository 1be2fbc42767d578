//! The server is killed while fio writes, and fio looks for every flushed write: `experiments/serve-nbd/fio_kill.py`.

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use std::process::Command;

/// Kills in CI (chosen: a few seconds), and with `--long` (as many as the claim is made for).
const ROUNDS: [u32; 2] = [4, 200];

/// Another seed would be as good.
const SEED: u32 = 1;

/// Runs the rounds.
///
/// Errors: a flushed write was missing, or fio has no engine for NBD.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let (program, rounds) = (workspace.program()?, ROUNDS[usize::from(long)]);
    let mut command = Command::new("python3");
    command.arg(workspace.root.join("experiments/serve-nbd/fio_kill.py")).arg(program);
    process::run(command.args([rounds, SEED].map(|number| number.to_string())))
        .context("nothing that was flushed may be missing after a kill")
}
