//! What media do when the power goes in the middle of an erase or a program, when a unit dies, when a read is misdirected, when a
//! write is lost or misdirected, and in months without power.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::config::FaultConfig;
use ocssd_flash::{PowerCutReport, Shelf};
use ocssd_lightnvm::{ChunkId, ChunkState, Device, Op, PuId, Status};

/// All of them, in parts per billion.
const ALWAYS: u32 = 1_000_000_000;

fn rig(faults: FaultConfig) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.wear.endurance = 100_000;
    config.faults = faults;
    Rig::new(config)
}

fn cut(rig: &mut Rig, after: Nanos, seed: u64) -> PowerCutReport {
    rig.now += after;
    rig.drive.power_cut(rig.now, &mut Prng::new(seed)).expect("memory does not fail")
}

/// Sectors of a full chunk that can be read, each with what it held before.
fn sound(rig: &mut Rig, chunk: u32, id: u64) -> u32 {
    let (_, end) = rig.read(ppa(chunk, 0), 32);
    let fine = (0..32u32).filter(|sector| end.failed >> sector & 1 == 0);
    let fine: Vec<u32> = fine.collect();
    for &sector in &fine {
        assert_eq!(rig.id_of(rig.buffer, sector), id + u64::from(sector), "sector {sector} is another");
    }
    u32::try_from(fine.len()).expect("a chunk is small")
}

#[test]
fn a_reset_in_the_array_stays_half_done_and_the_next_one_does_it() {
    let mut some = 0;
    for seed in 0..8 {
        let mut rig = rig(FaultConfig { half_reset: ALWAYS, ..FaultConfig::default() });
        rig.fill_chunk(0, 500);
        let cycles = rig.drive.cycles(ChunkId(0));
        let reset = rig.command(Op::Reset, run(ppa(0, 0), 1));
        rig.drive.submit(rig.now, reset, &mut rig.buffers).expect("room");
        let report = cut(&mut rig, Nanos::from_millis(1), seed);
        assert_eq!((report.resets_half_done, report.resets_undone), (1, 0), "seed {seed}: {report:?}");
        let chunk = rig.drive.chunk(ChunkId(0));
        assert_eq!((chunk.state, chunk.write_pointer), (ChunkState::Closed, Some(32)), "seed {seed}");
        let left = sound(&mut rig, 0, 500);
        assert!(left < 32, "seed {seed}: nothing was erased");
        some += u32::from(left > 0);
        assert!(rig.reset(0).1.status.is_success(), "seed {seed}");
        assert_eq!(rig.drive.cycles(ChunkId(0)), cycles + 1, "the life that begins now is the next one");
        rig.fill_chunk(0, 900);
        assert_eq!(sound(&mut rig, 0, 900), 32, "seed {seed}: what was lost comes back");
        rig.drive.check();
    }
    assert!(some > 2, "all of every chunk was erased");
}

#[test]
fn without_the_fault_a_reset_in_the_array_is_done() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 500);
    let reset = rig.command(Op::Reset, run(ppa(0, 0), 1));
    rig.drive.submit(rig.now, reset, &mut rig.buffers).expect("room");
    let report = cut(&mut rig, Nanos::from_millis(1), 3);
    assert_eq!((report.resets_half_done, report.resets_undone), (0, 0));
    assert_eq!(rig.drive.chunk(ChunkId(0)).state, ChunkState::Free);
}

#[test]
fn a_torn_unit_takes_the_one_before_it_and_no_other() {
    let mut rig = rig(FaultConfig { paired_loss: ALWAYS, ..FaultConfig::default() });
    rig.write_ok(0, 0..16, 100);
    rig.write_ok(8, 0..8, 300);
    for sector in 0..8 {
        rig.fill(rig.buffer, sector, 116 + u64::from(sector));
    }
    let write = rig.command(Op::Write { fua: false }, run(ppa(0, 16), 8));
    rig.drive.submit(rig.now, write, &mut rig.buffers).expect("room");
    let report = cut(&mut rig, Nanos(300_000), 1);
    assert_eq!((report.units_torn, report.pairs_lost), (1, 1), "{report:?}");
    assert_eq!(rig.drive.take_lost_pairs(), [(ppa(0, 8), 8)]);
    assert_eq!(rig.read(ppa(0, 0), 16).1.failed, 0xFF00, "the unit before, and not the first");
    assert_eq!(rig.read(ppa(8, 0), 8).1.status, Status::SUCCESS, "another chunk");
    assert_eq!(rig.drive.take_lost_pairs(), [], "each is told once");
}

