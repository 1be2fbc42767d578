//! A target of zones on a small drive in virtual time, asked one request at a time.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, Requests, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::interface::zoned::{
    ZoneAction, ZoneDescriptor, ZoneExtension, ZoneGeometry, ZoneScope, ZoneState, ZonedOp, ZonedReply,
    ZonedRequest, ZonedTarget,
};
use ocssd_lightnvm::interface::{Durability, List};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, Status, Tag, TargetId};
use ocssd_targets::zns::{Options, Zns};

/// The only target.
const TARGET: TargetId = TargetId(0);

/// Units of the drive.
pub const UNITS: u32 = 2;

/// A small drive on which what was written last cannot be read at once.
pub fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(1, UNITS, 60, 32, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// Everything of a test.
pub struct Rig {
    pub host: Host<Flash, VirtualClock, dyn ZonedTarget>,
    options: Vec<(&'static str, &'static str)>,
    tag: u32,
}

impl Rig {
    /// Zones on a fresh drive.
    pub fn new(options: &[(&'static str, &'static str)]) -> Self {
        Self::with(config(), options)
    }

    /// Zones on a fresh drive of this kind.
    pub fn with(config: Config, options: &[(&'static str, &'static str)]) -> Self {
        Self::on(Flash::format(config).expect("a sound drive"), VirtualClock::default(), options)
    }

    fn on(flash: Flash, clock: VirtualClock, options: &[(&'static str, &'static str)]) -> Self {
        let buffers = Buffers::new(flash.payload_format());
        let mut host: Host<Flash, VirtualClock, dyn ZonedTarget> = Host::new(flash, clock, buffers);
        let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
        let mut chosen = Options::default();
        for (name, value) in options {
            chosen.set(name, value).expect("a sound option");
        }
        let (target, _) = Zns::mount(&mut host.caller(), &units, &chosen).expect("it fits");
        host.add(Box::new(target));
        Self { host, options: options.to_vec(), tag: 0 }
    }

    /// The same drive after a power cut, mounted again.
    pub fn cut(&self) -> Self {
        let mut flash = self.host.device().fork().expect("a drive in memory");
        let now = self.host.clock().now();
        flash.power_cut(now, &mut Prng::new(1)).expect("memory does not fail");
        let mut clock = VirtualClock::default();
        clock.wait_until(now);
        Self::on(flash, clock, &self.options)
    }

    pub fn target(&self) -> &dyn ZonedTarget {
        self.host.target(TARGET)
    }

    pub fn target_mut(&mut self) -> &mut dyn ZonedTarget {
        self.host.target_mut(TARGET)
    }

    pub fn geometry(&self) -> ZoneGeometry {
        self.target().zone_geometry()
    }

    pub fn state(&self, zone: u32) -> ZoneState {
        self.target().zone(zone).state
    }

    /// Every zone as a report shows it.
    pub fn zones(&self) -> Vec<ZoneDescriptor> {
        (0..self.geometry().zone_count).map(|zone| self.target().zone(zone)).collect()
    }

    /// Asks, with a buffer of `count` blocks of which each byte is `fill` if the request has data.
    pub fn ask(&mut self, op: ZonedOp, block: u64, count: u32, fill: Option<u8>) -> (ZonedReply, Vec<u8>) {
        self.tag += 1;
        let sectors = count.clamp(1, 4096);
        let buffer = fill.map(|fill| {
            let buffers = self.host.buffers_mut();
            let buffer = buffers.take(sectors);
            buffers.data_mut(buffer, 0, sectors).fill(fill);
            buffer
        });
        let reply = self.host.ask(ZonedRequest { tag: Tag(self.tag), op, block, count, buffer });
        self.target().check();
        let buffers = self.host.buffers_mut();
        let content = buffer.map(|buffer| buffers.data(buffer, 0, sectors).to_vec());
        buffer.into_iter().for_each(|buffer| buffers.give_back(buffer));
        (reply, content.unwrap_or_default())
    }

    /// Asks for a change as [`Self::ask`] does, and waits no longer than this.
    pub fn begin(&mut self, op: ZonedOp, block: u64, count: u32, fill: u8, wait: Nanos) {
        self.tag += 1;
        let buffers = self.host.buffers_mut();
        let buffer = buffers.take(count);
        buffers.data_mut(buffer, 0, count).fill(fill);
        let mut requests = Requests::default();
        requests.push(ZonedRequest { tag: Tag(self.tag), op, block, count, buffer: Some(buffer) });
        let stop = self.host.clock().now() + wait;
        self.host.run(&mut requests, stop);
    }

    /// Writes blocks of one byte's value.
    pub fn write(&mut self, block: u64, count: u32, fill: u8) -> Status {
        let durability = Durability::AtFlush;
        self.ask(ZonedOp::Write { durability }, block, count, Some(fill)).0.status
    }

    pub fn read(&mut self, block: u64, count: u32) -> (Status, Vec<u8>) {
        let (reply, content) = self.ask(ZonedOp::Read, block, count, Some(0xEE));
        (reply.status, content)
    }

    pub fn flush(&mut self) -> Status {
        self.ask(ZonedOp::Flush, 0, 0, None).0.status
    }

    /// Sets the extension of a zone.
    pub fn describe(&mut self, block: u64, extension: ZoneExtension) -> Status {
        let buffers = self.host.buffers_mut();
        let buffer = buffers.take_whole(1);
        let _ = List::write(buffers, buffer, &[extension]);
        let (op, tag) = (ZonedOp::SetExtension, Tag(0));
        let reply = self.host.ask(ZonedRequest { tag, op, block, count: 0, buffer: Some(buffer) });
        self.host.buffers_mut().give_back(buffer);
        self.target().check();
        reply.status
    }

    pub fn manage(&mut self, action: ZoneAction, block: u64) -> Status {
        self.ask(ZonedOp::Manage { action, scope: ZoneScope::One }, block, 0, None).0.status
    }
}
