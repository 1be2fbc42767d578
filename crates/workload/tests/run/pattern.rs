//! What is done and where: rw, block sizes, regions, random draws. On a plain block device that remembers every request.

use crate::world::{Seen, World};
use ocssd_lightnvm::block::BlockOp;
use std::collections::BTreeMap;

const WRITE: BlockOp = BlockOp::Write { fua: false };

/// The requests of one job of these settings.
fn seen(settings: &str) -> Vec<Seen> {
    let mut world = World::memory();
    world.run(&format!("[j]\n{}", settings.replace(' ', "\n")));
    world.seen()
}

fn blocks(settings: &str) -> Vec<u64> {
    seen(settings).iter().map(|seen| seen.block).collect()
}

fn is_sorted_walk(blocks: &[u64]) -> bool {
    blocks.iter().copied().eq(0..u64::try_from(blocks.len()).expect("a length"))
}

#[test]
fn rw_decides_operation_and_order() {
    let cases = [
        ("read", BlockOp::Read, true),
        ("randread", BlockOp::Read, false),
        ("write", WRITE, true),
        ("randwrite", WRITE, false),
        ("trim", BlockOp::Discard, true),
        ("randtrim", BlockOp::Discard, false),
    ];
    for (word, op, ordered) in cases {
        let seen = seen(&format!("rw={word} io_size=256k"));
        assert_eq!(seen.len(), 64, "{word}");
        assert!(seen.iter().all(|seen| seen.op == op), "{word}");
        let blocks: Vec<u64> = seen.iter().map(|seen| seen.block).collect();
        assert_eq!(is_sorted_walk(&blocks), ordered, "{word}: {blocks:?}");
    }
}

#[test]
fn a_mix_has_its_share_of_reads() {
    for (settings, low, high) in [
        ("rw=randrw", 440, 560),
        ("rw=rw rwmixread=80", 760, 840),
        ("rw=randrw rwmixwrite=90", 70, 130),
        ("rw=randrw rwmixread=0", 0, 0),
        ("rw=randrw rwmixread=100", 1000, 1000),
    ] {
        let reads = seen(settings).iter().filter(|seen| seen.op == BlockOp::Read).count();
        assert!((low..=high).contains(&reads), "seed 1: {settings}: {reads} of 1000");
    }
}

#[test]
fn what_is_trimmed_is_then_written_and_counted_once() {
    for word in ["trimwrite", "randtrimwrite"] {
        for depth in [1, 7] {
            let mut world = World::memory();
            let outcome = world.run(&format!("[j]\nrw={word}\nbs=8k\nsize=800k\niodepth={depth}"));
            let seen = world.seen();
            let mut open: Vec<u64> = Vec::new();
            for seen in &seen {
                assert_eq!(seen.count, 2);
                match seen.op {
                    BlockOp::Discard => open.push(seen.block),
                    WRITE => {
                        let place = open.iter().position(|&block| block == seen.block);
                        open.remove(
                            place.unwrap_or_else(|| panic!("{word}: wrote {} untrimmed", seen.block)),
                        );
                    }
                    op => panic!("{word}: {op:?}"),
                }
            }
            assert!(open.is_empty(), "{word} at depth {depth}: {open:?} were never written");
            let result = outcome.only();
            assert_eq!((result.trim.io_bytes, result.write.io_bytes), (800 << 10, 800 << 10), "{word}");
            assert_eq!(result.read.total_ios, 0);
        }
    }
}

