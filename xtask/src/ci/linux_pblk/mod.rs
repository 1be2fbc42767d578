//! Linux's own LightNVM and pblk on our drive: the host that the drive was made for.
//!
//! `ocssd serve --vfio-user` gives a drive to a machine as a PCI device, as an open-channel SSD was one. The machine is
//! emulated by a QEMU that speaks vfio-user; its Linux 5.10 makes pblk on the drive, an ext4 on that, and checks what it
//! wrote (`init.sh`). Power is cut: of the machine (QEMU is killed, the server lives) and of the drive (the server is
//! killed too; what its image holds is what the drive holds). Each drive of `DRIVES` has such a life. When Linux left an
//! instance, and when a drive lost its power under one, our own `linux-pblk` must read what Linux reads (`ours`). Other drives
//! are written by Linux and by us in turn (`turns`). What is a hang of Linux's own begins a life anew (`hang`).
//!
//! QEMU and the kernel's source come from Debian releases that this machine need not be (`apt`), and are kept outside
//! the repository (`cache`).

mod apt;
pub mod cache;
mod hang;
mod initrd;
mod kernel;
mod life;
mod ours;
pub mod qemu;
mod sources;
mod turns;

use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use life::{Bench, DRIVES, Drive};
use std::{env, fs};

/// Chooses one drive by its name.
const DRIVE: &str = "OCSSD_DRIVE";

/// Leads every drive of [`DRIVES`] through its life, and those of [`turns::DRIVES`] through theirs. What was said is left in
/// `target/linux-pblk`.
///
/// Errors: something cannot be fetched or built, or a check failed.
pub fn run(workspace: &Workspace) -> Result<()> {
    let cache = cache::folder()?;
    let folder = workspace.target.join("linux-pblk");
    fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let qemu = qemu::Qemu::ensure_there(&cache)?;
    let kernel = kernel::ensure_there(&cache)?;
    println!("QEMU {}, Linux {}", qemu.version, kernel.version);
    let initrd = initrd::make(&folder)?;
    let program = workspace.program()?;
    let bench = Bench { program, qemu, kernel, initrd, folder };
    let chosen = env::var(DRIVE).ok();
    let is_wanted = |drive: &&Drive| chosen.as_ref().is_none_or(|name| name == drive.name);
    let mut drives = DRIVES.iter().filter(is_wanted).peekable();
    let mut in_turn = turns::DRIVES.iter().filter(|(drive, _)| is_wanted(&drive)).peekable();
    ensure!(drives.peek().is_some() || in_turn.peek().is_some(), "{DRIVE} names no drive of this test");
    drives.try_for_each(|drive| bench.lead(drive))?;
    in_turn.try_for_each(|(drive, turns)| turns::lead(&bench, drive, turns))
}
