//! What tables take of the host's memory, as the target counts it: so much for each, and nothing for those that are gone.

use crate::rig::Rig;

/// Bytes that a small table takes beside the list of its chunks, at least and at most, written or closed (chosen: what is kept of
/// it has some dozen numbers, in trees that may be half empty).
const OF_TABLE: std::ops::RangeInclusive<u64> = 500..=1_000;

fn memory(rig: &Rig) -> (u64, u64) {
    (rig.count("table_map_bytes"), rig.count("table_metadata_bytes"))
}

#[test]
fn each_table_takes_about_as_much_memory_as_any_other_and_gives_it_back() {
    let mut rig = Rig::new(&[("tables_max", "19")]);
    assert_eq!(memory(&rig), (0, 0), "there is no table");
    for table in 0..12 {
        rig.table(table, 0, 5_000);
        rig.flush();
        let (map, metadata) = memory(&rig);
        println!("{} tables: {map} and {metadata} bytes", table + 1);
        assert!(map > 0 && map <= 200 * (table + 1), "{map} bytes of the map for {} tables", table + 1);
        let each = metadata / (table + 1);
        assert!(OF_TABLE.contains(&each), "{metadata} bytes of all else for {} tables", table + 1);
    }
    // One of many chunks takes more of the map, and as much beside.
    let before = memory(&rig);
    rig.table(50, 0, 40 * crate::rig::CHUNK_BYTES);
    rig.flush();
    let (map, metadata) = memory(&rig);
    println!("one of 40 chunks: {map} and {metadata} bytes, {before:?} before");
    assert!(map > before.0 + 40 * 4, "{map} bytes of the map, {} before", before.0);
    assert!(OF_TABLE.contains(&(metadata - before.1)), "{metadata} bytes of all else, {} before", before.1);
    rig.delete(50);
    (0..12).for_each(|table| rig.delete(table));
    rig.flush();
    assert_eq!(memory(&rig), (0, 0));
}