#[test]
fn sizes_come_from_bs_ranges_and_splits_by_direction() {
    let sizes = |settings: &str, op: BlockOp| {
        let mut found = BTreeMap::new();
        for seen in seen(settings).iter().filter(|seen| seen.op == op) {
            *found.entry(seen.count).or_insert(0u32) += 1;
        }
        found
    };
    assert_eq!(sizes("rw=read bs=8k", BlockOp::Read), BTreeMap::from([(2, 500)]));
    let mixed = "rw=randrw bs=4k,16k io_size=4000k";
    assert!(sizes(mixed, BlockOp::Read).keys().eq([&1]) && sizes(mixed, WRITE).keys().eq([&4]));
    let trims = sizes("rw=randtrim bs=4k,8k,12k", BlockOp::Discard);
    assert!(trims.keys().eq([&3]), "{trims:?}");
    let range = sizes("rw=randread bsrange=8k-32k io_size=16m norandommap", BlockOp::Read);
    assert!(range.keys().eq(&[2, 4, 6, 8]), "{range:?}");
    let split = sizes("rw=randread bssplit=4k/25:16k/75 io_size=13m norandommap", BlockOp::Read);
    let (small, large) = (split[&1], split[&4]);
    assert!((4 * small).abs_diff(small + large) < (small + large) / 4, "seed 1: {split:?}");
}

#[test]
fn random_offsets_are_aligned_to_blockalign_or_the_smallest_block() {
    assert!(blocks("rw=randread bs=16k").iter().all(|block| block % 4 == 0));
    assert!(blocks("rw=randread bs=4k blockalign=32k io_size=400k").iter().all(|block| block % 8 == 0));
    let fine = blocks("rw=randread bs=16k blockalign=4k");
    assert!(fine.iter().any(|block| block % 4 != 0), "{fine:?}");
    let by_direction = seen("rw=randrw bs=4k ba=16k,32k io_size=400k");
    let aligned = |seen: &Seen| seen.block.is_multiple_of(if seen.op == BlockOp::Read { 4 } else { 8 });
    assert!(by_direction.iter().all(aligned));
}

#[test]
fn a_sequential_walk_goes_on_where_it_ended_and_skips_what_it_is_told() {
    assert_eq!(blocks("rw=read bs=8k size=40k"), [0, 2, 4, 6, 8]);
    assert_eq!(blocks("rw=read:4k bs=8k size=36k io_size=24k"), [0, 3, 6]);
    assert_eq!(blocks("rw=write:8k bs=4k size=36k io_size=12k"), [0, 3, 6]);
    let walk = seen("rw=read bsrange=4k-16k");
    let follows = walk.windows(2).all(|pair| pair[1].block == pair[0].block + u64::from(pair[0].count));
    assert!(
        follows || walk.last().is_some_and(|last| last.block + u64::from(last.count) == 1000),
        "{walk:?}"
    );
}

#[test]
fn a_number_after_a_random_word_is_how_many_ios_share_a_draw() {
    let blocks = blocks("rw=randread:4 io_size=400k");
    let starts = blocks.chunks(4).filter(|run| run.windows(2).all(|pair| pair[1] == pair[0] + 1)).count();
    assert!(starts >= 23, "all but those at the end of the region: {starts} of 25, {blocks:?}");
}

#[test]
fn the_region_is_offset_size_and_increment() {
    let all = |settings: &str| {
        let mut found = blocks(settings);
        found.sort_unstable();
        (found[0], found[found.len() - 1], found.len())
    };
    assert_eq!(all("rw=randread"), (0, 999, 1000));
    assert_eq!(all("rw=randread size=400k"), (0, 99, 100));
    assert_eq!(all("rw=randread offset=400k"), (100, 999, 900));
    assert_eq!(all("rw=randread offset=40% size=10%"), (400, 499, 100));
    assert_eq!(all("rw=read offset=4k size=40k"), (1, 10, 10));
    let clones = "rw=read numjobs=3 offset=40k offset_increment=400k size=40k";
    let mut found = blocks(clones);
    found.sort_unstable();
    assert!(found.into_iter().eq((10..20).chain(110..120).chain(210..220)));
}

