//! Metadata that are damaged, another's, or of the future.

use super::linux::{Linux, OURS, config, content};
use ocssd_base::{Prng, usize_of};
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::linux_pblk::format::{ADDR_EMPTY, Header, SMETA_VERSION_MINOR, Smeta, Uuid, lba_list_mut};
use ocssd_targets::linux_pblk::{MountError, Options};

/// A full line whose end metadata are changed before they are written.
fn with_end(linux: &mut Linux, line: u32, lbas: &[u64], change: impl FnOnce(&mut Vec<u8>)) {
    linux.open(line);
    let mut all = lbas.to_vec();
    all.resize(linux.room(line), ADDR_EMPTY);
    linux.data(line, 0, &all, 1);
    let mut emeta = linux.emeta(line, &all);
    change(&mut emeta);
    linux.close(line, &emeta);
}

/// Sets the checksum anew.
fn put_crc(bytes: &mut [u8]) {
    let sum = !ocssd_ftl::checksum(&bytes[36..]);
    bytes[32..36].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_line_with_a_damaged_end_is_read_by_its_sectors() {
    let mut linux = Linux::new(config(|_| ()));
    with_end(&mut linux, 0, &[4, 5, 6], |bytes| bytes[4500] ^= 1);
    with_end(&mut linux, 1, &[9], |bytes| bytes.fill(0));
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.by_sectors), (0, 2));
    // What lies beside the end metadata is block 3: nothing that was ever written.
    assert_eq!((report.mapped, mounted.is_mapped(3)), (4, Some(false)));
    assert_eq!(mounted.read(4, 3), [content(4, 1), content(5, 1), content(6, 1)]);
}

#[test]
fn a_line_of_another_instance_or_with_a_damaged_start_is_free() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &[1], 1);
    linux.uuid = Uuid([1; 16]);
    linux.line(1, &[1], 2);
    linux.uuid = OURS;
    let unit = linux.layout.smeta_bytes();
    linux.write(2, linux.parts(2).smeta, &vec![0x70; unit], &[ADDR_EMPTY; 4]);
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.foreign, report.by_list, report.by_sectors), (1, 1, 0));
    assert_eq!(mounted.read(1, 1), [content(1, 1)]);
}

#[test]
fn a_major_version_of_the_future_ends_the_mount() {
    let mut linux = Linux::new(config(|_| ()));
    with_end(&mut linux, 3, &[1], |bytes| {
        bytes[26] = 1;
        put_crc(bytes);
    });
    let error = linux.mount(&Options::default()).map(|_| ()).expect_err("it cannot be read");
    assert!(matches!(&error, MountError::Unreadable(said) if said.contains("line 3")), "{error}");
}

#[test]
fn units_without_an_instance_say_so() {
    let mut linux = Linux::new(config(|_| ()));
    let error = linux.mount(&Options::default()).map(|_| ()).expect_err("nothing is there");
    assert!(matches!(error, MountError::NotThere(_)), "{error}");
    assert!(error.to_string().contains("make an instance in Linux"), "{error}");
}

#[test]
fn an_end_that_names_more_than_there_is_maps_only_what_there_is() {
    let mut linux = Linux::new(config(|_| ()));
    with_end(&mut linux, 0, &[4, 1 << 40, 5], |_| ());
    let (_, report) = linux.mounted();
    assert_eq!((report.mapped, report.beyond, report.miscounted), (2, 1, 0));
}

