//! A drive like a ZN540 with zones, in virtual time, and streams of requests that go on side by side.
//!
//! Deliberately not here: what is asked of it.

use crate::interrupt::{self, Interrupted};
use anyhow::{Context, anyhow, bail, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::CounterValue;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{
    ZoneAction, ZoneGeometry, ZoneScope, ZonedOp, ZonedReply, ZonedRequest, ZonedTarget,
};
use ocssd_lightnvm::{Buffers, Geometry, PuId, Source, Tag, TargetId};
use ocssd_targets::zns::{Options, Zns};
use ocssd_workload::results::LatencyStats;
use std::collections::BTreeMap;

/// Sectors of a chunk: 32 of them are the 1,077 MiB that a zone of the ZN540 holds.
pub const CHUNK_SECTORS: u32 = 8_616;
/// What the ZN540 writes, 1,172 MiB/s or 1,229 MB/s (fitted: the program time of NVMeVirt's model would allow five times as much).
const WRITE_BYTES_PER_SECOND: u64 = 1_172 << 20;
/// Blocks of a write: a write unit.
pub const WRITE_BLOCKS: u32 = 24;
/// Blocks of a read: 8 KiB, as measured on the ZN540.
pub const READ_BLOCKS: u32 = 2;
/// Virtual time between two looks.
const LOOK_EVERY: Nanos = Nanos::from_millis(1);

/// What a stream does.
pub enum Does {
    /// Writes so many blocks of each of these zones, one after the other.
    Write { zones: Vec<u32>, blocks: u64 },
    /// Reads anywhere in the first blocks of a zone.
    Read { zone: u32, blocks: u64 },
    /// Does this to each of these zones.
    Manage { zones: Vec<u32>, action: ZoneAction },
}

/// A stream: so many requests outstanding, each answer measured.
pub struct Stream {
    does: Does,
    depth: u32,
    outstanding: u32,
    /// Blocks written of the first of its zones.
    written: u64,
    /// How long its requests took.
    pub latency: LatencyStats,
    /// Blocks that were answered.
    pub blocks: u64,
}

impl Stream {
    /// A stream with `depth` requests outstanding.
    pub fn new(does: Does, depth: u32) -> Self {
        Self { does, depth, outstanding: 0, written: 0, latency: LatencyStats::default(), blocks: 0 }
    }

    /// Percentile of what its requests took, in microseconds; 0 without any.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.latency.histogram().percentile(percent).map_or(0.0, |time| time.0 as f64 / 1e3)
    }

    /// The mean, in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.latency.mean_ns() / 1e3
    }

    /// The next request: what, at which block, and how many.
    fn next(&mut self, geometry: &ZoneGeometry, prng: &mut Prng) -> Option<(ZonedOp, u64, u32)> {
        if self.outstanding == self.depth {
            return None;
        }
        match &mut self.does {
            Does::Write { zones, blocks } => {
                let zone = *zones.first()?;
                let count = (*blocks - self.written).min(u64::from(WRITE_BLOCKS));
                let block = geometry.start_of(zone) + self.written;
                self.written += count;
                if self.written == *blocks {
                    zones.remove(0);
                    self.written = 0;
                }
                let op = ZonedOp::Write { durability: Durability::AtFlush };
                Some((op, block, u32::try_from(count).expect("a write unit")))
            }
            Does::Read { zone, blocks } => {
                let places = *blocks / u64::from(READ_BLOCKS);
                let block = geometry.start_of(*zone) + prng.below(places) * u64::from(READ_BLOCKS);
                Some((ZonedOp::Read, block, READ_BLOCKS))
            }
            Does::Manage { zones, action } => {
                let zone = zones.pop()?;
                let op = ZonedOp::Manage { action: *action, scope: ZoneScope::One };
                Some((op, geometry.start_of(zone), 0))
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_empty = match &self.does {
            Does::Write { zones, .. } | Does::Manage { zones, .. } => zones.is_empty(),
            Does::Read { .. } => false,
        };
        is_empty && self.outstanding == 0
    }
}

struct InFlight {
    stream: usize,
    made: Nanos,
    request: ZonedRequest,
}

/// Streams as the source of a host's only target.
struct Streams<'a> {
    streams: &'a mut [Stream],
    geometry: ZoneGeometry,
    prng: Prng,
    in_flight: BTreeMap<u32, InFlight>,
    refused: Option<ZonedRequest>,
    tag: u32,
    turn: usize,
    is_stopped: bool,
    failed: Option<&'static str>,
}

impl Streams<'_> {
    /// All that end by themselves have ended.
    fn are_over(&self) -> bool {
        let ends = |stream: &&Stream| !matches!(stream.does, Does::Read { .. });
        self.streams.iter().filter(ends).all(Stream::is_over)
    }
}

