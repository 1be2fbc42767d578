//! What cannot be is refused in a sentence, and nothing is lost by it.

use super::SMALL;
use super::program::{Program, Rocks};
use anyhow::{Context, Result, ensure};
use std::io::Read;

/// A client of RocksDB that fills a drive.
const NO_SPACE: &str = include_str!("no_space.cc");

/// Runs all of them.
///
/// Errors: something was not refused, or not in the words a user needs.
pub fn run(rocks: &Rocks) -> Result<()> {
    for (store, part) in [
        ("clock=wall", "names no drive"),
        ("drive=none.ocssd", "no preset and no file"),
        ("drive=drive.toml,clock=sun", "wall or virtual"),
        ("drive=drive.toml,color=blue", "no option \"color\""),
        ("drive=drive.toml,target=pblk", "a store needs tables"),
        ("drive=tiny,on=pu:0", "needs"),
    ] {
        let told =
            rocks.program(&Program::DbBench, store).args(["--benchmarks=fillseq", "--num=10"]).fails()?;
        ensure!(
            told.contains(part),
            "lightlsm://{store} should be refused with \"{part}\", but db_bench printed:\n{told}"
        );
    }
    options_of_a_file(rocks)?;
    second_process(rocks)?;
    torn_image(rocks)?;
    full_drive(rocks)?;
    full_compaction(rocks)
}

/// Options of store and target are in a file; one that does not exist is told with its line.
fn options_of_a_file(rocks: &Rocks) -> Result<()> {
    rocks.write(
        "store.options",
        "# options of a store\ndrive = drive.toml\nplacement = \"groups:2\"\nclock = wall\n",
    )?;
    let store = "options=store.options,clock=virtual";
    let bench = rocks.program(&Program::DbBench, store).args(SMALL);
    let told = bench.args(["--num=2000", "--benchmarks=fillseq,readrandom"]).succeeds()?;
    ensure!(
        told.contains("(2000 of 2000 found)"),
        "db_bench should find all keys on lightlsm://{store}, but printed:\n{told}"
    );
    rocks.write("store.options", "drive = drive.toml\nplacement = diagonal\n")?;
    let told = rocks.program(&Program::DbBench, store).args(["--benchmarks=fillseq", "--num=10"]).fails()?;
    ensure!(
        told.contains("\"diagonal\""),
        "a placement of a file should be refused, but db_bench printed:\n{told}"
    );
    Ok(())
}

/// An image that was copied in part, and a file that never was one: both are refused, and stay as they are.
fn torn_image(rocks: &Rocks) -> Result<()> {
    let image = "drive=whole.ocssd,create=drive.toml,set.chunks_per_pu=60,tables_max=48";
    let bench = rocks.program(&Program::DbBench, image).args(SMALL);
    bench.args(["--num=2000", "--benchmarks=fillseq"]).succeeds()?;
    rocks.copy("whole.ocssd", "torn.ocssd")?;
    rocks.shorten("torn.ocssd", 4096)?;
    rocks.write("other.ocssd", &"this is no image of a drive\n".repeat(1_000))?;
    for (name, part) in [("torn.ocssd", "it is truncated: "), ("other.ocssd", "other.ocssd")] {
        let before = rocks.content(name)?;
        for program in [Program::DbBench, Program::Ldb] {
            let line = rocks.program(&program, &format!("drive={name}"));
            let arguments: &[&str] = if program == Program::Ldb {
                &["checkconsistency"]
            } else {
                &["--benchmarks=readseq", "--num=10"]
            };
            let told = line.args(arguments).fails()?;
            ensure!(
                told.contains(part),
                "{name} should be refused with \"{part}\", but {program:?} printed:\n{told}"
            );
        }
        ensure!(rocks.content(name)? == before, "{name} was refused and is another one");
    }
    Ok(())
}

/// One process has the image, and another wants it.
fn second_process(rocks: &Rocks) -> Result<()> {
    let image = "drive=shared.ocssd,create=drive.toml";
    let bench = rocks.program(&Program::DbBench, image).args(SMALL);
    let mut first = bench.args(["--benchmarks=fillseq", "--num=100000000"]).start()?;
    let mut errors = first.stderr.take().expect("it has a pipe");
    errors.read_exact(&mut [0; 64]).context("db_bench should report progress")?;
    let second = rocks.program(&Program::Ldb, image).args(["checkconsistency"]).fails();
    first.kill().context("db_bench cannot be killed")?;
    first.wait().context("db_bench was killed and does not end")?;
    let told = second?;
    ensure!(
        told.contains("in use by another process"),
        "ldb should be told who has the image, but printed:\n{told}"
    );
    Ok(())
}

/// A database outgrows its drive: RocksDB is told, and what it has stays.
fn full_drive(rocks: &Rocks) -> Result<()> {
    let image = "drive=full.ocssd,create=drive.toml,set.chunks_per_pu=60,tables_max=48";
    let bench = rocks.program(&Program::DbBench, image).args(SMALL);
    let told = bench.args(["--benchmarks=fillrandom", "--num=1000000"]).fails()?;
    ensure!(told.contains("No space"), "a full drive should be told as such, but db_bench printed:\n{told}");
    let told = rocks
        .program(&Program::Ldb, "drive=full.ocssd,tables_max=48")
        .args(["checkconsistency"])
        .succeeds()?;
    ensure!(told.contains("OK"), "on a full drive ldb checkconsistency should say OK, but said:\n{told}");
    Ok(())
}

/// A compaction outgrows its drive; RocksDB goes on once tables were dropped.
fn full_compaction(rocks: &Rocks) -> Result<()> {
    let told = rocks.client("no_space", NO_SPACE, "drive=drive.toml,set.chunks_per_pu=60,tables_max=150")?;
    for part in ["compaction: no space", "every key is there", "the compaction succeeds"] {
        ensure!(told.contains(part), "a full drive should come to \"{part}\", but no_space printed:\n{told}");
    }
    Ok(())
}
