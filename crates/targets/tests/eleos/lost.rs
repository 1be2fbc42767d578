//! Sectors that the media lost: whoever reads a page of which one is lost is told, each sector is counted, and nobody else is told.

use crate::rig::Rig;
use ocssd_lightnvm::Status;

/// Bytes of a page: some sectors, and not whole ones.
const BYTES: u32 = 10_000;
/// Pages that are flushed: more than the target holds in memory.
const PAGES: u64 = 120;

#[test]
fn each_sector_that_is_lost_is_counted_once_by_each_read_that_needs_it() {
    let mut rig = Rig::new();
    (0..PAGES).for_each(|page| rig.flush(&[(page, BYTES)]));
    (0..PAGES).for_each(|page| rig.assert_found(page, BYTES));
    let (read, cached) = (rig.count("page_sectors_read"), rig.count("page_parts_cached"));
    assert!(read > 2 * PAGES, "{read} sectors were read, and {cached} parts lay in memory");
    assert_eq!(rig.count("read_failed_sectors"), 0);
    // Of each write unit one sector in four.
    rig.lose(&[0, 4, 8, 12, 16, 20, 24, 28]);
    let (mut lost, mut found) = (0, 0);
    for page in 0..PAGES {
        let before = rig.count("read_failed_sectors");
        let (reply, _) = rig.read(page, BYTES);
        let failed = rig.count("read_failed_sectors") - before;
        if reply.status.is_success() {
            found += 1;
            assert_eq!(failed, 0, "page {page} was read");
        } else {
            lost += 1;
            assert_eq!(reply.status, Status::UNRECOVERED_READ, "page {page}");
            assert_eq!(failed, 1, "page {page} lies in three or four sectors, of which one is lost");
        }
    }
    println!("{lost} pages are lost, and {found} are not");
    assert!(lost > PAGES / 2, "{lost} pages are lost, and {found} are not");
}
