//! The FTL: a map from blocks to places, what is valid, and greedy garbage collection.
//!
//! A write is answered once it lies in memory. Garbage collection copies what is valid in the emptiest chunk into a stream of its
//! own, and resets the chunk behind a barrier, a flush of all that was written before. Deliberately not here: checkpoints (a mount
//! reads every tag), streams for hot and cold data, wear levelling.

use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::{
    ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, Kind, L2p, LineId, Mapped, PhysicalAddress, SectorTag,
    Sequence, Slot, ValidMap,
};
use ocssd_lightnvm::block::{BlockReply, BlockRequest, BlockTarget, Counter};
use ocssd_lightnvm::{Admission, Buffers, Completion, Out, Status, Target};
use ocssd_targets::parts::{BlockIo, Change, Ended, UnitWriter};

/// The target.
pub struct OwnFtl {
    pub shape: InstanceGeometry,
    pub io: BlockIo,
    pub writer: UnitWriter,
    pub pool: ChunkPool,
    pub map: L2p,
    pub valid: ValidMap,
    /// The chunk that is being emptied, and from where on.
    pub victim: Option<(ChunkIndex, PhysicalAddress)>,
    pub gc_reads: u32,
    /// Emptied chunks that no barrier lets go yet.
    pub dead: Vec<ChunkIndex>,
    /// Writes of sectors so far.
    pub sequence: u64,
    /// Users wait while fewer chunks are free, and garbage collection begins at two more.
    pub reserve: u32,
    /// With fewer good chunks nothing is changed any more.
    pub needed: u32,
    /// A mistake for the simulator to find: a barrier leaves what users wrote last in memory.
    pub leaves_unit: bool,
}

const USERS: usize = 0;
const GC: usize = 1;

impl OwnFtl {
    /// Maps a block; what it was mapped to is no longer valid.
    pub fn set(&mut self, block: u64, to: Mapped) {
        if let Mapped::Media(place) = self.map.set(block, to) {
            self.valid.clear(place, self.sequence);
        }
        if let Mapped::Media(place) = to {
            self.valid.set(place);
        }
    }

    fn tag(&mut self, kind: Kind, block: u64) -> SectorTag {
        self.sequence += 1;
        SectorTag { kind, block, sequence: Sequence(self.sequence) }
    }

    /// Takes the next block of the oldest change into memory. True if there was one, and room.
    fn change(&mut self, buffers: &mut Buffers) -> bool {
        let has_room = self.pool.free() >= self.reserve;
        let next = self.io.next_change().filter(|_| has_room);
        let Some(Change { block, content }) = next else { return false };
        let Some(slot) = self.writer.next_slot(USERS) else { return false };
        match content {
            Some((buffer, at)) => buffers.copy_data(buffer, at, self.writer.memory(), slot.0, 1),
            None => buffers.data_mut(self.writer.memory(), slot.0, 1).fill(0),
        }
        let tag = self.tag(Kind::Data, block);
        self.writer.put(slot, tag, buffers);
        self.set(block, Mapped::Buffer(slot));
        self.writer.close_full(USERS);
        self.io.change_taken(tag.sequence);
        true
    }

    fn is_short(&self) -> bool {
        usize_of(self.pool.free()) + self.dead.len() + self.io.coming() < usize_of(self.reserve + 2)
    }

    /// Reads the next valid sector of a victim for garbage collection; a chunk without any is dead. True if it could.
    fn collect(&mut self) -> bool {
        let is_wanted = self.victim.is_some() || self.is_short();
        if !is_wanted || self.io.is_closing() || !self.io.has_room() {
            return false;
        }
        let closed = self.pool.iter().filter(|&(_, of)| of == ChunkUse::Closed).map(|(chunk, _)| chunk);
        let choose = || closed.min_by_key(|chunk| (self.valid.count(LineId(chunk.0)), chunk.0));
        let begin = || choose().map(|chunk| (chunk, self.shape.first_place(chunk)));
        let Some((chunk, from)) = self.victim.or_else(begin) else { return false };
        self.victim = Some((chunk, from));
        if let Some(place) = self.valid.next_valid(LineId(chunk.0), from) {
            let Some(slot) = self.writer.next_slot(GC) else { return false };
            self.gc_reads += 1;
            self.victim = Some((chunk, PhysicalAddress(place.0 + 1)));
            self.io.read_into(slot, place, &self.writer);
        } else if self.gc_reads > 0 {
            return false;
        } else {
            assert_eq!(self.valid.count(LineId(chunk.0)), 0, "a chunk with valid sectors was given up");
            self.victim = None;
            self.pool.died(chunk);
            self.dead.push(chunk);
        }
        true
    }

