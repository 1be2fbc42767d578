//! The whole database on a real target and a virtual drive, each get held against a map of all puts.

use super::*;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, TargetId};
use ocssd_targets::lightlsm::{LightLsm, Options, Placement};

/// Memtables of 100 records, tables of 200, levels of 4 and 16 tables.
const SMALL: &str = "--key_size=16 --value_size=84 --write_buffer_size=10000 --target_file_size_base=20000 \
                     --max_bytes_for_level_base=80000 --max_bytes_for_level_multiplier=4 --num_levels=5 --bloom_bits=6 \
                     --block_size=1000 --writable_file_max_buffer_size=4000 --level0_file_num_compaction_trigger=2 \
                     --stats_interval_ms=10 --max_background_compactions=3";

type World = Host<Flash, VirtualClock, dyn TableTarget>;

fn world(placement: Placement, tables_max: u32) -> World {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.payload = Payload::Bytes;
    // 8 units of 64 chunks of 96 sectors: 192 MiB.
    let times = config.geometry.times;
    config.geometry = Geometry { times, ..Geometry::example(2, 4, 64, 96, 4) };
    config.media.planes = 1;
    config.media.sectors_per_page = 4;
    let flash = Flash::format(config).expect("a drive");
    let geometry = flash.config().geometry.clone();
    let buffers = Buffers::new(flash.payload_format());
    let mut host: World = Host::new(flash, VirtualClock::default(), buffers);
    let units: Vec<PuId> = (0..geometry.pu_count()).map(PuId).collect();
    let options = Options { placement, tables_max: Some(tables_max), ..Options::default() };
    let (target, _) = LightLsm::mount(&mut host.caller(), &units, &options).expect("it fits");
    host.add(Box::new(target));
    host
}

fn run(flags: &str, seed: u64, placement: Placement) -> (Lsm, World) {
    let options = LsmOptions::parse(&format!("{SMALL} {flags}")).expect("flags");
    let mut host = world(placement, 128);
    let limits = host.target(TargetId(0)).limits();
    let mut lsm = Lsm::new(options, limits, &Prng::new(seed));
    loop {
        let stop = host.clock().now() + Nanos::from_millis(1);
        let end = host.run(&mut lsm, stop);
        lsm.check();
        assert_ne!(end, RunEnd::Stuck, "seed {seed}: {flags}");
        assert_eq!(lsm.failure(), None, "seed {seed}: {flags}");
        if end == RunEnd::Finished {
            host.target(TargetId(0)).check();
            return (lsm, host);
        }
    }
}

fn gauge(host: &World, name: &str) -> u64 {
    let counters = host.target(TargetId(0)).counters();
    match counters.iter().find(|counter| counter.name == name).map(|counter| counter.value) {
        Some(CounterValue::Gauge(value)) => value,
        other => panic!("{name}: {other:?}"),
    }
}

/// Every get is held against the map by the database itself; a run that ends has found no difference.
fn check(flags: &str) {
    for (seed, placement) in [(1, Placement::Horizontal), (2, Placement::Vertical), (3, Placement::Width(2))]
    {
        let (lsm, _) = run(flags, seed, placement);
        let (done, all) = lsm.progress();
        assert!(done >= all, "seed {seed}: {done} of {all} operations: {flags}");
    }
}

#[test]
fn gets_find_the_newest_version_beside_puts_flushes_and_compactions() {
    check("--benchmarks=fillrandom,readwhilewriting,overwrite,readrandom --num=3000 --threads=3");
}

#[test]
fn gets_find_the_newest_version_once_everything_came_to_rest() {
    let flags = "--benchmarks=fillseq,overwrite,waitforcompaction,readrandom --num=2000 --threads=2";
    check(flags);
    let (lsm, _) = run(flags, 4, Placement::Level);
    let levels = lsm.levels();
    assert!(levels[0].0 < 2, "level 0 is compacted: {levels:?}");
    let work: Vec<Work> = lsm.phases().iter().map(|phase| phase.work).collect();
    assert!(work.iter().any(|work| work.compactions > 0) && lsm.phases()[3].gets.count() == 4_000);
}

#[test]
fn a_scan_sees_each_key_once_in_order() {
    let (lsm, _) = run(
        "--benchmarks=fillseq,overwrite,readseq --num=2000 --reads=5000 --threads=2",
        5,
        Placement::Horizontal,
    );
    assert_eq!(lsm.phases()[2].scanned, 2 * 2_000, "there are no more keys");
}

