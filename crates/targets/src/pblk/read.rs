//! Reads: from the buffer, from media, or from nowhere, split where one turns into another (as Linux 5.3 and later
//! split them, `pblk-read.c`).
//!
//! Every sector from media is judged by its tag: the right block, content that matches its checksum. What the media say
//! is weak (High ECC) is queued to be written again. Deliberately not here: retries; the drive has tried.

use super::Pblk;
use super::canary::Canary;
use super::flight::Purpose;
use super::request::Taken;
use super::retry::Whose;
use crate::read_again::Failed;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{Kind, LineId, Mapped, PhysicalAddress, SectorTag, Slot};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Command, Completion, Op, Ppa, Status, VECTOR_MAX};

impl Pblk {
    /// Carries out waiting reads. True if any could be.
    pub(super) fn serve_reads(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(key) = self.requests.next_read() {
            if !self.serve_read(key, buffers) {
                break;
            }
            self.requests.read_issued(key);
            any = true;
        }
        any
    }

    /// Looks up the rest of a read; false if it must wait.
    fn serve_read(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let request = self.requests.get(key).request;
        let buffer = request.buffer.expect("a read without a buffer was refused");
        loop {
            let done = self.requests.get(key).done;
            assert!(done <= request.count, "more was read than asked for");
            if done == request.count {
                return true;
            }
            let taken = match self.l2p.get(request.block + u64::from(done)) {
                Mapped::Nowhere => {
                    buffers.data_mut(buffer, done, 1).fill(0);
                    self.stats.read_empty += 1;
                    1
                }
                Mapped::Buffer(slot) => {
                    self.read_slot(key, slot, buffer, done, buffers);
                    1
                }
                Mapped::Media(first) if let Some(slot) = self.slot_of_unreadable(first) => {
                    self.read_slot(key, slot, buffer, done, buffers);
                    1
                }
                Mapped::Media(first) => match self.read_media(key, first, done, buffers) {
                    Some(count) => count,
                    None => return false,
                },
            };
            self.requests.get_mut(key).done += taken;
            self.stats.user_read += u64::from(taken);
        }
    }

    fn read_slot(&mut self, key: SlabKey, slot: Slot, buffer: BufId, index: u32, buffers: &mut Buffers) {
        let kind = self.tag_in(slot, buffers).kind;
        assert!(slot.0 < self.write_buffer.slots(), "slot {} is beyond the buffer", slot.0);
        assert_ne!(kind, Kind::Pad, "the map names padding as a block");
        if kind == Kind::Lost {
            self.requests.fail(key, Status::UNRECOVERED_READ);
            self.stats.read_failed += 1;
        }
        buffers.copy_data(self.ring, slot.0, buffer, index, 1);
        self.stats.read_cached += 1;
    }

    /// Takes a read of one sector on media and gives its command at once: nearly all reads are that, and it is what
    /// [`Self::serve_reads`] would come to. `None`, and nothing changed, if it is another or has to wait.
    #[inline(always)]
    pub(super) fn take_direct_read(&mut self, request: &BlockRequest) -> Option<Command> {
        let may_go = self.is_quiet() && self.requests.has_room() && self.flight.has_room(1);
        if request.op != BlockOp::Read || request.count != 1 || !may_go || self.refusal(request).is_some() {
            return None;
        }
        // Field by field: a copy of what the host has just written in parts makes the processor wait.
        let BlockRequest { tag, block, buffer, .. } = *request;
        let Mapped::Media(place) = self.l2p.get(block) else { return None };
        let (line, unit, sector) = self.shape.split(place);
        if !self.can_read(line, unit, sector) {
            return None;
        }
        self.lines.begin_read(line);
        let first = Ppa::new(self.shape.chunk(line, unit), sector);
        let request = BlockRequest { tag, op: BlockOp::Read, block, count: 1, buffer };
        let key = self.requests.insert_issued(request, Taken { since: self.now });
        self.stats.user_read += 1;
        self.reading.by_users += 1;
        let purpose = Purpose::Read { request: key, index: 0, count: 1, first };
        let addresses = Addresses::Run { first, count: 1 };
        Some(self.flight.make(purpose, Op::Read, addresses, buffer, 0))
    }

