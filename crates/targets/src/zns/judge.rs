//! Whether a request is legal, and what zones show from then on: decided when it is taken, in that order.
//!
//! Checks come in the order of the interface: range, state, write pointer, capacity, resources. A refused request changes
//! nothing. Deliberately not here: carrying requests out.

use super::canary::Canary;
use super::state::Zns;
use ocssd_base::usize_of;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneState, ZonedRequest};

impl Zns {
    /// The zone of an address, and the block in it.
    fn locate(&self, block: u64) -> Result<(u32, u64), Status> {
        let zone = self.geometry.zone_of(block).ok_or(Status::LBA_OUT_OF_RANGE)?;
        Ok((zone, block - self.geometry.start_of(zone)))
    }

    fn ends_within(&self, request: &ZonedRequest) -> bool {
        let end = request.block.checked_add(u64::from(request.count));
        end.is_some_and(|end| end <= self.geometry.block_count())
    }

    /// Takes a write or an append: its zone, and where in it the blocks go. The write pointer moves, and the zone is open.
    ///
    /// # Errors
    /// The status it is refused with.
    pub(super) fn judge_write(
        &mut self,
        request: &ZonedRequest,
        is_append: bool,
    ) -> Result<(u32, u64), Status> {
        let (zone, within) = self.locate(request.block)?;
        let is_too_long = is_append && (within != 0 || request.count > self.geometry.append_blocks_max);
        if request.count == 0 || is_too_long || request.buffer.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        if !self.ends_within(request) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let (state, written) = (self.zone(zone).state, u64::from(self.zone(zone).written));
        let at = if is_append { written } else { within };
        let end = at + u64::from(request.count);
        let area = self.geometry.area.filter(|_| self.areas.contains(&zone));
        if is_append && area.is_some() {
            return Err(Status::INVALID_ZONE_OPERATION);
        }
        let may_be_there = match area {
            Some(area) => at >= written && end <= written + 2 * u64::from(area.blocks),
            None => at == written,
        };
        match state {
            ZoneState::Full => return Err(Status::ZONE_IS_FULL),
            ZoneState::ReadOnly => return Err(Status::ZONE_IS_READ_ONLY),
            ZoneState::Offline => return Err(Status::ZONE_IS_OFFLINE),
            _ if !may_be_there => return Err(Status::ZONE_INVALID_WRITE),
            _ if end > self.geometry.capacity_blocks => return Err(Status::ZONE_BOUNDARY_ERROR),
            _ => {}
        }
        if let Some(status) = self.refuses_changes() {
            return Err(status);
        }
        self.open_zone(zone, ZoneState::ImplicitlyOpened)?;
        let end = u32::try_from(end).expect("a zone has fewer than 2^32 blocks");
        let pointer = match area {
            Some(_) => self.pointer_for(self.zone(zone).written, end),
            None => end,
        };
        self.zone_mut(zone).written = pointer;
        if u64::from(pointer) == self.geometry.capacity_blocks {
            self.set_state(zone, ZoneState::Full);
        }
        Ok((zone, at))
    }

    /// Takes an opening with an area: its zone.
    ///
    /// # Errors
    /// The status it is refused with.
    pub(super) fn judge_open_with_area(&mut self, request: &ZonedRequest) -> Result<u32, Status> {
        let zone = self.judge_start(request.block)?;
        let area = self.geometry.area.ok_or(Status::INVALID_ZONE_OPERATION)?;
        let entry = self.zone(zone);
        if !entry.state.is_writable() {
            return Err(Status::INVALID_ZONE_TRANSITION);
        }
        let is_aligned = entry.written.is_multiple_of(u32::from(area.granularity));
        let has_room = self.areas.len() < usize_of(area.areas_max);
        let may_have = self.areas.contains(&zone) || is_aligned && has_room;
        if !may_have {
            return Err(Status::ZRWA_RESOURCES_UNAVAILABLE);
        }
        if let Some(status) = self.refuses_changes() {
            return Err(status);
        }
        self.open_zone(zone, ZoneState::ExplicitlyOpened)?;
        self.areas.insert(zone);
        Ok(zone)
    }

    /// Takes a commit: its zone. The write pointer moves, and the zone is open.
    ///
    /// # Errors
    /// The status it is refused with.
    pub(super) fn judge_commit(&mut self, request: &ZonedRequest) -> Result<u32, Status> {
        let (zone, within) = self.locate(request.block)?;
        let area = self.geometry.area.ok_or(Status::INVALID_ZONE_OPERATION)?;
        let (end, written) = (within + 1, u64::from(self.zone(zone).written));
        let capacity = self.geometry.capacity_blocks;
        let is_inside = end > written && end <= capacity.min(written + u64::from(area.blocks));
        let is_granule = end == capacity || end.is_multiple_of(u64::from(area.granularity));
        if !self.areas.contains(&zone) || !is_inside || !is_granule {
            return Err(Status::INVALID_FIELD);
        }
        if let Some(status) = self.refuses_changes() {
            return Err(status);
        }
        self.open_zone(zone, ZoneState::ImplicitlyOpened)?;
        self.zone_mut(zone).written = u32::try_from(end).expect("a zone has fewer than 2^32 blocks");
        if end == capacity {
            self.set_state(zone, ZoneState::Full);
        }
        Ok(zone)
    }

