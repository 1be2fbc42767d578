//! What a mount reads: the newest checkpoint, the log behind it and a sector of each chunk, however long the instance was used and
//! however much is in its tables.

use crate::rig::{CHUNK_BYTES, Rig};

/// Points at which the power goes.
const POINTS: u64 = 6;
/// Tables that are published between two of them, each of which replaces one.
const TABLES: u64 = 8;

/// What mounts read when the power went at each point: sectors in all, and pages of the log that were replayed.
fn mounts(interval: &'static str, table_bytes: u32) -> Vec<(u64, u64)> {
    let mut rig = Rig::new(&[("tables_max", "20"), ("checkpoint_log_bytes", interval)]);
    let mut found = Vec::new();
    for point in 0..POINTS {
        for name in point * TABLES..(point + 1) * TABLES {
            if name >= 6 {
                rig.delete(name - 6);
            }
            rig.table(name, 0, table_bytes);
        }
        rig.flush();
        let report = rig.cut().report;
        assert_eq!(report.tables, 6, "point {point}");
        found.push((report.sectors_read, report.log_pages));
    }
    println!("checkpoint_log_bytes={interval}, tables of {table_bytes} bytes: {found:?}");
    found
}

#[test]
fn a_mount_reads_as_much_log_as_checkpoints_leave_and_no_table() {
    // Never a checkpoint: the log grows, and a mount reads all of it.
    let off = mounts("2097152", 4096);
    assert!(off.is_sorted() && off[5].1 > 4 * off[0].1, "{off:?}");
    // 8 pages of 16 KiB between two checkpoints. What a crash finds at most is the log from the begin of the checkpoint before
    // the last one on, three intervals as `sizes` has it, and the pages of one transaction beyond them.
    let on = mounts("131072", 4096);
    let most = on.iter().map(|&(_, pages)| pages).max().expect("some");
    assert!(most <= 3 * 8 + 16, "{on:?}");
    assert!(off[5].1 > 3 * most, "{off:?}, {on:?}");
    let (least, most) = (on.iter().min().expect("some").0, on.iter().max().expect("some").0);
    assert!(off[5].0 > 2 * most && most < 3 * least, "{off:?}, {on:?}");
    // Thirty times the content: a mount reads a sector of each chunk more, and no table.
    let long = mounts("131072", CHUNK_BYTES - 4096);
    let most_of_long = long.iter().max().expect("some").0;
    assert!(most_of_long < most + 6 * 32, "{long:?} of tables of a chunk each, {on:?} of a sector each");
}
