//! What the kernel begins with: busybox, the modules, and a program that goes on from the disk.

use super::kernel::Kernel;
use crate::ci::root::Root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Loads the modules and finds the disk.
const BOOT: &str = include_str!("boot.sh");

/// Makes it anew: it takes less than a second.
///
/// Errors: a program is missing, or the disk is full.
pub fn make(folder: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let root = Root::new(folder.join("initrd.root"))?;
    let mut list = String::new();
    for module in &kernel.modules {
        let name = module.file_name().context("a module has a name")?.to_string_lossy();
        root.copy(module, &format!("modules.d/{name}"))?;
        list += &format!("modules.d/{name}\n");
    }
    root.text("modules", &list)?;
    root.init(BOOT)?;
    root.pack(folder.join("initrd"))
}
