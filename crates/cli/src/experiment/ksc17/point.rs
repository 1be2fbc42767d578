//! One cell of the paper's tables: a drive, pblk as Linux had it, a host with as many cores as threads.

use super::super::lab::Size;
use super::super::world::{Instance, World};
use anyhow::Context;
use ocssd_base::Nanos;
use ocssd_flash::{Config, presets};
use ocssd_lightnvm::Geometry;
use ocssd_report::ksc::Pattern;
use ocssd_workload::host_cpu::{HostCpuConfig, HostCpuStats, Waiting};
use ocssd_workload::results::JobResult;

/// Bytes of the region all threads share: what fits the paper's reads (experiments/ksc17-t2, R4).
const REGION: u64 = 1 << 30;

/// Chunks of a unit of a drive that is to be aged: 28 lines of 2 GiB (chosen: all of it is written in a minute of real time,
/// and chunks keep their size).
const AGED_CHUNKS: u32 = 28;
/// Its over-provisioning: what pblk keeps in reserve does not fit in 11 % of 28 lines (chosen, near the smallest it takes).
const AGED_SPARE_PERCENT: u32 = 30;

/// What is changed against the paper's set-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Factor {
    /// Nothing.
    #[default]
    Baseline,
    /// The host costs nothing.
    NoHost,
    /// Writers without room sleep and are woken in order.
    FairQueue,
    /// Spinners do not slow down what shares their core.
    NoStarvation,
    /// Sockets do not matter.
    OneSocket,
    /// It does not matter whether the ring fits a socket's cache.
    NoResidency,
    /// The ring lock makes nobody wait.
    NoLock,
    /// Four writer threads.
    FourWriters,
    /// One core more than threads.
    OneCoreMore,
    /// An erase takes no time to speak of.
    FastErase,
    /// The drive was filled and half of it overwritten, so garbage is collected all the time (H3).
    Aged,
    /// The same, and the host costs nothing: what age does alone.
    AgedNoHost,
    /// Reads take the map's lock, and longer for each socket beyond the first.
    SocketsOfReads,
    /// Waiting in order, and four writers.
    FairFourWriters,
    /// The improved mode, one stream, waiting in order and four writers.
    Improved,
}

impl Factor {
    /// Its name in the rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::NoHost => "no_host",
            Self::FairQueue => "fair_queue",
            Self::NoStarvation => "no_starvation",
            Self::OneSocket => "one_socket",
            Self::NoResidency => "no_residency",
            Self::NoLock => "no_lock",
            Self::FourWriters => "four_writers",
            Self::OneCoreMore => "one_core_more",
            Self::FastErase => "fast_erase",
            Self::Aged => "aged",
            Self::AgedNoHost => "aged_no_host",
            Self::SocketsOfReads => "sockets_of_reads",
            Self::FairFourWriters => "fair_four_writers",
            Self::Improved => "improved",
        }
    }

    const fn is_aged(self) -> bool {
        matches!(self, Self::Aged | Self::AgedNoHost)
    }

    fn host(self, buffer_mib: u32, threads: u32) -> Option<HostCpuConfig> {
        let mut host = HostCpuConfig {
            cores: threads,
            ring_bytes: u64::from(buffer_mib) << 20,
            ..HostCpuConfig::e7_8870v3_x4()
        };
        match self {
            Self::Baseline | Self::FastErase | Self::Aged => {}
            Self::NoHost | Self::AgedNoHost => return None,
            Self::FairQueue => host.waiting = Waiting::Fair,
            Self::NoStarvation => host.spinner_starvation = false,
            Self::OneSocket => host.cross_socket = false,
            Self::NoResidency => host.cache_residency = false,
            Self::NoLock => host.lock = false,
            Self::FourWriters => host.writers = 4,
            Self::OneCoreMore => host.cores += 1,
            Self::SocketsOfReads => {
                (host.map_lock_page_ns, host.read_socket_ns) = (MAP_LOCK_PAGE, SOCKET_OF_READS);
            }
            Self::FairFourWriters | Self::Improved => {
                host.waiting = Waiting::Fair;
                host.writers = 4;
            }
        }
        Some(host)
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Size of the write buffer.
    pub buffer_mib: u32,
    /// Threads, each a job at depth 1.
    pub threads: u32,
    /// What is different.
    pub factor: Factor,
    /// Whether reads are measured.
    pub reads: bool,
}

