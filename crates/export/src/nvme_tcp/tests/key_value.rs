//! Namespaces of keys and values: what is said of them, every command and option, and what is refused.

use crate::model_targets::keys;
use crate::nvme_tcp::host::{Answer, transported};
use crate::nvme_tcp::testing::{NQN, World};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::decode_keys;
use ocssd_nvme::feature::{FeatureId, Select};
use ocssd_nvme::identify::{Cns, IndependentNamespace, NamespaceIds};
use ocssd_nvme::kv::{KeyValueCommand, KvNamespace, KvOpcode, StoreOptions};
use ocssd_nvme::log_page::{CommandEffects, EffectsLog, LogPageId};
use ocssd_nvme::sqe::{GetFeatures, GetLogPage, Identify, SetFeatures};
use ocssd_nvme::{Cqe, Sqe, StatusField};

/// The namespace of keys, and the one that is not written.
const NSID: u32 = 3;
const READ_ONLY: u32 = 4;

fn world() -> World {
    World::beside(vec![("k", keys()), ("k-ro", keys())], [8, 4, 4], &[])
}

fn about(opcode: KvOpcode, key: &[u8], bytes: usize) -> Sqe {
    let bytes = u32::try_from(bytes).expect("a transfer is small");
    Sqe::key_value(opcode, NSID, KeyValueCommand::new(key, bytes))
}

fn store(world: &mut World, line: usize, key: &[u8], value: &[u8]) -> Status {
    let sqe = about(KvOpcode::STORE, key, value.len());
    let cqe = if value.is_empty() { world.ask(line, sqe) } else { world.write(line, sqe, value) };
    cqe.status.status
}

fn ask(world: &mut World, line: usize, opcode: KvOpcode, key: &[u8]) -> Status {
    world.ask(line, about(opcode, key, 0)).status.status
}

/// A command that reads: the data, and the completion.
fn read(world: &mut World, line: usize, sqe: Sqe, bytes: usize) -> (Vec<u8>, Cqe) {
    let pdu = world.lines[line].host.command(&transported(sqe, bytes), &[]);
    match world.say(line, &pdu).as_slice() {
        [Answer::Data { bytes, .. }, Answer::Completion(cqe)] => (bytes.clone(), *cqe),
        // A completion that would tell nothing is left out.
        [Answer::Data { bytes, is_success: true, .. }] => (bytes.clone(), success()),
        [Answer::Completion(cqe)] => (Vec::new(), *cqe),
        other => panic!("an answer to {sqe:?} was {other:?}"),
    }
}

fn success() -> Cqe {
    let status = StatusField::SUCCESS;
    Cqe { dw0: 0, dw1: 0, sqhd: 0, sqid: 1, cid: 0, phase: false, status }
}

#[test]
fn a_namespace_says_what_its_keys_and_values_may_be() {
    let mut world = world();
    let (line, _) = world.admin((false, false), NQN);
    let mut ask =
        |nsid, cns, csi| world.read(line, Sqe::identify(nsid, Identify { cns, cntid: 0, csi }), 4096);
    let ids = NamespaceIds::decode(&ask(NSID, Cns::NAMESPACE_IDS, 0).unwrap()).unwrap();
    assert_eq!(ids.csi, Some(1));
    let keys = KvNamespace::decode(&ask(NSID, Cns::COMMAND_SET_NAMESPACE, 1).unwrap()).unwrap();
    assert_eq!((keys.nsze, keys.nuse, keys.format_count, keys.nsattr), (1_000_000, 0, 1, 0));
    let format = keys.formats[0];
    assert_eq!((format.key_bytes_max, format.value_bytes_max, format.keys_max), (16, 256 << 10, 0));
    let read_only = KvNamespace::decode(&ask(READ_ONLY, Cns::COMMAND_SET_NAMESPACE, 1).unwrap()).unwrap();
    assert_eq!(read_only.nsattr, 1);
    assert_eq!(ask(0, Cns::COMMAND_SET_CONTROLLER, 1).unwrap(), vec![0; 4096]);
    assert_eq!(ask(0, Cns::COMMAND_SETS, 0).unwrap()[0], 0b11);
    let independent = ask(NSID, Cns::INDEPENDENT_NAMESPACE, 0).unwrap();
    assert_eq!(IndependentNamespace::decode(&independent).unwrap().nstat, 1);
    assert_eq!(ask(NSID, Cns::NAMESPACE, 0), Err(Status::INVALID_FIELD), "it has no blocks");
    assert_eq!(ask(0, Cns::COMMAND_SET_CONTROLLER, 2), Err(Status::INVALID_FIELD), "there are no zones");
    let (lid, csi) = (LogPageId::COMMAND_EFFECTS, 1);
    let get = GetLogPage { lid, lsp: 0, retain_event: false, dword_count: 1024, offset_bytes: 0, csi };
    let effects = EffectsLog::decode(&world.read(line, Sqe::get_log_page(0, get), 4096).unwrap()).unwrap();
    assert_eq!([1, 0x10].map(|opcode| effects.io[opcode]), [CommandEffects::CHANGES; 2]);
    assert_eq!([0, 2, 6, 0x14].map(|opcode| effects.io[opcode]), [CommandEffects::SUPPORTED; 4]);
    assert_eq!(effects.io[5], CommandEffects::default());
    world.end();
}

