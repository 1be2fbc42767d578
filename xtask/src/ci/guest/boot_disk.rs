//! The disk the guest boots from: a file system made here, put on a drive over NBD, and given to the machine by vhost-user-blk.
//!
//! One server has it by both protocols at once. When the guest has ended, the file system is copied back and checked here.

use super::kernel::Kernel;
use crate::ci::root::Root;
use crate::ci::served::Served;
use crate::process;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the guest does.
const INIT: &str = include_str!("init.sh");

/// What it does with zones, and with keys and values.
const ZONES: &str = include_str!("zones.sh");

/// What it does with QEMU's own zones. It comes last: from then on there is a second drive.
const QEMU_ZONES: &str = include_str!("qemu_zones.sh");

/// How its devices are found, and what is done with them however they came.
pub const FIND: &str = include_str!("find.sh");
pub const NAMESPACES: &str = include_str!("namespaces.sh");
pub const DESCRIBED: &str = include_str!("described.sh");

/// Programs of this machine that the guest uses, with the libraries they need.
pub const PROGRAMS: &[&str] =
    &["/usr/sbin/nvme", "/sbin/mke2fs", "/usr/sbin/blkzone", "/usr/bin/fio", "/usr/bin/perl"];

/// Settings of the drive: 400 MB for users, and media that take little time.
const DRIVE: &[&str] =
    &["chunks_per_pu=256", "sectors_per_chunk=128", "media.read=2us", "media.program=5us", "media.erase=9us"];

/// Size of the file system. Chosen: 130 MB of programs and modules leave room for the 80 MiB that the guest writes with `--long`.
const FILE_SYSTEM_MIB: u32 = 288;

/// What it does with file systems on them, if it is asked to.
const ZONED_FILE_SYSTEMS: &str = include_str!("file_systems.sh");

/// Its last part: Linux's own translation of blocks to zones.
const DM_ZONED: &str = include_str!("dm_zoned.sh");

/// A served disk.
pub struct BootDisk {
    program: PathBuf,
    folder: PathBuf,
    /// None only between two servers.
    served: Option<Served>,
}

impl BootDisk {
    /// Makes the file system, with the programs that are asked for beside the usual, and a kernel's later modules; and serves it.
    ///
    /// Errors: a program is missing, the disk is full, or the server does not take it.
    pub fn start(program: &Path, folder: &Path, programs: &[&str], kernel: &Kernel) -> Result<Self> {
        let root = Root::new(folder.join("root"))?;
        root.built_program(program, "ocssd")?;
        PROGRAMS.iter().chain(programs).try_for_each(|program| root.program(program))?;
        root.init(INIT)?;
        root.text("zones.sh", ZONES)?;
        root.text("qemu_zones.sh", QEMU_ZONES)?;
        root.text("find.sh", FIND)?;
        root.text("namespaces.sh", NAMESPACES)?;
        root.text("described.sh", DESCRIBED)?;
        let later = root.modules(&kernel.later)?;
        let (of_pci, of_file_systems): (Vec<&str>, Vec<&str>) =
            later.lines().partition(|name| name.ends_with("/nvme.ko"));
        root.text("pci.modules", &of_pci.join("\n"))?;
        if !programs.is_empty() {
            root.text("file_systems.sh", ZONED_FILE_SYSTEMS)?;
            root.text("dm_zoned.sh", DM_ZONED)?;
            root.text("modules", &of_file_systems.join("\n"))?;
        }
        let made = root.file_system(folder.join("root.ext4"), FILE_SYSTEM_MIB)?;
        let image = folder.join("boot.img");
        if image.exists() {
            fs::remove_file(&image).with_context(|| format!("{} could not be removed", image.display()))?;
        }
        let mut format = Command::new(program);
        format.arg("format").arg(&image).args(["--drive", "tiny"]);
        for setting in DRIVE {
            format.args(["--set", setting]);
        }
        process::output(&mut format)?;
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let served = Some(serve(&program, &folder)?);
        let disk = Self { program, folder, served };
        process::run(Command::new("nbdcopy").arg("--flush").arg(&made).arg(disk.uri()))?;
        Ok(disk)
    }

    /// Where QEMU finds it.
    pub fn socket(&self) -> PathBuf {
        vhost_socket(&self.folder)
    }

    /// Stops the server as people do, in the middle of whatever the guest does, and starts another on the same image.
    ///
    /// Errors: it does not end well, or the other does not begin.
    pub fn restart(&mut self) -> Result<()> {
        let served = self.served.take().context("a server runs")?;
        served.stop()?;
        self.served = Some(serve(&self.program, &self.folder)?);
        Ok(())
    }

    /// Kills the server, in the middle of whatever the guest does, and starts another on the same image.
    ///
    /// Errors: the other does not begin.
    pub fn kill(&mut self) -> Result<()> {
        self.served.take().context("a server runs")?.kill()?;
        self.served = Some(serve(&self.program, &self.folder)?);
        Ok(())
    }

    /// Stops the server as people do. Before, the file system is copied from it and checked: what the guest left on it must be
    /// sound, and the guest must have used it.
    ///
    /// Errors: it is not.
    pub fn finish(self) -> Result<()> {
        let back = self.folder.join("back.ext4");
        process::run(Command::new("nbdcopy").arg(self.uri()).arg(&back))?;
        process::output(Command::new("/sbin/e2fsck").args(["-f", "-n"]).arg(&back))?;
        fs::remove_file(&back).with_context(|| format!("{} could not be removed", back.display()))?;
        let counted = self.served.context("a server runs")?.stop()?;
        ensure!(counted.contains("\"flushes\""), "the server did not say what it counted: {counted}");
        Ok(())
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.folder.join("boot.nbd").display())
    }
}

fn vhost_socket(folder: &Path) -> PathBuf {
    folder.join("boot.sock")
}

/// Serves the image of a folder.
fn serve(program: &Path, folder: &Path) -> Result<Served> {
    let image = folder.join("boot.img").display().to_string();
    let nbd = format!("unix:{}", folder.join("boot.nbd").display());
    let vhost = format!("unix:{}", vhost_socket(folder).display());
    let target = "pblk:over_provisioning_percent=25";
    let arguments = ["--drive", &image, "--target", target, "--nbd", &nbd, "--vhost-user-blk", &vhost];
    Served::start(program, &arguments).map(|(served, _)| served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_waits_for_no_fixed_time() {
        assert!(!INIT.contains(" sleep ") && !ZONES.contains(" sleep "), "it waits for what it waits for");
    }
}
