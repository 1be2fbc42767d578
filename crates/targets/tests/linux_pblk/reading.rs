//! What a mounted instance reads, and what it refuses.

use super::linux::{Linux, config, content};
use ocssd_base::Prng;
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{ChunkId, Status};
use ocssd_targets::linux_pblk::format::ADDR_EMPTY;
use ocssd_targets::linux_pblk::{MountError, Options};
use std::collections::BTreeMap;

const NOTHING: [u8; 16] = [0; 16];

#[test]
fn blocks_of_full_and_of_open_lines_are_read_newest_first() {
    let mut linux = Linux::new(config(|_| ()));
    // Not in the order of their numbers.
    linux.line(7, &(0..100).collect::<Vec<_>>(), 1);
    linux.line(2, &[5, 6, 5, 50], 2);
    linux.open(9);
    linux.data(9, 0, &[50, 200, 6, 6], 3);
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors, report.mapped), (2, 1, 101));
    assert_eq!(mounted.read(0, 5), (0..5).map(|lba| content(lba, 1)).collect::<Vec<_>>());
    assert_eq!(mounted.read(5, 3), [content(5, 2), content(6, 3), content(7, 1)]);
    assert_eq!(mounted.read(49, 3), [content(49, 1), content(50, 3), content(51, 1)]);
    assert_eq!(mounted.read(99, 2), [content(99, 1), NOTHING]);
    assert_eq!(mounted.read(199, 3), [NOTHING, content(200, 3), NOTHING]);
    assert_eq!((mounted.is_mapped(200), mounted.is_mapped(201)), (Some(true), Some(false)));
}

#[test]
fn every_request_that_changes_something_is_refused_and_changes_nothing() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &[0, 1], 1);
    let (mut mounted, _) = linux.mounted_as(&Options { read_only: true, ..Options::default() });
    for op in
        [BlockOp::Write { fua: false }, BlockOp::Write { fua: true }, BlockOp::Discard, BlockOp::WriteZeroes]
    {
        assert_eq!(mounted.ask(op, 0, 1), Status::WRITE_TO_READ_ONLY, "{op:?}");
    }
    let blocks = mounted.blocks();
    for (op, block, count, status) in [
        (BlockOp::Read, blocks, 1, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Read, u64::MAX, 2, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Read, 0, 0, Status::INVALID_FIELD),
        (BlockOp::ResetZone, 0, 1, Status::INVALID_OPCODE),
        (BlockOp::Flush, 0, 0, Status::SUCCESS),
    ] {
        assert_eq!(mounted.ask(op, block, count), status, "{op:?} of {count} at {block}");
    }
    assert_eq!(mounted.read(0, 2), [content(0, 1), content(1, 1)]);
    assert_eq!(mounted.ask(BlockOp::Shutdown, 0, 0), Status::SUCCESS);
    assert_eq!(mounted.ask(BlockOp::Read, 0, 1), Status::NAMESPACE_NOT_READY, "nothing is done after it");
}

#[test]
fn the_size_is_what_linux_would_count() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &[0], 1);
    // 160 chunks, ten lines of 4 kept back; 4 sectors of start and 4 of end in each of 40 lines are 10 chunks.
    let (mounted, _) = linux.mounted();
    assert_eq!(mounted.blocks(), (160 - 40 - 10) * 32);
}

#[test]
fn bad_chunks_are_passed_over_wherever_they_are() {
    let mut config = config(|_| ());
    config.faults.factory_bad = 80_000_000;
    let mut linux = Linux::new(config);
    let bad = (0..160).filter(|&chunk| linux.flash.chunk(ChunkId(chunk)).write_pointer.is_none()).count();
    assert!((5..30).contains(&bad), "{bad} chunks are bad");
    let seed = 31;
    let (mut prng, mut expected) = (Prng::new(seed), BTreeMap::new());
    for line in 0..30 {
        let lbas: Vec<u64> = (0..50).map(|_| prng.below(1000)).collect();
        linux.line(line, &lbas, u64::from(line));
        expected.extend(lbas.iter().map(|&lba| (lba, u64::from(line))));
    }
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.miscounted), (30, 0));
    for lba in 0..1000 {
        let content = expected.get(&lba).map_or(NOTHING, |&version| content(lba, version));
        assert_eq!(mounted.read(lba, 1), [content], "seed {seed}, block {lba}");
    }
}

