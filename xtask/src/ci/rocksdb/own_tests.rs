//! RocksDB's own tests of databases, on a store: those that a file system of its own kind can pass, and why it fails the others.
//!
//! What is left out is run as well, each test by itself, and must fail as it is said here: a list of failures that nobody looks at
//! grows old. Deliberately not here: tests of an `Env` (`program`), of which all pass.

use super::{from_source, program::Rocks};
use anyhow::{Result, ensure};
use std::path::Path;

/// A drive in memory with room for the files of databases that tests leave behind.
const STORE: &str = "drive=drive.toml,tables_max=600";

/// A program of tests.
struct Suite {
    name: &'static str,
    /// Tests that pass.
    passing: u32,
    /// Those that fail, and what they say.
    failing: &'static [(&'static str, &'static str)],
}

const SUITES: [Suite; 3] = [
    Suite { name: "db_basic_test", passing: 276, failing: &[] },
    Suite {
        name: "db_wal_test",
        passing: 1_311,
        failing: &[
            // It asks for the host's file system by name, and looks for its database there.
            ("DBWALTest.WALWithChecksumHandoff", "Column family not found: pikachu"),
            // It makes a log anew under its name while the database writes it. POSIX cuts the file that is open; here the new one
            // takes its place, and the old one is gone.
            ("DBWALTest.kPointInTimeRecoveryCFConsistency", "no table or log has this name"),
        ],
    },
    Suite {
        name: "fault_injection_test",
        passing: 12,
        failing: &[
            // They ask for the host's file system by name, where the folder of the database is not.
            ("FaultTest/FaultInjectionTest.NoDuplicateTrailingEntries/0", "No such file or directory"),
            ("FaultTest/FaultInjectionTest.NoDuplicateTrailingEntries/1", "No such file or directory"),
        ],
    },
];

/// Runs all of them; `folder` is where RocksDB's programs are built.
///
/// Errors: a test fails that should pass, or one that should fail does otherwise.
pub fn run(rocks: &Rocks, folder: &Path) -> Result<()> {
    for Suite { name, passing, failing } in &SUITES {
        let program = from_source::build(folder, name)?;
        let names: Vec<&str> = failing.iter().map(|&(test, _)| test).collect();
        let told = rocks.own_tests(&program, STORE, &format!("-{}", names.join(":")))?.succeeds()?;
        ensure!(
            told.contains(&format!("[  PASSED  ] {passing} tests.")),
            "{passing} tests of {name} should pass, but it printed:\n{told}"
        );
        for (test, says) in *failing {
            let (code, told) = rocks.own_tests(&program, STORE, test)?.run()?;
            ensure!(
                code != Some(0) && told.contains(says),
                "{test} should fail and say \"{says}\", but ended with {code:?} after printing:\n{told}"
            );
        }
        println!("{name}: {passing} tests pass, {} fail as they must", failing.len());
    }
    Ok(())
}
