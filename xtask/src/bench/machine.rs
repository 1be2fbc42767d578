//! What must be stated with any number: the machine, its load, the commit and the compiler.

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use serde::Serialize;
use std::{fmt, fs, process::Command, thread};

/// The machine and the code that ran on it. Read from Linux's `/proc`; has no host name on purpose.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Model name of the first processor.
    pub cpu: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Total memory.
    pub memory_kib: u64,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Load before the first run.
    pub load_before: LoadAverage,
    /// Load after the last run.
    pub load_after: LoadAverage,
    /// Full hash of the commit checked out.
    pub commit: String,
    /// Whether tracked files differ from that commit.
    pub is_modified: bool,
    /// First line of `rustc --version`.
    pub rustc: String,
}

/// Processes running or waiting, averaged over 1, 5 and 15 minutes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadAverage(pub [f64; 3]);

impl LoadAverage {
    /// The load at this moment.
    pub fn now() -> Result<Self> {
        Self::parse(&read("/proc/loadavg")?)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut numbers = text.split_whitespace().map(str::parse::<f64>);
        let mut next =
            || numbers.next().and_then(Result::ok).context("expected three numbers in /proc/loadavg");
        Ok(Self([next()?, next()?, next()?]))
    }
}

impl Machine {
    /// Asks the machine, git and rustc; `load_before` was read before the runs.
    ///
    /// Errors: one of them does not answer, as on a system without `/proc` or a repository without commits.
    pub fn read(workspace: &Workspace, load_before: LoadAverage) -> Result<Self> {
        let status =
            process::output(workspace.git().args(["status", "--porcelain", "--untracked-files=no"]))?;
        Ok(Self {
            // Not every architecture names its processors.
            cpu: field(&read("/proc/cpuinfo")?, "model name").unwrap_or_else(|| "not named".to_string()),
            cores: thread::available_parallelism().context("the number of cores is not known")?.get(),
            memory_kib: memory_kib(&read("/proc/meminfo")?)?,
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_string(),
            load_before,
            load_after: LoadAverage::now()?,
            commit: process::output(workspace.git().args(["rev-parse", "HEAD"]))?.trim().to_string(),
            is_modified: !status.trim().is_empty(),
            rustc: process::output(Command::new("rustc").arg("--version"))?.trim().to_string(),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadAverage([before, ..]) = self.load_before;
        let LoadAverage([after, ..]) = self.load_after;
        let memory_gib = self.memory_kib / (1 << 20);
        let modified = if self.is_modified { ", modified" } else { "" };
        write!(f, "{} ({} cores, {memory_gib} GiB), Linux {}, ", self.cpu, self.cores, self.kernel)?;
        write!(f, "load {before} to {after}, commit {}{modified}, {}", self.commit, self.rustc)
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path)
        .with_context(|| format!("{path} could not be read: benchmarks are recorded on Linux"))
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        line.split_once(':').filter(|(key, _)| key.trim() == name).map(|(_, v)| v.trim().to_string())
    };
    text.lines().find_map(value)
}

fn memory_kib(meminfo: &str) -> Result<u64> {
    let total = field(meminfo, "MemTotal").context("expected MemTotal in /proc/meminfo, found none")?;
    let number = total.strip_suffix(" kB").context("expected MemTotal in kB")?;
    number.trim().parse().with_context(|| format!("expected a number before kB, found `{number}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_understood() {
        let load = LoadAverage::parse("0.52 1.00 2.25 1/345 6789\n").unwrap();
        assert_eq!(load, LoadAverage([0.52, 1.0, 2.25]));
        assert_eq!(memory_kib("MemTotal:       16384 kB\nMemFree: 1 kB\n").unwrap(), 16384);
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nprocessor\t: 1\n";
        assert_eq!(field(cpuinfo, "model name").as_deref(), Some("Some CPU @ 2.0GHz"));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(LoadAverage::parse("0.5 1.0").is_err());
        assert!(memory_kib("MemFree: 1 kB").is_err() && memory_kib("MemTotal: x kB").is_err());
        assert_eq!(field("a: b", "model name"), None);
    }
}
