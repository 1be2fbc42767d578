//! How SQLite's commits reach the drive, and what is refused.

use crate::bank::{Bank, Way, alone, connect, judge, register};
use ocssd_sqlite::{Commit, DriveVolume, ErrorKind, FileKind, Planted};
use rusqlite::Connection;
use std::sync::Arc;

fn bank(options: &'static str, journal_mode: &'static str) -> Bank {
    Bank::open(Way {
        options,
        journal_mode,
        planted: Planted::Nothing,
        recoveries_cut: 0,
        transfer_bytes: 1_500,
    })
}

#[test]
fn sqlite_was_compiled_with_batch_atomic_writes() {
    let connection = Connection::open_in_memory().unwrap();
    let sql = "SELECT sqlite_compileoption_used('ENABLE_BATCH_ATOMIC_WRITE')";
    let is_used: bool = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert!(
        is_used,
        "set LIBSQLITE3_FLAGS=-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE (plugins/sqlite/.cargo/config.toml does)"
    );
}

#[test]
fn a_commit_is_a_batch_and_no_journal_is_written() {
    let _alone = alone();
    let bank = bank("drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50", "delete");
    assert_eq!(bank.volume.commit(), Commit::Batch);
    // The transaction that made the tables met an empty database, for which SQLite uses a journal.
    let before = bank.volume.counts().unwrap().files;
    assert_eq!((before.of(FileKind::Journal).created, before.batches), (1, 0));
    assert_eq!(bank.run(50, 3), 50);
    let after = bank.volume.counts().unwrap().files;
    assert_eq!(after.of(FileKind::Journal), before.of(FileKind::Journal), "a journal was written");
    assert_eq!(after.of(FileKind::Wal).writes, 0);
    assert_eq!((after.batches, after.batches_too_long), (50, 0));
    judge(&bank.connection, 50).unwrap();
}

#[test]
fn without_batches_every_commit_has_a_journal() {
    let _alone = alone();
    let bank = bank("drive=tiny,set.chunks_per_pu=64,commit=plain", "delete");
    let before = bank.volume.counts().unwrap().files;
    assert_eq!(bank.run(50, 3), 50);
    let after = bank.volume.counts().unwrap().files;
    assert_eq!(after.of(FileKind::Journal).created - before.of(FileKind::Journal).created, 50);
    assert_eq!(after.of(FileKind::Journal).deleted - before.of(FileKind::Journal).deleted, 50);
    assert_eq!(after.batches, 0);
    judge(&bank.connection, 50).unwrap();
}

#[test]
fn a_commit_that_is_longer_than_a_transaction_gets_a_journal() {
    let _alone = alone();
    let bank = bank("drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50", "delete");
    let before = bank.volume.counts().unwrap().files;
    bank.connection.execute_batch("CREATE TABLE long(note); PRAGMA cache_size=-8000;").unwrap();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO long SELECT zeroblob(3900) FROM n";
    bank.connection.execute(sql, []).unwrap();
    let after = bank.volume.counts().unwrap().files;
    assert_eq!((after.batches_too_long, after.batches - before.batches), (1, 1));
    assert_eq!(after.of(FileKind::Journal).created - before.of(FileKind::Journal).created, 1);
    judge(&bank.connection, 0).unwrap();
}

#[test]
fn connections_of_a_process_share_a_database() {
    let _alone = alone();
    for mode in ["delete", "wal"] {
        let volume = Arc::new(DriveVolume::open("drive=tiny,set.chunks_per_pu=64,commit=plain").unwrap());
        let vfs = register(&volume);
        let (first, second) = (connect(&vfs).unwrap(), connect(&vfs).unwrap());
        first.query_row(&format!("PRAGMA journal_mode={mode}"), [], |_| Ok(())).unwrap();
        first.execute_batch("CREATE TABLE t(x); BEGIN IMMEDIATE; INSERT INTO t VALUES(1)").unwrap();
        second.busy_timeout(std::time::Duration::ZERO).unwrap();
        let locked = second.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        assert_eq!(locked.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{mode}");
        let count = |connection: &Connection| {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(
            (count(&first), count(&second)),
            (1, 0),
            "{mode}: who else sees a transaction before its commit"
        );
        first.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&second), 1, "{mode}");
        second.execute_batch("INSERT INTO t VALUES(2)").unwrap();
        assert_eq!(count(&first), 2, "{mode}");
    }
}

