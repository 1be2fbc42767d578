//! Drives and options of every kind: each is filled, overwritten, shut down, cut and mounted again.

use super::basic::{MIX, geometry, options};
use super::mix::Mix;
use super::power::CutAfter;
use super::world::{World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::Clock;
use ocssd_flash::Config;
use ocssd_ftl::{Classification, VictimPolicy};
use ocssd_lightnvm::{Capabilities, ChunkId, Device, Geometry, Payload, PuId};
use ocssd_targets::pblk::{Mode, MountError, MountReport, Options};

/// Writes a drive several times over, shuts it down, cuts its power, and reads everything each time.
fn exercise(config: &Config, options: &Options, units: Option<&[u32]>, label: &str) {
    let all = (0..config.geometry.pu_count()).collect::<Vec<_>>();
    let units: Vec<PuId> = units.unwrap_or(&all).iter().map(|&unit| PuId(unit)).collect();
    let seed = 77;
    let options = &fitting(config, options, &units);
    let label = format!("{label}, {}, seed {seed}", options.mode);
    let mut world = World::on(config.clone(), units, options.clone(), &label);
    let mut prng = Prng::new(seed);
    let discards = if options.mode == Mode::Faithful { 0 } else { 4 };
    let rounds = world.blocks() * 4 / 700 + 1;
    let mix = Mix { requests: 120 * u32::try_from(rounds).expect("few"), discards, ..MIX };
    assert!(world.run(&mix, &mut prng), "{label}");
    world.read_all(false);
    world.check();
    world.shut_down(&mut prng);
    let report = world.mount();
    assert!(report.clean, "{label}: {report:?}");
    world.read_all(true);
    world.cut_at = Some(world.commands + 300 + prng.below(300));
    world.run(&mix, &mut prng);
    world.cut_at = None;
    world.survive_cut(&mut prng);
    assert!(world.run(&Mix { requests: 60, ..mix }, &mut prng), "{label}");
    world.read_all(false);
    assert!(world.failures.is_empty(), "{label}: {:?}", world.failures);
    assert_eq!(world.pblk().stats().gave_up, 0, "{label}");
}

/// The options with the least over-provisioning that fits, in steps.
fn fitting(config: &Config, options: &Options, units: &[PuId]) -> Options {
    let mut options = options.clone();
    while let Err(error) = World::try_on(config.clone(), units.to_vec(), options.clone()) {
        options.over_provisioning_percent += 5;
        assert!(options.over_provisioning_percent <= 90, "nothing fits: {error}");
    }
    options
}

fn both(config: &Config, label: &str, change: impl Fn(&mut Options)) {
    for mode in [Mode::Improved, Mode::Faithful] {
        let mut options = options(mode);
        change(&mut options);
        exercise(config, &options, None, label);
    }
}

#[test]
fn units_of_24_sectors_are_written_whatever_the_least_write() {
    for ws_min in [4, 24] {
        let geometry = Geometry { ws_min, mw_cunits: 24, ..Geometry::example(1, 3, 24, 96, 24) };
        both(&config(geometry), &format!("ws_min {ws_min}"), |_| {});
    }
}

#[test]
fn any_read_window_is_honoured() {
    for mw_cunits in [0, 4, 8, 20, 60] {
        let geometry = Geometry { mw_cunits, ..Geometry::example(2, 1, 24, 64, 4) };
        both(&config(geometry), &format!("mw_cunits {mw_cunits}"), |_| {});
    }
}

#[test]
fn a_write_may_take_several_units_whatever_is_left_of_a_chunk() {
    for (sectors_per_chunk, sec_per_write) in [(64, 8), (64, 16), (64, 12), (32, 24), (256, 64), (256, 36)] {
        let geometry = Geometry { mw_cunits: 12, ..Geometry::example(1, 3, 40, sectors_per_chunk, 4) };
        let options = Options { sec_per_write: Some(sec_per_write), ..options(Mode::Improved) };
        let label = format!("{sec_per_write} sectors a write, chunks of {sectors_per_chunk}");
        exercise(&config(geometry), &options, None, &label);
    }
}

/// Written short, a buffer unit waits as long as any other for what makes it readable: once, all places held such, and nothing
/// went on.
#[test]
fn a_flush_fills_up_a_unit_and_a_buffer_unit_once_places_are_few() {
    let geometry = Geometry { mw_cunits: 24, ..Geometry::example(1, 2, 40, 64, 4) };
    let label = "16 sectors a write, flush after flush";
    let few = Options { sec_per_write: Some(16), ..options(Mode::Improved) };
    let mut world = World::new(config(geometry), few, label);
    let padded = |world: &World| world.pblk().stats().padded;
    let mut fills = Vec::new();
    for round in 0..600 {
        let before = padded(&world);
        world.write(round % 200, 1);
        world.flush();
        fills.push(padded(&world) - before);
    }
    assert_eq!(world.pblk().stats().gave_up, 0, "{label}");
    let count = |fill: u64| fills.iter().filter(|&&found| found == fill).count();
    assert_eq!(fills[0], 3, "{label}: there is room, so one unit is filled");
    assert!(count(3) > 100 && count(15) > 50, "{label}: {} units and {} buffer units", count(3), count(15));
    assert_eq!(count(3) + count(15), fills.len(), "{label}: nothing else is filled");
    world.read_all(false);
    world.check();
    let mut prng = Prng::new(3);
    world.survive_cut(&mut prng);
    world.read_all(false);
}

/// Each chunk takes two sectors and twice four, where full buffer units leave two to fill. As it is all valid, only wear moves it.
#[test]
fn a_line_of_short_buffer_units_holds_more_than_one_of_full_buffer_units_and_is_moved() {
    let geometry = Geometry { ws_min: 2, mw_cunits: 0, ..Geometry::example(1, 2, 60, 12, 2) };
    let (sec_per_write, wear_spread) = (Some(4), Some(4));
    let spec =
        Options { sec_per_write, wear_spread, over_provisioning_percent: 70, ..options(Mode::Improved) };
    let mut world = World::new(config(geometry), spec, "short buffer units");
    for (block, count) in [(0, 2), (2, 2), (4, 4), (8, 4), (12, 4), (16, 4)] {
        world.write(block, count);
        world.flush();
        assert!(world.settle(), "the power stays");
    }
    assert_eq!(world.pblk().stats().padded, 0, "every buffer unit is whole units");
    let rounds = (0..4000).take_while(|round| {
        world.write(20 + round * 4 % 160, 4);
        world.pblk().stats().wear_moved == 0
    });
    assert!(rounds.count() < 4000, "nothing was moved for its wear");
    assert!(world.settle(), "the power stays");
    world.read_all(false);
    world.check();
}

#[test]
fn a_write_takes_whole_units_and_no_more_than_one_command() {
    let config = config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 40, 256, 4) });
    for (mode, sec_per_write, says) in [
        (Mode::Improved, 0, "multiple"),
        (Mode::Improved, 6, "multiple"),
        (Mode::Improved, 68, "at most 64"),
        (Mode::Improved, 128, "at most 64"),
        (Mode::Faithful, 4, "mode=faithful"),
    ] {
        let error = refusal(&config, &Options { sec_per_write: Some(sec_per_write), ..options(mode) });
        assert!(error.contains("sec_per_write") && error.contains(says), "{sec_per_write}: {error}");
    }
    let short = self::config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 400, 32, 4) });
    let error = refusal(&short, &Options { sec_per_write: Some(32), ..options(Mode::Improved) });
    assert!(error.contains("chunks of at least"), "{error}");
}

