//! Requests that make chunks wear differently: most zones are written to their end and left alone, a few are written and reset.
//!
//! Deliberately not here: what is promised of wear (`crate::wear`).

use super::ZonedModel;
use super::drawn::{BLOCKS_MAX, DrawnZoned};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneScope, ZoneState, ZonedOp, ZonedRequest};
use ocssd_lightnvm::{Buffers, Tag};

/// Zones that are not left alone, at most (chosen: their chunks take all resets, so there must be few).
const HOT_MAX: u64 = 3;

impl DrawnZoned {
    /// As [`Self::new`], but the first few zones are written all the time and the others once.
    pub(super) fn for_wear(model: &ZonedModel, prng: &mut Prng) -> Self {
        let geometry = model.geometry();
        let hot = 1 + prng.below(HOT_MAX.min(u64::from(geometry.zone_count)));
        let mut drawn = Self::new(model, prng);
        drawn.zones = u32::try_from(hot).expect("no more than there are");
        drawn.longest = geometry.capacity_blocks.min(BLOCKS_MAX);
        // Nothing is reset, or finished, of those that are left alone.
        drawn.managed_percent = 0;
        drawn.leaves_others_alone = true;
        drawn
    }

    /// The next write of a zone that is to be left alone and is not full, else of another; a full one of these is reset.
    pub(super) fn next_for_wear(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        model: &ZonedModel,
        buffers: &mut Buffers,
    ) -> ZonedRequest {
        let geometry = model.geometry();
        let takes_more =
            |&zone: &u32| model.zone(zone).state.is_writable() || model.zone(zone).state == ZoneState::Empty;
        let left = (self.zones..geometry.zone_count).find(takes_more);
        let hot = u32::try_from(prng.below(u64::from(self.zones))).expect("few");
        // The others go on meanwhile.
        let zone = left.filter(|_| prng.below(8) > 0).unwrap_or(hot);
        let (start, written) = (geometry.start_of(zone), model.zone(zone).written());
        let blocks = self.longest.min(geometry.capacity_blocks.saturating_sub(written)).max(1);
        let count = u32::try_from(blocks).expect("short");
        let buffer = Some(self.held.take_stamped(tag, buffers, count * geometry.block_bytes, prng));
        if model.zone(zone).state == ZoneState::Full {
            let op = ZonedOp::Manage { action: ZoneAction::Reset, scope: ZoneScope::One };
            return ZonedRequest { tag, op, block: start, count: 0, buffer };
        }
        let op = ZonedOp::Write { durability: self.durability(prng) };
        ZonedRequest { tag, op, block: start + written, count, buffer }
    }
}
