//! What is programmed, and why, against what the drive itself counts.

use crate::rig::{CHUNK_BYTES, Rig};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::table::TableKind;

/// Causes of programs, as the target counts them.
const CAUSES: [&str; 7] = [
    "content_written_sectors",
    "padded_sectors",
    "closed_by_padding_sectors",
    "log_written_sectors",
    "checkpoint_written_sectors",
    "rewritten_sectors",
    "gc_copied_sectors",
];

/// Chunks that may not have been reset: those of the log of the host, and of the tables that are left.
const LEFT: usize = 30;

/// Tables of all lengths and a log, written and deleted until every other chunk was reset.
#[test]
fn what_the_drive_programmed_is_content_padding_and_records_and_no_copy() {
    let mut rig = Rig::new(&[("tables_max", "20")]);
    // The mount's own writes went to the drive before the instance began to count, but for its checkpoints.
    let before = rig.host.device().counters().sectors_written - sum(&rig);
    let resets = rig.host.device().counters().resets - rig.count("resets");
    rig.create(9_999, TableKind::Log, 0, 0);
    let (mut units, mut log_bytes) = (0, 0);
    for name in 0..600_u64 {
        let bytes = u32::try_from(1 + name * 7_919 % u64::from(3 * CHUNK_BYTES)).expect("below 2^32");
        rig.table(name, u8::try_from(name % 3).expect("below 3"), bytes);
        units += u64::from(bytes.div_ceil(8 * 4096));
        rig.append(9_999, 1_000, Durability::AtReply);
        log_bytes += 1_000;
        if name >= 6 {
            rig.delete(name - 6);
        }
    }
    rig.flush();
    let left = rig.cycles().iter().filter(|&&resets| resets == 0).count();
    assert!(left <= LEFT, "{left} chunks were not reset");
    let written = rig.host.device().counters().sectors_written - before;
    let causes: Vec<u64> = CAUSES.iter().map(|name| rig.count(name)).collect();
    println!("{written} sectors: {causes:?}");
    assert_eq!(causes.iter().sum::<u64>(), written, "{causes:?}");
    assert_eq!(rig.count("programmed_sectors"), written);
    let content = units + log_bytes / (8 * 4096);
    assert_eq!(causes[0], content * 8, "each unit of content is programmed once");
    rig.host.settle();
    let resets = rig.host.device().counters().resets - resets;
    assert_eq!(rig.count("resets"), resets, "as many as the drive counts");
    assert_eq!(causes[6], 0, "nothing was copied so that a chunk could be reset");
}

fn sum(rig: &Rig) -> u64 {
    CAUSES.iter().map(|name| rig.count(name)).sum()
}