#[test]
fn numjobs_makes_clones_that_draw_for_themselves() {
    let mut world = World::memory();
    let outcome = world.run("[j]\nrw=randread\nsize=400k\nnumjobs=3");
    assert_eq!(outcome.results.iter().map(|result| result.read.total_ios).collect::<Vec<_>>(), [100; 3]);
    let blocks: Vec<u64> = world.seen().iter().map(|seen| seen.block).collect();
    let of = |clone: usize| blocks.iter().skip(clone).step_by(3).take(20).collect::<Vec<_>>();
    assert_ne!(of(0), of(1));
}

#[test]
fn the_amount_is_io_size_times_loops_or_a_number_of_ios() {
    for (settings, ios) in [
        ("rw=read size=40k", 10),
        ("rw=read size=40k io_size=100k", 25),
        ("rw=randread size=40k io_size=100k", 25),
        ("rw=read size=40k loops=3", 30),
        ("rw=read size=40k loops=3 number_ios=7", 7),
        ("rw=read io_size=10%", 100),
        ("rw=read bs=8k number_ios=5", 5),
    ] {
        assert_eq!(seen(settings).len(), ios, "{settings}");
    }
}

#[test]
fn the_random_map_uses_every_block_once_unless_it_is_turned_off() {
    let distinct = |settings: &str| {
        let mut blocks = blocks(settings);
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    };
    assert_eq!(distinct("rw=randread"), 1000);
    assert_eq!(distinct("rw=randwrite iodepth=16"), 1000);
    let repeated = distinct("rw=randread norandommap");
    assert!((580..680).contains(&repeated), "1 - 1/e of 1000, seed 1: {repeated}");
}

#[test]
fn distributions_and_percentages_shape_the_draws() {
    let busiest = |settings: &str| {
        let mut counts = BTreeMap::new();
        for block in blocks(settings) {
            *counts.entry(block).or_insert(0u32) += 1;
        }
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.iter().take(20).sum::<u32>()
    };
    let uniform = busiest("rw=randread norandommap");
    let zipf = busiest("rw=randread random_distribution=zipf:1.2");
    let pareto = busiest("rw=randread random_distribution=pareto:0.1");
    assert!(uniform < 120 && zipf > 500 && pareto > 500, "seed 1: {uniform} {zipf} {pareto}");
    let normal = blocks("rw=randread random_distribution=normal:5");
    let near = normal.iter().filter(|block| (400..600).contains(*block)).count();
    assert!(near > 900, "two deviations, seed 1: {near}");
    let follow = |settings: &str| blocks(settings).windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    let (half, none) =
        (follow("rw=randread percentage_random=50 norandommap"), follow("rw=randread percentage_random=0"));
    assert!((400..600).contains(&half) && none == 999, "seed 1: {half} {none}");
}

#[test]
fn a_seed_makes_the_same_draws_and_another_makes_others() {
    let draws = |settings: &str, seed| {
        let mut world = World::memory();
        world.run_on(&format!("[j]\nrw=randread\n{settings}"), &[], seed);
        world.seen()
    };
    assert_eq!(draws("", 1), draws("", 1));
    assert_ne!(draws("", 1), draws("", 2));
    assert_eq!(draws("randseed=5", 1), draws("randseed=5", 2));
    assert_ne!(draws("randseed=5", 1), draws("randseed=6", 1));
}

#[test]
fn a_plan_that_cannot_be_is_refused_with_what_to_change() {
    let cases = [
        ("rw=read bs=512", "use multiples of that"),
        ("rw=read size=40m", "lower size or offset"),
        ("rw=read offset=40m", "lower offset"),
        ("rw=read size=8k bs=4k numjobs=2 offset_increment=40m", "offset_increment"),
        ("rw=randread blockalign=6k", "use a multiple"),
        ("rw=read:6k", "use a multiple"),
        ("rw=write zonemode=zbd", "has no zones"),
        ("rw=read rate=1m rate_iops=10", "keep one"),
    ];
    for (settings, expected) in cases {
        let message = World::memory().refusal(&format!("[j]\n{}", settings.replace(' ', "\n")));
        assert!(message.starts_with("job \"j\": ") && message.contains(expected), "{settings}: {message}");
    }
}
