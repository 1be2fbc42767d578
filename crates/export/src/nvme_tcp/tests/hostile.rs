//! Hosts that send what no host may: each is told, as far as the protocol has words for it, and dropped.

use crate::nvme_tcp::host::{Answer, in_capsule, transported};
use crate::nvme_tcp::testing::World;
use crate::stats::DropReason;
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::{Lba, Sqe};

/// Types and places of fatal errors (NVMe/TCP figure 28).
const HEADER_FIELD: u16 = 1;
const SEQUENCE: u16 = 2;
const HEADER_DIGEST: u16 = 3;
const OUT_OF_RANGE: u16 = 4;
const LIMIT: u16 = 5;
const UNSUPPORTED: u16 = 6;

fn write(blocks: u32) -> Sqe {
    let io = ReadWrite { slba: Lba(0), block_count: blocks, limited_retry: false, force_unit_access: false };
    Sqe::write(1, io)
}

/// Sends bytes that end the connection; with which words.
fn dropped(world: &mut World, line: usize, bytes: &[u8]) -> (u16, u32, DropReason) {
    let answers = world.say(line, bytes);
    assert!(world.is_closed(line), "it was not dropped: {answers:?}");
    let end = world.lines[line].end.clone().expect("it was hostile");
    assert!(!end.sentence.is_empty());
    match answers.last() {
        Some(Answer::Term { error, offset }) => (*error, *offset, end.reason),
        other => panic!("no last words but {other:?}"),
    }
}

/// Bytes that are changed, and to what.
type Patches = [(usize, u8)];

fn patched(mut pdu: Vec<u8>, patches: &Patches) -> Vec<u8> {
    patches.iter().for_each(|(at, byte)| pdu[*at] = *byte);
    pdu
}

#[test]
fn greetings_that_are_none_are_refused() {
    let cases: [(&Patches, u16, u32); 9] = [
        (&[(0, 4)], HEADER_FIELD, 0),
        (&[(0, 1)], HEADER_FIELD, 0),
        (&[(0, 0x47)], HEADER_FIELD, 0),
        (&[(2, 64)], HEADER_FIELD, 2),
        (&[(4, 127)], HEADER_FIELD, 4),
        (&[(7, 0x80)], HEADER_FIELD, 4),
        (&[(8, 1)], UNSUPPORTED, 8),
        (&[(10, 32)], HEADER_FIELD, 10),
        (&[(10, 255)], HEADER_FIELD, 10),
    ];
    for (patches, error, offset) in cases {
        let mut world = World::new();
        let line = world.arrive(false, false);
        let hello = patched(world.lines[line].host.hello(), patches);
        assert_eq!(dropped(&mut world, line, &hello), (error, offset, DropReason::Garbage), "{patches:?}");
        world.end();
    }
}

#[test]
fn headers_that_are_none_are_refused() {
    let garbage = DropReason::Garbage;
    let cases: [(&Patches, u16, u32, DropReason); 10] = [
        (&[(0, 5)], HEADER_FIELD, 0, garbage),
        (&[(0, 0xFF)], HEADER_FIELD, 0, garbage),
        (&[(0, 0)], SEQUENCE, 0, garbage),
        (&[(2, 71)], HEADER_FIELD, 2, garbage),
        (&[(1, 1)], HEADER_FIELD, 1, garbage),
        (&[(4, 71)], HEADER_FIELD, 4, garbage),
        (&[(4, 73)], HEADER_FIELD, 3, garbage),
        (&[(3, 73), (4, 80)], HEADER_FIELD, 3, garbage),
        (&[(3, 72), (7, 0xFF)], LIMIT, 4, DropReason::Oversized),
        (&[(1, 2), (3, 72), (4, 80)], HEADER_FIELD, 1, garbage),
    ];
    for (patches, error, offset, reason) in cases {
        let mut world = World::new();
        let (_, line, _) = world.ready((false, false));
        let pdu = patched(world.lines[line].host.command(&transported(Sqe::flush(1), 0), &[]), patches);
        assert_eq!(dropped(&mut world, line, &pdu), (error, offset, reason), "{patches:?}");
        world.end();
    }
}

#[test]
fn a_header_whose_digest_is_wrong_ends_the_connection_before_it_is_believed() {
    let mut world = World::new();
    let (_, line, _) = world.ready((true, true));
    let pdu = world.lines[line].host.command(&transported(Sqe::flush(1), 0), &[]);
    for at in [8, 71, 75] {
        let line = world.ready((true, true)).1;
        let mut wrong = pdu.clone();
        wrong[at] ^= 0x10;
        let (error, _, reason) = dropped(&mut world, line, &wrong);
        assert_eq!((error, reason), (HEADER_DIGEST, DropReason::Garbage));
    }
    let pdu = patched(pdu, &[(1, 0)]);
    assert_eq!(dropped(&mut world, line, &pdu), (HEADER_FIELD, 1, DropReason::Garbage));
    world.end();
}

