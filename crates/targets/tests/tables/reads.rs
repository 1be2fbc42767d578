//! Reads of any bytes to any place of a buffer: sectors that fit are read there at once, others by way of a buffer between, and
//! what lies around them in the buffer stays.

use crate::rig::{CHUNKS, Rig, UNITS};
use ocssd_base::Prng;
use ocssd_flash::{FailedOp, FaultKind, ScheduledFault};
use ocssd_lightnvm::interface::table::{TableAnswer, TableId, TableKind, TableOp, TableRequest};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{ChunkId, Status, Tag};

/// Sectors of the buffer that is read into.
const SECTORS: u32 = 12;
/// What its bytes are before a read.
const AROUND: u8 = 0xee;

fn byte_of(offset: u64) -> u8 {
    u8::try_from((offset * 7 + offset / 4096 * 13) % 199).expect("below 256")
}

#[test]
fn any_bytes_are_read_to_any_place_and_nothing_around_it_changes() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let mut draw = |below: u64| prng.below(below);
        let mut rig = Rig::new(&[("tables_max", "19")]);
        let length = 3 * 8 * 4096 + draw(4096 * 8);
        let content: Vec<u8> = (0..length).map(byte_of).collect();
        rig.create(5, TableKind::Table, 0, length);
        rig.append_bytes(5, &content, Durability::AtFlush);
        rig.publish(5);
        rig.flush();
        let before = rig.count("read_again_sectors");
        let (read_before, mut wanted) = (rig.host.device().counters().sectors_read, 0);
        for turn in 0..300 {
            // Half of the reads are of whole sectors, to whole sectors.
            let step = if draw(2) == 0 { 4096 } else { 1 };
            let offset = draw(length / step + 1) * step;
            let first = draw(u64::from(SECTORS) * 4096 / step) * step;
            let room = (u64::from(SECTORS) * 4096 - first) / step;
            let bytes = (1 + draw(room.max(1))).min(room) * step;
            if draw(4) == 0 {
                // The next read of some chunk fails, and is asked for again.
                let kind = FaultKind::Failed(FailedOp::Read, Status::INTERNAL_ERROR);
                let chunk = ChunkId(u32::try_from(draw(320)).expect("small"));
                rig.host.device_mut().schedule_fault(ScheduledFault { kind, chunk, sector: None, times: 1 });
            }
            let (found, all) = rig.read(5, offset, (SECTORS, first, bytes), AROUND);
            let expected = length.saturating_sub(offset).min(bytes);
            let label = format!("seed {seed}, turn {turn}: {bytes} bytes from {offset} on to byte {first}");
            assert_eq!(u64::from(found), expected, "{label}");
            wanted += expected;
            for (at, &byte) in (0..).zip(&all) {
                let within = first <= at && at < first + expected;
                let right = if within { byte_of(offset + at - first) } else { AROUND };
                assert_eq!(byte, right, "{label}: byte {at} of the buffer");
            }
        }
        let of_drive = rig.host.device().counters().sectors_read - read_before;
        assert_eq!(
            rig.count("read_sectors"),
            of_drive - (rig.count("read_again_sectors") - before),
            "seed {seed}"
        );
        assert_eq!(rig.count("read_bytes"), wanted, "seed {seed}");
        println!("{} sectors were read again", rig.count("read_again_sectors") - before);
    }
}

#[test]
fn a_read_of_more_units_than_are_read_at_once_goes_on_as_they_come() {
    let mut rig = Rig::new(&[("tables_max", "19")]);
    // 160 units, of which 128 are read at once, all of them to the request's own buffer.
    let length = 160 * 8 * 4096_u64;
    rig.create(5, TableKind::Table, 0, length);
    for piece in 0..40 {
        let content: Vec<u8> = (0..length / 40).map(|at| byte_of(piece * (length / 40) + at)).collect();
        rig.append_bytes(5, &content, Durability::AtFlush);
    }
    rig.publish(5);
    rig.flush();
    let (found, all) = rig.read(5, 0, (160 * 8, 0, length), AROUND);
    assert_eq!(u64::from(found), length);
    let wrong = (0..).zip(&all).find(|&(at, &byte)| byte != byte_of(at));
    assert_eq!(wrong, None, "a byte of the buffer");
}

