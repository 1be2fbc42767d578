//! Whole sectors of a drive of stamps: every byte of what was written whole comes back, and nothing older, through
//! copies, resets, faults and power cuts.

use crate::rig::{BUFFER_SECTORS, Rig, content, index, ppa, preset, run};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{AddressList, Config, Operation, OperationKind, ReadPolicy};
use ocssd_lightnvm::{BufId, ChunkState, Command, Completion, Device, Op, Payload, Ppa, Status, Tag};

const SECTOR_BYTES: usize = 4096;

/// A rig with a whole buffer beside its own.
struct Whole {
    rig: Rig,
    plain: BufId,
    whole: BufId,
}

/// All bytes of a sector that stand for `id`, unlike those of its stamp.
fn all_bytes(id: u64) -> Vec<u8> {
    Prng::new(id).next_u64().to_le_bytes().into_iter().cycle().take(SECTOR_BYTES).collect()
}

/// What a read into a whole buffer gives of a sector that was not written whole.
fn stamp_and_zeros(id: u64) -> Vec<u8> {
    content(id).into_iter().chain(std::iter::repeat(0)).take(SECTOR_BYTES).collect()
}

impl Whole {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = preset("tiny");
        config.geometry.mw_cunits = 0;
        change(&mut config);
        let mut rig = Rig::new(config);
        let whole = rig.buffers.take_whole(BUFFER_SECTORS);
        Self { plain: rig.buffer, whole, rig }
    }

    /// Fills sectors of both buffers.
    fn fill(&mut self, first: u32, count: u32, id: u64) {
        for sector in first..first + count {
            let id = id + u64::from(sector);
            self.rig.fill(self.plain, sector, id);
            self.rig.fill(self.whole, sector, id);
            self.rig.buffers.whole_mut(self.whole, sector, 1).copy_from_slice(&all_bytes(id));
        }
    }

    fn write(&mut self, buffer: BufId, first: Ppa, count: u32, id: u64) -> Completion {
        self.fill(0, count, id);
        self.rig.buffer = buffer;
        let command = self.rig.command(Op::Write { fua: false }, run(first, count));
        self.rig.one(command).1
    }

    fn write_whole(&mut self, first: Ppa, count: u32, id: u64) -> Completion {
        self.write(self.whole, first, count, id)
    }

    fn write_plain(&mut self, first: Ppa, count: u32, id: u64) -> Completion {
        self.write(self.plain, first, count, id)
    }

    /// Reads into a buffer that held something else.
    fn read(&mut self, buffer: BufId, first: Ppa, count: u32) -> Completion {
        self.fill(0, count, 0xDEAD_0000);
        self.rig.buffer = buffer;
        self.rig.read(first, count).1
    }

    /// Reads a sector into both buffers, and asserts that it holds `id`, whole or not.
    fn check(&mut self, at: Ppa, id: u64, is_whole: bool, context: &str) {
        let read = self.read(self.plain, at, 1);
        assert_eq!(read.status, Status::SUCCESS, "{context}, {at:?}");
        assert_eq!(self.rig.id_of(self.plain, 0), id, "{context}, {at:?}");
        self.read(self.whole, at, 1);
        assert_eq!(self.rig.id_of(self.whole, 0), id, "{context}, {at:?}");
        let expected = if is_whole { all_bytes(id) } else { stamp_and_zeros(id) };
        assert!(self.rig.buffers.whole(self.whole, 0, 1) == expected, "{context}, {at:?}: other bytes");
    }
}

#[test]
fn a_sector_is_as_whole_as_the_buffer_it_was_written_from() {
    let mut drive = Whole::new(|_| ());
    drive.write_whole(ppa(3, 0), 8, 100);
    drive.write_plain(ppa(3, 8), 8, 200);
    drive.write_whole(ppa(3, 16), 4, 300);
    for sector in 0..20 {
        let (id, is_whole) = match sector {
            0..8 => (100 + u64::from(sector), true),
            8..16 => (192 + u64::from(sector), false),
            _ => (284 + u64::from(sector), true),
        };
        drive.check(ppa(3, sector), id, is_whole, "alone");
    }
    drive.read(drive.whole, ppa(3, 6), 12);
    let found = drive.rig.buffers.whole(drive.whole, 0, 12).to_vec();
    let expected: Vec<u8> = (106..108)
        .flat_map(all_bytes)
        .chain((200..208).flat_map(stamp_and_zeros))
        .chain((300..302).flat_map(all_bytes))
        .collect();
    assert!(found == expected, "one read of both kinds");
    drive.rig.drive.check();
}

