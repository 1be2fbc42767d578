//! What cannot be: sectors that cannot be read, requests that make no sense, settings that fit nothing.

use super::disk::disk;
use super::model::Model;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, Status, Tag, Target};
use ocssd_targets::SmallBlocks;

#[test]
fn a_failed_read_fails_its_write_and_changes_nothing() {
    for bad in [1, 4] {
        let mut model = Model::new(8, 8, 8, &format!("sector {bad} cannot be read"), 1);
        assert!(model.send(BlockOp::Write { fua: false }, 0, 64));
        model.drain_to(0);
        model.disk.borrow_mut().unreadable.insert(bad);
        // Parts of sectors 1 and 4, and all of 2 and 3.
        assert!(model.send(BlockOp::Write { fua: false }, 13, 22));
        assert!(model.send(BlockOp::Write { fua: false }, 50, 3));
        assert!(model.send(BlockOp::WriteZeroes, 10, 27));
        model.drain_to(0);
        let failed: Vec<_> = model.failed.iter().map(|(request, status)| (request.block, *status)).collect();
        assert_eq!(failed, [(13, Status::UNRECOVERED_READ), (10, Status::UNRECOVERED_READ)], "{bad}");
        model.check_content();
        assert_eq!(model.target.stats().rmw_read_failed, 2);
        assert_eq!(model.target.stats().rmw_written_sectors, 1, "only the one on a sound sector");
        model.target.check();
        // A write of the whole sector needs no read.
        assert!(model.send(BlockOp::Write { fua: false }, 8, 32));
        model.drain_to(0);
        assert_eq!(model.failed.len(), 2);
        model.check_content();
    }
}

#[test]
fn weak_sectors_are_read_and_merged_like_any_other() {
    let mut model = Model::new(8, 8, 8, "weak sectors", 1);
    assert!(model.send(BlockOp::Write { fua: false }, 0, 64));
    model.drain_to(0);
    model.disk.borrow_mut().weak.extend([1, 2, 4]);
    // Parts of sectors 1 and 4, and all of 2 and 3.
    assert!(model.send(BlockOp::Write { fua: false }, 13, 22));
    assert!(model.send(BlockOp::WriteZeroes, 10, 2));
    assert!(model.send(BlockOp::Read, 8, 24));
    assert!(model.send(BlockOp::Read, 11, 27));
    model.drain_to(0);
    assert!(model.failed.is_empty(), "{:?}", model.failed);
    model.check_content();
    model.disk.borrow_mut().unreadable.insert(3);
    // The weak sector comes first, by itself.
    for (block, count) in [(11, 21), (16, 16)] {
        assert!(model.send(BlockOp::Read, block, count));
        model.drain_to(0);
    }
    let failed: Vec<_> = model.failed.iter().map(|(request, status)| (request.block, *status)).collect();
    assert_eq!(failed, [(11, Status::UNRECOVERED_READ), (16, Status::UNRECOVERED_READ)]);
    assert_eq!(model.target.stats().rmw_read_failed, 0);
}

#[test]
fn those_who_waited_for_a_failed_write_go_on() {
    let mut model = Model::new(8, 8, 30, "a queue behind a failure", 2);
    model.disk.borrow_mut().unreadable.insert(2);
    for _ in 0..10 {
        assert!(model.send(BlockOp::Write { fua: false }, 12, 6), "ends in sector 2");
        assert!(model.send(BlockOp::Write { fua: false }, 9, 4), "within sector 1");
    }
    model.drain_to(0);
    assert_eq!(model.failed.len(), 10);
    model.check_content();
}

#[test]
fn a_read_of_an_unreadable_sector_fails_whatever_its_alignment() {
    let mut model = Model::new(64, 8, 8, "unreadable", 1);
    model.disk.borrow_mut().unreadable.insert(40);
    for (block, count, fails) in
        [(320, 8, true), (313, 8, true), (0, 512, true), (3, 500, true), (3, 200, false)]
    {
        let before = model.failed.len();
        assert!(model.send(BlockOp::Read, block, count));
        model.drain_to(0);
        assert_eq!(model.failed.len() > before, fails, "{block} + {count}");
        model.target.check();
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_with_the_status_of_a_sector_device() {
    let mut model = Model::new(8, 8, 8, "senseless", 1);
    let buffer = Some(model.out.buffers.take(1));
    let cases = [
        (BlockOp::Read, 64, 1, buffer, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Write { fua: false }, 63, 2, buffer, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Discard, u64::MAX, 1, None, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Read, 0, 0, buffer, Status::INVALID_FIELD),
        (BlockOp::Write { fua: false }, 0, 1, None, Status::INVALID_FIELD),
        (BlockOp::ResetZone, 0, 0, None, Status::INVALID_OPCODE),
    ];
    for (op, block, count, buffer, expected) in cases {
        let request = BlockRequest { tag: Tag(7), op, block, count, buffer };
        assert!(model.target.submit(Nanos::ZERO, &request, &mut model.out).is_taken());
        model.target.advance(Nanos::ZERO, &mut model.out);
        let reply = model.out.replies_mut().0.pop().map(|reply| (reply.tag, reply.status));
        assert_eq!(reply, Some((Tag(7), expected)), "{op:?} {block} + {count}");
    }
    assert_eq!(model.disk.borrow().asked.len(), 0, "the disk heard of none");
}

#[test]
fn settings_that_fit_nothing_are_refused_with_what_would() {
    let geometry = Geometry::example(1, 1, 1, 8, 8);
    let refusal = |bytes: u32, payload: Payload| {
        let mut buffers = Buffers::new(PayloadFormat::new(payload, &geometry));
        SmallBlocks::new(disk(8, 1, 1).0, bytes, &mut buffers).err().expect("it is refused")
    };
    for bytes in [0, 256, 513, 1000, 4096, 8192] {
        let said = refusal(bytes, Payload::Bytes);
        assert!(said.contains("power of two from 512") && said.contains("4096"), "{bytes}: {said}");
    }
    let said = refusal(512, Payload::Stamp);
    assert!(said.contains("--set payload=bytes"), "{said}");
    for bytes in [512, 1024, 2048] {
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Bytes, &geometry));
        let target = SmallBlocks::new(disk(8, 1, 1).0, bytes, &mut buffers).expect("it fits");
        assert_eq!((target.block_bytes(), target.block_count()), (bytes, 8 * 4096 / u64::from(bytes)));
        assert_eq!((target.is_mapped(9), target.inner().block_bytes()), (None, 4096));
    }
}
