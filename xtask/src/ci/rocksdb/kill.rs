//! `db_bench` is killed while it writes, and every key it reported is there: a flush survives the process.

use super::SMALL;
use super::program::{Program, Rocks};
use anyhow::{Context, Result, bail, ensure};
use std::io::Read;
use std::process::{Child, ChildStderr};

/// `db_bench` is killed after it reported so many keys (chosen: within a log, and behind some flushes); it reports at these.
const REPORTED: [u64; 3] = [600, 4_000, 10_000];
/// Tries until logs that keep nothing are seen to lose something: a table may be written just before a kill.
const CONTROLS_MAX: u32 = 3;

/// Runs the rounds, and the control.
///
/// Errors: a reported key is missing, the database does not open, or logs that keep nothing lost nothing.
pub fn run(rocks: &Rocks) -> Result<()> {
    for (round, reported) in REPORTED.into_iter().enumerate() {
        let counted = count_after(rocks, &format!("drive=killed-{round}.ocssd,create=drive.toml"), reported)?;
        ensure!(
            counted >= reported,
            "{reported} keys were put and flushed before the kill, and {counted} are there"
        );
        println!("killed after {reported} reported puts: {counted} keys are there");
    }
    for control in 0..CONTROLS_MAX {
        let image = format!("drive=control-{control}.ocssd,create=drive.toml,flush=never");
        let counted = count_after(rocks, &image, REPORTED[0])?;
        if counted < REPORTED[0] {
            println!("the same with flush=never: {counted} keys are there, as it should be");
            return Ok(());
        }
    }
    bail!(
        "with flush=never a kill should lose keys, or this test sees nothing; it lost none {CONTROLS_MAX} times"
    )
}

/// Kills `db_bench` after it reported so many puts, and counts the keys that are there.
pub fn count_after(rocks: &Rocks, image: &str, reported: u64) -> Result<u64> {
    let bench = rocks.program(&Program::DbBench, image).args(SMALL);
    let bench = bench.args(["--benchmarks=fillseq", "--num=100000000", "--sync=0"]).start()?;
    kill_after(bench, reported)?;
    let told = rocks.program(&Program::Ldb, image).args(["checkconsistency"]).succeeds()?;
    ensure!(told.contains("OK"), "after a kill ldb checkconsistency should say OK, but said:\n{told}");
    let told = rocks.program(&Program::Ldb, image).args(["dump", "--count_only", "--hex"]).succeeds()?;
    let counted = told.lines().find_map(|line| line.strip_prefix("Keys in range: ")?.trim().parse().ok());
    counted.with_context(|| format!("ldb should count the keys, but printed:\n{told}"))
}

/// Does `then` as soon as it has reported so many operations, and waits for its end. Returns what it printed.
pub fn told_after(mut bench: Child, reported: u64, then: impl FnOnce() -> Result<()>) -> Result<String> {
    let mut errors = bench.stderr.take().expect("it has a pipe");
    let mut told = until_reported(&mut errors, reported)?;
    then()?;
    let mut rest = Vec::new();
    errors.read_to_end(&mut rest).context("db_bench's progress cannot be read")?;
    bench.wait().context("db_bench does not end")?;
    told.push_str(&String::from_utf8_lossy(&rest));
    Ok(told)
}

/// What it printed until it had reported so many operations.
fn until_reported(errors: &mut ChildStderr, reported: u64) -> Result<String> {
    let mut told = String::new();
    let mark = format!("finished {reported} ops");
    let mut bytes = [0; 256];
    while !told.contains(&mark) {
        let read = errors.read(&mut bytes).context("db_bench's progress cannot be read")?;
        ensure!(read > 0, "db_bench ended before it reported {reported} operations:\n{told}");
        told.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    Ok(told)
}

/// Kills it as soon as it has reported so many operations.
fn kill_after(mut bench: Child, reported: u64) -> Result<()> {
    let mut errors = bench.stderr.take().expect("it has a pipe");
    until_reported(&mut errors, reported)?;
    bench.kill().context("db_bench cannot be killed")?;
    bench.wait().context("db_bench was killed and does not end")?;
    Ok(())
}
