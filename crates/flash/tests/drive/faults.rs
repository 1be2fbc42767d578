//! Faults of the media: each kind by schedule and by rate, and how long they last.

use crate::rig::{Rig, ppa, preset, run};
use ocssd_base::Nanos;
use ocssd_flash::config::FaultConfig;
use ocssd_flash::{
    AddressList, FailedOp, FaultKind, NotificationKind, Operation, OperationKind, ReadPolicy, ScheduledFault,
};
use ocssd_lightnvm::{ChunkId, ChunkState, Device, Op, Status, Tag};

fn rig(faults: FaultConfig) -> Rig {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    config.wear.endurance = 100_000;
    config.faults = faults;
    Rig::new(config)
}

fn schedule(rig: &mut Rig, kind: FaultKind, chunk: u32, sector: Option<u32>, times: u32) {
    rig.drive.schedule_fault(ScheduledFault { kind, chunk: ChunkId(chunk), sector, times });
}

fn state(rig: &Rig, chunk: u32) -> (ChunkState, Option<u32>) {
    let descriptor = rig.drive.chunk(ChunkId(chunk));
    (descriptor.state, descriptor.write_pointer)
}

#[test]
fn write_next_unit_loses_the_unit_and_the_chunk_goes_on() {
    let mut rig = rig(FaultConfig::default());
    schedule(&mut rig, FaultKind::WriteNextUnit, 0, Some(9), 1);
    for sector in 0..24 {
        rig.fill(rig.buffer, sector, 60 + u64::from(sector));
    }
    let command = rig.command(Op::Write { fua: false }, run(ppa(0, 0), 24));
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::WRITE_NEXT_UNIT, 0xFF00));
    assert_eq!(state(&rig, 0), (ChunkState::Open, Some(24)));
    let (_, end) = rig.read(ppa(0, 0), 24);
    assert_eq!((end.status, end.failed), (Status::UNRECOVERED_READ, 0xFF00));
    assert_eq!([rig.id_of(rig.buffer, 7), rig.id_of(rig.buffer, 16)], [67, 76]);
    assert_eq!(rig.drive.unreadable(ChunkId(0)), [0xFF00]);
    assert_eq!(rig.write(ppa(0, 24), 8, 0).1.status, Status::SUCCESS);
    assert_eq!(rig.reset(0).1.status, Status::SUCCESS);
    rig.fill_chunk(0, 5);
    assert_eq!(rig.read(ppa(0, 0), 32).1.status, Status::SUCCESS, "a reset heals");
    rig.drive.check();
}

#[test]
fn early_close_keeps_the_pointer_and_what_lies_below_it() {
    let mut rig = rig(FaultConfig::default());
    schedule(&mut rig, FaultKind::EarlyClose, 0, Some(16), 1);
    for sector in 0..24 {
        rig.fill(rig.buffer, sector, 60 + u64::from(sector));
    }
    let command = rig.command(Op::Write { fua: false }, run(ppa(0, 0), 24));
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::EARLY_CLOSE, 0xFF_0000));
    assert_eq!(state(&rig, 0), (ChunkState::Closed, Some(16)));
    let (_, end) = rig.read(ppa(0, 0), 24);
    assert_eq!((end.status, end.failed), (Status::UNWRITTEN, 0xFF_0000));
    assert_eq!(rig.id_of(rig.buffer, 15), 75);
    assert_eq!(rig.write(ppa(0, 16), 8, 0).1.status, Status::WRITE_FAULT);
    assert_eq!(rig.reset(0).1.status, Status::SUCCESS);
}

#[test]
fn a_fault_in_one_chunk_of_a_vector_leaves_the_others_alone() {
    let mut rig = rig(FaultConfig::default());
    schedule(&mut rig, FaultKind::EarlyClose, 8, None, 1);
    let list: Vec<_> =
        [0, 8, 16].iter().flat_map(|&chunk| (0..8).map(move |sector| ppa(chunk, sector))).collect();
    let command = rig.vector(Op::Write { fua: false }, &list);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::EARLY_CLOSE, 0xFF00));
    let states: Vec<_> = [0, 8, 16].map(|chunk| state(&rig, chunk)).into();
    let open = (ChunkState::Open, Some(8));
    assert_eq!(states, [open, (ChunkState::Closed, Some(0)), open]);
}

