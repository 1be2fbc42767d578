//! The FTL: a map from blocks to places, one stream of units over all chunks, greedy garbage collection, and a barrier.
//!
//! Blocks are sectors. A write is answered once it lies in the memory of a unit; a full unit is programmed, and its memory
//! answers reads until the media can (MW_CUNITS). A barrier is a flush of all that was answered before: users ask for one,
//! and garbage collection waits for one before it resets. Deliberately not here: checkpoints (a mount reads every tag),
//! streams for hot and cold data, wear levelling.

use crate::mount::run;
use ocssd_base::{Nanos, Slab, SlabKey, usize_of};
use ocssd_ftl::{
    Append, AppendEvent, AppendPoint, ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, Kind, L2p, LineId,
    Mapped, PhysicalAddress, ProgramOutcome, SectorTag, Sequence, Slot, ValidMap,
};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, CounterValue};
use ocssd_lightnvm::{
    Addresses, Admission, BufId, Buffers, Command, Completion, Op, Out, Status, Tag, Target,
};
use std::collections::VecDeque;

/// The memory of a unit, from its first sector until the media can be read.
pub struct Unit {
    pub buffer: BufId,
    /// The block in each sector so far; `None` for padding.
    pub blocks: Vec<Option<u64>>,
    pub place: Option<Append>,
}

/// What a command in flight is for.
#[derive(Clone, Copy)]
pub enum Purpose {
    Read { request: SlabKey, index: u32, place: PhysicalAddress },
    Program { unit: usize },
    GcRead { sector: u32, place: PhysicalAddress },
    Flush,
    Reset { chunk: ChunkIndex },
}

/// A read of a user, and how far it is.
pub struct Read {
    request: BlockRequest,
    issued: u32,
    in_flight: u32,
    status: Status,
}

/// A flush of everything answered before it began.
#[derive(Default)]
pub struct Barrier {
    waiting: Vec<Tag>,
    to_reset: Vec<ChunkIndex>,
    is_sent: bool,
}

/// The target.
pub struct OwnFtl {
    pub shape: InstanceGeometry,
    pub unit_sectors: u32,
    pub sector_bytes: u32,
    pub map: L2p,
    pub valid: ValidMap,
    pub pool: ChunkPool,
    pub append: AppendPoint<usize>,
    pub units: Vec<Unit>,
    pub spare: Vec<usize>,
    pub ready: VecDeque<usize>,
    /// The unit that users fill, and the one garbage collection fills.
    pub filling: [Option<usize>; 2],
    pub commands: Slab<Purpose>,
    pub reads: Slab<Read>,
    pub to_read: VecDeque<SlabKey>,
    /// Changes, and how many of their blocks are in units.
    pub changes: VecDeque<(BlockRequest, u32)>,
    pub victim: Option<(ChunkIndex, PhysicalAddress)>,
    pub gc_reads: u32,
    pub dead: Vec<ChunkIndex>,
    pub to_reset: VecDeque<ChunkIndex>,
    /// Reads in flight by chunk.
    pub readers: Vec<u32>,
    pub flushes: Vec<Tag>,
    pub barrier: Option<Barrier>,
    pub replies: Vec<BlockReply>,
    pub sequence: u64,
    /// Users wait while fewer chunks are free.
    pub reserve: u32,
    /// Sectors written for users, by garbage collection, and as padding.
    pub written: [u64; 3],
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

    fn slot(&self, unit: usize, sector: u32) -> Mapped {
        Mapped::Buffer(Slot(u32::try_from(unit).expect("few units") * self.unit_sectors + sector))
    }

    fn place_of(&self, at: Append) -> PhysicalAddress {
        PhysicalAddress(self.shape.first_place(at.chunk).0 + u64::from(at.sector))
    }

    fn reply(&mut self, tag: Tag, status: Status) {
        self.replies.push(BlockReply { tag, status, violation: None });
    }

