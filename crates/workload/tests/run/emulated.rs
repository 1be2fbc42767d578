//! Zones that a target has not, strides, zones reset early, and how many are open at once.

use crate::world::{World, preset};
use ocssd_lightnvm::block::BlockOp;

fn blocks(world: &World, wanted: fn(BlockOp) -> bool) -> Vec<u64> {
    world.seen().iter().filter(|seen| wanted(seen.op)).map(|seen| seen.block).collect()
}

const fn is_write(op: BlockOp) -> bool {
    matches!(op, BlockOp::Write { .. })
}

fn run(settings: &str) -> (World, crate::world::Outcome) {
    let mut world = World::memory();
    let outcome = world.run(&settings.replace(' ', "\n"));
    (world, outcome)
}

#[test]
fn emulated_zones_are_written_in_order_up_to_their_capacity() {
    let (world, outcome) = run(
        "[j] rw=randwrite zonemode=zbd zonesize=64k zonecapacity=40k job_max_open_zones=3 size=640k io_size=1200k",
    );
    assert_eq!(outcome.only().write.total_ios, 300);
    let mut next = std::collections::BTreeMap::new();
    for block in blocks(&world, is_write) {
        let pointer = next.entry(block / 16).or_insert(0);
        assert_eq!(block % 16, *pointer % 10, "zone {}", block / 16);
        *pointer += 1;
    }
    assert_eq!(next.len(), 10, "all zones of the region, and no other");
    assert!(world.seen().iter().all(|seen| is_write(seen.op)), "a reset asks nothing of such a target");
}

#[test]
fn reads_of_emulated_zones_stay_below_the_write_pointer_unless_told() {
    let above = |settings: &str| {
        let (world, _) = run(&format!("[j] rw=randrw zonemode=zbd zonesize=400k size=3200k {settings}"));
        let mut written = std::collections::BTreeSet::new();
        let mut above = 0;
        for seen in world.seen() {
            match seen.op {
                BlockOp::Read => above += u32::from(!written.contains(&seen.block)),
                _ => _ = written.insert(seen.block),
            }
        }
        above
    };
    assert_eq!(above(""), 0);
    assert!(above("read_beyond_wp=1") > 100);
}

#[test]
fn a_read_above_the_write_pointer_of_a_drive_is_an_error() {
    // Resets empty zones that were laid out, and reads then go there.
    let text = "[j]\nrw=randrw\nbs=4k,16k\nzonemode=zbd\nio_size=400%\nread_beyond_wp=1\nrandseed=4\ncontinue_on_error=read";
    let text = text.replace("400%", "64m");
    let beyond = World::linear(preset("tiny")).run(&text);
    assert!(beyond.only().read.errors > 0);
    let below = World::linear(preset("tiny")).run(&text.replace("read_beyond_wp=1\n", ""));
    assert_eq!(below.only().error_count, 0);
}

#[test]
fn strides_use_a_part_of_the_region_at_a_time() {
    let (world, _) = run("[j] rw=read zonemode=strided zonesize=8k zonerange=16k zoneskip=4k size=64k");
    assert_eq!(blocks(&world, |_| true), [0, 1, 5, 6, 10, 11, 15], "as fio 3.33 records it");
    let (world, _) = run("[j] rw=read zonesize=24k zonerange=16k size=64k");
    assert_eq!(blocks(&world, |_| true), [0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 4, 5, 8, 9, 10, 11]);
    let (world, _) = run("[j] rw=randread zonemode=strided zonesize=40k offset=40k size=400k loops=2");
    let seen = blocks(&world, |_| true);
    assert_eq!(seen.len(), 200);
    for (part, ten) in seen.chunks(10).enumerate() {
        let mut ten: Vec<u64> = ten.to_vec();
        ten.sort_unstable();
        let first = 10 + 10 * u64::try_from(part % 10).expect("small");
        assert_eq!(ten, (first..first + 10).collect::<Vec<_>>(), "each place of part {part} once");
    }
}

