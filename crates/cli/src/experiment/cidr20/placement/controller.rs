//! A storage controller as a process of its own: `ocssd serve` with ELEOS' pages over NVMe/TCP, on one processor.
//!
//! What it spends is what the kernel counts of the process, and what it does is what it says at its end. Deliberately not here:
//! hosts (`page_host`).

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The drive: 576 MiB on 8 units, written in 96 KiB as the paper's, whose media are quick (4 GB/s), so that the processor is what
/// is short.
pub const DRIVE: [(&str, &str); 8] = [
    ("groups", "2"),
    ("pus_per_group", "4"),
    ("chunks_per_pu", "64"),
    ("sectors_per_chunk", "288"),
    ("ws_opt", "24"),
    ("media.read", "50us"),
    ("media.program", "200us"),
    ("media.erase", "500us"),
];

/// What it is called.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:controller";

/// The processors of the controller and of the hosts, as `taskset` numbers them.
pub struct Processors {
    pub controller: String,
    pub hosts: String,
}

impl Processors {
    /// The first and the last this process may use, and moves it to the last.
    ///
    /// # Errors
    /// If there are not two, or no `taskset` (util-linux).
    pub fn split() -> anyhow::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").context("this runs on Linux only")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let list = list.context("the kernel does not say which processors may be used")?.trim().to_owned();
        let first = list.split([',', '-']).next().unwrap_or_default().to_owned();
        let last = list.rsplit([',', '-']).next().unwrap_or_default().to_owned();
        ensure!(
            first != last,
            "a processor for the controller and one for hosts are needed, but there is {list} only"
        );
        let own = std::process::id().to_string();
        let moved = Command::new("taskset").args(["-a", "-p", "-c", &last, &own]).output();
        let moved = moved.context("taskset, a program of util-linux, cannot be run")?;
        ensure!(moved.status.success(), "taskset: {}", String::from_utf8_lossy(&moved.stderr));
        Ok(Self { controller: first, hosts: last })
    }
}

/// What a process has spent.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    at: Instant,
    /// On a processor, and waiting for one.
    run: Duration,
    waited: Duration,
    /// Ticks in the program, and in the kernel on its behalf.
    user: u64,
    system: u64,
}

/// What it spent between two looks.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub wall: Duration,
    pub run: Duration,
    pub waited: Duration,
    /// The part of `run` in the kernel.
    pub kernel: f64,
}

impl Spent {
    /// What a process spent since.
    pub fn since(self, before: Self) -> Between {
        let (user, system) = (self.user - before.user, self.system - before.system);
        Between {
            wall: self.at - before.at,
            run: self.run - before.run,
            waited: self.waited - before.waited,
            kernel: system as f64 / (user + system).max(1) as f64,
        }
    }

    fn of(process: u32) -> anyhow::Result<Self> {
        let (mut run, mut waited) = (0, 0);
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).context("the controller is gone")?;
        for thread in threads {
            let path = thread.context("threads are listed")?.path().join("schedstat");
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let mut numbers = text.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
            run += numbers.next().unwrap_or(0);
            waited += numbers.next().unwrap_or(0);
        }
        let stat =
            std::fs::read_to_string(format!("/proc/{process}/stat")).context("the controller is gone")?;
        // The name in parentheses may hold anything; utime and stime are the 12th and 13th behind it.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let mut ticks = behind.split_whitespace().skip(11).filter_map(|number| number.parse::<u64>().ok());
        let (Some(user), Some(system)) = (ticks.next(), ticks.next()) else {
            bail!("/proc/{process}/stat has no times")
        };
        let (run, waited) = (Duration::from_nanos(run), Duration::from_nanos(waited));
        Ok(Self { at: Instant::now(), run, waited, user, system })
    }
}

/// A server.
pub struct Controller {
    child: Child,
    out: BufReader<ChildStdout>,
    /// Where hosts come to.
    pub address: String,
}

impl Controller {
    /// Starts one whose data come this way.
    ///
    /// # Errors
    /// If it does not serve.
    pub fn start(processor: &str, copies: &str) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program cannot be found")?;
        let mut command = Command::new("taskset");
        command.args(["-c", processor]).arg(program);
        command.args(["--json", "serve", "--nvme-tcp", "127.0.0.1:0", "--nqn", NQN, "--copies", copies]);
        command.args(["--drive", "tiny", "--target", "eleos", "--memory", "600MiB"]);
        for (name, value) in DRIVE {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("a server cannot be started")?;
        let out = BufReader::new(child.stdout.take().context("its output is piped")?);
        let mut controller = Self { child, out, address: String::new() };
        let serving = controller.document()?;
        let address = serving["nvme"]["addresses"][0].as_str().context("it says where it listens")?;
        address.clone_into(&mut controller.address);
        Ok(controller)
    }

    /// The next JSON document it prints.
    fn document(&mut self) -> anyhow::Result<Value> {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            let count = self.out.read_line(&mut line).context("the controller's output is text")?;
            ensure!(count > 0, "the controller ended after saying: {text}");
            text.push_str(&line);
            if line == "}\n" {
                return serde_json::from_str(&text).context("the controller's output is JSON");
            }
        }
    }

    /// What it has spent.
    ///
    /// # Errors
    /// If it is gone.
    pub fn spent(&self) -> anyhow::Result<Spent> {
        Spent::of(self.child.id())
    }

    /// Stops it; gives what it counted.
    ///
    /// # Errors
    /// If it does not end in peace.
    pub fn stop(mut self) -> anyhow::Result<Value> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().context("kill cannot be run")?;
        ensure!(sent.success(), "the controller cannot be told to stop");
        let counted = self.document()?;
        let status = self.child.wait().context("the controller can be waited for")?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(counted)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
