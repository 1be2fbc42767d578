//! RocksDB's own programs, compiled from Debian's source package against Debian's library, which has its assertions.
//!
//! Deliberately not here: what is done with them (`stress`, `crash_test`).

use crate::{ci::packages, process};
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
G = $(S)/third-party/gtest-1.8.1/fused-src
STRESS = $(patsubst $(S)/db_stress_tool/%.cc,%.o,$(wildcard $(S)/db_stress_tool/*.cc)) testutil.o
DB_TEST = db_test_util.o mock_time_env.o testharness.o testutil.o gtest-all.o
VPATH = $(S)/db_stress_tool $(S)/db $(S)/test_util $(S)/env $(G)/gtest
CXXFLAGS = -std=c++17 -O1 -w -I$(S) -I$(S)/include -isystem $(G) -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DOS_LINUX \\
  -DGFLAGS=1 -DSNAPPY -DZLIB -DBZIP2 -DLZ4 -DZSTD
LIBRARIES = -lrocksdb -lgflags -lpthread -ldl -l:libzstd.so.1
db_stress: $(STRESS)
\tg++ -o $@ $^ $(LIBRARIES)
env_basic_test: env_basic_test.o testharness.o testutil.o gtest-all.o
\tg++ -o $@ $^ $(LIBRARIES)
db_basic_test db_wal_test fault_injection_test: %: %.o $(DB_TEST)
\tg++ -o $@ $^ $(LIBRARIES)
%.o: %.cc
\tg++ $(CXXFLAGS) -c -o $@ $<
";
/// A program that shows how RocksDB counts its changes.
const SINGLE_DELETE: &str = include_str!("single_delete.cc");

/// Fetches RocksDB and compiles one of its programs, `db_stress` or one of its tests, unless that was done before. Returns where
/// it is.
///
/// Errors: a package is missing, the source cannot be fetched, or does not compile.
pub fn build(folder: &Path, name: &str) -> Result<PathBuf> {
    packages::ensure_installed(packages::STRESS_BUILD)?;
    let program = folder.join(name);
    if !program.is_file() {
        for place in ["lists/partial", "none"] {
            fs::create_dir_all(folder.join(place))
                .with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        fetch(folder)?;
        fs::write(folder.join("Makefile"), MAKEFILE)?;
        process::run(Command::new("make").current_dir(folder).args(["-j2", name]))
            .with_context(|| format!("{name} cannot be built"))?;
    }
    ensure!(program.is_file(), "{name} was built, and is not at {}", program.display());
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

/// Shows that RocksDB counts its changes wrongly behind a single deletion, on files of the host and without any cut. Should a
/// later version count them all, `--nooverwritepercent` can go.
///
/// Errors: it counts otherwise.
pub fn counts_too_few(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    fs::write(folder.join("single_delete.cc"), SINGLE_DELETE)?;
    let mut compile = Command::new("g++");
    compile.current_dir(folder).args([
        "-std=c++17",
        "-w",
        "-o",
        "single_delete",
        "single_delete.cc",
        "-lrocksdb",
    ]);
    process::run(&mut compile).context("single_delete.cc cannot be compiled")?;
    for (how, expected) in
        [("plain", "before 4, after 4, b is gone"), ("single", "before 4, after 3, b is gone")]
    {
        let database = folder.join(format!("{how}.db"));
        if database.exists() {
            fs::remove_dir_all(&database)
                .with_context(|| format!("{} cannot be removed", database.display()))?;
        }
        let told = process::output(Command::new(folder.join("single_delete")).arg(&database).arg(how))?;
        ensure!(
            told.trim() == expected,
            "after a {how} deletion RocksDB should say \"{expected}\", but said: {told}"
        );
    }
    println!(
        "on files of the host, RocksDB forgets the number of a single deletion that a flush has dropped"
    );
    Ok(())
}

/// The script that kills `db_stress`; there once something was built.
pub fn crash_test(folder: &Path) -> PathBuf {
    folder.join(FOLDER).join("tools/db_crashtest.py")
}
