//! What is counted is what the host asked and what the drive did.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// Bytes of a key and its value.
const STORED: u64 = 4 + VALUE_BYTES as u64;
/// Bytes of a sector.
const SECTOR: u64 = 4_096;
/// Bytes of a write unit that say what it is (`kv/record.rs`).
const UNIT_HEADER: u64 = 40;
/// Sectors of a write unit.
const UNIT: u64 = 8;

/// Sectors the drive wrote, and chunks it reset.
fn of_drive(rig: &mut Rig) -> [u64; 2] {
    rig.host.settle();
    let counters = rig.host.device().counters();
    [counters.sectors_written, counters.resets]
}

#[test]
fn values_of_the_host_and_programs_and_resets_of_the_drive_are_counted() {
    let in_part: &[(&'static str, &'static str)] = &[("index_cache_bytes", "0"), ("index_page_bytes", "400")];
    let mut collected = 0;
    for options in [&[][..], in_part] {
        let mut rig = Rig::new(options);
        let programmed = |rig: &Rig| rig.count("units") * UNIT * SECTOR + rig.count("checkpoint_bytes");
        let (bytes, resets) = (programmed(&rig), rig.count("resets"));
        let before = of_drive(&mut rig);
        let before = [before[0] * SECTOR - bytes, before[1] - resets];
        let keys = rig.values_in(85);
        let [mut stores, mut deletes, mut retrieves] = [0_u64; 3];
        for round in 0..9_u32 {
            for key in (0..keys).filter(|key| round == 0 || (key * 7 + round).is_multiple_of(3)) {
                let is_there = round > 0 && (key + round).is_multiple_of(11);
                if is_there && rig.delete(key) == Status::SUCCESS {
                    deletes += 1;
                }
                assert_eq!(rig.store(key, 5), Status::SUCCESS, "{options:?}: key {key} in round {round}");
                stores += 1;
                if round > 0 && key.is_multiple_of(5) {
                    let other = (key + keys / 2) % keys;
                    assert_eq!(
                        rig.retrieve(other).0,
                        Status::SUCCESS,
                        "{options:?}: key {other}, round {round}"
                    );
                    retrieves += 1;
                }
            }
        }
        assert_eq!(rig.flush(), Status::SUCCESS);
        let after = of_drive(&mut rig);
        println!("{options:?}: {:?}", rig.host.target(ocssd_lightnvm::TargetId(0)).counters());
        let counted = ["stores", "stored_bytes", "deletes", "retrieves"].map(|name| rig.count(name));
        assert_eq!(counted, [stores, stores * STORED, deletes, retrieves], "{options:?}");
        assert_eq!(rig.count("keys"), u64::from(keys), "{options:?}");
        assert_eq!(rig.count("user_bytes"), u64::from(keys) * STORED, "{options:?}");
        assert_eq!(programmed(&rig), after[0] * SECTOR - before[0], "{options:?}: programs");
        assert_eq!(rig.count("resets"), after[1] - before[1], "{options:?}: resets");
        let bytes = ["user_written_bytes", "gc_written_bytes", "index_written_bytes", "padded_bytes"];
        let bytes: u64 = bytes.iter().map(|name| rig.count(name)).sum();
        // Pages of the index that fill no write unit wait for others.
        let waits = bytes - rig.count("units") * (UNIT * SECTOR - UNIT_HEADER);
        let most = if options.is_empty() { 0 } else { UNIT * SECTOR };
        assert!(waits <= most, "{options:?}: {waits} bytes have a cause, and were not written");
        let read = rig.count("retrieves") - rig.count("retrieves_buffered");
        assert_eq!(rig.count("retrieve_reads"), read, "{options:?}: a value takes one read");
        assert!(read > 100, "{options:?}: {read} values were read from media");
        collected += rig.count("gc_written_bytes");
    }
    assert!(collected > 0, "nothing was collected");
}