    fn send(&mut self, purpose: Purpose, command: Command, out: &mut Out<BlockReply>) {
        let key = self
            .commands
            .insert(purpose)
            .unwrap_or_else(|_| panic!("more commands than units and reads need"));
        out.command(Command { tag: Tag(key.0), ..command });
    }

    /// The next sector of a stream's unit: unit and sector. `None` while no unit is spare.
    fn next_sector(&mut self, stream: usize) -> Option<(usize, u32)> {
        let unit = self.filling[stream].or_else(|| self.spare.pop())?;
        self.filling[stream] = Some(unit);
        let sector = u32::try_from(self.units[unit].blocks.len()).expect("a unit has few sectors");
        (sector < self.unit_sectors).then_some((unit, sector))
    }

    /// A unit that is full goes to the media.
    fn close_full(&mut self, stream: usize) {
        let is_full = |unit: &usize| self.units[*unit].blocks.len() == usize_of(self.unit_sectors);
        self.ready.extend(self.filling[stream].take_if(|unit| is_full(unit)));
    }

    /// Fills the rest of a stream's unit.
    fn pad(&mut self, stream: usize, buffers: &mut Buffers) {
        while self.filling[stream].is_some()
            && let Some((unit, sector)) = self.next_sector(stream)
        {
            self.put(unit, sector, SectorTag::PAD, buffers);
            self.units[unit].blocks.push(None);
            self.written[2] += 1;
        }
        self.close_full(stream);
    }

    /// Puts a tag beside a sector's content; padding has none.
    fn put(&mut self, unit: usize, sector: u32, tag: SectorTag, buffers: &mut Buffers) {
        let (content, oob) = buffers.sectors_mut(self.units[unit].buffer, sector, 1);
        if tag.kind == Kind::Pad {
            content.fill(0);
        }
        let tag = tag.encode(content);
        oob[..tag.len()].copy_from_slice(&tag);
    }

    /// Takes the next block of the oldest change into a unit. True if there was one.
    fn change(&mut self, buffers: &mut Buffers) -> bool {
        let is_held =
            self.pool.free() < self.reserve || self.barrier.as_ref().is_some_and(|barrier| !barrier.is_sent);
        let Some(&(request, done)) = self.changes.front().filter(|_| !is_held) else { return false };
        let Some((unit, sector)) = self.next_sector(USERS) else { return false };
        let (block, buffer) = (request.block + u64::from(done), self.units[unit].buffer);
        match request.op {
            BlockOp::Write { .. } => {
                buffers.copy_data(request.buffer.expect("a write has a buffer"), done, buffer, sector, 1)
            }
            _ => buffers.data_mut(buffer, sector, 1).fill(0),
        }
        self.sequence += 1;
        self.put(
            unit,
            sector,
            SectorTag { kind: Kind::Data, block, sequence: Sequence(self.sequence) },
            buffers,
        );
        self.units[unit].blocks.push(Some(block));
        self.set(block, self.slot(unit, sector));
        self.written[0] += 1;
        self.close_full(USERS);
        self.changes[0].1 += 1;
        if done + 1 == request.count {
            self.changes.pop_front();
            match request.op {
                BlockOp::Write { fua: true } => self.flushes.push(request.tag),
                _ => self.reply(request.tag, Status::SUCCESS),
            }
        }
        true
    }

    /// Reads the next block of the oldest read. True if there was one.
    fn read(&mut self, out: &mut Out<BlockReply>) -> bool {
        let Some(&key) = self.to_read.front() else { return false };
        let &Read { request, issued: index, .. } = self.reads.get(key);
        let buffer = request.buffer.expect("a read has a buffer");
        match self.map.get(request.block + u64::from(index)) {
            Mapped::Nowhere => out.buffers.data_mut(buffer, index, 1).fill(0),
            Mapped::Buffer(Slot(slot)) => {
                let unit = &self.units[usize_of(slot / self.unit_sectors)];
                out.buffers.copy_data(unit.buffer, slot % self.unit_sectors, buffer, index, 1);
            }
            Mapped::Media(_) if !out.has_room() || self.commands.is_full() => return false,
            Mapped::Media(place) => {
                self.readers[self.shape.chunk_of(place).0.index()] += 1;
                let command = Command { buffer_first: index, ..run(&self.shape, place, 1, Op::Read, buffer) };
                self.send(Purpose::Read { request: key, index, place }, command, out);
                self.reads.get_mut(key).in_flight += 1;
            }
        }
        let read = self.reads.get_mut(key);
        read.issued += 1;
        if read.issued == request.count {
            self.to_read.pop_front();
            self.end_read(key);
        }
        true
    }

