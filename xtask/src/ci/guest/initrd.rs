//! The guest's file system: busybox, nvme-cli, mke2fs, the modules, and the program that does the checks.

use super::kernel::Kernel;
use crate::process;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the guest does.
const INIT: &str = include_str!("init.sh");

/// Programs of this machine that the guest uses, with the libraries they need.
const PROGRAMS: &[&str] = &["/usr/sbin/nvme", "/sbin/mke2fs"];

/// Makes it anew: it takes less than a second.
///
/// Errors: a program is missing, or the disk is full.
pub fn make(folder: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("{} could not be removed", root.display()))?;
    }
    place(&root, Path::new("/bin/busybox"))?;
    for program in PROGRAMS {
        place(&root, Path::new(program))?;
        let needed = process::output(Command::new("ldd").arg(program))?;
        for library in libraries(&needed) {
            place(&root, Path::new(library))?;
        }
    }
    let mut list = String::new();
    for module in &kernel.modules {
        let name = module.file_name().context("a module has a name")?;
        copy(module, &root.join("modules.d").join(name))?;
        list += &format!("/modules.d/{}\n", name.to_string_lossy());
    }
    fs::write(root.join("modules"), list)?;
    fs::write(root.join("init"), INIT)?;
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
    let packed = folder.join("initrd");
    let pack =
        format!("cd '{}' && find . | cpio -o -H newc --quiet > '{}'", root.display(), packed.display());
    process::run(Command::new("sh").args(["-c", &pack]))?;
    Ok(packed)
}

/// Paths in what ldd says, each once.
fn libraries(said: &str) -> BTreeSet<&str> {
    said.split_whitespace().filter(|word| word.starts_with('/')).collect()
}

/// A file of this machine at its own place in the guest.
fn place(root: &Path, path: &Path) -> Result<()> {
    let inside = path.strip_prefix("/").context("the path begins at the root")?;
    copy(path, &root.join(inside))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    fs::copy(from, to).map(drop).with_context(|| format!("{} could not be copied", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_paths_ldd_names() {
        let said = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(libraries(said).into_iter().collect::<Vec<_>>(), ["/lib/libc.so.6", "/lib64/ld.so.2"]);
    }

    #[test]
    fn the_guest_waits_for_no_fixed_time() {
        assert!(!INIT.contains(" sleep "), "it waits for what it waits for");
    }
}