impl Source<dyn ZonedTarget> for Streams<'_> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, ZonedRequest)> {
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        if self.is_stopped {
            return None;
        }
        for _ in 0..self.streams.len() {
            self.turn = (self.turn + 1) % self.streams.len();
            let stream = &mut self.streams[self.turn];
            let Some((op, block, count)) = stream.next(&self.geometry, &mut self.prng) else { continue };
            stream.outstanding += 1;
            self.tag += 1;
            let buffer = (count > 0).then(|| buffers.take(count));
            let request = ZonedRequest { tag: Tag(self.tag), op, block, count, buffer };
            self.in_flight.insert(self.tag, InFlight { stream: self.turn, made: now, request });
            return Some((TargetId(0), request));
        }
        None
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: ZonedRequest) {
        self.refused = Some(request);
    }

    fn on_reply(&mut self, now: Nanos, _: TargetId, reply: ZonedReply, buffers: &mut Buffers) {
        let InFlight { stream, made, request } =
            self.in_flight.remove(&reply.tag.0).expect("a reply answers a request");
        if !reply.status.is_success() {
            self.failed = Some(reply.status.name());
        }
        let stream = &mut self.streams[stream];
        stream.outstanding -= 1;
        stream.latency.record(now.saturating_since(made));
        stream.blocks += u64::from(request.count);
        if let Some(buffer) = request.buffer {
            buffers.give_back(buffer);
        }
    }

    fn is_finished(&self) -> bool {
        let reads = self.streams.iter().any(|stream| matches!(stream.does, Does::Read { .. }));
        let is_over = self.is_stopped || !reads && self.are_over();
        self.in_flight.is_empty() && self.refused.is_none() && is_over
    }
}

/// When a run ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this time, or when all streams that end have ended, if that is later; without streams of reads, when they have.
    After(Nanos),
    /// Once all streams that end have ended, and no chunk is padded any more.
    Padded,
}

/// The drive with its zones.
pub struct Rig {
    host: Host<Flash, VirtualClock, dyn ZonedTarget>,
    /// Its zones.
    pub geometry: ZoneGeometry,
    seed: u64,
}

impl Rig {
    /// A fresh drive of so many chunks a unit, with zones of these options.
    ///
    /// # Errors
    /// A sentence, if it cannot carry them.
    pub fn new(chunks: u32, options: &[(&str, &str)], seed: u64) -> anyhow::Result<Self> {
        let mut config = presets::find("zn540").context("the preset")?.config();
        let Geometry { groups, pus_per_group, ws_opt, mw_cunits, times, .. } = config.geometry;
        let shape = Geometry::example(groups, pus_per_group, chunks, CHUNK_SECTORS, ws_opt);
        config.geometry = Geometry { mw_cunits, times, ..shape };
        config.link.write_bytes_per_second = WRITE_BYTES_PER_SECOND;
        let units = config.geometry.groups * config.geometry.pus_per_group;
        let units: Vec<PuId> = (0..units).map(PuId).collect();
        let mut flash = Flash::format(config).map_err(|problems| anyhow!("{problems}"))?;
        let mut zns = Options::default();
        for (name, value) in options {
            zns.set(name, value).map_err(anyhow::Error::msg)?;
        }
        let mut buffers = Buffers::new(flash.payload_format());
        let mut clock = VirtualClock::default();
        let mut caller =
            Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        let (target, _) = Zns::mount(&mut caller, &units, &zns).map_err(|error| anyhow!("{error}"))?;
        let geometry = target.zone_geometry();
        let mut host: Host<Flash, VirtualClock, dyn ZonedTarget> = Host::new(flash, clock, buffers);
        host.add(Box::new(target));
        Ok(Self { host, geometry, seed })
    }

    /// Runs streams side by side; how long that took.
    ///
    /// # Errors
    /// A sentence, if a request failed or was lost, or a signal ended it.
    pub fn run(&mut self, streams: &mut [Stream], until: Until) -> anyhow::Result<Nanos> {
        let began = self.host.clock().now();
        let mut source = Streams {
            streams,
            geometry: self.geometry,
            prng: Prng::new(self.seed).split("streams"),
            in_flight: BTreeMap::new(),
            refused: None,
            tag: 0,
            turn: 0,
            is_stopped: false,
            failed: None,
        };
        loop {
            let now = self.host.clock().now();
            let is_time = match until {
                Until::After(time) => now.saturating_since(began) >= time,
                Until::Padded => true,
            };
            let is_padded = until != Until::Padded || self.counter("filling_chunks") == 0;
            // Nothing is padded before the first look.
            source.is_stopped |= now > began && is_time && is_padded && source.are_over();
            match self.host.run(&mut source, now + LOOK_EVERY) {
                RunEnd::Finished => break,
                RunEnd::Stopped => {}
                RunEnd::Stuck => bail!("the run waits for requests that nobody has"),
            }
            if interrupt::is_heard() {
                return Err(Interrupted.into());
            }
        }
        ensure!(source.failed.is_none(), "a request failed: {}", source.failed.unwrap_or_default());
        Ok(self.host.clock().now().saturating_since(began))
    }

    /// Writes so many blocks of each of these zones, and waits until nothing goes on.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn fill(&mut self, zones: Vec<u32>, blocks: u64) -> anyhow::Result<()> {
        if blocks > 0 {
            self.run(&mut [Stream::new(Does::Write { zones, blocks }, 64)], Until::After(Nanos::ZERO))?;
        }
        self.host.settle();
        Ok(())
    }

    /// A counter or gauge of the target; 0 if it has none of this name.
    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.host.target(TargetId(0)).counters();
        match counters.iter().find(|counter| counter.name == name).map(|counter| counter.value) {
            Some(CounterValue::Count(value) | CounterValue::Gauge(value)) => value,
            Some(CounterValue::Ratio(_)) | None => 0,
        }
    }

    /// Blocks of a part of a zone's capacity, in percent: whole write units.
    pub fn part(&self, percent: u32) -> u64 {
        let unit = u64::from(WRITE_BLOCKS);
        self.geometry.capacity_blocks * u64::from(percent) / 100 / unit * unit
    }
}

/// Megabytes of so many blocks of 4 KiB.
pub fn megabytes(blocks: u64) -> f64 {
    blocks as f64 * 4_096.0 / 1e6
}
