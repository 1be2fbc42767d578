//! pblk as Linux had it on the paper's host, with a ring that users fill faster than the writer empties it, and one they do
//! not: which of the two it is decides what comes out, and the counters say it.

use super::WRITE;
use super::threads::Threads;
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockTarget, CounterValue};
use ocssd_lightnvm::{Buffers, Geometry, LbaFormat, PuId, TargetId};
use ocssd_targets::pblk::{Mode, Options, Pblk};
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig, HostCpuStats, StatsHandle};

/// 16 units that take 64 KiB each in 200 us: more than twice what one writer sends, at 16 us a command.
fn drive(chunks_per_pu: u32) -> Config {
    let mut config = presets::find("tiny").expect("a preset").config();
    let lba_format = LbaFormat::smallest(4, 4, chunks_per_pu, 256);
    config.geometry = Geometry {
        mw_cunits: 16,
        chunks_per_pu,
        lba_format,
        ..Geometry::example(4, 4, chunks_per_pu, 256, 16)
    };
    (config.media.planes, config.media.sectors_per_page) = (1, 16);
    config.media.program = vec![Nanos::from_micros(200)];
    (config.channel.command, config.link.command) = (Nanos::ZERO, Nanos::ZERO);
    config.channel.bytes_per_second = 100_000_000_000;
    (config.link.read_bytes_per_second, config.link.write_bytes_per_second) =
        (100_000_000_000, 100_000_000_000);
    config
}

/// pblk on the drive, under as many cores as there are threads.
struct Bench {
    host: Host<Flash, VirtualClock>,
    target: TargetId,
    threads: Threads,
    stats: StatsHandle,
    frames: u64,
}

impl Bench {
    fn new(chunks_per_pu: u32, cores: u32, threads: u32) -> Self {
        let mut device = Flash::format(drive(chunks_per_pu)).expect("a sound drive");
        let mut buffers = Buffers::new(device.payload_format());
        let mut clock = VirtualClock::default();
        let units: Vec<PuId> = (0..16).map(PuId).collect();
        let options = Options { mode: Mode::Faithful, over_provisioning_percent: 50, ..Options::default() };
        let mut caller =
            Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let (pblk, _) = Pblk::mount(&mut caller, &units, &options).expect("it fits");
        let mut asking = Threads::new(threads, WRITE, 1);
        asking.span = pblk.block_count();
        asking.buffers = (0..threads).map(|_| buffers.take(1)).collect();
        let frames = u64::from(pblk.capacity().buffer_units);
        let ring_bytes = frames * 16 * 4096;
        let config = HostCpuConfig { cores, ring_bytes, ..HostCpuConfig::e7_8870v3_x4() };
        let target = HostCpu::new(Box::new(pblk), config).expect("sound parameters");
        let stats = target.stats();
        let mut host: Host<_, _> = Host::new(device, clock, buffers);
        let target = host.add(Box::new(target));
        Self { host, target, threads: asking, stats, frames }
    }

    fn run(&mut self, time: Nanos) {
        let stop_at = self.host.clock().now() + time;
        let end = if self.threads.stay == 0 { RunEnd::Stuck } else { RunEnd::Stopped };
        assert_eq!(self.host.run(&mut self.threads, stop_at), end);
        self.host.target(self.target).check();
    }

    fn gauge(&self, name: &str) -> u64 {
        let counters = self.host.target(self.target).counters();
        match counters.iter().find(|counter| counter.name == name).map(|counter| counter.value) {
            Some(CounterValue::Gauge(value) | CounterValue::Count(value)) => value,
            other => panic!("{name} is {other:?}"),
        }
    }
}

/// What happened in a while.
#[derive(Debug)]
struct While {
    /// Requests a millisecond.
    rate: u64,
    retries: u64,
    writer_cpu: Nanos,
    writer_starved: Nanos,
    /// Numbers of threads that made requests.
    numbers: Vec<u32>,
}

impl Bench {
    fn watch(&mut self, millis: u64) -> While {
        let before = self.stats.read();
        self.run(Nanos::from_millis(millis));
        let now = self.stats.read();
        let requests = |stats: &HostCpuStats, number: u32| {
            stats.threads.get(usize::try_from(number).expect("small")).map_or(0, |thread| thread.requests)
        };
        let all = 0..u32::try_from(now.threads.len()).expect("few");
        While {
            rate: (now.requests - before.requests) / millis,
            retries: now.retries - before.retries,
            writer_cpu: now.writers[0].cpu_ns - before.writers[0].cpu_ns,
            writer_starved: now.writers[0].starved_ns - before.writers[0].starved_ns,
            numbers: all.filter(|&number| requests(&now, number) > requests(&before, number)).collect(),
        }
    }
}

