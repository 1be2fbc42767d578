//! Garbage collection of a chunk that has the first records of a batch, while its last ones are in the write buffer: a copy of
//! them, which is of no batch, would survive a power cut that the batch does not.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// Keys stored before.
const KEYS: u32 = 600;
/// Keys of a batch: more than the chunks of both units that are written together hold, and not a whole number of write units.
const BATCH: u32 = 84;
/// Reads behind a batch, which give copies time.
const READS: u32 = 60;

#[test]
fn a_batch_is_whole_or_absent_though_its_first_chunk_is_collected() {
    // Free chunks are always too few, so whatever gives anything is collected at once.
    let mut rig = Rig::new(&[("gc_start_chunks", "1000")]);
    (0..KEYS).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    let collected = rig.count("victims");
    for (round, first) in (0..KEYS - BATCH).step_by(37).enumerate() {
        // The chunk that the batch begins in has records that are dead, more in each round.
        (0..20 + round).for_each(|_| assert_eq!(rig.store(KEYS - 1, 1), Status::SUCCESS));
        let keys: Vec<u32> = (first..first + BATCH).collect();
        assert_eq!(rig.store_all(&keys, 2), Status::SUCCESS, "keys from {first}");
        (0..READS).for_each(|_| assert_eq!(rig.retrieve(KEYS - 2).0, Status::SUCCESS));
        let mut after = rig.cut().expect("it mounts");
        let mut is_new = |&key: &u32| {
            let (status, found) = after.retrieve(key);
            assert_eq!((status, found.len()), (Status::SUCCESS, VALUE_BYTES as usize), "key {key}");
            found[0] == 2
        };
        let new = keys.iter().filter(|key| is_new(key)).count();
        assert!(new == 0 || new == keys.len(), "keys from {first}: {new} of {BATCH} have the new value");
        assert_eq!(rig.store_all(&keys, 1), Status::SUCCESS);
        assert_eq!(rig.flush(), Status::SUCCESS);
    }
    let collected = rig.count("victims") - collected;
    assert!(collected > 10, "{collected} chunks were collected");
}