#[test]
fn scheduled_reads_fail_as_often_as_asked_and_are_noticed() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 70);
    schedule(&mut rig, FaultKind::UnrecoveredRead, 0, Some(5), 2);
    schedule(&mut rig, FaultKind::HighEcc, 0, Some(6), 1);
    let (_, end) = rig.read(ppa(0, 4), 4);
    assert_eq!((end.status, end.failed), (Status::UNRECOVERED_READ, 0b0010));
    assert!(
        rig.buffers.data(rig.buffer, 1, 1).iter().all(|&byte| byte == 0xEC),
        "lost data is not handed out"
    );
    assert_eq!(rig.id_of(rig.buffer, 2), 76, "High ECC comes with the data");
    let notifications: Vec<_> = rig
        .drive
        .chunk_notifications()
        .map(|notification| (notification.count, notification.kind, notification.at))
        .collect();
    assert_eq!(
        notifications,
        [(1, NotificationKind::Unrecoverable, ppa(0, 5)), (2, NotificationKind::LowErrorRate, ppa(0, 6))]
    );
    assert_eq!(rig.read(ppa(0, 5), 1).1.status, Status::UNRECOVERED_READ);
    assert_eq!(rig.read(ppa(0, 4), 4).1.status, Status::SUCCESS);
}

#[test]
fn high_ecc_is_told_to_who_asks_and_the_data_is_good() {
    for (report, expected) in [(true, (Status::HIGH_ECC, 1)), (false, (Status::SUCCESS, 0))] {
        let mut rig = rig(FaultConfig::default());
        rig.fill_chunk(0, 70);
        schedule(&mut rig, FaultKind::HighEcc, 0, None, 1);
        let policy = ReadPolicy { report_high_ecc: report, ..ReadPolicy::STRICT };
        let mut data = [0; 16];
        let operation = Operation {
            tag: Tag(1),
            kind: OperationKind::Read(policy),
            addresses: AddressList::Run { first: ppa(0, 0), count: 1 },
            data: &mut data,
            oob: &mut [],
            whole: &mut [],
        };
        rig.drive.execute(rig.now, operation).expect("room");
        let mut end = None;
        while end.is_none() {
            rig.now = rig.drive.deadline().expect("in flight");
            end = rig.drive.poll_completion(rig.now, &mut rig.buffers);
        }
        assert_eq!(end.map(|end| (end.status, end.failed)), Some(expected));
        assert_eq!(data, crate::rig::content(70));
        assert_eq!(rig.drive.chunk_notifications().count(), 1, "the log page has it either way");
    }
}

#[test]
fn a_second_sense_takes_its_time_unless_retries_are_limited() {
    let run = |fault: bool, limited_retry: bool| {
        let mut rig = rig(FaultConfig::default());
        rig.fill_chunk(0, 70);
        if fault {
            schedule(&mut rig, FaultKind::HighEcc, 0, None, 1);
        }
        let operation = Operation {
            tag: Tag(1),
            kind: OperationKind::Read(ReadPolicy { limited_retry, ..ReadPolicy::STRICT }),
            addresses: AddressList::Run { first: ppa(0, 0), count: 1 },
            data: &mut [],
            oob: &mut [],
            whole: &mut [],
        };
        let start = rig.now;
        rig.drive.execute(start, operation).expect("room");
        loop {
            rig.now = rig.drive.deadline().expect("in flight");
            if let Some(end) = rig.drive.poll_completion(rig.now, &mut rig.buffers) {
                return (end.status, rig.now - start);
            }
        }
    };
    let (plain, sense) = (run(false, false), rig(FaultConfig::default()).drive.config().media.read.clone());
    let slowest = sense.into_iter().max().expect("a sense time");
    assert_eq!(run(true, false), (Status::HIGH_ECC, plain.1 + slowest));
    assert_eq!(run(true, true), (Status::UNRECOVERED_READ, plain.1));
    assert_eq!(run(false, true), plain);
}

#[test]
fn a_failed_reset_takes_the_chunk_offline() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 0);
    rig.fill_chunk(1, 0);
    schedule(&mut rig, FaultKind::ResetFailure, 0, None, 1);
    let command = rig.vector(Op::Reset, &[ppa(0, 0), ppa(1, 0)]);
    let (_, end) = rig.one(command);
    assert_eq!((end.status, end.failed), (Status::OFFLINE_CHUNK, 1));
    assert_eq!([state(&rig, 0).0, state(&rig, 1).0], [ChunkState::Offline, ChunkState::Free]);
}

