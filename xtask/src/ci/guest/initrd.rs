//! What the kernel begins with: busybox, the modules, and a program that goes on from the disk.

use super::kernel::Kernel;
use crate::ci::root::Root;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Loads the modules and finds the disk.
const BOOT: &str = include_str!("boot.sh");

/// Makes it anew: it takes less than a second.
///
/// Errors: a program is missing, or the disk is full.
pub fn make(folder: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let root = Root::new(folder.join("initrd.root"))?;
    root.text("modules", &root.modules(&kernel.modules)?)?;
    root.init(BOOT)?;
    root.pack(folder.join("initrd"))
}
