//! Transfers that let others have the channel after each page, and pages that are slow to sense. Times are those of `tiny` (see
//! `timing`).

use crate::rig::{Rig, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::Config;
use ocssd_flash::config::{PlaneReads, SlowRead};
use ocssd_lightnvm::Op;

const CHANNEL_COMMAND: u64 = 1_000;
const CHANNEL_SECTOR: u64 = 10_280;
const PAGE: u64 = 4 * CHANNEL_SECTOR;
const OUT: u64 = CHANNEL_COMMAND + CHANNEL_SECTOR;
const LINK_SECTOR: u64 = 1_028;
const COMMAND: u64 = 5_000;
const PROGRAM: u64 = 300_000;

fn rig(change: impl FnOnce(&mut Config)) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    change(&mut config);
    Rig::new(config)
}

/// When a read and a write of two units of one channel end. The write's transfer begins at 30 us, the read's data is ready at
/// 40 us.
fn read_beside_write(grant_sectors: u32) -> (u64, u64) {
    let mut rig = rig(|config| config.channel.grant_sectors = grant_sectors);
    rig.fill_chunk(8, 1);
    let start = rig.now;
    let read = rig.command(Op::Read, run(ppa(8, 0), 1));
    let write = rig.command(Op::Write { fua: false }, run(ppa(0, 0), 8));
    let ended = rig.play(&[(start, read), (start + Nanos(30_000 - 8 * LINK_SECTOR), write)]);
    rig.drive.check();
    let ends: Vec<u64> = ended.iter().map(|end| (end.at - start).0).collect();
    (ends[0], ends[1])
}

#[test]
fn a_read_gets_the_channel_after_a_page_of_a_write_if_it_is_granted_by_page() {
    let (whole, link) = (CHANNEL_COMMAND + 2 * PAGE, LINK_SECTOR + COMMAND);
    let (read, write) = read_beside_write(0);
    assert_eq!((read, write), (30_000 + whole + OUT + link, 30_000 + whole + PROGRAM + COMMAND));
    let (read, write) = read_beside_write(4);
    // The write's command cycles come once; its second page waits for the read.
    let first_page = 30_000 + CHANNEL_COMMAND + PAGE;
    assert_eq!((read, write), (first_page + OUT + link, first_page + OUT + PAGE + PROGRAM + COMMAND));
    assert_eq!(read_beside_write(8), read_beside_write(0), "a grant of all of it is no grant at all");
}

#[test]
fn grants_change_no_time_of_a_channel_nobody_else_wants() {
    for grant_sectors in [0, 1, 3, 4, 8] {
        let mut rig = rig(|config| config.channel.grant_sectors = grant_sectors);
        let (took, _) = rig.write(ppa(0, 0), 8, 0);
        let unit = 8 * LINK_SECTOR + CHANNEL_COMMAND + 2 * PAGE;
        assert_eq!(took, Nanos(unit + PROGRAM + COMMAND), "{grant_sectors} sectors");
        assert_eq!(rig.drive.counters().channel_busy[0], Nanos(CHANNEL_COMMAND + 2 * PAGE));
    }
}

/// The sense time of every page of `tiny`, 256 of them, each sensed alone.
fn senses(seed: u64, slow_read: &[SlowRead]) -> Vec<u64> {
    let mut rig = rig(|config| {
        config.seed = seed;
        config.media.plane_reads = PlaneReads::Asked;
        config.media.slow_read = slow_read.to_vec();
    });
    let mut times = Vec::new();
    for chunk in 0..32 {
        rig.fill_chunk(chunk, 0);
        for page in 0..8 {
            let (took, end) = rig.read(ppa(chunk, page * 4), 1);
            assert!(end.status.is_success(), "{end:?}");
            times.push(took.0 - OUT - LINK_SECTOR - COMMAND);
        }
    }
    times
}

#[test]
fn so_many_pages_are_slow_whatever_their_type_and_the_seed_says_which() {
    let slow = |share, micros| SlowRead { share, time: Nanos::from_micros(micros) };
    let tail = [slow(250_000_000, 90), slow(50_000_000, 200)];
    let plain = senses(1, &[]);
    assert!(plain.iter().enumerate().all(|(page, &time)| time == [40_000, 60_000][page / 2 % 2]));
    let [once, again, other] = [1, 1, 2].map(|seed| senses(seed, &tail));
    assert_eq!(once, again);
    assert_ne!(once, other);
    let count = |time: u64| once.iter().filter(|&&sense| sense == time).count();
    // Of 256 pages 51 and 13 are expected; five standard deviations are 32 and 18.
    assert!((19..=83).contains(&count(90_000)) && (1..=31).contains(&count(200_000)), "{once:?}");
    assert_eq!(count(40_000) + count(60_000) + count(90_000) + count(200_000), once.len());
}

#[test]
fn a_row_is_as_slow_as_its_slowest_page() {
    let slow = [SlowRead { share: 250_000_000, time: Nanos::from_micros(90) }];
    let pages = senses(1, &slow);
    let mut rig = rig(|config| config.media.slow_read = slow.to_vec());
    for chunk in 0..32 {
        rig.fill_chunk(chunk, 0);
        for row in 0..4 {
            let (took, _) = rig.read(ppa(chunk, row * 8), 1);
            let first = usize::try_from(chunk * 8 + row * 2).expect("few pages");
            let slowest = pages[first].max(pages[first + 1]);
            assert_eq!(took.0, slowest + OUT + LINK_SECTOR + COMMAND, "chunk {chunk}, row {row}");
        }
    }
}
