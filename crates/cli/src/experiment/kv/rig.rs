//! A drive with a target of keys and values, and workloads one after the other on the same records.
//!
//! Deliberately not here: which targets and workloads.

use super::super::wrapped::Wrapped;
use super::spent::Spent;
use crate::interrupt::{self, Interrupted};
use anyhow::{Context, anyhow, bail, ensure};
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, FlashCounters, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::key_value::{KvLimits, KvReply, KvRequest, KvTarget};
use ocssd_lightnvm::{Buffers, Payload, PuId, TargetId};
use ocssd_measure::storage::process_cpu;
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{MakeOf, TargetSpec};
use ocssd_workload::generator::Generator;
use ocssd_workload::generator::closed_loop::{ClosedLoop, Phase};
use ocssd_workload::results::LatencyStats;
use std::time::Instant;

/// Virtual time between two looks.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

/// A part of the zn540 preset: 8 units of 128 chunks, 3 MiB each (32 write units of 96 KiB), 3 GiB in all.
pub struct Shape {
    pub groups: u32,
    pub units_per_group: u32,
    pub chunks_per_unit: u32,
    pub chunk_sectors: u32,
}

/// A drive with its only target.
pub struct Rig {
    host: Host<Flash, VirtualClock, dyn KvTarget>,
    spent: Spent,
}

/// What a workload came to.
pub struct Outcome {
    /// Its last phase.
    pub phase: Phase,
    /// Bytes of values that were stored.
    pub stored_bytes: u64,
    /// Bytes that media wrote and read, those the targets did for themselves included.
    pub media_written_bytes: u64,
    pub media_read_bytes: u64,
    /// Reads of records, and of pages of the index, by retrieves; and retrieves.
    pub reads: u64,
    pub retrieves: u64,
    /// Processor time of the target's code; `None` where the system does not say.
    pub cpu_ns: Option<f64>,
}

impl Outcome {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.phase.operations as f64 / (self.phase.took().0 as f64 / 1e9)
    }

    /// How many of a request were answered.
    pub fn count_of(&self, name: &str) -> u64 {
        self.latency(name).map_or(0, LatencyStats::count)
    }

    /// Latencies of a request.
    pub fn latency(&self, name: &str) -> Option<&LatencyStats> {
        self.phase.measured.iter().find(|measured| measured.name == name).map(|measured| &measured.latency)
    }
}

impl Rig {
    /// The same of a kind as rows call it: "kv-block over pblk" has the option `over`.
    ///
    /// # Errors
    /// As those of [`Self::new`].
    pub fn named(shape: &Shape, kind: &str) -> anyhow::Result<Self> {
        match kind.split_once(" over ") {
            Some((kind, over)) => Self::new(shape, kind, &[("over".to_owned(), over.to_owned())]),
            None => Self::new(shape, kind, &[]),
        }
    }

    /// A fresh drive of this shape with a target, as `ocssd --target` names it, over all units.
    ///
    /// # Errors
    /// A sentence, if it does not fit or has no keys and values.
    fn new(shape: &Shape, kind: &str, options: &[(String, String)]) -> anyhow::Result<Self> {
        let mut config = presets::find("zn540").context("the preset")?.config();
        config.geometry.groups = shape.groups;
        config.geometry.pus_per_group = shape.units_per_group;
        config.geometry.chunks_per_pu = shape.chunks_per_unit;
        config.geometry.sectors_per_chunk = shape.chunk_sectors;
        config.payload = Payload::Bytes;
        let mut flash = Flash::format(config).map_err(|problems| anyhow!("{problems}"))?;
        let mut buffers = Buffers::new(flash.payload_format());
        let mut clock = VirtualClock::default();
        let mut caller =
            Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let units: Vec<PuId> = (0..shape.groups * shape.units_per_group).map(PuId).collect();
        let spec = TargetSpec { units: &units, layout: Layout::Striped, options };
        let MakeOf::KeyValue(make) = crate::kinds::find(kind).map_err(anyhow::Error::msg)?.make_of() else {
            bail!("{kind} has no keys and values")
        };
        let made = make(&mut caller, &spec).map_err(anyhow::Error::msg)?;
        let spent = Spent::default();
        let target = Wrapped::new(made.target, spent.clone());
        let mut host: Host<_, _, dyn KvTarget> = Host::new(flash, clock, buffers);
        host.add(Box::new(target));
        Ok(Self { host, spent })
    }