    /// Makes a zone open, if there are resources; closes an implicitly opened one if there are too few.
    fn open_zone(&mut self, zone: u32, how: ZoneState) -> Result<(), Status> {
        let state = self.zone(zone).state;
        assert!(state.is_writable(), "zone {zone} is {state:?}, and is opened");
        if !state.is_active() && self.active >= self.sizes.active_max {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        if !state.is_open() && self.open.len() >= usize_of(self.sizes.open_max) {
            let implicit = |&&zone: &&u32| self.zone(zone).state == ZoneState::ImplicitlyOpened;
            let oldest = *self.open.iter().find(implicit).ok_or(Status::TOO_MANY_OPEN_ZONES)?;
            self.set_state(oldest, ZoneState::Closed);
        }
        if state != ZoneState::ExplicitlyOpened {
            self.set_state(zone, how);
        }
        Ok(())
    }

    /// The zone of a read.
    ///
    /// # Errors
    /// The status it is refused with.
    pub(super) fn judge_read(&self, request: &ZonedRequest) -> Result<u32, Status> {
        let (zone, within) = self.locate(request.block)?;
        if !self.ends_within(request) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        if self.zone(zone).state == ZoneState::Offline {
            return Err(Status::ZONE_IS_OFFLINE);
        }
        if within + u64::from(request.count) > self.geometry.zone_blocks {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if request.buffer.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        Ok(zone)
    }

    /// The zone that a management request for one zone names.
    ///
    /// # Errors
    /// If the address is not the start of a zone.
    pub(super) fn judge_start(&self, block: u64) -> Result<u32, Status> {
        let (zone, within) = self.locate(block)?;
        if within == 0 { Ok(zone) } else { Err(Status::INVALID_FIELD) }
    }

    /// The zones an action is meant for if it is for all.
    pub(super) fn chosen(&self, action: ZoneAction) -> Vec<u32> {
        let skips_full = self.has_canary(Canary::ResetAllSkipsFull);
        let is_chosen = |state: ZoneState| match action {
            ZoneAction::Open => state == ZoneState::Closed,
            ZoneAction::Close => state.is_open(),
            ZoneAction::Finish => state.is_active(),
            ZoneAction::Reset => state.is_active() || state == ZoneState::Full && !skips_full,
            ZoneAction::Offline => state == ZoneState::ReadOnly,
        };
        let zones = (0..).zip(&self.zones).filter(|(_, zone)| is_chosen(zone.state));
        zones.map(|(number, _)| number).collect()
    }

    /// Opening all closed zones is done for all of them or none.
    ///
    /// # Errors
    /// If there are not enough resources.
    pub(super) fn judge_open_all(&self, chosen: &[u32]) -> Result<(), Status> {
        let opened = self.open.len() + chosen.len();
        if opened > usize_of(self.sizes.open_max) { Err(Status::TOO_MANY_OPEN_ZONES) } else { Ok(()) }
    }

    /// Takes a management action for a zone. Whether something remains to be done.
    ///
    /// # Errors
    /// The status it is refused with.
    pub(super) fn judge_action(&mut self, zone: u32, action: ZoneAction) -> Result<bool, Status> {
        use ZoneState::{Closed, Empty, ExplicitlyOpened, Full, ImplicitlyOpened, Offline, ReadOnly};
        let state = self.zone(zone).state;
        let changes = matches!(
            (action, state),
            (ZoneAction::Finish, Empty | ImplicitlyOpened | ExplicitlyOpened | Closed)
                | (ZoneAction::Reset, ImplicitlyOpened | ExplicitlyOpened | Closed | Full)
                | (ZoneAction::Offline, ReadOnly)
        );
        if let Some(status) = self.refuses_changes().filter(|_| changes) {
            return Err(status);
        }
        match (action, state) {
            (ZoneAction::Open, Empty | ImplicitlyOpened | ExplicitlyOpened | Closed) => {
                self.open_zone(zone, ExplicitlyOpened)?;
            }
            (ZoneAction::Close, ImplicitlyOpened | ExplicitlyOpened | Closed) => self.set_state(zone, Closed),
            (ZoneAction::Finish, _) if changes => self.set_state(zone, Full),
            (ZoneAction::Reset, _) if changes => {
                self.zone_mut(zone).written = 0;
                self.extensions.hide(zone);
                self.set_state(zone, Empty);
            }
            (ZoneAction::Offline, ReadOnly) => {
                self.zone_mut(zone).written = 0;
                self.extensions.hide(zone);
                self.set_state(zone, Offline);
            }
            (ZoneAction::Finish, Full) | (ZoneAction::Reset, Empty) | (ZoneAction::Offline, Offline) => {}
            _ => return Err(Status::INVALID_ZONE_TRANSITION),
        }
        Ok(changes)
    }
}
