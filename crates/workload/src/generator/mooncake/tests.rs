//! Traces asked of a model of a store.

use super::*;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::StageLimits;
use ocssd_lightnvm::interface::key_value::{Key, KvLimits, ListOrder};
use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};
use std::collections::BTreeMap;

fn limits() -> KvLimits {
    KvLimits {
        key_bytes_max: 16,
        value_bytes_max: 1 << 20,
        batch_entries_max: 1,
        capacity_bytes: 1 << 22,
        list_order: ListOrder::Bytewise,
        stages: StageLimits { stages_max: 1, bytes_max: 1 << 20 },
    }
}

fn pool() -> Buffers {
    Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24)))
}

fn trace(lines: &[(u64, u32, &[u64])]) -> Trace {
    let request = |&(at_ms, input_tokens, blocks): &(u64, u32, &[u64])| trace::TraceRequest {
        at_ms,
        input_tokens,
        output_tokens: 1,
        blocks: blocks.to_vec(),
    };
    Trace { requests: lines.iter().map(request).collect() }
}

/// Answers every request at once, as a store does; what was asked, one word each.
fn run(options: &str, trace: Trace) -> (Vec<String>, Mooncake) {
    let (mut buffers, mut store, mut asked) = (pool(), BTreeMap::<Vec<u8>, Vec<u8>>::new(), Vec::new());
    let options = MooncakeOptions::parse(options, &limits()).expect("the options can be used");
    let mut mooncake = Mooncake::new(options, trace);
    let number = |key: &Key, buffers: &Buffers| {
        let bytes = key.gathered(buffers);
        (bytes.clone(), u64::from_be_bytes(bytes[8..].try_into().expect("eight bytes")))
    };
    while let Some(request) = mooncake.next(Tag(1), &mut buffers) {
        let mut answer = KvAnswer::Done;
        match request.op {
            KvOp::Store { key, content, .. } => {
                let (key, block) = number(&key, &buffers);
                assert!(store.insert(key, content.gathered(&buffers)).is_none(), "{block} was there");
                asked.push(format!("s{block}"));
            }
            KvOp::Retrieve { key, into: Content::Piece(piece), .. } => {
                let (key, block) = number(&key, &buffers);
                let value = store.get(&key).expect("what is retrieved is there");
                piece.scatter(&mut buffers, value);
                answer = KvAnswer::Value { bytes: u32::try_from(value.len()).expect("short") };
                asked.push(format!("r{block}"));
            }
            KvOp::Delete { key, .. } => {
                let (key, block) = number(&key, &buffers);
                assert!(store.remove(&key).is_some(), "{block} was not there");
                asked.push(format!("d{block}"));
            }
            op => panic!("{op:?} was not expected"),
        }
        let reply = KvReply::success(request.tag, answer);
        mooncake.on_reply(&request, &reply, &mut buffers);
        assert_eq!(mooncake.answered(&request, &reply).outcome, Outcome::Done, "{asked:?}");
    }
    assert!(mooncake.is_finished() && buffers.in_use() == 0);
    (asked, mooncake)
}

#[test]
fn the_prefix_that_is_there_is_retrieved_and_the_rest_is_stored() {
    let trace = trace(&[(0, 1_100, &[0, 1, 2]), (5, 1_600, &[0, 1, 7, 8]), (9, 600, &[3, 1])]);
    let (asked, mooncake) = run("bytespertoken=8", trace);
    assert_eq!(asked, ["s0", "s1", "s2", "r0", "r1", "s7", "s8", "s3"]);
    let expected = MooncakeStats { found: 2, stored: 6, evicted: 0, there: 1, dropped: 0 };
    assert_eq!((mooncake.stats(), mooncake.phase()), (expected, "fill"));
}

#[test]
fn what_is_kept_is_bounded_and_old_blocks_make_room() {
    let trace = trace(&[(0, 1_024, &[0, 1]), (5, 1_024, &[0, 2]), (9, 1_536, &[3, 4, 5])]);
    let (asked, mooncake) = run("bytespertoken=8,cachebytes=8k", trace);
    assert_eq!(asked, ["s0", "s1", "r0", "d1", "s2", "d0", "s3", "d2", "s4"]);
    assert_eq!((mooncake.stats().evicted, mooncake.stats().dropped, mooncake.phase()), (3, 1, "run"));
}

#[test]
fn a_trace_is_repeated_with_blocks_of_its_own_until_enough_was_stored() {
    let once = trace(&[(0, 512, &[0]), (4, 512, &[0]), (1_000, 512, &[1])]);
    let (asked, mooncake) = run("bytespertoken=8,storebytes=16k,speed=2", once);
    let again = |id: u64| format!("s{}", IDS_MAX + id);
    let found = format!("r{IDS_MAX}");
    assert_eq!(asked, ["s0", "r0", "s1", &again(0), &found, &again(1)]);
    assert_eq!((mooncake.stats().stored, mooncake.begun), (4, 6));
    assert_eq!(mooncake.arrived, Nanos::from_millis(2_500), "4 000 ms of the first, 1 000 of the second");
}