#[test]
fn a_dead_unit_is_offline_as_a_whole_and_others_go_on() {
    let mut rig = rig(FaultConfig::default());
    let chunks = rig.drive.geometry().chunks_per_pu;
    rig.fill_chunk(0, 100);
    rig.write_ok(1, 0..8, 200);
    rig.fill_chunk(chunks, 400);
    let under_way = rig.command(Op::Write { fua: false }, run(ppa(1, 8), 8));
    rig.drive.submit(rig.now, under_way, &mut rig.buffers).expect("room");
    let lost = rig.drive.kill_unit(PuId(0), &mut rig.buffers).expect("memory does not fail");
    assert_eq!(lost, chunks);
    let end = loop {
        rig.now = rig.drive.deadline().expect("a write is under way");
        if let Some(end) = rig.drive.poll_completion(rig.now, &mut rig.buffers) {
            break end;
        }
    };
    assert_eq!(end.status, Status::SUCCESS, "it was carried out when it was submitted");
    assert!(rig.report()[..8].iter().all(|chunk| chunk.state == ChunkState::Offline));
    assert!(!rig.read(ppa(0, 0), 8).1.status.has_data());
    assert_eq!(rig.write(ppa(2, 0), 8, 1).1.status, Status::WRITE_FAULT);
    assert_eq!(rig.reset(0).1.status, Status::OFFLINE_CHUNK);
    assert_eq!(sound(&mut rig, chunks, 400), 32, "the next unit");
    let again = rig.drive.kill_unit(PuId(0), &mut rig.buffers).expect("memory does not fail");
    assert_eq!(again, 0, "nothing dies twice");
    rig.drive.check();
    let report = cut(&mut rig, Nanos(1), 1);
    assert_eq!((report.units_torn, report.sectors_lost), (0, 0));
    rig.drive.check();
}

#[test]
fn a_misdirected_read_returns_another_sector_once_and_says_nothing() {
    let mut rig = rig(FaultConfig { misdirected_read: 300_000_000, ..FaultConfig::default() });
    rig.fill_chunk(0, 70);
    let mut wrong = 0;
    for sector in (0..32).cycle().take(2000) {
        assert_eq!(rig.read(ppa(0, sector), 1).1.status, Status::SUCCESS);
        let found = rig.id_of(rig.buffer, 0);
        if found != 70 + u64::from(sector) {
            wrong += 1;
            assert_eq!(found, 70, "the first of the chunk");
            assert_eq!(rig.read(ppa(0, sector), 1).1.status, Status::SUCCESS);
            assert_eq!(rig.id_of(rig.buffer, 0), 70 + u64::from(sector), "the next try");
        }
    }
    assert!((400..800).contains(&wrong), "{wrong} of 2000 were wrong");
    rig.drive.stop_faults();
    assert_eq!(sound(&mut rig, 0, 70), 32);
}

#[test]
fn months_without_power_take_sectors_for_good_and_weaken_others_for_a_while() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 500);
    rig.fill_chunk(1, 600);
    let shelf = Shelf { lost: ALWAYS / 4, weak: ALWAYS / 4 };
    let (taken, weak) = rig.drive.lie_without_power(shelf, &mut Prng::new(5)).expect("memory does not fail");
    assert!((4..28).contains(&taken.len()) && (4..28).contains(&weak), "{taken:?} and {weak} of 64");
    let statuses = |rig: &mut Rig, chunk| -> Vec<Status> {
        (0..32).map(|sector| rig.read(ppa(chunk, sector), 1).1.status).collect()
    };
    let count = |found: &[Status], status| found.iter().filter(|&&one| one == status).count();
    let first: Vec<Status> = (0..2).flat_map(|chunk| statuses(&mut rig, chunk)).collect();
    let lost = count(&first, Status::UNRECOVERED_READ);
    assert_eq!(lost, taken.len(), "{first:?}");
    assert!(taken.iter().all(|&at| rig.read(at, 1).1.status == Status::UNRECOVERED_READ), "{taken:?}");
    for _ in 0..4 {
        (0..2).for_each(|chunk| drop(statuses(&mut rig, chunk)));
    }
    let later: Vec<Status> = (0..2).flat_map(|chunk| statuses(&mut rig, chunk)).collect();
    assert_eq!(count(&later, Status::UNRECOVERED_READ), lost, "what is lost stays so");
    assert_eq!(count(&later, Status::SUCCESS), 64 - lost, "what was weak was read often enough");
    rig.drive.check();
    assert!(rig.reset(0).1.status.is_success());
    rig.fill_chunk(0, 900);
    assert_eq!(count(&statuses(&mut rig, 0), Status::SUCCESS), 32, "a reset chunk is as it was");
}

#[test]
fn a_write_that_went_astray_is_blank_where_it_belongs_and_lies_where_it_went() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 500);
    assert!(rig.drive.misplace_write(ppa(0, 24), None), "it was written");
    assert!(rig.drive.misplace_write(ppa(0, 25), Some(ppa(0, 3))), "both were");
    let (_, end) = rig.read(ppa(0, 0), 32);
    assert!(end.status.is_success() && end.failed == 0, "nobody is told: {:?}", end.status);
    for sector in (0..32).filter(|sector| ![3, 24, 25].contains(sector)) {
        assert_eq!(rig.id_of(rig.buffer, sector), 500 + u64::from(sector), "sector {sector} is another");
    }
    assert_eq!(rig.id_of(rig.buffer, 3), 525, "what was written there is gone");
    let is_blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    for sector in [24, 25] {
        assert!(is_blank(rig.buffers.data(rig.buffer, sector, 1)), "sector {sector}");
        assert!(is_blank(rig.buffers.oob(rig.buffer, sector, 1)), "sector {sector}");
    }
    assert!(!rig.drive.misplace_write(ppa(1, 0), None), "nothing was written there");
    rig.drive.check();
    assert!(rig.reset(0).1.status.is_success());
    rig.fill_chunk(0, 900);
    assert_eq!(sound(&mut rig, 0, 900), 32, "the chunk's next life knows nothing of it");
}
