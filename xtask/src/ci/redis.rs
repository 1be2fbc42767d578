//! Clients of Redis on a served key-value target: `redis-benchmark` and `redis-cli`, kills, and Redis' own tests with `--long`.
//!
//! The scripts are those of `experiments/serve-resp`; what of Redis' tests is skipped, and why, is in `skipped.txt` there.

use super::served::Served;
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Kills in CI (chosen: seconds), and with `--long`.
const ROUNDS: [u32; 2] = [3, 100];

/// Requests of each test of the benchmark (chosen: a second or two).
const REQUESTS: u32 = 3_000;

/// Keys that those are about (chosen: each is stored several times).
const KEYS: u32 = 500;

/// Runs the clients.
///
/// Errors: a client is answered by an error, an answered change is missing after a kill, or a test of Redis fails.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let program = workspace.program()?;
    let (served, said) =
        Served::start(&program, &["--drive", "tiny", "--target", "kv", "--resp", "tcp:127.0.0.1:0"])?;
    let port = port(&said)?;
    for pipeline in ["1", "16"] {
        let mut benchmark = Command::new("redis-benchmark");
        benchmark.args(["-p", port, "-q", "-d", "1024", "-c", "8", "-P", pipeline]);
        benchmark.args([
            "-t",
            "ping,set,get,incr,mset",
            "-n",
            &REQUESTS.to_string(),
            "-r",
            &KEYS.to_string(),
        ]);
        process::run(&mut benchmark).context("redis-benchmark was answered by an error")?;
    }
    for (words, expected) in [
        (&["-3", "set", "greeting", "hello"][..], "OK"),
        (&["-3", "--raw", "get", "greeting"], "hello"),
        (&["eval", "return 1", "0"], "ERR unknown command"),
    ] {
        let told = process::output(Command::new("redis-cli").args(["-p", port]).args(words))?;
        ensure!(told.contains(expected), "redis-cli {words:?} was told {told}, and not {expected}");
    }
    let keys = process::output(Command::new("redis-cli").args(["-p", port, "dbsize"]))?;
    let keys: u32 = keys.trim().parse().with_context(|| format!("DBSIZE was answered by {keys}"))?;
    ensure!(keys > KEYS, "{keys} keys are left of {KEYS} that were set, and one");
    let counted = served.stop()?;
    println!("the server counted: {}", counted.lines().take(3).collect::<String>());
    let scripts = workspace.root.join("experiments/serve-resp");
    let mut kills = Command::new("python3");
    kills.arg(scripts.join("kills.py")).arg(&program).arg(ROUNDS[usize::from(long)].to_string());
    process::run(&mut kills).context("nothing that was answered may be missing after a kill")?;
    if long {
        let mut suite = Command::new("python3");
        suite.arg(scripts.join("suite.py")).arg(&program).arg(workspace.target.join("redis-suite"));
        process::run(&mut suite)
            .context("Redis' own tests fail only where experiments/serve-resp says so")?;
    }
    Ok(())
}

/// The port that a server says it found.
fn port(said: &str) -> Result<&str> {
    let (_, behind) = said.split_once("tcp:127.0.0.1:").context("the server says where it listens")?;
    Ok(behind.split('"').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_in_what_the_server_says() {
        assert_eq!(port("{\n \"resp\": [\n  \"tcp:127.0.0.1:4711\"\n ]\n}\n").unwrap(), "4711");
        assert!(port("{}\n").is_err());
    }
}