    /// What the target takes.
    pub fn limits(&self) -> KvLimits {
        self.host.target(TargetId(0)).limits()
    }

    fn count(&self, name: &str) -> u64 {
        let counters = self.host.target(TargetId(0)).counters();
        let found = counters.iter().find(|counter| counter.name == name).map(|counter| counter.value);
        match found {
            Some(CounterValue::Count(value) | CounterValue::Gauge(value)) => value,
            _ => 0,
        }
    }

    fn retrieve_reads(&self) -> u64 {
        self.count("retrieve_reads") + self.count("retrieve_index_reads")
    }

    /// Runs a workload with so many requests outstanding.
    ///
    /// # Errors
    /// The first request that is refused or fails, in words.
    pub fn run<G>(&mut self, generator: G, depth: usize) -> anyhow::Result<Outcome>
    where
        G: Generator<Request = KvRequest, Reply = KvReply>,
    {
        self.run_watched(generator, depth, &mut |_, _| {})
    }

    /// The same, telling at every look, and at the end, the bytes that were stored so far, and those the media wrote.
    ///
    /// # Errors
    /// As those of [`Self::run`].
    pub fn run_watched<G>(
        &mut self,
        generator: G,
        depth: usize,
        watch: &mut dyn FnMut(u64, u64),
    ) -> anyhow::Result<Outcome>
    where
        G: Generator<Request = KvRequest, Reply = KvReply>,
    {
        let mut source = ClosedLoop::new(generator, depth);
        let (before, reads, retrieves) =
            (self.host.device().counters(), self.retrieve_reads(), self.count("retrieves"));
        let sector = u64::from(self.host.device().config().geometry.sector_bytes);
        let written = |counters: &FlashCounters| counters.sectors_written + counters.sectors_copied;
        let (wall, spent, cpu) = (Instant::now(), self.spent.get(), process_cpu());
        let mut is_over = false;
        while !is_over {
            match self.host.run(&mut source, self.host.clock().now() + LOOK_EVERY) {
                RunEnd::Finished => is_over = true,
                RunEnd::Stuck => bail!("the run waits for requests that nobody has"),
                RunEnd::Stopped if interrupt::is_heard() => return Err(Interrupted.into()),
                RunEnd::Stopped => {}
            }
            let so_far = written(&self.host.device().counters()) - written(&before);
            watch(source.bytes_stored(), so_far * sector);
        }
        ensure!(source.failure().is_none(), "{}", source.failure().unwrap_or_default());
        let share = (self.spent.get() - spent).as_secs_f64() / wall.elapsed().as_secs_f64();
        let cpu = cpu.zip(process_cpu()).map(|(before, after)| after.saturating_since(before).0 as f64);
        let after = self.host.device().counters();
        let phase = source.phases().last().context("the workload asked for nothing")?;
        Ok(Outcome {
            phase: phase.clone(),
            stored_bytes: source.bytes_stored(),
            media_written_bytes: (written(&after) - written(&before)) * sector,
            media_read_bytes: (after.sectors_read - before.sectors_read) * sector,
            reads: self.retrieve_reads() - reads,
            retrieves: self.count("retrieves") - retrieves,
            cpu_ns: cpu.map(|cpu| cpu * share),
        })
    }
}

/// Percentile of latencies in microseconds; 0 without any.
pub fn percentile_us(latency: &LatencyStats, percent: f64) -> f64 {
    latency.histogram().percentile(percent).map_or(0.0, |time| time.0 as f64 / 1e3)
}
