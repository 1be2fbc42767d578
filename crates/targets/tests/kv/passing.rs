//! Reads pass changes that wait for room in the write buffer, but for those that they would show.

use crate::rig::{Rig, VALUE_BYTES, key_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::{AbsentKey, KvAnswer, KvOp, KvRefusal, StoreCondition};
use ocssd_lightnvm::interface::{Content, Durability, StageId, StageOp};

/// Stored before: enough that the first are on media.
const KEYS: u32 = 900;
/// Stored together: more than the write buffer has room for.
const TOGETHER: u32 = 800;

/// A drive with keys, and a store of one more value under each of `TOGETHER` keys from the first on.
fn rig(options: &[(&'static str, &'static str)]) -> (Rig, Vec<KvOp>) {
    let mut rig = Rig::new(options);
    (0..KEYS).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    let value = rig.room();
    value.scatter(rig.host.buffers_mut(), &[2; VALUE_BYTES as usize]);
    let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
    let content = Content::Piece(value);
    let store = |key| KvOp::Store { key: key_of(key), content, condition, durability };
    (rig, (0..TOGETHER).map(store).collect())
}

/// Asks for stores and then for one thing: how many of the stores were answered before it, what it was answered, and the first byte
/// it brought.
fn behind(rig: &mut Rig, stores: &[KvOp], op: impl Fn(Content) -> KvOp) -> (usize, KvAnswer, u8) {
    // The write buffer has room for the first of them.
    assert_eq!(rig.flush(), Status::SUCCESS);
    let piece = rig.room();
    let mut ops = stores.to_vec();
    ops.push(op(Content::Piece(piece)));
    let replies = rig.ask_together(&ops);
    let place = replies.iter().position(|(nth, _)| *nth == stores.len()).expect("it was answered");
    assert!(replies.iter().all(|(_, reply)| reply.status.is_success()), "{replies:?}");
    let mut found = Vec::new();
    piece.gather(rig.host.buffers_mut(), &mut found);
    rig.host.buffers_mut().give_back(piece.buffer);
    (place, replies[place].1.answer, found[0])
}

#[test]
fn a_retrieve_passes_stores_of_other_keys_and_waits_for_that_of_its_own() {
    let (mut rig, stores) = rig(&[]);
    let retrieve = |key| move |into| KvOp::Retrieve { key: key_of(key), offset: 0, into };
    let value = KvAnswer::Value { bytes: VALUE_BYTES };
    let (place, answer, first) = behind(&mut rig, &stores, retrieve(TOGETHER));
    assert!(place < stores.len() - 20, "{place} stores were answered before");
    assert_eq!((answer, first, rig.count("reads_passed")), (value, 1, 1));
    // The last of the stores that wait.
    let (place, answer, first) = behind(&mut rig, &stores, retrieve(TOGETHER - 1));
    assert_eq!((place, answer, first), (stores.len(), value, 2));
    assert_eq!(rig.count("reads_passed"), 1, "it took its turn");
    // One that was stored before the first that waits.
    let (place, _, first) = behind(&mut rig, &stores, retrieve(0));
    assert!(place < stores.len() - 20 && first == 2, "{place} stores were answered before");
}

#[test]
fn an_exist_and_a_listing_pass_what_they_do_not_show() {
    let (mut rig, stores) = rig(&[]);
    let exist = |key| move |_| KvOp::Exist { key: key_of(key) };
    let list = |from| move |into| KvOp::List { from: key_of(from), prefix_bytes: 0, into };
    let (place, answer, _) = behind(&mut rig, &stores, exist(KEYS - 1));
    assert_eq!(answer, KvAnswer::Value { bytes: VALUE_BYTES });
    assert!(place < stores.len() - 20, "{place} stores were answered before the exist");
    let (place, answer, _) = behind(&mut rig, &stores, list(TOGETHER));
    assert!(matches!(answer, KvAnswer::Listed { keys, .. } if keys == KEYS - TOGETHER), "{answer:?}");
    assert!(place < stores.len() - 20, "{place} stores were answered before the listing");
    assert_eq!(rig.count("reads_passed"), 2);
    let (place, ..) = behind(&mut rig, &stores, list(TOGETHER - 1));
    assert_eq!((place, rig.count("reads_passed")), (stores.len(), 2), "the last store is listed");
}

#[test]
fn what_follows_a_deletion_that_waits_finds_the_key_gone() {
    let (mut rig, mut ops) = rig(&[]);
    let (gone, kept) = (key_of(KEYS - 1), key_of(KEYS - 2));
    ops.push(KvOp::Delete { key: gone, absent: AbsentKey::Refused, durability: Durability::AtFlush });
    ops.extend([KvOp::Exist { key: gone }, KvOp::Exist { key: kept }]);
    let replies = rig.ask_together(&ops);
    let of = |nth: usize| replies.iter().find(|reply| reply.0 == nth).expect("it was answered").1;
    assert_eq!(of(ops.len() - 2).refusal, Some(KvRefusal::NoSuchKey));
    assert_eq!(of(ops.len() - 1).status, Status::SUCCESS);
    assert_eq!(rig.count("reads_passed"), 1, "only that of the other key");
}

#[test]
fn a_read_whose_page_of_the_index_is_on_media_takes_its_turn() {
    let (mut rig, stores) = rig(&[("index_cache_bytes", "0"), ("index_page_bytes", "266")]);
    let exist = |key| move |_| KvOp::Exist { key: key_of(key) };
    let (place, answer, _) = behind(&mut rig, &stores, exist(KEYS - 1));
    assert_eq!((place, answer), (stores.len(), KvAnswer::Value { bytes: VALUE_BYTES }));
    assert_eq!(rig.count("reads_passed"), 0, "its page left memory before");
}

/// A staged value is committed by a store, which names the key as any other.
#[test]
fn what_follows_the_commit_of_a_staged_value_that_waits_finds_that_value() {
    let (mut rig, mut ops) = rig(&[]);
    let (stage, bytes) = (StageId(0), VALUE_BYTES);
    let value = rig.room();
    value.scatter(rig.host.buffers_mut(), &[3; VALUE_BYTES as usize]);
    let append = StageOp::Append { stage, offset: 0, content: Content::Piece(value) };
    let staged = rig.ask_together(&[KvOp::Stage(StageOp::Open { stage, bytes }), KvOp::Stage(append)]);
    assert!(staged.iter().all(|(_, reply)| reply.status.is_success()), "{staged:?}");
    let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
    let (key, other) = (key_of(KEYS - 1), key_of(KEYS - 2));
    ops.push(KvOp::Store { key, content: Content::Staged { stage, bytes }, condition, durability });
    let rooms = [rig.room(), rig.room()];
    let retrieve = |(key, into)| KvOp::Retrieve { key, offset: 0, into: Content::Piece(into) };
    ops.extend([(key, rooms[0]), (other, rooms[1])].map(retrieve));
    let replies = rig.ask_together(&ops);
    assert!(replies.iter().all(|(_, reply)| reply.status.is_success()), "{replies:?}");
    let place = |nth: usize| replies.iter().position(|reply| reply.0 == nth).expect("it was answered");
    let [commit, of_key, of_other] = [ops.len() - 3, ops.len() - 2, ops.len() - 1].map(place);
    assert!(of_key > commit && of_other < commit, "{of_key} and {of_other}, and the commit {commit}");
    let first = rooms.map(|room| {
        let mut found = Vec::new();
        room.gather(rig.host.buffers_mut(), &mut found);
        found[0]
    });
    assert_eq!((first, rig.count("reads_passed")), ([3, 1], 1), "only that of the other key passed");
}