#[test]
fn no_metadata_upset_a_mount_or_what_is_done_after_it() {
    let seed = 77;
    let mut prng = Prng::new(seed);
    for round in 0..24 {
        let mut linux =
            Linux::new(config(|geometry| geometry.oob_bytes = if round % 2 == 0 { 16 } else { 0 }));
        // In half of the rounds so many lines that some are collected.
        let lines = if round % 4 < 2 { 3 } else { 36 };
        for line in 0..lines {
            let lbas: Vec<u64> = (0..60).map(|_| prng.below(4000)).collect();
            let random = prng.below(3);
            // Sound checksums over noise: a program with a bug, or an enemy.
            with_end(&mut linux, line, &lbas, |bytes| {
                for _ in 0..200 {
                    let at = 36 + usize::try_from(prng.below(8192 - 36)).expect("small");
                    // Some of the noise is the address of a block.
                    bytes[at] = if random == 0 || at % 8 > 1 { 0 } else { prng.next_u64().to_le_bytes()[0] };
                }
                put_crc(bytes);
            });
        }
        let (mut mounted, report) = linux.mounted();
        assert_eq!(report.by_list, lines, "seed {seed}, round {round}");
        // Lines whose sectors are not what their lists say cannot be emptied: where all are such, nothing more is taken.
        let is_full = |status| matches!(status, Status::WRITE_FAULT | Status::WRITE_TO_READ_ONLY);
        let mut taken = 0;
        for _ in 0..200 {
            let (block, version) = (prng.below(mounted.blocks()), prng.below(9));
            let status = mounted.write(BlockOp::Write { fua: prng.below(9) == 0 }, block, &[version]);
            if status.is_success() {
                taken += 1;
                assert_eq!(mounted.read(block, 1), [content(block, version)], "seed {seed}, round {round}");
            } else {
                assert!(is_full(status) && lines > 3, "seed {seed}, round {round}, block {block}: {status}");
            }
        }
        assert!(taken > 10, "seed {seed}, round {round}: {taken} writes were taken");
        let collected = mounted.count("lines_collected");
        assert!(collected < 200, "seed {seed}, round {round}: {collected} lines were moved for nothing");
        let status = mounted.ask(BlockOp::Shutdown, 0, 0);
        assert!(status.is_success() || is_full(status) && lines > 3, "seed {seed}, round {round}: {status}");
    }
}

#[test]
fn a_line_that_says_it_is_another_does_not_name_the_instance() {
    let mut linux = Linux::new(config(|_| ()));
    linux.uuid = Uuid([1; 16]);
    let unit = linux.layout.smeta_bytes();
    let header = Header { uuid: linux.uuid, version_minor: SMETA_VERSION_MINOR, id: 5 };
    let smeta = Smeta { header, prev_id: None, seq_nr: 9, window_wr_lun: linux.layout.units() };
    let mut bytes = vec![0; unit];
    smeta.encode(&linux.layout, &mut bytes);
    linux.write(0, linux.parts(0).smeta, &bytes, &[ADDR_EMPTY; 4]);
    linux.uuid = OURS;
    linux.line(1, &[1, 2], 1);
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.foreign, report.by_list, report.mapped), (1, 1, 2));
    assert_eq!(mounted.read(1, 2), [content(1, 1), content(2, 1)]);
}

#[test]
fn counters_that_no_drive_comes_to_are_not_counted_on() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &[1], 1);
    // The counters of an instance of four units: 72 bytes, and eight for each of eight bytes of bitmap.
    with_end(&mut linux, 1, &[2], |bytes| {
        bytes[136..160].fill(0xFF);
        put_crc(bytes);
    });
    let (mut mounted, report) = linux.mounted();
    assert_eq!(report.by_list, 2);
    assert_eq!(mounted.write(BlockOp::Write { fua: true }, 1, &[7]), Status::SUCCESS);
    assert_eq!(mounted.ask(BlockOp::Shutdown, 0, 0), Status::SUCCESS);
    assert_eq!(mounted.count("life_user_sectors"), 1001, "those of the line before go on");
}

#[test]
fn a_version_without_counters_leaves_those_of_the_line_before() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &[1], 1);
    with_end(&mut linux, 1, &[2], |bytes| bytes[27] = 1);
    let (mounted, report) = linux.mounted();
    assert_eq!((report.by_list, mounted.count("life_user_sectors")), (2, 1000));
}

