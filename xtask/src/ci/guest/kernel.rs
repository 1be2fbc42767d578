//! Debian's kernels: fetched by apt as the machine has it configured, unpacked beside the build, never installed.
//!
//! Of a package the image stays, and the modules that the guest loads, unpacked and in the order they are loaded in.

use crate::process;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package that depends on the newest kernel of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release(pub &'static str);

/// The kernel of the machine's own distribution.
pub const OWN: Release = Release("linux-image-amd64");

/// The long-term kernel after that of Debian 12, which Debian keeps for Debian 12 too.
pub const NEXT: Release = Release("linux-image-6.12-amd64");

/// Modules the guest loads, with those they need; `crc32c_generic` is asked for by name while others are loaded.
const WANTED: &[&str] = &["virtio_pci", "virtio_net", "virtio_blk", "crc32c_generic", "ext4", "nvme-tcp"];

/// Modules that some runs load later: NVMe on PCI, and what takes zones; `crc32_generic` is asked for by name too.
const ASKED_FOR: &[&str] = &["nvme", "crc32_generic", "zonefs", "btrfs", "f2fs", "dm-zoned"];

/// What stands in the list before these.
const LATER: &str = "later ";

/// The file that says which modules were wanted, and lists those there are. It is written last.
const LIST: &str = "modules.list";

/// A kernel, unpacked.
#[derive(Debug)]
pub struct Kernel {
    /// The image.
    pub image: PathBuf,
    /// The modules, in the order they are loaded.
    pub modules: Vec<PathBuf>,
    /// Those that are loaded after them, where they are asked for.
    pub later: Vec<PathBuf>,
}

/// The kernel, fetched if it is not there yet.
///
/// Errors: apt cannot fetch it, or it is not what is expected.
pub fn ensure_there(folder: &Path, release: Release) -> Result<Kernel> {
    let place = folder.join(release.0);
    if let Some(kernel) = find(&place) {
        return Ok(kernel);
    }
    let fetched = folder.join("package");
    for place in [&place, &fetched] {
        if place.exists() {
            fs::remove_dir_all(place).with_context(|| format!("{} could not be removed", place.display()))?;
        }
        fs::create_dir_all(place).with_context(|| format!("{} could not be made", place.display()))?;
    }
    let Release(newest) = release;
    let depends = process::output(Command::new("apt-cache").args(["depends", newest]))?;
    let name =
        package(&depends).with_context(|| format!("{newest} depends on no kernel; try `apt-get update`"))?;
    println!("fetching {name}");
    process::run(Command::new("apt-get").current_dir(&fetched).args(["download", "-q", name]))?;
    let found = fs::read_dir(&fetched)?.next().context("apt-get fetched nothing")??;
    process::run(Command::new("dpkg-deb").arg("-x").arg(found.path()).arg(&fetched))?;
    keep(&fetched, &place)?;
    fs::remove_dir_all(&fetched)?;
    find(&place).with_context(|| format!("{} lacks what was put there", place.display()))
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

/// Moves what the guest needs from an unpacked package to its place.
fn keep(unpacked: &Path, place: &Path) -> Result<()> {
    fs::copy(entry(&unpacked.join("boot"), "vmlinuz")?, place.join("vmlinuz"))?;
    let merged = unpacked.join("usr");
    let base = if merged.join("lib/modules").exists() { merged } else { unpacked.to_owned() };
    let tree = entry(&base.join("lib/modules"), "")?;
    let version = tree.file_name().context("the folder of a kernel's modules has a name")?;
    process::run(Command::new("/sbin/depmod").arg("-b").arg(&base).arg(version))?;
    let dependencies = fs::read_to_string(tree.join("modules.dep"))?;
    let builtin = fs::read_to_string(tree.join("modules.builtin"))?;
    let mut list = format!("{}\n", wanted());
    let at_boot = load_order(WANTED, &dependencies, &builtin)?;
    let all = load_order(&[WANTED, ASKED_FOR].concat(), &dependencies, &builtin)?;
    for path in all {
        let name = module_name(path);
        let packed = tree.join(path);
        let plain = File::create(place.join(format!("{name}.ko")))?;
        // Newer kernels have packed modules, which the guest's busybox would not unpack.
        let reader = if path.ends_with(".xz") { "xz" } else { "cat" };
        let arguments: &[&str] = if reader == "xz" { &["-dc"] } else { &[] };
        process::run(Command::new(reader).args(arguments).arg(packed).stdout(plain))?;
        let when = if at_boot.contains(&path) { "" } else { LATER };
        list += &format!("{when}{name}.ko\n");
    }
    fs::write(place.join(LIST), list).with_context(|| format!("{} could not be written", place.display()))
}

/// Everything that is wanted, as a line.
fn wanted() -> String {
    [WANTED, ASKED_FOR].concat().join(" ")
}

/// Paths of the wanted modules that are not part of the image, each after those it needs. Source: modprobe(8), depmod(8).
fn load_order<'a>(wanted: &[&str], dependencies: &'a str, builtin: &str) -> Result<Vec<&'a str>> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let needs: BTreeMap<&str, (&str, &str)> =
        lines.map(|(path, needs)| (module_name(path), (path, needs))).collect();
    let mut order = Vec::new();
    for wanted in wanted {
        if builtin.lines().any(|path| module_name(path) == *wanted) {
            continue;
        }
        let (path, needs) =
            needs.get(wanted).with_context(|| format!("this kernel has no module {wanted}"))?;
        // What is needed comes in the order in which it would be taken out.
        for path in needs.split_whitespace().rev().chain([*path]) {
            if !order.contains(&path) {
                order.push(path);
            }
        }
    }
    Ok(order)
}