    fn end_read(&mut self, key: SlabKey) {
        let &Read { request, issued, in_flight, status } = self.reads.get(key);
        if issued == request.count && in_flight == 0 {
            self.reads.free(key);
            self.reply(request.tag, status);
        }
    }

    /// Programs a unit. True if there was one, and a place for it.
    fn program(&mut self, out: &mut Out<BlockReply>) -> bool {
        let Some(&unit) = self.ready.front().filter(|_| out.has_room()) else { return false };
        let pool = &mut self.pool;
        let Some(at) = self.append.next(self.unit_sectors, |units| pool.open(units, |_, _| true)) else {
            return false;
        };
        self.ready.pop_front();
        self.units[unit].place = Some(at);
        let write = run(
            &self.shape,
            self.place_of(at),
            self.unit_sectors,
            Op::Write { fua: false },
            self.units[unit].buffer,
        );
        self.send(Purpose::Program { unit }, write, out);
        true
    }

    fn is_short(&self) -> bool {
        let barrier = self.barrier.as_ref().map_or(0, |barrier| barrier.to_reset.len());
        let coming = self.dead.len() + barrier + self.to_reset.len();
        usize_of(self.pool.free()) + coming < usize_of(self.reserve + 2)
    }

    /// Reads the next valid sector of a victim into garbage collection's unit; a chunk without any is dead. True if it could.
    fn collect(&mut self, out: &mut Out<BlockReply>) -> bool {
        let is_held = self.barrier.as_ref().is_some_and(|barrier| !barrier.is_sent);
        if is_held || (self.victim.is_none() && !self.is_short()) {
            return false;
        }
        let closed = self.pool.iter().filter(|&(_, of)| of == ChunkUse::Closed).map(|(chunk, _)| chunk);
        let choose = || closed.min_by_key(|chunk| (self.valid.count(LineId(chunk.0)), chunk.0));
        let Some((chunk, from)) =
            self.victim.or_else(|| choose().map(|chunk| (chunk, self.shape.first_place(chunk))))
        else {
            return false;
        };
        self.victim = Some((chunk, from));
        let Some(place) = self.valid.next_valid(LineId(chunk.0), from) else {
            let is_over = self.gc_reads == 0;
            if is_over {
                self.victim = None;
                assert_eq!(self.valid.count(LineId(chunk.0)), 0, "a chunk with valid sectors was given up");
                self.pool.died(chunk);
                self.dead.push(chunk);
            }
            return is_over;
        };
        if !out.has_room() {
            return false;
        }
        let Some((unit, sector)) = self.next_sector(GC) else { return false };
        self.units[unit].blocks.push(None);
        self.gc_reads += 1;
        self.victim = Some((chunk, PhysicalAddress(place.0 + 1)));
        let read = run(&self.shape, place, 1, Op::Read, self.units[unit].buffer);
        self.send(Purpose::GcRead { sector, place }, Command { buffer_first: sector, ..read }, out);
        true
    }

    /// A valid sector was read: the map names the copy from now on, unless a user was faster.
    fn on_gc_read(
        &mut self,
        sector: u32,
        place: PhysicalAddress,
        completion: &Completion,
        buffers: &mut Buffers,
    ) {
        let unit = self.filling[GC].expect("garbage collection has a unit");
        let buffer = self.units[unit].buffer;
        let tag = SectorTag::decode(buffers.oob(buffer, sector, 1), buffers.data(buffer, sector, 1));
        assert!(completion.status.has_data() && tag.is_ok(), "{place:?} is lost: this FTL knows no way on");
        let (block, copy) = (tag.expect("it was just looked at").block, self.slot(unit, sector));
        if self.map.move_if(block, Mapped::Media(place), copy) {
            self.valid.clear(place, self.sequence);
            self.units[unit].blocks[usize_of(sector)] = Some(block);
            self.written[1] += 1;
        }
        self.gc_reads -= 1;
        if self.gc_reads == 0 {
            self.close_full(GC);
        }
    }

