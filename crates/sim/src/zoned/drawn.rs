//! Requests of zones, drawn: mostly those a host may ask, some it may not.
//!
//! Deliberately not here: what they must be answered with (`model`).

use super::{Zone, ZonedModel};
use crate::counted;
use crate::model::Model;
use crate::model::held::Held;
use crate::model::judge::Interface;
use crate::model::trial::Requests;
use crate::wear::Promise;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, WidthHint, ZoneAction, ZoneArea, ZoneExtension, ZoneScope, ZoneState, ZonedOp, ZonedReply,
    ZonedRequest, ZonedTarget,
};
use ocssd_lightnvm::interface::{Durability, List};
use ocssd_lightnvm::{Buffers, Tag};

/// Longest write and read, in blocks (chosen: more than a write unit, so that one crosses several).
pub(super) const BLOCKS_MAX: u64 = 60;

fn index(value: u64) -> usize {
    usize::try_from(value).expect("a small number")
}

/// The zoned interface.
pub struct ZonedInterface;

impl Interface for ZonedInterface {
    type Model = ZonedModel;
    type Target = dyn ZonedTarget;
    type Drawn = DrawnZoned;

    fn model(target: &dyn ZonedTarget) -> ZonedModel {
        ZonedModel::new(target.zone_geometry())
    }

    fn limits(target: &dyn ZonedTarget) -> String {
        format!("{:?}", target.zone_geometry())
    }

    fn drawn(model: &ZonedModel, prng: &mut Prng) -> DrawnZoned {
        DrawnZoned::new(model, prng)
    }

    fn drawn_for_wear(model: &ZonedModel, prng: &mut Prng) -> Option<DrawnZoned> {
        Some(DrawnZoned::for_wear(model, prng))
    }

    fn shutdown(tag: Tag) -> ZonedRequest {
        ZonedRequest { op: ZonedOp::Shutdown, ..ZonedModel::flush(tag) }
    }

    fn wear_promise(target: &dyn ZonedTarget) -> Option<Promise> {
        let spread = counted::wear_spread(target)?;
        let zones = 0..target.zone_geometry().zone_count;
        let full = zones.filter(|&zone| target.zone(zone).state == ZoneState::Full);
        let of = Some(full.flat_map(|zone| target.zone_chunks(zone)).collect());
        let put_off = counted::count_of(target, "wear_put_off_resets");
        let first_line = counted::gauge(target, "metadata_lines").and_then(|lines| u32::try_from(lines).ok());
        Some(Promise::Chunks { spread, of, put_off, first_line: first_line.unwrap_or(0) })
    }

    fn name(request: &ZonedRequest) -> &'static str {
        match request.op {
            ZonedOp::Read => "requests.reads",
            ZonedOp::Write { .. } => "requests.writes",
            ZonedOp::Append { .. } => "requests.appends",
            ZonedOp::Flush => "requests.flushes",
            ZonedOp::Manage { .. } => "requests.zones_managed",
            ZonedOp::Report { .. } | ZonedOp::ReportExtended { .. } => "requests.reports",
            ZonedOp::SetExtension => "requests.extensions",
            ZonedOp::OpenWithArea => "requests.areas_opened",
            ZonedOp::CommitArea => "requests.areas_committed",
            ZonedOp::Shutdown => "requests.shutdowns",
        }
    }
}

/// Draws.
#[derive(Clone, Debug)]
pub struct DrawnZoned {
    /// Zones that are used, from the first on.
    pub(super) zones: u32,
    pub(super) longest: u64,
    /// Writes and appends that are durable when answered, in percent.
    durable_percent: u64,
    /// Zones managed, of a hundred requests.
    pub(super) managed_percent: u64,
    /// Extensions set, of a hundred requests for an empty zone.
    described_percent: u64,
    /// The zone that got an extension just now is written next, durably: tails and the log race then.
    follows: Option<u64>,
    /// Zones behind the first few are written once, and then left alone.
    pub(super) leaves_others_alone: bool,
    pub(super) held: Held,
}