/// A module's name in a path.
fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split_once(".ko").map_or(file, |(name, _)| name)
}

/// The kernel at its place, if it is whole and has what is wanted today.
fn find(place: &Path) -> Option<Kernel> {
    let list = fs::read_to_string(place.join(LIST)).ok()?;
    let (found, names) = list.split_once('\n')?;
    let (later, at_boot): (Vec<&str>, Vec<&str>) = names.lines().partition(|line| line.starts_with(LATER));
    let modules: Vec<PathBuf> = at_boot.into_iter().map(|name| place.join(name)).collect();
    let later = later.into_iter().filter_map(|line| line.strip_prefix(LATER));
    let later: Vec<PathBuf> = later.map(|name| place.join(name)).collect();
    let image = place.join("vmlinuz");
    let is_whole =
        found == wanted() && modules.iter().chain(&later).chain([&image]).all(|path| path.exists());
    is_whole.then_some(Kernel { image, modules, later })
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

    #[test]
    fn modules_come_after_what_they_need_and_those_of_the_image_not_at_all() {
        let dependencies = "kernel/fs/ext4.ko.xz: kernel/fs/jbd2.ko.xz kernel/lib/crc16.ko.xz\n\
                            kernel/fs/jbd2.ko.xz:\n\
                            kernel/n/nvme-tcp.ko: kernel/n/core.ko kernel/lib/crc16.ko.xz\n\
                            kernel/v/virtio_net.ko:\nkernel/v/virtio_blk.ko:\nkernel/c/crc32c_generic.ko:\n";
        let builtin = "kernel/drivers/virtio/virtio_pci.ko\n";
        let expected = [
            "kernel/v/virtio_net.ko",
            "kernel/v/virtio_blk.ko",
            "kernel/c/crc32c_generic.ko",
            "kernel/lib/crc16.ko.xz",
            "kernel/fs/jbd2.ko.xz",
            "kernel/fs/ext4.ko.xz",
            "kernel/n/core.ko",
            "kernel/n/nvme-tcp.ko",
        ];
        assert_eq!(load_order(WANTED, dependencies, builtin).unwrap(), expected);
        let error = load_order(WANTED, dependencies, "").unwrap_err().to_string();
        assert!(error.contains("virtio_pci"), "{error}");
    }
}
