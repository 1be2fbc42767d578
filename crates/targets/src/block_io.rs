//! Requests for blocks and the commands they become, for an FTL whose blocks are sectors with tags.
//!
//! Reads are looked up where the FTL says, tried again where that may help, and handed out only if the tag is the block's.
//! Changes are given to the FTL block by block. A barrier answers who waits for durability, and lets chunks go to be reset once
//! nobody reads them: the FTL begins one, has everything written, and the drive's cache is flushed. A drive that fails ends all
//! changes, and reads go on. Deliberately not here: the map, where anything is written (`unit_writer`), and which chunks are dead.

use crate::flight::{COMMANDS_MAX, Flight};
use crate::plane_reads::{PlaneReads, PlaneRule};
use crate::read_again::{ReadTries, as_loss};
use crate::refusal::{Takes, refusal};
use crate::request_table::{Pending, PlainBlocks, RequestKind, RequestTable};
use crate::unit_writer::{UnitProgram, UnitWriter};
use ocssd_base::{Nanos, SlabKey, usize_of};
use ocssd_ftl::{
    BufferUnitId, ChunkIndex, ChunkPool, FlushQueue, InstanceGeometry, Kind, Mapped, PhysicalAddress,
    SectorTag, Sequence, Slot,
};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Addresses, Admission, BufId, Buffers, Completion, Geometry, Op, Out, Status};
use std::collections::VecDeque;

/// Requests at once (chosen: what the deepest NVMe queue pair of a host holds).
const REQUESTS_MAX: u32 = 1024;

/// Who reads a sector.
#[derive(Clone, Copy, Debug)]
enum Reader {
    User(SlabKey),
    /// The FTL itself, into this slot.
    Ftl(Slot),
}

/// A read of one sector.
#[derive(Clone, Copy, Debug)]
struct Read {
    reader: Reader,
    place: PhysicalAddress,
    buffer: BufId,
    at: u32,
    tries: ReadTries,
}

/// What a command in flight is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Read(Read),
    Program(BufferUnitId),
    Flush,
    Reset(ChunkIndex),
}

/// What the FTL hears of a command's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A sector it asked for was read into a slot, with this tag; without one if the media lost it.
    Read(Slot, PhysicalAddress, Option<SectorTag>),
    /// A unit was programmed, or failed with this status.
    Programmed(BufferUnitId, Status),
    /// A chunk is free.
    Reset(ChunkIndex),
    /// A chunk could not be reset, and must not be used again.
    ResetFailed(ChunkIndex),
}

/// A block that changes.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Which.
    pub block: u64,
    /// Buffer and sector of its content; without one it is to read as zeroes.
    pub content: Option<(BufId, u32)>,
}

/// How far a barrier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    No,
    /// Everything before it goes to the media, and nothing is taken behind it.
    Closing,
    Flushing,
}

/// Requests that are not answered, and commands that did not end.
#[derive(Clone, Debug)]
pub struct BlockIo {
    shape: InstanceGeometry,
    unit_sectors: u32,
    sector_bytes: u32,
    requests: RequestTable<PlainBlocks>,
    flight: Flight<Purpose>,
    /// Who waits for a barrier, and which chunks do.
    barriers: FlushQueue<ChunkIndex>,
    barrier: Barrier,
    to_reset: VecDeque<ChunkIndex>,
    /// Reads in flight by chunk.
    readers: Vec<u32>,
    /// Why nothing is changed any more.
    stopped: Option<Status>,
}