#[test]
fn a_drive_without_metadata_beside_its_sectors_has_it_in_the_last_of_each_unit() {
    let mut linux = Linux::new(config(|geometry| geometry.oob_bytes = 0));
    linux.line(0, &(0..60).collect::<Vec<_>>(), 1);
    linux.open(1);
    linux.data(1, 0, &[7, 8, 9, 10], 2);
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors, report.mapped), (1, 1, 60));
    assert_eq!(mounted.read(6, 6).len(), 6);
    assert_eq!(mounted.read(6, 3), [content(6, 1), content(7, 2), content(8, 2)]);
    assert_eq!(mounted.read(10, 2), [content(10, 2), content(11, 1)]);
}

#[test]
fn what_cannot_be_read_yet_ends_the_mount_with_advice() {
    let mut linux = Linux::new(config(|geometry| geometry.mw_cunits = 8));
    linux.line(0, &[1, 2], 1);
    linux.open(1);
    linux.data(1, 0, &[1], 2);
    let read_only = Options { read_only: true, ..Options::default() };
    let error = linux.mount(&read_only).map(|_| ()).expect_err("the newest version is hidden");
    assert!(matches!(error, MountError::Unreadable(_)), "{error}");
    assert!(error.to_string().contains("MW_CUNITS is 8"), "{error}");
}

#[test]
fn lost_sectors_and_sectors_of_other_blocks_are_failures_of_their_reads_only() {
    let mut linux = Linux::new(config(|_| ()));
    linux.open(0);
    let lbas: Vec<u64> = (0..40).collect();
    linux.data(0, 0, &lbas, 1);
    let mut wrong = lbas.clone();
    wrong.swap(20, 21);
    wrong.resize(linux.parts(0).data_sectors as usize, ADDR_EMPTY);
    let padding = vec![ADDR_EMPTY; wrong.len() - 40];
    linux.data(0, 10, &padding, 0);
    let emeta = linux.emeta(0, &wrong);
    linux.close(0, &emeta);
    // Block 2 is the third sector of the first unit behind the start: unit 1 of channel 1.
    let lost = linux.ppa(0, linux.parts(0).data(&linux.layout));
    let (mut mounted, _) = linux.mounted();
    let fault = FaultKind::UnrecoveredRead;
    mounted.flash().schedule_fault(ScheduledFault {
        kind: fault,
        chunk: lost.chunk,
        sector: Some(2),
        times: 3,
    });
    assert_eq!(mounted.ask(BlockOp::Read, 0, 8), Status::UNRECOVERED_READ);
    assert_eq!(mounted.ask(BlockOp::Read, 18, 4), Status::UNRECOVERED_READ, "another block lies there");
    assert_eq!(mounted.read(16, 4), (16..20).map(|lba| content(lba, 1)).collect::<Vec<_>>());
}

#[test]
fn a_chunk_that_fell_behind_when_the_power_went_costs_only_what_it_does_not_have() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &(0..40).collect::<Vec<_>>(), 1);
    linux.open(1);
    // The fourth unit, and no other of its chunk, never came to the media; what follows it did, up to the end.
    let parts = linux.parts(1);
    let (units, behind) = (parts.data_units(&linux.layout).count(), 3);
    for unit in (0..units).filter(|unit| unit % 4 != behind) {
        let first = u64::try_from(unit).expect("small");
        linux.data(1, unit, &[first, 100 + first], 2);
    }
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors), (1, 1));
    for unit in 0..u64::try_from(units).expect("small") {
        let came = unit % 4 != 3;
        let version = if came { 2 } else { 1 };
        assert_eq!(mounted.read(unit, 1), [content(unit, version)], "block {unit}");
        assert_eq!(mounted.is_mapped(100 + unit), Some(came), "block {}", 100 + unit);
    }
}

#[test]
fn what_lies_beside_the_end_of_a_line_is_not_taken_for_addresses() {
    let mut linux = Linux::new(config(|_| ()));
    linux.open(0);
    let units = linux.parts(0).data_units(&linux.layout).count();
    linux.data(0, 0, &[9; 40], 1);
    for unit in 10..units - 1 {
        linux.data(0, unit, &[ADDR_EMPTY], 0);
    }
    // Its last unit of data is missing, but its end is there: with the address of block 3 beside each sector.
    let emeta = linux.emeta(0, &[9; 40]);
    linux.close(0, &emeta);
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors, report.mapped), (0, 1, 1));
    assert_eq!(mounted.read(3, 1), [NOTHING]);
    assert_eq!(mounted.read(9, 1), [content(9, 1)]);
}
