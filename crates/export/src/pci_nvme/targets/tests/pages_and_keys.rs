//! Namespaces of keys and values, and of pages, with what is longer than a command.

use super::{Bench, ENABLE_ALL, Served, ready};
use crate::model_targets::{keys, pages};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::log_structured::{PageEntry, PageId};
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::kv::{KeyValueCommand, KvOpcode};
use ocssd_nvme::pages::{FlushPages, PageOpcode, ReadPage, StagePages};
use ocssd_nvme::sqe::SetFeatures;
use ocssd_nvme::{Cqe, Sqe};

const NSID: u32 = 3;
const SESSION: u64 = 0x1_0000_0007;

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a transfer is small")
}

fn about(opcode: KvOpcode, key: &[u8], bytes: usize) -> Sqe {
    Sqe::key_value(opcode, NSID, KeyValueCommand::new(key, length(bytes)))
}

#[test]
fn values_are_stored_retrieved_in_part_listed_and_deleted() {
    let mut bench = ready(vec![("k", keys())]);
    // No multiple of anything: a PRP has no length, CDW10 has.
    assert_eq!(bench.send(about(KvOpcode::STORE, b"first", 5001), &[7; 5001]).status.status, Status::SUCCESS);
    let (found, cqe) = bench.fetch(about(KvOpcode::RETRIEVE, b"first", 8192), 8192);
    assert_eq!(
        (cqe.dw0, &found[..5001], found[5001..].iter().all(|&byte| byte == 0)),
        (5001, &[7; 5001][..], true)
    );
    let (found, cqe) = bench.fetch(about(KvOpcode::RETRIEVE, b"first", 3), 4);
    assert_eq!((cqe.dw0, &found[..]), (5001, &[7, 7, 7, 0xEE][..]), "no more than there is room for");
    assert_eq!(bench.carry_out(1, about(KvOpcode::RETRIEVE, b"first", 0)).dw0, 5001, "only its length");
    assert_eq!(bench.io(about(KvOpcode::STORE, b"none", 0)), Status::SUCCESS);
    let (found, _) = bench.fetch(about(KvOpcode::LIST, b"", 64), 64);
    assert_eq!(found[..4], [2, 0, 0, 0]);
    assert_eq!(bench.io(about(KvOpcode::EXIST, b"first", 0)), Status::SUCCESS);
    assert_eq!(bench.io(about(KvOpcode::DELETE, b"first", 0)), Status::SUCCESS);
    assert_eq!(bench.io(about(KvOpcode::EXIST, b"first", 0)), Status::KEY_DOES_NOT_EXIST);
    let refuse = SetFeatures { fid: FeatureId::KEY_VALUE_CONFIGURATION, save: false, value: 1 };
    assert_eq!(bench.admin(Sqe::set_features(NSID, refuse)), Status::SUCCESS);
    assert_eq!(bench.io(about(KvOpcode::DELETE, b"first", 0)), Status::KEY_DOES_NOT_EXIST);
    bench.end();
}

#[test]
fn a_value_longer_than_a_command_is_there_at_once_and_what_a_reset_left_is_not() {
    let mut bench = ready(vec![("k", keys())]);
    let value: Vec<u8> = (0..300_000u32).map(|at| u8::try_from(at % 253).unwrap()).collect();
    let stage = |opcode, key: &[u8], bytes, offset| {
        Sqe::key_value(
            opcode,
            NSID,
            KeyValueCommand { stage: 4, offset, ..KeyValueCommand::new(key, length(bytes)) },
        )
    };
    for is_reset in [true, false] {
        assert_eq!(bench.io(stage(KvOpcode::STAGE_OPEN, b"", value.len(), 0)), Status::SUCCESS);
        let mut at = 0;
        for part in value.chunks(200_000) {
            let sqe = stage(KvOpcode::STAGE_APPEND, b"", part.len(), length(at));
            assert_eq!(bench.send(sqe, part).status.status, Status::SUCCESS);
            at += part.len();
        }
        if is_reset {
            bench.write(0x14, ENABLE_ALL & !1);
            bench.enable_with(ENABLE_ALL);
            bench.make_queue(1);
            let lost = bench.io(stage(KvOpcode::STORE_STAGED, b"long", value.len(), 0));
            assert_eq!(lost, Status::COMMAND_SEQUENCE_ERROR, "its name means nothing any more");
        }
    }
    assert_eq!(bench.io(stage(KvOpcode::STORE_STAGED, b"long", value.len(), 0)), Status::SUCCESS);
    let command = KeyValueCommand { offset: 200_000, ..KeyValueCommand::new(b"long", 100_000) };
    let (found, cqe) = bench.fetch(Sqe::key_value(KvOpcode::RETRIEVE_PART, NSID, command), 100_000);
    assert!(cqe.dw0 == 300_000 && found == value[200_000..]);
    bench.end();
}

