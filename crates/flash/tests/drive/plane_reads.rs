//! Reads by page and by row: what is sensed, what overlaps, and what the registers hold after it. Times are those of `tiny`
//! (see `timing`): pages of 4 sectors on 2 planes, rows of 8 that take 40 and 60 us in turn.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_flash::config::{PlaneReads, Scheduler, Suspension};
use ocssd_lightnvm::{Command, Op, PlaneMode, Ppa};

const CHANNEL_COMMAND: u64 = 1_000;
const CHANNEL_SECTOR: u64 = 10_280;
const LINK_SECTOR: u64 = 1_028;
const COMMAND: u64 = 5_000;
const SENSE: u64 = 40_000;
/// A page, and a row, over the channel.
const PAGE_OUT: u64 = CHANNEL_COMMAND + 4 * CHANNEL_SECTOR;
const ROW_OUT: u64 = CHANNEL_COMMAND + 8 * CHANNEL_SECTOR;

/// A drive on which planes work together only as commands ask, with a full chunk 0 in each of its four units.
fn asked(change: impl FnOnce(&mut Config)) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.media.plane_reads = PlaneReads::Asked;
    change(&mut config);
    let mut rig = Rig::new(config);
    for unit in 0..4 {
        rig.fill_chunk(unit * 8, u64::from(unit) << 32);
    }
    rig
}

fn read(rig: &mut Rig, plane_mode: PlaneMode, first: Ppa, count: u32) -> Command {
    Command { plane_mode, ..rig.command(Op::Read, run(first, count)) }
}

/// How long one read takes, and how many senses and hits the drive then has behind it.
fn took(rig: &mut Rig, plane_mode: PlaneMode, first: Ppa, count: u32) -> (u64, u64, u64) {
    let command = read(rig, plane_mode, first, count);
    let (took, end) = rig.one(command);
    assert!(end.status.is_success(), "{end:?}");
    let media = rig.drive.counters().media;
    (took.0, media.senses, media.register_hits)
}

#[test]
fn a_read_senses_a_page_and_only_what_is_of_that_page_is_found_in_the_register() {
    let mut rig = asked(|_| ());
    let (out, link) = (CHANNEL_COMMAND + CHANNEL_SECTOR, LINK_SECTOR + COMMAND);
    assert_eq!(took(&mut rig, PlaneMode::Single, ppa(0, 0), 1), (SENSE + out + link, 1, 0));
    assert_eq!(took(&mut rig, PlaneMode::Single, ppa(0, 3), 1), (out + link, 1, 1));
    // The same row, but a page of the other plane: of the same page type, so it takes as long.
    assert_eq!(took(&mut rig, PlaneMode::Single, ppa(0, 4), 1), (SENSE + out + link, 2, 1));
    assert_eq!(took(&mut rig, PlaneMode::Single, ppa(0, 12), 1), (60_000 + out + link, 3, 1));
}

#[test]
fn sense_and_transfer_of_one_read_overlap_only_in_plane_mode() {
    let link = 8 * LINK_SECTOR + COMMAND;
    let mut rig = asked(|_| ());
    let single = took(&mut rig, PlaneMode::Single, ppa(0, 0), 8);
    assert_eq!(single, (2 * (SENSE + PAGE_OUT) + link, 2, 0), "page after page");
    let multi = took(&mut rig, PlaneMode::Multi, ppa(8, 0), 8);
    assert_eq!(multi, (SENSE + ROW_OUT + link, 3, 0), "both planes at once");
    // Two rows: the second is sensed while the first leaves.
    let multi = took(&mut rig, PlaneMode::Multi, ppa(16, 0), 16);
    assert_eq!(multi, (SENSE + 60_000.max(ROW_OUT) + ROW_OUT + 16 * LINK_SECTOR + COMMAND, 5, 0));
}

#[test]
fn a_page_of_a_row_sensed_together_is_found_but_not_a_row_of_which_one_page_was() {
    let mut rig = asked(|_| ());
    took(&mut rig, PlaneMode::Multi, ppa(0, 0), 8);
    let (_, senses, hits) = took(&mut rig, PlaneMode::Single, ppa(0, 4), 4);
    assert_eq!((senses, hits), (1, 1));
    took(&mut rig, PlaneMode::Single, ppa(0, 8), 1);
    let (_, senses, hits) = took(&mut rig, PlaneMode::Multi, ppa(0, 8), 8);
    assert_eq!((senses, hits), (3, 1), "the other plane's page was not there");
}

#[test]
fn a_drive_that_always_drives_all_planes_takes_either_mode_the_same() {
    for mode in [PlaneMode::Single, PlaneMode::Multi] {
        let mut rig = asked(|config| config.media.plane_reads = PlaneReads::Always);
        let link = 8 * LINK_SECTOR + COMMAND;
        assert_eq!(took(&mut rig, mode, ppa(0, 0), 8), (SENSE + ROW_OUT + link, 1, 0));
    }
}

#[test]
fn a_page_read_waits_for_a_write_that_has_a_register_and_goes_before_no_program() {
    let mut rig = asked(|config| {
        config.scheduler = Scheduler::ReadPriority {
            erase: Suspension {
                suspend: Nanos::from_micros(50),
                resume: Nanos::from_micros(30),
                suspends_max: 3,
            },
            program: Suspension::NEVER,
            bypasses_max: 64,
        };
    });
    // The write's data is in one of the two registers when the read comes, which needs both: the program goes first.
    let start = rig.now;
    let write = rig.command(Op::Write { fua: false }, run(ppa(1, 0), 8));
    let beside = read(&mut rig, PlaneMode::Single, ppa(0, 0), 1);
    let ended = rig.play(&[(start, write), (start + Nanos(20_000), beside)]);
    let programmed = 8 * LINK_SECTOR + ROW_OUT + 300_000;
    let ends: Vec<u64> = ended.iter().map(|end| (end.at - start).0).collect();
    let read_end = programmed + SENSE + CHANNEL_COMMAND + CHANNEL_SECTOR + LINK_SECTOR + COMMAND;
    assert_eq!(ends, [programmed + COMMAND, read_end]);
}