/// What NUSE says of the namespace of keys.
fn bytes_in_use(world: &mut World, line: usize) -> u64 {
    let identify = Identify { cns: Cns::COMMAND_SET_NAMESPACE, cntid: 0, csi: 1 };
    let bytes = world.read(line, Sqe::identify(NSID, identify), 4096).unwrap();
    KvNamespace::decode(&bytes).unwrap().nuse
}

#[test]
fn what_is_in_use_grows_with_a_store_and_falls_with_a_deletion() {
    let mut world = world();
    let (admin, line, _) = world.ready((false, false));
    assert_eq!(bytes_in_use(&mut world, admin), 0);
    assert_eq!(store(&mut world, line, b"key", &[1; 5000]), Status::SUCCESS);
    assert_eq!(store(&mut world, line, b"other", &[1; 100]), Status::SUCCESS);
    assert_eq!(bytes_in_use(&mut world, admin), 5108);
    assert_eq!(store(&mut world, line, b"key", &[1; 10]), Status::SUCCESS, "a shorter value");
    assert_eq!(bytes_in_use(&mut world, admin), 118);
    assert_eq!(ask(&mut world, line, KvOpcode::DELETE, b"key"), Status::SUCCESS);
    assert_eq!(bytes_in_use(&mut world, admin), 105);
    world.end();
}

#[test]
fn a_value_comes_back_with_its_true_length_whatever_room_there_is() {
    let mut world = world();
    let (_, line, _) = world.ready((true, true));
    let value: Vec<u8> = (0..5000).map(|at: u32| at.to_le_bytes()[0] | 1).collect();
    assert_eq!(store(&mut world, line, b"key", &value), Status::SUCCESS);
    let (data, cqe) = read(&mut world, line, about(KvOpcode::RETRIEVE, b"key", 8192), 8192);
    assert_eq!((cqe.status.status, cqe.dw0, &data[..5000]), (Status::SUCCESS, 5000, &value[..]));
    assert!(data[5000..].iter().all(|&byte| byte == 0), "what is behind is nobody's");
    let (data, cqe) = read(&mut world, line, about(KvOpcode::RETRIEVE, b"key", 100), 512);
    assert_eq!((cqe.dw0, data.len(), &data[..100]), (5000, 512, &value[..100]));
    assert!(data[100..].iter().all(|&byte| byte == 0), "no more than there is room for");
    let cqe = world.ask(line, about(KvOpcode::RETRIEVE, b"key", 0));
    assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, 5000), "only its length");
    // A host that fills its last page.
    let padded = [b"short".to_vec(), vec![0; 4091]].concat();
    assert!(world.write(line, about(KvOpcode::STORE, b"key", 5), &padded).status.status.is_success());
    assert_eq!(world.ask(line, about(KvOpcode::RETRIEVE, b"key", 0)).dw0, 5);
    assert_eq!(store(&mut world, line, b"key", b""), Status::SUCCESS);
    assert_eq!(world.ask(line, about(KvOpcode::RETRIEVE, b"key", 0)).dw0, 0);
    assert_eq!(ask(&mut world, line, KvOpcode::EXIST, b"key"), Status::SUCCESS, "an empty value is one");
    assert_eq!(world.ask(line, Sqe::flush(NSID)).status.status, Status::SUCCESS);
    world.end();
}

