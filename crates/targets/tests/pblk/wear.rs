//! Static wear levelling: cold data moves before wear differs too far, and what is known of wear outlives mounts.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_flash::Config;
use ocssd_ftl::Classification;
use ocssd_lightnvm::Target;
use ocssd_lightnvm::block::CounterValue;
use ocssd_lightnvm::{ChunkId, ChunkState};
use ocssd_targets::pblk::{Mode, Options};

/// Writes that stay within the first few blocks.
const HOT: Mix =
    Mix { requests: 1500, depth: 6, span: 60, longest: 12, reads: 0, flushes: 0, discards: 0, fua: 0 };

/// 255 resets a chunk, so that the wear index is the count of resets.
fn drive() -> Config {
    let mut config = config(geometry());
    config.wear.endurance = 255;
    config
}

fn spread(spread: u32) -> Options {
    Options { wear_spread: Some(spread), ..options(Mode::Improved) }
}

/// Everything is written once, then few blocks over and over.
fn worn(options: Options, label: &str, rounds: u32) -> (World, Prng) {
    let (mut world, mut prng) = (World::new(drive(), options, label), Prng::new(5));
    for block in (0..world.blocks()).step_by(12) {
        let count = (world.blocks() - block).min(12);
        world.write(block, u32::try_from(count).expect("small"));
    }
    for _ in 0..rounds {
        assert!(world.run(&HOT, &mut prng), "{label}");
        world.check();
    }
    (world, prng)
}

/// Cycles of the most worn chunk, and of the least worn one that is full.
fn cycles(world: &World) -> (u32, u32) {
    let flash = world.host.device().inner();
    let most = (0..96).map(|chunk| flash.cycles(ChunkId(chunk))).max().expect("some");
    let full = (0..96).map(ChunkId).filter(|&chunk| flash.chunk(chunk).state == ChunkState::Closed);
    (most, full.map(|chunk| flash.cycles(chunk)).min().expect("some"))
}

fn gauge(world: &World, name: &str) -> u64 {
    let counters = world.pblk().counters();
    match counters.iter().find(|counter| counter.name == name).map(|counter| counter.value) {
        Some(CounterValue::Gauge(value)) => value,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn cold_lines_are_moved_whatever_the_streams_and_only_where_asked_for() {
    let classes = [Classification::None, Classification::UserGc, Classification::SepBit];
    for class in classes {
        let percent = if class == Classification::SepBit { 85 } else { 60 };
        let options =
            Options { classification: Some(class), over_provisioning_percent: percent, ..spread(4) };
        let (mut world, _) = worn(options.clone(), &format!("{class}"), 6);
        let (most, least) = cycles(&world);
        let stats = world.pblk().stats().clone();
        assert!(stats.wear_moves > 2 && stats.wear_moved > 0, "{class}: {stats:?}");
        // Twice the bound is the promise, and two resets are under way when it is passed.
        assert!(most > 12 && most - least <= 8 + 2, "{class}: {least} to {most} cycles, {stats:?}");
        world.read_all(false);
        let (world, _) = worn(Options { wear_spread: Some(0), ..options }, &format!("{class}, off"), 6);
        let (most, least) = cycles(&world);
        assert!(most - least > 12, "{class}, off: {least} to {most} cycles");
        assert_eq!(world.pblk().stats().wear_moves, 0, "{class}");
    }
    let faithful = World::new(drive(), options(Mode::Faithful), "faithful");
    assert_eq!(gauge(&faithful, "wear_spread_bound"), 0);
}

/// A checkpoint lies in a line that is full, or in two; without an interval nothing else would free it.
#[test]
fn a_line_of_a_checkpoint_is_freed_by_the_next() {
    let mut freed = 0;
    for forced in 22..34 {
        let label = format!("{forced} checkpoints");
        let options = Options { checkpoint_interval_bytes: Some(0), ..spread(4) };
        let (mut world, mut prng) = worn(options, &label, 0);
        for _ in 0..forced {
            world.pblk_mut().force_checkpoint();
            assert!(world.settle(), "{label}");
        }
        assert_eq!(world.pblk().stats().checkpoints, forced, "{label}");
        for _ in 0..2 {
            assert!(world.run(&HOT, &mut prng), "{label}");
        }
        freed += u32::from(world.pblk().stats().checkpoints > forced);
        world.check();
    }
    assert!(freed > 0, "no checkpoint lay in a line that lagged");
}

#[test]
fn resets_are_known_again_after_shutdowns_and_power_cuts() {
    for is_clean in [true, false] {
        let label = format!("clean: {is_clean}");
        let (mut world, mut prng) = worn(spread(64), &label, 4);
        // After a power cut: a step of the drive's wear index, here one reset, for the line and for the one it is compared
        // with, and a reset that was cut short.
        let doubt = if is_clean { 0 } else { 3 };
        for round in 0..12 {
            let (most, lag) = (gauge(&world, "wear_erases_most"), gauge(&world, "wear_lag"));
            let forgotten = u64::from(cycles(&world).0) - most;
            assert!(forgotten <= doubt, "{label}, round {round}: {most} resets known");
            assert!(most > 8 && lag > 8, "{label}, round {round}: {most} resets, lag {lag}");
            if is_clean {
                world.shut_down(&mut prng);
                assert!(world.mount().clean, "{label}");
                // A shutdown may reset one more line: one that waited for that.
                let known = gauge(&world, "wear_lag");
                assert!(known.abs_diff(lag) <= 1, "{label}, round {round}: {known}, {lag} before");
            } else {
                world.cut(&mut prng);
                world.mount();
            }
            let known = gauge(&world, "wear_erases_most");
            let forgotten = u64::from(cycles(&world).0) - known;
            assert!(forgotten <= doubt, "{label}, round {round}: {known} of {most} resets");
            // The most worn line is used again.
            while gauge(&world, "wear_erases_most") <= most {
                assert!(world.run(&Mix { requests: 60, ..HOT }, &mut prng));
            }
        }
    }
}

#[test]
fn levelling_is_right_under_power_cuts_and_mixed_requests() {
    for seed in 0..6 {
        let mut prng = Prng::new(seed);
        let (mut world, _) = worn(spread(4), &format!("seed {seed}"), 1);
        for _ in 0..10 {
            assert!(world.run(&Mix { requests: 300, span: 100, ..MIX }, &mut prng));
            world.cut(&mut prng);
            world.mount();
            world.read_all(true);
            world.check();
        }
        assert!(world.failures.is_empty(), "seed {seed}: {:?}", world.failures);
    }
}
