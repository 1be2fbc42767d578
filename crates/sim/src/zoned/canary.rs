//! Bugs to plant in a reference target, right before its power goes: whoever judges targets must find each.

use super::image::Zone;
use super::model::ZonedModel;
use crate::model::trial::Canary;
use ocssd_lightnvm::interface::zoned::{ZoneExtension, ZoneState};

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
                *zone = Zone { state: ZoneState::Closed, blocks: vec![Some(vec![1; 4_096])], ..Zone::EMPTY };
            }
        }),
        ("a full zone is not full", |model| {
            for zone in model.durable.iter_mut().filter(|zone| zone.state == ZoneState::Full) {
                zone.state = ZoneState::Closed;
            }
        }),
    ]
}

/// Those of extensions, which no job of `workload` sets.
#[must_use]
pub fn canaries_of_extensions() -> [Canary<ZonedModel>; 2] {
    [
        ("an extension is lost", |model| {
            for zone in &mut model.durable {
                zone.extension = None;
            }
        }),
        ("an extension outlives a reset", |model| {
            for zone in model.durable.iter_mut().filter(|zone| zone.state == ZoneState::Empty) {
                zone.extension = Some(ZoneExtension::ZERO);
            }
        }),
    ]
}

/// Those of random write areas.
#[must_use]
pub fn canaries_of_areas() -> [Canary<ZonedModel>; 3] {
    [
        ("what an area holds is lost", |model| {
            for zone in &mut model.durable {
                zone.ahead.clear();
            }
        }),
        ("a block of an area is an older one", |model| {
            for content in model.durable.iter_mut().flat_map(|zone| zone.ahead.values_mut()) {
                content.fill(1);
            }
        }),
        ("a commit is undone", |model| {
            for zone in &mut model.durable {
                while zone.blocks.pop_if(|block| block.is_none()).is_some() {}
            }
        }),
    ]
}
