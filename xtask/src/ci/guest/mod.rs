//! A Linux guest whose own drivers use served drives: the one client that nobody can argue with.
//!
//! Debian's kernel runs in QEMU without hardware help, so no rights and no module of this machine are needed. It boots from
//! a served disk by vhost-user-blk. It reaches the NVMe/TCP server through QEMU's user network and a proxy here, which can
//! cut all connections at once. The programs of the guest (`boot.sh`, then on the disk `init.sh`) do the checks and say what
//! came of each on the console.

mod boot_disk;
mod initrd;
mod kernel;
mod machine;
mod proxy;
pub mod slot;

use super::packages;
use super::served::Served;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use boot_disk::BootDisk;
use kernel::Release;
use machine::{Happening, Machine};
use proxy::Proxy;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The only host that may come; another is tried and must be refused.
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:6f637373-6400-4000-8000-000000000001";

/// To that host over TCP.
const OVER_TCP: &[&str] = &["--nvme-tcp", "127.0.0.1:0", "--host", HOST];

/// Drives whose media takes little time, and whose units hold the files of the test.
const SERVE: &[&str] = &[
    "--drive",
    "tiny",
    "--set",
    "chunks_per_pu=256",
    "--set",
    "sectors_per_chunk=256",
    "--set",
    "media.read=2us",
    "--set",
    "media.program=5us",
    "--set",
    "media.erase=9us",
    "--target",
    "pblk:over_provisioning_percent=25",
    "--raw",
    "tiny",
    "--raw-set",
    "ws_min=1",
    "--raw-set",
    "media.sectors_per_page=1",
];

/// A drive for zones, blocks, keys and values, and blocks whose writes are transactions.
const ZONES_DRIVE: &[&str] = &[
    "--drive",
    "tiny",
    "--set",
    "groups=2",
    "--set",
    "pus_per_group=5",
    "--set",
    "chunks_per_pu=128",
    "--set",
    "sectors_per_chunk=256",
    "--set",
    "media.read=2us",
    "--set",
    "media.program=5us",
    "--set",
    "media.erase=9us",
];

/// What it is divided into: namespaces 1 to 4. Zones of four units are 4 MiB, and take random write areas of four write units.
/// `mkfs.f2fs` wants blocks of one size on both its devices.
const ZONES_EXPORTS: &[&str] = &[
    "--export",
    "z=zns:area_units=4@pu:0-3",
    "--export",
    "m=pblk:over_provisioning_percent=25,block_bytes=4096@pu:4-5",
    "--export",
    "k=kv@pu:6-7",
    "--export",
    "t=ox-block:block_bytes=4096@pu:8-9",
];

/// Chooses one kernel by its package.
const KERNEL: &str = "OCSSD_KERNEL";

/// A drive for nothing but transactions: beside zones or keys a controller takes shorter commands, and so shorter ones.
const SERVE_TRANSACTIONS: &[&str] = &[
    "--drive",
    "tiny",
    "--set",
    "chunks_per_pu=128",
    "--set",
    "sectors_per_chunk=256",
    "--set",
    "media.program=5us",
    "--target",
    "ox-block:block_bytes=4096",
];

/// Programs of this machine for zones, and for file systems on them.
const FILE_SYSTEM_PROGRAMS: &[&str] = &[
    "/usr/bin/zbd",
    "/usr/bin/btrfs",
    "/usr/sbin/mkfs.btrfs",
    "/usr/sbin/mkfs.f2fs",
    "/usr/sbin/fsck.f2fs",
    "/sbin/dmsetup",
    "/sbin/e2fsck",
];

/// How much a run does.
struct Extent {
    /// Kernels that are booted, one after the other.
    releases: &'static [Release],
    /// Programs of this machine for file systems on zones; of none such are made.
    programs: &'static [&'static str],
    /// Blocks of 64 KiB of the file that is written.
    blocks: u32,
    /// Times all connections are cut while it is written,
    cuts: u32,
    /// and while fio writes and verifies; 0: fio is not started.
    fio_cuts: u32,
    /// Requests of each comparison of zones with their model.
    conform: u32,
    /// Checks that every run must have passed; what is missing was not reached.
    checks_min: usize,
    /// Longest time of a guest.
    limit: Duration,
}

/// What CI does. Chosen: 2 MiB and one cut show it; a loaded machine takes a minute to boot.
const SHORT: Extent = Extent {
    releases: &[kernel::OWN],
    programs: &[],
    blocks: 32,
    cuts: 1,
    fio_cuts: 0,
    conform: 300,
    checks_min: 191,
    limit: Duration::from_secs(300),
};

/// What is done with `--long`.
const LONG: Extent = Extent {
    releases: &[kernel::OWN, kernel::NEXT],
    programs: FILE_SYSTEM_PROGRAMS,
    blocks: 256,
    cuts: 8,
    fio_cuts: 4,
    conform: 3000,
    checks_min: 343,
    limit: Duration::from_secs(1800),
};