    /// Begins a barrier if one is needed, and sends its flush once everything before it is on its way. True if it could.
    fn flush(&mut self, out: &mut Out<BlockReply>) -> bool {
        let is_needed = !self.flushes.is_empty() || (!self.dead.is_empty() && self.victim.is_none());
        if self.barrier.is_none() && is_needed {
            let (waiting, to_reset) = (std::mem::take(&mut self.flushes), std::mem::take(&mut self.dead));
            self.barrier = Some(Barrier { waiting, to_reset, is_sent: false });
        }
        let is_due = self.barrier.as_ref().is_some_and(|barrier| !barrier.is_sent) && self.gc_reads == 0;
        if !is_due || !out.has_room() {
            return false;
        }
        self.pad(USERS, &mut out.buffers);
        self.pad(GC, &mut out.buffers);
        if !self.ready.is_empty() || self.append.in_flight() > 0 {
            return self.program(out);
        }
        self.barrier.as_mut().expect("it is due").is_sent = true;
        let flush = Command {
            addresses: Addresses::None,
            buffer: None,
            oob: false,
            ..run(&self.shape, PhysicalAddress(0), 1, Op::Flush, BufId(0))
        };
        self.send(Purpose::Flush, flush, out);
        true
    }

    fn on_flushed(&mut self, status: Status) {
        let Barrier { waiting, to_reset, .. } = self.barrier.take().expect("a flush is a barrier's");
        waiting.into_iter().for_each(|tag| self.reply(tag, status));
        if status.is_success() { self.to_reset.extend(to_reset) } else { self.dead.extend(to_reset) }
    }

    /// Resets a dead chunk that nobody reads. True if there was one.
    fn reset(&mut self, out: &mut Out<BlockReply>) -> bool {
        let is_free = |chunk: &&ChunkIndex| self.readers[chunk.index()] == 0;
        let Some(&chunk) = self.to_reset.front().filter(is_free).filter(|_| out.has_room()) else {
            return false;
        };
        self.to_reset.pop_front();
        let reset = run(&self.shape, self.shape.first_place(chunk), 1, Op::Reset, BufId(0));
        self.send(Purpose::Reset { chunk }, Command { buffer: None, oob: false, ..reset }, out);
        true
    }

    /// A unit was programmed, or must go elsewhere.
    fn on_programmed(&mut self, unit: usize, status: Status) {
        let at = self.units[unit].place.expect("it was programmed somewhere");
        let outcome = match status {
            Status::SUCCESS => ProgramOutcome::Written(unit),
            Status::WRITE_NEXT_UNIT => ProgramOutcome::Lost,
            _ => ProgramOutcome::Closed,
        };
        if !status.is_success() {
            self.ready.push_front(unit);
        }
        let mut events = Vec::new();
        self.append.programmed(at, outcome, &mut events);
        for event in events {
            match event {
                AppendEvent::Readable(unit) => self.on_readable(unit),
                AppendEvent::Closed(chunk) => self.pool.close(chunk),
            }
        }
    }

    /// The media answers reads of a unit from now on.
    fn on_readable(&mut self, unit: usize) {
        let at = self.units[unit].place.take().expect("it was programmed somewhere");
        let first = self.place_of(at);
        for (sector, block) in (0..).zip(std::mem::take(&mut self.units[unit].blocks)) {
            let place = PhysicalAddress(first.0 + u64::from(sector));
            if block
                .is_some_and(|block| self.map.move_if(block, self.slot(unit, sector), Mapped::Media(place)))
            {
                self.valid.set(place);
            }
        }
        self.spare.push(unit);
    }
}

