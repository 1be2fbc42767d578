//! Zones that become read only, because a chunk of theirs failed and none is left to replace it, while others go on.
//!
//! What of such a zone is on media can be read for good; what was answered and not flushed can be read from buffer units until
//! they are needed, or the target is left. Whoever waits for the zone, and every flush that was to make it durable, hears that it
//! failed. Deliberately not here: the end of all changes, when the target itself lacks a chunk (`stop`).

use super::journal;
use super::state::Zns;
use super::writer::ZoneOp;
use ocssd_base::SlabKey;
use ocssd_lightnvm::interface::zoned::ZoneState;
use ocssd_lightnvm::{Buffers, Status};

impl Zns {
    /// Gives up one zone that has no place for what it holds, or buffer units of one that was given up. False if there is neither.
    ///
    /// Nothing is in flight, so nothing would bring the zone a place.
    pub(super) fn give_up_zone(&mut self, buffers: &mut Buffers) -> bool {
        assert_eq!(self.flight.len(), 0, "a zone is given up while commands are under way");
        match self.zone_without_place() {
            Some(key) if self.has_log_room(1) => {
                self.make_read_only(key, buffers);
                true
            }
            _ => self.forget_lost(),
        }
    }

    /// The writer of a zone that has units to be programmed, and nothing to wait for but a place.
    pub(super) fn zone_without_place(&self) -> Option<SlabKey> {
        let durable = self.journal.log.durable();
        let lacks_place = |&key: &SlabKey| {
            let writer = self.writers.get(key);
            let has_unplaced = !writer.ready.is_empty() || !writer.failed.is_empty();
            has_unplaced && writer.wait <= durable && writer.moved.is_empty()
        };
        self.turns.iter().copied().find(lacks_place)
    }

    fn make_read_only(&mut self, key: SlabKey, buffers: &mut Buffers) {
        let writer = self.writers.get_mut(key);
        let number = writer.zone;
        assert!(!writer.is_given_up, "zone {number} is given up twice");
        assert!(writer.in_flight == 0 && writer.tail.pages == 0, "zone {number} is given up under way");
        (writer.is_given_up, writer.is_ending) = (true, true);
        writer.ready.clear();
        writer.failed.clear();
        writer.filling = None;
        let waiters = writer.take_waiters();
        let queue: Vec<ZoneOp> = writer.queue.drain(..).collect();
        if writer.area.is_some() {
            self.keep_area_for_reads(key, buffers);
        }
        let admitted = self.writers.get(key).admitted;
        self.zone_mut(number).written = admitted;
        self.set_state(number, ZoneState::ReadOnly);
        self.extensions.fall_back(number);
        let end = self.log_change(&[journal::read_only(number)]);
        self.await_log(end);
        for request in waiters {
            self.requests.give_up(request, Status::ZONE_IS_READ_ONLY);
        }
        if let Some(request) = self.shutdown {
            // It is what makes blocks durable that nobody waits for.
            self.requests.fail(request, Status::WRITE_FAULT);
        }
        for op in queue {
            match op {
                ZoneOp::Read(request) => self.resolve(request, buffers),
                op => self.requests.give_up(op.request(), Status::ZONE_IS_READ_ONLY),
            }
        }
        self.stats.zones_given_up += 1;
        if !self.changed.contains(&number) {
            self.changed.push_back(number);
        }
        self.work_due = true;
    }

    /// Buffer units of read-only zones that are not on media make room for others: their blocks are gone. True if there was one.
    fn forget_lost(&mut self) -> bool {
        let unit = self.sizes.unit;
        let mut any = false;
        for nth in 0..self.turns.len() {
            let writer = self.writers.get_mut(self.turns[nth]);
            if !writer.is_given_up || self.zones[ocssd_base::usize_of(writer.zone)].reads > 0 {
                continue;
            }
            let durable = writer.durable(unit);
            assert!(durable <= writer.admitted, "more of zone {} is durable than was taken", writer.zone);
            let lost = writer.held.split_off(durable.div_ceil(unit));
            any |= !lost.is_empty();
            writer.admitted = durable;
            for buffer_unit in lost {
                self.buffer_units.release(buffer_unit);
            }
        }
        self.work_due |= any;
        any
    }
}