/// A page table: pages of these lengths, one after the other; 0 deletes.
fn table(rows: &[(u64, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; rows.len() * PageEntry::BYTES];
    let mut at = 0;
    for (&(page, length), place) in rows.iter().zip(bytes.chunks_exact_mut(PageEntry::BYTES)) {
        let offset = if length == 0 { 0 } else { at };
        PageEntry { page: PageId(page), offset, bytes: length }.encode(place);
        at += length;
    }
    bytes
}

fn flush_of(wsn: u64, rows: usize, bytes: usize) -> FlushPages {
    let (rows, bytes) = (length(rows), length(bytes));
    FlushPages { session: SESSION, wsn, bytes, rows, force_unit_access: false, stage: None }
}

fn open(bench: &mut Bench<Served>) -> Cqe {
    bench.carry_out(1, Sqe::page_session(PageOpcode::OPEN_SESSION, NSID, SESSION))
}

#[test]
fn pages_are_flushed_with_their_table_and_read_whatever_the_direction_bits_of_opcodes_say() {
    let mut bench = ready(vec![("p", pages())]);
    assert_eq!((open(&mut bench).dw0, open(&mut bench).status.status), (0, Status::SUCCESS));
    let sent = [table(&[(9, 5), (1 << 40, 5000)]), vec![7; 5005]].concat();
    assert_eq!(
        bench.send(Sqe::flush_pages(NSID, flush_of(1, 2, 5005)), &sent).status.status,
        Status::SUCCESS
    );
    let read = ReadPage { page: 1 << 40, offset: 4990, bytes: 64 };
    let (found, cqe) = bench.fetch(Sqe::read_page(NSID, read), 64);
    assert_eq!((cqe.dw0, &found[..10], found[10..] == [0; 54]), (5000, &[7; 10][..], true));
    let (found, _) = bench.fetch(Sqe { opcode: PageOpcode::STAT.0, nsid: NSID, ..Sqe::default() }, 16);
    assert_eq!(found, [2u64.to_le_bytes(), 5005u64.to_le_bytes()].concat());
    assert_eq!(bench.io(Sqe::flush_pages(NSID, flush_of(2, 0, 0))), Status::SUCCESS, "no page at all");
    let deleted = Sqe::flush_pages(NSID, FlushPages { force_unit_access: true, ..flush_of(3, 1, 0) });
    assert_eq!(bench.send(deleted, &table(&[(9, 0)])).dw0, 3, "it says how far the session is durable");
    let early = bench.send(Sqe::flush_pages(NSID, flush_of(9, 1, 0)), &table(&[(9, 0)]));
    assert_eq!((early.status.status, early.dw0, early.dw1), (Status::COMMAND_SEQUENCE_ERROR, 4, 3));
    bench.end();
}

#[test]
fn a_flush_of_two_megabytes_is_collected_and_there_all_at_once() {
    let mut bench = ready(vec![("p", pages())]);
    open(&mut bench);
    let rows: Vec<(u64, u32)> = (0..512).map(|page| (page, 4096)).collect();
    let buffer: Vec<u8> = (0..2u32 << 20).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let stage = |opcode, bytes, offset| {
        Sqe::page_stage(opcode, NSID, StagePages { stage: 5, bytes: length(bytes), offset: length(offset) })
    };
    assert_eq!(bench.io(stage(PageOpcode::STAGE_OPEN, buffer.len(), 0)), Status::SUCCESS);
    for (place, part) in buffer.chunks(256 << 10).enumerate() {
        let sqe = stage(PageOpcode::STAGE_APPEND, part.len(), place * (256 << 10));
        assert_eq!(bench.send(sqe, part).status.status, Status::SUCCESS);
    }
    let flush = FlushPages { stage: Some(5), ..flush_of(1, rows.len(), buffer.len()) };
    assert_eq!(bench.send(Sqe::flush_pages(NSID, flush), &table(&rows)).status.status, Status::SUCCESS);
    let read = ReadPage { page: 500, offset: 0, bytes: 4096 };
    assert_eq!(bench.fetch(Sqe::read_page(NSID, read), 4096).0, buffer[500 * 4096..501 * 4096]);
    bench.end();
}
