//! What is refused for its form, and changes nothing.

use crate::rig::{Rig, key_of};
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::key_value::KvOp;
use ocssd_lightnvm::interface::{Content, Piece, StageId};
use ocssd_lightnvm::{Status, TargetId};

#[test]
fn a_batch_may_have_as_many_entries_as_the_limit_says_and_no_more() {
    let mut rig = Rig::larger(8, &[]);
    let most = rig.host.target(TargetId(0)).limits().batch_entries_max;
    let keys: Vec<u32> = (0..=most).collect();
    assert_eq!(rig.store_all(&keys, 1), Status::INVALID_FIELD, "one too many");
    assert_eq!(rig.retrieve(0).0, Status::KEY_DOES_NOT_EXIST, "nothing of it was stored");
    assert_eq!(rig.store_all(&keys[..usize_of(most)], 1), Status::SUCCESS);
    assert_eq!(rig.retrieve(most - 1).0, Status::SUCCESS);
}

#[test]
fn a_retrieve_fills_no_stage_and_nothing_beyond_its_buffer() {
    let mut rig = Rig::new(&[]);
    assert_eq!(rig.store(1, 7), Status::SUCCESS);
    let piece = rig.room();
    let sectors = rig.host.buffers().sectors(piece.buffer);
    let beyond = Piece { bytes: 4096 * sectors + 1, ..piece };
    let staged = Content::Staged { stage: StageId(1), bytes: piece.bytes };
    for into in [staged, Content::Piece(beyond)] {
        let reply = rig.ask(KvOp::Retrieve { key: key_of(1), offset: 0, into });
        assert_eq!(reply.status, Status::INVALID_FIELD, "{into:?}");
    }
    rig.host.buffers_mut().give_back(piece.buffer);
    let (status, value) = rig.retrieve(1);
    assert_eq!((status, value[0]), (Status::SUCCESS, 7));
}