impl DrawnZoned {
    /// In a manner that `prng` chooses.
    pub fn new(model: &ZonedModel, prng: &mut Prng) -> Self {
        let geometry = model.geometry();
        let count = u64::from(geometry.zone_count);
        let zones = if prng.below(2) == 0 { count } else { 1 + prng.below(count) };
        Self {
            zones: u32::try_from(zones).expect("no more than there are"),
            longest: 1 + prng.below(geometry.capacity_blocks.min(BLOCKS_MAX)),
            durable_percent: [0, 10, 60][usize::try_from(prng.below(3)).expect("three")],
            managed_percent: 2 + prng.below(16),
            described_percent: if model.geometry().takes_extensions {
                [0, 20, 60][index(prng.below(3))]
            } else {
                0
            },
            follows: None,
            leaves_others_alone: false,
            held: Held::default(),
        }
    }

    pub(super) fn durability(&self, prng: &mut Prng) -> Durability {
        if prng.below(100) < self.durable_percent { Durability::AtReply } else { Durability::AtFlush }
    }

    /// An extension for a zone: a width, or bytes that say nothing.
    fn describe(&mut self, tag: Tag, prng: &mut Prng, start: u64, buffers: &mut Buffers) -> ZonedRequest {
        let extension = match prng.below(8) {
            0 => ZoneExtension::with_width(WidthHint::All),
            1 => ZoneExtension::with_width(WidthHint::Group),
            few @ 2..6 => {
                let units = u32::try_from(few - 1).expect("few");
                ZoneExtension::with_width(WidthHint::Units(units))
            }
            _ => ZoneExtension(std::array::from_fn(|_| prng.below(256).to_le_bytes()[0])),
        };
        let buffer = buffers.take_whole(List::<ZoneExtension>::sectors(1, buffers));
        let _ = List::write(buffers, buffer, &[extension]);
        let buffer = Some(self.held.hold(tag, buffer));
        // One in sixteen names no zone's start.
        let block = start + prng.below(16) / 15;
        self.follows = Some(start);
        ZonedRequest { tag, op: ZonedOp::SetExtension, block, count: 0, buffer }
    }

    /// Opens a zone with an area; writes to the area, or not far behind it; commits. The block is counted in the zone.
    fn of_area(&self, prng: &mut Prng, area: ZoneArea, zone: &Zone, longest: u64) -> (ZonedOp, u64, u32) {
        let (blocks, granularity) = (u64::from(area.blocks), u64::from(area.granularity));
        if !zone.has_area && prng.below(8) > 0 {
            return (ZonedOp::OpenWithArea, prng.below(16) / 15, 0);
        }
        if prng.below(4) == 0 {
            let granules = 1 + prng.below(blocks / granularity + 1);
            let off = if prng.below(8) == 0 { prng.below(3) } else { 1 };
            return (ZonedOp::CommitArea, (zone.written() + granules * granularity).saturating_sub(off), 0);
        }
        // Within one area for most, up to a little behind two for some.
        let reach = if prng.below(4) == 0 { 2 * blocks + 2 } else { blocks };
        let at = prng.below(reach);
        let count = u32::try_from(longest.min(reach - at)).expect("short");
        let durability = self.durability(prng);
        (ZonedOp::Write { durability }, zone.written() + at, count)
    }

    fn manage(prng: &mut Prng, start: u64) -> (ZonedOp, u64, u32) {
        const ACTIONS: [ZoneAction; 8] = [
            ZoneAction::Open,
            ZoneAction::Close,
            ZoneAction::Finish,
            ZoneAction::Finish,
            ZoneAction::Reset,
            ZoneAction::Reset,
            ZoneAction::Reset,
            ZoneAction::Offline,
        ];
        let action = ACTIONS[usize::try_from(prng.below(8)).expect("eight")];
        let is_for_all = prng.below(24) == 0 && action != ZoneAction::Open;
        let scope = if is_for_all { ZoneScope::All } else { ZoneScope::One };
        // One in sixteen names no zone's start.
        (ZonedOp::Manage { action, scope }, start + prng.below(16) / 15, 0)
    }
}