#[test]
fn a_latency_spike_is_added_to_the_array_time_of_any_operation() {
    let spike = Nanos::from_millis(2);
    let mut rig = rig(FaultConfig { spike, ..FaultConfig::default() });
    for (chunk, spiked) in [(0, false), (8, true)] {
        if spiked {
            schedule(&mut rig, FaultKind::LatencySpike, chunk, None, 1);
        }
        let extra = if spiked { spike } else { Nanos::ZERO };
        assert_eq!(rig.write(ppa(chunk, 0), 8, 0).0, Nanos(396_464) + extra, "{chunk}");
        rig.write_ok(chunk, 8..32, 0);
        if spiked {
            schedule(&mut rig, FaultKind::LatencySpike, chunk, Some(16), 1);
        }
        assert_eq!(rig.read(ppa(chunk, 16), 1).0, Nanos(57_308) + extra, "{chunk}");
        if spiked {
            schedule(&mut rig, FaultKind::LatencySpike, chunk, None, 1);
        }
        assert_eq!(rig.reset(chunk).0, Nanos(3_005_000) + extra, "{chunk}");
    }
}

/// Counts within four standard deviations of what the rate says.
fn assert_near(name: &str, hits: u32, tries: u32, rate: f64) {
    let mean = f64::from(tries) * rate;
    let bound = 4.0 * (mean * (1.0 - rate)).sqrt();
    assert!(
        (f64::from(hits) - mean).abs() <= bound,
        "{name}: {hits} of {tries}, expected {mean:.0} +- {bound:.0}"
    );
}

/// Ten lives of every chunk of `tiny`, unit by unit; how often each status came.
fn write_lives(rig: &mut Rig, statuses: &[Status]) -> (Vec<u32>, u32) {
    let mut counts = vec![0; statuses.len()];
    let mut units = 0;
    for _life in 0..10 {
        for chunk in 0..32 {
            while let (ChunkState::Free | ChunkState::Open, Some(sector)) = state(rig, chunk) {
                let (_, end) = rig.write(ppa(chunk, sector), 8, 0);
                units += 1;
                if let Some(place) = statuses.iter().position(|&status| status == end.status) {
                    counts[place] += 1;
                }
            }
            assert_eq!(rig.reset(chunk).1.status, Status::SUCCESS);
        }
    }
    (counts, units)
}

#[test]
fn write_faults_come_at_their_rates() {
    let faults =
        FaultConfig { write_next_unit: 100_000_000, early_close: 50_000_000, ..FaultConfig::default() };
    let mut rig = rig(faults);
    let (counts, units) = write_lives(&mut rig, &[Status::EARLY_CLOSE, Status::WRITE_NEXT_UNIT]);
    assert!(units > 1_000);
    assert_near("early close", counts[0], units, 0.05);
    // Drawn only for units that did not close early.
    assert_near("write next unit", counts[1], units, 0.10 * 0.95);
    rig.drive.check();
}

#[test]
fn resets_fail_at_their_rate() {
    let mut rig = rig(FaultConfig { reset_failure: 20_000_000, ..FaultConfig::default() });
    let mut resets = 0;
    for _life in 0..20 {
        for chunk in (0..32).filter(|&chunk| chunk % 8 < 4) {
            if state(&rig, chunk).0 != ChunkState::Offline {
                rig.write(ppa(chunk, 0), 32, 0);
                rig.reset(chunk);
                resets += 1;
            }
        }
    }
    let offline = rig.report().iter().filter(|chunk| chunk.state == ChunkState::Offline).count();
    assert_near("offline", u32::try_from(offline).expect("few chunks"), resets, 0.02);
}

#[test]
fn latency_spikes_come_at_their_rate() {
    let spike = Nanos::from_millis(1);
    let mut rig = rig(FaultConfig { latency_spike: 100_000_000, spike, ..FaultConfig::default() });
    rig.fill_chunk(0, 0);
    let mut spikes = 0;
    for read in 0..1_000 {
        // Rows in turn, so that each read senses.
        spikes += u32::from(rig.read(ppa(0, read % 2 * 8), 1).0 > spike);
    }
    assert_near("spikes", spikes, 1_000, 0.1);
}

