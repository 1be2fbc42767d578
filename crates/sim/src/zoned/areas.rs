//! Random write areas: who gets one, and where the write pointer of a zone with one goes.
//!
//! Deliberately not here: what of an area survives a power cut (`image`).

use super::image::ZoneChange;
use super::model::{ZonedModel, count};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{ZoneArea, ZoneState, ZonedRequest};

impl ZonedModel {
    /// The area of a zone that has one.
    pub(super) fn area_of(&self, zone: usize) -> Option<ZoneArea> {
        self.geometry().area.filter(|_| self.volatile[zone].has_area)
    }

    /// Where the write pointer goes for a write that ends at `end`: on by granules until the area reaches there.
    pub(super) fn moved(&self, mut pointer: u64, end: u64, area: ZoneArea) -> u64 {
        while pointer + u64::from(area.blocks) < end {
            pointer += u64::from(area.granularity);
        }
        pointer.min(self.geometry().capacity_blocks)
    }

    /// Opens the zone that starts at the address, with an area.
    pub(super) fn open_with_area(&mut self, request: &ZonedRequest) -> Result<(), Status> {
        let zone = self.zone_at(request.block)?;
        let area = self.geometry().area.ok_or(Status::INVALID_ZONE_OPERATION)?;
        let image = &self.volatile[zone];
        if !image.state.is_writable() {
            return Err(Status::INVALID_ZONE_TRANSITION);
        }
        let areas = count(self.volatile.iter().filter(|zone| zone.has_area).count());
        let is_aligned = image.written().is_multiple_of(u64::from(area.granularity));
        if !image.has_area && (areas >= area.areas_max || !is_aligned) {
            return Err(Status::ZRWA_RESOURCES_UNAVAILABLE);
        }
        self.open(zone, ZoneState::ExplicitlyOpened)?;
        self.volatile[zone].has_area = true;
        Ok(())
    }

    /// Commits the area of a zone up to the block at the address.
    pub(super) fn commit_area(&mut self, request: &ZonedRequest) -> Result<(), Status> {
        let (zone, within) = self.place(request.block)?;
        if self.geometry().area.is_none() {
            return Err(Status::INVALID_ZONE_OPERATION);
        }
        let area = self.area_of(zone).ok_or(Status::INVALID_FIELD)?;
        let (end, written) = (within + 1, self.volatile[zone].written());
        let capacity = self.geometry().capacity_blocks;
        let is_inside = end > written && end <= capacity.min(written + u64::from(area.blocks));
        if !is_inside || (end != capacity && !end.is_multiple_of(u64::from(area.granularity))) {
            return Err(Status::INVALID_FIELD);
        }
        self.open(zone, ZoneState::ImplicitlyOpened)?;
        let committed = (0..end).map(|number| self.volatile[zone].block(number).cloned()).collect();
        self.change(request.tag, zone, ZoneChange::Committed(committed), Durability::AtReply);
        Ok(())
    }
}
