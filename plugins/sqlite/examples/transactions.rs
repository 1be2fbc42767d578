//! Transactions of SQLite on one drive, by batches, by rollback journals and by write-ahead logs: how many a second, and how many
//! bytes each costs. Virtual time, so that the same numbers come back.
//!
//! `cargo run --release --example transactions -- DRIVE TRANSACTIONS ROWS [OPTION..]` prints a table of tab-separated values: each
//! transaction replaces ROWS rows of 400 bytes among 50 000. OPTION is another option of each volume, as `set.media.read=50us`.

use ocssd_sqlite::{BLOCK_BYTES, DriveVolume, FileKind};
use rusqlite::{Connection, OpenFlags};
use std::error::Error;
use std::sync::Arc;

/// Rows of the table.
const KEYS: i64 = 50_000;

/// A target, and how SQLite keeps a commit on it.
const WAYS: [(&str, &str, &str); 7] = [
    ("batch on ox-block", "target=ox-block,commit=batch", "delete"),
    ("batch on ox-block, durable at flush", "target=ox-block,commit=batch,durability=flush", "delete"),
    (
        "rollback journal on ox-block, durable at flush",
        "target=ox-block,commit=plain,durability=flush",
        "delete",
    ),
    ("write-ahead log on ox-block, durable at flush", "target=ox-block,commit=plain,durability=flush", "wal"),
    ("rollback journal on pblk", "target=pblk", "delete"),
    ("rollback journal on pblk, persistent", "target=pblk", "persist"),
    ("write-ahead log on pblk", "target=pblk", "wal"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [drive, transactions, rows, options @ ..] = &arguments[..] else {
        return Err("expected DRIVE TRANSACTIONS ROWS [OPTION..], as in qemu 2000 1".into());
    };
    let (transactions, rows) = (transactions.parse()?, rows.parse()?);
    println!(
        "way\ttransactions\tseconds\tper_second\tsqlite_bytes\ttarget_bytes\tmedia_bytes\tflushes\tjournals\tbatches"
    );
    for (nth, (name, target, mode)) in WAYS.iter().enumerate() {
        let more = options.iter().map(|option| format!(",{option}")).collect::<String>();
        let volume = Arc::new(DriveVolume::open(&format!("drive={drive},{target}{more}"))?);
        let vfs = format!("way{nth}");
        ocssd_sqlite::register(&vfs, &volume)?;
        println!("{name}\t{}", run(&volume, &vfs, mode, transactions, rows)?);
    }
    Ok(())
}

/// Fills a table, runs transactions and says what they cost, each.
fn run(
    volume: &DriveVolume,
    vfs: &str,
    mode: &str,
    transactions: i64,
    rows: i64,
) -> Result<String, Box<dyn Error>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags_and_vfs("bench.db", flags, vfs)?;
    connection.query_row(&format!("PRAGMA journal_mode={mode}"), [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA cache_size=-64000; CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)")?;
    let fill = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)
        INSERT INTO kv SELECT i, zeroblob(400) FROM n";
    connection.execute(fill, [KEYS])?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let before = volume.counts()?;
    let mut replace = connection.prepare("INSERT OR REPLACE INTO kv VALUES(?1, ?2)")?;
    let mut prng = ocssd_base::Prng::new(1);
    for _ in 0..transactions {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..rows {
            let key = i64::try_from(prng.below(KEYS.unsigned_abs()))?;
            replace.execute((key, [u8::try_from(prng.below(256))?; 400]))?;
        }
        connection.execute_batch("COMMIT")?;
    }
    // What a log still owes the database is part of the cost.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let after = volume.counts()?;
    let seconds = after.now.saturating_since(before.now).0 as f64 / 1e9;
    let count = transactions.unsigned_abs();
    let each = |before: u64, after: u64| (after - before) / count;
    let sqlite =
        |counts: &ocssd_sqlite::Counters| FileKind::ALL.iter().map(|&kind| counts.of(kind).bytes).sum();
    let (block, written) = (BLOCK_BYTES as u64, |counts: &ocssd_sqlite::Counters| counts.blocks_written);
    let media =
        |counts: &ocssd_sqlite::DriveCounts| counts.flash.sectors_written + counts.flash.sectors_copied;
    Ok(format!(
        "{transactions}\t{seconds:.3}\t{:.0}\t{}\t{}\t{}\t{:.2}\t{}\t{}",
        transactions as f64 / seconds,
        each(sqlite(&before.files), sqlite(&after.files)),
        each(written(&before.files) * block, written(&after.files) * block),
        each(media(&before) * block, media(&after) * block),
        (after.files.flushes - before.files.flushes) as f64 / count as f64,
        after.files.of(FileKind::Journal).created - before.files.of(FileKind::Journal).created,
        after.files.batches - before.files.batches
    ))
}
