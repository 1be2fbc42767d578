//! `db_bench` is killed while it writes, and every key it reported is there: a flush survives the process.

use super::SMALL;
use super::program::{Program, Rocks};
use anyhow::{Context, Result, ensure};
use std::io::Read;
use std::process::Child;

/// Kills (chosen: some seconds).
const ROUNDS: u32 = 3;
/// Each round's is killed after `db_bench` reported so many keys; it reports at these.
const REPORTED: [u64; 3] = [600, 4_000, 10_000];

/// Runs the rounds.
///
/// Errors: a reported key is missing, or the database does not open.
pub fn run(rocks: &Rocks) -> Result<()> {
    for round in 0..ROUNDS {
        let reported = REPORTED[usize::try_from(round).expect("few rounds")];
        let image = format!("drive=killed-{round}.ocssd,create=drive.toml");
        let bench = rocks.program(Program::DbBench, &image).args(SMALL);
        let bench = bench.args(["--benchmarks=fillseq", "--num=100000000", "--sync=0"]).start()?;
        kill_after(bench, reported)?;
        let told = rocks.program(Program::Ldb, &image).args(["checkconsistency"]).succeeds()?;
        ensure!(told.contains("OK"), "after a kill ldb checkconsistency should say OK, but said:\n{told}");
        let told = rocks.program(Program::Ldb, &image).args(["dump", "--count_only", "--hex"]).succeeds()?;
        let counted =
            told.lines().find_map(|line| line.strip_prefix("Keys in range: ")?.trim().parse::<u64>().ok());
        let counted = counted.with_context(|| format!("ldb should count the keys, but printed:\n{told}"))?;
        ensure!(
            counted >= reported,
            "{reported} keys were put and flushed before the kill, and {counted} are there"
        );
        println!("killed after {reported} reported puts: {counted} keys are there");
    }
    Ok(())
}

/// Kills it as soon as it has reported so many operations.
fn kill_after(mut bench: Child, reported: u64) -> Result<()> {
    let mut told = String::new();
    let mut errors = bench.stderr.take().expect("it has a pipe");
    let mark = format!("finished {reported} ops");
    let mut bytes = [0; 256];
    while !told.contains(&mark) {
        let read = errors.read(&mut bytes).context("db_bench's progress cannot be read")?;
        ensure!(read > 0, "db_bench ended before it reported {reported} operations:\n{told}");
        told.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    bench.kill().context("db_bench cannot be killed")?;
    bench.wait().context("db_bench was killed and does not end")?;
    Ok(())
}
