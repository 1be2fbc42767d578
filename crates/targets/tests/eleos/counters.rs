//! What is counted is what the host asked and what the drive did.

use crate::rig::Rig;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::Durability;
use std::collections::BTreeMap;

/// Flushes of a run.
const FLUSHES: u64 = 2_500;
/// Bytes of a page at most, and on average a half of it.
const BYTES_MAX: u64 = 9_000;
/// Percent of what fits that the pages would take if all were there.
const PERCENT: u64 = 85;

/// Sectors the drive read and wrote, and chunks it reset.
fn of_drive(rig: &mut Rig) -> [u64; 3] {
    rig.host.settle();
    let counters = rig.host.device().counters();
    [counters.sectors_read, counters.sectors_written, counters.resets]
}

#[test]
fn pages_of_the_host_and_programs_reads_and_resets_of_the_drive_are_counted() {
    let (mut rig, mut prng) = (Rig::new(), Prng::new(3));
    let own = ["programmed_sectors", "resets"].map(|name| rig.count(name));
    let [read, written, resets] = of_drive(&mut rig);
    let before = [read, written - own[0], resets - own[1]];
    let names = rig.limits().capacity_bytes * PERCENT / 100 / (BYTES_MAX / 2);
    let mut pages = BTreeMap::new();
    let [mut pages_written, mut pages_deleted, mut bytes_written, mut reads, mut read_bytes] = [0_u64; 5];
    for _ in 0..FLUSHES {
        let rows: BTreeMap<u64, u32> = (0..1 + prng.below(6))
            .map(|_| {
                let bytes = u32::try_from(1 + prng.below(BYTES_MAX)).expect("short");
                (prng.below(names), if prng.below(8) == 0 { 0 } else { bytes })
            })
            .collect();
        for (&page, &bytes) in &rows {
            if bytes == 0 {
                pages.remove(&page);
                pages_deleted += 1;
            } else {
                pages.insert(page, bytes);
                pages_written += 1;
            }
            bytes_written += u64::from(bytes);
        }
        let rows: Vec<(u64, u32)> = rows.into_iter().collect();
        rig.flush(&rows);
        let page = prng.below(names);
        if let Some(&bytes) = pages.get(&page) {
            rig.assert_found(page, bytes);
            (reads, read_bytes) = (reads + 1, read_bytes + u64::from(bytes));
        }
    }
    let op = rig.flush_of(&[], Durability::AtReply);
    assert!(rig.ask(op).status.is_success());
    rig.check();
    let [read, written, resets] = of_drive(&mut rig);
    println!("{:?}", rig.host.target(ocssd_lightnvm::TargetId(0)).counters());
    assert_eq!(rig.count("flushes"), FLUSHES + 1);
    let counted = ["pages_written", "pages_deleted", "page_bytes_written", "page_reads", "page_bytes_read"];
    let asked = [pages_written, pages_deleted, bytes_written, reads, read_bytes];
    assert_eq!(counted.map(|name| rig.count(name)), asked, "{counted:?}");
    let live: u64 = pages.values().map(|&bytes| u64::from(bytes)).sum();
    assert_eq!((rig.count("pages"), rig.count("page_bytes")), (pages.len() as u64, live));
    let reads = rig.count("page_sectors_read") + rig.count("gc_read_sectors");
    assert_eq!(reads, read - before[0], "reads");
    assert_eq!(rig.count("programmed_sectors"), written - before[1], "programs");
    assert_eq!(rig.count("resets"), resets - before[2], "resets");
    assert!(rig.count("gc_written_sectors") > 0 && rig.count("resets") > 50, "nothing was collected");
}
