//! The power goes: at every command on tiny drives, at random ones on others, and again during recovery.

use super::basic::{MIX, geometry, options};
use super::power::CutAfter;
use super::world::{Mix, World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::pblk::Mode;

/// Cuts the power when `cut_at` commands were taken, mounts, and checks every block; false if the workload ended before.
fn cut_once(mode: Mode, seed: u64, mix: &Mix, cut_at: u64) -> bool {
    let mut world =
        World::new(config(geometry()), options(mode), &format!("{mode}, seed {seed}, cut {cut_at}"));
    let mut prng = Prng::new(seed);
    world.cut_at = Some(cut_at);
    let whole = world.run(mix, &mut prng);
    world.cut_at = None;
    world.cut(&mut prng.split("cut"));
    world.mount();
    world.read_all(true);
    world.check();
    assert!(world.run(&Mix { requests: 60, ..*mix }, &mut prng), "{}", world.label);
    world.read_all(false);
    world.check();
    !whole
}

#[test]
fn nothing_promised_is_lost_at_any_command() {
    let mix = Mix { requests: 150, flushes: 10, ..MIX };
    let mut cuts = 0;
    while cut_once(Mode::Improved, 7, &mix, cuts) {
        cuts += 1;
    }
    assert!(cuts > 200, "only {cuts} commands");
}

#[test]
fn nothing_promised_is_lost_on_an_aged_drive_at_random_commands() {
    for seed in 0..30 {
        let mode = if seed % 3 == 2 { Mode::Faithful } else { Mode::Improved };
        // pblk forgot discards: what was discarded may come back.
        let discards = if mode == Mode::Faithful { 0 } else { 6 };
        let mix = Mix { requests: 3000, discards, ..MIX };
        let mut prng = Prng::new(seed + 1000);
        cut_once(mode, seed, &mix, 800 + prng.below(2500));
    }
}

#[test]
fn a_cut_during_recovery_and_again_changes_nothing() {
    for seed in 0..20 {
        let label = format!("seed {seed}");
        let mut world = World::new(config(geometry()), options(Mode::Improved), &label);
        let mut prng = Prng::new(seed);
        world.cut_at = Some(600 + prng.below(1500));
        world.run(&Mix { requests: 1500, ..MIX }, &mut prng);
        world.cut_at = None;
        world.cut(&mut prng);
        for _ in 0..4 {
            let cut = CutAfter { commands: Some(prng.below(60)), later: Nanos(prng.below(2_000_000)) };
            if world.try_mount(cut).is_ok() {
                break;
            }
            world.cut(&mut prng);
        }
        world.mount();
        world.read_all(true);
        world.check();
        assert!(world.run(&Mix { requests: 200, ..MIX }, &mut prng));
        world.read_all(false);
    }
}

#[test]
fn a_shutdown_makes_the_next_mount_clean() {
    for mode in [Mode::Improved, Mode::Faithful] {
        let mut world = World::new(config(geometry()), options(mode), &format!("{mode}"));
        let mut prng = Prng::new(5);
        for round in 0..5 {
            assert!(world.run(&Mix { requests: 800, ..MIX }, &mut prng));
            assert!(world.send(BlockOp::Shutdown, 0, 0));
            assert!(world.drain());
            let written = world.pblk().stats().meta_written;
            world.cut(&mut prng);
            let report = world.mount();
            assert!(report.clean, "{mode}, round {round}: {report:?}");
            assert_eq!(report.records, 0);
            assert!(written > 0);
            world.read_all(true);
            world.check();
        }
    }
}
