//! fsx over a served drive: `ocssd serve --nbd`, made a file by nbdfuse, with nbdkit between them, which makes whole blocks of any
//! bytes that the kernel's FUSE asks for.
//!
//! fsx reads and writes at random and compares every read with what it wrote. It is the rewrite by Alan Somers, from crates.io,
//! because Debian has no package of it. nbdfuse makes a TRIM of a hole that is punched, and a TRIM leaves a part of a sector as
//! it is (docs/serve.md): holes are whole sectors here. Deliberately not here: mapped files.

use super::served::Served;
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The version that the settings below are for.
const VERSION: &str = "0.3.2";

/// Operations of each run in CI (chosen: seconds), and with `--long` (minutes).
const OPERATIONS: [u32; 2] = [1_000, 50_000];

/// How long the mount may take (chosen: it takes less than a second on an idle machine).
const MOUNT_LIMIT: Duration = Duration::from_secs(60);

/// Reads and writes of any bytes, and of whole sectors with holes. Advice lets the kernel forget pages, so that reads reach the
/// server.
const RUNS: [(&str, &str); 2] = [
    ("any bytes", "[opsize]\nmin = 1\nmax = 131072\nalign = 1\n[weights]\npunch_hole = 0\n"),
    ("whole sectors", "[opsize]\nmin = 4096\nmax = 131072\nalign = 4096\n[weights]\npunch_hole = 2\n"),
];
const COMMON: &str = "flen = 4194304\nblockmode = true\nnomsyncafterwrite = true\n";
const WEIGHTS: &str =
    "read = 10\nwrite = 10\nmapread = 0\nmapwrite = 0\ntruncate = 0\nfsync = 1\nposix_fadvise = 5\n";

/// Runs fsx on a drive in memory.
///
/// Errors: a read that is not what was written, or a program that is not there.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let root = workspace.target.join("fsx");
    let program = ensure_installed(workspace, &root)?;
    let folder = root.join("run");
    drop(std::fs::remove_dir_all(&folder));
    let (mount, socket) = (folder.join("mount"), folder.join("nbd.sock"));
    std::fs::create_dir_all(&mount)?;
    let endpoint = format!("unix:{}", socket.display());
    let (served, _) =
        Served::start(&workspace.program()?, &["--drive", "qemu", "--target", "pblk", "--nbd", &endpoint])?;
    let mounted = Mounted::new(&mount, &socket)?;
    for (seed, (name, settings)) in (1..).zip(RUNS) {
        let operations = OPERATIONS[usize::from(long)];
        println!("fsx, {name}: {operations} operations, seed {seed}");
        let file = folder.join("fsx.toml");
        std::fs::write(&file, format!("{COMMON}{settings}{WEIGHTS}"))?;
        let mut fsx = Command::new(&program);
        fsx.args(["-N", &operations.to_string(), "-S", &seed.to_string()]).arg("-f").arg(&file);
        fsx.arg("-P").arg(&folder).arg(mount.join(FILE));
        process::run(&mut fsx)
            .with_context(|| format!("fsx read what it did not write ({name}, seed {seed})"))?;
    }
    mounted.end()?;
    let counted = served.stop()?;
    ensure!(!counted.contains("\"reads\": 0,"), "no read reached the server, which counted: {counted}");
    Ok(())
}

/// The file in the mount.
const FILE: &str = "drive";

/// nbdfuse, until it is unmounted.
struct Mounted<'a> {
    child: Child,
    mount: &'a Path,
}

impl<'a> Mounted<'a> {
    fn new(mount: &'a Path, socket: &Path) -> Result<Self> {
        let mut command = Command::new("nbdfuse");
        command.arg(mount.join(FILE)).args([
            "[",
            "nbdkit",
            "--exit-with-parent",
            "--filter=blocksize",
            "nbd",
        ]);
        command.arg(format!("socket={}", socket.display())).args(["minblock=512", "]"]);
        let mut child = command.spawn().context("nbdfuse could not be started")?;
        let since = Instant::now();
        while !mount.join(FILE).exists() {
            if let Some(status) = child.try_wait()? {
                bail!("nbdfuse ended with {status} before it mounted anything");
            }
            ensure!(since.elapsed() < MOUNT_LIMIT, "nbdfuse mounted nothing within {MOUNT_LIMIT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { child, mount })
    }

    fn end(mut self) -> Result<()> {
        process::run(Command::new("fusermount3").arg("-u").arg(self.mount))?;
        let status = self.child.wait()?;
        ensure!(status.success(), "nbdfuse ended with {status}");
        Ok(())
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(Command::new("fusermount3").args(["-u", "-z"]).arg(self.mount).status());
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Installs fsx in the build directory unless it is there in the right version; where it is.
fn ensure_installed(workspace: &Workspace, root: &Path) -> Result<std::path::PathBuf> {
    let program = root.join("bin/fsx");
    let version = Command::new(&program).arg("--version").output();
    if version.is_ok_and(|output| output.stdout == format!("fsx {VERSION}\n").as_bytes()) {
        return Ok(program);
    }
    println!("installing fsx {VERSION}");
    let mut install = workspace.cargo();
    install
        .args(["install", "fsx", "--version", VERSION, "--locked", "--debug", "--quiet", "--root"])
        .arg(root);
    install.env("CARGO_TARGET_DIR", root.join("build"));
    process::run(&mut install).context("fsx could not be installed from crates.io")?;
    std::fs::remove_dir_all(root.join("build")).context("what fsx was built from could not be removed")?;
    Ok(program)
}
