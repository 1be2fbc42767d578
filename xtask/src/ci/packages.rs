//! The programs of other projects that the tests drive, and how to get them on Debian.

use crate::process;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// A Debian package the tests need.
pub struct Package {
    /// Name for `apt-get install`.
    name: &'static str,
    /// Any of these commands succeeding shows that what the package brings is there, whoever installed it.
    proofs: &'static [&'static [&'static str]],
    /// What the tests do with it.
    why: &'static str,
}

/// Every package the tests need. A test that drives a new program adds its row.
pub const PACKAGES: &[Package] = &[
    Package {
        name: "fio",
        proofs: &[&["fio", "--version"]],
        why: "job files and JSON results are compared with fio's own",
    },
    Package {
        name: "fio-examples",
        proofs: &[&["test", "-e", "/usr/share/doc/fio/examples/null.fio"]],
        why: "its job files are run, or refused as docs/fio.md says",
    },
    Package {
        name: "libnbd-bin",
        proofs: &[&["nbdcopy", "--version"]],
        why: "served drives are looked at and copied by nbdinfo and nbdcopy",
    },
    Package {
        name: "golang-go",
        proofs: &[&["go", "version"]],
        why: "porcupine, which judges histories of transactions, is a module of Go",
    },
    Package {
        name: "nbdkit",
        proofs: &[&["nbdkit", "--version"]],
        why: "fsx writes any bytes to a served drive, of which its filter makes whole blocks",
    },
    Package {
        name: "python3-libnbd",
        proofs: &[&["python3", "-c", "import nbd"], &["/usr/bin/python3", "-c", "import nbd"]],
        why: "served drives are asked what sound clients do not ask, by nbdsh",
    },
    Package {
        name: "qemu-utils",
        proofs: &[&["qemu-io", "--version"]],
        why: "served drives are read, written and compared by qemu-io and qemu-img",
    },
    Package {
        name: "qemu-system-x86",
        proofs: &[&["qemu-system-x86_64", "--version"]],
        why: "a Linux guest uses a served drive by its own NVMe driver",
    },
    Package {
        name: "seabios",
        proofs: &[&["test", "-e", "/usr/share/seabios/bios-256k.bin"]],
        why: "the guest's machine begins with it",
    },
    Package {
        name: "fuse3",
        proofs: &[&["fusermount3", "--version"]],
        why: "served drives are mounted as files by users who are not root",
    },
    Package {
        name: "redis-tools",
        proofs: &[&["redis-benchmark", "--version"]],
        why: "served keys and values are set and read by redis-benchmark and redis-cli",
    },
    Package { name: "tcl", proofs: &[&["test", "-x", "/usr/bin/tclsh"]], why: "Redis' own tests run in it" },
    Package {
        name: "e2fsprogs",
        proofs: &[&["/usr/sbin/mkfs.ext4", "-V"]],
        why: "a file system is made on a served drive, and checked; the guest boots from one",
    },
    Package {
        name: "nvme-cli",
        proofs: &[&["/usr/sbin/nvme", "version"]],
        why: "it connects drives in the guest",
    },
    Package {
        name: "util-linux",
        proofs: &[&["/usr/sbin/blkzone", "--version"], &["/sbin/blkzone", "--version"]],
        why: "zones of a served drive are looked at and managed in the guest by blkzone",
    },
    Package {
        name: "busybox-static",
        proofs: &[&["/bin/busybox", "true"]],
        why: "the guest's other programs",
    },
    Package {
        name: "kmod",
        proofs: &[&["/sbin/depmod", "--version"]],
        why: "modules of the guest's kernel are loaded in the order it finds",
    },
    Package {
        name: "cpio",
        proofs: &[&["cpio", "--version"]],
        why: "the guest's file system is packed by it",
    },
    Package {
        name: "chromium",
        proofs: &[&["chromium", "--version"]],
        why: "reports are opened in a browser",
    },
    Package { name: "gcc", proofs: &[&["gcc", "--version"]], why: "programs use the C library" },
    Package { name: "g++", proofs: &[&["g++", "--version"]], why: "the C library's header is C++ too" },
    Package {
        name: "rocksdb-tools",
        proofs: &[&["test", "-x", "/usr/bin/db_bench"]],
        why: "RocksDB's own programs run on drives",
    },
    Package {
        name: "librocksdb-dev",
        proofs: &[&["test", "-e", "/usr/include/rocksdb/file_system.h"]],
        why: "the RocksDB plugin inherits its classes",
    },
    Package {
        name: "pkg-config",
        proofs: &[&["pkg-config", "--version"]],
        why: "programs find the installed C library as its users do",
    },
    Package {
        name: "valgrind",
        proofs: &[&["valgrind", "--version"]],
        why: "programs that use the C library run without a wrong access or a leak",
    },
    Package {
        name: "python3-venv",
        // The first python3 may be a user's own build; the second is always Debian's.
        proofs: &[&["python3", "-c", PYTHON_HAS_VENV], &["/usr/bin/python3", "-c", PYTHON_HAS_VENV]],
        why: "fio-plot, which draws our results in a test, gets an environment of its own",
    },
];

/// `ensurepip` is the part Debian ships in python3-venv only.
const PYTHON_HAS_VENV: &str = "import venv, ensurepip";

/// What building RocksDB's stress test needs beside them. Only `--long` asks for it.
pub const STRESS_BUILD: &[Package] = &[
    Package { name: "make", proofs: &[&["make", "--version"]], why: "RocksDB's stress test is built by it" },
    Package {
        name: "libgflags-dev",
        proofs: &[&["test", "-e", "/usr/include/gflags/gflags.h"]],
        why: "RocksDB's stress test reads its flags by it",
    },
    Package {
        name: "dpkg-dev",
        proofs: &[&["dpkg-source", "--version"]],
        why: "RocksDB's source is a package of Debian's",
    },
    Package {
        name: "python3",
        proofs: &[&["python3", "--version"]],
        why: "RocksDB's crash test is a script of Python",
    },
];

/// What building a Linux kernel needs beside them, and how its sources are checked. Only the step that builds one asks for it.
pub const KERNEL_BUILD: &[Package] = &[
    Package { name: "make", proofs: &[&["make", "--version"]], why: "a kernel is built by it" },
    Package {
        name: "flex",
        proofs: &[&["flex", "--version"]],
        why: "a kernel's configuration is read by it",
    },
    Package {
        name: "bison",
        proofs: &[&["bison", "--version"]],
        why: "a kernel's configuration is read by it",
    },
    Package { name: "bc", proofs: &[&["sh", "-c", "echo 1 | bc"]], why: "a kernel's build computes with it" },
    Package {
        name: "libelf-dev",
        proofs: &[&["test", "-e", "/usr/include/gelf.h"]],
        why: "a kernel's build looks into object files",
    },
    Package {
        name: "xz-utils",
        proofs: &[&["xz", "--version"]],
        why: "a kernel's source is packed by it, and newer kernels' modules are",
    },
    Package {
        name: "libc6-dev",
        proofs: &[&["test", "-e", "/usr/include/stdio.h"]],
        why: "a program of the guest is built without libraries",
    },
    Package {
        name: "e2fsprogs",
        proofs: &[&["/sbin/e2fsck", "-V"]],
        why: "a file system is checked after a power cut",
    },
    Package {
        name: "debian-archive-keyring",
        proofs: &[&["test", "-e", "/usr/share/keyrings/debian-archive-keyring.gpg"]],
        why: "packages of other releases are checked against it",
    },
];

/// What YCSB's client and its binding need. Only the step that runs it asks for it.
pub const YCSB_BUILD: &[Package] = &[
    Package {
        name: "default-jdk-headless",
        proofs: &[&["javac", "-version"]],
        why: "the binding that gives YCSB a drive is compiled by it",
    },
    Package {
        name: "maven",
        proofs: &[&["mvn", "--version"]],
        why: "it fetches YCSB's core, of its authors",
    },
];

/// What makes the file systems that Linux has for zones, and a tool for zones. Only the guest with `--long` asks for it.
pub const ZONED_FILE_SYSTEMS: &[Package] = &[
    Package {
        name: "zbd-utils",
        proofs: &[&["test", "-x", "/usr/bin/zbd"]],
        why: "served zones are reported and managed by it in the guest",
    },
    Package {
        name: "btrfs-progs",
        proofs: &[&["/usr/sbin/mkfs.btrfs", "--version"], &["/usr/bin/mkfs.btrfs", "--version"]],
        why: "btrfs is made on served zones in the guest",
    },
    Package {
        name: "f2fs-tools",
        proofs: &[&["/usr/sbin/mkfs.f2fs", "-V"]],
        why: "f2fs is made on served zones in the guest, and checked",
    },
    Package {
        name: "dmsetup",
        proofs: &[&["/sbin/dmsetup", "--version"]],
        why: "dm-zoned makes blocks of served zones in the guest",
    },
    Package {
        name: "e2fsprogs",
        proofs: &[&["/sbin/e2fsck", "-V"]],
        why: "a file system on these blocks is checked",
    },
];

/// Makes sure that every package of a list is there; installs missing ones when this user may.
///
/// Errors: something is missing and this user is not root, there is no `apt-get`, or installing did not help.
pub fn ensure_installed(needed: &'static [Package]) -> Result<()> {
    let missing = missing(needed);
    if missing.is_empty() {
        println!("found: {}", names(needed.iter()));
        return Ok(());
    }
    for package in &missing {
        println!("missing: {} ({})", package.name, package.why);
    }
    if !is_root() || !process::succeeds(Command::new("apt-get").arg("--version")) {
        let names = names(missing.into_iter());
        bail!("the tests need {names}, which this user cannot install: `sudo apt-get install {names}`");
    }
    install(&missing)?;
    let still: Vec<&Package> = self::missing(needed);
    if still.is_empty() {
        return Ok(());
    }
    bail!(
        "{} installed and still not usable: start by hand `{}`",
        names(still.iter().copied()),
        still[0].proofs[0].join(" ")
    )
}

fn missing(needed: &'static [Package]) -> Vec<&'static Package> {
    let is_there = |proof: &&[&str]| process::succeeds(Command::new(proof[0]).args(&proof[1..]));
    needed.iter().filter(|package| !package.proofs.iter().any(is_there)).collect()
}

/// Tries with the package lists at hand first, since fetching them is slow and often not needed.
fn install(missing: &[&Package]) -> Result<()> {
    let apt_get = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let install = || {
        let mut command = apt_get();
        command
            .args(["install", "-y", "--no-install-recommends"])
            .args(missing.iter().map(|package| package.name));
        command
    };
    if process::run(&mut install()).is_ok() {
        return Ok(());
    }
    println!("fetching the package lists and trying once more");
    process::run(apt_get().arg("update")).context("the package lists could not be fetched")?;
    process::run(&mut install()).context("the packages could not be installed")
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn names<'a>(packages: impl Iterator<Item = &'a Package>) -> String {
    packages.map(|package| package.name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_can_be_proven_and_says_why() {
        let lists = [PACKAGES, KERNEL_BUILD, STRESS_BUILD, YCSB_BUILD, ZONED_FILE_SYSTEMS];
        for package in lists.into_iter().flatten() {
            assert!(
                !package.proofs.is_empty() && package.proofs.iter().all(|proof| !proof.is_empty()),
                "{}",
                package.name
            );
            assert!(!package.why.is_empty(), "{}", package.name);
        }
    }

    #[test]
    fn names_are_listed_as_apt_takes_them() {
        assert!(names(PACKAGES.iter()).starts_with("fio fio-examples libnbd-bin"));
    }
}
