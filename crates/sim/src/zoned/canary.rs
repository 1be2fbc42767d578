//! Bugs to plant in a reference target, right before its power goes: whoever judges targets must find each.

use super::image::Zone;
use super::model::ZonedModel;
use crate::model::trial::Canary;
use ocssd_lightnvm::interface::zoned::ZoneState;

/// Each with its name.
#[must_use]
pub fn canaries() -> [Canary<ZonedModel>; 4] {
    [
        ("a durable block is lost", |model| {
            drop(model.durable.iter_mut().find_map(|zone| zone.blocks.pop()))
        }),
        ("a block is lost before others", |model| {
            if let Some(zone) = model.durable.iter_mut().find(|zone| zone.blocks.len() > 2) {
                zone.blocks.remove(0);
            }
        }),
        ("a reset is undone", |model| {
            for zone in model.durable.iter_mut().filter(|zone| zone.state == ZoneState::Empty) {
                *zone = Zone { state: ZoneState::Closed, blocks: vec![vec![1; 4_096]] };
            }
        }),
        ("a full zone is not full", |model| {
            for zone in model.durable.iter_mut().filter(|zone| zone.state == ZoneState::Full) {
                zone.state = ZoneState::Closed;
            }
        }),
    ]
}
