//! Hand-written cases of the specification's words, and random trials.

use super::*;
use crate::model::Model;
use crate::model::trial::{Reference, Trial};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, Key, KvAnswer, KvLimits, KvOp, KvRefusal, KvReply, KvRequest,
    ListOrder, StoreCondition, decode_keys,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece, StageId, StageLimits, StageOp};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, Tag};

const LIMITS: KvLimits = KvLimits {
    key_bytes_max: 20,
    value_bytes_max: 3_000,
    batch_entries_max: 4,
    capacity_bytes: 10_000,
    list_order: ListOrder::Bytewise,
    stages: StageLimits { stages_max: 1, bytes_max: 3_000 },
};

fn pool() -> Buffers {
    Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 24, 24)))
}

fn target() -> Reference<KvModel> {
    Reference { model: KvModel::new(LIMITS), buffers: pool() }
}

fn key(key: &str) -> Key {
    Key::inline(key.as_bytes()).expect("a short key")
}

/// `bytes` bytes, all `byte`, in a buffer of their own.
fn value(buffers: &mut Buffers, bytes: u32, byte: u8) -> Piece {
    let buffer = buffers.take_whole(1);
    buffers.whole_mut(buffer, 0, 1).fill(byte);
    Piece { buffer, first_byte: 0, bytes }
}

fn store(piece: Piece, of: &str) -> KvOp {
    let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
    KvOp::Store { key: key(of), content: Content::Piece(piece), condition, durability }
}

fn put(
    target: &mut Reference<KvModel>,
    of: &str,
    bytes: u32,
    byte: u8,
    condition: StoreCondition,
) -> KvReply {
    let content = Content::Piece(value(&mut target.buffers, bytes, byte));
    ask(target, KvOp::Store { key: key(of), content, condition, durability: Durability::AtFlush })
}

fn ask(target: &mut Reference<KvModel>, op: KvOp) -> KvReply {
    target.ask(KvRequest { tag: Tag(1), op })
}

fn delete(of: &str, absent: AbsentKey) -> KvOp {
    KvOp::Delete { key: key(of), absent, durability: Durability::AtFlush }
}

#[test]
fn stores_and_deletions_ask_what_the_specification_lets_them_ask() {
    use StoreCondition::{Always, MustExist, MustNotExist};
    let mut target = target();
    for (condition, refusal) in [
        (MustExist, Some(KvRefusal::NoSuchKey)),
        (MustNotExist, None),
        (MustNotExist, Some(KvRefusal::KeyExists)),
        (MustExist, None),
        (Always, None),
    ] {
        assert_eq!(put(&mut target, "k", 5, 1, condition).refusal, refusal, "{condition:?}");
    }
    let exist = KvOp::Exist { key: key("k") };
    assert_eq!(ask(&mut target, exist).answer, KvAnswer::Value { bytes: 5 });
    assert_eq!(ask(&mut target, delete("k", AbsentKey::Refused)).refusal, None);
    assert_eq!(ask(&mut target, delete("k", AbsentKey::Refused)).refusal, Some(KvRefusal::NoSuchKey));
    assert_eq!(ask(&mut target, delete("k", AbsentKey::Success)).refusal, None);
    assert_eq!(ask(&mut target, exist).status.to_bits(), 0x087);
}

#[test]
fn keys_and_values_have_lengths_that_are_told_apart() {
    let mut target = target();
    for (length, status) in [(0, 0x086), (1, 0), (20, 0), (21, 0x086)] {
        let long = target.buffers.take_whole(1);
        let of = Key::place(&vec![b'x'; length], &mut target.buffers, long, 0);
        let piece = value(&mut target.buffers, 10, 1);
        let KvOp::Store { content, condition, durability, .. } = store(piece, "") else { unreachable!() };
        let reply = ask(&mut target, KvOp::Store { key: of, content, condition, durability });
        assert_eq!(reply.status.to_bits(), status, "a key of {length} bytes");
    }
    for (bytes, status) in [(0, 0), (3_000, 0), (3_001, 0x085)] {
        let reply = put(&mut target, "v", bytes, 1, StoreCondition::Always);
        assert_eq!(reply.status.to_bits(), status, "a value of {bytes} bytes");
    }
}

#[test]
fn a_retrieve_tells_the_true_length_whatever_its_room() {
    let mut target = target();
    assert!(put(&mut target, "k", 100, 7, StoreCondition::Always).status.is_success());
    for (offset, room, got) in [(0, 200, 100), (0, 10, 10), (95, 10, 5), (100, 10, 0), (101, 10, 0)] {
        let into = value(&mut target.buffers, room, 0);
        let op = KvOp::Retrieve { key: key("k"), offset, into: Content::Piece(into) };
        assert_eq!(ask(&mut target, op).answer, KvAnswer::Value { bytes: 100 });
        let found = target.buffers.whole(into.buffer, 0, 1).iter().filter(|&&byte| byte == 7).count();
        assert_eq!(found, got, "{room} bytes of room at {offset}");
    }
}