/// The two rates of KSC'17's writes. Threads take the least numbers that are free, so as many threads as cores have one each,
/// whatever ran before; the writer has half of one, and users retry for most of their time. One core more is the writer's.
#[test]
fn the_writer_is_starved_exactly_if_every_core_has_a_thread() {
    for (threads, before) in
        [2, 4].into_iter().flat_map(|threads| [0, 3, 5, 8, 16].map(|before| (threads, before)))
    {
        for cores in [threads, threads + 1] {
            let label = format!("{threads} threads on {cores} cores after {before}");
            let mut bench = Bench::new(64, cores, threads.max(before));
            if before > 0 {
                bench.run(Nanos::from_millis(5));
                bench.threads.stay = 0;
                bench.run(Nanos::from_millis(5));
                (bench.threads.stay, bench.threads.idle) = (u32::MAX, (0..threads).collect());
            }
            // Two rings at the lower rate.
            bench.run(Nanos::from_millis(15));
            let seen = bench.watch(40);
            // A command of 64 KiB takes 16 us of a core: 32 us of half a core are 500 sectors a millisecond, which are as
            // many less what heads and tails take; of a whole core, 1000. Two threads write one each in 3.14 us.
            let (starved, rates) = match (cores - threads, threads) {
                (0, _) => (seen.writer_cpu, 425..=500),
                (_, 2) => (Nanos::ZERO, 630..=637),
                (_, _) => (Nanos::ZERO, 850..=1000),
            };
            assert_eq!(seen.numbers, (0..threads).collect::<Vec<_>>(), "{label}");
            assert!(
                seen.writer_starved.0.abs_diff(starved.0) * 100 <= seen.writer_cpu.0,
                "{label}: {seen:?}"
            );
            assert!(rates.contains(&seen.rate), "{label}: {seen:?}");
            let is_full = bench.gauge("buffer_unwritten_units") + 2 >= bench.frames;
            // Two threads ask for hardly less than a writer with a core of its own sends, so some of them may retry.
            let may_fill = threads > 2 || cores == threads;
            // Two threads ask for 637, a third more than comes out: they find the ring full now and then, four find it full.
            assert!(!may_fill || threads == 2 || (is_full && seen.retries > 20_000), "{label}: {seen:?}");
            assert!(!may_fill || seen.retries > 2_000, "{label}: {seen:?}");
            assert!(may_fill || seen.retries < 1000, "{label}: {seen:?}");
        }
    }
}

#[test]
fn a_full_ring_goes_on_for_all_while_garbage_is_collected() {
    let (threads, seed) = (8, 11);
    let mut bench = Bench::new(30, threads, threads);
    bench.threads.anywhere = Some(Prng::new(seed));
    let is_collecting = |bench: &Bench| bench.gauge("gc_victims") > 0;
    while !is_collecting(&bench) {
        bench.run(Nanos::from_millis(20));
    }
    let before = bench.stats.read();
    let mut ends_full = 0;
    let windows: Vec<While> = (0..15)
        .map(|_| {
            let seen = bench.watch(40);
            ends_full += u32::from(bench.gauge("buffer_unwritten_units") * 4 >= bench.frames * 3);
            seen
        })
        .collect();
    // Where free lines get few, the limiter takes some of the ring from users for a while.
    assert!(ends_full >= 13, "seed {seed}: the ring was full at {ends_full} of 15 ends");
    let stats = bench.stats.read();
    let written = stats.requests - before.requests;
    assert!(written > 20 * bench.frames * 16, "seed {seed}: {written} sectors, not twenty rings");
    assert!(bench.gauge("gc_victims") > 20, "seed {seed}: {} victims", bench.gauge("gc_victims"));
    // Collection comes in bursts: users have half of the mean while it does.
    let mean = written / (15 * 40);
    for seen in &windows {
        assert!(
            seen.rate * 3 >= mean && seen.writer_starved == seen.writer_cpu,
            "seed {seed}, mean {mean}: {seen:?}"
        );
        assert!(seen.retries > 1000 * seen.rate, "seed {seed}: everybody retries: {seen:?}");
    }
    // The writer shares the lowest core as a rule, whose thread comes back later when many places are free at once.
    let shares = || stats.threads.iter().zip(&before.threads).map(|(now, then)| now.requests - then.requests);
    let (least, most) = (shares().min().expect("some"), shares().max().expect("some"));
    assert!(least * 2 > most, "seed {seed}: {:?}", shares().collect::<Vec<_>>());
    assert!(
        shares().skip(1).all(|share| share * 50 >= most * 49),
        "seed {seed}: {:?}",
        shares().collect::<Vec<_>>()
    );
}
