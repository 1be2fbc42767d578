//! Reads: all blocks of a request are looked up together, so that it shows one state of the map; then they come from buffer units,
//! from media, or from nowhere.
//!
//! Every sector from media is judged by its tag: the right block, content that matches its checksum. An unmapped block is
//! zeroes, and no read of anything (defect 9 of docs/ox-block.md). Deliberately not here: sectors that are asked for again
//! (`retry`).

use super::requests::OfRequest;
use super::store::{BlockRead, OxBlock, UserRead};
use crate::ox::flight::Purpose;
use crate::ox::retry::Whose;
use crate::ox::state::Ending;
use crate::ox::write_buffer::BufferUnitId;
use crate::read_again::Failed;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{Append, Kind, Mapped, SectorTag};
use ocssd_lightnvm::block::{BlockOp, BlockRequest};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Command, Completion, Op, Ppa, Status, VECTOR_MAX};

impl OxBlock {
    /// Carries out waiting reads. True if any could be.
    pub(super) fn serve_reads(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(key) = self.store.requests.next_read() {
            if !self.store.requests.get(key).own.is_resolved {
                match self.has_pages_of_read(key, buffers) {
                    Ok(true) => self.resolve(key, buffers),
                    Ok(false) => break,
                    Err(status) => self.give_read_up(key, status, buffers),
                }
                any = true;
            }
            if !self.send_reads(key, buffers) {
                break;
            }
            self.store.requests.read_issued(key);
            any = true;
        }
        any
    }

    /// Takes a read of one block on media and gives its command at once: nearly all reads are that, and it is what
    /// [`Self::serve_reads`] would come to, first of all procedures. `None`, and nothing changed, if it is another or has to wait.
    #[inline(always)]
    pub(super) fn take_direct_read(
        &mut self,
        request: &BlockRequest,
        buffers: &mut Buffers,
    ) -> Option<Command> {
        if request.op != BlockOp::Read || request.count != 1 || !self.is_next_read_first() {
            return None;
        }
        // Field by field: a copy of what the host has just written in parts makes the processor wait.
        let BlockRequest { tag, block, buffer, .. } = *request;
        let buffer = buffer?;
        if block >= self.sizes.blocks || self.store.transactions.role_of(tag).is_some() {
            return None;
        }
        let Mapped::Media(place) = self.store.l2p.get(block) else { return None };
        let (chunk, sector) = self.space.shape.chunk_of(place);
        if self.is_lost(place) || self.held_at(Append { chunk, sector }).is_some() {
            return None;
        }
        self.space.hold(chunk);
        let first = Ppa::new(self.space.shape.chunk_id(chunk), sector);
        buffers.addresses_mut(buffer)[0] = first;
        self.store.stats.user_read += 1;
        let request = BlockRequest { tag, op: BlockOp::Read, block, count: 1, buffer: Some(buffer) };
        let own = OfRequest { is_resolved: true, role: None };
        let request = self.store.requests.insert_issued(request, own);
        let purpose = Purpose::Own(BlockRead::User(UserRead { request, index: 0, count: 1 }));
        let addresses = Addresses::Run { first, count: 1 };
        Some(self.flight.make(purpose, Op::Read, addresses, Some(buffer), 0))
    }

    /// True if a read that comes now would be looked up and sent before anything else is done, its pages being in memory.
    fn is_next_read_first(&self) -> bool {
        let is_none_before = !self.flight.has_next() && self.flight.deadline().is_none();
        let has_room = self.store.requests.has_room() && self.flight.has_room(1);
        let is_taken = self.ending == Ending::No && self.store.cache.is_none();
        is_none_before && has_room && is_taken && self.store.requests.next_read().is_none()
    }

    /// Looks up every block. What is not on media is there at once; of the rest the addresses are in the buffer's list.
    fn resolve(&mut self, key: SlabKey, buffers: &mut Buffers) {
        let request = self.store.requests.get(key).request;
        let buffer = request.buffer.expect("a read without a buffer was refused");
        self.store.stats.user_read += u64::from(request.count);
        assert!(request.block + u64::from(request.count) <= self.sizes.blocks, "{request:?} was not refused");
        for index in 0..request.count {
            let ppa = match self.store.l2p.get(request.block + u64::from(index)) {
                Mapped::Nowhere => {
                    buffers.data_mut(buffer, index, 1).fill(0);
                    self.store.stats.read_empty += 1;
                    Ppa::NOWHERE
                }
                Mapped::Media(place) if self.is_lost(place) => {
                    self.store.stats.read_failed += 1;
                    self.store.requests.fail(key, Status::UNRECOVERED_READ);
                    Ppa::NOWHERE
                }
                Mapped::Media(place) => match self.held(place) {
                    Some((buffer_unit, offset)) => {
                        buffers.copy_data(self.buffer.buffer(buffer_unit), offset, buffer, index, 1);
                        self.store.stats.read_cached += 1;
                        self.held_is_lost(key, buffer_unit, offset, buffers)
                    }
                    None => {
                        self.space.hold(self.space.shape.chunk_of(place).0);
                        self.space.shape.ppa(place)
                    }
                },
                Mapped::Buffer(slot) => unreachable!("{slot:?} is no place of this target"),
            };
            buffers.addresses_mut(buffer)[usize_of(index)] = ppa;
        }
        self.store.requests.get_mut(key).own.is_resolved = true;
    }