impl BlockIo {
    /// None, on the chunks of `shape`.
    #[must_use]
    pub fn new(geometry: &Geometry, shape: &InstanceGeometry) -> Self {
        Self {
            shape: shape.clone(),
            unit_sectors: geometry.ws_opt,
            sector_bytes: geometry.sector_bytes,
            requests: RequestTable::new(REQUESTS_MAX),
            flight: Flight::new(COMMANDS_MAX, PlaneRule::new(PlaneReads::default(), geometry.ws_opt)),
            barriers: FlushQueue::new(usize_of(REQUESTS_MAX)),
            barrier: Barrier::No,
            to_reset: VecDeque::new(),
            readers: vec![0; usize_of(shape.chunks())],
            stopped: None,
        }
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Takes a request of a target of `blocks`; all changes so far are up to `newest`.
    pub fn submit(&mut self, request: &BlockRequest, blocks: u64, newest: Sequence) -> Admission {
        if !self.requests.has_room() {
            return Admission::Full;
        }
        let takes = Takes { blocks, is_shut_down: false, refuses_changes: self.stopped };
        let is_flush = matches!(request.op, BlockOp::Flush | BlockOp::Shutdown);
        if let Some(status) = refusal(request, takes).or(self.stopped.filter(|_| is_flush)) {
            self.requests.reply(PlainBlocks.reply(request, status));
            return Admission::Taken;
        }
        let key = self.requests.insert(*request, PlainBlocks);
        match request.op {
            BlockOp::Read => self.requests.queue_read(key),
            _ if is_flush => self.barriers.wait(newest, key),
            _ => self.requests.queue_change(key),
        }
        Admission::Taken
    }

    /// Reads the next block of the oldest read: the map is asked where it is. True if there was one.
    pub fn read(&mut self, buffers: &mut Buffers, writer: &UnitWriter, map: impl Fn(u64) -> Mapped) -> bool {
        let Some(key) = self.requests.next_read().filter(|_| self.flight.has_room(1)) else { return false };
        let Pending { request, done: at, .. } = *self.requests.get(key);
        let buffer = request.buffer.expect("a read has a buffer");
        match map(request.block + u64::from(at)) {
            Mapped::Nowhere => buffers.data_mut(buffer, at, 1).fill(0),
            Mapped::Buffer(slot) if writer.tag(slot).kind == Kind::Lost => {
                self.requests.fail(key, Status::UNRECOVERED_READ);
            }
            Mapped::Buffer(slot) => buffers.copy_data(writer.memory(), slot.0, buffer, at, 1),
            Mapped::Media(place) => {
                self.requests.begin_parts(key, 1);
                self.send_read(Read {
                    reader: Reader::User(key),
                    place,
                    buffer,
                    at,
                    tries: ReadTries::FIRST,
                });
            }
        }
        self.requests.get_mut(key).done += 1;
        if at + 1 == request.count {
            self.requests.read_issued(key);
        }
        true
    }

    /// Reads a sector into a slot, for which there must be [room](Self::has_room).
    pub fn read_into(&mut self, slot: Slot, place: PhysicalAddress, writer: &UnitWriter) {
        let (buffer, at) = (writer.memory(), slot.0);
        self.send_read(Read { reader: Reader::Ftl(slot), place, buffer, at, tries: ReadTries::FIRST });
    }

    fn send_read(&mut self, read: Read) {
        self.readers[self.shape.chunk_of(read.place).0.index()] += 1;
        self.flight.send(Purpose::Read(read), Op::Read, self.run(read.place, 1), Some(read.buffer), read.at);
    }

    fn run(&self, first: PhysicalAddress, count: u32) -> Addresses {
        Addresses::Run { first: self.shape.ppa(first), count }
    }

    /// The next block of the oldest change; [`Self::change_taken`] takes it. None while a barrier closes.
    #[must_use]
    pub fn next_change(&self) -> Option<Change> {
        let key = self.requests.next_change().filter(|_| self.barrier != Barrier::Closing)?;
        let Pending { request, done, .. } = *self.requests.get(key);
        let is_write = matches!(request.op, BlockOp::Write { .. });
        let content = request.buffer.filter(|_| is_write).map(|buffer| (buffer, done));
        Some(Change { block: request.block + u64::from(done), content })
    }

    /// The block is in memory, as the change of this number. The last of a request answers it, or has it wait for a barrier.
    ///
    /// # Panics
    /// If there is no change.
    pub fn change_taken(&mut self, sequence: Sequence) {
        let key = self.requests.next_change().expect("a change was taken");
        let pending = self.requests.get_mut(key);
        pending.done += 1;
        let Pending { request, done, .. } = *pending;
        assert!(done <= request.count, "more was taken of a change than it has");
        if done == request.count {
            self.requests.admitted(key);
            match request.op {
                BlockOp::Write { fua: true } => self.barriers.wait(sequence, key),
                _ => self.requests.end(key),
            }
        }
    }

    /// Programs the next unit. True if there was one, and a place for it.
    pub fn program(&mut self, writer: &mut UnitWriter, pool: &mut ChunkPool) -> bool {
        let next = if self.has_room() { writer.next_program(pool) } else { None };
        let Some(UnitProgram { unit, first, place }) = next else { return false };
        let addresses = self.run(place, self.unit_sectors);
        let op = Op::Write { fua: false };
        self.flight.send(Purpose::Program(unit), op, addresses, Some(writer.memory()), first.0);
        true
    }

    /// True if another command may be sent.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.flight.has_room(1)
    }