#[test]
fn keys_are_any_bytes_and_dwords_without_a_meaning_have_none() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    // As a cache of a language model names its blocks: a hash of which one byte is a version; CDW12 is a number of blocks.
    let key = [0, 0xFF, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 0, 0, 0];
    let sqe = Sqe { cdw12: 7, cdw13: 99, ..about(KvOpcode::STORE, &key, 4096) };
    let fresh = StoreOptions { must_not_exist: true, ..StoreOptions::default() };
    let options = u32::from(KeyValueCommand::new(&key, 0).with_store_options(fresh).options) << 8;
    let sqe = Sqe { cdw11: sqe.cdw11 | options, ..sqe };
    assert_eq!(sqe.cdw14 >> 24, 1, "the version is the highest byte of CDW14");
    assert_eq!(world.write(line, sqe, &[3; 4096]).status.status, Status::SUCCESS);
    assert_eq!(world.write(line, sqe, &[4; 4096]).status.status, Status::KEY_EXISTS);
    let retrieve = Sqe { cdw12: 7, ..about(KvOpcode::RETRIEVE, &key, 4096) };
    let (data, cqe) = read(&mut world, line, retrieve, 4096);
    assert_eq!((cqe.dw0, data), (4096, vec![3; 4096]));
    assert_eq!(ask(&mut world, line, KvOpcode::EXIST, &key[..15]), Status::KEY_DOES_NOT_EXIST, "another key");
    let only = Sqe { cdw11: 1 | 1 << 8, ..about(KvOpcode::STORE, b"x", 4) };
    assert_eq!(world.write(line, only, b"0123").status.status, Status::KEY_DOES_NOT_EXIST);
    let both = Sqe { cdw11: 1 | 3 << 8, ..only };
    assert_eq!(world.write(line, both, b"0123").status.status, Status::INVALID_FIELD);
    world.end();
}

#[test]
fn keys_are_listed_from_one_on_and_those_that_are_gone_are_not() {
    let mut world = world();
    let (_, line, _) = world.ready((false, true));
    for key in [&b"ab"[..], b"abc", b"b", b"c"] {
        assert_eq!(store(&mut world, line, key, b"v"), Status::SUCCESS);
    }
    assert_eq!(ask(&mut world, line, KvOpcode::DELETE, b"b"), Status::SUCCESS);
    let list = |world: &mut World, from: &[u8], room: usize| {
        let (data, cqe) = read(world, line, about(KvOpcode::LIST, from, room), 4096);
        assert!(cqe.status.status.is_success() && data[room..].iter().all(|&byte| byte == 0), "{cqe:?}");
        decode_keys(&data).expect("a list")
    };
    assert_eq!(list(&mut world, b"", 4096), [&b"ab"[..], b"abc", b"c"]);
    assert_eq!(list(&mut world, b"abb", 4096), [&b"abc"[..], b"c"]);
    assert_eq!(list(&mut world, b"", 12), [b"ab"], "as many as have room");
    assert_eq!(list(&mut world, b"d", 4096), [&b""[..]; 0]);
    world.end();
}

