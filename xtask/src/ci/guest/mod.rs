//! A Linux guest whose own NVMe/TCP driver uses a served drive: the one client that nobody can argue with.
//!
//! Debian's kernel runs in QEMU without hardware help, so no rights and no module of this machine are needed. It reaches
//! the server through QEMU's user network and a proxy here, which can cut all connections at once. The first program of
//! the guest (`init.sh`) does the checks and says what came of each on the console.

mod initrd;
mod kernel;
mod machine;
mod proxy;

use super::served::Served;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use proxy::Proxy;
use std::time::Duration;

/// The only host that may come; another is tried and must be refused.
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:6f637373-6400-4000-8000-000000000001";

/// Drives whose media takes little time, and whose units hold the files of the test.
const SERVE: &[&str] = &[
    "--nvme-tcp",
    "127.0.0.1:0",
    "--host",
    HOST,
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

/// How much a run does.
struct Extent {
    /// Blocks of 64 KiB of the file that is written.
    blocks: u32,
    /// Times all connections are cut.
    cuts: u32,
    /// Longest time of the whole run.
    limit: Duration,
}

/// Checks every run must have passed; what is missing was not reached.
const CHECKS_MIN: usize = 35;

/// Boots the guest and judges what it says; more of it with `long`.
///
/// Errors: a package is missing, or a check failed.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let extent = match long {
        // Chosen: 2 MiB and one cut show it; a loaded machine takes a minute to boot.
        false => Extent { blocks: 32, cuts: 1, limit: Duration::from_secs(300) },
        true => Extent { blocks: 256, cuts: 8, limit: Duration::from_secs(1800) },
    };
    let folder = workspace.target.join("guest");
    let kernel = kernel::ensure_there(&folder)?;
    let initrd = initrd::make(&folder, &kernel)?;
    let server = Server::start(&workspace.program()?)?;
    let proxy = Proxy::start(server.port)?;
    let words = format!(
        "ocssd_port={} ocssd_nqn={} ocssd_host={HOST} ocssd_blocks={} ocssd_cuts={}",
        proxy.port(),
        server.nqn,
        extent.blocks,
        extent.cuts
    );
    let passed = machine::run(&kernel, &initrd, &words, extent.limit, &mut || proxy.cut())?;
    ensure!(passed >= CHECKS_MIN, "only {passed} of at least {CHECKS_MIN} checks were made in the guest");
    println!("{passed} checks passed in the guest");
    server.stop()
}

/// A server of the test.
struct Server {
    served: Served,
    port: u16,
    nqn: String,
}

impl Server {
    fn start(program: &std::path::Path) -> Result<Self> {
        let (served, said) = Served::start(program, SERVE)?;
        let address = after(&said, "\"addresses\": [").context("the server did not say where it listens")?;
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
        let nqn = after(&said, "\"nqn\": ").context("the server did not say its name")?;
        let port = port.context("the server's address has no port")?;
        Ok(Self { served, port, nqn })
    }

    /// Stops it as people do: it must end well, with every host answered.
    fn stop(self) -> Result<()> {
        let counted = self.served.stop()?;
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