#[test]
fn pages_of_every_size_are_kept() {
    let _alone = alone();
    for bytes in [512, 1024, 8192, 65536] {
        let volume = Arc::new(
            DriveVolume::open("drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50").unwrap(),
        );
        let vfs = register(&volume);
        let connection = connect(&vfs).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size={bytes}; CREATE TABLE t(x); INSERT INTO t VALUES(randomblob(20000))"
            ))
            .unwrap();
        let hash = |connection: &Connection| {
            connection.query_row("SELECT x FROM t", [], |row| row.get::<_, Vec<u8>>(0)).unwrap()
        };
        let before = hash(&connection);
        drop(connection);
        let connection = connect(&vfs).unwrap();
        assert_eq!(hash(&connection), before, "pages of {bytes} bytes");
        connection.execute_batch("DELETE FROM t; VACUUM; INSERT INTO t VALUES(zeroblob(100))").unwrap();
        assert_eq!(hash(&connection), vec![0; 100], "pages of {bytes} bytes");
    }
}

#[test]
fn a_full_drive_is_told_and_the_database_goes_on() {
    let _alone = alone();
    let bank = bank("drive=tiny,set.chunks_per_pu=64,over_provisioning_percent=50", "delete");
    let insert = "INSERT INTO history VALUES(NULL, 0, 0, zeroblob(60000))";
    let full =
        (0..100_000).find_map(|_| bank.connection.execute(insert, []).err()).expect("a tiny drive fills up");
    assert_eq!(full.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull), "{full}");
    let delete = "DELETE FROM history WHERE nth IN (SELECT nth FROM history LIMIT 1)";
    let before = bank.volume.counts().unwrap().files;
    for _ in 0..20 {
        bank.connection.execute(delete, []).unwrap();
    }
    bank.connection.execute(insert, []).unwrap();
    let integrity = bank.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    assert_eq!(integrity, Ok("ok".to_owned()));
    let after = bank.volume.counts().unwrap().files;
    assert_eq!(
        after.batches - before.batches,
        21,
        "a full drive has no room for journals, and batches need none"
    );
}

#[test]
fn what_cannot_be_is_said_in_words() {
    let _alone = alone();
    for (options, part) in [
        ("", "names no drive"),
        ("drive=tiny,set.chunks_per_pu=64,commit=often", "batch or plain"),
        ("drive=tiny,set.chunks_per_pu=64,target=pblk,commit=batch", "has no transactions"),
        ("drive=tiny,set.chunks_per_pu=64,colour=red", "colour"),
        ("drive=tiny,set.chunks_per_pu=64,target=lightlsm", "blocks"),
        ("drive=tiny,set.chunks_per_pu=64,target=linear", "zones"),
        ("drive=tiny,set.chunks_per_pu=64", "over_provisioning_percent"),
        ("drive=tiny,on=pu:0", "needs"),
        ("drive=tiny,set.chunks_per_pu=64,block_bytes=512", "4096"),
        ("drive=tiny,set.chunks_per_pu=64,power_cut=4", "power_cut"),
        ("drive=tiny,set.chunks_per_pu=64,set.media.read=tomorrow", "read"),
    ] {
        let error = DriveVolume::open(options).err().unwrap_or_else(|| panic!("{options} was opened"));
        println!("{options}: {error}");
        assert!(error.sentence.contains(part), "{options}: {error}");
    }
}

#[test]
fn an_image_is_for_one_process_and_keeps_the_database() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("bank.ocssd");
    let options =
        format!("drive={},create=tiny,set.chunks_per_pu=64,over_provisioning_percent=50", image.display());
    let volume = Arc::new(DriveVolume::open(&options).unwrap());
    let second = DriveVolume::open(&options).err().expect("the image is open");
    assert_eq!(second.kind, ErrorKind::Busy, "{second}");
    let vfs = register(&volume);
    connect(&vfs).unwrap().execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES(7)").unwrap();
    volume.close().unwrap();
    assert!(connect(&vfs).and_then(|connection| connection.execute_batch("SELECT * FROM t")).is_err());
}
