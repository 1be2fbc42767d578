//! `db_stress` on a drive that loses its power, again and again: what was synced is there, and nothing out of order.
//!
//! RocksDB's own stress test, built from Debian's source package against Debian's library. It keeps what it expects in files of
//! the host, verifies all of it when it starts, and goes on. Each run ends by a power cut at a drawn request: the drive loses
//! what had not reached the media, and the process dies. Deliberately not here: kills (`kill`), which lose less.

use super::program::{Program, Rocks};
use crate::ci::packages;
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source package, of the version that the library has.
const SOURCE: &str = "rocksdb=7.8.3-2";
/// Its folder once it is unpacked.
const FOLDER: &str = "rocksdb-7.8.3";
/// What compiles it: as Debian's library was, with assertions.
const MAKEFILE: &str = "S = rocksdb-7.8.3
OBJS = $(patsubst $(S)/db_stress_tool/%.cc,%.o,$(wildcard $(S)/db_stress_tool/*.cc)) testutil.o
VPATH = $(S)/db_stress_tool $(S)/test_util
CXXFLAGS = -std=c++17 -O1 -w -I$(S) -I$(S)/include -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DOS_LINUX -DGFLAGS=1 \\
  -DSNAPPY -DZLIB -DBZIP2 -DLZ4 -DZSTD
db_stress: $(OBJS)
\tg++ -o $@ $^ -lrocksdb -lgflags -lpthread -ldl -l:libzstd.so.1
";
/// Runs that end by a power cut (chosen: some minutes; two seconds of a processor each).
const CUTS: u64 = 100;
/// Requests until a cut, at least and at most (chosen: from the first log to some compactions).
const REQUESTS: std::ops::Range<u64> = 60..1_000;
/// The image.
const IMAGE: &str = "stress.ocssd";
/// What the plugin says last.
const CUT: &str = "the power was cut";
/// Without faults of its own, and with manual flushes of the log announced: a lost end of the log is then allowed, and a hole
/// in it is not (RocksDB's own db_crashtest.py has these two for file systems that are durable at a sync).
const FLAGS: &[&str] = &[
    "--expected_values_dir=expected",
    "--destroy_db_initially=0",
    "--sync_fault_injection=0",
    "--manual_wal_flush_one_in=1000000",
    "--clear_column_family_one_in=0",
    "--read_fault_one_in=0",
    "--reopen=0",
    "--ops_per_thread=1000000",
    "--threads=2",
    "--max_key=5000",
    "--value_size_mult=32",
    "--write_buffer_size=262144",
    "--target_file_size_base=262144",
    "--max_bytes_for_level_base=1048576",
    "--compression_type=none",
    "--bottommost_compression_type=none",
    "--column_families=1",
    "--checkpoint_one_in=0",
    "--backup_one_in=0",
    "--get_live_files_one_in=0",
    "--get_sorted_wal_files_one_in=0",
    "--sync_wal_one_in=200",
    "--flush_one_in=2000",
    "--test_batches_snapshots=0",
    "--progress_reports=0",
];

/// Cuts the power again and again; then, as a control, brings an older image back, which `db_stress` must notice.
///
/// Errors: `db_stress` finds what may not be, or does not find the older image, or cannot be built.
pub fn run(workspace: &Workspace, rocks: &Rocks) -> Result<()> {
    packages::ensure_installed(packages::STRESS_BUILD)?;
    let program = Program::DbStress(build(&workspace.target.join("rocksdb-source"))?);
    rocks.make_folder("expected")?;
    let mut drawn = 1;
    for cut in 0..CUTS {
        if cut + 1 == CUTS {
            rocks.copy(IMAGE, "older.ocssd")?;
        }
        let (code, told) = cut_power(rocks, &program, &mut drawn)?;
        ensure!(
            told.contains(CUT),
            "db_stress should run until the power is cut, but after {cut} cuts ended with {code:?} after printing:\n{told}"
        );
    }
    rocks.copy("older.ocssd", IMAGE)?;
    let (_, told) = cut_power(rocks, &program, &mut drawn)?;
    ensure!(
        told.contains("older than"),
        "db_stress should see that the image is older, but printed:\n{told}"
    );
    println!("the power was cut {CUTS} times, and db_stress found nothing missing and nothing out of order");
    Ok(())
}

/// One run, which ends by a cut.
fn cut_power(rocks: &Rocks, program: &Program, drawn: &mut u64) -> Result<(Option<i32>, String)> {
    // A step of a linear congruential generator (Knuth's MMIX).
    *drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let requests = REQUESTS.start + (*drawn >> 33) % (REQUESTS.end - REQUESTS.start);
    let store = format!("drive={IMAGE},create=drive.toml,power_cut={requests}");
    rocks.program(program, &store).args(FLAGS).run()
}

/// Fetches and compiles it, unless that was done before.
fn build(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("db_stress");
    if !program.is_file() {
        for place in ["lists/partial", "none"] {
            fs::create_dir_all(folder.join(place))
                .with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        fetch(folder)?;
        fs::write(folder.join("Makefile"), MAKEFILE)?;
        process::run(Command::new("make").current_dir(folder).args(["-j2", "db_stress"]))
            .context("db_stress cannot be built")?;
    }
    ensure!(program.is_file(), "db_stress was built, and is not at {}", program.display());
    Ok(program)
}

/// The source package, by apt with lists of its own: the machine's are left alone.
fn fetch(folder: &Path) -> Result<()> {
    if folder.join(FOLDER).is_dir() {
        return Ok(());
    }
    let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let line = format!("deb-src [signed-by={keyring}] http://deb.debian.org/debian bookworm main\n");
    fs::write(folder.join("sources.list"), line)?;
    let apt = || {
        let mut command = Command::new("apt-get");
        command.current_dir(folder).args(["-qq", "-o"]);
        command.arg(format!("Dir::Etc::sourcelist={}", folder.join("sources.list").display())).arg("-o");
        command.arg(format!("Dir::Etc::sourceparts={}", folder.join("none").display())).arg("-o");
        command.arg(format!("Dir::State::lists={}", folder.join("lists").display()));
        command
    };
    process::run(apt().arg("update")).context("the list of Debian's sources cannot be fetched")?;
    process::run(apt().args(["source", "--download-only", SOURCE]))
        .context("RocksDB's source cannot be fetched")?;
    process::run(Command::new("tar").current_dir(folder).args(["xzf", "rocksdb_7.8.3.orig.tar.gz"]))
        .context("RocksDB's source cannot be unpacked")
}