    /// True while nothing may be taken behind a barrier.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.barrier == Barrier::Closing
    }

    /// True if somebody waits for a barrier and none is on its way.
    #[must_use]
    pub fn wants_barrier(&self) -> bool {
        self.barrier == Barrier::No && !self.barriers.is_idle()
    }

    /// True if a barrier is on its way.
    #[must_use]
    pub fn has_barrier(&self) -> bool {
        self.barrier != Barrier::No
    }

    /// A barrier begins, which lets these chunks go: what superseded their content is on its way to the media.
    ///
    /// # Panics
    /// If one is on its way.
    pub fn begin_barrier(&mut self, dead: impl IntoIterator<Item = ChunkIndex>) {
        assert_eq!(self.barrier, Barrier::No, "a barrier begins behind another");
        assert!(self.stopped.is_none(), "a barrier begins on a drive that failed");
        self.barrier = Barrier::Closing;
        self.barriers.free(dead);
    }

    /// Sends the flush of a barrier before which everything is written. True if it could.
    pub fn flush(&mut self, is_written: bool) -> bool {
        let is_due = self.barrier == Barrier::Closing && is_written && self.has_room();
        if is_due {
            self.barrier = Barrier::Flushing;
            self.barriers.gather(|_, _| true);
            self.barriers.sent();
            self.flight.send(Purpose::Flush, Op::Flush, Addresses::None, None, 0);
        }
        is_due
    }

    /// Resets a chunk that was let go and that nobody reads. True if there was one.
    pub fn reset(&mut self) -> bool {
        let may_go = |chunk: &&ChunkIndex| self.readers[chunk.index()] == 0 && self.has_room();
        let Some(&chunk) = self.to_reset.front().filter(may_go) else { return false };
        self.to_reset.pop_front();
        assert!(self.stopped.is_none(), "chunk {} is reset on a drive that failed", chunk.0);
        let addresses = self.run(self.shape.first_place(chunk), 1);
        self.flight.send(Purpose::Reset(chunk), Op::Reset, addresses, None, 0);
        true
    }

    /// Chunks that wait for a barrier, or to be reset.
    #[must_use]
    pub fn coming(&self) -> usize {
        self.barriers.freed().len() + self.to_reset.len()
    }

    /// A command ended: what the FTL has to hear of it, if anything.
    pub fn on_completion(&mut self, now: Nanos, mut end: Completion, buffers: &Buffers) -> Option<Ended> {
        let purpose = self.flight.end(now, &mut end, buffers)?;
        let status = end.status;
        if let Purpose::Read(read) = purpose {
            return self.on_read(read, &end, buffers);
        }
        if status.is_drive_failure() {
            self.stop(status);
        }
        if self.stopped.is_some() {
            return None;
        }
        match purpose {
            Purpose::Read(_) => unreachable!("it was looked at"),
            Purpose::Program(unit) => Some(Ended::Programmed(unit, status)),
            Purpose::Flush => {
                assert!(status.is_success(), "a flush that failed in every try is of a drive that failed");
                let ended = self.barriers.ended();
                ended.answered.into_iter().for_each(|key| self.requests.end(key));
                self.to_reset.extend(ended.freed);
                self.barrier = Barrier::No;
                None
            }
            // What is free already is as good as reset: a report of before the power went may say otherwise.
            Purpose::Reset(chunk) if status.is_success() || status == Status::INVALID_RESET => {
                Some(Ended::Reset(chunk))
            }
            Purpose::Reset(chunk) => Some(Ended::ResetFailed(chunk)),
        }
    }

    fn on_read(&mut self, read: Read, end: &Completion, buffers: &Buffers) -> Option<Ended> {
        let Read { reader, place, buffer, at, mut tries } = read;
        let chunk = self.shape.chunk_of(place).0.index();
        assert!(self.readers[chunk] > 0, "a read of {place:?} ended twice");
        self.readers[chunk] -= 1;
        let Some(status) = tries.on_end(end, 1) else {
            self.send_read(Read { tries, ..read });
            return None;
        };
        let tag = SectorTag::decode(buffers.oob(buffer, at, 1), buffers.data(buffer, at, 1));
        let tag = tag.ok().filter(|_| status.has_data());
        let key = match reader {
            Reader::Ftl(slot) => return Some(Ended::Read(slot, place, tag)),
            Reader::User(key) => key,
        };
        let block = self.requests.get(key).request.block + u64::from(at);
        let is_its_own = tag.is_some_and(|tag| tag.kind == Kind::Data && tag.block == block);
        if !is_its_own {
            let is_of_media = status.has_data();
            let status = if is_of_media { Status::UNRECOVERED_READ } else { as_loss(status) };
            self.requests.fail(key, status);
        }
        self.requests.part_done(key);
        None
    }

    /// Why nothing is changed any more, if so.
    #[must_use]
    pub const fn stopped(&self) -> Option<Status> {
        self.stopped
    }

    /// Nothing is changed any more: whoever waits for that hears why. Reads go on.
    pub fn stop(&mut self, status: Status) {
        self.stopped = Some(self.stopped.unwrap_or(status));
        self.requests.drop_changes();
        for key in self.requests.keys(|pending| pending.request.op != BlockOp::Read) {
            self.requests.abandon(key, status);
        }
    }

    /// Gives the commands there is room for, and the replies.
    pub fn give(&mut self, out: &mut Out<BlockReply>) {
        while out.has_room()
            && let Some(command) = self.flight.take()
        {
            out.command(command);
        }
        while let Some(reply) = self.requests.poll_reply() {
            out.reply(reply);
        }
    }

    /// When a command is sent again next.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.flight.deadline()
    }

    /// Sends the commands again that waited long enough.
    pub fn on_deadline(&mut self, now: Nanos) {
        self.flight.on_deadline(now);
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        self.requests.check();
        self.flight.check();
        let reads: u32 = self.readers.iter().sum();
        assert!(usize_of(reads) <= self.flight.len(), "{reads} reads are in flight, and fewer commands");
        assert!(
            self.barrier != Barrier::Flushing || self.stopped.is_some() || self.barriers.is_in_flight(),
            "a barrier waits for a flush that was not sent"
        );
    }
}