#[test]
fn behind_the_whole_front_of_a_buffer_sectors_are_their_stamps() {
    let mut drive = Whole::new(|_| ());
    let front = drive.rig.buffers.take_whole_front(BUFFER_SECTORS, 3);
    let write = |drive: &mut Whole, first: Ppa, id: u64| {
        for sector in 0..8 {
            drive.rig.fill(front, sector, id + u64::from(sector));
        }
        for (sector, id) in (0..3).zip(id..) {
            drive.rig.buffers.whole_mut(front, sector, 1).copy_from_slice(&all_bytes(id));
        }
        drive.rig.buffer = front;
        let command = drive.rig.command(Op::Write { fua: false }, run(first, 8));
        assert_eq!(drive.rig.one(command).1.status, Status::SUCCESS);
    };
    // Over a chunk that was whole in its life before, none of whose bytes may come back.
    for at in [0, 8, 16, 24] {
        assert_eq!(drive.write_whole(ppa(3, at), 8, 700).status, Status::SUCCESS);
    }
    assert_eq!(drive.rig.reset(3).1.status, Status::SUCCESS);
    write(&mut drive, ppa(3, 0), 100);
    for sector in 0..8 {
        drive.check(ppa(3, sector), 100 + u64::from(sector), sector < 3, "written from such a buffer");
    }
    assert_eq!(drive.write_whole(ppa(3, 8), 8, 200).status, Status::SUCCESS);
    for sector in 0..8 {
        drive.rig.fill(front, sector, 0xDEAD_0000);
    }
    drive.rig.buffers.whole_mut(front, 0, 3).fill(0xEE);
    drive.rig.buffer = front;
    assert_eq!(drive.rig.read(ppa(3, 6), 8).1.status, Status::SUCCESS);
    let expected = [stamp_and_zeros(106), stamp_and_zeros(107), all_bytes(200)].concat();
    assert!(drive.rig.buffers.whole(front, 0, 3) == expected, "read into such a buffer");
    assert_eq!(drive.rig.id_of(front, 7), 205, "stamps of all are read");
    drive.rig.drive.check();
}

#[test]
fn vectors_and_parts_of_buffers_keep_each_sector_with_its_bytes() {
    let mut drive = Whole::new(|_| ());
    drive.fill(0, 64, 500);
    drive.rig.buffer = drive.whole;
    let list: Vec<Ppa> = [1, 9].iter().flat_map(|&chunk| (0..8).map(move |at| ppa(chunk, at))).collect();
    let mut write = drive.rig.vector(Op::Write { fua: false }, &list);
    write.buffer_first = 20;
    assert_eq!(drive.rig.one(write).1, Completion::success(write.tag));
    for (at, id) in list.iter().zip(520..) {
        drive.check(*at, id, true, "written from the buffer's middle");
    }
    drive.fill(0, 64, 900);
    drive.rig.buffer = drive.whole;
    let mut read = drive.rig.vector(Op::Read, &[ppa(9, 1), ppa(1, 7), ppa(1, 0)]);
    read.buffer_first = 3;
    assert_eq!(drive.rig.one(read).1, Completion::success(read.tag));
    let ids = [902, 529, 527, 520, 906];
    for (sector, id) in (2..).zip(ids) {
        assert!(drive.rig.buffers.whole(drive.whole, sector, 1) == all_bytes(id), "sector {sector}");
    }
}