    /// Where its blocks are cannot be told: the read ends with this status.
    fn give_read_up(&mut self, key: SlabKey, status: Status, buffers: &mut Buffers) {
        let request = self.store.requests.get(key).request;
        let buffer = request.buffer.expect("a read without a buffer was refused");
        buffers.addresses_mut(buffer)[..usize_of(request.count)].fill(Ppa::NOWHERE);
        self.store.stats.read_failed += u64::from(request.count);
        self.store.requests.fail(key, status);
        self.store.requests.get_mut(key).own.is_resolved = true;
    }

    /// What is held may be the copy of a sector that the media lost.
    fn held_is_lost(
        &mut self,
        key: SlabKey,
        buffer_unit: BufferUnitId,
        offset: u32,
        buffers: &Buffers,
    ) -> Ppa {
        let source = self.buffer.buffer(buffer_unit);
        let tag = SectorTag::decode(buffers.oob(source, offset, 1), buffers.data(source, offset, 1));
        if tag.is_ok_and(|tag| tag.kind == Kind::Lost) {
            self.store.requests.fail(key, Status::UNRECOVERED_READ);
        }
        Ppa::NOWHERE
    }

    /// Sends the commands of a read. False if there is no room for all.
    fn send_reads(&mut self, key: SlabKey, buffers: &Buffers) -> bool {
        let request = self.store.requests.get(key).request;
        let buffer = request.buffer.expect("a read without a buffer was refused");
        loop {
            let done = self.store.requests.get(key).done;
            let list = &buffers.addresses(buffer)[usize_of(done)..usize_of(request.count)];
            let nowhere = list.iter().take_while(|&&ppa| ppa == Ppa::NOWHERE).count();
            let found =
                list[nowhere..].iter().take(usize_of(VECTOR_MAX)).take_while(|&&ppa| ppa != Ppa::NOWHERE);
            let count = u32::try_from(found.count()).expect("at most 64");
            let index = done + u32::try_from(nowhere).expect("no more than the count");
            self.store.requests.get_mut(key).done = index;
            if count == 0 {
                assert_eq!(index, request.count, "a read ends before its last block");
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
            let purpose = Purpose::Own(BlockRead::User(UserRead { request: key, index, count }));
            self.flight.send(purpose, Op::Read, addresses, Some(buffer), index);
            self.store.requests.begin_parts(key, 1);
            self.store.requests.get_mut(key).done += count;
        }
    }

    /// Sectors of a user's read ended.
    pub(super) fn user_read_done(&mut self, read: UserRead, completion: &Completion, buffers: &Buffers) {
        let UserRead { request, index, count } = read;
        let asked = self.store.requests.get(request).request;
        let buffer = asked.buffer.expect("a read has a buffer");
        assert!(count > 0 && index + count <= asked.count, "a read ended beyond its request");
        let (mut bad, mut how) = (0, Status::SUCCESS);
        for offset in 0..count {
            let status = completion.status_of(offset);
            let block = asked.block + u64::from(index + offset);
            if let Err(status) = Self::judge_block(status, block, (buffer, index + offset), buffers) {
                bad |= 1 << offset;
                how = status;
            }
        }
        if bad == 0 {
            self.read_over(read, buffers);
        } else {
            self.retry(Whose::Own(BlockRead::User(read)), Failed::new(bad, how), buffers);
        }
        // What waits for a command has room for one, if there was none before.
        let was_full = !self.flight.has_room(2);
        let is_next = was_full || self.store.requests.next_read().is_some();
        self.work_due |= is_next || self.flight.len() == 0;
    }

    /// Where a sector of a user's read is, and where it goes to.
    pub(super) fn place_of_user_read(
        &self,
        UserRead { request, index, count }: UserRead,
        sector: u32,
        buffers: &Buffers,
    ) -> (Ppa, BufId, u32) {
        assert!(sector < count, "sector {sector} of {count} is read again");
        let buffer = self.store.requests.get(request).request.buffer.expect("a read has a buffer");
        (buffers.addresses(buffer)[usize_of(index + sector)], buffer, index + sector)
    }

    /// Every sector of a command was read, or given up.
    pub(super) fn read_over(&mut self, UserRead { request, index, count }: UserRead, buffers: &Buffers) {
        let buffer = self.store.requests.get(request).request.buffer.expect("a read has a buffer");
        for offset in index..index + count {
            let ppa = buffers.addresses(buffer)[usize_of(offset)];
            let chunk = self.space.shape.find_chunk(ppa.chunk).expect("a read is of a chunk of the instance");
            self.space.let_go(chunk);
        }
        self.work_due |= self.space.dead_count() > 0;
        self.store.requests.part_done(request);
    }

    /// Judges a sector that was read for a user.
    ///
    /// # Errors
    /// How it failed: the drive's status, or 281h if it holds something else.
    pub(super) fn judge_block(
        status: Status,
        block: u64,
        (buffer, sector): (BufId, u32),
        buffers: &Buffers,
    ) -> Result<(), Status> {
        if !status.has_data() {
            return Err(status);
        }
        let content = buffers.data(buffer, sector, 1);
        let tag = SectorTag::decode(buffers.oob(buffer, sector, 1), content);
        if tag.is_ok_and(|tag| tag.kind == Kind::Data && tag.block == block) {
            return Ok(());
        }
        Err(Status::UNRECOVERED_READ)
    }
}