#[test]
fn data_that_nobody_asked_for_is_refused() {
    type Data = fn(u16, u16) -> (u16, u16, usize, usize, bool);
    let cases: [(Data, u16, u32); 8] = [
        (|cid, tag| (cid + 1, tag, 0, 4096, true), HEADER_FIELD, 10),
        (|cid, tag| (cid, tag + 1, 0, 4096, true), HEADER_FIELD, 10),
        (|cid, _| (cid, u16::MAX, 0, 4096, true), HEADER_FIELD, 10),
        (|cid, tag| (cid, tag, 4, 4092, true), OUT_OF_RANGE, 12),
        (|cid, tag| (cid, tag, 0, 4100, true), OUT_OF_RANGE, 12),
        (|cid, tag| (cid, tag, 0, 4096, false), HEADER_FIELD, 1),
        (|cid, tag| (cid, tag, 0, 2048, true), HEADER_FIELD, 1),
        (|cid, tag| (cid, tag, 0, 0, true), HEADER_FIELD, 16),
    ];
    for (place, (data, error, offset)) in cases.into_iter().enumerate() {
        let mut world = World::new();
        let (_, line, _) = world.ready((false, false));
        let pdu = world.lines[line].host.command(&transported(write(8).with_cid(40), 4096), &[]);
        let [Answer::Ask { cid, tag, .. }] = world.say(line, &pdu)[..] else { panic!("it asks") };
        let (cid, tag, at, bytes, is_last) = data(cid, tag);
        let pdu = world.lines[line].host.data(cid, tag, at, &vec![1; bytes], is_last);
        assert_eq!(dropped(&mut world, line, &pdu), (error, offset, DropReason::Garbage), "case {place}");
        assert!(world.disks.log.is_empty());
        world.end();
    }
}

#[test]
fn data_that_came_twice_is_not_taken_for_another_commands() {
    let mut world = World::new();
    let (_, line, _) = world.ready((false, false));
    let pdu = world.lines[line].host.command(&transported(write(1).with_cid(40), 512), &[]);
    let [Answer::Ask { cid, tag, .. }] = world.say(line, &pdu)[..] else { panic!("it asks") };
    let pdu = world.lines[line].host.data(cid, tag, 0, &[1; 512], true);
    world.say(line, &pdu);
    assert_eq!(dropped(&mut world, line, &pdu), (HEADER_FIELD, 10, DropReason::Garbage));
    world.end();
}

#[test]
fn more_commands_than_entries_end_the_connection_and_so_does_a_closing() {
    let mut world = World::new();
    let (_, line, _) = world.ready((false, false));
    let mut bytes = Vec::new();
    for cid in 0..129 {
        bytes.extend(world.lines[line].host.command(&transported(write(8).with_cid(cid), 4096), &[]));
    }
    assert_eq!(dropped(&mut world, line, &bytes), (SEQUENCE, 0, DropReason::Garbage));
    let (_, line, _) = world.ready((false, false));
    let mut term = vec![0; 24];
    (term[0], term[2], term[4], term[8]) = (2, 24, 24, 3);
    assert_eq!(dropped(&mut world, line, &term).2, DropReason::Garbage);
    world.end();
}

#[test]
fn a_capsule_of_more_than_was_offered_is_refused_before_memory_is_taken() {
    let mut world = World::new();
    let (_, line, _) = world.ready((false, false));
    let pdu = world.lines[line].host.command(&in_capsule(write(33), 33 * 512), &vec![0; 33 * 512]);
    assert_eq!(dropped(&mut world, line, &pdu), (LIMIT, 4, DropReason::Oversized));
    world.end();
}

#[test]
fn a_host_that_owes_data_is_known_to() {
    use crate::protocol::Protocol;
    let mut world = World::new();
    let (_, line, _) = world.ready((false, false));
    assert!(!world.lines[line].session.is_owed());
    let pdu = world.lines[line].host.command(&transported(write(8), 4096), &[]);
    world.say(line, &pdu[..5]);
    assert!(world.lines[line].session.is_owed(), "half a header");
    world.say(line, &pdu[5..]);
    assert!(world.lines[line].session.is_owed(), "data was asked for");
    world.end();
}