#[test]
fn one_unit_is_enough_and_fifteen_are_not_too_many() {
    both(&config(Geometry { mw_cunits: 8, ..Geometry::example(1, 1, 40, 64, 4) }), "one unit", |_| {});
    both(&config(Geometry { mw_cunits: 8, ..Geometry::example(3, 5, 20, 32, 4) }), "3 x 5 units", |_| {});
}

#[test]
fn chunks_with_and_without_a_tail_are_recovered() {
    for sectors_per_chunk in [8, 32, 256] {
        let geometry = Geometry { mw_cunits: 4, ..Geometry::example(1, 2, 70, sectors_per_chunk, 4) };
        both(&config(geometry), &format!("chunks of {sectors_per_chunk}"), |_| {});
    }
}

#[test]
fn ten_lines_work_with_enough_spare_and_say_so_without() {
    let small = config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 10, 256, 4) });
    for percent in [11, 50] {
        let options = Options { over_provisioning_percent: percent, ..options(Mode::Improved) };
        let error = refusal(&small, &options);
        let says = error.contains("over_provisioning_percent must be at least")
            || error.contains("at least 12 chunks");
        assert!(says, "{error}");
    }
    let none = Some(Classification::None);
    both(&small, "10 lines", |options| {
        (options.over_provisioning_percent, options.classification) = (75, none);
    });
    let tiny = config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 6, 64, 4) });
    let error = refusal(&tiny, &options(Mode::Improved));
    assert!(error.contains("too small for pblk"), "{error}");
}