/// Boots guests and judges what they say; more of it with `long`.
///
/// Errors: a package is missing, or a check failed.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let extent = if long { &LONG } else { &SHORT };
    if long {
        packages::ensure_installed(packages::ZONED_FILE_SYSTEMS)?;
    }
    let folder = workspace.target.join("guest");
    let program = workspace.program()?;
    let chosen = std::env::var(KERNEL).ok();
    let is_wanted = |release: &&Release| chosen.as_ref().is_none_or(|name| name == release.0);
    let mut releases = extent.releases.iter().filter(is_wanted).peekable();
    ensure!(releases.peek().is_some(), "{KERNEL} names no kernel of this test");
    for release in releases {
        let start = Instant::now();
        let passed =
            boot(&program, &folder, *release, extent).with_context(|| format!("with {}", release.0))?;
        println!(
            "{}: {passed} checks passed in the guest, {:.0} s",
            release.0,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// One guest, from the making of its disk to the check of what it left there. Returns how many checks passed.
fn boot(program: &Path, folder: &Path, release: Release, extent: &Extent) -> Result<usize> {
    let kernel = kernel::ensure_there(folder, release)?;
    let initrd = initrd::make(folder, &kernel)?;
    let mut disk = BootDisk::start(program, folder, extent.programs, &kernel)?;
    let zoned = ["plain.raw", "extensions.raw", "areas.raw", "few-areas.raw"].map(|name| folder.join(name));
    for path in &zoned {
        let file = fs::File::create(path).with_context(|| format!("{} could not be made", path.display()))?;
        file.set_len(machine::ZONED_BYTES)?;
    }
    let server = Server::start(program, &[OVER_TCP, SERVE].concat())?;
    let mut zones = Server::start_zones(program, folder)?;
    let transactions = Server::start(program, &[OVER_TCP, SERVE_TRANSACTIONS].concat())?;
    let proxy = Proxy::start(server.port)?;
    let words = format!(
        "ocssd_port={} ocssd_nqn={} ocssd_host={HOST} ocssd_blocks={} ocssd_cuts={} ocssd_fio_cuts={} \
         ocssd_zones_port={} ocssd_zones_nqn={} ocssd_conform={} ocssd_transactions_port={} ocssd_transactions_nqn={}",
        proxy.port(),
        server.nqn,
        extent.blocks,
        extent.cuts,
        extent.fio_cuts,
        zones.port,
        zones.nqn,
        extent.conform,
        transactions.port,
        transactions.nqn
    );
    let socket = disk.socket();
    let machine = Machine {
        kernel: &kernel,
        initrd: &initrd,
        disk: &socket,
        zoned: &zoned,
        words: &words,
        limit: extent.limit,
    };
    let passed = machine.run(&mut |happening| {
        match happening {
            Happening::Cut => proxy.cut(),
            Happening::Restart => disk.restart()?,
            Happening::Kill => disk.kill()?,
            Happening::KillZones => zones.kill()?,
            Happening::ServeZones => zones.serve_zones_again(program, folder)?,
        }
        Ok(())
    })?;
    let least = extent.checks_min;
    ensure!(passed >= least, "only {passed} of at least {least} checks were made in the guest");
    server.stop()?;
    zones.stop()?;
    transactions.stop()?;
    disk.finish()?;
    Ok(passed)
}

/// A server of the test.
struct Server {
    /// None only between two.
    served: Option<Served>,
    port: u16,
    nqn: String,
}

impl Server {
    fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let (served, said) = Served::start(program, arguments)?;
        let address = after(&said, "\"addresses\": [").context("the server did not say where it listens")?;
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
        let nqn = after(&said, "\"nqn\": ").context("the server did not say its name")?;
        let port = port.context("the server's address has no port")?;
        Ok(Self { served: Some(served), port, nqn })
    }

    /// Serves the drive of zones, of an image that is made now.
    fn start_zones(program: &Path, folder: &Path) -> Result<Self> {
        let image = folder.join("zones.img");
        if image.exists() {
            fs::remove_file(&image).with_context(|| format!("{} could not be removed", image.display()))?;
        }
        process::output(Command::new(program).arg("format").arg(&image).args(ZONES_DRIVE))?;
        let image = image.display().to_string();
        Self::start(program, &[OVER_TCP, &["--drive", &image], ZONES_EXPORTS].concat())
    }

    /// Its drive loses its power. What was under way is gone, and what was written and not flushed may be.
    fn kill(&mut self) -> Result<()> {
        self.served.take().context("no server runs that could be killed")?.kill()
    }

    /// The drive of zones comes back at the same place, under the same name.
    fn serve_zones_again(&mut self, program: &Path, folder: &Path) -> Result<()> {
        ensure!(self.served.is_none(), "the server of the zones runs still");
        let image = folder.join("zones.img").display().to_string();
        let address = format!("127.0.0.1:{}", self.port);
        let listen = ["--nvme-tcp", &address, "--host", HOST, "--drive", &image];
        let fresh = Self::start(program, &[&listen, ZONES_EXPORTS].concat())?;
        ensure!(fresh.nqn == self.nqn, "a drive has the name {} and had {}", fresh.nqn, self.nqn);
        *self = fresh;
        Ok(())
    }

    /// Stops it as people do: it must end well, with every host answered.
    fn stop(self) -> Result<()> {
        let counted = self.served.context("a server runs")?.stop()?;
        ensure!(counted.contains("\"associations\""), "the server did not say what it counted: {counted}");
        Ok(())
    }
}

/// The string behind `key`.
fn after(text: &str, key: &str) -> Option<String> {
    let rest = text.split_once(key)?.1;
    let mut quoted = rest.splitn(3, '"');
    quoted.next()?;
    quoted.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_is_found() {
        let text = "{\n  \"nvme\": {\n    \"nqn\": \"nqn.x\",\n    \"addresses\": [\n      \"127.0.0.1:77\"\n    ]\n  }\n}\n";
        assert_eq!(after(text, "\"nqn\": ").as_deref(), Some("nqn.x"));
        assert_eq!(after(text, "\"addresses\": [").as_deref(), Some("127.0.0.1:77"));
    }
}
