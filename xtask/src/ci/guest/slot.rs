//! A Linux guest that finds targets in a PCI slot: its own NVMe driver takes zones, blocks, and keys and values by vfio-user.
//!
//! The checks are those of namespaces that came over TCP (`namespaces.sh`), and a few of the slot. Debian's kernel runs in a
//! QEMU that speaks vfio-user, which is fetched once; everything lies in its first file system.

use super::boot_disk::{DESCRIBED, FIND, NAMESPACES, PROGRAMS};
use super::kernel::{self, Kernel};
use super::{ZONES_DRIVE, ZONES_EXPORTS, machine};
use crate::ci::linux_pblk::cache;
use crate::ci::linux_pblk::qemu::Qemu;
use crate::ci::root::Root;
use crate::ci::served::Served;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the guest does.
const INIT: &str = include_str!("slot.sh");

/// Checks that must have passed; what is missing was not reached.
const CHECKS_MIN: usize = 116;

/// Longest time of the guest (chosen: many times what it takes on a loaded machine).
const LIMIT: Duration = Duration::from_secs(600);

/// Boots a guest and judges what it says.
///
/// Errors: something cannot be fetched, or a check failed.
pub fn run(workspace: &Workspace) -> Result<()> {
    let start = Instant::now();
    let qemu = Qemu::ensure_there(&cache::folder()?)?;
    let kernel = kernel::ensure_there(&workspace.target.join("guest"), kernel::OWN)?;
    let folder = workspace.target.join("slot");
    fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
    let initrd = initrd(&folder, &kernel)?;
    let socket = folder.join("socket");
    let listen = format!("unix:{}", socket.display());
    let (served, _) = Served::start(
        &workspace.program()?,
        &[&["--vfio-user", &listen], ZONES_DRIVE, ZONES_EXPORTS].concat(),
    )?;
    let mut command = qemu.machine(&kernel.image, &initrd, &socket, "");
    let passed = machine::follow(&mut command, LIMIT, &mut |happening| {
        anyhow::bail!("this guest asks for nothing, but for {happening:?}")
    })?;
    ensure!(passed >= CHECKS_MIN, "only {passed} of at least {CHECKS_MIN} checks were made in the guest");
    let counted = served.stop()?;
    ensure!(counted.contains("\"associations\": 1"), "the guest had no controller: {counted}");
    let seconds = start.elapsed().as_secs_f64();
    println!("QEMU {}: {passed} checks passed in the guest, {seconds:.0} s", qemu.version);
    Ok(())
}

/// Programs, modules and checks.
fn initrd(folder: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let root = Root::new(folder.join("root"))?;
    PROGRAMS.iter().try_for_each(|program| root.program(program))?;
    let nvme = kernel.later.iter().filter(|path| path.ends_with("nvme.ko")).cloned();
    let modules: Vec<PathBuf> = kernel.modules.iter().cloned().chain(nvme).collect();
    root.text("modules", &root.modules(&modules)?)?;
    root.text("find.sh", FIND)?;
    root.text("namespaces.sh", NAMESPACES)?;
    root.text("described.sh", DESCRIBED)?;
    root.init(INIT)?;
    root.pack(folder.join("initrd"))
}