/// Goal: an over-provisioning that nobody stated becomes what fits, and the user is told; one that was stated is refused if it
/// does not fit. Method: the same small drive, with and without the option.
#[test]
fn an_unstated_over_provisioning_becomes_what_fits() {
    let small = config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 30, 256, 4) });
    for mode in [Mode::Improved, Mode::Faithful] {
        let stated = Options { mode, ..Options::default() };
        let error = refusal(&small, &stated);
        let (_, least) = error.rsplit_once("at least ").expect("it says what fits");
        let least: u32 = least.parse().expect("a percentage");
        let unstated = Options { mode, ..Options::unstated() };
        let units: Vec<PuId> = (0..4).map(PuId).collect();
        let world = World::on(small.clone(), units, unstated.clone(), "unstated");
        let capacity = *world.pblk().capacity();
        assert!(
            capacity.over_provisioning_percent > 11 && capacity.over_provisioning_percent <= least,
            "{mode}: {capacity:?}, and at most {least} were to do"
        );
        let report = MountReport { fresh: true, ..MountReport::default() };
        let notes = world.pblk().notes("pblk".to_owned(), &report, &[]);
        let says = format!("is {} %", capacity.over_provisioning_percent);
        assert!(notes.len() == 2 && notes[1].contains(&says), "it is not the usual one: {notes:?}");
        exercise(&small, &unstated, None, "unstated");
    }
    let large = config(Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 200, 64, 4) });
    let units: Vec<PuId> = (0..4).map(PuId).collect();
    let world = World::on(large, units, Options::unstated(), "large");
    assert_eq!(world.pblk().capacity().over_provisioning_percent, 11, "more than was needed");
}

/// Why options do not fit a drive.
fn refusal(config: &Config, options: &Options) -> String {
    match World::refused(config.clone(), options.clone()) {
        MountError::DoesNotFit(sentence) => sentence,
        other => panic!("it does not fit: {other}"),
    }
}

#[test]
fn factory_bad_chunks_are_left_out() {
    let mut config = config(geometry());
    config.faults.factory_bad = 120_000_000;
    both(&config, "factory-bad chunks", |_| {});
}

#[test]
fn limits_on_open_chunks_are_kept_and_too_small_ones_refused() {
    for (classification, needed) in
        [(Classification::None, 2), (Classification::UserGc, 3), (Classification::SepBit, 7)]
    {
        for per_unit in [true, false] {
            let limits = |open: u32| {
                let mut geometry = Geometry { chunks_per_pu: 40, ..geometry() };
                geometry.lba_format = ocssd_lightnvm::LbaFormat::smallest(2, 2, 40, 64);
                let drive = if per_unit { 0 } else { open * 4 };
                (geometry.max_open_chunks_per_pu, geometry.max_open_chunks) =
                    (if per_unit { open } else { 0 }, drive);
                config(geometry)
            };
            let options = Options {
                classification: Some(classification),
                over_provisioning_percent: 60,
                ..options(Mode::Improved)
            };
            exercise(&limits(needed), &options, None, &format!("{needed} open chunks"));
            let error = refusal(&limits(needed - 1), &options);
            assert!(error.contains(&format!("keeps {needed} chunks open")), "{error}");
        }
    }
}

