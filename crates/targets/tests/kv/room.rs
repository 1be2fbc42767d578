//! A store does not use room that a power cut may take again.

use crate::rig::Rig;
use ocssd_lightnvm::Status;

/// A drive with as many keys as fit, all durable; how many there are.
fn full() -> (Rig, u32) {
    let mut rig = Rig::new(&[]);
    let keys = (0..).find(|&key| rig.store(key, 1) != Status::SUCCESS).expect("it is full some time");
    assert_eq!(rig.store(keys, 1), Status::CAPACITY_EXCEEDED);
    assert_eq!(rig.flush(), Status::SUCCESS);
    (rig, keys)
}

#[test]
fn a_store_that_needs_the_room_of_a_deletion_makes_the_deletion_durable() {
    let (mut rig, keys) = full();
    assert_eq!(rig.delete(3), Status::SUCCESS);
    assert_ne!(rig.cut().expect("it mounts").retrieve(3).0, Status::KEY_DOES_NOT_EXIST, "it was not durable");
    assert_eq!(rig.count("waited_for_room"), 0);
    assert_eq!(rig.store(keys, 2), Status::SUCCESS);
    assert_eq!(rig.count("waited_for_room"), 1);
    assert_eq!(rig.cut().expect("it mounts").retrieve(3).0, Status::KEY_DOES_NOT_EXIST);
    assert_eq!(rig.flush(), Status::SUCCESS);
    assert_eq!(rig.store(keys + 1, 1), Status::CAPACITY_EXCEEDED);
}

#[test]
fn values_of_the_same_length_replace_others_on_a_full_drive_without_waiting() {
    let (mut rig, keys) = full();
    (0..keys).for_each(|key| assert_eq!(rig.store(key, 2), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    assert_eq!(rig.count("waited_for_room"), 0);
}
