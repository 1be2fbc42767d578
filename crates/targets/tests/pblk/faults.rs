//! Media that fail: what was promised stays, what is lost says so, and nothing hangs.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_flash::{Config, FailedOp, FaultKind, ScheduledFault};
use ocssd_lightnvm::block::{BlockOp, BlockTarget, CounterValue};
use ocssd_lightnvm::{
    Addresses, ChunkId, ChunkState, Command, Device, Geometry, LbaFormat, Op, PlaneMode, Ppa, Status, Tag,
    Target,
};
use ocssd_targets::SENDS_MAX;
use ocssd_targets::pblk::{Mode, Options};

const MODES: [Mode; 2] = [Mode::Improved, Mode::Faithful];

/// Reads of a sector before it is given up.
const TRIES: u32 = 3;

/// A drive of 2 x 2 units with chunks to lose.
fn large(chunks_per_pu: u32) -> Config {
    let lba_format = LbaFormat::smallest(2, 2, chunks_per_pu, 64);
    config(Geometry { chunks_per_pu, lba_format, ..geometry() })
}

fn fault(kind: FaultKind, chunk: u32, sector: Option<u32>, times: u32) -> ScheduledFault {
    ScheduledFault { kind, chunk: ChunkId(chunk), sector, times }
}

/// Every fault that a write can meet, at every unit of the first lines, heads and tails included.
#[test]
fn a_write_that_fails_anywhere_is_repeated_elsewhere() {
    for kind in [FaultKind::WriteNextUnit, FaultKind::EarlyClose] {
        for mode in MODES {
            for sector in (0..64).step_by(4) {
                let label = format!("{mode}, {kind:?} at sector {sector}");
                let mut world = World::new(config(geometry()), options(mode), &label);
                for chunk in 0..96 {
                    if chunk % 3 != 1 {
                        world.host.device_mut().inner_mut().schedule_fault(fault(
                            kind,
                            chunk,
                            Some(sector),
                            1,
                        ));
                    }
                }
                let mut prng = Prng::new(3);
                assert!(world.run(&Mix { requests: 150, discards: 0, ..MIX }, &mut prng), "{label}");
                world.flush();
                world.read_all(false);
                world.check();
                assert!(world.pblk().stats().write_failed > 0, "{label}");
                assert!(world.failures.is_empty(), "{label}: {:?}", world.failures);
                world.survive_cut(&mut prng);
            }
        }
    }
}

#[test]
fn a_lost_head_is_found_again_even_on_one_unit() {
    for kind in [FaultKind::WriteNextUnit, FaultKind::UnrecoveredRead] {
        let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 1, 40, 64, 4) };
        let mut world = World::new(config(geometry), options(Mode::Improved), &format!("{kind:?}"));
        for chunk in 0..40 {
            world.host.device_mut().inner_mut().schedule_fault(fault(kind, chunk, Some(0), 1));
        }
        world.write(0, 60);
        world.write(60, 60);
        world.flush();
        world.survive_cut(&mut Prng::new(1));
    }
}

/// The head was written again behind the unit that failed, but so little came after it that it could not be read yet, and
/// what it headed was taken for nobody's.
#[test]
fn a_head_written_again_is_found_while_it_is_too_young_to_be_read() {
    for blocks in [1, 4, 8, 12] {
        let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 1, 40, 64, 4) };
        let mut world = World::new(config(geometry), options(Mode::Improved), &format!("{blocks} blocks"));
        for chunk in 0..40 {
            let fault = fault(FaultKind::WriteNextUnit, chunk, Some(0), 1);
            world.host.device_mut().inner_mut().schedule_fault(fault);
        }
        world.write(0, blocks);
        world.flush();
        world.survive_cut(&mut Prng::new(1));
    }
}

#[test]
fn a_sector_that_cannot_be_read_fails_its_request_and_no_other() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        let blocks = world.blocks();
        let mut block = 0;
        while block < blocks {
            let count = u32::try_from((blocks - block).min(60)).expect("small");
            world.write(block, count);
            block += 60;
        }
        world.flush();
        for chunk in [0, 1, 24, 25] {
            world.host.device_mut().inner_mut().schedule_fault(fault(
                FaultKind::UnrecoveredRead,
                chunk,
                Some(8),
                TRIES,
            ));
        }
        world.media_fail = true;
        let lost = world.read_all(false);
        assert!(lost.is_empty(), "{mode}: each is read again, alone, and found: {lost:?}");
        assert_eq!(world.pblk().stats().read_failed, 4, "{mode}");
        world.check();
    }
}

