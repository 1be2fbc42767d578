//! Shutdowns and cuts, and mounts with other options than before.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::power::CutAfter;
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_flash::Config;
use ocssd_ftl::{Classification, VictimPolicy};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{Geometry, LbaFormat, PuId};
use ocssd_targets::pblk::{Mode, Options};

fn drive(open: u32) -> Config {
    let lba_format = LbaFormat::smallest(2, 2, 64, 64);
    config(Geometry { chunks_per_pu: 64, lba_format, max_open_chunks_per_pu: open, ..geometry() })
}

fn mixed(prng: &mut Prng) -> Options {
    let mode = if prng.below(3) == 0 { Mode::Faithful } else { Mode::Improved };
    let classes = [Classification::None, Classification::UserGc, Classification::SepBit];
    let policies = [VictimPolicy::Greedy, VictimPolicy::CostBenefit, VictimPolicy::DChoices { d: 3 }];
    let pick = |prng: &mut Prng| usize::try_from(prng.below(3)).expect("small");
    let (class, policy) = (classes[pick(prng)], policies[pick(prng)]);
    Options {
        over_provisioning_percent: 60,
        classification: (mode == Mode::Improved).then_some(class),
        victim: Some(policy),
        active_units: Some(1 + u32::try_from(prng.below(4)).expect("small")),
        writes_per_unit: Some(1 + u32::try_from(prng.below(3)).expect("small")),
        sec_per_write: [None, Some(8), Some(16)][pick(prng)].filter(|_| mode == Mode::Improved),
        checkpoint_interval_bytes: [None, Some(0), Some(100 * 4096)][pick(prng)],
        write_buffer_bytes: [None, Some(160 * 4 * 4096)][pick(prng) / 2],
        ..options(mode)
    }
}

#[test]
fn any_options_go_on_with_what_any_others_left() {
    for (seed, open) in (0..10).map(|seed| (seed, if seed % 2 == 0 { 0 } else { 7 })) {
        let mut prng = Prng::new(seed);
        let first = mixed(&mut prng);
        let mut world = World::new(drive(open), first, &format!("seed {seed}"));
        for round in 0..8 {
            let requests = 300 + u32::try_from(prng.below(700)).expect("small");
            assert!(world.run(&Mix { requests, discards: 0, ..MIX }, &mut prng));
            world.check();
            let clean = prng.below(2) == 0;
            if clean {
                world.shut_down(&mut prng)
            } else {
                world.cut(&mut prng)
            }
            world.options = mixed(&mut prng);
            world.label = format!("seed {seed}, round {round}, clean {clean}, {:?}", world.options);
            let report = world.mount();
            assert_eq!(report.clean, clean, "{}", world.label);
            world.read_all(true);
        }
        assert!(world.failures.is_empty(), "{}: {:?}", world.label, world.failures);
    }
}

#[test]
fn a_checkpoint_is_found_whatever_the_classification() {
    let classes =
        [Classification::None, Classification::SepBit, Classification::UserGc, Classification::None];
    let spec = |class| Options {
        classification: Some(class),
        over_provisioning_percent: 60,
        ..options(Mode::Improved)
    };
    let mut world = World::new(drive(0), spec(Classification::UserGc), "checkpoints");
    let mut prng = Prng::new(2);
    for class in classes {
        assert!(world.run(&Mix { requests: 200, ..MIX }, &mut prng));
        world.shut_down(&mut prng);
        world.options = spec(class);
        let report = world.mount();
        assert!(report.clean && report.records == 0, "{class}: {report:?}");
        world.read_all(true);
    }
}

