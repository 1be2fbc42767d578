//! What a batch replaces is kept until all of the batch is on media.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// Keys stored before.
const KEYS: u32 = 900;
/// Keys of a batch: more than the chunks of both units that are written together hold, and not a whole number of write units.
const BATCH: u32 = 84;
/// Reads behind a batch, which give resets time.
const READS: u32 = 60;

#[test]
fn a_chunk_that_a_batch_empties_is_not_reset_before_the_batch_is_whole() {
    let mut rig = Rig::new(&[("checkpoint_interval_bytes", "262144")]);
    (0..KEYS).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    let mut unfinished = 0;
    for first in (0..KEYS - BATCH).step_by(41) {
        let keys: Vec<u32> = (first..first + BATCH).collect();
        assert_eq!(rig.store_all(&keys, 2), Status::SUCCESS, "keys from {first}");
        (0..READS).for_each(|_| assert_eq!(rig.retrieve(KEYS - 1).0, Status::SUCCESS));
        let mut after = rig.cut().expect("it mounts");
        let values: Vec<u8> = keys
            .iter()
            .map(|&key| {
                let (status, found) = after.retrieve(key);
                assert_eq!((status, found.len()), (Status::SUCCESS, VALUE_BYTES as usize), "key {key}");
                found[0]
            })
            .collect();
        let new = values.iter().filter(|&&value| value == 2).count();
        assert!(
            new == 0 || new == keys.len(),
            "keys from {first}: {new} of {} have the new value",
            keys.len()
        );
        unfinished += u32::from(new == 0);
        assert_eq!(rig.store_all(&keys, 1), Status::SUCCESS);
        assert_eq!(rig.flush(), Status::SUCCESS);
    }
    assert!(unfinished > 10, "only {unfinished} batches were cut short");
}
