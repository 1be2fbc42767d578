//! What pblk was known to do wrong (each by its issue or its description), shown not to happen here.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::Clock;
use ocssd_flash::{Config, FaultKind, ScheduledFault};
use ocssd_ftl::Classification;
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{ChunkId, Geometry, Status};
use ocssd_targets::pblk::{Mode, Options};

const MODES: [Mode; 2] = [Mode::Improved, Mode::Faithful];

fn filled(config: Config, options: Options, label: &str, rounds: u32) -> (World, Prng) {
    let mut world = World::new(config, options, label);
    let mut prng = Prng::new(21);
    assert!(world.run(&Mix { requests: 800 * rounds, discards: 0, ..MIX }, &mut prng));
    (world, prng)
}

/// Issue 32: one CPU, and writer, workers and users all spinning on it.
#[test]
fn nobody_spins_while_waiting() {
    for mode in MODES {
        let (mut world, mut prng) = filled(config(geometry()), options(mode), &format!("{mode}"), 3);
        let (turns, commands) = (world.turns, world.commands);
        let requests = 1500;
        assert!(world.run(&Mix { requests, discards: 0, ..MIX }, &mut prng));
        let (turns, commands) = (world.turns - turns, world.commands - commands);
        // Each time is visited for a completion, a timer or a request, and left after one turn that found nothing.
        assert!(
            turns < 8 * (commands + u64::from(requests)),
            "{mode}: {turns} turns for {commands} commands"
        );
        world.settle();
        let idle = world.commands;
        world.wait(Nanos::from_secs(60));
        world.settle();
        assert_eq!(world.commands, idle, "{mode}: something went on while nobody asked for it");
    }
}

/// Issues 28 and 58: unmount never returned.
#[test]
fn a_shutdown_under_load_answers_everything_and_ends() {
    for mode in MODES {
        let (mut world, mut prng) = filled(config(geometry()), options(mode), &format!("{mode}"), 2);
        for block in 0..8 {
            world.send(BlockOp::Write { fua: block % 2 == 0 }, block * 20, 12);
        }
        world.send(BlockOp::Flush, 0, 0);
        world.send(BlockOp::Shutdown, 0, 0);
        assert!(world.drain());
        assert!(world.failures.is_empty(), "{mode}: {:?}", world.failures);
        world.send(BlockOp::Read, 0, 1);
        assert!(world.drain());
        assert_eq!(world.failures, [Status::NAMESPACE_NOT_READY], "{mode}: nothing is done after it");
        world.cut(&mut prng);
        assert!(world.mount().clean);
        world.read_all(true);
    }
}

/// Issue 41: users wait for garbage collection, which finds nothing to collect.
#[test]
fn users_go_on_when_there_is_nothing_to_collect() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        let blocks = world.blocks();
        for round in 0..3 {
            let mut block = 0;
            while block < blocks {
                let count = u32::try_from((blocks - block).min(64)).expect("small");
                world.write(block, count);
                block += u64::from(count);
            }
            assert!(world.failures.is_empty(), "{mode}, round {round}");
        }
        world.read_all(false);
        world.check();
        assert_eq!(world.pblk().stats().gave_up, 0);
    }
}

/// Issue 53: ten lines, and none free when one was needed.
#[test]
fn ten_lines_are_written_over_and_over() {
    let drive = config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 10, 256, 4) });
    let options = Options {
        over_provisioning_percent: 80,
        classification: Some(Classification::None),
        ..options(Mode::Improved)
    };
    let (mut world, _) = filled(drive, options, "ten lines", 3);
    world.read_all(false);
    world.check();
    assert!(world.pblk().stats().lines_reset > 10, "{:?}", world.pblk().stats());
}

/// Issue 64: references to lines that were never given back.
#[test]
fn nothing_is_held_once_everything_was_answered() {
    for mode in MODES {
        let (mut world, _) = filled(config(geometry()), options(mode), &format!("{mode}"), 3);
        // What garbage collection moved may wait for company, its original still in place.
        world.settle();
        world.send(BlockOp::Shutdown, 0, 0);
        assert!(world.drain());
        // The last checkpoint may have freed a line of the one before, which is reset after the answer.
        world.settle();
        let summary = world.pblk().summary();
        assert!(summary.contains("reads, writes, requests: [0, 0, 0], commands: 0,"), "{summary}");
        assert!(summary.contains("unwritten: 0,"), "{mode}: buffer units are held: {summary}");
        let lines = summary.lines().filter(|line| line.starts_with("line "));
        assert!(lines.clone().count() > 10, "{summary}");
        lines.for_each(|line| assert!(line.contains("readers: 0,"), "{mode}: {line}"));
        world.check();
    }
}

/// Reads across the border between buffer, media and holes gave other blocks' data.
#[test]
fn a_read_across_buffer_media_and_holes_gives_each_its_own() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        for block in (0..900).step_by(3) {
            world.write(block, 2);
        }
        for (block, op) in [(300, BlockOp::Discard), (303, BlockOp::WriteZeroes), (309, BlockOp::Discard)] {
            world.send(op, block, 1);
        }
        assert!(world.drain());
        for block in (0..900).step_by(7) {
            world.write(block, 1);
        }
        for block in 0..840 {
            assert!(world.read_and_judge(block, 60, false), "{mode}: blocks from {block}");
        }
        let stats = world.pblk().stats();
        assert!(stats.read_cached > 0 && stats.read_empty > 0 && stats.user_read > stats.read_cached * 2);
    }
}

