//! Clients of a served target that is killed, and porcupine, which looks for an order of transactions that explains what they
//! were told: `xtask/histories`, in Go, because porcupine is.
//!
//! Deliberately not here: power cuts, which leave less of what was written than a kill does (`ocssd simulate`).

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use std::process::Command;

/// Histories of each target in CI (chosen: seconds), and with `--long` (minutes).
const HISTORIES: [u32; 2] = [3, 300];

/// Another seed would be as good.
const SEED: u32 = 1;

/// Whose histories are judged: `ox-block` by NBD, `kv` by Redis' protocol.
const TARGETS: [&str; 2] = ["ox-block", "kv"];

/// Records and judges histories.
///
/// Errors: one is illegal, one that is torn on purpose is not, or Go or porcupine is not there.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let (program, histories) = (workspace.program()?, HISTORIES[usize::from(long)]);
    for target in TARGETS {
        let mut go = Command::new("go");
        go.current_dir(workspace.root.join("xtask/histories")).args(["run", "."]).arg(&program).arg(target);
        process::run(go.args([histories, SEED].map(|number| number.to_string()))).with_context(|| {
            format!(
                "every transaction of a served {target} is whole or absent, and there once it is answered"
            )
        })?;
    }
    Ok(())
}
