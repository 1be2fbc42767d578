//! Reads that need one command and wait for nobody: nearly all are that, and go to the drive when they come.
//!
//! It is what `take_read`, `resolve` and `serve_reads` would come to, first of all procedures. Deliberately not here: any other
//! read (`read`).

use super::flight::Purpose;
use super::state::Zns;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::zoned::{ZoneState, ZonedAnswer, ZonedOp, ZonedRequest};
use ocssd_lightnvm::{Addresses, Buffers, Command, Op, Ppa, VECTOR_MAX};

impl Zns {
    /// Takes a read of blocks on media, of one write unit, and gives its command. `None`, and nothing changed, if it is another
    /// or has to wait.
    #[inline(always)]
    pub(super) fn take_direct_read(
        &mut self,
        request: &ZonedRequest,
        buffers: &mut Buffers,
    ) -> Option<Command> {
        if request.op != ZonedOp::Read || !self.is_next_read_first() {
            return None;
        }
        // Field by field: a copy of what the host has just written in parts makes the processor wait.
        let &ZonedRequest { tag, block, count, buffer, .. } = request;
        let buffer = buffer?;
        let (number, within) = self.per_zone.div_rem(block);
        let number = u32::try_from(number).ok().filter(|&zone| zone < self.sizes.zone_count)?;
        let within = u32::try_from(within).ok()?;
        let first = self.place_on_media(number, within, count)?;
        for (offset, address) in (0..).zip(&mut buffers.addresses_mut(buffer)[..usize_of(count)]) {
            *address = Ppa { sector: first.sector + offset, ..first };
        }
        assert!(self.zone(number).reads.checked_add(count).is_some(), "zone {number} is read without end");
        self.stats.user_read += u64::from(count);
        self.zone_mut(number).reads += count;
        let request = ZonedRequest { tag, op: ZonedOp::Read, block, count, buffer: Some(buffer) };
        let request = self.requests.insert_issued(request, ZonedAnswer::Done);
        let purpose = Purpose::Read { request, index: 0, count };
        Some(self.flight.make(purpose, Op::Read, Addresses::Run { first, count }, Some(buffer), 0))
    }

    /// True if a read that comes now would be looked up and sent before anything else is done.
    #[inline(always)]
    fn is_next_read_first(&self) -> bool {
        let is_none_before = !self.flight.has_next() && self.flight.deadline().is_none();
        let has_room = self.requests.has_room() && self.flight.has_room(1);
        let is_taken = !self.is_shut_down && self.shutdown.is_none();
        is_none_before && has_room && is_taken && self.requests.next_read().is_none()
    }

    /// Where blocks of a zone begin on media, if all of them are there in one write unit, and nothing waits for the zone.
    #[inline(always)]
    fn place_on_media(&self, number: u32, within: u32, count: u32) -> Option<Ppa> {
        let zone = self.zone(number);
        let (at, in_unit) = self.per_unit.div_rem_u32(within);
        if count == 0 || count > VECTOR_MAX || in_unit + count > self.sizes.unit {
            return None;
        }
        assert!(in_unit < self.sizes.unit, "block {within} is at {in_unit} of unit {at}");
        let readable = match (zone.writer(), zone.finished_at()) {
            (None, finished_at) => finished_at?,
            (Some(key), finished_at) => {
                let writer = self.writers.get(key);
                if !writer.queue.is_empty() || writer.area.is_some() || writer.held.get(at).is_some() {
                    return None;
                }
                finished_at.unwrap_or(writer.admitted)
            }
        };
        if zone.state == ZoneState::Offline || within.checked_add(count).is_none_or(|end| end > readable) {
            return None;
        }
        let place = zone.place_by(at, self.sizes.unit, self.per_width);
        assert!(
            place.sector + in_unit + count <= self.sizes.chunk,
            "unit {at} of zone {number} leaves its chunk"
        );
        Some(Ppa::new(self.space.shape.chunk_id(place.chunk), place.sector + in_unit))
    }
}
