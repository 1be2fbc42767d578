//! The guest's file system: busybox, nvme-cli, mke2fs, the modules, and the program that does the checks.

use super::kernel::Kernel;
use crate::ci::root::Root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What the guest does.
const INIT: &str = include_str!("init.sh");

/// Programs of this machine that the guest uses, with the libraries they need.
const PROGRAMS: &[&str] = &["/usr/sbin/nvme", "/sbin/mke2fs"];

/// Makes it anew: it takes less than a second.
///
/// Errors: a program is missing, or the disk is full.
pub fn make(folder: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let root = Root::new(folder.join("root"))?;
    PROGRAMS.iter().try_for_each(|program| root.program(program))?;
    let mut list = String::new();
    for module in &kernel.modules {
        let name = module.file_name().context("a module has a name")?.to_string_lossy();
        root.copy(module, &format!("modules.d/{name}"))?;
        list += &format!("/modules.d/{name}\n");
    }
    root.text("modules", &list)?;
    root.init(INIT)?;
    root.pack(folder.join("initrd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_waits_for_no_fixed_time() {
        assert!(!INIT.contains(" sleep "), "it waits for what it waits for");
    }
}