/// Fills the drive, makes a sector unreadable for garbage collection, and returns what was lost.
fn lose(world: &mut World, prng: &mut Prng) -> Vec<u64> {
    let mix = Mix { requests: 900, reads: 0, discards: 0, ..MIX };
    assert!(world.run(&mix, prng));
    world.flush();
    for chunk in 0..96 {
        world.host.device_mut().inner_mut().schedule_fault(fault(
            FaultKind::UnrecoveredRead,
            chunk,
            Some(8),
            TRIES,
        ));
    }
    assert!(world.run(&mix, prng));
    world.flush();
    world.media_fail = true;
    world.read_all(false);
    world.read_all(false)
}

#[test]
fn what_garbage_collection_cannot_read_is_lost_until_it_is_written_again() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        let mut prng = Prng::new(9);
        let lost = lose(&mut world, &mut prng);
        assert!(!lost.is_empty(), "{mode}: nothing was lost, though reads of garbage collection failed");
        assert!(world.pblk().stats().read_failed_gc > 0, "{mode}");
        world.check();
        for clean in [true, false] {
            if clean {
                world.shut_down(&mut prng)
            } else {
                world.cut(&mut prng)
            }
            world.mount();
            for &block in &lost {
                assert!(
                    !world.read_and_judge(block, 1, true),
                    "{mode}, clean {clean}: block {block} came back"
                );
            }
            world.check();
        }
        for &block in &lost {
            world.write(block, 1);
            assert!(world.read_and_judge(block, 1, false), "{mode}: block {block} was written again");
        }
        world.check();
    }
}

/// Garbage collection looked up whom a sector belongs to before its tag was found to be sound.
#[test]
fn a_tag_in_which_bits_flipped_is_found_by_garbage_collection() {
    for bit in 8..40 {
        let mut world = World::new(config(geometry()), options(Mode::Improved), &format!("bit {bit}"));
        world.media_fail = true;
        for block in (0..600).step_by(12) {
            world.write(block, 12);
        }
        world.flush();
        for sector in 4..32 {
            world.host.device_mut().inner_mut().flip_bit(Ppa::new(ChunkId(0), sector), true, bit);
        }
        world.write(0, 12);
        world.flush();
        for _ in 0..4 {
            world.pblk_mut().force_gc();
            assert!(world.settle(), "bit {bit}");
        }
        assert!(world.pblk().stats().read_failed_gc > 0, "bit {bit}: {:?}", world.pblk().stats());
        world.check();
    }
}

/// Its line was moved for ever: the copies were of another block, and nothing superseded what the map still named.
#[test]
fn a_block_whose_place_another_write_took_is_given_up_and_its_line_is_emptied() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), "astray");
        world.media_fail = true;
        for block in (0..600).step_by(12) {
            world.write(block, 12);
        }
        world.flush();
        for sector in 8..16 {
            let (from, to) = (Ppa::new(ChunkId(0), sector + 8), Ppa::new(ChunkId(0), sector));
            assert!(world.host.device_mut().inner_mut().misplace_write(from, Some(to)), "{mode:?}: written");
        }
        for _ in 0..6 {
            world.pblk_mut().force_gc();
            assert!(world.settle(), "{mode:?}: work does not end");
            world.write(0, 12);
            world.flush();
        }
        let stats = world.pblk().stats();
        assert!(stats.gc_written < 2_000, "{mode:?}: {} sectors of 600 were moved", stats.gc_written);
        world.check();
    }
}

#[test]
fn weak_sectors_are_written_elsewhere_soon() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        (0..10).for_each(|run| world.write(run * 60, 60));
        world.flush();
        let kind = FaultKind::HighEcc;
        (0..8).for_each(|chunk| {
            world.host.device_mut().inner_mut().schedule_fault(fault(kind, chunk, None, 3))
        });
        world.read_all(false);
        assert!(world.settle());
        let stats = world.pblk().stats().clone();
        assert!(stats.read_high_ecc > 0, "{mode}: {stats:?}");
        assert!(stats.gc_written >= stats.read_high_ecc.min(3), "{mode}: they were not refreshed: {stats:?}");
        world.flush();
        world.read_all(false);
        world.check();
    }
}

