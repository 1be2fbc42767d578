//! Reads: blocks come from buffer units, from media, or are zeroes behind the write pointer; what a read-only zone lost is an
//! error.
//!
//! A read that was taken while something waits for its zone waits its turn, unless all it asks for is in buffer units or on media
//! and no reset is ahead of it. Every sector from media is judged by its tag. Deliberately not here: sectors that
//! are asked for again (`retry`).

use super::flight::Purpose;
use super::state::Zns;
use super::writer::ZoneOp;
use crate::read_again::Failed;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::SectorTag;
use ocssd_lightnvm::interface::zoned::{ZoneState, ZonedRequest};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status, VECTOR_MAX};

impl Zns {
    /// Takes a read: looks its blocks up now, or in the zone's turn.
    pub(super) fn take_read(&mut self, zone: u32, request: SlabKey, buffers: &mut Buffers) {
        let ZonedRequest { block, count, .. } = self.requests.get(request).request;
        let end = block - self.geometry.start_of(zone) + u64::from(count);
        if let Some(key) = self.zone(zone).writer() {
            let writer = self.writers.get_mut(key);
            let is_other = |op: &ZoneOp| matches!(op, ZoneOp::Reset(_) | ZoneOp::Offline(_));
            if !writer.queue.is_empty()
                && (end > u64::from(writer.admitted) || writer.queue.iter().any(is_other))
            {
                writer.queue.push_back(ZoneOp::Read(request));
                self.work_due = true;
                return;
            }
        }
        self.resolve(request, buffers);
    }

    /// Looks up every block. What is not on media is there at once; of the rest the addresses are in the buffer's list.
    pub(super) fn resolve(&mut self, request: SlabKey, buffers: &mut Buffers) {
        let asked = self.requests.get(request).request;
        let buffer = asked.buffer.expect("a read without a buffer was refused");
        let number = self.geometry.zone_of(asked.block).expect("a read of no zone was refused");
        let first = asked.block - self.geometry.start_of(number);
        let (unit, mut is_lost) = (u64::from(self.sizes.unit), false);
        let zone = &self.zones[usize_of(number)];
        let writer = zone.writer().map(|key| self.writers.get(key));
        let readable = match (zone.finished_at(), writer) {
            (Some(finished_at), _) => finished_at,
            (None, Some(writer)) => writer.admitted,
            (None, None) => 0,
        };
        self.stats.user_read += u64::from(asked.count);
        let (mut index, mut reads) = (0, 0);
        while index < asked.count {
            let at = first + u64::from(index);
            let within = u32::try_from(at % unit).expect("below a unit");
            let nth = u32::try_from(at / unit).expect("a zone has 32-bit units");
            let count = (self.sizes.unit - within).min(asked.count - index);
            let is_behind = at >= u64::from(readable);
            let area = writer.filter(|writer| writer.area.is_some());
            let buffer_unit = writer.filter(|_| !is_behind || area.is_some());
            let buffer_unit = buffer_unit.and_then(|writer| writer.held.get(nth));
            // A unit of an area in which nothing was written has no buffer unit, and no place until it is committed.
            let is_hole = buffer_unit.is_none() && area.is_some_and(|writer| !writer.is_on_media(nth));
            if is_behind && !is_hole && buffer_unit.is_none() {
                let left = asked.count - index;
                buffers.data_mut(buffer, index, left).fill(0);
                buffers.addresses_mut(buffer)[usize_of(index)..usize_of(asked.count)].fill(Ppa::NOWHERE);
                self.stats.read_empty += u64::from(left);
                is_lost = zone.state == ZoneState::ReadOnly && at < u64::from(zone.written);
                break;
            }
            let left = u64::from(readable).saturating_sub(at);
            let count =
                if is_behind { count } else { u32::try_from(left.min(u64::from(count))).expect("a unit") };
            assert!(count > 0, "a read stands still at block {at} of zone {number}");
            let list = &mut buffers.addresses_mut(buffer)[usize_of(index)..usize_of(index + count)];
            if let Some(buffer_unit) = buffer_unit {
                list.fill(Ppa::NOWHERE);
                buffers.copy_data(self.buffer_units.buffer(buffer_unit), within, buffer, index, count);
                let holes = (0..count).filter(|offset| !self.buffer_units.has(buffer_unit, within + offset));
                holes.for_each(|offset| buffers.data_mut(buffer, index + offset, 1).fill(0));
                self.stats.read_cached += u64::from(count);
            } else if is_hole {
                list.fill(Ppa::NOWHERE);
                buffers.data_mut(buffer, index, count).fill(0);
                self.stats.read_empty += u64::from(count);
                is_lost |= zone.state == ZoneState::ReadOnly && is_behind && at < u64::from(zone.written);
            } else {
                let place = zone.place(nth, self.sizes.unit);
                let chunk = self.space.shape.chunk_id(place.chunk);
                for (offset, address) in (0..).zip(list) {
                    *address = Ppa::new(chunk, place.sector + within + offset);
                }
                reads += count;
            }
            index += count;
        }
        if is_lost {
            // Answered, and its buffer unit was needed, or a mount had none for it: not to be taken for never written.
            self.requests.fail(request, Status::UNRECOVERED_READ);
        }
        assert!(reads <= asked.count, "{reads} sectors are read for {} blocks", asked.count);
        self.zone_mut(number).reads += reads;
        self.requests.queue_read(request);
        self.work_due = true;
    }