#[test]
fn a_copy_keeps_whole_sectors_whole_and_others_as_they_are() {
    let mut drive = Whole::new(|_| ());
    for (at, id) in [(0, 100), (8, 200), (16, 300), (24, 400)] {
        let buffer = if at % 16 == 0 { drive.whole } else { drive.plain };
        drive.write(buffer, ppa(0, at), 8, id);
    }
    // Destinations held something else before.
    for chunk in [8, 16] {
        (0..4).for_each(|unit| assert!(drive.write_whole(ppa(chunk, unit * 8), 8, 700).status.is_success()));
        assert_eq!(drive.rig.reset(chunk).1.status, Status::SUCCESS);
    }
    drive.rig.buffer = drive.plain;
    let from = [5, 6, 7, 8, 9, 16, 3, 31, 0, 1, 2, 30, 29, 28, 27, 17];
    let to = (0..8).map(|at| ppa(8, at)).chain((0..8).map(|at| ppa(16, at)));
    let list: Vec<Ppa> = from.iter().map(|&at| ppa(0, at)).chain(to).collect();
    let copy = drive.rig.vector(Op::Copy, &list);
    assert_eq!(drive.rig.one(copy).1, Completion::success(copy.tag));
    for (source, at) in from.into_iter().zip(&list[16..]) {
        let id = u64::from(100 * (source / 8 + 1) + source % 8);
        drive.check(*at, id, source / 8 % 2 == 0, "a copy");
    }
    // A copy of plain sectors after one of whole ones.
    drive.rig.buffer = drive.plain;
    let list: Vec<Ppa> = (8..16).map(|at| ppa(0, at)).chain((8..16).map(|at| ppa(8, at))).collect();
    let copy = drive.rig.vector(Op::Copy, &list);
    assert_eq!(drive.rig.one(copy).1, Completion::success(copy.tag));
    (0..8).for_each(|at| drive.check(ppa(8, 8 + at), 200 + u64::from(at), false, "a plain copy"));
}

#[test]
fn a_reset_forgets_whole_bytes_and_their_room_is_used_again() {
    let mut drive = Whole::new(|_| ());
    let empty = drive.rig.drive.content_bytes();
    assert_eq!(empty, Some(0));
    (0..4).for_each(|unit| assert!(drive.write_whole(ppa(2, unit * 8), 8, 100).status.is_success()));
    drive.rig.settle();
    let chunk_bytes = 32 * (16 + 16 + 4096);
    assert_eq!(drive.rig.drive.content_bytes(), Some(chunk_bytes), "stamps, metadata and all bytes");
    assert_eq!(drive.rig.reset(2).1.status, Status::SUCCESS);
    drive.rig.settle();
    (0..3).for_each(|unit| assert!(drive.write_plain(ppa(2, unit * 8), 8, 300).status.is_success()));
    (0..8).for_each(|at| drive.check(ppa(2, at), 300 + u64::from(at), false, "the next life"));
    drive.write_whole(ppa(2, 24), 8, 600);
    drive.rig.settle();
    assert_eq!(drive.rig.drive.content_bytes(), Some(chunk_bytes), "nothing new was needed");
    drive.check(ppa(2, 31), 607, true, "whole again");
    assert_eq!(drive.rig.reset(2).1.status, Status::SUCCESS);
    drive.rig.settle();
    (0..4).for_each(|unit| assert!(drive.write_whole(ppa(5, unit * 8), 8, 100).status.is_success()));
    assert_eq!(drive.rig.drive.content_bytes(), Some(chunk_bytes), "another chunk uses the room");
}

#[test]
fn sectors_that_hold_nothing_and_lost_ones_fill_whole_sectors_with_the_same_pattern() {
    let mut drive = Whole::new(|config| config.faults.write_next_unit = 1_000_000_000);
    let written = drive.write_whole(ppa(1, 0), 8, 100);
    assert_eq!(written.status, Status::WRITE_NEXT_UNIT);
    assert_eq!(drive.read(drive.whole, ppa(1, 0), 8).status, Status::UNRECOVERED_READ);
    assert!(drive.rig.buffers.whole(drive.whole, 0, 8).iter().all(|&byte| byte == 0xEC));
    assert_eq!(drive.read(drive.whole, ppa(1, 6), 4).status, Status::UNRECOVERED_READ);
    let found = drive.rig.buffers.whole(drive.whole, 0, 4);
    assert!(found[..2 * SECTOR_BYTES].iter().all(|&byte| byte == 0xEC), "lost");
    assert!(found[2 * SECTOR_BYTES..].iter().all(|&byte| byte == 0), "never written");
    let policy = ReadPolicy { unwritten_is_error: false, predefined: 0xFF, ..ReadPolicy::STRICT };
    let (mut data, mut whole) = (vec![7; 4 * 16], vec![7; 4 * SECTOR_BYTES]);
    let operation = Operation {
        tag: Tag(77),
        kind: OperationKind::Read(policy),
        addresses: AddressList::Run { first: ppa(4, 0), count: 4 },
        data: &mut data,
        oob: &mut [],
        whole: &mut whole,
    };
    drive.rig.drive.execute(drive.rig.now, operation).expect("room");
    assert!(data.iter().chain(&whole).all(|&byte| byte == 0xFF), "predefined data");
}

