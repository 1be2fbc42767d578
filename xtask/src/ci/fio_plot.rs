//! fio-plot, the program that draws fio's results, in a Python environment of its own.
//!
//! Tests give it our result files: what draws fio's must draw ours. The environment lies in the build directory,
//! is made once, and is made anew when it does not work or holds another version.

use crate::{
    process,
    workspace::{Workspace, shown},
};
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Environment variable in which the tests find the program.
pub const VARIABLE: &str = "OCSSD_FIO_PLOT";

/// The version the tests were written against; the newest on PyPI when they were.
const VERSION: &str = "1.1.21";

/// Pythons to build the environment from: the first in the path, then Debian's own.
const PYTHONS: &[&str] = &["python3", "/usr/bin/python3"];

/// The program, when its environment is there, works and has the right version.
pub fn installed(workspace: &Workspace) -> Option<PathBuf> {
    let folder = folder(workspace);
    let program = folder.join("bin/fio-plot");
    let version = format!("import importlib.metadata as m; assert m.version('fio-plot') == '{VERSION}'");
    let is_version = process::succeeds(Command::new(folder.join("bin/python")).args(["-c", &version]));
    (is_version && process::succeeds(Command::new(&program).arg("--help"))).then_some(program)
}

/// Makes the environment unless it is there and works.
///
/// Errors: no Python can make one, or PyPI cannot be reached.
pub fn ensure_installed(workspace: &Workspace) -> Result<()> {
    let folder = folder(workspace);
    if installed(workspace).is_none() {
        println!("preparing fio-plot {VERSION} in {}", shown(&workspace.root, &folder));
        make_environment(&folder)?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        process::run(pip.arg(format!("fio-plot=={VERSION}")))
            .context("fio-plot could not be installed from PyPI: check the network, or set PIP_INDEX_URL")?;
    }
    let program = installed(workspace)
        .with_context(|| format!("{} does not start: remove that folder and try again", folder.display()))?;
    println!("found: fio-plot {VERSION} at {}", shown(&workspace.root, &program));
    Ok(())
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("fio-plot")
}

fn make_environment(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{} could not be removed", folder.display()))?;
    }
    let make =
        |python: &&str| process::succeeds(Command::new(python).args(["-m", "venv", "--clear"]).arg(folder));
    let has_pip =
        || process::succeeds(Command::new(folder.join("bin/python")).args(["-m", "pip", "--version"]));
    let is_made = PYTHONS.iter().any(|python| make(python) && has_pip());
    ensure!(
        is_made,
        "neither of {PYTHONS:?} could make an environment: try `{} -m venv {}`",
        PYTHONS[1],
        folder.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_is_not_there_is_not_installed() {
        let root = std::env::temp_dir().join("ocssd-no-such-folder");
        assert_eq!(installed(&Workspace { target: root.join("target"), root }), None);
    }
}
