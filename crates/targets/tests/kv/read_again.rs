//! A read that the drive did not carry out (006h) says nothing of the drive: it is tried again, and changes go on.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// More than the write buffer holds, so that the first are read from media.
const KEYS: u32 = 200;
fn filled(keys: u32) -> Rig {
    let mut rig = Rig::new(&[]);
    for key in 0..keys {
        assert_eq!(rig.store(key, fill(key)), Status::SUCCESS, "key {key}");
    }
    assert_eq!(rig.flush(), Status::SUCCESS);
    rig
}

/// The byte that fills a value.
fn fill(key: u32) -> u8 {
    u8::try_from(key % 251 + 1).expect("below 256")
}

fn assert_found(rig: &mut Rig, key: u32) {
    let (status, found) = rig.retrieve(key);
    assert_eq!(status, Status::SUCCESS, "key {key}");
    assert_eq!(found, [fill(key); VALUE_BYTES as usize], "key {key}");
}

#[test]
fn a_retrieve_is_tried_again_and_stores_go_on() {
    let mut rig = filled(KEYS);
    for status in [Status::INTERNAL_ERROR, Status::UNRECOVERED_READ] {
        let before = rig.count("read_again");
        rig.fail_reads(1, status);
        (0..KEYS).for_each(|key| assert_found(&mut rig, key));
        assert!(rig.count("read_again") > before, "{status:?}: no read failed");
        assert_eq!(rig.count("read_failed"), 0, "{status:?}");
        assert_eq!(rig.store(KEYS, 1), Status::SUCCESS, "one {status:?} is not the end of the drive");
    }
}

#[test]
fn a_retrieve_that_fails_for_good_is_told_and_others_are_not_touched() {
    let mut rig = filled(KEYS);
    rig.fail_reads(3, Status::INTERNAL_ERROR);
    assert_eq!(rig.retrieve(0).0, Status::INTERNAL_ERROR, "three tries are all there are");
    assert_eq!((rig.count("read_again"), rig.count("read_failed")), (2, 1));
    assert_found(&mut rig, 0);
    assert_eq!((rig.store(0, 9), rig.flush()), (Status::SUCCESS, Status::SUCCESS));
}

#[test]
fn garbage_collection_tries_a_read_again_and_loses_nothing() {
    // So full that victims have records that live.
    let keys = Rig::new(&[]).values_in(85);
    let mut rig = filled(keys);
    rig.fail_reads(1, Status::INTERNAL_ERROR);
    let mut rounds = 0;
    while rig.count("victims") < 20 {
        for key in (0..keys).filter(|key| key % 7 == rounds % 7) {
            assert_eq!(rig.store(key, fill(key)), Status::SUCCESS, "round {rounds}, key {key}");
        }
        rounds += 1;
        assert!(rounds < 100, "nothing is collected");
    }
    assert!(rig.count("read_again") > 0, "no read of garbage collection failed");
    assert_eq!(rig.flush(), Status::SUCCESS);
    (0..keys).for_each(|key| assert_found(&mut rig, key));
}