    /// Sends one command for the sectors on media from `index` on; how many, or `None` if it must wait.
    fn read_media(
        &mut self,
        key: SlabKey,
        first: PhysicalAddress,
        index: u32,
        buffers: &mut Buffers,
    ) -> Option<u32> {
        if !self.flight.has_room(1) && !self.has_canary(Canary::CommandsOverrun) {
            return None;
        }
        let request = self.requests.get(key).request;
        let buffer = request.buffer.expect("a read without a buffer was refused");
        let most = (request.count - index).min(VECTOR_MAX);
        let mut count = 0;
        let mut is_run = true;
        let mut place = first;
        let start = self.shape.split(first);
        let mut at = start;
        loop {
            let (line, unit, sector) = at;
            if !self.can_read(line, unit, sector) {
                // Only with a buffer smaller than the device needs: more must be written behind it first.
                self.pad_behind = true;
                self.stats.read_parked += 1;
                break;
            }
            self.lines.begin_read(line);
            is_run &= (line, unit) == (start.0, start.1) && place.0 == first.0 + u64::from(count);
            let ppa = Ppa::new(self.shape.chunk(line, unit), sector);
            buffers.addresses_mut(buffer)[usize_of(index + count)] = ppa;
            count += 1;
            if count == most {
                break;
            }
            match self.l2p.get(request.block + u64::from(index + count)) {
                Mapped::Media(next) if self.slot_of_unreadable(next).is_none() => {
                    (place, at) = (next, self.shape.split(next));
                }
                Mapped::Media(_) | Mapped::Nowhere | Mapped::Buffer(_) => break,
            }
        }
        if count == 0 {
            return None;
        }
        assert!(count <= most, "more is read than was asked for");
        assert!(index + count <= request.count, "a read passes its end");
        let first = Ppa::new(self.shape.chunk(start.0, start.1), start.2);
        let addresses =
            if is_run { Addresses::Run { first, count } } else { Addresses::List { offset: index, count } };
        self.reading.by_users += 1;
        let purpose = Purpose::Read { request: key, index, count, first };
        self.flight.send(purpose, Op::Read, addresses, Some(buffer), index);
        self.requests.begin_parts(key, 1);
        Some(count)
    }

    /// False while a sector is in the window of MW_CUNITS behind an open chunk's pointer.
    fn can_read(&self, line: LineId, unit: ocssd_ftl::UnitIndex, sector: u32) -> bool {
        self.open[line.index()].as_ref().is_none_or(|open| sector < open.readable(unit))
    }

    /// A user's read ended; the reply of its request, if that is over.
    #[inline(always)]
    pub(super) fn read_done(
        &mut self,
        key: SlabKey,
        (index, count, first): (u32, u32, Ppa),
        completion: &Completion,
        buffers: &Buffers,
    ) -> Option<BlockReply> {
        let BlockRequest { block: start, buffer, count: asked, .. } = self.requests.get(key).request;
        assert!(index + count <= asked, "a read ended beyond its request");
        let buffer = buffer.expect("a read has a buffer");
        let mut bad = None;
        for offset in 0..count {
            // The address of a single sector is known without its list.
            let ppa = if count == 1 { first } else { buffers.addresses(buffer)[usize_of(index + offset)] };
            let line = self.line_of_chunk(ppa);
            self.lines.end_read(line);
            let status = completion.status_of(offset);
            let block = start + u64::from(index + offset);
            if let Err(status) = self.judge_read(status, block, (buffer, index + offset), ppa, buffers) {
                let bits = bad.map_or(0, |(bits, _)| bits);
                bad = Some((bits | 1 << offset, status));
                // Until it was read again.
                self.lines.begin_read(line);
            }
        }
        assert!(count > 0, "a read of nothing ended");
        if let Some((bits, status)) = bad {
            let whose = Whose::User { request: key, index, count, first };
            self.retry(whose, Failed::new(bits, status), buffers);
            return None;
        }
        self.requests.part_over(key)
    }

    /// Judges a sector that was read for a user.
    ///
    /// # Errors
    /// How it failed: the drive's status, or 281h if it holds something else.
    #[inline(always)]
    pub(super) fn judge_read(
        &mut self,
        status: Status,
        block: u64,
        (buffer, sector): (BufId, u32),
        ppa: Ppa,
        buffers: &Buffers,
    ) -> Result<(), Status> {
        if !status.has_data() {
            return Err(status);
        }
        if !status.is_success() {
            self.stats.read_high_ecc += 1;
            self.refresh(self.place_of(ppa));
        }
        let content = buffers.data(buffer, sector, 1);
        let sound = SectorTag::decode(buffers.oob(buffer, sector, 1), content);
        let fits = sound.is_ok_and(|tag| tag.kind == Kind::Data && tag.block == block);
        let is_blank = || buffers.oob(buffer, sector, 1).iter().all(|&byte| byte == 0);
        if fits
            || self.has_canary(Canary::ReadUnchecked)
            || self.has_canary(Canary::BlankIsZeroes) && is_blank()
        {
            return Ok(());
        }
        self.stats.read_corrupt += u64::from(!sound.is_ok_and(|tag| tag.kind == Kind::Lost));
        Err(Status::UNRECOVERED_READ)
    }

    /// The line a sector of this instance is in.
    pub(super) fn line_of_chunk(&self, ppa: Ppa) -> LineId {
        LineId(self.by_lines.div_rem_u32(ppa.chunk.0).1)
    }

    /// The place of a sector of this instance.
    pub(super) fn place_of(&self, ppa: Ppa) -> PhysicalAddress {
        let (pu, _) = self.by_lines.div_rem_u32(ppa.chunk.0);
        let unit = self.unit_of_pu[usize_of(pu)].expect("the sector is of a leased unit");
        let start = self.shape.chunk_start(self.line_of_chunk(ppa), unit);
        PhysicalAddress(start.0 + u64::from(ppa.sector))
    }
}