#[test]
fn a_list_that_names_sectors_of_packed_metadata_holds_up_nothing() {
    let mut linux = Linux::new(config(|geometry| geometry.oob_bytes = 0));
    // So many lines that some are collected.
    for line in 0..36 {
        linux.open(line);
        let mut all = vec![ADDR_EMPTY; linux.room(line)];
        all[0] = u64::from(line);
        linux.data(line, 0, &all, 1);
        let (mut emeta, first) = (linux.emeta(line, &all), linux.parts(line).data(&linux.layout));
        // The last sector of the first unit of data.
        lba_list_mut(&linux.layout, &mut emeta)[usize_of(first.0) + 3] =
            (100 + u64::from(line)).to_le_bytes();
        put_crc(&mut emeta);
        linux.close(line, &emeta);
    }
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.by_list, report.mapped), (36, 36), "they are nobody's");
    assert_eq!(mounted.write(BlockOp::Write { fua: false }, 0, &[7]), Status::SUCCESS);
    assert_eq!(mounted.ask(BlockOp::Shutdown, 0, 0), Status::SUCCESS);
}

#[test]
fn an_instance_whose_numbers_are_used_up_takes_no_line_that_the_next_mount_would_pass_over() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(3, &[1], 1);
    linux.seq_nr = 1 << 62;
    linux.line(5, &[2], 1);
    let (mut mounted, _) = linux.mounted();
    assert_eq!(mounted.write(BlockOp::Write { fua: false }, 1, &[7]), Status::SUCCESS);
    assert_eq!(mounted.ask(BlockOp::Flush, 0, 0), Status::WRITE_FAULT);
    assert_eq!(mounted.write(BlockOp::Write { fua: false }, 1, &[8]), Status::WRITE_TO_READ_ONLY);
    let (mut again, report) = mounted.leave().mounted();
    assert_eq!((report.foreign, report.by_list), (0, 2));
    assert_eq!(again.read(1, 2), [content(1, 1), content(2, 1)]);
}

#[test]
fn flushes_that_come_after_an_instance_gave_up_are_answered_like_those_before() {
    let mut linux = Linux::new(config(|_| ()));
    linux.seq_nr = 1 << 62;
    linux.line(5, &[2], 1);
    let (mut mounted, _) = linux.mounted();
    assert_eq!(mounted.write(BlockOp::Write { fua: false }, 1, &[7]), Status::SUCCESS);
    for number in 0..3 {
        assert_eq!(mounted.ask(BlockOp::Flush, 0, 0), Status::WRITE_FAULT, "flush {number}");
    }
}

#[test]
fn blocks_of_a_packed_unit_whose_last_sector_is_lost_are_counted_as_lost() {
    let mut linux = Linux::new(config(|geometry| geometry.oob_bytes = 0));
    linux.open(0);
    linux.data(0, 0, &[1, 2, 3, 4], 1);
    let chunk = linux.ppa(0, linux.parts(0).data(&linux.layout)).chunk;
    let kind = FaultKind::UnrecoveredRead;
    linux.flash.schedule_fault(ScheduledFault { kind, chunk, sector: Some(3), times: u32::MAX });
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.mapped, report.lost), (1, 4));
    assert_eq!(mounted.read(4, 1), [content(4, 1)]);
}

#[test]
fn a_line_whose_start_cannot_be_read_is_counted() {
    let mut linux = Linux::new(config(|_| ()));
    linux.line(0, &[1], 1);
    linux.line(1, &[2], 1);
    let chunk = linux.ppa(0, linux.parts(0).smeta).chunk;
    let kind = FaultKind::UnrecoveredRead;
    linux.flash.schedule_fault(ScheduledFault { kind, chunk, sector: Some(1), times: 3 });
    let read_only = Options { read_only: true, ..Options::default() };
    let (target, report) = linux.mount(&read_only).expect("it is there");
    assert_eq!((report.lost_starts, report.by_list, report.mapped), (1, 1, 1));
    assert!(target.describe(&report).contains("1 lines have a start that cannot be read"));
    let (mut mounted, report) = linux.mounted();
    assert_eq!((report.lost_starts, report.mapped), (0, 2), "it can be read again");
    assert_eq!(mounted.read(1, 2), [content(1, 1), content(2, 1)]);
}