#[test]
fn zones_are_reset_early_above_the_threshold() {
    let held = |settings: &str| {
        let (world, _) =
            run(&format!("[j] rw=write zonemode=zbd zonesize=40k size=4000k io_size=12m {settings}"));
        // A block that is written again was in a zone that had been reset.
        let seen = blocks(&world, is_write);
        let mut last = std::collections::BTreeMap::new();
        let again = seen.iter().enumerate().filter_map(|(at, block)| Some(at - last.insert(*block, at)?));
        again.min().unwrap_or(0)
    };
    assert_eq!(held(""), 1_000, "all is written before a zone is written again");
    let mut world = World::linear(preset("tiny"));
    let text = "[j]\nrw=write\nbs=16k\nzonemode=zbd\nio_size=300%\n".replace("300%", "48m");
    let plain = world.run(&text);
    let (plain_resets, written) = (world.counts().reset.commands, plain.only().write.io_bytes);
    let mut world = World::linear(preset("tiny"));
    let early = world.run(&format!("{text}zone_reset_threshold=0.5\nzone_reset_frequency=0.5\n"));
    assert_eq!((early.only().error, early.only().write.io_bytes), (0, written));
    assert!(world.counts().reset.commands > plain_resets, "{} {plain_resets}", world.counts().reset.commands);
    assert!(early.failures.is_empty());
}

#[test]
fn open_zones_are_bounded_for_all_jobs_of_a_target() {
    let open_at_most = |settings: &str| {
        let (world, outcome) = run(&format!(
            "[global] rw=randwrite zonemode=zbd zonesize=40k ioengine=libaio iodepth=2 time_based runtime=60ms \
             {settings} [a] size=2000k [b] offset=2000k size=2000k numjobs=2"
        ));
        assert!(outcome.results.iter().all(|result| result.write.total_ios > 100 && result.error == 0));
        let mut filled = std::collections::BTreeMap::new();
        let mut most = 0;
        for block in blocks(&world, is_write) {
            let count = filled.entry(block / 10).or_insert(0);
            *count += 1;
            if *count == 10 {
                filled.remove(&(block / 10));
            }
            most = most.max(filled.len());
        }
        most
    };
    for bound in [1, 2, 5] {
        assert_eq!(open_at_most(&format!("max_open_zones={bound}")), bound, "{bound} in all");
    }
    assert_eq!(open_at_most("job_max_open_zones=2"), 6, "two for each of three");
    assert_eq!(open_at_most("max_open_zones=4 job_max_open_zones=1"), 3);
}

#[test]
fn zones_that_cannot_be_are_refused_with_what_to_change() {
    let cases = [
        ("rw=write zonemode=zbd", "give a zonesize"),
        ("rw=write zonemode=zbd zonesize=6k", "use a multiple"),
        ("rw=trim zonemode=zbd zonesize=64k", "leave zonemode out"),
        ("rw=write zonemode=zbd zonesize=8m", "lower zonesize"),
        ("rw=read zonemode=strided zonesize=4k zonerange=4k bs=8k", "raise zonerange"),
        ("rw=write zonemode=zbd zonesize=64k [k] rw=write", "give both the same zonemode"),
        (
            "rw=write zonemode=zbd zonesize=64k zone_reset_frequency=1 [k] rw=write zonemode=zbd zonesize=64k",
            "must do so alike",
        ),
    ];
    for (settings, expected) in cases {
        let message = World::memory().refusal(&format!("[j]\n{}", settings.replace(' ', "\n")));
        assert!(message.contains(expected), "{settings}: {message}");
    }
    let endless = World::null().refusal("[j]\nrw=write\nzonemode=zbd\nzonesize=64k\nnumber_ios=10");
    assert!(endless.contains("give a size or raise zonesize"), "{endless}");
    let small = World::null().run("[j]\nrw=write\nzonemode=zbd\nzonesize=64k\nsize=1m\nnumber_ios=10");
    assert_eq!(small.only().write.total_ios, 10);
    let raw = |text: &str| World::linear(preset("tiny")).refusal(&format!("[j]\n{text}"));
    assert!(raw("rw=write\nbs=16k\nzonemode=strided\nzonesize=64k").contains("only read"));
    let mut world = World::linear(preset("tiny"));
    let outcome = world.run("[j]\nrw=read\nzonemode=strided\nzonesize=64k\nzonerange=128k\nsize=1m");
    assert_eq!(outcome.only().read.io_bytes, 512 << 10, "reads of a raw window may go in strides");
    let notes = world.run("[j]\nrw=read\nsize=64k\nzonecapacity=32k\nzonemode=zbd").notes;
    assert!(notes.iter().any(|note| note.contains("zonecapacity has no effect")), "{notes:?}");
}