    /// A sector was read, or lost: the map names the copy, or that it is lost, from now on, unless a user was faster.
    fn copy(&mut self, slot: Slot, place: PhysicalAddress, tag: Option<SectorTag>, buffers: &mut Buffers) {
        self.gc_reads -= 1;
        if self.valid.is_valid(place) {
            let is_at = |tag: &SectorTag| self.map.holds(tag.block, Mapped::Media(place));
            let lost = || self.map.find(place).expect("a valid place is a block's");
            let tag = tag.filter(is_at).ok_or_else(lost).unwrap_or_else(|block| self.tag(Kind::Lost, block));
            self.writer.put(slot, tag, buffers);
            self.set(tag.block, Mapped::Buffer(slot));
        } else {
            self.writer.put(slot, SectorTag::PAD, buffers);
        }
        if self.gc_reads == 0 {
            self.writer.close_full(GC);
        }
    }

    /// Begins a barrier if one is wanted, and sends its flush once everything before it is written. True if it could.
    fn barrier(&mut self, buffers: &mut Buffers) -> bool {
        if self.io.has_barrier() {
            return self.io.flush(self.writer.is_written());
        }
        // Dead chunks wait for more of them, unless users or garbage collection wait for chunks.
        let is_scarce = self.pool.free() <= self.reserve / 2 || !self.is_short();
        let lets_go = !self.dead.is_empty() && self.victim.is_none() && is_scarce;
        if !lets_go && !self.io.wants_barrier() {
            return false;
        }
        if !self.leaves_unit {
            self.writer.pad(USERS, buffers);
        }
        if lets_go {
            self.writer.pad(GC, buffers);
        }
        self.io.begin_barrier(if lets_go { std::mem::take(&mut self.dead) } else { Vec::new() });
        true
    }
}

impl Target for OwnFtl {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        self.io.submit(request, self.map.sectors(), Sequence(self.sequence))
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        let Some(ended) = self.io.on_completion(now, completion, &out.buffers) else { return };
        match ended {
            Ended::Read(slot, place, tag) => self.copy(slot, place, tag, &mut out.buffers),
            Ended::Programmed(unit, status) => {
                let readable = self.writer.on_programmed(unit, status, &mut self.pool);
                readable.into_iter().for_each(|sector| sector.commit(&mut self.map, &mut self.valid));
            }
            Ended::Reset(chunk) => self.pool.freed(chunk),
            Ended::ResetFailed(chunk) => {
                self.pool.mark_bad(chunk);
                if self.pool.good() < self.needed {
                    self.io.stop(Status::WRITE_TO_READ_ONLY);
                }
            }
        }
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        // Every procedure, until none can go on.
        while self.io.read(&mut out.buffers, &self.writer, |block| self.map.get(block))
            || self.io.stopped().is_none()
                && (self.io.program(&mut self.writer, &mut self.pool)
                    || self.collect()
                    || self.barrier(&mut out.buffers)
                    || self.io.reset()
                    || self.change(&mut out.buffers))
        {}
        self.io.give(out);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.io.deadline()
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        self.io.on_deadline(now);
    }

    fn check(&self) {
        self.io.check();
        self.writer.check();
        self.pool.check();
        self.map.check();
        self.valid.check_against(&self.map);
    }

    fn summary(&self) -> String {
        let (free, dead, victim) = (self.pool.free(), &self.dead, self.victim);
        format!("{free} chunks free; victim {victim:?}, dead {dead:?}; {}; {}", self.writer, self.io)
    }

    fn counters(&self) -> Vec<Counter> {
        self.writer.counters(&["user_written_sectors", "gc_written_sectors"])
    }
}

impl BlockTarget for OwnFtl {
    fn block_bytes(&self) -> u32 {
        self.io.block_bytes()
    }

    fn block_count(&self) -> u64 {
        self.map.sectors()
    }
}