#[test]
fn options_that_do_not_fit_an_instance_say_so_and_leave_it_alone() {
    let mut world = World::new(config(geometry()), options(Mode::Improved), "small");
    world.write(0, 60);
    world.shut_down(&mut Prng::new(1));
    let sound = world.options.clone();
    let cases = [
        (
            Options { classification: Some(Classification::SepBit), ..sound.clone() },
            "classification with fewer streams",
        ),
        (Options { write_buffer_bytes: Some(4096), ..sound.clone() }, "write_buffer_bytes"),
        (Options { small_write_buffer: true, ..sound.clone() }, "mode=faithful"),
        (Options { sec_per_write: Some(7), ..sound.clone() }, "sec_per_write"),
        (Options { writes_per_unit: Some(17), ..sound }, "writes_per_unit"),
    ];
    for (options, part) in cases {
        world.options = options;
        let error = world.try_mount(CutAfter::NEVER).map(|_| ()).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    world.options = sound;
    world.units = vec![PuId(0)];
    let error = world.try_mount(CutAfter::NEVER).map(|_| ()).expect_err("one unit").to_string();
    assert!(error.contains("units it was made on"), "{error}");
    world.units = (0..4).map(PuId).collect();
    assert!(world.mount().clean);
    world.read_all(true);
}

/// Only heads on media say that there is an instance, and how large it is.
#[test]
fn an_instance_keeps_its_size_from_its_first_mount_on() {
    let spec = |percent| Options { over_provisioning_percent: percent, ..options(Mode::Improved) };
    let mut world = World::new(drive(0), spec(60), "fresh");
    let blocks = world.blocks();
    for (round, percent) in (0..).zip([80, 70, 90]) {
        world.cut(&mut Prng::new(round));
        world.options = spec(percent);
        let report = world.mount();
        assert!(!report.fresh, "round {round}");
        assert_eq!(world.blocks(), blocks, "round {round}");
        let stated = [("over_provisioning_percent".to_owned(), percent.to_string())];
        let notes = world.pblk().notes("pblk".to_owned(), &report, &stated);
        let says = format!("over_provisioning_percent={percent} changes nothing");
        assert!(
            notes.len() == 2 && notes[1].contains(&says),
            "what was asked for changes nothing: {notes:?}"
        );
    }
}

/// An instance of which two lines were written to their ends and then discarded.
fn emptied(options: Options) -> World {
    let mut world = World::new(drive(0), options, "empty");
    let line = world.pblk().capacity().layout.data_sectors() * 4;
    for block in (0..2 * line).step_by(4) {
        world.write(block.into(), 4);
    }
    world.flush();
    for block in (0..2 * line).step_by(4) {
        assert!(world.send(BlockOp::Discard, block.into(), 4));
        assert!(world.drain());
    }
    world.settle();
    assert!(world.pblk().stats().lines_reset > 0, "{}", world.pblk().summary());
    world
}

/// Without records of discards and without checkpoints, lines written to their ends and then discarded leave nothing.
#[test]
fn an_instance_that_holds_nothing_any_more_is_still_there_after_a_cut() {
    let spec = |percent| Options { over_provisioning_percent: percent, ..options(Mode::Faithful) };
    let mut world = emptied(spec(60));
    let blocks = world.blocks();
    world.cut(&mut Prng::new(1));
    world.options = spec(70);
    assert!(!world.mount().fresh);
    assert_eq!(world.blocks(), blocks);
    world.read_all(true);
}

/// The same where the line that is written has a head on one unit only: two units have one as long as there is an instance.
#[test]
fn an_instance_that_holds_nothing_any_more_outlives_any_unit() {
    let spec = |percent| Options {
        over_provisioning_percent: percent,
        active_units: Some(1),
        ..options(Mode::Faithful)
    };
    let world = emptied(spec(60));
    let blocks = world.blocks();
    for unit in 0..4 {
        let mut branch = world.branch(&format!("unit {unit} dies"));
        branch.kill_unit(PuId(unit));
        branch.cut(&mut Prng::new(1));
        branch.options = spec(70);
        assert!(!branch.mount().fresh, "{}", branch.label);
        assert_eq!(branch.blocks(), blocks, "{}", branch.label);
    }
}
