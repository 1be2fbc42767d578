//! Zones that are written in order have the bandwidth of the raw drive: one over all units, and eight over a part of them each.

use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{BufId, Buffers, Source, Tag, TargetId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry;
use std::collections::BTreeMap;

/// Blocks of a write: a write unit of the drive.
const BLOCKS: u32 = 16;
/// Writes outstanding, all streams together: four for each unit.
const DEPTH: usize = 64;
/// Part of the zones that is written; those of the raw drive are a chunk of each unit.
const WRITTEN_PERCENT: u64 = 80;

/// Streams that write a part of the blocks each, in order and by turns; then a flush.
struct Streams {
    /// Where each goes on, and where it ends.
    parts: Vec<(u64, u64)>,
    turn: usize,
    /// Buffers of writes under way, and which stream each is of.
    under_way: BTreeMap<u32, (usize, BufId)>,
    tag: u32,
    refused: Option<BlockRequest>,
    is_flushed: bool,
    flush: Option<u32>,
}

impl Streams {
    /// So many streams of as many zones each.
    fn new(count: u64, zones: Zones) -> Self {
        let each = zones.count * WRITTEN_PERCENT / 100 / count * zones.blocks;
        assert!(each > 0, "{count} streams of {zones:?}");
        let parts = (0..count).map(|nth| (nth * each, (nth + 1) * each)).collect();
        Self {
            parts,
            turn: 0,
            under_way: BTreeMap::new(),
            tag: 0,
            refused: None,
            is_flushed: false,
            flush: None,
        }
    }

    /// The next write of a stream that has not its share of the depth outstanding.
    fn next_write(&mut self) -> Option<(usize, u64)> {
        let share = DEPTH / self.parts.len();
        for _ in 0..self.parts.len() {
            self.turn = (self.turn + 1) % self.parts.len();
            let (turn, (next, end)) = (self.turn, &mut self.parts[self.turn]);
            let outstanding = self.under_way.values().filter(|&&(stream, _)| stream == turn).count();
            if outstanding < share && *next < *end {
                *next += u64::from(BLOCKS);
                return Some((turn, *next - u64::from(BLOCKS)));
            }
        }
        None
    }
}

impl Source<dyn BlockTarget> for Streams {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        let tag = Tag(self.tag);
        if let Some((stream, block)) = self.next_write() {
            let buffer = buffers.take(BLOCKS);
            self.under_way.insert(self.tag, (stream, buffer));
            self.tag += 1;
            let op = BlockOp::Write { fua: false };
            let request = BlockRequest { tag, op, block, count: BLOCKS, buffer: Some(buffer) };
            return Some((TargetId(0), request));
        }
        if !self.under_way.is_empty() || self.flush.is_some() {
            return None;
        }
        self.flush = Some(self.tag);
        let request = BlockRequest { tag, op: BlockOp::Flush, block: 0, count: 0, buffer: None };
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: BlockRequest) {
        self.refused = Some(request);
    }

    fn on_reply(&mut self, _: Nanos, _: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        match self.under_way.remove(&reply.tag.0) {
            Some((_, buffer)) => buffers.give_back(buffer),
            None => self.is_flushed = true,
        }
    }

    fn is_finished(&self) -> bool {
        self.is_flushed
    }
}

/// Blocks a second of virtual time, written by so many streams through a target of 16 units on four channels.
fn blocks_per_second(target: &str, options: &[(&str, &str)], streams: u64) -> f64 {
    let mut config = presets::find("westlake").expect("a preset").config();
    (config.geometry.groups, config.geometry.pus_per_group) = (4, 4);
    (config.geometry.chunks_per_pu, config.geometry.sectors_per_chunk) = (48, 1024);
    let mut device = Flash::format(config).expect("a sound preset");
    let units = UnitSelection::All.resolve(&device.config().geometry).expect("every unit");
    let options: Vec<(String, String)> =
        options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (mut buffers, mut clock) = (Buffers::new(device.payload_format()), VirtualClock::default());
    let spec = registry::TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let mut caller = Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let made = registry::find(target).and_then(|kind| kind.make(&mut caller, &spec)).expect("it fits");
    let zones = made.target.zones().expect("both have zones");
    let mut host: Host<Flash, VirtualClock> = Host::new(device, clock, buffers);
    host.add(made.target);
    let began = host.clock().now();
    let mut source = Streams::new(streams, zones);
    let written: u64 = source.parts.iter().map(|(next, end)| end - next).sum();
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished, "writes are lost");
    let took = host.clock().now().saturating_since(began);
    written as f64 / took.as_secs_f64()
}

#[test]
fn one_wide_zone_and_eight_narrow_ones_have_the_bandwidth_of_the_raw_drive() {
    let raw = blocks_per_second("linear", &[], 1);
    let narrow = [("width", "2"), ("zone_chunks", "16")];
    for (name, options, streams) in [("one wide", &[][..], 1), ("eight narrow", &narrow[..], 8)] {
        let zones = blocks_per_second("zns", options, streams);
        let part = zones / raw;
        println!("{name}: {zones:.0} blocks a second, {raw:.0} of the raw drive: {:.2} %", part * 100.0);
        assert!(part >= 0.99, "{name}: {zones:.0} blocks a second of {raw:.0}");
    }
}