#[test]
fn resets_of_open_and_free_chunks_may_be_allowed() {
    let capabilities = Capabilities { early_reset: true, multiple_resets: true, ..Capabilities::default() };
    both(&config(Geometry { capabilities, ..geometry() }), "early resets", |_| {});
}

#[test]
fn media_without_any_time_do_not_spin() {
    let mut fast = config(geometry());
    (fast.media.read, fast.media.program, fast.media.erase) = (vec![Nanos(0)], vec![Nanos(0)], Nanos(0));
    (fast.channel.command, fast.link.command) = (Nanos(0), Nanos(0));
    fast.channel.bytes_per_second = 1_000_000_000_000;
    (fast.link.read_bytes_per_second, fast.link.write_bytes_per_second) =
        (1_000_000_000_000, 1_000_000_000_000);
    both(&fast, "RAM speed", |_| {});
}

#[test]
fn a_volatile_cache_is_flushed_and_a_protected_one_trusted() {
    for power_loss_protection in [false, true] {
        let mut cached = config(geometry());
        cached.cache = ocssd_flash::config::CacheConfig { sectors: 128, power_loss_protection };
        both(&cached, &format!("cache, protected {power_loss_protection}"), |_| {});
    }
}

#[test]
fn real_bytes_are_kept_as_stamps_are() {
    let mut bytes = config(geometry());
    bytes.payload = Payload::Bytes;
    both(&bytes, "bytes", |_| {});
}

#[test]
fn some_units_of_a_drive_in_any_order_are_enough() {
    let config = config(Geometry { mw_cunits: 8, ..Geometry::example(3, 3, 24, 32, 4) });
    for mode in [Mode::Improved, Mode::Faithful] {
        exercise(&config, &options(mode), Some(&[7, 2, 5]), "units 7, 2, 5");
    }
}

#[test]
fn active_units_and_writes_per_unit_may_be_any() {
    for (active, writes) in [(1, 1), (2, 16), (3, 3), (4, 2)] {
        both(&config(geometry()), &format!("active units {active}, writes {writes}"), |options| {
            (options.active_units, options.writes_per_unit) = (Some(active), Some(writes));
        });
    }
}

#[test]
fn every_classification_and_victim_policy_keeps_data() {
    let mut geometry = Geometry { chunks_per_pu: 36, ..geometry() };
    geometry.lba_format = ocssd_lightnvm::LbaFormat::smallest(2, 2, 36, 64);
    for classification in [Classification::None, Classification::UserGc, Classification::SepBit] {
        for victim in [VictimPolicy::Greedy, VictimPolicy::CostBenefit, VictimPolicy::DChoices { d: 2 }] {
            let (classification, victim) = (Some(classification), Some(victim));
            let options =
                Options { classification, victim, over_provisioning_percent: 55, ..options(Mode::Improved) };
            exercise(&config(geometry.clone()), &options, None, &format!("{classification:?}, {victim:?}"));
        }
    }
}

#[test]
fn checkpoints_may_be_taken_all_the_time_or_never() {
    for interval in [0, 4096, 16 * 4096, 300 * 4096] {
        both(&config(geometry()), &format!("a checkpoint every {interval} bytes"), |options| {
            options.checkpoint_interval_bytes = Some(interval);
        });
    }
}