impl std::fmt::Display for BlockIo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { barrier, barriers, to_reset, stopped, .. } = self;
        write!(f, "barrier {barrier:?}, chunks {:?} wait for it, ", barriers.freed())?;
        write!(f, "{to_reset:?} to be reset; stopped by {stopped:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Payload, PayloadFormat, PuId, Tag};

    #[test]
    fn a_barrier_is_wanted_while_somebody_waits_for_one_and_none_is_on_its_way() {
        let geometry = Geometry::example(1, 1, 4, 16, 4);
        let mut io = BlockIo::new(&geometry, &InstanceGeometry::new(&geometry, &[PuId(0)]));
        assert!(!io.wants_barrier(), "nobody waits");
        let flush =
            |tag| BlockRequest { tag: Tag(tag), op: BlockOp::Flush, block: 0, count: 0, buffer: None };
        assert!(io.submit(&flush(1), 16, Sequence(1)).is_taken());
        assert!(io.wants_barrier());
        io.begin_barrier([]);
        assert!(!io.wants_barrier(), "one is on its way");
        assert!(io.flush(true));
        assert!(io.submit(&flush(2), 16, Sequence(1)).is_taken());
        assert!(!io.wants_barrier(), "the second waits for the next one");
        let mut out = Out::new(Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry)), 4);
        io.give(&mut out);
        let end = Completion::success(out.commands()[0].tag);
        assert_eq!(io.on_completion(Nanos(1), end, out.commands_mut().1), None);
        assert!(io.wants_barrier(), "the first was answered, and the second waits");
        io.check();
    }
}
