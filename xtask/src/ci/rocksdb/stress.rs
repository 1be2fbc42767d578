//! `db_stress` on a drive that loses its power, again and again: what was synced is there, and nothing out of order.
//!
//! RocksDB's own stress test, built from Debian's source package against Debian's library. It keeps what it expects in files of
//! the host, verifies all of it when it starts, and goes on. Each run ends by a power cut at a drawn request: the drive loses
//! what had not reached the media, and the process dies. Deliberately not here: kills (`kill`), which lose less; and files
//! without RocksDB, whose cuts `crates/table_store/tests/power_cuts` makes by the thousand.
//!
//! No key is deleted by `SingleDelete`. To know what must be there, db_stress takes the database's number of changes and makes
//! as many of those it has noted. A flush drops a `SingleDelete` together with its put, and RocksDB 7.8 numbers a recovered
//! database by the newest change in any table: if the dropped one was the newest, the number is too small by one, and db_stress
//! expects a key that was rightly deleted. That has nothing to do with where files lie: `from_source::counts_too_few` shows it
//! on the host's own.

use super::program::{Program, Rocks};
use anyhow::{Result, ensure};
use std::time::Instant;

/// Runs that end by a power cut, for each database (chosen: db_stress renames every MANIFEST and keeps it, and the target has
/// room for 200 files).
const CUTS: u64 = 100;
/// Databases (chosen: a thousand cuts, some minutes; a cut takes 0.3 seconds of a processor).
const DATABASES: u64 = 10;
/// Requests until a cut, at least and at most (chosen: from the first log to some compactions).
const REQUESTS: std::ops::Range<u64> = 30..400;
/// A copy of the last database's image, one cut older.
const OLDER: &str = "older.ocssd";
/// What the plugin says last.
const CUT: &str = "the power was cut";
/// Without faults of its own, and with manual flushes of the log announced: a lost end of the log is then allowed, and a hole
/// in it is not (RocksDB's own db_crashtest.py has these two for file systems that are durable at a sync).
const FLAGS: &[&str] = &[
    "--destroy_db_initially=0",
    "--sync_fault_injection=0",
    "--manual_wal_flush_one_in=1000000",
    "--clear_column_family_one_in=0",
    "--read_fault_one_in=0",
    "--reopen=0",
    "--ops_per_thread=1000000",
    "--threads=2",
    // See above: RocksDB itself loses count of single deletions.
    "--nooverwritepercent=0",
    // Many changes and small buffers: files come and go all the time.
    "--readpercent=5",
    "--prefixpercent=5",
    "--iterpercent=5",
    "--writepercent=60",
    "--delpercent=20",
    "--delrangepercent=5",
    "--max_key=1000",
    "--value_size_mult=32",
    "--write_buffer_size=65536",
    "--target_file_size_base=65536",
    "--max_bytes_for_level_base=262144",
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

/// Cuts the power of one database after another, again and again; then, as a control, brings an older image of the last one back,
/// which `db_stress` must notice.
///
/// Errors: `db_stress` finds what may not be, or does not find the older image, or cannot be built.
pub fn run(rocks: &Rocks, program: &Program) -> Result<()> {
    let (mut drawn, began) = (1, Instant::now());
    for database in 0..DATABASES {
        let stress = Stress { rocks, program, number: database };
        rocks.make_folder(&stress.expected())?;
        for cut in 0..CUTS {
            if cut + 1 == CUTS {
                rocks.copy(&stress.image(), OLDER)?;
            }
            let (code, told) = stress.cut_power(&mut drawn)?;
            ensure!(
                told.contains(CUT),
                "db_stress should run until the power is cut, but database {database} ended after {cut} cuts with {code:?} \
                 after printing:\n{told}"
            );
        }
    }
    let (last, cuts) = (Stress { rocks, program, number: DATABASES - 1 }, DATABASES * CUTS);
    rocks.copy(OLDER, &last.image())?;
    let (_, told) = last.cut_power(&mut drawn)?;
    ensure!(
        told.contains("older than"),
        "db_stress should see that the image is older, but printed:\n{told}"
    );
    let an_hour = cuts as f64 / began.elapsed().as_secs_f64() * 3_600.0;
    println!(
        "the power was cut {cuts} times, {an_hour:.0} an hour, and db_stress found nothing missing and nothing out of order"
    );
    Ok(())
}

/// One database, its image and what is expected of it.
struct Stress<'a> {
    rocks: &'a Rocks,
    program: &'a Program,
    number: u64,
}

impl Stress<'_> {
    fn image(&self) -> String {
        format!("stress-{}.ocssd", self.number)
    }

    fn expected(&self) -> String {
        format!("expected-{}", self.number)
    }

    /// One run, which ends by a cut.
    fn cut_power(&self, drawn: &mut u64) -> Result<(Option<i32>, String)> {
        // A step of a linear congruential generator (Knuth's MMIX).
        *drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let requests = REQUESTS.start + (*drawn >> 33) % (REQUESTS.end - REQUESTS.start);
        let store = format!("drive={},create=drive.toml,power_cut={requests}", self.image());
        let line = self.rocks.program(self.program, &store);
        line.args([format!("--expected_values_dir={}", self.expected())]).args(FLAGS).run()
    }
}