#[test]
fn a_full_store_still_deletes_and_shrinks() {
    let mut target = target();
    for of in ["a", "b", "c"] {
        assert!(put(&mut target, of, 3_000, 1, StoreCondition::Always).status.is_success());
    }
    assert_eq!(put(&mut target, "d", 1_000, 1, StoreCondition::Always).status.to_bits(), 0x081);
    assert!(put(&mut target, "a", 2_900, 1, StoreCondition::Always).status.is_success());
    assert!(ask(&mut target, delete("b", AbsentKey::Success)).status.is_success());
    assert!(put(&mut target, "d", 1_000, 1, StoreCondition::Always).status.is_success());
}

fn list(target: &mut Reference<KvModel>, from: &str, prefix_bytes: u8, room: u32) -> Vec<String> {
    let into = value(&mut target.buffers, room, 0xFF);
    let reply = ask(target, KvOp::List { from: key(from), prefix_bytes, into: Content::Piece(into) });
    let keys = decode_keys(target.buffers.whole(into.buffer, 0, 1)).expect("a list of keys");
    assert!(matches!(reply.answer, KvAnswer::Listed { keys: told, .. } if told as usize == keys.len()));
    keys.into_iter().map(|key| String::from_utf8(key).expect("letters")).collect()
}

#[test]
fn a_listing_begins_at_its_key_and_ends_with_its_room() {
    let mut target = target();
    for of in ["b", "ab", "abc", "ac", "a"] {
        assert!(put(&mut target, of, 1, 1, StoreCondition::Always).status.is_success());
    }
    assert_eq!(list(&mut target, "", 0, 4_096), ["a", "ab", "abc", "ac", "b"]);
    assert_eq!(list(&mut target, "ab", 0, 4_096), ["ab", "abc", "ac", "b"], "inclusive");
    assert_eq!(list(&mut target, "aba", 0, 4_096), ["abc", "ac", "b"], "it need not exist");
    assert_eq!(list(&mut target, "ab", 1, 4_096), ["ab", "abc", "ac"]);
    assert_eq!(list(&mut target, "a", 0, 4 + 4 + 4 + 7), ["a", "ab"], "no room for a third");
    assert!(ask(&mut target, delete("abc", AbsentKey::Success)).status.is_success());
    assert_eq!(list(&mut target, "ab", 2, 4_096), ["ab"], "what is deleted is never shown");
}

fn entry(of: &str, piece: Piece, condition: StoreCondition) -> BatchEntry {
    BatchEntry { key: key(of), change: BatchChange::Store { value: Some(piece), condition } }
}

fn batch(buffers: &mut Buffers, entries: &[BatchEntry]) -> KvOp {
    let buffer = buffers.take_whole(1);
    KvOp::Batch { entries: List::write(buffers, buffer, entries), durability: Durability::AtFlush }
}

#[test]
fn a_batch_applies_in_order_or_not_at_all() {
    let mut target = target();
    let piece = value(&mut target.buffers, 9, 1);
    let gone = BatchEntry { key: key("x"), change: BatchChange::Delete { absent: AbsentKey::Refused } };
    let new = StoreCondition::MustNotExist;
    let fine = batch(
        &mut target.buffers,
        &[entry("x", piece, new), gone, entry("x", piece, new), entry("y", piece, new)],
    );
    assert!(ask(&mut target, fine).status.is_success());
    let before = target.model.pairs().clone();
    assert_eq!(before.len(), 2);
    let bad = batch(&mut target.buffers, &[entry("z", piece, new), gone, entry("y", piece, new)]);
    let reply = ask(&mut target, bad);
    assert_eq!((reply.refusal, reply.entry), (Some(KvRefusal::KeyExists), Some(2)));
    let long = batch(&mut target.buffers, &[entry("z", piece, StoreCondition::Always); 5]);
    assert_eq!(ask(&mut target, long).refusal, Some(KvRefusal::BatchTooLong));
    let zeroes = List::new(value(&mut target.buffers, 0, 0).buffer, 1);
    let reply = ask(&mut target, KvOp::Batch { entries: zeroes, durability: Durability::AtFlush });
    assert_eq!((reply.refusal, reply.entry), (Some(KvRefusal::BadBatch), Some(0)));
    assert_eq!(*target.model.pairs(), before);
}

