//! The RocksDB plugin, by RocksDB's own programs: Debian's `db_bench`, `ldb` and `sst_dump`, unmodified.
//!
//! Each run is a process of its own that loads the plugin. Deliberately not here: speed, which `docs/rocksdb.md` shows how to
//! measure.

mod crash_test;
mod from_source;
mod kill;
mod own_tests;
mod program;
mod refusals;
mod served;
mod stress;

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use program::{Program, Rocks};
use std::path::{Path, PathBuf};

/// A drive on which little takes long and much happens: chunks of 1 MiB, so that files are many chunks.
const DRIVE: &str = "preset = \"westlake\"
payload = \"bytes\"
groups = 2
pus_per_group = 2
chunks_per_pu = 400
sectors_per_chunk = 256
ws_min = 8
ws_opt = 8
mw_cunits = 16
[media]
planes = 1
sectors_per_page = 8
";

/// Buffers and tables so small that a short run has flushes, compactions and many files.
const SMALL: &[&str] = &[
    "--write_buffer_size=1048576",
    "--target_file_size_base=1048576",
    "--max_bytes_for_level_base=4194304",
    "--key_size=16",
    "--value_size=400",
    "--compression_type=none",
    "--cache_size=0",
    "--bloom_bits=10",
    "--seed=42",
];

/// Images that are made of it: tables on raw flash, and on a block device.
const IMAGES: [&str; 2] = [
    "drive=image.ocssd,create=drive.toml,placement=vertical",
    "drive=blocks.ocssd,create=drive.toml,target=table-block,over=pblk",
];

/// Runs it.
///
/// Errors: a program did not find what it wrote, or was not refused in words what it must be refused.
pub fn run(workspace: &Workspace, long: bool) -> Result<()> {
    let rocks = Rocks::new(workspace.target.join("rocksdb"), build(workspace)?)?;
    rocks.write("drive.toml", DRIVE)?;
    in_memory(&rocks)?;
    by_maps(&rocks)?;
    for image in IMAGES {
        on_an_image(&rocks, image)?;
    }
    kill::run(&rocks)?;
    refusals::run(&rocks)?;
    served::run(&rocks, &workspace.program()?)?;
    let folder = workspace.target.join("rocksdb-source");
    let program = Program::DbStress(from_source::build(&folder, "db_stress")?);
    crash_test::blackbox(&rocks, &program, &from_source::crash_test(&folder))?;
    if long { from_its_source(&folder, &rocks, &program) } else { Ok(()) }
}

/// What RocksDB's own tests say of the file system, and what its stress test finds when processes are killed, and when the
/// drive loses its power.
fn from_its_source(folder: &Path, rocks: &Rocks, program: &Program) -> Result<()> {
    let told = rocks.env_tests(&from_source::build(folder, "env_basic_test")?, "drive:drive.toml")?;
    ensure!(
        told.contains("[  PASSED  ] 8 tests."),
        "all 8 tests of an Env should pass, but env_basic_test printed:\n{told}"
    );
    own_tests::run(rocks, folder)?;
    from_source::counts_too_few(folder)?;
    crash_test::whitebox_and_control(rocks, program, &from_source::crash_test(folder))?;
    stress::run(rocks, program)
}

/// Builds the plugin, a workspace of its own, and runs its tests: what C++ sees of a panic.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let manifest = "plugins/rocksdb/Cargo.toml";
    for (what, failed) in
        [("build", "the plugin could not be built"), ("test", "the plugin's own tests fail")]
    {
        let mut build = workspace.cargo();
        build.args([what, "--locked", "--manifest-path", manifest, "--target-dir"]).arg(&workspace.target);
        process::run(&mut build).context(failed)?;
    }
    Ok(workspace.target.join("debug/libocssd_rocksdb.so"))
}

/// Every benchmark that reads what it wrote, on a fresh drive in memory.
fn in_memory(rocks: &Rocks) -> Result<()> {
    let bench = rocks.program(&Program::DbBench, "drive=drive.toml");
    let told = bench.args(SMALL).args([
        "--num=20000",
        "--threads=2",
        "--benchmarks=fillseq,readseq,readrandom,overwrite,readwhilewriting,compact,readrandom,mixgraph,levelstats",
        "--mix_get_ratio=0.8",
        "--mix_put_ratio=0.2",
        "--mix_seek_ratio=0",
    ]);
    let told = told.succeeds()?;
    let found = told.matches("(20000 of 20000 found)").count();
    ensure!(found >= 2, "db_bench should find all 20000 keys twice, but printed:\n{told}");
    Ok(())
}

/// Tables are read by maps; a file that may not be held in memory is refused in a sentence.
fn by_maps(rocks: &Rocks) -> Result<()> {
    let bench = |store| {
        let bench = rocks.program(&Program::DbBench, store).args(SMALL);
        bench.args(["--num=20000", "--mmap_read=1", "--benchmarks=fillseq,readrandom"])
    };
    let told = bench("drive=drive.toml").succeeds()?;
    ensure!(told.contains("(20000 of 20000 found)"), "not all keys were found by maps:\n{told}");
    let told = bench("drive=drive.toml,maps_mib=0").fails()?;
    ensure!(told.contains("allow more by maps_mib"), "maps should be refused by their bound, but:\n{told}");
    Ok(())
}

/// What one process wrote the next ones find, and find sound.
fn on_an_image(rocks: &Rocks, image: &str) -> Result<()> {
    let write = rocks.program(&Program::DbBench, image).args(SMALL);
    write.args(["--num=20000", "--benchmarks=fillseq,overwrite"]).succeeds()?;
    let read = rocks.program(&Program::DbBench, image).args(SMALL);
    let told = read.args(["--num=20000", "--use_existing_db=1", "--benchmarks=readrandom"]).succeeds()?;
    ensure!(
        told.contains("(20000 of 20000 found)"),
        "{image}: not all keys were found after reopening:\n{told}"
    );
    let told = rocks.program(&Program::Ldb, image).args(["checkconsistency"]).succeeds()?;
    ensure!(told.contains("OK"), "{image}: ldb checkconsistency should say OK, but said:\n{told}");
    let told = rocks.program(&Program::SstDump, image).args(["--file=/db", "--command=verify"]).succeeds()?;
    let (files, sound) = (told.matches("/db/").count(), told.matches("The file is ok").count());
    ensure!(files > 4 && sound > 4, "{image}: sst_dump should find every table ok, but printed:\n{told}");
    Ok(())
}
