//! Reads: every row of the table in `docs/ppa.md`, content with its metadata, both payloads.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_flash::{AddressList, Operation, OperationKind, ReadPolicy};
use ocssd_lightnvm::{Addresses, Completion, Device, Op, Payload, Ppa, Rule, Status, Tag};

/// Chunk 0 closed, chunk 1 open with 16 of 32 sectors, chunk 2 free, chunk 3 offline. MW_CUNITS is 8.
fn rig(payload: Payload) -> Rig {
    let mut config = preset("tiny");
    config.payload = payload;
    let mut rig = Rig::new(config);
    rig.fill_chunk(0, 100);
    rig.write_ok(1, 0..16, 200);
    rig.fill_chunk(3, 0);
    rig.drive.schedule_fault(ocssd_flash::ScheduledFault {
        kind: ocssd_flash::FaultKind::ResetFailure,
        chunk: ocssd_lightnvm::ChunkId(3),
        sector: None,
        times: 1,
    });
    assert_eq!(rig.reset(3).1.status, Status::OFFLINE_CHUNK);
    rig
}

/// Address, how many sectors, which of them have data.
const TABLE: [(&str, Ppa, u32, u64); 10] = [
    ("closed", Ppa::new(ocssd_lightnvm::ChunkId(0), 0), 32, 0xFFFF_FFFF),
    ("closed, to its end and beyond", Ppa::new(ocssd_lightnvm::ChunkId(0), 30), 4, 0b0011),
    ("open, below the window", Ppa::new(ocssd_lightnvm::ChunkId(1), 0), 8, 0xFF),
    ("open, into the window", Ppa::new(ocssd_lightnvm::ChunkId(1), 6), 4, 0b0011),
    ("open, in the window", Ppa::new(ocssd_lightnvm::ChunkId(1), 8), 8, 0),
    ("open, at the write pointer", Ppa::new(ocssd_lightnvm::ChunkId(1), 16), 4, 0),
    ("free", Ppa::new(ocssd_lightnvm::ChunkId(2), 0), 4, 0),
    ("offline", Ppa::new(ocssd_lightnvm::ChunkId(3), 0), 4, 0),
    ("no such chunk", Ppa::new(ocssd_lightnvm::ChunkId(32), 0), 4, 0),
    ("no such address", Ppa::new(ocssd_lightnvm::ChunkId(u32::MAX), u32::MAX), 4, 0),
];

fn judge(name: &str, end: &Completion, count: u32, good: u64) {
    let all = (1u64 << count) - 1;
    let failed = all & !good;
    let status = if failed == 0 { Status::SUCCESS } else { Status::UNWRITTEN };
    assert_eq!((end.status, end.failed), (status, failed), "{name}");
    assert_eq!(
        end.violation.map(|violation| violation.rule),
        (failed != 0).then_some(Rule::Readable),
        "{name}"
    );
}

#[test]
fn every_row_of_the_read_table_holds_for_runs_and_vectors() {
    for payload in [Payload::Stamp, Payload::Bytes] {
        let mut rig = rig(payload);
        for (name, first, count, good) in TABLE {
            let before = rig.report();
            let (_, end) = rig.read(first, count);
            judge(name, &end, count, good);
            let expected = if first.chunk.0 == 0 { 100 } else { 200 };
            for entry in (0..count).filter(|entry| good >> entry & 1 == 1) {
                assert_eq!(
                    rig.id_of(rig.buffer, entry),
                    expected + u64::from(first.sector + entry),
                    "{name}"
                );
            }
            let list: Vec<Ppa> =
                (0..count).map(|entry| Ppa::new(first.chunk, first.sector.saturating_add(entry))).collect();
            let command = rig.vector(Op::Read, &list);
            let (_, end) = rig.one(command);
            judge(name, &end, count, good);
            assert_eq!(rig.report(), before, "a read changes nothing");
        }
        rig.drive.check();
    }
}