#[test]
fn a_buffer_of_which_some_bytes_are_wanted_is_read_by_way_of_another() {
    let mut rig = Rig::new(&[("tables_max", "19")]);
    let content: Vec<u8> = (0..8 * 4096).map(byte_of).collect();
    rig.create(5, TableKind::Table, 0, 8 * 4096);
    rig.append_bytes(5, &content, Durability::AtFlush);
    rig.publish(5);
    rig.flush();
    let buffers = rig.host.buffers_mut();
    let buffer = buffers.take_whole(1);
    // A drive brings no metadata with it, and so no tag.
    buffers.want(buffer, 100..200);
    let into = Content::Piece(Piece { buffer, first_byte: 0, bytes: 4096 });
    let reply = rig
        .host
        .ask(TableRequest { tag: Tag(99), op: TableOp::Read { table: TableId(5), offset: 4096, into } });
    assert_eq!(reply.answer, TableAnswer::Read { bytes: 4096 }, "{reply:?}");
    assert_eq!(rig.host.buffers().whole(buffer, 0, 1)[100..200], content[4096 + 100..4096 + 200]);
    assert_eq!(rig.count("read_again_sectors"), 0, "the tag was there");
}

/// Of a unit that is read as a whole some sectors fail in every way there is: each is asked for again, alone, and no other is.
#[test]
fn only_sectors_that_failed_are_read_again_and_a_read_of_one_that_is_lost_is_told_of() {
    let mut rig = Rig::new(&[("tables_max", "19")]);
    let length = 3 * 8 * 4096;
    let content: Vec<u8> = (0..length).map(byte_of).collect();
    rig.create(5, TableKind::Table, 0, length);
    rig.append_bytes(5, &content, Durability::AtFlush);
    rig.publish(5);
    rig.flush();
    let fail = |rig: &mut Rig, kind, sectors: &[u32], times| {
        for (chunk, &sector) in
            (0..UNITS * CHUNKS).flat_map(|chunk| sectors.iter().map(move |at| (chunk, at)))
        {
            let fault = ScheduledFault { kind, chunk: ChunkId(chunk), sector: Some(sector), times };
            rig.host.device_mut().schedule_fault(fault);
        }
    };
    // The first unit of a chunk has the first unit of the table.
    fail(&mut rig, FaultKind::TransientRead, &[1, 6], 1);
    let (found, all) = rig.read(5, 0, (8, 0, 8 * 4096), AROUND);
    assert_eq!((found, &all[..]), (8 * 4096, &content[..8 * 4096]));
    assert_eq!((rig.count("read_again_sectors"), rig.count("read_failed")), (2, 0));
    fail(&mut rig, FaultKind::UnrecoveredRead, &[3], u32::MAX);
    for (offset, sectors, again, status) in [
        (0, 8, 1, Status::UNRECOVERED_READ),
        (3 * 4096 + 5, 1, 1, Status::UNRECOVERED_READ),
        (4 * 4096, 4, 0, Status::SUCCESS),
        (0, 3, 0, Status::SUCCESS),
    ] {
        let before = (rig.count("read_again_sectors"), rig.count("read_failed"));
        assert_eq!(rig.read_status(5, offset, sectors), status, "{sectors} sectors from byte {offset} on");
        let failed = u64::from(!status.is_success());
        let after = (rig.count("read_again_sectors"), rig.count("read_failed"));
        assert_eq!(after, (before.0 + again, before.1 + failed), "{sectors} sectors from byte {offset} on");
    }
    // A read that failed holds nothing any more.
    rig.delete(5);
    rig.flush();
    assert_eq!(rig.count("tables"), 0);
}