#[test]
fn unreadable_sectors_come_at_their_rate_stay_until_the_reset_and_differ_after_it() {
    let faults =
        FaultConfig { unrecovered_read: 100_000_000, high_ecc: 100_000_000, ..FaultConfig::default() };
    let mut rig = rig(faults);
    let mut lives: Vec<Vec<u64>> = Vec::new();
    let mut per_chunk_differs = 0;
    for _life in 0..4 {
        let mut lost = Vec::new();
        for chunk in 0..32 {
            rig.fill_chunk(chunk, 0);
            let first = rig.read(ppa(chunk, 0), 32).1;
            let second = rig.read(ppa(chunk, 0), 32).1;
            assert_eq!(
                first,
                ocssd_lightnvm::Completion { tag: first.tag, ..second },
                "a lost sector stays lost"
            );
            let bits = if first.status == Status::UNRECOVERED_READ { first.failed } else { 0 };
            lost.push(bits);
            rig.reset(chunk);
        }
        if let Some(before) = lives.last() {
            per_chunk_differs +=
                before.iter().zip(&lost).filter(|(a, b)| a.count_ones() != b.count_ones()).count();
        }
        lives.push(lost);
    }
    let total: u32 = lives.iter().flatten().map(|bits| bits.count_ones()).sum();
    assert_near("lost sectors", total, 4 * 32 * 32, 0.1);
    // Two binomial counts of 32 sectors at 10 % are equal about one time in six: lives are drawn independently.
    assert!(
        per_chunk_differs > 60,
        "only {per_chunk_differs} of 96 chunks lost another number of sectors in their next life"
    );
}

#[test]
fn high_ecc_comes_at_its_rate() {
    let mut rig = rig(FaultConfig { high_ecc: 200_000_000, ..FaultConfig::default() });
    let mut weak = 0;
    for chunk in 0..32 {
        rig.fill_chunk(chunk, 0);
        weak += rig.read(ppa(chunk, 0), 32).1.failed.count_ones();
    }
    assert_near("weak sectors", weak, 1024, 0.2);
}

#[test]
fn factory_bad_chunks_follow_from_the_seed() {
    let bad = |seed: u64| -> Vec<usize> {
        let mut config = preset("westlake");
        config.geometry.chunks_per_pu = 100;
        config.faults.factory_bad = 10_000_000;
        config.seed = seed;
        let rig = Rig::new(config);
        rig.report()
            .iter()
            .enumerate()
            .filter(|(_, chunk)| chunk.state == ChunkState::Offline)
            .map(|(at, _)| at)
            .collect()
    };
    assert_eq!(bad(3), bad(3));
    assert_ne!(bad(3), bad(4));
    assert_near("factory bad", u32::try_from(bad(3).len()).expect("few"), 12_800, 0.01);
}

#[test]
fn the_ring_of_notifications_forgets_the_oldest_and_its_counter_shows_the_gap() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 0);
    schedule(&mut rig, FaultKind::HighEcc, 0, None, 300);
    for _ in 0..10 {
        rig.read(ppa(0, 0), 32);
    }
    let counts: Vec<u64> = rig.drive.chunk_notifications().map(|notification| notification.count).collect();
    assert_eq!((counts.len(), counts[0], counts[255]), (256, 45, 300));
    rig.drive.chunk_notifications_read(299);
    assert_eq!(rig.drive.chunk_notifications().count(), 1);
}

/// A unit lost by a fault and then cut off by a power cut is written again: it must then be readable.
#[test]
fn a_failed_unit_that_never_reached_the_media_leaves_no_mark() {
    let mut rig = rig(FaultConfig::default());
    schedule(&mut rig, FaultKind::WriteNextUnit, 0, None, 1);
    let command = rig.command(Op::Write { fua: false }, run(ppa(0, 0), 8));
    rig.drive.submit(rig.now, command, &mut rig.buffers).expect("room");
    rig.drive.power_cut(rig.now, &mut ocssd_base::Prng::new(1)).expect("memory does not fail");
    assert_eq!(state(&rig, 0), (ChunkState::Free, Some(0)));
    rig.write_ok(0, 0..8, 33);
    assert_eq!(rig.read(ppa(0, 0), 8).1.status, Status::SUCCESS);
    rig.drive.check();
}