/// Units of a channel: table 1 of the paper has 16.
const UNITS: u32 = 16;
/// The same for reads. Beyond 18 threads the paper's reads wait as for 64 units (a fit), and the author's own report of
/// that month shows channel 7, unit 7 as the last address of his drive.
const UNITS_OF_READS: u32 = 8;
/// What a read that sleeps takes beyond the model's host, fitted: the paper's reads from media take 89 to 102 us, and the
/// drive and FAST'17's host 78.
const BLOCKING_READ: Nanos = Nanos::from_micros(12);

/// What the map's lock is held for a page (guess: as long as the ring's for a test and a place).
const MAP_LOCK_PAGE: Nanos = Nanos(110);
/// What a read takes longer for each socket beyond the first, fitted to the reads of 36 threads, which are two sockets: there the
/// paper's take 36 to 41 us longer than the model's at the same rate, with 64 to 256 MiB.
const SOCKET_OF_READS: Nanos = Nanos::from_micros(37);

/// Table 1 of the paper; everything else as Westlake.
fn drive(factor: Factor, units: u32) -> anyhow::Result<Config> {
    let mut config = presets::find("westlake").context("no preset of the paper's drive")?.config();
    let whole = config.geometry.clone();
    let chunks = if factor.is_aged() { AGED_CHUNKS } else { whole.chunks_per_pu };
    config.geometry = Geometry {
        mw_cunits: whole.mw_cunits,
        capabilities: whole.capabilities,
        times: whole.times,
        ..Geometry::example(8, units, chunks, whole.sectors_per_chunk, whole.ws_opt)
    };
    if factor == Factor::FastErase {
        config.media.erase = Nanos::from_micros(1);
    }
    Ok(config)
}

impl Cell {
    /// A drive with its target.
    ///
    /// # Errors
    /// If the buffer does not fit the mode.
    pub fn world(&self) -> anyhow::Result<World> {
        let bytes = u64::from(self.buffer_mib) << 20;
        let units = if self.reads { UNITS_OF_READS } else { UNITS };
        let mut instance = Instance::new("pblk", 0..8 * units).with("write_buffer_bytes", bytes);
        instance = if self.factor == Factor::Improved {
            instance.with("mode", "improved").with("classification", "none")
        } else {
            instance.with("mode", "faithful").with("small_write_buffer", true)
        };
        if self.factor.is_aged() {
            instance = instance.with("over_provisioning_percent", AGED_SPARE_PERCENT);
        }
        instance.host = self.factor.host(self.buffer_mib, self.threads).map(|host| HostCpuConfig {
            wake_up_ns: if self.reads { host.wake_up_ns + BLOCKING_READ } else { host.wake_up_ns },
            ..host
        });
        World::new(drive(self.factor, units)?, &[instance])
    }

    /// Writes the region once in order, then three times as much at random, so that what is in the buffer lies anywhere in it,
    /// and what is on media in no order. `seed` must be another than that of the reads: a reader with the writer's random
    /// numbers would follow the media, and find pages sensed.
    pub fn prepare(&self, world: &mut World, seed: u64) -> anyhow::Result<()> {
        world.run(&job("fill", "write", REGION), &[0], seed)?;
        world.run(&job("mix", "randwrite", 3 * REGION), &[0], seed)?;
        Ok(())
    }

    /// Writes more than any buffer holds, so that a line is open and its heads are written. A drive that is to be aged is
    /// filled before, and as much as half of it overwritten at random.
    pub fn prime(&self, world: &mut World, seed: u64) -> anyhow::Result<()> {
        if self.factor.is_aged() {
            let bytes = world.blocks(0) * 4096;
            for (rw, block, amount) in [("write", "256k", bytes), ("randwrite", "64k", bytes / 2)] {
                let text = format!(
                    "[age]\nioengine=libaio\ndirect=1\nnorandommap\nrw={rw}\nbs={block}\niodepth=16\nio_size={amount}\n"
                );
                world.run(&text, &[0], seed)?;
            }
        }
        world.run(&job("prime", "write", REGION / 2), &[0], seed).map(drop)
    }