#[test]
fn too_little_room_for_whole_bytes_is_refused() {
    let mut drive = Whole::new(|_| ());
    for (kind, data_bytes, whole_bytes) in [
        (OperationKind::Write { fua: false }, 64, 4 * SECTOR_BYTES - 1),
        (OperationKind::Write { fua: false }, 63, 4 * SECTOR_BYTES),
        (OperationKind::Read(ReadPolicy::STRICT), 64, 1),
        (OperationKind::Read(ReadPolicy::STRICT), 0, 4 * SECTOR_BYTES),
    ] {
        let (mut data, mut whole) = (vec![0; data_bytes], vec![0; whole_bytes]);
        let addresses = AddressList::Run { first: ppa(0, 0), count: 4 };
        let (data, whole) = (&mut data[..], &mut whole[..]);
        let operation = Operation { tag: Tag(5), kind, addresses, data, oob: &mut [], whole };
        drive.rig.drive.execute(drive.rig.now, operation).expect("room");
        let mut end = None;
        while end.is_none() {
            drive.rig.now = drive.rig.now.max(drive.rig.drive.deadline().expect("in flight"));
            end = drive.rig.drive.poll_completion(drive.rig.now, &mut drive.rig.buffers);
        }
        let status = end.expect("it ended").status;
        assert_eq!(status, Status::INVALID_FIELD, "{kind:?} of {data_bytes} and {whole_bytes} bytes");
    }
}

#[test]
fn an_undone_reset_gives_whole_bytes_back_and_an_undone_write_leaves_none() {
    let mut drive = Whole::new(|_| ());
    let mut prng = Prng::new(1);
    (0..2).for_each(|unit| assert!(drive.write_whole(ppa(0, unit * 8), 8, 100).status.is_success()));
    (2..4).for_each(|unit| assert!(drive.write_plain(ppa(0, unit * 8), 8, 200).status.is_success()));
    drive.rig.settle();
    drive.rig.buffer = drive.plain;
    let busy = drive.rig.command(Op::Write { fua: false }, run(ppa(1, 0), 8));
    drive.rig.drive.submit(drive.rig.now, busy, &mut drive.rig.buffers).expect("room");
    // The unit programs; the erase waits for it.
    drive.rig.now = Nanos(drive.rig.now.0 + 200_000);
    let reset = drive.rig.command(Op::Reset, run(ppa(0, 0), 1));
    drive.rig.drive.submit(drive.rig.now, reset, &mut drive.rig.buffers).expect("room");
    drive.fill(0, 8, 900);
    drive.rig.buffer = drive.whole;
    let write = drive.rig.command(Op::Write { fua: false }, run(ppa(9, 0), 8));
    drive.rig.drive.submit(drive.rig.now, write, &mut drive.rig.buffers).expect("room");
    let report = drive.rig.drive.power_cut(drive.rig.now, &mut prng).expect("it is in memory");
    assert_eq!((report.resets_undone, report.sectors_lost), (1, 8), "both were on their way");
    (0..8).for_each(|at| drive.check(ppa(0, 8 + at), 100 + u64::from(at), true, "given back"));
    (0..8).for_each(|at| drive.check(ppa(0, 16 + at), 200 + u64::from(at), false, "given back"));
    assert_eq!(drive.rig.report()[9].state, ChunkState::Free);
    assert!(drive.write_plain(ppa(9, 0), 8, 300).status.is_success());
    (0..8).for_each(|at| drive.check(ppa(9, at), 300 + u64::from(at), false, "written again"));
    drive.rig.drive.check();
}

