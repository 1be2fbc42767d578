//! RocksDB's `db_crashtest.py`: `db_stress` with drawn options is killed again and again, and verifies what it finds.
//!
//! *blackbox* kills by SIGKILL, *whitebox* at points that RocksDB's developers chose. A flush survives the process, so nothing may
//! be missing; with logs that keep nothing, the control, something must be. Deliberately not here: power cuts (`stress`).

use super::program::{Program, Rocks};
use anyhow::{Result, ensure};
use std::path::Path;

/// Seconds of each run (chosen: some kills each).
const SECONDS: u64 = 45;
/// Seconds until a kill of the black box.
const INTERVAL_SECONDS: u64 = 10;
/// Small files, one family of columns; and of what the script draws otherwise, what would allow a lost end of a log.
const FLAGS: &[&str] = &[
    "--simple",
    "--threads=2",
    "--max_key=2000",
    "--value_size_mult=32",
    "--write_buffer_size=262144",
    "--target_file_size_base=262144",
    "--compression_type=none",
    "--bottommost_compression_type=none",
    "--sync=0",
    "--disable_wal=0",
    "--sync_fault_injection=0",
    "--manual_wal_flush_one_in=0",
    // The plugin maps no files, and says so.
    "--mmap_read=0",
];

/// Kills `db_stress` from outside.
///
/// Errors: something was missing.
pub fn blackbox(rocks: &Rocks, program: &Program, script: &Path) -> Result<()> {
    killed(rocks, (program, script), "blackbox", &format!("--interval={INTERVAL_SECONDS}"))
}

fn killed(rocks: &Rocks, (program, script): (&Program, &Path), kind: &str, how: &str) -> Result<()> {
    let line = rocks.crash_test(program, script, kind, &format!("drive={kind}.ocssd,create=drive.toml"))?;
    let told = line.args([how, &format!("--duration={SECONDS}")]).args(FLAGS).succeeds()?;
    let runs = told.matches("Running db_stress").count();
    ensure!(runs > 1, "db_crashtest.py {kind} should run db_stress several times, but printed:\n{told}");
    println!("db_crashtest.py {kind} ran db_stress {runs} times, and it found everything");
    Ok(())
}

/// What is too long for every run: `db_stress` that kills itself, and the control.
///
/// Errors: something was missing, or the control misses nothing.
pub fn whitebox_and_control(rocks: &Rocks, program: &Program, script: &Path) -> Result<()> {
    killed(rocks, (program, script), "whitebox", "--random_kill_odd=3000")?;
    let killed = format!("--interval={INTERVAL_SECONDS}");
    let store = "drive=forgetful.ocssd,create=drive.toml,flush=never";
    let line = rocks.crash_test(program, script, "blackbox", store)?;
    let told = line.args([killed.as_str(), &format!("--duration={SECONDS}")]).args(FLAGS).fails()?;
    ensure!(
        told.contains("erification failed"),
        "with flush=never db_stress should miss something, but db_crashtest.py printed:\n{told}"
    );
    println!("the same with flush=never: db_stress misses something, as it should");
    Ok(())
}