#[test]
fn sectors_that_hold_nothing_read_as_predefined_data() {
    for (predefined, expected) in [(0x00, 0x00), (0xFF, 0xFF)] {
        let mut rig = rig(Payload::Bytes);
        let policy = ReadPolicy { unwritten_is_error: false, predefined, ..ReadPolicy::STRICT };
        let (mut data, mut oob) = (vec![0x5A; 4 * 4096], vec![0x5A; 4 * 16]);
        let operation = Operation {
            tag: Tag(1),
            kind: OperationKind::Read(policy),
            addresses: AddressList::Run { first: ppa(1, 6), count: 4 },
            data: &mut data,
            oob: &mut oob,
            whole: &mut [],
        };
        rig.drive.execute(rig.now, operation).expect("room");
        assert!(data[2 * 4096..].iter().all(|&byte| byte == expected));
        assert!(oob[2 * 16..].iter().all(|&byte| byte == 0));
        assert!(data[..2 * 4096].iter().any(|&byte| byte != expected), "the readable half is data");
        let at = rig.drive.deadline().expect("in flight");
        let mut end = None;
        while end.is_none() {
            rig.now = rig.now.max(rig.drive.deadline().unwrap_or(at));
            end = rig.drive.poll_completion(rig.now, &mut rig.buffers);
        }
        assert_eq!(end.map(|end| (end.status, end.failed)), Some((Status::SUCCESS, 0)));
    }
}

#[test]
fn a_vector_reads_any_mix_of_chunks_in_any_order_and_twice() {
    let mut rig = rig(Payload::Bytes);
    let list = [ppa(0, 31), ppa(1, 3), ppa(0, 5), ppa(0, 5), ppa(2, 0), ppa(0, 4), ppa(1, 7), ppa(99, 0)];
    let command = rig.vector(Op::Read, &list);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::UNWRITTEN, 1 << 4 | 1 << 7));
    let ids: Vec<u64> = [0, 1, 2, 3, 5, 6].map(|entry| rig.id_of(rig.buffer, entry)).into();
    assert_eq!(ids, [131, 203, 105, 105, 104, 207]);
}

#[test]
fn a_read_without_a_buffer_takes_its_time_all_the_same() {
    let mut rig = rig(Payload::Stamp);
    let mut command = rig.command(Op::Read, run(ppa(0, 0), 1));
    let (with, _) = rig.one(command);
    rig.read(ppa(0, 8), 1);
    command.buffer = None;
    let (without, end) = rig.one(command);
    assert_eq!((with, end.status), (without, Status::SUCCESS));
}

#[test]
fn scalar_reads_may_be_longer_than_a_vector_and_vectors_may_not() {
    let mut config = preset("tiny");
    config.geometry = ocssd_lightnvm::Geometry { sectors_per_chunk: 128, ..config.geometry };
    config.geometry.lba_format.sector_bits = 7;
    let mut rig = Rig::new(config);
    rig.fill_chunk(0, 0);
    let (_, end) = rig.read(ppa(0, 0), 128);
    assert_eq!(end.status, Status::SUCCESS);
    assert_eq!(rig.id_of(rig.buffer, 127), 127);
    for count in [0, 65] {
        let list: Vec<Ppa> = (0..count).map(|sector| ppa(0, sector)).collect();
        let command = rig.vector(Op::Read, &list);
        let (_, end) = rig.one(command);
        assert_eq!(end.status, Status::INVALID_FIELD, "{count} sectors");
        assert_eq!(
            end.violation.map(|violation| violation.rule),
            Some(Rule::VectorLength),
            "{count} sectors"
        );
    }
    let command = rig.command(Op::Read, Addresses::Run { first: ppa(0, 0), count: 0 });
    assert_eq!(rig.one(command).1.status, Status::INVALID_FIELD);
}

#[test]
fn metadata_that_was_not_given_reads_as_zero_also_beside_metadata_that_was() {
    let mut rig = rig(Payload::Stamp);
    let mut write = |chunk: u32, sector: u32, with_oob: bool| {
        let (mut data, mut oob) = (vec![7; 8 * 16], vec![9; 8 * 16]);
        let oob: &mut [u8] = if with_oob { &mut oob } else { &mut [] };
        let addresses = AddressList::Run { first: ppa(chunk, sector), count: 8 };
        let kind = OperationKind::Write { fua: false };
        rig.drive
            .execute(
                rig.now,
                Operation { tag: Tag(9), kind, addresses, data: &mut data, oob, whole: &mut [] },
            )
            .expect("room");
    };
    write(4, 0, false);
    write(4, 8, true);
    write(4, 16, false);
    write(4, 24, true);
    let (_, end) = {
        while let Some(at) = rig.drive.deadline() {
            rig.now = rig.now.max(at);
            rig.drive.poll_completion(rig.now, &mut rig.buffers);
        }
        rig.read(ppa(4, 0), 32)
    };
    assert!(end.status.is_success());
    for sector in 0..32 {
        let expected = if sector / 8 % 2 == 1 { 9 } else { 0 };
        assert!(
            rig.buffers.oob(rig.buffer, sector, 1).iter().all(|&byte| byte == expected),
            "sector {sector}"
        );
    }
}