#[test]
fn one_thread_in_order_moves_tables_and_merges_nothing() {
    let (lsm, host) = run("--benchmarks=fillseq,waitforcompaction --num=2000", 6, Placement::Horizontal);
    let sum = |of: fn(&Work) -> u64| lsm.phases().iter().map(|phase| of(&phase.work)).sum::<u64>();
    assert_eq!((sum(|work| work.compactions), sum(|work| work.flushes)), (0, 20));
    assert!(sum(|work| work.moves) > 10);
    let live: u64 = lsm.levels().iter().map(|level| level.1).sum();
    assert_eq!(gauge(&host, "table_bytes_live"), live, "what the tree counts is what the target has");
}

#[test]
fn what_the_tree_replaced_is_deleted() {
    let flags = "--benchmarks=fillrandom,overwrite,waitforcompaction --num=3000 --threads=2";
    let (lsm, host) = run(flags, 7, Placement::Vertical);
    let tables: usize = lsm.levels().iter().map(|level| level.0).sum();
    assert_eq!(gauge(&host, "tables"), tables as u64);
}

#[test]
fn puts_stop_for_memtables_and_for_level_0_and_the_limiter_slows_them_down() {
    // 90 bytes at 16 KiB a second: 6 ms a put.
    let slow = "--benchmarks=fillrandom --num=2500 --threads=4 --cpu_compaction_byte_ps=900000 \
                --level0_slowdown_writes_trigger=4 --level0_stop_writes_trigger=6 --max_write_buffer_number=3";
    let (limited, _) = run(&format!("{slow} --delayed_write_rate=1m"), 8, Placement::Horizontal);
    let (free, _) = run(&format!("{slow} --delayed_write_rate=0"), 8, Placement::Horizontal);
    let (limited, free) = (&limited.phases()[0], &free.phases()[0]);
    assert!(limited.delayed[Cause::Level0 as usize] > Nanos::ZERO && limited.rate_min.is_some());
    assert_eq!((free.delayed, free.rate_min), ([Nanos::ZERO; 3], None));
    assert!(free.stopped[Cause::Level0 as usize] > Nanos::ZERO);
    let shown: u64 = free.series.iter().map(|point| point.stopped.0).sum();
    let stopped: u64 = free.stopped.iter().map(|time| time.0).sum();
    assert_eq!(shown, stopped, "the series has all of it");
    let (stuck, _) = run(
        "--benchmarks=fillrandom --num=4000 --threads=4 --cpu_flush_byte_ps=900000 --max_write_buffer_number=2",
        9,
        Placement::Horizontal,
    );
    assert!(stuck.phases()[0].stopped[Cause::Memtables as usize] > Nanos::ZERO);
}

#[test]
fn the_writer_beside_readers_is_held_to_its_rate() {
    // Records of 100 bytes: 10 a millisecond at 1,000,000 bytes a second.
    let (lsm, _) = run(
        "--benchmarks=fillrandom,readwhilewriting --num=1500 --threads=2 --benchmark_write_rate_limit=1000000",
        10,
        Placement::Horizontal,
    );
    let [fill, beside] = lsm.phases() else { unreachable!("two benchmarks were run") };
    assert!(fill.puts.count() as f64 / fill.took().as_secs_f64() > 20_000.0, "fillrandom is not held to it");
    let rate = beside.puts.count() as f64 / beside.took().as_secs_f64();
    assert!((9_000.0..=10_200.0).contains(&rate), "{rate} puts a second beside {} gets", beside.gets.count());
}

#[test]
fn the_same_seed_repeats() {
    let flags = "--benchmarks=fillrandom,readwhilewriting --num=1500 --threads=2";
    let of = |seed| {
        let (lsm, host) = run(flags, seed, Placement::Horizontal);
        (host.clock().now(), lsm.levels(), lsm.phases().iter().map(|phase| phase.work).collect::<Vec<_>>())
    };
    assert_eq!(of(11), of(11));
    assert_ne!(of(11), of(12));
}

#[test]
fn a_full_target_ends_the_run_with_its_sentence() {
    let options = LsmOptions::parse(&format!("{SMALL} --benchmarks=fillrandom --num=100000")).expect("flags");
    let mut host = world(Placement::Horizontal, 20);
    let limits = host.target(TargetId(0)).limits();
    // A value of 84 bytes a key: 10 MB, in more tables than 20.
    let mut lsm = Lsm::new(LsmOptions { level_base_bytes: 1 << 30, ..options }, limits, &Prng::new(1));
    assert_eq!(host.run(&mut lsm, Nanos::MAX), RunEnd::Finished);
    let failure = lsm.failure().expect("there are more tables than the target keeps");
    assert!(failure.starts_with("create: ") && failure.contains("no more tables"), "{failure}");
    let counted = format!(
        "the tree has {} that are published",
        lsm.levels().iter().map(|level| level.0).sum::<usize>()
    );
    assert!(failure.contains(&counted) && failure.contains("the target keeps 20 with"), "{failure}");
}