#[test]
fn a_missing_key_is_an_error_of_a_deletion_if_hosts_want_that() {
    let mut world = world();
    let (admin, line, _) = world.ready((false, false));
    let fid = FeatureId::KEY_VALUE_CONFIGURATION;
    let set = |nsid, value| Sqe::set_features(nsid, SetFeatures { fid, save: false, value });
    let get = |nsid| Sqe::get_features(nsid, GetFeatures { fid, select: Select::Current, selector: 0 });
    assert_eq!(ask(&mut world, line, KvOpcode::DELETE, b"none"), Status::SUCCESS);
    assert_eq!(world.ask(admin, get(NSID)).dw0, 0);
    assert_eq!(world.ask(admin, set(NSID, 1)).status.status, Status::SUCCESS);
    assert_eq!(ask(&mut world, line, KvOpcode::DELETE, b"none"), Status::KEY_DOES_NOT_EXIST);
    assert_eq!((world.ask(admin, get(NSID)).dw0, world.ask(admin, get(READ_ONLY)).dw0), (1, 0));
    assert_eq!(world.ask(admin, set(NSID, 0)).status.status, Status::SUCCESS);
    assert_eq!(ask(&mut world, line, KvOpcode::DELETE, b"none"), Status::SUCCESS);
    assert_eq!(world.ask(admin, set(1, 1)).status.status, Status::INVALID_FIELD, "it has blocks");
    assert_eq!(world.ask(admin, set(9, 1)).status.status, Status::INVALID_NAMESPACE);
    let saved = Sqe::set_features(NSID, SetFeatures { fid, save: true, value: 1 });
    assert_eq!(world.ask(admin, saved).status.status, Status::FEATURE_NOT_SAVEABLE);
    world.end();
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    let with = |opcode: KvOpcode, cdw11: u32, cdw10: u32| Sqe { cdw11, cdw10, ..about(opcode, b"", 0) };
    let cases = [
        (with(KvOpcode::STORE, 0, 4), 4, Status::INVALID_KEY_SIZE),
        (with(KvOpcode::STORE, 17, 4), 4, Status::INVALID_KEY_SIZE),
        (with(KvOpcode::STORE, 1, 5), 4, Status::INVALID_SGL_LENGTH),
        (with(KvOpcode::DELETE, 0, 0), 0, Status::INVALID_KEY_SIZE),
        (with(KvOpcode::EXIST, 200, 0), 0, Status::INVALID_KEY_SIZE),
        (with(KvOpcode::RETRIEVE, 1, 1), 0, Status::INVALID_SGL_LENGTH),
        (with(KvOpcode(5), 1, 4), 4, Status::INVALID_OPCODE),
        (with(KvOpcode(0x0D), 1, 4), 4, Status::INVALID_OPCODE),
    ];
    for (sqe, bytes, expected) in cases {
        let cqe = if bytes == 0 { world.ask(line, sqe) } else { world.write(line, sqe, &vec![1; bytes]) };
        assert_eq!(cqe.status.status, expected, "{sqe:?}");
    }
    let (_, cqe) = read(&mut world, line, about(KvOpcode::RETRIEVE, b"none", 64), 64);
    assert_eq!(cqe.status.status, Status::KEY_DOES_NOT_EXIST);
    for opcode in [KvOpcode::STORE, KvOpcode::DELETE] {
        let sqe = Sqe { nsid: READ_ONLY, ..about(opcode, b"k", 0) };
        assert_eq!(world.ask(line, sqe).status.status, Status::WRITE_TO_READ_ONLY);
    }
    let mut stored = 0;
    let full = loop {
        let key = u32::to_be_bytes(stored);
        match store(&mut world, line, &key, &[7; 8000]) {
            Status::SUCCESS => stored += 1,
            other => break other,
        }
    };
    assert_eq!((full, stored), (Status::CAPACITY_EXCEEDED, 124), "a megabyte of pairs of 8,004 bytes");
    assert_eq!(ask(&mut world, line, KvOpcode::DELETE, &[0; 4]), Status::SUCCESS, "deletions still work");
    assert_eq!(store(&mut world, line, b"more", &[7; 8000]), Status::SUCCESS);
    world.end();
}

/// A command about a stage, or a part of a value.
fn staged(opcode: KvOpcode, key: &[u8], bytes: usize, offset: usize, stage: u32) -> Sqe {
    let offset = u32::try_from(offset).expect("values are short");
    let bytes = u32::try_from(bytes).expect("values are short");
    Sqe::key_value(opcode, NSID, KeyValueCommand { offset, stage, ..KeyValueCommand::new(key, bytes) })
}

fn append(world: &mut World, line: usize, part: &[u8], offset: usize, stage: u32) -> Status {
    let sqe = staged(KvOpcode::STAGE_APPEND, b"", part.len(), offset, stage);
    world.write(line, sqe, part).status.status
}

fn step(world: &mut World, line: usize, opcode: KvOpcode, bytes: usize, stage: u32) -> Status {
    let key: &[u8] = if opcode == KvOpcode::STORE_STAGED { b"long" } else { b"" };
    world.ask(line, staged(opcode, key, bytes, 0, stage)).status.status
}

