//! A QEMU that is a client of vfio-user: only newer ones are, so it comes from Debian's backports.
//!
//! Its packages are unpacked, not installed; it runs with its own libraries, by their own loader. No hardware help: a
//! guest's processor is emulated.

use super::apt::{Apt, Release};
use super::cache::Part;
use crate::process;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package.
const PACKAGE: &str = "qemu-system-x86";

/// How the part is made; another text makes it anew.
const RECIPE: &str = "qemu-system-x86 with its dependencies, of trixie-backports\n";

/// The device that connects to our server.
const DEVICE: &str = "vfio-user-pci";

/// QEMU, unpacked.
pub struct Qemu {
    root: PathBuf,
    /// Version of the package.
    pub version: String,
}

impl Qemu {
    /// From the cache, fetched if it is not there: 40 MB.
    ///
    /// Errors: it cannot be fetched, or has no vfio-user.
    pub fn ensure_there(cache: &Path) -> Result<Self> {
        let part = Part::new(cache, "qemu");
        let root = part.folder.join("root");
        if let Some(version) = part.made_by(RECIPE) {
            return Ok(Self { root, version });
        }
        let apt = Apt::new(cache, Release::TrixieBackports)?;
        part.begin()?;
        apt.unpack_with_dependencies(PACKAGE, &root)?;
        // In the image of the program, its version is the package's.
        let qemu = Self { root, version: String::new() };
        let version = version(&process::output(qemu.command().arg("--version"))?);
        let options = process::output(qemu.command().args(["-device", &format!("{DEVICE},help")]))?;
        ensure!(options.contains("socket"), "QEMU {version} has no {DEVICE}");
        part.end(&version, RECIPE)?;
        Ok(Self { version, ..qemu })
    }

    /// A machine with our drive in it, and its console as output. Its memory is shared with the server.
    pub fn machine(&self, image: &Path, initrd: &Path, socket: &Path, words: &str) -> Command {
        let mut command = self.command();
        command.args(["-nodefaults", "-accel", "tcg", "-smp", "1", "-m", "768M", "-no-reboot"]);
        command.args(["-object", "memory-backend-memfd,id=memory,size=768M,share=on"]);
        command.args(["-machine", "q35,memory-backend=memory", "-display", "none", "-serial", "stdio"]);
        let device = format!(
            "{{\"driver\":\"{DEVICE}\",\"socket\":{{\"type\":\"unix\",\"path\":\"{}\"}}}}",
            socket.display()
        );
        command.args(["-device", &device]).arg("-kernel").arg(image).arg("-initrd").arg(initrd);
        // An emulated timer on a loaded machine fails the kernel's check of it. pblk may say much between what is looked for.
        command.args([
            "-append",
            &format!("console=ttyS0 panic=-1 quiet no_timer_check log_buf_len=8M {words}"),
        ]);
        command
    }

    fn command(&self) -> Command {
        let libraries = self.root.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(&libraries).arg(self.root.join("usr/bin/qemu-system-x86_64"));
        for folder in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.root.join(folder));
        }
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command
    }
}

/// The version in the first line of what it says: the package's, in brackets.
fn version(said: &str) -> String {
    let line = said.lines().next().unwrap_or("");
    line.split_once('(').map_or(line, |(_, rest)| rest.trim_end_matches(')')).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_packages() {
        let said = "QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)\nCopyright\n";
        assert_eq!(version(said), "Debian 1:11.1.3+ds-1");
        assert_eq!(version("QEMU emulator version 12\n"), "QEMU emulator version 12");
    }
}