impl Target for OwnFtl {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        let BlockRequest { tag, op, block, count, buffer } = *request;
        let end = block.checked_add(u64::from(count));
        let moves_data = matches!(op, BlockOp::Read | BlockOp::Write { .. });
        match op {
            BlockOp::Flush | BlockOp::Shutdown => self.flushes.push(tag),
            BlockOp::ResetZone => self.reply(tag, Status::INVALID_OPCODE),
            _ if count == 0 || (moves_data && buffer.is_none()) => self.reply(tag, Status::INVALID_FIELD),
            _ if end.is_none_or(|end| end > self.map.sectors()) => self.reply(tag, Status::LBA_OUT_OF_RANGE),
            BlockOp::Read => {
                let read = Read { request: *request, issued: 0, in_flight: 0, status: Status::SUCCESS };
                let Ok(key) = self.reads.insert(read) else { return Admission::Full };
                self.to_read.push_back(key);
            }
            _ if self.changes.len() == usize_of(crate::mount::REQUESTS_MAX) => return Admission::Full,
            _ => self.changes.push_back((*request, 0)),
        }
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        let status = completion.status;
        match self.commands.remove(SlabKey(completion.tag.0)) {
            Purpose::Read { request: key, index, place } => {
                self.readers[self.shape.chunk_of(place).0.index()] -= 1;
                let read = self.reads.get_mut(key);
                read.in_flight -= 1;
                let buffer = read.request.buffer.expect("a read has a buffer");
                let tag =
                    SectorTag::decode(out.buffers.oob(buffer, index, 1), out.buffers.data(buffer, index, 1));
                let is_it = tag.is_ok_and(|tag| tag.block == read.request.block + u64::from(index));
                let status = if status.has_data() && !is_it { Status::UNRECOVERED_READ } else { status };
                if read.status.gives_way_to(status) {
                    read.status = status;
                }
                self.end_read(key);
            }
            Purpose::Program { unit } => self.on_programmed(unit, status),
            Purpose::GcRead { sector, place } => {
                self.on_gc_read(sector, place, &completion, &mut out.buffers)
            }
            Purpose::Flush => self.on_flushed(status),
            Purpose::Reset { chunk } if status.is_success() => self.pool.freed(chunk),
            Purpose::Reset { chunk } => self.pool.mark_bad(chunk),
        }
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        // Every procedure, until none can go on.
        while self.read(out)
            || self.program(out)
            || self.collect(out)
            || self.flush(out)
            || self.reset(out)
            || self.change(&mut out.buffers)
        {}
        self.replies.drain(..).for_each(|reply| out.reply(reply));
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    fn check(&self) {
        self.append.check();
        self.pool.check();
        self.map.check();
        self.valid.check();
        let mut mapped = 0;
        self.map.for_each_media(|block, place| {
            mapped += 1;
            assert!(self.valid.is_valid(place), "block {block} is at {place:?}, which is not valid");
        });
        assert_eq!(mapped, self.valid.total(), "a place is valid that no block is at");
    }

    fn summary(&self) -> String {
        let barrier = self.barrier.as_ref().map(|barrier| (barrier.to_reset.len(), barrier.is_sent));
        format!(
            "{} free chunks, {} kept back; {} units spare, {} ready, filling {:?}; victim {:?}, {} dead; barrier {barrier:?}",
            self.pool.free(),
            self.reserve,
            self.spare.len(),
            self.ready.len(),
            self.filling,
            self.victim,
            self.dead.len(),
        )
    }

    fn counters(&self) -> Vec<Counter> {
        let names = ["user_written_sectors", "gc_written_sectors", "padded_sectors"];
        let about = ["Sectors users wrote.", "Sectors garbage collection wrote.", "Sectors of padding."];
        let all = names.into_iter().zip(about).zip(self.written);
        all.map(|((name, about), count)| Counter { name, about, value: CounterValue::Count(count) }).collect()
    }
}

impl BlockTarget for OwnFtl {
    fn block_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn block_count(&self) -> u64 {
        self.map.sectors()
    }
}