#[test]
fn requests_wait_for_their_time_unless_speed_is_0() {
    let two = trace(&[(0, 512, &[0]), (3_000, 512, &[1])]);
    for (speed, at) in
        [("1", Some(Nanos::from_millis(3_000))), ("1000", Some(Nanos::from_millis(3))), ("0", None)]
    {
        let options = MooncakeOptions::parse(&format!("speed={speed}"), &limits()).expect("sound");
        let (mut mooncake, mut buffers) = (Mooncake::new(options, two.clone()), pool());
        assert_eq!(mooncake.arrival(), at.map(|_| Nanos::ZERO));
        assert!(mooncake.next(Tag(0), &mut buffers).is_some());
        assert_eq!(mooncake.arrival(), at, "speed {speed}");
    }
}

#[test]
fn a_block_waits_for_its_change_and_a_change_for_retrieves() {
    let options = MooncakeOptions::parse("bytespertoken=8,cachebytes=4k", &limits()).expect("sound");
    let lines = trace(&[(0, 512, &[0]), (0, 512, &[0]), (0, 512, &[0]), (0, 512, &[1])]);
    let (mut mooncake, mut buffers) = (Mooncake::new(options, lines), pool());
    let store = mooncake.next(Tag(0), &mut buffers).expect("a store of 0");
    assert!(mooncake.next(Tag(1), &mut buffers).is_none(), "0 is being stored");
    let KvOp::Store { content, .. } = store.op else { panic!("{store:?}") };
    let value = content.gathered(&buffers);
    mooncake.on_reply(&store, &KvReply::success(Tag(0), KvAnswer::Done), &mut buffers);
    let reads = [Tag(1), Tag(2)].map(|tag| mooncake.next(tag, &mut buffers).expect("two retrieves at once"));
    for read in reads {
        assert!(mooncake.next(Tag(3), &mut buffers).is_none(), "0 is being retrieved, so it is not deleted");
        let KvOp::Retrieve { into: Content::Piece(piece), .. } = read.op else { panic!("{read:?}") };
        piece.scatter(&mut buffers, &value);
        let reply = KvReply::success(read.tag, KvAnswer::Value { bytes: 4_096 });
        mooncake.on_reply(&read, &reply, &mut buffers);
        assert_eq!(mooncake.answered(&read, &reply).outcome, Outcome::Done);
    }
    let delete = mooncake.next(Tag(3), &mut buffers).expect("a deletion");
    assert!(matches!(delete.op, KvOp::Delete { .. }), "{delete:?}");
}

#[test]
fn a_retrieve_of_another_length_or_content_is_a_failure() {
    for (bytes, byte, says) in [(4_095, 0, "has 4095 bytes"), (4_096, 1, "content of another")] {
        let options = MooncakeOptions::parse("bytespertoken=8", &limits()).expect("sound");
        let two = trace(&[(0, 512, &[0]), (0, 512, &[0])]);
        let (mut mooncake, mut buffers) = (Mooncake::new(options, two), pool());
        let store = mooncake.next(Tag(0), &mut buffers).expect("a store");
        let KvOp::Store { content, .. } = store.op else { panic!("{store:?}") };
        let mut value = content.gathered(&buffers);
        *value.last_mut().expect("bytes") ^= byte;
        mooncake.on_reply(&store, &KvReply::success(Tag(0), KvAnswer::Done), &mut buffers);
        let read = mooncake.next(Tag(1), &mut buffers).expect("a retrieve");
        let KvOp::Retrieve { into: Content::Piece(piece), .. } = read.op else { panic!("{read:?}") };
        piece.scatter(&mut buffers, &value);
        let reply = KvReply::success(Tag(1), KvAnswer::Value { bytes });
        mooncake.on_reply(&read, &reply, &mut buffers);
        let Outcome::Failed(sentence) = mooncake.answered(&read, &reply).outcome else { panic!("{says}") };
        assert!(sentence.contains(says), "{sentence}");
    }
}

#[test]
fn a_block_that_is_not_there_is_a_failure() {
    let options = MooncakeOptions::parse("bytespertoken=8", &limits()).expect("sound");
    let two = trace(&[(0, 512, &[0]), (0, 512, &[0])]);
    let (mut mooncake, mut buffers) = (Mooncake::new(options, two), pool());
    let store = mooncake.next(Tag(0), &mut buffers).expect("a store");
    mooncake.on_reply(&store, &KvReply::success(Tag(0), KvAnswer::Done), &mut buffers);
    let read = mooncake.next(Tag(1), &mut buffers).expect("a retrieve");
    let reply = KvReply::refused(Tag(1), KvRefusal::NoSuchKey, None);
    mooncake.on_reply(&read, &reply, &mut buffers);
    let outcome = mooncake.answered(&read, &reply).outcome;
    assert!(matches!(&outcome, Outcome::Failed(says) if says.contains("does not exist")), "{outcome:?}");
}

#[test]
fn bad_options_are_refused_in_words() {
    for (text, says) in [
        ("bytespertoken=4096", "take 2048 or less"),
        ("cachebytes=8m", "from 1 to 4194304"),
        ("speed=-1", "from 0 to"),
        ("rounds=2", "there are only trace, requests"),
    ] {
        let problem = MooncakeOptions::parse(text, &limits()).expect_err(text).to_string();
        assert!(problem.contains(says), "{text}: {problem}");
    }
    let drawn = synthetic::synthetic(40, &Prng::new(2));
    let (asked, _) = run("bytespertoken=1,speed=0", drawn);
    assert!(asked.len() > 40);
}