/// Contents with an odd number are written whole, others not; so each sector says itself what it must hold, wherever
/// copies, resets and power cuts brought it.
#[test]
fn whatever_happens_each_sector_holds_all_it_was_written_with() {
    for seed in 0..30u64 {
        let mut drive = Whole::new(|config| {
            config.geometry.chunks_per_pu = 2;
            config.cache.sectors = if seed.is_multiple_of(2) { 0 } else { 64 };
        });
        let (mut prng, mut id, mut checked) = (Prng::new(seed), 2, 0);
        for step in 0..120 {
            let chunk = u32::try_from(prng.below(8)).expect("below 8");
            let found = drive.rig.report()[index(chunk)];
            let pointer = found.write_pointer.expect("no chunk is offline");
            let op = prng.below(10);
            let command = if pointer == 32 {
                drive.rig.command(Op::Reset, run(ppa(chunk, 0), 1))
            } else if op < 3 {
                let source = u32::try_from(prng.below(8)).expect("below 8");
                let end = drive.rig.report()[index(source)].write_pointer.expect("no chunk is offline");
                if end < 4 || source == chunk {
                    continue;
                }
                let first = u32::try_from(prng.below(u64::from(end - 3))).expect("small");
                let from = (first..first + 4).map(|at| ppa(source, at));
                let list: Vec<Ppa> = from.chain((pointer..pointer + 4).map(|at| ppa(chunk, at))).collect();
                drive.rig.buffer = drive.plain;
                drive.rig.vector(Op::Copy, &list)
            } else {
                let is_whole = prng.below(2) == 1;
                id += 64;
                drive.rig.buffer = if is_whole { drive.whole } else { drive.plain };
                for sector in 0..4 {
                    let id = (id + u64::from(sector)) << 1 | u64::from(is_whole);
                    drive.rig.fill(drive.rig.buffer, sector, id);
                    if is_whole {
                        drive.rig.buffers.whole_mut(drive.whole, sector, 1).copy_from_slice(&all_bytes(id));
                    }
                }
                drive.rig.command(Op::Write { fua: false }, run(ppa(chunk, pointer), 4))
            };
            if op == 9 {
                drive.rig.drive.submit(drive.rig.now, command, &mut drive.rig.buffers).expect("room");
                drive.rig.now = Nanos(drive.rig.now.0 + prng.below(2_000_000));
                drive.rig.drive.power_cut(drive.rig.now, &mut prng).expect("it is in memory");
            } else {
                let completion = drive.rig.one(command).1;
                let lost = completion.status == Status::UNRECOVERED_READ && command.op == Op::Copy;
                assert!(lost || completion.status.is_success(), "seed {seed}, step {step}: {completion:?}");
            }
        }
        drive.rig.settle();
        for chunk in 0..8 {
            let end = drive.rig.report()[index(chunk)].write_pointer.expect("no chunk is offline");
            for at in (0..end).map(|sector| ppa(chunk, sector)) {
                if drive.read(drive.plain, at, 1).status != Status::SUCCESS {
                    continue;
                }
                let id = drive.rig.id_of(drive.plain, 0);
                drive.check(at, id, id & 1 == 1, &format!("seed {seed}"));
                checked += 1;
            }
        }
        assert!(checked > 20, "seed {seed}: only {checked} sectors could be read");
    }
}

#[test]
fn a_drive_of_real_bytes_takes_whole_buffers_as_any_other() {
    let mut drive = Whole::new(|config| config.payload = ocssd_lightnvm::Payload::Bytes);
    drive
        .rig
        .buffers
        .whole_mut(drive.whole, 0, 4)
        .copy_from_slice(&(1..5).flat_map(all_bytes).collect::<Vec<_>>());
    drive.rig.buffer = drive.whole;
    let write = drive.rig.command(Op::Write { fua: false }, run(ppa(0, 0), 4));
    assert_eq!(drive.rig.one(write).1, Completion::success(write.tag));
    drive.rig.buffers.whole_mut(drive.whole, 0, 4).fill(0);
    drive.rig.read(ppa(0, 1), 2);
    assert!(drive.rig.buffers.whole(drive.whole, 0, 2) == [all_bytes(2), all_bytes(3)].concat());
}

