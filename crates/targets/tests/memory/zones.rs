//! What the host keeps of each zone and each chunk of `zns`, beside buffers: counted by the allocator, as the difference between
//! drives of which one has more chunks and no other buffers.
//!
//! Deliberately not here: extensions and the wear of chunks, which cost memory only where they are used.

use crate::bytes_held;
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{
    ZoneAction, ZoneGeometry, ZoneScope, ZoneState, ZonedOp, ZonedReply, ZonedRequest, ZonedTarget,
};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{BufId, Buffers, Source, Tag, TargetId};
use ocssd_targets::zns::{Options, Zns};

/// Bytes of a zone: its entry in the table.
const ZONE_BYTES: f64 = 56.0;
/// Bytes of a chunk that a zone has: which one it is.
const COLUMN_BYTES: f64 = 4.0;
/// Bytes of any chunk: what it is for, and its place among the free ones.
const SLOT_BYTES: f64 = 4.0;
/// Bytes of a zone with several segments: how wide they are, and how far apart.
const REGULAR_BYTES: f64 = 4.0;
/// Bytes beside, at most: notes of the chunks that the log and checkpoints have, of which the larger instance has more.
const NOTES_BYTES: f64 = 2048.0;
/// What a zone and a chunk may cost.
const ZONE_AIM: f64 = 64.0;
const CHUNK_AIM: f64 = 8.0;

/// Writes zones to their end, a part of a zone at a time, one after the other.
struct Fill {
    geometry: ZoneGeometry,
    zone: u32,
    written: u64,
    buffer: BufId,
    is_out: bool,
}

/// Blocks of a write: a write unit of the drive.
const BLOCKS: u32 = 16;

impl Source<dyn ZonedTarget> for Fill {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, ZonedRequest)> {
        if self.is_out || self.zone == self.geometry.zone_count {
            return None;
        }
        let block = self.geometry.start_of(self.zone) + self.written;
        self.is_out = true;
        let op = ZonedOp::Write { durability: Durability::AtFlush };
        let request = ZonedRequest { tag: Tag(0), op, block, count: BLOCKS, buffer: Some(self.buffer) };
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: ZonedRequest) {
        panic!("one request at a time is taken: {request:?}");
    }

    fn on_reply(&mut self, _: Nanos, _: TargetId, reply: ZonedReply, _: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        self.is_out = false;
        self.written += u64::from(BLOCKS);
        if self.written == self.geometry.capacity_blocks {
            (self.zone, self.written) = (self.zone + 1, 0);
        }
    }

    fn is_finished(&self) -> bool {
        self.zone == self.geometry.zone_count && !self.is_out
    }
}

/// Zones, chunks, and bytes of target and buffers, on 8 units of so many chunks, all of whose zones are full.
fn cost(chunks: u32, options: &[(&str, &str)]) -> (f64, f64, f64) {
    let mut config = presets::find("westlake").expect("a preset").config();
    (config.geometry.groups, config.geometry.pus_per_group) = (4, 2);
    (config.geometry.chunks_per_pu, config.geometry.sectors_per_chunk) = (chunks, 256);
    let mut flash = Flash::format(config).expect("a sound preset");
    let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
    let mut chosen = Options::default();
    for (name, value) in options {
        chosen.set(name, value).expect("a sound option");
    }
    let (mut buffers, mut clock) = (Buffers::new(flash.payload_format()), VirtualClock::default());
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let (target, _) = Zns::mount(&mut caller, &units, &chosen).expect("it fits");
    let geometry = target.zone_geometry();
    let mut host: Host<Flash, VirtualClock, dyn ZonedTarget> = Host::new(flash, clock, buffers);
    host.add(Box::new(target));
    let buffer = host.buffers_mut().take(BLOCKS);
    let mut fill = Fill { geometry, zone: 0, written: 0, buffer, is_out: false };
    assert_eq!(host.run(&mut fill, Nanos::MAX), RunEnd::Finished, "writes are lost");
    // What is full holds no buffer, and nobody writes it, once all is on media.
    let op = ZonedOp::Manage { action: ZoneAction::Close, scope: ZoneScope::All };
    let end = host.ask(ZonedRequest { tag: Tag(1), op, block: 0, count: 0, buffer: None });
    assert!(end.status.is_success(), "{end:?}");
    host.settle();
    let is_full = |zone: u32| host.target(TargetId(0)).zone(zone).state == ZoneState::Full;
    assert!((0..geometry.zone_count).all(is_full), "every zone was written to its end");
    let before = bytes_held();
    let flash = host.into_device();
    let bytes = before - bytes_held();
    drop(flash);
    let bytes = f64::from(i32::try_from(bytes).expect("a few megabytes"));
    (f64::from(geometry.zone_count), f64::from(8 * chunks), bytes)
}

/// Asserts that what more zones and chunks cost is within the aim, and what their parts come to; `segments` are those of a zone.
fn assert_cost(name: &str, options: &[(&str, &str)], (zone_chunks, segments): (f64, u32)) {
    // So many that a mount looks at chunks with all its buffers on both.
    let (few, many) = (cost(512, options), cost(1024, options));
    let (zones, chunks, bytes) = (many.0 - few.0, many.1 - few.1, many.2 - few.2);
    let regular = if segments > 1 { REGULAR_BYTES } else { 0.0 };
    let table = zones * (ZONE_BYTES + regular + zone_chunks * COLUMN_BYTES);
    let aim = zones * ZONE_AIM + chunks * CHUNK_AIM;
    println!(
        "{name}: {bytes} bytes for {zones} zones and {chunks} chunks more, {:.1} a chunk; the aim is {:.1}",
        bytes / chunks,
        aim / chunks
    );
    assert!(bytes <= aim, "{name}: {bytes} bytes, where {aim} are allowed");
    let told = table + chunks * SLOT_BYTES + NOTES_BYTES;
    assert!(bytes <= told, "{name}: {bytes} bytes, where {told} are told");
    assert!(bytes >= table, "{name}: {bytes} bytes hold no table");
}

#[test]
fn a_zone_and_a_chunk_cost_what_the_documentation_says() {
    assert_cost("one chunk of each unit", &[], (8.0, 1));
    assert_cost("one unit, a chunk", &[("width", "1")], (1.0, 1));
    assert_cost("one unit, 16 chunks", &[("width", "1"), ("zone_chunks", "16")], (16.0, 16));
}