#[test]
fn the_smallest_buffer_works_and_a_smaller_one_is_refused_with_its_size() {
    let mut geometry = Geometry { chunks_per_pu: 48, mw_cunits: 20, ..geometry() };
    geometry.lba_format = ocssd_lightnvm::LbaFormat::smallest(2, 2, 48, 64);
    let config = config(geometry);
    for classification in [None, Some(Classification::None), Some(Classification::SepBit)] {
        for mode in [Mode::Improved, Mode::Faithful] {
            if mode == Mode::Faithful && classification == Some(Classification::SepBit) {
                continue;
            }
            let wanted = Options { classification, ..options(mode) };
            let wanted = fitting(&config, &wanted, &[0, 1, 2, 3].map(PuId));
            let world = World::new(config.clone(), wanted.clone(), "a buffer");
            let least = u64::from(world.pblk().capacity().buffer_units_needed) * 4 * 4096;
            let with = |bytes| Options { write_buffer_bytes: Some(bytes), ..wanted.clone() };
            let error = refusal(&config, &with(least - 1));
            assert!(error.contains(&format!("needs {least}")), "{error}");
            exercise(
                &config,
                &with(least.max(4 * 4 * 4096)),
                None,
                &format!("{least} bytes of buffer, {classification:?}"),
            );
        }
    }
}

#[test]
fn a_buffer_smaller_than_the_window_makes_reads_wait_and_not_fail() {
    let config = config(Geometry { mw_cunits: 40, ..geometry() });
    for units in [4, 8, 20] {
        let options = Options {
            write_buffer_bytes: Some(units * 4 * 4096),
            small_write_buffer: true,
            ..options(Mode::Faithful)
        };
        exercise(&config, &options, None, &format!("{units} units of buffer"));
        let mut world = World::new(config.clone(), options, &format!("{units} units"));
        for block in 0..30 {
            world.write(block * 12, 12);
        }
        world.read_all(false);
        assert!(world.pblk().stats().read_parked > 0, "no read had to wait");
    }
}

#[test]
fn options_that_fit_no_drive_are_refused_before_media_is_looked_at() {
    let mut world = World::new(config(geometry()), options(Mode::Improved), "an instance that is there");
    world.write(0, 12);
    // What is half written makes every mount fill up a chunk.
    world.cut(&mut Prng::new(3));
    let seen = |world: &World| {
        let chunks = (0..world.host.device().geometry().chunk_count())
            .map(|chunk| world.host.device().chunk(ChunkId(chunk)));
        (world.host.clock().now(), chunks.collect::<Vec<_>>())
    };
    let before = seen(&world);
    type Change = fn(&mut Options);
    let cases: [(Change, &str); 3] = [
        (|options| options.write_buffer_bytes = Some(4096), "write_buffer_bytes is 4096"),
        (|options| options.sec_per_write = Some(3), "sec_per_write must be"),
        (|options| options.small_write_buffer = true, "small_write_buffer"),
    ];
    for (change, part) in cases {
        world.options = options(Mode::Improved);
        change(&mut world.options);
        let error = world.try_mount(CutAfter::NEVER).expect_err(part);
        assert!(matches!(&error, MountError::DoesNotFit(sentence) if sentence.contains(part)), "{error}");
    }
    assert_eq!(seen(&world), before, "the drive was used");
    world.options = options(Mode::Improved);
    let report = world.mount();
    assert!(report.sectors_read > 0 && report.sectors_filled > 0, "{report:?}");
    world.read_all(true);
}

#[test]
fn drives_pblk_cannot_use_are_refused_with_a_sentence() {
    let cases: [(Geometry, &str); 2] = [
        (Geometry { oob_bytes: 8, ..geometry() }, "16 bytes beside every sector"),
        (Geometry { mw_cunits: 0, ..Geometry::example(1, 2, 24, 4, 4) }, "at least two write units"),
    ];
    for (geometry, part) in cases {
        let error = World::refused(config(geometry), options(Mode::Improved));
        assert!(matches!(&error, MountError::DoesNotFit(sentence) if sentence.contains(part)), "{error}");
    }
}