#[test]
fn a_staged_value_is_stored_as_one() {
    let mut target = target();
    let (stage, piece) = (StageId(0), value(&mut target.buffers, 1_500, 4));
    let staged = Content::Staged { stage, bytes: 3_000 };
    assert!(ask(&mut target, KvOp::Stage(StageOp::Open { stage, bytes: 3_000 })).status.is_success());
    for offset in [0, 1_500] {
        let op = StageOp::Append { stage, offset, content: Content::Piece(piece) };
        assert!(!target.model.pairs().contains_key(b"k".as_slice()), "staged content is invisible");
        assert!(ask(&mut target, KvOp::Stage(op)).status.is_success());
    }
    let (condition, durability) = (StoreCondition::MustExist, Durability::AtReply);
    let refused = ask(&mut target, KvOp::Store { key: key("k"), content: staged, condition, durability });
    assert_eq!(refused.refusal, Some(KvRefusal::NoSuchKey), "and leaves the stage as it is");
    let condition = StoreCondition::Always;
    let reply = ask(&mut target, KvOp::Store { key: key("k"), content: staged, condition, durability });
    assert!(reply.status.is_success());
    assert_eq!(target.model.pairs()[b"k".as_slice()], [4; 3_000]);
}

fn pairs(all: &[(&str, u8)]) -> Pairs {
    all.iter().map(|&(key, byte)| (key.as_bytes().to_vec(), vec![byte; 10])).collect()
}

#[test]
fn each_key_holds_its_last_durable_value_or_a_later_one() {
    let mut target = target();
    for (of, byte) in [("a", 1), ("b", 1), ("a", 2)] {
        assert!(put(&mut target, of, 10, byte, StoreCondition::Always).status.is_success());
    }
    assert!(ask(&mut target, KvOp::Flush).status.is_success());
    for (of, byte) in [("a", 3), ("c", 1), ("a", 4)] {
        assert!(put(&mut target, of, 10, byte, StoreCondition::Always).status.is_success());
    }
    assert!(ask(&mut target, delete("b", AbsentKey::Success)).status.is_success());
    for (found, legal) in [
        (pairs(&[("a", 2), ("b", 1)]), true),
        (pairs(&[("a", 3), ("b", 1)]), true),
        (pairs(&[("a", 4), ("c", 1)]), true),
        (pairs(&[("a", 2), ("b", 1), ("c", 1)]), true),
        (pairs(&[("a", 1), ("b", 1)]), false),
        (pairs(&[("b", 1)]), false),
        (pairs(&[("a", 3), ("b", 2)]), false),
        (pairs(&[("a", 3), ("c", 2)]), false),
        (pairs(&[("a", 3), ("d", 1)]), false),
    ] {
        assert_eq!(target.model.may_hold(&found).is_ok(), legal, "{found:?}");
    }
}

#[test]
fn a_batch_is_whole_also_where_it_was_overwritten() {
    let mut target = target();
    let one = value(&mut target.buffers, 10, 1);
    let op = batch(
        &mut target.buffers,
        &[entry("a", one, StoreCondition::Always), entry("b", one, StoreCondition::Always)],
    );
    assert!(ask(&mut target, op).status.is_success());
    assert!(put(&mut target, "b", 10, 2, StoreCondition::Always).status.is_success());
    for (found, legal) in [
        (pairs(&[]), true),
        (pairs(&[("a", 1), ("b", 1)]), true),
        (pairs(&[("a", 1), ("b", 2)]), true),
        (pairs(&[("b", 2)]), true),
        (pairs(&[("a", 1)]), false),
        (pairs(&[("b", 1)]), false),
    ] {
        assert_eq!(target.model.may_hold(&found).is_ok(), legal, "{found:?}");
    }
}

#[test]
fn whatever_a_sound_target_keeps_is_allowed() {
    for seed in 0..40 {
        let tally = Trial::new(seed, KvModel::new(LIMITS), pool())
            .run(1_500, &mut DrawnKv::new(LIMITS, &mut Prng::new(seed)));
        let tally = tally.unwrap_or_else(|found| panic!("{found}"));
        assert!(tally.succeeded > 150 && tally.refused > 30 && tally.cuts > 5, "seed {seed}: {tally:?}");
    }
}

#[test]
fn a_target_that_forgets_or_tears_is_found() {
    for (name, canary) in canaries() {
        let found = (0..20).find_map(|seed| {
            let mut trial = Trial::new(seed, KvModel::new(LIMITS), pool());
            trial.canary = Some(canary);
            trial.run(1_500, &mut DrawnKv::new(LIMITS, &mut Prng::new(seed))).err()
        });
        assert!(found.is_some(), "{name}: not found with seeds 0 to 19");
    }
}
