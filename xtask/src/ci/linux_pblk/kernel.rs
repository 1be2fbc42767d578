//! Linux 5.10 with LightNVM and pblk, built from Debian's source package: no packaged kernel has them.
//!
//! Debian's 5.10 still has the code; a stable update only made it depend on BROKEN, since its maintainers were leaving.
//! That one word is taken out. 5.15 removed the code.

use super::apt::{Apt, Release};
use super::cache::Part;
use crate::process;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source package.
const PACKAGE: &str = "linux-source-5.10";

/// What the kernel has beyond nothing.
const FRAGMENT: &str = include_str!("kernel.config");

/// In `drivers/lightnvm/Kconfig`, and what it becomes.
const BROKEN: [&str; 2] = ["depends on BLOCK && BROKEN", "depends on BLOCK"];

/// A kernel.
pub struct Kernel {
    /// The image.
    pub image: PathBuf,
    /// Version of the package it was built from.
    pub version: String,
}

/// The kernel, built if it is not in the cache: 13 minutes of one processor, and 2 GB of disk until it is done.
///
/// Errors: the source cannot be fetched, or does not build.
pub fn ensure_there(cache: &Path) -> Result<Kernel> {
    let part = Part::new(cache, "linux");
    let image = part.folder.join("bzImage");
    if let Some(version) = part.made_by(FRAGMENT) {
        return Ok(Kernel { image, version });
    }
    let apt = Apt::new(cache, Release::Bullseye)?;
    let version = apt.version(PACKAGE)?;
    println!("building Linux {version} with LightNVM and pblk");
    part.begin()?;
    let tree = unpack(&apt, &part.folder)?;
    configure(&tree)?;
    build(&tree, &part.folder.join("build.log"))?;
    fs::copy(tree.join("arch/x86/boot/bzImage"), &image).context("the build left no image")?;
    fs::remove_dir_all(part.folder.join("source"))?;
    part.end(&version, FRAGMENT)?;
    Ok(Kernel { image, version })
}

fn unpack(apt: &Apt, folder: &Path) -> Result<PathBuf> {
    let source = folder.join("source");
    apt.unpack_alone(PACKAGE, &source)?;
    let packed = source.join(format!("usr/src/{PACKAGE}.tar.xz"));
    process::run(Command::new("tar").arg("-C").arg(&source).arg("-xf").arg(&packed))?;
    fs::remove_file(&packed)?;
    Ok(source.join(PACKAGE))
}

/// Nothing but the fragment, and what that needs; an option that did not hold is an error.
fn configure(tree: &Path) -> Result<()> {
    let kconfig = tree.join("drivers/lightnvm/Kconfig");
    let text = fs::read_to_string(&kconfig).context("the source has no LightNVM")?;
    ensure!(text.contains(BROKEN[0]), "LightNVM's Kconfig is not as expected: no `{}`", BROKEN[0]);
    fs::write(&kconfig, text.replacen(BROKEN[0], BROKEN[1], 1))?;
    fs::write(tree.join("fragment"), FRAGMENT)?;
    quiet_make(tree, "allnoconfig")?;
    let mut merge = Command::new("sh");
    merge.current_dir(tree).args(["scripts/kconfig/merge_config.sh", "-m", ".config", "fragment"]);
    process::output(&mut merge)?;
    quiet_make(tree, "olddefconfig")?;
    let config = fs::read_to_string(tree.join(".config"))?;
    let missing = missing(FRAGMENT, &config);
    ensure!(missing.is_empty(), "options of the kernel that did not hold: {}", missing.join(" "));
    Ok(())
}

fn quiet_make(tree: &Path, goal: &str) -> Result<()> {
    process::output(Command::new("make").current_dir(tree).args(["-s", goal])).map(drop)
}

/// Lines of the fragment that the configuration does not have.
fn missing<'a>(fragment: &'a str, config: &str) -> Vec<&'a str> {
    let wanted = fragment.lines().filter(|line| line.starts_with("CONFIG_"));
    wanted.filter(|line| !config.lines().any(|there| there == *line)).collect()
}

/// Gives way to everything else on the machine.
fn build(tree: &Path, log: &Path) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let out = File::create(log).with_context(|| format!("{} could not be written", log.display()))?;
    let mut make = Command::new("nice");
    make.current_dir(tree).args(["-n", "19", "make", &format!("-j{processors}"), "bzImage"]);
    let done = make.stdout(out.try_clone()?).stderr(out).status().context("make could not be started")?;
    ensure!(done.success(), "the kernel does not build; {} says why", log.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_did_not_hold_are_found() {
        let fragment = "# a remark\nCONFIG_A=y\nCONFIG_B=y\n";
        assert_eq!(missing(fragment, "CONFIG_A=y\n# CONFIG_B is not set\n"), ["CONFIG_B=y"]);
        assert!(missing(fragment, "CONFIG_B=y\nCONFIG_A=y\n").is_empty());
    }

    #[test]
    fn the_kernel_has_what_the_test_is_about() {
        for option in
            ["CONFIG_NVM=y", "CONFIG_NVM_PBLK=y", "CONFIG_NVM_PBLK_DEBUG=y", "CONFIG_BLK_DEV_NVME=y"]
        {
            assert!(FRAGMENT.lines().any(|line| line == option), "{option}");
        }
    }
}
