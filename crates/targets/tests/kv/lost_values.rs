//! A value that the media lost and that garbage collection would have moved: the key is there, with the length its value had, and
//! whoever retrieves it is told that it is lost; after power cuts, too.

use crate::rig::{Rig, VALUE_BYTES, key_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::{KvAnswer, KvOp};

/// Keys stored before: more than the write buffer holds.
const KEYS: u32 = 600;
/// The one whose value is lost.
const KEY: u32 = 100;

/// A key exists with a value of the length that all have, which cannot be retrieved.
fn assert_lost(rig: &mut Rig, when: &str) {
    assert_eq!(
        rig.ask(KvOp::Exist { key: key_of(KEY) }).answer,
        KvAnswer::Value { bytes: VALUE_BYTES },
        "{when}"
    );
    assert_eq!(rig.retrieve(KEY).0, Status::UNRECOVERED_READ, "{when}");
}

#[test]
fn a_lost_value_is_noted_with_its_length_and_a_mount_finds_the_note() {
    // Free chunks are always too few, so whatever gives anything is collected at once.
    let mut rig = Rig::new(&[("gc_start_chunks", "1000")]);
    (0..KEYS).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    // Sectors of the chunk in which it lies: a read of it, and of nothing else, is tried again.
    let of_key = rig.sectors_of_value(KEY);
    assert!(!of_key.is_empty(), "key {KEY} lies nowhere");
    of_key.into_iter().for_each(|sector| rig.lose(sector));
    assert_lost(&mut rig, "before it is collected");
    let mut stores = 0;
    while rig.count("lost_values") == 0 {
        // All but a few of what lies around it is stored anew.
        let key = (KEY + 1 + stores * 7) % KEYS;
        if key != KEY && !key.is_multiple_of(5) {
            assert_eq!(rig.store(key, 2), Status::SUCCESS, "store {stores}");
        }
        stores += 1;
        assert!(stores < 20_000, "nothing was found lost");
    }
    assert_lost(&mut rig, "after it was collected");
    assert_eq!(rig.flush(), Status::SUCCESS);
    for when in ["after a power cut", "after another"] {
        rig = rig.cut().expect("it mounts");
        assert_lost(&mut rig, when);
    }
    assert_eq!(rig.store(KEY, 3), Status::SUCCESS);
    let (status, value) = rig.retrieve(KEY);
    assert_eq!((status, value[0]), (Status::SUCCESS, 3), "it is a key like any other");
}