/// Chunks of a line that fail a reset for different reasons: one goes OFFLINE, the others were FREE already. The drive tells
/// one status for all.
#[test]
fn a_chunk_that_goes_offline_is_bad_and_those_that_were_free_beside_it_are_not() {
    for (mode, unit) in [(Mode::Improved, 0), (Mode::Improved, 3), (Mode::Faithful, 2)] {
        let label = format!("{mode}, unit {unit}");
        let mut world = World::bare(config(geometry()), options(mode), &label);
        let offline = [5, 9, 14].map(|line| unit * 24 + line);
        let (mut commands, count) = (Vec::new(), world.host.device().geometry().ws_opt);
        let buffer = Some(world.host.buffers_mut().take(count));
        for (chunk, sector) in offline.iter().flat_map(|&chunk| (0..64).step_by(4).map(move |at| (chunk, at)))
        {
            let addresses = Addresses::Run { first: Ppa::new(ChunkId(chunk), sector), count };
            let op = Op::Write { fua: false };
            commands.push(Command {
                tag: Tag(0),
                op,
                addresses,
                buffer,
                buffer_first: 0,
                oob: false,
                plane_mode: PlaneMode::Single,
            });
        }
        world.raw(&commands);
        for chunk in offline {
            world.host.device_mut().inner_mut().schedule_fault(fault(
                FaultKind::ResetFailure,
                chunk,
                None,
                1,
            ));
        }
        world.make();
        let mut prng = Prng::new(4);
        for _ in 0..3 {
            assert!(world.run(&Mix { reads: 5, discards: 0, ..MIX }, &mut prng), "{label}");
        }
        world.flush();
        world.check();
        world.read_all(false);
        let is_offline =
            |chunk: &u32| world.host.device().chunk(ChunkId(*chunk)).state == ChunkState::Offline;
        let found: Vec<u32> = (0..96).filter(is_offline).collect();
        assert_eq!(found, offline, "{label}: every line was used");
        let stats = world.pblk().stats();
        assert_eq!((stats.reset_failed, stats.write_failed), (3, 0), "{label}");
        world.survive_cut(&mut prng);
    }
}

/// All faults at random, with power cuts.
#[test]
fn random_faults_and_cuts_lose_nothing_but_what_the_media_lost() {
    for seed in 0..16 {
        let mode = if seed % 4 == 3 { Mode::Faithful } else { Mode::Improved };
        let mut drive = large(48);
        drive.seed = seed;
        drive.faults.write_next_unit = 6_000_000;
        drive.faults.early_close = 3_000_000;
        drive.faults.reset_failure = 3_000_000;
        drive.faults.high_ecc = 2_000_000;
        let options = Options { over_provisioning_percent: 60, ..options(mode) };
        let mut world = World::new(drive, options, &format!("{mode}, seed {seed}"));
        world.may_give_up = true;
        let mut prng = Prng::new(seed);
        let mix = Mix { requests: 700, discards: 0, ..MIX };
        for _ in 0..4 {
            world.cut_at = Some(world.commands + 100 + prng.below(900));
            world.run(&mix, &mut prng);
            world.cut_at = None;
            world.survive_cut(&mut prng);
        }
        let sound = |status: &Status| matches!(*status, Status::WRITE_TO_READ_ONLY | Status::WRITE_FAULT);
        assert!(world.failures.iter().all(sound), "seed {seed}: {:?}", world.failures);
    }
}

/// Sectors that cannot be read, without cuts: a block is right, or lost, and never stale.
#[test]
fn random_unreadable_sectors_never_give_stale_data() {
    for seed in 0..12 {
        let mode = if seed % 4 == 3 { Mode::Faithful } else { Mode::Improved };
        let mut drive = config(geometry());
        drive.seed = seed;
        drive.faults.unrecovered_read = 4_000_000;
        drive.faults.high_ecc = 4_000_000;
        let mut world = World::new(drive, options(mode), &format!("{mode}, seed {seed}"));
        world.media_fail = true;
        let mut prng = Prng::new(seed);
        for _ in 0..3 {
            assert!(world.run(&Mix { requests: 900, discards: 2, ..MIX }, &mut prng));
            world.read_all(false);
            world.check();
        }
        world.flush();
        world.shut_down(&mut prng);
        let is_clean = world.mount().clean;
        if mode == Mode::Faithful && !is_clean {
            // The media lost the only checkpoint, and with it what was discarded, as a power cut would.
            continue;
        }
        let lost = world.read_all(true);
        assert!(lost.len() < 300, "seed {seed}: {} blocks lost", lost.len());
        world.check();
    }
}

