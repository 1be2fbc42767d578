//! Jobs on raw windows of a virtual drive: zones, forced writes, several targets, several jobs in one window.

use crate::world::{Outcome, World, preset};
use ocssd_flash::Config;
use ocssd_lightnvm::wrap::Event;
use ocssd_lightnvm::{Geometry, Op};
use ocssd_targets::Layout;

const SECTOR: u64 = 4096;

fn drives() -> [(&'static str, Config, u64); 3] {
    let small = Config { geometry: Geometry::example(1, 3, 5, 16, 8), ..preset("tiny") };
    [("tiny", preset("tiny"), 4), ("odd", preset("odd"), 24), ("small", small, 8)]
}

/// Every sector that was measured went to the drive, and nothing else did.
fn assert_counted(world: &World, outcome: &Outcome, what: &str) {
    let counts = world.counts();
    let bytes =
        |of: fn(&ocssd_workload::results::JobResult) -> u64| outcome.results.iter().map(of).sum::<u64>();
    assert_eq!(counts.read.sectors * SECTOR, bytes(|result| result.read.io_bytes), "{what}");
    assert_eq!(counts.write.sectors * SECTOR, bytes(|result| result.write.io_bytes), "{what}");
    assert!(outcome.failures.is_empty(), "{what}: {:?}", outcome.failures);
    assert!(outcome.results.iter().all(|result| result.error == 0 && result.error_count == 0), "{what}");
}

#[test]
fn reads_of_a_laid_out_window_return_the_stamp_of_every_block() {
    for (name, config, _) in drives() {
        for rw in ["read", "randread"] {
            let mut world = World::linear(config.clone());
            let blocks = config.geometry.sector_count();
            let outcome = world.run(&format!("[j]\nrw={rw}\nbs=4k\niodepth=9\nioengine=libaio"));
            assert_counted(&world, &outcome, name);
            let result = outcome.only();
            let verify = result.verify.expect("a window is stamped");
            assert_eq!(
                (result.read.total_ios, verify.checked, verify.failed),
                (blocks, blocks, 0),
                "{name} {rw}"
            );
            assert_eq!(world.counts().reset.commands, 0, "nothing is written");
        }
    }
}

#[test]
fn writes_fill_zones_in_order_and_reset_full_ones() {
    for (name, config, unit) in drives() {
        for rw in ["write", "randwrite"] {
            for open in [1, 3] {
                let mut world = World::linear(config.clone());
                let capacity = config.geometry.capacity_bytes();
                let text = format!(
                    "[j]\nrw={rw}\nbs={}k\nloops=2\nzonemode=zbd\nmax_open_zones={open}\nioengine=libaio\niodepth=5",
                    4 * unit
                );
                let outcome = world.run(&text);
                let what = format!("{name} {rw} {open}");
                assert_counted(&world, &outcome, &what);
                assert_eq!(outcome.only().write.io_bytes, 2 * capacity, "{what}");
                let chunks = u64::from(config.geometry.chunk_count());
                let resets = world.counts().reset.sectors;
                // A zone that is being reset is passed over for the next: at the end some are reset for nothing.
                let most = chunks + 3 * u64::from(config.geometry.pu_count());
                assert!((chunks / 2..=most).contains(&resets), "{what}: {resets} resets");
                assert!(outcome.notes.is_empty(), "{what}: {:?}", outcome.notes);
            }
        }
    }
}

#[test]
fn max_open_zones_is_how_many_zones_are_written_at_once() {
    let geometry = Geometry { max_open_chunks_per_pu: 2, ..Geometry::example(1, 2, 6, 32, 8) };
    let config = Config { geometry, ..preset("tiny") };
    let run = |open: u32| {
        World::linear(config.clone()).run(&format!(
        "[j]\nrw=randwrite\nbs=32k\nio_size=50%\nzonemode=zbd\nmax_open_zones={open}\ncontinue_on_error=all"
    ))
    };
    assert_eq!(run(2).only().error_count, 0);
    assert!(run(3).only().error_count > 0, "the drive allows two");
}

#[test]
fn forced_writes_reach_the_drive_as_such() {
    for (sync, forced) in [("none", false), ("0", false), ("sync", true), ("1", true), ("dsync", true)] {
        let mut world = World::linear(preset("tiny"));
        world.run(&format!("[j]\nrw=write\nbs=16k\nsync={sync}\nio_size=64k"));
        let mut writes = 0;
        for event in world.host.device().latest() {
            if let Event::Submitted(_, command) = event
                && let Op::Write { fua } = command.op
            {
                assert_eq!(fua, forced, "sync={sync}");
                writes += 1;
            }
        }
        assert!(writes >= 4, "sync={sync}: {writes}");
    }
}

#[test]
fn a_region_smaller_than_a_zone_is_never_left_by_reads() {
    let mut world = World::linear(preset("tiny"));
    let outcome =
        world.run("[j]\nrw=randread\nbs=12k\nblockalign=4k\noffset=100k\nsize=48k\nio_size=4m\nnorandommap");
    assert_counted(&world, &outcome, "one unit");
    let mut touched = std::collections::BTreeSet::new();
    for event in world.host.device().latest() {
        if let Event::Submitted(_, command) = event
            && let (Op::Read, ocssd_lightnvm::Addresses::Run { first, count }) =
                (command.op, command.addresses)
        {
            touched.extend((first.sector..first.sector + count).map(|sector| (first.chunk, sector)));
        }
    }
    assert!(!touched.is_empty() && touched.len() <= 12, "{touched:?}");
}

#[test]
fn two_writers_of_one_zone_take_turns() {
    let config = Config { geometry: Geometry::example(1, 1, 1, 32, 8), ..preset("tiny") };
    let mut world = World::linear(config);
    let outcome = world.run("[a]\nrw=write\nbs=32k\nloops=4\n[b]\nrw=write\nbs=32k\nloops=4");
    assert_counted(&world, &outcome, "two writers");
    let ends: Vec<_> = outcome.results.iter().map(|result| result.elapsed).collect();
    let (first, last) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    assert!(first.0 * 10 > last.0 * 7, "one of them waited for all of the other: {ends:?}");
}

#[test]
fn jobs_on_different_targets_stay_on_their_units() {
    let mut world = World::drive(preset("tiny"), Vec::new(), &[]);
    world.add_linear(0..1, Layout::Striped);
    world.add_linear(1..3, Layout::Striped);
    world.add_linear(3..4, Layout::Chunk);
    let text = "[r]\nrw=randread\nbs=4k\nio_size=400k\n[w]\nrw=write\nbs=16k\nio_size=640k\n[c]\nrw=randwrite\nbs=16k\nio_size=160k";
    let outcome = world.run_on(text, &[0, 1, 2], 3);
    assert_counted(&world, &outcome, "three targets");
    let units: Vec<(u64, u64)> = world
        .host
        .device()
        .inner()
        .units()
        .iter()
        .map(|unit| (unit.read.sectors, unit.write.sectors))
        .collect();
    assert_eq!(units, [(100, 0), (0, 80), (0, 80), (0, 40)]);
}

#[test]
fn amounts_count_zones_of_the_target() {
    let mut world = World::linear(preset("tiny"));
    let zone = 4 * 32 * SECTOR;
    let outcome = world.run("[j]\nrw=write\nbs=16k\nzonemode=zbd\noffset=2z\nsize=3z");
    assert_eq!(outcome.only().write.io_bytes, 3 * zone);
    let mut world = World::linear(preset("tiny"));
    let outcome = world.run(&format!("[j]\nrw=write\nbs=16k\nzonemode=zbd\nzonesize={zone}\nio_size=1z"));
    assert_eq!(outcome.only().write.io_bytes, zone);
}

#[test]
fn what_a_window_cannot_do_is_refused_or_said() {
    let cases = [
        (
            "rw=write\nbs=4k",
            "use --target pblk, a block device that takes blocks of any size, or bs=16k or a multiple",
        ),
        ("rw=randtrim", "use a target with a map"),
        ("rw=trimwrite\nbs=16k", "use a target with a map"),
        ("rw=write:16k\nbs=16k", "without gaps"),
        ("rw=write:-32k\nbs=16k", "without gaps"),
        ("rw=read:-6k\nbs=4k", "expected a multiple of its blocks of 4096 bytes"),
        (
            "rw=read:-8k\nbs=4k\nzonemode=strided\nzonesize=64k",
            "goes backwards, which zones and strides do not",
        ),
        ("rw=write\nbs=16k\nzonemode=zbd\nzonesize=1m", "leave zonesize out"),
    ];
    for (settings, expected) in cases {
        let message = World::linear(preset("tiny")).refusal(&format!("[j]\n{settings}"));
        assert!(message.contains(expected), "{settings}: {message}");
    }
    let notes = |settings: &str| {
        World::linear(preset("tiny")).run(&format!("[j]\nbs=16k\n{settings}")).notes.join("\n")
    };
    assert!(notes("rw=write").contains("as with zonemode=zbd"));
    assert!(notes("rw=randwrite\nzonemode=zbd\nrandom_distribution=zipf:1.1").contains("each as likely"));
    assert_eq!(notes("rw=randwrite\nzonemode=zbd"), "");
}

#[test]
fn a_seed_is_one_run_and_another_seed_another() {
    let text = "[r]\nrw=randrw\nbs=4k,16k\nio_size=1m\niodepth=4\nioengine=libaio\n[w]\nrw=randwrite\nbs=16k\nio_size=1m\nmax_open_zones=2";
    let hash = |seed| World::linear(preset("tiny")).run_on(text, &[], seed).hash;
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
