//! Debian's kernel: fetched by apt as the machine has it configured, unpacked beside the build, never installed.

use crate::process;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that names the newest kernel of the machine's own distribution.
const NEWEST: &str = "linux-image-amd64";

/// Modules the guest loads, in order: each after those it needs.
const MODULES: &[&str] = &[
    "lib/crc64",
    "crypto/crct10dif_common",
    "lib/crc-t10dif",
    "lib/crc64-rocksoft",
    "block/t10-pi",
    "drivers/nvme/host/nvme-core",
    "drivers/nvme/host/nvme-fabrics",
    "drivers/nvme/host/nvme-tcp",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "crypto/crc32c_generic",
    "lib/libcrc32c",
    "lib/crc16",
    "fs/mbcache",
    "fs/jbd2/jbd2",
    "fs/ext4/ext4",
];

/// A kernel, unpacked.
#[derive(Debug)]
pub struct Kernel {
    /// The image.
    pub image: PathBuf,
    /// The modules, in the order they are loaded.
    pub modules: Vec<PathBuf>,
}

/// The kernel, fetched if it is not there yet.
///
/// Errors: apt cannot fetch it, or it is not what is expected.
pub fn ensure_there(folder: &Path) -> Result<Kernel> {
    let unpacked = folder.join("kernel");
    if let Ok(kernel) = find(&unpacked) {
        return Ok(kernel);
    }
    let fetched = folder.join("package");
    for place in [&unpacked, &fetched] {
        if place.exists() {
            fs::remove_dir_all(place).with_context(|| format!("{} could not be removed", place.display()))?;
        }
        fs::create_dir_all(place).with_context(|| format!("{} could not be made", place.display()))?;
    }
    let depends = process::output(Command::new("apt-cache").args(["depends", NEWEST]))?;
    let name =
        package(&depends).with_context(|| format!("{NEWEST} depends on no kernel; try `apt-get update`"))?;
    println!("fetching {name}");
    process::run(Command::new("apt-get").current_dir(&fetched).args(["download", "-q", name]))?;
    let found = fs::read_dir(&fetched)?.next().context("apt-get fetched nothing")??;
    process::run(Command::new("dpkg-deb").arg("-x").arg(found.path()).arg(&unpacked))?;
    fs::remove_dir_all(&fetched)?;
    find(&unpacked)
}

/// The kernel that the newest depends on.
fn package(depends: &str) -> Option<&str> {
    let lines = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    lines.map(str::trim).find(|name| name.starts_with("linux-image-"))
}

/// The only entry of a folder whose name begins so.
fn entry(folder: &Path, begins: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} could not be read", folder.display()))?;
    let mut found = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begins));
    found.next().map(|entry| entry.path()).with_context(|| format!("{} has no {begins}", folder.display()))
}

fn find(unpacked: &Path) -> Result<Kernel> {
    let image = entry(&unpacked.join("boot"), "vmlinuz")?;
    let tree = entry(&unpacked.join("lib/modules"), "")?.join("kernel");
    let module = |name: &&str| tree.join(format!("{name}.ko"));
    // What is not there is part of the image.
    let modules: Vec<PathBuf> = MODULES.iter().map(module).filter(|path| path.exists()).collect();
    ensure!(
        modules.iter().any(|path| path.ends_with("nvme-tcp.ko")),
        "{} has no nvme-tcp.ko as it is: a kernel with packed modules is not known here",
        tree.display()
    );
    Ok(Kernel { image, modules })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_newest_depends_on() {
        let text = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n";
        assert_eq!(package(text), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(package("linux-image-amd64\n"), None);
    }
}
