//! Subcommands of cargo from crates.io, each installed once, in the build directory.
//!
//! One is installed again when another version is wanted. Deliberately not here: what they are for, and why in that version.

use crate::{
    process,
    workspace::{Workspace, shown},
};
use anyhow::{Context, Result, ensure};
use std::{fs, path::PathBuf, process::Command};

/// A subcommand, by its package.
pub struct Subcommand {
    /// The package and its program: `cargo-` and the subcommand.
    pub package: &'static str,
    /// The version, in full.
    pub version: &'static str,
}

impl Subcommand {
    /// Installs the program unless it is there in the right version.
    ///
    /// Errors: crates.io cannot be reached, or the program does not compile or start.
    pub fn ensure_installed(&self, workspace: &Workspace) -> Result<()> {
        let Self { package, version } = self;
        let folder = self.folder(workspace);
        if !self.is_installed(workspace) {
            println!("installing {package} {version} in {}", shown(&workspace.root, &folder));
            let mut install = workspace.cargo();
            // Unoptimised: it waits for cargo nearly all the time, and compiles three times as fast.
            install.args(["install", package, "--version", version, "--locked", "--debug", "--quiet"]);
            install.arg("--root").arg(&folder).env("CARGO_TARGET_DIR", folder.join("build"));
            process::run(&mut install)
                .with_context(|| format!("{package} could not be installed from crates.io"))?;
            fs::remove_dir_all(folder.join("build"))
                .with_context(|| format!("what {package} was built from could not be removed"))?;
        }
        let program = self.program(workspace);
        ensure!(self.is_installed(workspace), "{} does not start", program.display());
        println!("found: {package} {version} at {}", shown(&workspace.root, &program));
        Ok(())
    }

    /// A command that starts it, as cargo would.
    pub fn command(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(self.program(workspace));
        command.arg(self.package.strip_prefix("cargo-").expect("packages of subcommands are named by them"));
        command
    }

    fn is_installed(&self, workspace: &Workspace) -> bool {
        let output = self.command(workspace).arg("--version").output();
        output.is_ok_and(|output| output.stdout == format!("{} {}\n", self.package, self.version).as_bytes())
    }

    fn folder(&self, workspace: &Workspace) -> PathBuf {
        workspace.target.join(self.package)
    }

    fn program(&self, workspace: &Workspace) -> PathBuf {
        self.folder(workspace).join("bin").join(self.package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Subcommand = Subcommand { package: "cargo-one", version: "1.2.3" };

    /// A workspace in which `cargo-one` is a script that says this of its version.
    fn with_script(name: &str, said: &str) -> Workspace {
        let root = std::env::temp_dir().join(format!("ocssd-subcommand-{name}-{}", std::process::id()));
        let workspace = Workspace { target: root.join("target"), root };
        let program = ONE.program(&workspace);
        fs::create_dir_all(program.parent().expect("a folder")).expect("the temporary folder takes files");
        // Written by another process: what this one has open for writing, a child of another test may hold, and nobody may run.
        let write = "printf '#!/bin/sh\\n[ \"$1 $2\" = \"one --version\" ] && echo \"%s\"\\n' \"$2\" > \"$1\"; chmod +x \"$1\"";
        let mut shell = Command::new("sh");
        process::run(shell.args(["-c", write, "sh"]).arg(&program).arg(said)).expect("a new file");
        workspace
    }

    #[test]
    fn it_is_installed_in_the_version_that_is_wanted_only() {
        for (name, said, is_wanted) in
            [("right", "cargo-one 1.2.3", true), ("older", "cargo-one 1.2.2", false), ("silent", "", false)]
        {
            let workspace = with_script(name, said);
            assert_eq!(ONE.is_installed(&workspace), is_wanted, "{name}");
            fs::remove_dir_all(&workspace.root).expect("it was made here");
        }
    }
}