impl Requests<ZonedModel> for DrawnZoned {
    fn next(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        model: &ZonedModel,
        buffers: &mut Buffers,
    ) -> Option<ZonedRequest> {
        let geometry = model.geometry();
        if let Some(block) = self.follows.take() {
            let count = 1 + u32::try_from(prng.below(3)).expect("few");
            let op = ZonedOp::Write { durability: Durability::AtReply };
            let buffer = self.held.take_stamped(tag, buffers, count * geometry.block_bytes, prng);
            return Some(ZonedRequest { tag, op, block, count, buffer: Some(buffer) });
        }
        if self.leaves_others_alone && prng.below(4) > 0 {
            return Some(self.next_for_wear(tag, prng, model, buffers));
        }
        let zone = u32::try_from(prng.below(u64::from(self.zones))).expect("below a 32-bit count");
        let (start, written) = (geometry.start_of(zone), model.zone(zone).written());
        let longest = 1 + prng.below(self.longest);
        let left = geometry.capacity_blocks.saturating_sub(written);
        // Now and then more than is left.
        let count = if prng.below(8) == 0 { longest } else { longest.min(left.max(1)) };
        let appended = count.min(u64::from(geometry.append_blocks_max) + prng.below(12) / 11);
        let count = u32::try_from(count).expect("short");
        let appended = u32::try_from(appended).expect("short");
        let durability = self.durability(prng);
        let is_empty = model.zone(zone).state == ZoneState::Empty;
        let percent = if is_empty { self.described_percent } else { self.described_percent / 20 };
        if prng.below(100) < percent {
            return Some(self.describe(tag, prng, start, buffers));
        }
        if let Some(area) = geometry.area.filter(|_| prng.below(3) == 0) {
            let (op, block, count) = self.of_area(prng, area, model.zone(zone), longest);
            let buffer = self.held.take_stamped(tag, buffers, count.max(1) * geometry.block_bytes, prng);
            return Some(ZonedRequest { tag, op, block: start + block, count, buffer: Some(buffer) });
        }
        let (op, block, count) = match prng.below(100) {
            percent if percent < self.managed_percent => Self::manage(prng, start),
            ..50 => (ZonedOp::Write { durability }, start + written, count),
            50..65 => (ZonedOp::Append { durability }, start, appended),
            65..68 => (ZonedOp::Write { durability }, start + prng.below(geometry.zone_blocks + 1), count),
            68..90 => (ZonedOp::Read, start + prng.below(geometry.capacity_blocks), count),
            90..92 => (ZonedOp::Read, prng.below(geometry.block_count() + 2), count),
            92..95 => {
                let few = 1 + u32::try_from(prng.below(8)).expect("few");
                let (plain, extended) =
                    (ZonedOp::Report { only: None }, ZonedOp::ReportExtended { only: None });
                (if prng.below(2) == 0 { plain } else { extended }, start, few)
            }
            _ => (ZonedOp::Flush, 0, 0),
        };
        let buffer = if let ZonedOp::Report { .. } | ZonedOp::ReportExtended { .. } = op {
            let sectors = List::<DescribedZone>::sectors(count, buffers);
            self.held.hold(tag, buffers.take_whole(sectors))
        } else {
            self.held.take_stamped(tag, buffers, count * geometry.block_bytes, prng)
        };
        Some(ZonedRequest { tag, op, block, count, buffer: Some(buffer) })
    }

    fn answered(&mut self, request: &ZonedRequest, _: &ZonedReply, buffers: &mut Buffers) {
        self.held.give_back(request.tag, buffers);
    }

    fn power_cut(&mut self, _: &ZonedModel, _: &mut Buffers) {
        self.held.forget();
    }
}
