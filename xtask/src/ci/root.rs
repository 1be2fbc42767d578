//! The file system of a guest: files of this machine at their own places, and others, packed for a kernel.

use crate::process;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the programs of all guests begin with.
const CHECKS: &str = include_str!("checks.sh");

/// A folder that becomes the guest's root.
pub struct Root(PathBuf);

impl Root {
    /// An empty one, with busybox. Making one takes less than a second.
    ///
    /// Errors: there is no busybox, or the disk is full.
    pub fn new(folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{} could not be removed", folder.display()))?;
        }
        let root = Self(folder);
        root.own(Path::new("/bin/busybox"))?;
        Ok(root)
    }

    /// A program of this machine, with the libraries it needs.
    ///
    /// Errors: it is not there, or needs something that is not.
    pub fn program(&self, path: &str) -> Result<()> {
        self.own(Path::new(path))?;
        let needed = process::output(Command::new("ldd").arg(path))?;
        libraries(&needed).into_iter().try_for_each(|library| self.own(Path::new(library)))
    }

    /// A program that was built here, without what debuggers read, as `/bin/NAME`, with the libraries it needs.
    ///
    /// Errors: it is not there, or there is no `strip`.
    pub fn built_program(&self, path: &Path, name: &str) -> Result<()> {
        let inside = format!("bin/{name}");
        self.copy(path, &inside)?;
        process::run(Command::new("strip").arg("-s").arg(self.0.join(&inside)))?;
        // Of a program that needs none, ldd fails.
        let needed = process::output(Command::new("ldd").arg(path)).unwrap_or_default();
        libraries(&needed).into_iter().try_for_each(|library| self.own(Path::new(library)))
    }

    /// A copy of a file at a place in the guest (without the first `/`).
    ///
    /// Errors: it cannot be read, or the disk is full.
    pub fn copy(&self, from: &Path, inside: &str) -> Result<()> {
        let to = self.0.join(inside);
        let folder = to.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
        fs::copy(from, to).map(drop).with_context(|| format!("{} could not be copied", from.display()))
    }

    /// A text at a place in the guest's first folder.
    ///
    /// Errors: the disk is full.
    pub fn text(&self, inside: &str, text: &str) -> Result<()> {
        fs::write(self.0.join(inside), text).with_context(|| format!("{inside} could not be written"))
    }

    /// Copies of a kernel's modules in `modules.d`; their places in the guest, a line each, in the same order.
    ///
    /// Errors: one is missing, or the disk is full.
    pub fn modules(&self, modules: &[PathBuf]) -> Result<String> {
        let mut list = String::new();
        for module in modules {
            let name = module.file_name().context("a module has a name")?.to_string_lossy();
            self.copy(module, &format!("modules.d/{name}"))?;
            list += &format!("modules.d/{name}\n");
        }
        Ok(list)
    }

    /// The program that the kernel starts; it reads `/checks.sh` first.
    ///
    /// Errors: the disk is full.
    pub fn init(&self, text: &str) -> Result<()> {
        self.text("checks.sh", CHECKS)?;
        self.text("init", text)?;
        Ok(fs::set_permissions(self.0.join("init"), fs::Permissions::from_mode(0o755))?)
    }

    /// Packs it for a kernel; returns `to`.
    ///
    /// Errors: there is no cpio, or the disk is full.
    pub fn pack(&self, to: PathBuf) -> Result<PathBuf> {
        let packing =
            format!("cd '{}' && find . | cpio -o -H newc --quiet > '{}'", self.0.display(), to.display());
        process::run(Command::new("sh").args(["-c", &packing]))?;
        Ok(to)
    }

    /// Makes an ext4 of it, of so many MiB; returns `to`.
    ///
    /// Errors: there is no mke2fs, it does not fit, or the disk is full.
    pub fn file_system(&self, to: PathBuf, mib: u32) -> Result<PathBuf> {
        let mut command = Command::new("/sbin/mke2fs");
        command.args(["-q", "-F", "-t", "ext4", "-E", "root_owner=0:0", "-d"]).arg(&self.0);
        process::run(command.arg(&to).arg(format!("{mib}m")))?;
        Ok(to)
    }

    /// A file of this machine at its own place.
    fn own(&self, path: &Path) -> Result<()> {
        let inside = path.strip_prefix("/").context("the path begins at the root")?;
        self.copy(path, inside.to_str().context("paths of programs are text")?)
    }
}

/// Paths in what ldd says, each once.
fn libraries(said: &str) -> BTreeSet<&str> {
    said.split_whitespace().filter(|word| word.starts_with('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_paths_ldd_names() {
        let said = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(libraries(said).into_iter().collect::<Vec<_>>(), ["/lib/libc.so.6", "/lib64/ld.so.2"]);
    }
}