#[test]
fn a_value_longer_than_a_command_is_collected_and_there_all_at_once() {
    let mut world = world();
    let (_, line, _) = world.ready((false, true));
    let value: Vec<u8> = (0..290_000_u32).map(|at| (at / 3).to_le_bytes()[0]).collect();
    assert_eq!(step(&mut world, line, KvOpcode::STAGE_OPEN, value.len(), 77), Status::SUCCESS);
    for (place, part) in value.chunks(16 << 10).enumerate() {
        assert_eq!(append(&mut world, line, part, place * (16 << 10), 77), Status::SUCCESS);
        assert_eq!(ask(&mut world, line, KvOpcode::EXIST, b"long"), Status::KEY_DOES_NOT_EXIST);
    }
    assert_eq!(step(&mut world, line, KvOpcode::STORE_STAGED, value.len(), 77), Status::SUCCESS);
    let mut found: Vec<u8> = Vec::new();
    while found.len() < value.len() {
        let room = 100_000;
        let sqe = staged(KvOpcode::RETRIEVE_PART, b"long", room, found.len(), 0);
        let (data, cqe) = read(&mut world, line, sqe, room);
        assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, 290_000));
        let part = room.min(value.len() - found.len());
        assert!(data[part..].iter().all(|&byte| byte == 0), "nothing is behind its end");
        found.extend(&data[..part]);
    }
    assert!(found == value, "it is what was sent");
    assert_eq!(append(&mut world, line, b"more", 0, 77), Status::COMMAND_SEQUENCE_ERROR, "it is over");
    world.end();
}

#[test]
fn a_stage_takes_its_bytes_in_order_and_stays_until_it_is_stored_or_given_up() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    let mut one = |opcode, bytes, name| step(&mut world, line, opcode, bytes, name);
    assert_eq!(one(KvOpcode::STAGE_OPEN, 300_001, 1), Status::INVALID_FIELD, "longer than a stage");
    assert_eq!(one(KvOpcode::STAGE_OPEN, 8, 1), Status::SUCCESS);
    assert_eq!(one(KvOpcode::STAGE_OPEN, 8, 1), Status::COMMAND_SEQUENCE_ERROR, "it has one of this name");
    for name in 2..5 {
        assert_eq!(one(KvOpcode::STAGE_OPEN, 8, name), Status::SUCCESS);
    }
    assert_eq!(one(KvOpcode::STAGE_OPEN, 8, 5), Status::NAMESPACE_NOT_READY, "there are four");
    assert_eq!(one(KvOpcode::STAGE_ABORT, 0, 4), Status::SUCCESS);
    assert_eq!(one(KvOpcode::STAGE_ABORT, 0, 4), Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(one(KvOpcode::STAGE_OPEN, 8, 5), Status::SUCCESS);
    assert_eq!(append(&mut world, line, b"0123", 0, 1), Status::SUCCESS);
    for (offset, expected) in [(0, Status::COMMAND_SEQUENCE_ERROR), (8, Status::COMMAND_SEQUENCE_ERROR)] {
        assert_eq!(append(&mut world, line, b"4567", offset, 1), expected, "at {offset}");
    }
    assert_eq!(step(&mut world, line, KvOpcode::STORE_STAGED, 8, 1), Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(append(&mut world, line, b"4567", 4, 1), Status::SUCCESS, "a refusal changes nothing");
    assert_eq!(append(&mut world, line, b"8", 8, 1), Status::INVALID_FIELD, "beyond its end");
    assert_eq!(step(&mut world, line, KvOpcode::STORE_STAGED, 8, 1), Status::SUCCESS);
    assert_eq!(world.ask(line, about(KvOpcode::RETRIEVE, b"long", 0)).dw0, 8);
    let elsewhere = Sqe { nsid: READ_ONLY, ..staged(KvOpcode::STAGE_OPEN, b"", 8, 0, 9) };
    assert_eq!(world.ask(line, elsewhere).status.status, Status::WRITE_TO_READ_ONLY);
    world.end();
}

#[test]
fn what_a_lost_host_had_begun_is_given_up_and_others_have_the_stages() {
    let mut world = world();
    for digests in [(false, false), (true, true)] {
        let (admin, line, _) = world.ready(digests);
        for name in 0..4 {
            assert_eq!(step(&mut world, line, KvOpcode::STAGE_OPEN, 8, name), Status::SUCCESS);
            assert_eq!(append(&mut world, line, b"0123", 0, name), Status::SUCCESS);
        }
        world.hang_up(admin);
        assert!(world.is_closed(line), "its queues go with it");
    }
    let (_, line, _) = world.ready((false, false));
    assert_eq!(ask(&mut world, line, KvOpcode::EXIST, b"long"), Status::KEY_DOES_NOT_EXIST);
    for name in 0..4 {
        assert_eq!(step(&mut world, line, KvOpcode::STAGE_OPEN, 4, name), Status::SUCCESS);
        assert_eq!(append(&mut world, line, b"abcd", 0, name), Status::SUCCESS);
    }
    assert_eq!(step(&mut world, line, KvOpcode::STORE_STAGED, 4, 3), Status::SUCCESS);
    world.end();
}
