//! Commands whose entries fail with different statuses: every failed entry has its bit, the gravest status is the
//! command's, and every entry is dealt with as if it came alone (`docs/ppa.md`).

use crate::rig::{Rig, index, ppa, preset};
use ocssd_base::Prng;
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::{ChunkId, ChunkState, Op, Ppa, Status};

const UNWRITTEN: u32 = 3;

fn rig() -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.wear.endurance = 100_000;
    Rig::new(config)
}

fn schedule(rig: &mut Rig, kind: FaultKind, chunk: u32, sector: Option<u32>) {
    rig.drive.schedule_fault(ScheduledFault { kind, chunk: ChunkId(chunk), sector, times: 1 });
}

fn unit(chunk: u32, first: u32) -> Vec<Ppa> {
    (first..first + 8).map(|sector| ppa(chunk, sector)).collect()
}

fn chunk_is(rig: &Rig, chunk: u32, state: ChunkState, pointer: u32) {
    let found = rig.drive.chunk(ChunkId(chunk));
    assert_eq!((found.state, found.write_pointer), (state, Some(pointer)), "chunk {chunk}");
}

#[test]
fn a_write_that_fails_both_ways_marks_the_entries_of_both() {
    for (next, close) in [(0, 16), (16, 0)] {
        let mut rig = rig();
        schedule(&mut rig, FaultKind::WriteNextUnit, next, None);
        schedule(&mut rig, FaultKind::EarlyClose, close, None);
        let list = [unit(0, 0), unit(8, 0), unit(16, 0)].concat();
        let command = rig.vector(Op::Write { fua: false }, &list);
        let (_, end) = rig.one(command);
        assert_eq!((end.status, end.failed), (Status::EARLY_CLOSE, 0xFF_00FF));
        chunk_is(&rig, next, ChunkState::Open, 8);
        chunk_is(&rig, close, ChunkState::Closed, 0);
        chunk_is(&rig, 8, ChunkState::Open, 8);
    }
}

#[test]
fn one_run_that_fails_both_ways_says_that_its_chunk_is_closed() {
    let mut rig = rig();
    schedule(&mut rig, FaultKind::WriteNextUnit, 0, Some(0));
    schedule(&mut rig, FaultKind::EarlyClose, 0, Some(16));
    let (_, end) = rig.write(ppa(0, 0), 24, 7);
    assert_eq!((end.status, end.failed), (Status::EARLY_CLOSE, 0xFF_00FF));
    chunk_is(&rig, 0, ChunkState::Closed, 16);
}

#[test]
fn a_second_run_of_a_chunk_that_the_first_one_closed_fails_with_it() {
    for lost in [0, 8] {
        let mut rig = rig();
        schedule(&mut rig, FaultKind::EarlyClose, 0, Some(lost));
        let list = [unit(0, 0), unit(8, 0), unit(0, 8), unit(8, 8), unit(0, 16)].concat();
        let command = rig.vector(Op::Write { fua: false }, &list);
        let (_, end) = rig.one(command);
        let failed = if lost == 0 { 0xFF_00FF_00FF } else { 0xFF_00FF_0000 };
        assert_eq!((end.status, end.failed), (Status::EARLY_CLOSE, failed));
        chunk_is(&rig, 0, ChunkState::Closed, lost);
        chunk_is(&rig, 8, ChunkState::Open, 16);
        rig.drive.check();
    }
}

#[test]
fn a_copy_into_a_chunk_that_its_first_run_closed_fails_with_it() {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.geometry.capabilities.vector_copy = true;
    let mut rig = Rig::new(config);
    rig.fill_chunk(1, 30);
    schedule(&mut rig, FaultKind::EarlyClose, 0, Some(0));
    let to = [unit(0, 0), unit(8, 0), unit(0, 8)].concat();
    let from: Vec<Ppa> = (0..24).map(|sector| ppa(1, sector)).collect();
    let command = rig.vector(Op::Copy, &[from, to].concat());
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::EARLY_CLOSE, 0xFF_00FF));
    chunk_is(&rig, 8, ChunkState::Open, 8);
    rig.drive.check();
}

