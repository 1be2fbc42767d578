//! A store does not use room that a power cut may take again.

use crate::rig::{Rig, key_of};
use ocssd_lightnvm::interface::key_value::{KvOp, StoreCondition};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{Geometry, Status};

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

/// Keys that fill what the drive holds back of a stream, and more: 16 chunks of eight units, of which each takes ten.
const MANY: u32 = 3_000;
/// The same in one value.
const LONG_BYTES: u32 = 12 << 20;

/// What was written last cannot be read back before eight units more are written to its chunk, so that much stays in the write
/// buffer for as long as its stream has no more: of values in pieces, and of others, by turns.
#[test]
fn what_the_drive_holds_back_of_one_stream_leaves_room_for_the_other() {
    let mut rig = Rig::of_shape(|config| {
        let geometry = Geometry::example(1, 16, 64, 256, 8);
        config.geometry = Geometry { mw_cunits: 64, ws_min: 4, ..geometry };
    });
    let sector = u32::try_from(rig.host.buffers().format().sector_bytes).expect("short");
    let buffer = rig.host.buffers_mut().take_whole(LONG_BYTES / sector);
    let piece = Piece { buffer, first_byte: 0, bytes: LONG_BYTES };
    for round in 0..2 {
        let long = KvOp::Store {
            key: key_of(MANY),
            content: Content::Piece(piece),
            condition: StoreCondition::Always,
            durability: Durability::AtFlush,
        };
        assert_eq!(rig.ask(long).status, Status::SUCCESS, "round {round}, in pieces");
        for key in 0..MANY {
            assert_eq!(rig.store(key, round), Status::SUCCESS, "round {round}, key {key}");
        }
    }
    assert_eq!(rig.count("read_only"), 0);
}