#[test]
fn chunks_that_die_one_by_one_make_the_instance_read_only_and_no_more() {
    for (mode, cut) in [(Mode::Improved, false), (Mode::Faithful, false), (Mode::Improved, true)] {
        for seed in 0..4 {
            let mut drive = config(geometry());
            drive.seed = seed;
            drive.faults.reset_failure = 150_000_000;
            let mut world = World::new(drive, options(mode), &format!("{mode}, seed {seed}, cut {cut}"));
            world.may_give_up = true;
            let mut prng = Prng::new(seed);
            let mix = Mix { requests: 400, reads: 5, discards: 0, ..MIX };
            for round in 0.. {
                assert!(round < 60, "{}: it is never read-only", world.label);
                if cut {
                    world.cut_at = Some(world.commands + prng.below(700));
                }
                if !world.run(&mix, &mut prng) {
                    world.cut_at = None;
                    world.cut(&mut prng);
                    world.mount();
                    world.read_all(true);
                }
                world.cut_at = None;
                world.check();
                if world.pblk().is_read_only() {
                    break;
                }
            }
            refuses_writes_only(&mut world, &mut prng);
        }
    }
}

fn refuses_writes_only(world: &mut World, prng: &mut Prng) {
    world.failures.clear();
    world.write(0, 1);
    assert!(world.send(BlockOp::Discard, 3, 1) && world.drain());
    assert_eq!(world.failures, [Status::WRITE_TO_READ_ONLY; 2], "{}", world.label);
    world.failures.clear();
    world.read_all(false);
    world.flush();
    assert!(world.failures.is_empty(), "{}: {:?}", world.label, world.failures);
    world.shut_down(prng);
    world.mount();
    world.read_all(true);
    let bad = (0..world.host.device().geometry().chunk_count())
        .filter(|&chunk| world.host.device().chunk(ChunkId(chunk)).state == ChunkState::Offline)
        .count();
    assert!(bad > 0, "{}: no chunk died", world.label);
    assert!(world.pblk().block_count() > 0, "{}", world.label);
}

/// Every line that was emptied is lost, until none is left to write to. The reads never end.
#[test]
fn writes_that_can_never_succeed_are_refused_while_reads_go_on() {
    for mode in MODES {
        let (mut drive, seed) = (config(geometry()), 6);
        drive.faults.reset_failure = 1_000_000_000;
        let mut world = World::new(drive, options(mode), &format!("{mode}, seed {seed}"));
        (world.media_fail, world.may_give_up) = (true, true);
        let (blocks, mut prng) = (world.blocks(), Prng::new(seed));
        (0..blocks / 8).for_each(|part| world.write(part * 8, 8));
        world.flush();
        world.answered.clear();
        // Four reads of the first 64 blocks and four writes of the others are under way at all times.
        let (mut reading, mut writing, mut reads) = (0, 0, 0);
        while world.failures.is_empty() {
            for answer in world.answered.drain(..) {
                *(if answer.request.op == BlockOp::Read { &mut reading } else { &mut writing }) -= 1;
            }
            while reading < 4 {
                assert!(world.send(BlockOp::Read, prng.below(64), 1));
                (reading, reads) = (reading + 1, reads + 1);
            }
            while writing < 4 {
                assert!(world.send(BlockOp::Write { fua: false }, 64 + prng.below(blocks - 72), 8));
                writing += 1;
            }
            // The faithful limiter has a timer of five seconds: some 280 000 reads.
            assert!(reads < 380_000, "{}: {}", world.label, world.pblk().summary());
            world.step();
        }
        assert_eq!(world.failures[0], Status::WRITE_TO_READ_ONLY, "{}", world.label);
        assert!(world.pblk().is_read_only() && world.drain(), "{}", world.label);
        world.check();
    }
}

/// What fails once is asked for again: by users, by garbage collection, and at mount.
#[test]
fn a_read_that_fails_for_a_while_loses_nothing() {
    let transient = |times| (FaultKind::TransientRead, times);
    let failed = |status| (FaultKind::Failed(FailedOp::Read, status), 1);
    for mode in [Mode::Improved, Mode::Faithful] {
        for (kind, times) in
            [transient(2), failed(Status::TRANSIENT_TRANSPORT_ERROR), failed(Status::NAMESPACE_NOT_READY)]
        {
            let mut world = World::new(config(geometry()), options(mode), &format!("{mode}, {kind:?}"));
            let mut prng = Prng::new(7);
            assert!(world.run(&Mix { requests: 600, discards: 0, ..MIX }, &mut prng));
            world.flush();
            let schedule = |world: &mut World| {
                world.host.device_mut().inner_mut().stop_faults();
                // A command that fails whole fails once for each of its chunks, and is tried three times.
                let is_whole = matches!(kind, FaultKind::Failed(..));
                let chunks = if is_whole { 2 } else { geometry().chunk_count() };
                for chunk in (0..chunks).map(ChunkId) {
                    world.host.device_mut().inner_mut().schedule_fault(ScheduledFault {
                        kind,
                        chunk,
                        sector: None,
                        times,
                    });
                }
            };
            schedule(&mut world);
            world.read_all(false);
            assert!(world.pblk().stats().read_again > 0, "{mode}, {kind:?}: nothing was read again");
            schedule(&mut world);
            world.pblk_mut().force_gc();
            assert!(world.run(&Mix { requests: 600, discards: 0, ..MIX }, &mut prng));
            assert_eq!(world.pblk().stats().read_failed_gc, 0, "{mode}, {kind:?}");
            schedule(&mut world);
            world.survive_cut(&mut prng);
        }
    }
}