/// A read fills the bytes that are wanted of its buffer; what it leaves or destroys beside them nobody may look at.
#[test]
fn a_read_fills_the_bytes_that_are_wanted_of_its_buffer() {
    let wanted = 4_000..9_000;
    let mut stamps = Whole::new(|_| {});
    stamps.write_whole(ppa(0, 0), 4, 50);
    stamps.fill(0, 4, 0xDEAD_0000);
    stamps.rig.buffers.want(stamps.whole, wanted.clone());
    stamps.rig.buffer = stamps.whole;
    assert_eq!(stamps.rig.read(ppa(0, 0), 4).1.status, Status::SUCCESS);
    let expected: Vec<u8> = (50..54).flat_map(all_bytes).collect();
    let found = stamps.rig.buffers.whole(stamps.whole, 0, 4);
    assert!(found[wanted.clone()] == expected[wanted.clone()], "beside stamps");
    assert!(found[..wanted.start].iter().chain(&found[wanted.end..]).all(|&byte| byte == 0xEC));
    stamps.rig.buffers.want_all(stamps.whole);
    stamps.rig.read(ppa(0, 0), 4);
    assert!(stamps.rig.buffers.whole(stamps.whole, 0, 4) == expected, "all are wanted again");

    let mut bytes = Whole::new(|config| config.payload = Payload::Bytes);
    bytes.write_whole(ppa(0, 0), 4, 50);
    bytes.fill(0, 4, 0xDEAD_0000);
    let before = bytes.rig.buffers.whole(bytes.whole, 0, 4).to_vec();
    bytes.rig.buffers.want(bytes.whole, wanted.clone());
    bytes.rig.buffer = bytes.whole;
    // Two commands into one buffer: what is wanted is counted from its first byte.
    for half in [0, 2] {
        let command = bytes.rig.command(Op::Read, run(ppa(0, half), 2));
        let command = Command { buffer_first: half, ..command };
        assert_eq!(bytes.rig.one(command).1.status, Status::SUCCESS);
    }
    let found = bytes.rig.buffers.whole(bytes.whole, 0, 4);
    assert!(found[wanted.clone()] == expected[wanted.clone()], "real bytes");
    assert!(found[..wanted.start] == before[..wanted.start] && found[wanted.end..] == before[wanted.end..]);
}

/// Bytes that are wanted may be copied when the read ends; they are those that were there when it was taken, however many reads are
/// on their way, and although the chunk is reset meanwhile.
#[test]
fn wanted_bytes_are_those_that_were_there_when_the_read_was_taken() {
    let mut bytes = Whole::new(|config| config.payload = Payload::Bytes);
    bytes.rig.buffer = bytes.plain;
    bytes.rig.fill_chunk(0, 50);
    assert!(bytes.read(bytes.plain, ppa(0, 0), 4).status.is_success());
    let expected = bytes.rig.buffers.whole(bytes.plain, 0, 4).to_vec();
    // Within a sector, across a border, and more than is copied later.
    for wanted in [4_096..4_097, 4_000..9_000, 100..16_000] {
        let mut rig = Whole::new(|config| config.payload = Payload::Bytes).rig;
        rig.fill_chunk(0, 50);
        let buffers: Vec<BufId> = (0..40).map(|_| rig.buffers.take_whole(4)).collect();
        let mut arrivals = Vec::new();
        for &buffer in &buffers {
            rig.buffers.want(buffer, wanted.clone());
            rig.buffer = buffer;
            arrivals.push((rig.now, rig.command(Op::Read, run(ppa(0, 0), 4))));
        }
        arrivals.push((rig.now, rig.command(Op::Reset, run(ppa(0, 0), 1))));
        let ended = rig.play(&arrivals);
        assert!(ended.iter().all(|ended| ended.completion.status.is_success()), "{wanted:?}");
        for &buffer in &buffers {
            let found = &rig.buffers.whole(buffer, 0, 4)[wanted.clone()];
            assert!(found == &expected[wanted.clone()], "{wanted:?}");
        }
    }
}