    /// Sends commands of reads. True if any could be.
    pub(super) fn serve_reads(&mut self, buffers: &Buffers) -> bool {
        let mut any = false;
        while let Some(request) = self.requests.next_read() {
            if !self.send_reads(request, buffers) {
                break;
            }
            self.requests.read_issued(request);
            any = true;
        }
        any
    }

    /// Sends the commands of a read. False if there is no room for all.
    fn send_reads(&mut self, request: SlabKey, buffers: &Buffers) -> bool {
        let asked = self.requests.get(request).request;
        let buffer = asked.buffer.expect("a read without a buffer was refused");
        loop {
            let done = self.requests.get(request).done;
            let list = &buffers.addresses(buffer)[usize_of(done)..usize_of(asked.count)];
            let nowhere = list.iter().take_while(|&&ppa| ppa == Ppa::NOWHERE).count();
            let found =
                list[nowhere..].iter().take(usize_of(VECTOR_MAX)).take_while(|&&ppa| ppa != Ppa::NOWHERE);
            let count = u32::try_from(found.count()).expect("at most 64");
            let index = done + u32::try_from(nowhere).expect("no more than the count");
            self.requests.get_mut(request).done = index;
            if count == 0 {
                assert_eq!(index, asked.count, "a read ends before its last block");
                return true;
            }
            if !self.flight.has_room(1) {
                return false;
            }
            let list = &list[nowhere..nowhere + usize_of(count)];
            let first = list[0];
            let is_run =
                (0..).zip(list).all(|(offset, &ppa)| ppa == Ppa::new(first.chunk, first.sector + offset));
            let addresses = if is_run {
                Addresses::Run { first, count }
            } else {
                Addresses::List { offset: index, count }
            };
            let purpose = Purpose::Read { request, index, count };
            self.flight.send(purpose, Op::Read, addresses, Some(buffer), index);
            self.requests.begin_parts(request, 1);
            self.requests.get_mut(request).done += count;
        }
    }

    /// Sectors of a read ended.
    pub(super) fn read_done(
        &mut self,
        request: SlabKey,
        (index, count): (u32, u32),
        completion: &Completion,
        buffers: &Buffers,
    ) {
        let asked = self.requests.get(request).request;
        let buffer = asked.buffer.expect("a read has a buffer");
        assert!(count > 0 && index + count <= asked.count, "a read ended beyond its request");
        let (mut bad, mut how) = (0, Status::SUCCESS);
        for offset in 0..count {
            let status = completion.status_of(offset);
            let block = asked.block + u64::from(index + offset);
            if let Err(status) = Self::judge_sector(status, block, (buffer, index + offset), buffers) {
                bad |= 1 << offset;
                how = status;
            }
        }
        if bad == 0 {
            self.read_over(request, count);
        } else {
            self.retry((request, index, count), Failed::new(bad, how), buffers);
        }
    }

    /// Every sector of a command was read, or given up.
    pub(super) fn read_over(&mut self, request: SlabKey, count: u32) {
        let block = self.requests.get(request).request.block;
        let (number, _) = self.per_zone.div_rem(block);
        let number = u32::try_from(number).expect("a read of no zone was refused");
        let zone = self.zone_mut(number);
        assert!(zone.reads >= count, "more of zone {number} was read than asked for");
        zone.reads -= count;
        let may_go_on = zone.reads == 0 && zone.writer().is_some();
        self.work_due |= may_go_on;
        self.requests.part_done(request);
    }

    /// Judges a sector that was read.
    ///
    /// # Errors
    /// How it failed: the drive's status, or 281h if it holds something else.
    pub(super) fn judge_sector(
        status: Status,
        block: u64,
        (buffer, sector): (BufId, u32),
        buffers: &Buffers,
    ) -> Result<(), Status> {
        if !status.has_data() {
            return Err(status);
        }
        let tag = SectorTag::decode(buffers.oob(buffer, sector, 1), buffers.data(buffer, sector, 1));
        if tag.is_ok_and(|tag| tag.kind.is_of_zone() && tag.block == block) {
            return Ok(());
        }
        Err(Status::UNRECOVERED_READ)
    }
}
