//! QEMU with the guest, and what it says on its console.
//!
//! Beside the served disk it has zoned namespaces of QEMU's own in a PCI slot, which the guest's kernel takes once it has
//! loaded the driver. The guest's memory is shared with the server of its disk. When that goes, QEMU looks for another once a
//! second.

use super::kernel::Kernel;
use crate::ci::console::{Console, Word, word};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of each file below QEMU's zoned namespaces (chosen: 32 zones).
pub const ZONED_BYTES: u64 = 64 << 20;

/// QEMU's zones: 2 MiB of which 1.5 can be written.
const ZONED: &str = "nvme-ns,bus=qemu,logical_block_size=4096,physical_block_size=4096,zoned=true,\
zoned.zone_size=2M,zoned.zone_capacity=1536K";

/// How many namespaces of these there are.
pub const NAMESPACES: usize = 4;

/// What they have beside: limits that are soon reached; these, and extensions of 64 bytes; random write areas of 16 blocks,
/// committed by four, without any limit, because QEMU loses count of areas; and such areas for three zones.
const OF_NAMESPACE: [&str; NAMESPACES] = [
    "zoned.max_open=4,zoned.max_active=6",
    "zoned.max_open=4,zoned.max_active=6,zoned.descr_ext_size=64",
    "zoned.zrwas=64K,zoned.zrwafg=16K,zoned.numzrwa=1000000",
    "zoned.max_open=4,zoned.max_active=6,zoned.zrwas=64K,zoned.zrwafg=16K,zoned.numzrwa=3",
];

/// What a guest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Its connections are cut.
    Cut,
    /// The server of its disk stops, and another serves the same image.
    Restart,
    /// The server of its disk is killed, and another serves the same image.
    Kill,
    /// The server of its zones is killed,
    KillZones,
    /// and another serves the same image at the same place.
    ServeZones,
}

/// A machine.
pub struct Machine<'a> {
    /// What it boots.
    pub kernel: &'a Kernel,
    /// The programs it begins with.
    pub initrd: &'a Path,
    /// The socket of its disk's server.
    pub disk: &'a Path,
    /// The files of QEMU's own zoned namespaces, of [`ZONED_BYTES`] each.
    pub zoned: &'a [PathBuf; NAMESPACES],
    /// What its first program is told.
    pub words: &'a str,
    /// Longest time of the whole run.
    pub limit: Duration,
}

impl Machine<'_> {
    /// Boots, and follows the console until the guest says that it has ended. `happen` is called when it asks for something
    /// to happen. Returns how many checks passed.
    ///
    /// Errors: a check failed, the guest did not come to its end, or what it asked for cannot be done.
    pub fn run(&self, happen: &mut dyn FnMut(Happening) -> Result<()>) -> Result<usize> {
        follow(&mut self.command(), self.limit, happen)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-smp", "1", "-m", "512M", "-display", "none", "-serial", "stdio"]);
        command.args(["-object", "memory-backend-memfd,id=memory,size=512M,share=on"]);
        command.args(["-machine", "q35,memory-backend=memory"]);
        command.arg("-chardev").arg(format!("socket,id=disk,path={},reconnect=1", self.disk.display()));
        command.args(["-device", "vhost-user-blk-pci,chardev=disk,num-queues=2"]);
        command.args(["-device", "nvme,id=qemu,serial=zones-of-qemu"]);
        for (number, (file, own)) in self.zoned.iter().zip(OF_NAMESPACE).enumerate() {
            command.arg("-drive").arg(format!("file={},format=raw,if=none,id=zoned{number}", file.display()));
            command.args(["-device", &format!("{ZONED},drive=zoned{number},nsid={},{own}", number + 1)]);
        }
        command.args(["-no-reboot", "-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0,romfile="]);
        command.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(self.initrd);
        command.args(["-append", &format!("console=ttyS0 panic=-1 quiet {}", self.words)]);
        command
    }
}

/// Starts a machine, and follows its console as [`Machine::run`] does.
///
/// Errors: as of that.
pub fn follow(
    command: &mut Command,
    limit: Duration,
    happen: &mut dyn FnMut(Happening) -> Result<()>,
) -> Result<usize> {
    let mut console = Console::start(command, limit)?;
    let (mut passed, mut failed, mut ended) = (0, Vec::new(), false);
    while let Some(line) = console.next_line()? {
        match word(line) {
            Word::Passed => passed += 1,
            Word::Failed(name) => failed.push(name.to_owned()),
            Word::Cut => happen(Happening::Cut)?,
            Word::Restart => happen(Happening::Restart)?,
            Word::Kill => happen(Happening::Kill)?,
            Word::KillZones => happen(Happening::KillZones)?,
            Word::ServeZones => happen(Happening::ServeZones)?,
            Word::End => ended = true,
            Word::Value(..) | Word::Nothing => {}
        }
    }
    ensure!(failed.is_empty(), "failed in the guest: {}; it said:\n{}", failed.join(", "), console.told());
    ensure!(ended, "the guest stopped before its end; it said:\n{}", console.told());
    Ok(passed)
}
