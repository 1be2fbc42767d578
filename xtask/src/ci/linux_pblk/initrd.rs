//! The guest's file system: busybox, fio, the programs of ext4, our own for LightNVM, and the one that does the checks.

use crate::ci::root::Root;
use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the guest does.
const INIT: &str = include_str!("init.sh");

/// What it does before its power is cut.
const CUT: &str = include_str!("cut.sh");

/// Makes and removes targets of LightNVM.
const LNVMCTL: &str = include_str!("lnvmctl.c");

/// Programs of this machine that the guest uses, with the libraries they need.
const PROGRAMS: &[&str] = &["/usr/bin/fio", "/sbin/mke2fs", "/sbin/e2fsck"];

/// Makes it anew: it takes a few seconds.
///
/// Errors: a program is missing, the C compiler refuses ours, or the disk is full.
pub fn make(folder: &Path) -> Result<PathBuf> {
    let root = Root::new(folder.join("root"))?;
    PROGRAMS.iter().try_for_each(|program| root.program(program))?;
    let (source, program) = (folder.join("lnvmctl.c"), folder.join("lnvmctl"));
    fs::write(&source, LNVMCTL).with_context(|| format!("{} could not be written", source.display()))?;
    let mut compile = Command::new("gcc");
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-static", "-o"]);
    process::run(compile.arg(&program).arg(&source))?;
    root.copy(&program, "sbin/lnvmctl")?;
    root.text("cut.sh", CUT)?;
    root.text("turn.sh", super::turns::TURN)?;
    root.init(INIT)?;
    root.pack(folder.join("initrd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_waits_for_no_fixed_time() {
        for text in [INIT, CUT, super::super::turns::TURN] {
            assert!(!text.contains(" sleep "), "it waits for what it waits for");
        }
    }
}