    /// Runs the threads; throughput in MB/s and what was counted.
    pub fn measure(
        &self,
        world: &mut World,
        pattern: Pattern,
        is_read: bool,
        size: Size,
        seed: u64,
    ) -> anyhow::Result<(f64, String)> {
        let threads = u64::from(self.threads);
        let block = REGION / 4096;
        let slice = block / threads * 4096;
        let rw = match (pattern, is_read) {
            (Pattern::Sequential, true) => "read",
            (Pattern::Random, true) => "randread",
            (Pattern::Sequential, false) => "write",
            (Pattern::Random, false) => "randwrite",
        };
        // In order, each thread has a part of its own: threads at the same address would read one page and write one place.
        let place = match pattern {
            Pattern::Sequential => format!("size={slice}\noffset_increment={slice}"),
            Pattern::Random => format!("size={REGION}"),
        };
        let time = match (is_read, size) {
            (true, Size::Small) => "ramp_time=200ms\nruntime=20ms",
            (true, Size::Full) => "ramp_time=200ms\nruntime=300ms",
            (false, Size::Small) => "ramp_time=60ms\nruntime=60ms",
            // The limiter that Linux had lets users wait until a whole line is collected: a time with several of these waits.
            (false, Size::Full) if self.factor.is_aged() => "ramp_time=200ms\nruntime=10s",
            (false, Size::Full) => "ramp_time=200ms\nruntime=300ms",
        };
        let text = format!(
            "[threads]\nioengine=sync\ndirect=1\nnorandommap\nrw={rw}\nbs=4k\nnumjobs={threads}\n{place}\n{time}\ntime_based\n"
        );
        let before = world.cpu(0).map(|cpu| cpu.read());
        let collected = |world: &World| world.counter(0, "gc_written_sectors").unwrap_or(0);
        let collected_before = collected(world);
        let hits = world.flash().media.register_hits;
        let results = world.run(&text, &[0], seed)?;
        let mut note = counted(world, before.as_ref());
        note += &format!("; found in a register {}", world.flash().media.register_hits - hits);
        note += &format!(
            "; sectors collected {}, lines free {}",
            collected(world) - collected_before,
            world.counter(0, "lines_free").unwrap_or(0)
        );
        Ok((megabytes(&results, is_read), note))
    }
}

fn job(name: &str, rw: &str, bytes: u64) -> String {
    let block = if rw == "write" { "64k" } else { "4k" };
    format!(
        "[{name}]\nioengine=libaio\ndirect=1\nnorandommap\nrw={rw}\nbs={block}\niodepth=8\nsize={REGION}\nio_size={bytes}\n"
    )
}

/// Of all threads together, in MB/s.
fn megabytes(results: &[JobResult], is_read: bool) -> f64 {
    let one = |job: &JobResult| {
        let direction = if is_read { &job.read } else { &job.write };
        direction.io_bytes as f64 / direction.runtime.as_secs_f64() / 1e6
    };
    results.iter().map(one).sum()
}

fn counted(world: &World, before: Option<&HostCpuStats>) -> String {
    let (Some(cpu), Some(before)) = (world.cpu(0), before) else { return "host free".to_owned() };
    let now = cpu.read();
    let requests = (now.requests - before.requests).max(1);
    let each = |now: Nanos, before: Nanos| (now.0 - before.0) / requests;
    let writer = |stats: &HostCpuStats| {
        stats
            .writers
            .iter()
            .fold((0, 0), |(cpu, starved), one| (cpu + one.cpu_ns.0, starved + one.starved_ns.0))
    };
    let ((cpu_now, starved_now), (cpu_before, starved_before)) = (writer(&now), writer(before));
    format!(
        "per request: lock wait {} ns, spin {} ns; spun {} %; retries {}; writer ms of CPU {}, starved {}",
        each(now.lock_wait_ns, before.lock_wait_ns),
        each(now.spin_ns, before.spin_ns),
        (now.spun - before.spun) * 100 / requests,
        now.retries - before.retries,
        (cpu_now - cpu_before) / 1_000_000,
        (starved_now - starved_before) / 1_000_000,
    )
}
