//! Mounts that find nothing behind the newest checkpoint write none of their own; all others do, before anything that they read
//! may be written over. So a mount of what was shut down writes nothing, however often, and the ones after it find the same.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// Keys stored: a third of what fits.
const KEYS: u32 = 300;
/// With the whole index in memory, and with next to none of it.
const KINDS: [&[(&str, &str)]; 2] = [&[], &[("index_cache_bytes", "0"), ("index_page_bytes", "266")]];

fn store(rig: &mut Rig, keys: impl Iterator<Item = u32>, fill: u8) {
    for key in keys {
        assert_eq!(rig.store(key, fill), Status::SUCCESS, "key {key}");
    }
    assert_eq!(rig.flush(), Status::SUCCESS);
}

fn check(rig: &mut Rig, keys: impl Iterator<Item = u32>, fill: u8) {
    for key in keys {
        let (status, found) = rig.retrieve(key);
        assert_eq!((status, found), (Status::SUCCESS, vec![fill; VALUE_BYTES as usize]), "key {key}");
    }
}

#[test]
fn a_mount_after_a_shutdown_writes_no_checkpoint() {
    for options in KINDS {
        let mut rig = Rig::new(options);
        assert_eq!(rig.count("checkpoints"), 1, "a new instance begins with one");
        store(&mut rig, 0..KEYS, 7);
        for round in 0..3 {
            rig = rig.shut_down();
            assert_eq!(rig.count("checkpoints"), 0, "round {round}");
            assert_eq!(rig.count("checkpoint_bytes"), 0, "round {round}");
            check(&mut rig, 0..KEYS, 7);
        }
    }
}

#[test]
fn a_mount_after_a_cut_with_nothing_stored_since_writes_none() {
    for options in KINDS {
        let mut rig = Rig::new(options);
        store(&mut rig, 0..KEYS, 7);
        rig = rig.shut_down();
        for round in 0..20 {
            rig = rig.cut().expect("it was mounted before");
            assert_eq!(rig.count("checkpoints"), 0, "round {round}");
        }
        check(&mut rig, 0..KEYS, 7);
    }
}

#[test]
fn a_mount_that_replays_writes_one_and_the_next_does_not() {
    for options in KINDS {
        let mut rig = Rig::new(options);
        store(&mut rig, 0..KEYS, 7);
        rig = rig.shut_down();
        store(&mut rig, 0..KEYS / 2, 8);
        rig = rig.cut().expect("it was mounted before");
        assert_eq!(rig.count("checkpoints"), 1);
        rig = rig.cut().expect("it was mounted before");
        assert_eq!(rig.count("checkpoints"), 0);
        check(&mut rig, 0..KEYS / 2, 8);
        check(&mut rig, KEYS / 2..KEYS, 7);
    }
}

/// What was stored after a mount without a checkpoint of its own is replayed from the one before it.
#[test]
fn what_is_stored_after_such_a_mount_is_found() {
    for options in KINDS {
        let mut rig = Rig::new(options);
        store(&mut rig, 0..KEYS, 1);
        for fill in 2..30 {
            rig = rig.shut_down();
            assert_eq!(rig.count("checkpoints"), 0, "value {fill}");
            store(&mut rig, 0..KEYS, fill);
            assert_eq!(rig.delete(KEYS - 1), Status::SUCCESS);
            assert_eq!(rig.flush(), Status::SUCCESS);
            let mut after = rig.cut().expect("it was mounted before");
            check(&mut after, 0..KEYS - 1, fill);
            assert_eq!(after.retrieve(KEYS - 1).0, rig.retrieve(KEYS - 1).0, "a deleted key is back");
        }
    }
}
