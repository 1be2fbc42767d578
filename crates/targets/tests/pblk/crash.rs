//! The power goes: at every command on tiny drives, at random ones on others, and again during recovery.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::power::CutAfter;
use super::world::{World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::Config;
use ocssd_flash::config::CacheConfig;
use ocssd_ftl::Classification;
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::block::BlockOp;
use ocssd_targets::pblk::{Mode, Options};

/// Cuts the power when `cut_at` commands were taken, mounts, and checks every block; false if the workload ended before.
fn cut_once(mode: Mode, seed: u64, mix: &Mix, cut_at: u64) -> bool {
    let mut world =
        World::new(config(geometry()), options(mode), &format!("{mode}, seed {seed}, cut {cut_at}"));
    let mut prng = Prng::new(seed);
    world.cut_at = Some(cut_at);
    let whole = world.run(mix, &mut prng);
    world.cut_at = None;
    recover(&mut world, mix, &mut prng);
    !whole
}

/// The power goes; what is there afterwards is checked, written on, and checked again.
fn recover(world: &mut World, mix: &Mix, prng: &mut Prng) {
    world.survive_cut(&mut prng.split("cut"));
    assert!(world.run(&Mix { requests: 30, ..*mix }, prng), "{}", world.label);
    world.read_all(false);
    world.check();
}

/// Runs a mix and cuts the power at every command of it from `from` on; every so often again, at every command of the
/// mount that follows. Returns how many cuts there were.
fn cut_everywhere(config: Config, options: Options, mix: &Mix, from: u64, again: u64) -> (u64, u64) {
    let seed = 5;
    let label = format!("{}, seed {seed}", options.mode);
    let mut world = World::new(config, options, &label);
    let mut prng = Prng::new(seed);
    let (mut cuts, mut double) = (0, 0);
    let small = Mix { requests: 12, ..*mix };
    world.run_with(mix, &mut prng, |world| {
        if world.commands < from {
            return;
        }
        cuts += 1;
        let mut branch = world.branch(&format!("{label}, cut {}", world.commands));
        recover(&mut branch, &small, &mut Prng::new(world.commands));
        if world.commands % again == 0 {
            double += cut_mount(world, &label);
        }
    });
    (cuts, double)
}

/// Cuts the power, and again at every command of the mount.
fn cut_mount(world: &World, label: &str) -> u64 {
    let mut prng = Prng::new(world.commands);
    let mut first = world.branch(label);
    first.cut(&mut prng);
    for at in 0.. {
        let label = format!("{label}, cut {}, again after {at} commands of the mount", world.commands);
        let mut second = first.branch(&label);
        let cut = CutAfter { commands: Some(at), later: Nanos(prng.below(1_500_000)) };
        if second.try_mount(cut).is_ok() {
            return at;
        }
        second.cut(&mut prng);
        second.mount();
        second.read_all(true);
        second.check();
    }
    unreachable!("a mount has an end")
}

/// A drive so small that everything happens within a few hundred commands.
fn tiny(units: u32, lines: u32) -> Config {
    config(Geometry { mw_cunits: 8, ..Geometry::example(1, units, lines, 32, 4) })
}

fn improved() -> Options {
    Options { over_provisioning_percent: 60, write_buffer_bytes: Some(36 * 4 * 4096), ..Options::default() }
}

#[test]
fn nothing_promised_is_lost_at_any_command() {
    let mix = Mix { requests: 120, flushes: 10, ..MIX };
    let (cuts, double) = cut_everywhere(config(geometry()), options(Mode::Improved), &mix, 0, 29);
    assert!(cuts > 100 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_at_any_command_while_garbage_is_collected() {
    let mix = Mix { requests: 270, flushes: 10, discards: 3, reads: 5, ..MIX };
    let (cuts, double) = cut_everywhere(tiny(2, 28), improved(), &mix, 500, 61);
    assert!(cuts > 100 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_at_any_command_with_a_volatile_cache() {
    let mut drive = tiny(2, 28);
    drive.cache = CacheConfig { sectors: 64, power_loss_protection: false };
    let mix = Mix { requests: 300, flushes: 10, reads: 5, ..MIX };
    let (cuts, double) = cut_everywhere(drive, improved(), &mix, 480, 61);
    assert!(cuts > 80 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_at_any_command_of_checkpoints() {
    let options = Options { checkpoint_interval_bytes: Some(4 * 4096), ..improved() };
    let mix = Mix { requests: 90, flushes: 10, reads: 5, discards: 15, ..MIX };
    let (cuts, double) = cut_everywhere(tiny(2, 28), options, &mix, 30, 61);
    assert!(cuts > 100 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_at_any_command_with_sepbit() {
    let options = Options {
        classification: Some(Classification::SepBit),
        over_provisioning_percent: 75,
        write_buffer_bytes: None,
        ..improved()
    };
    let mix = Mix { requests: 330, flushes: 10, discards: 3, reads: 5, ..MIX };
    let (cuts, double) = cut_everywhere(tiny(2, 60), options, &mix, 500, 61);
    assert!(cuts > 80 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_at_any_command_with_many_discards() {
    let mix = Mix { requests: 250, flushes: 8, reads: 2, discards: 50, ..MIX };
    let (cuts, double) = cut_everywhere(tiny(2, 28), improved(), &mix, 60, 61);
    assert!(cuts > 80 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_at_any_command_in_faithful_mode() {
    let options = Options { mode: Mode::Faithful, over_provisioning_percent: 60, ..Options::default() };
    let mix = Mix { requests: 190, flushes: 10, discards: 0, reads: 5, ..MIX };
    let (cuts, double) = cut_everywhere(tiny(2, 28), options, &mix, 200, 61);
    assert!(cuts > 80 && double > 20, "only {cuts} and {double} cuts");
}

#[test]
fn nothing_promised_is_lost_on_an_aged_drive_at_random_commands() {
    for seed in 0..24 {
        let mode = if seed % 3 == 2 { Mode::Faithful } else { Mode::Improved };
        // pblk forgot discards: what was discarded may come back.
        let discards = if mode == Mode::Faithful { 0 } else { 6 };
        let mix = Mix { requests: 2500, discards, ..MIX };
        let mut prng = Prng::new(seed + 1000);
        cut_once(mode, seed, &mix, 800 + prng.below(2500));
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