#[test]
fn a_command_that_fails_as_a_whole_changes_nothing() {
    let mut rig = rig(FaultConfig::default());
    rig.fill_chunk(0, 70);
    let before = [state(&rig, 0), state(&rig, 1)];
    let failed = |op, status| FaultKind::Failed(op, status);
    schedule(&mut rig, failed(FailedOp::Read, Status::TRANSIENT_TRANSPORT_ERROR), 0, None, 1);
    schedule(&mut rig, failed(FailedOp::Reset, Status::ABORT_REQUESTED), 0, None, 1);
    schedule(&mut rig, failed(FailedOp::Write, Status::ACCESS_DENIED), 1, None, 1);
    let (_, end) = rig.read(ppa(0, 4), 4);
    assert_eq!((end.status, end.failed), (Status::TRANSIENT_TRANSPORT_ERROR, 0b1111));
    assert!(rig.buffers.data(rig.buffer, 0, 4).iter().all(|&byte| byte == 0xEC), "nothing is handed out");
    assert_eq!(rig.write(ppa(1, 0), 8, 90).1.status, Status::ACCESS_DENIED);
    assert_eq!(rig.reset(0).1.status, Status::ABORT_REQUESTED);
    assert_eq!([state(&rig, 0), state(&rig, 1)], before);
    assert_eq!(rig.read(ppa(0, 4), 4).1.status, Status::SUCCESS, "once");
    assert_eq!(rig.id_of(rig.buffer, 0), 74);
    assert_eq!(rig.write(ppa(1, 0), 8, 90).1.status, Status::SUCCESS);
    assert_eq!(rig.reset(0).1.status, Status::SUCCESS);
    assert_eq!(rig.drive.counters().commands_failed, 3);
    rig.drive.check();
}

#[test]
fn a_flush_that_fails_does_not_wait_and_its_data_goes_on_to_the_media() {
    let mut config = preset("tiny");
    config.geometry.mw_cunits = 0;
    (config.cache.sectors, config.cache.power_loss_protection) = (64, false);
    let mut rig = Rig::new(config);
    schedule(&mut rig, FaultKind::Failed(FailedOp::Flush, Status::INTERNAL_ERROR), 0, None, 1);
    rig.write(ppa(0, 0), 8, 50);
    let (failed, end) = rig.flush();
    assert_eq!((end.status, end.failed), (Status::INTERNAL_ERROR, 0));
    let (done, end) = rig.flush();
    assert_eq!(end.status, Status::SUCCESS);
    assert!(done > failed, "the first flush waited for the media");
    assert_eq!(rig.read(ppa(0, 0), 8).1.status, Status::SUCCESS);
    rig.drive.check();
}

#[test]
fn commands_fail_at_their_rates_with_every_status_they_may_have() {
    let mut rig =
        rig(FaultConfig { failed_read: 500_000_000, failed_flush: 500_000_000, ..FaultConfig::default() });
    rig.fill_chunk(0, 70);
    let (mut reads, mut flushes) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        reads.push(rig.read(ppa(0, 4), 4).1.status);
        flushes.push(rig.flush().1.status);
    }
    for (op, seen) in [(FailedOp::Read, reads), (FailedOp::Flush, flushes)] {
        let fine = seen.iter().filter(|status| status.is_success()).count();
        assert!((150..250).contains(&fine), "{op:?}: {fine} of 400 succeeded");
        assert!(op.statuses().iter().all(|status| seen.contains(status)), "{op:?}");
        assert!(seen.iter().all(|status| status.is_success() || op.statuses().contains(status)), "{op:?}");
    }
    rig.drive.stop_faults();
    assert!((0..50).all(|_| rig.read(ppa(0, 4), 4).1.status.is_success()));
}

#[test]
fn a_transient_read_fails_once_and_loses_nothing() {
    let mut rig = rig(FaultConfig { transient_read: 300_000_000, ..FaultConfig::default() });
    rig.fill_chunk(0, 70);
    let mut failed = 0;
    for sector in (0..32).cycle().take(2000) {
        if rig.read(ppa(0, sector), 1).1.status == Status::UNRECOVERED_READ {
            failed += 1;
            let (_, again) = rig.read(ppa(0, sector), 1);
            assert_eq!(again.status, Status::SUCCESS, "the next try");
            assert_eq!(rig.id_of(rig.buffer, 0), 70 + u64::from(sector));
        }
    }
    assert!((400..800).contains(&failed), "{failed} of 2000 failed");
    assert_eq!(rig.drive.chunk_notifications().count(), 0, "nothing was lost");
    rig.drive.stop_faults();
    schedule(&mut rig, FaultKind::TransientRead, 0, Some(3), 2);
    let seen = [0, 0, 0].map(|_| rig.read(ppa(0, 2), 4).1);
    assert_eq!(seen.map(|end| end.failed), [0b10, 0b10, 0]);
}