/// A sector moved by garbage collection took the place of one written meanwhile.
#[test]
fn writes_while_garbage_is_collected_win() {
    for mode in MODES {
        let (mut world, mut prng) = filled(config(geometry()), options(mode), &format!("{mode}"), 2);
        for _ in 0..40 {
            world.pblk_mut().force_gc();
            let mix = Mix { requests: 25, reads: 20, span: 300, depth: 12, discards: 0, ..MIX };
            assert!(world.run(&mix, &mut prng));
        }
        world.read_all(false);
        world.check();
        world.flush();
        world.cut(&mut prng);
        world.mount();
        world.read_all(true);
    }
}

/// Discards were forgotten at a power cut. Improved mode keeps them; faithful mode may not, and gives old data then.
#[test]
fn discards_survive_a_power_cut_in_improved_mode() {
    let mut world = World::new(config(geometry()), options(Mode::Improved), "improved");
    for round in 0..6 {
        (0..8).for_each(|run| world.write(run * 50, 50));
        world.flush();
        world.send(BlockOp::Discard, 10 + round, 200);
        assert!(world.drain());
        world.flush();
        world.cut(&mut Prng::new(round));
        world.mount();
        world.read_all(true);
        if round % 2 == 0 {
            world.pblk_mut().force_checkpoint();
            world.settle();
        }
        world.check();
    }
}

/// Zeroes written are data: only discards are forgotten in faithful mode, and zeroes went the way of discards.
#[test]
fn zeroes_written_survive_a_power_cut_in_both_modes() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        (0..8).for_each(|run| world.write(run * 50, 50));
        world.flush();
        assert!(world.send(BlockOp::WriteZeroes, 10, 60));
        assert!(world.drain());
        world.flush();
        world.survive_cut(&mut Prng::new(1));
    }
}

/// The whole rest of a line was filled at shutdown.
#[test]
fn a_shutdown_fills_less_than_a_unit_per_stream() {
    for mode in MODES {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        world.write(0, 5);
        let before = world.host.device().inner().counters().sectors_written;
        world.send(BlockOp::Shutdown, 0, 0);
        assert!(world.drain());
        let written = world.host.device().inner().counters().sectors_written - before;
        // Heads, data and its fill, and a checkpoint of a few sectors; a line has 256.
        assert!(written <= 48, "{mode}: {written} sectors");
        assert!(world.pblk().stats().padded <= 4, "{mode}: {:?}", world.pblk().stats());
    }
}

/// One unit that hung held up the single writer, and so everybody.
#[test]
fn a_slow_unit_holds_up_no_other_in_improved_mode() {
    let time = |mode: Mode| {
        let mut drive = config(geometry());
        drive.faults.spike = Nanos::from_millis(500);
        let mut world = World::new(drive, options(mode), &format!("{mode}"));
        let kind = FaultKind::LatencySpike;
        let slow = ScheduledFault { kind, chunk: ChunkId(24), sector: None, times: 1 };
        world.write(0, 64);
        world.host.device_mut().inner_mut().schedule_fault(slow);
        let started = world.clock_now();
        (1..4).for_each(|run| world.write(run * 64, 64));
        world.clock_now().saturating_since(started)
    };
    let (improved, faithful) = (time(Mode::Improved), time(Mode::Faithful));
    assert!(improved < Nanos::from_millis(250), "{improved}");
    assert!(improved < faithful, "improved {improved}, faithful {faithful}");
}

/// Within the bound no line is moved for its wear: the free line reset least is taken first.
#[test]
fn resets_are_spread_over_lines() {
    let (world, _) = filled(config(geometry()), options(Mode::Improved), "wear", 12);
    let flash = world.host.device().inner();
    let cycles: Vec<u32> = (0..24).map(|chunk| flash.cycles(ChunkId(chunk))).collect();
    let (least, most) = (cycles.iter().min().expect("some"), cycles.iter().max().expect("some"));
    assert!(*most > 20, "{cycles:?}");
    assert!(most - least <= 12 + most / 4, "{cycles:?}");
}

#[test]
fn users_and_collection_both_at_their_share_go_on_without_waiting_for_the_idle_timer() {
    let mut world = World::new(config(geometry()), options(Mode::Faithful), "both at their share");
    let mut prng = Prng::new(9);
    let mix = Mix { requests: 6000, depth: 12, reads: 50, flushes: 10, discards: 0, ..MIX };
    let before = world.host.clock().now();
    assert!(world.run(&mix, &mut prng));
    let took = world.host.clock().now().saturating_since(before);
    // pblk counted users as gone after five seconds without a write; a healthy run never waits for that.
    assert!(took < Nanos::from_secs(5) * 2, "6 000 requests took {took}");
}
