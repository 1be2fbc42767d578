//! Descriptor extensions of zones: who sets one, which are shown, which are logged.
//!
//! A zone shows its extension once the request is taken. The log has it once what was asked of the zone before is over: a reset
//! may wait there. A width hint in it holds from then on for what is laid out of the zone, at most the instance's width.
//! Deliberately not here: the bytes (`ocssd_lightnvm::interface::zoned`), and laying out (`stripe`).

use super::canary::Canary;
use super::journal;
use super::options::Width;
use super::state::Zns;
use super::writer::ZoneOp;
use ocssd_base::SlabKey;
use ocssd_ftl::log::Lsn;
use ocssd_lightnvm::interface::List;
use ocssd_lightnvm::interface::zoned::{WidthHint, ZoneExtension, ZoneState, ZonedRequest};
use ocssd_lightnvm::{Buffers, Status};
use std::collections::BTreeMap;

/// The extensions of an instance's zones; 68 bytes for each zone that has one.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    shown: BTreeMap<u32, ZoneExtension>,
    logged: BTreeMap<u32, ZoneExtension>,
}

impl Extensions {
    /// Those that a mount found.
    pub fn found(logged: BTreeMap<u32, ZoneExtension>) -> Self {
        Self { shown: logged.clone(), logged }
    }

    /// What a report says of a zone.
    pub fn shown(&self, zone: u32) -> Option<ZoneExtension> {
        self.shown.get(&zone).copied()
    }

    /// What the log says of a zone.
    pub fn logged(&self, zone: u32) -> Option<ZoneExtension> {
        self.logged.get(&zone).copied()
    }

    /// All that the log has, in the order of zones.
    pub const fn all_logged(&self) -> &BTreeMap<u32, ZoneExtension> {
        &self.logged
    }

    /// A zone shows an extension.
    fn show(&mut self, zone: u32, extension: ZoneExtension) {
        let old = self.shown.insert(zone, extension);
        assert!(old.is_none(), "zone {zone} has an extension already");
    }

    /// A zone shows none any more: it is to be reset, or to become offline.
    pub fn hide(&mut self, zone: u32) {
        self.shown.remove(&zone);
    }

    /// The log has the extension of a zone.
    fn log(&mut self, zone: u32, extension: ZoneExtension) {
        let old = self.logged.insert(zone, extension);
        assert!(old.is_none(), "zone {zone} has an extension in the log already");
    }

    /// The log has none any more.
    pub fn forget(&mut self, zone: u32) {
        self.logged.remove(&zone);
    }

    /// What was asked of a zone and not done never will be: it shows what is logged.
    pub fn fall_back(&mut self, zone: u32) {
        match self.logged(zone) {
            Some(extension) => drop(self.shown.insert(zone, extension)),
            None => drop(self.shown.remove(&zone)),
        }
    }

    /// Asserts that zones without a request that waits show what is logged; `is_settled` tells of which that is so.
    pub fn check(&self, is_settled: impl Fn(u32) -> bool) {
        for zone in self.shown.keys().chain(self.logged.keys()).copied().filter(|&zone| is_settled(zone)) {
            assert_eq!(
                self.shown(zone),
                self.logged(zone),
                "zone {zone} shows another extension than is logged"
            );
        }
    }
}

/// The extension in a request's buffer; `None` if it has none.
fn asked(request: &ZonedRequest, buffers: &Buffers) -> Option<ZoneExtension> {
    let list = List::<ZoneExtension>::new(request.buffer?, 1);
    if list.lies_within(buffers) { list.get(buffers, 0) } else { None }
}

impl Zns {
    /// Takes an extension for a zone, which is closed from now on.
    ///
    /// # Errors
    /// The status it is refused with.
    pub(super) fn take_extension(&mut self, request: &ZonedRequest, buffers: &Buffers) -> Result<(), Status> {
        let zone = self.judge_start(request.block)?;
        let extension = asked(request, buffers).ok_or(Status::INVALID_FIELD)?;
        if self.zone(zone).state != ZoneState::Empty {
            return Err(Status::INVALID_ZONE_TRANSITION);
        }
        if let Some(status) = self.refuses_changes() {
            return Err(status);
        }
        if self.active >= self.sizes.active_max {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        self.set_state(zone, ZoneState::Closed);
        self.extensions.show(zone, extension);
        let request = self.take_whole(request);
        let key = self.writer_of(zone);
        self.writers.get_mut(key).queue.push_back(ZoneOp::Describe(request));
        Ok(())
    }

    /// Over how many units a zone is striped, and whether those are of one group while it has free chunks.
    pub(super) fn width_of(&self, zone: u32) -> (u32, bool) {
        let most = self.sizes.width;
        match self.extensions.logged(zone).and_then(|extension| extension.width()) {
            None => (most, self.options.width == Width::Group),
            Some(WidthHint::All) => (most, false),
            Some(WidthHint::Group) => (most.min(self.sizes.group_units), true),
            Some(WidthHint::Units(units)) => (most.min(units), false),
        }
    }

    /// Logs the extension of a zone whose turn it is. False if the log has no room.
    pub(super) fn describe_zone(&mut self, key: SlabKey, request: SlabKey, buffers: &Buffers) -> bool {
        let number = self.writers.get(key).zone;
        // The host keeps the buffer until it is answered.
        let extension = asked(&self.requests.get(request).request, buffers).expect("it was there when taken");
        let entries = journal::extension(number, &extension);
        if !self.has_log_room(entries.len()) {
            return false;
        }
        assert!(self.zone(number).segments.is_empty(), "zone {number} has blocks and takes an extension");
        self.extensions.log(number, extension);
        if self.has_canary(Canary::ExtensionNotLogged) {
            self.requests.part_done(request);
            return true;
        }
        let end = self.log_change(&entries);
        let tail_wait = if self.has_canary(Canary::TailBeforeExtension) { Lsn(0) } else { end };
        let writer = self.writers.get_mut(key);
        // Columns follow in the log; tails must not be found without it.
        writer.bound = writer.bound.max(end);
        writer.tail_wait = writer.tail_wait.max(tail_wait);
        self.await_log(end);
        self.waits.push_back((end, request));
        self.stats.extensions_set += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(byte: u8) -> ZoneExtension {
        ZoneExtension([byte; 64])
    }

    #[test]
    fn a_zone_shows_what_was_asked_and_falls_back_to_what_is_logged() {
        let mut extensions = Extensions::found(BTreeMap::from([(3, of(1))]));
        extensions.check(|_| true);
        extensions.hide(3);
        extensions.show(3, of(2));
        assert_eq!((extensions.shown(3), extensions.logged(3)), (Some(of(2)), Some(of(1))));
        extensions.fall_back(3);
        assert_eq!(extensions.shown(3), Some(of(1)));
        extensions.show(4, of(5));
        extensions.check(|zone| zone != 4);
        extensions.fall_back(4);
        assert_eq!((extensions.shown(4), extensions.all_logged().len()), (None, 1));
        extensions.hide(3);
        extensions.forget(3);
        assert_eq!((extensions.shown(3), extensions.logged(3)), (None, None));
    }
}