/// What the drive does not carry out is sent again: no chunk is to blame, and nobody hears of it.
#[test]
fn a_change_that_was_not_done_is_sent_again_and_costs_no_chunk() {
    for mode in [Mode::Improved, Mode::Faithful] {
        for op in [FailedOp::Write, FailedOp::Reset, FailedOp::Flush] {
            for &status in op.statuses() {
                let mut world =
                    World::new(config(geometry()), options(mode), &format!("{mode}, {op:?}, {status}"));
                // More of them would be more failures of one command than a target bears: a flush names no chunk, and a reset
                // one of each unit.
                let chunks = match op {
                    FailedOp::Flush => 1,
                    FailedOp::Reset => geometry().chunks_per_pu,
                    FailedOp::Read | FailedOp::Write => geometry().chunk_count(),
                };
                for chunk in 0..chunks {
                    let failed = fault(FaultKind::Failed(op, status), chunk, None, SENDS_MAX - 1);
                    world.host.device_mut().inner_mut().schedule_fault(failed);
                }
                let mut prng = Prng::new(11);
                assert!(world.run(&Mix { requests: 1200, discards: 0, ..MIX }, &mut prng), "{}", world.label);
                world.flush();
                world.read_all(false);
                let (stats, label) = (world.pblk().stats(), &world.label);
                assert_eq!((stats.write_failed, stats.reset_failed), (0, 0), "{label}: a chunk was blamed");
                assert!(!world.pblk().is_read_only(), "{label}");
                let counters = world.pblk().counters();
                let again =
                    counters.iter().find(|counter| counter.name == "sent_again").expect("it is counted");
                assert_ne!(again.value, CounterValue::Count(0), "{label}: nothing was sent again");
                world.survive_cut(&mut prng);
            }
        }
    }
}

/// A drive that carries out no try of a write does not work: changes end with that word, and everything flushed is there.
#[test]
fn a_change_that_is_never_done_ends_all_changes() {
    for (status, told) in [
        (Status::ABORT_REQUESTED, Status::INTERNAL_ERROR),
        (Status::INTERNAL_ERROR, Status::INTERNAL_ERROR),
        (Status::CAPACITY_EXCEEDED, Status::CAPACITY_EXCEEDED),
    ] {
        let mut world =
            World::new(config(geometry()), options(Mode::Improved), &format!("for good, {status}"));
        world.write(0, 16);
        world.flush();
        (world.media_fail, world.may_give_up) = (true, true);
        for chunk in 0..geometry().chunk_count() {
            let failed = fault(FaultKind::Failed(FailedOp::Write, status), chunk, None, 1000);
            world.host.device_mut().inner_mut().schedule_fault(failed);
        }
        world.write(16, 64);
        world.flush();
        assert_eq!(world.failures.first(), Some(&told), "{}", world.label);
        assert!(world.pblk().is_read_only(), "{}", world.label);
        world.host.device_mut().inner_mut().stop_faults();
        world.survive_cut(&mut Prng::new(3));
    }
}

/// A sector that fails in every try is told of, and is there when it can be read.
#[test]
fn a_read_is_given_up_after_its_tries_and_nothing_is_forgotten() {
    let mut world = World::new(config(geometry()), options(Mode::Improved), "given up");
    world.media_fail = true;
    for block in (0..200).step_by(20) {
        world.write(block, 20);
    }
    world.shut_down(&mut Prng::new(1));
    world.mount();
    for chunk in 0..geometry().chunk_count() {
        world.host.device_mut().inner_mut().schedule_fault(fault(
            FaultKind::TransientRead,
            chunk,
            Some(6),
            4,
        ));
    }
    // Each is read with its neighbours, and then alone.
    let lost = world.read_all(false);
    assert!(lost.is_empty(), "the fourth try fails, the fifth does not: {lost:?}");
    assert!(world.pblk().stats().read_failed > 0);
    for chunk in 0..geometry().chunk_count() {
        world.host.device_mut().inner_mut().schedule_fault(fault(
            FaultKind::TransientRead,
            chunk,
            Some(9),
            6,
        ));
    }
    assert!(!world.read_all(false).is_empty(), "six tries fail");
    assert!(world.read_all(false).is_empty(), "the seventh does not");
}