#[test]
fn lost_sectors_beside_unwritten_ones_are_marked_like_them_and_weak_ones_keep_their_data() {
    let mut rig = rig();
    rig.fill_chunk(0, 50);
    schedule(&mut rig, FaultKind::UnrecoveredRead, 0, Some(2));
    schedule(&mut rig, FaultKind::HighEcc, 0, Some(3));
    let list = [ppa(UNWRITTEN, 0), ppa(0, 1), ppa(0, 2), ppa(0, 3), ppa(UNWRITTEN, 9), ppa(0, 4)];
    let command = rig.vector(Op::Read, &list);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::UNRECOVERED_READ, 0b01_0101));
    assert_eq!([1, 3, 5].map(|entry| rig.id_of(rig.buffer, entry)), [51, 53, 54]);
}

#[test]
fn high_ecc_alone_marks_the_weak_entries() {
    let mut rig = rig();
    rig.fill_chunk(0, 50);
    schedule(&mut rig, FaultKind::HighEcc, 0, Some(3));
    let (_, end) = rig.read(ppa(0, 0), 8);
    assert_eq!((end.status, end.failed), (Status::HIGH_ECC, 0b1000));
}

#[test]
fn a_reset_marks_offline_chunks_beside_refused_ones() {
    let mut rig = rig();
    rig.fill_chunk(0, 0);
    rig.fill_chunk(2, 0);
    rig.write_ok(4, 0..8, 0);
    schedule(&mut rig, FaultKind::ResetFailure, 0, None);
    let command = rig.vector(Op::Reset, &[ppa(1, 0), ppa(0, 0), ppa(2, 0), ppa(4, 0), ppa(5, 1)]);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::OFFLINE_CHUNK, 0b1_1011));
    let states = [0, 1, 2, 4].map(|chunk| rig.drive.chunk(ChunkId(chunk)).state);
    assert_eq!(states, [ChunkState::Offline, ChunkState::Free, ChunkState::Free, ChunkState::Open]);
}

/// The status and bits of a command whose entries, each alone, end like this.
fn together(singly: &[Status], gravest_first: &[Status]) -> (Status, u64) {
    let Some(&status) = gravest_first.iter().find(|status| singly.contains(status)) else {
        return (Status::SUCCESS, 0);
    };
    let is_marked = |&one: &Status| if status.has_data() { !one.is_success() } else { !one.has_data() };
    (
        status,
        singly.iter().enumerate().fold(0, |bits, (entry, one)| bits | u64::from(is_marked(one)) << entry),
    )
}

/// Two drives with the same faults: one is asked with vectors, the other entry by entry.
#[test]
fn a_vector_ends_as_its_entries_do_one_by_one() {
    let reads = [Status::UNRECOVERED_READ, Status::UNWRITTEN, Status::HIGH_ECC];
    let resets = [Status::OFFLINE_CHUNK, Status::INVALID_RESET];
    for seed in 0..200 {
        let (mut prng, mut vector, mut single) = (Prng::new(seed), rig(), rig());
        let mut below = |bound: u64| u32::try_from(prng.below(bound)).expect("a small number");
        for rig in [&mut vector, &mut single] {
            rig.fill_chunk(0, 100);
            rig.fill_chunk(1, 200);
            rig.write_ok(8, 0..8, 300);
        }
        for _ in 0..below(8) {
            let kind =
                [FaultKind::UnrecoveredRead, FaultKind::HighEcc, FaultKind::ResetFailure][index(below(3))];
            let (chunk, sector) = (below(2), below(32));
            let sector = (kind != FaultKind::ResetFailure).then_some(sector);
            schedule(&mut vector, kind, chunk, sector);
            schedule(&mut single, kind, chunk, sector);
        }
        let chunks = [0, 1, 2, 8];
        let sectors: Vec<Ppa> = (0..64).map(|_| ppa(chunks[index(below(4))], below(32))).collect();
        let blocks: Vec<Ppa> =
            (0..5).map(|_| ppa(chunks[index(below(4))], u32::from(below(8) == 0))).collect();
        for (op, list, order) in [(Op::Read, &sectors, &reads[..]), (Op::Reset, &blocks, &resets[..])] {
            let singly = list.iter().map(|&at| {
                let command = single.vector(op, &[at]);
                single.one(command).1.status
            });
            let expected = together(&singly.collect::<Vec<_>>(), order);
            let command = vector.vector(op, list);
            let (_, end) = vector.one(command);
            assert_eq!((end.status, end.failed), expected, "seed {seed}: {op:?} {list:?}");
            assert_eq!(vector.report(), single.report(), "seed {seed}: {op:?}");
        }
        vector.drive.check();
    }
}
