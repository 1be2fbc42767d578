//! From buffer units to open lines: one command per buffer unit of data, heads before, tails after (`tails`).
//!
//! pblk had one writer that took the ring in order and waited at every busy unit (Linux `pblk-write.c`). Here every stream has
//! an open line and the line says whose turn it is; whether a busy unit holds up the others is the line's choice.
//! Deliberately not here: what becomes of a write (`programmed`), where lines come from (`lines`).

use super::Pblk;
use super::canary::Canary;
use super::flight::Purpose;
use ocssd_base::usize_of;
use ocssd_ftl::tail::ENTRY_BYTES;
use ocssd_ftl::{
    BufferUnitId, BufferUnitState, Entry, HEAD_BYTES, Head, Kind, Line, LineContent, LineId, Mapped,
    OpenLine, PhysicalAddress, SectorTag, Slot, Stream, TAG_BYTES, Write,
};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Op, Ppa};

impl Pblk {
    /// Sends every write that can go out. True if any went.
    pub(super) fn write_out(&mut self, buffers: &mut Buffers) -> bool {
        if self.checkpoints.is_held() {
            return false;
        }
        let mut any = self.write_tails(buffers);
        for index in 0..self.streams.len() {
            let stream = Stream(u8::try_from(index).expect("fewer than 256 streams"));
            if !self.destages(stream) {
                continue;
            }
            while self.write_stream(stream, buffers) {
                any = true;
            }
        }
        any
    }

    /// Sends the next write of a stream that has data at hand.
    fn write_stream(&mut self, stream: Stream, buffers: &mut Buffers) -> bool {
        let state = &self.streams[stream.index()];
        let has_buffer_unit = !state.ready.is_empty();
        let has_data = has_buffer_unit || self.pad_units_left > 0 && stream == Stream(0);
        if !has_data || !self.flight.has_room(1) {
            return false;
        }
        let Some(line) = self.writable_line(stream) else { return false };
        let Some(write) = self.open_line(line).next_data() else { return false };
        match write.piece {
            LineContent::Head => self.write_head(stream, line, write, buffers),
            LineContent::Data if has_buffer_unit => {
                let buffer_unit = self.streams[stream.index()].ready.pop_front().expect("one is ready");
                self.write_buffer_unit(buffer_unit, line, write, buffers);
                true
            }
            LineContent::Data => self.write_padding(line, write, buffers),
            LineContent::Padding | LineContent::Tail => unreachable!("a tail is no data"),
        }
    }

    /// The line a stream writes to, the next one if the last has no room.
    pub(super) fn writable_line(&mut self, stream: Stream) -> Option<LineId> {
        let current = self.streams[stream.index()].line;
        if let Some(line) = current
            && self.open[line.index()].as_ref().is_some_and(|open| open.room() > 0)
        {
            return Some(line);
        }
        self.streams[stream.index()].line = None;
        let line = self.next_line(stream)?;
        self.streams[stream.index()].line = Some(line);
        self.limiter_update();
        Some(line)
    }

    pub(super) fn open_line(&mut self, line: LineId) -> &mut OpenLine {
        self.open[line.index()].as_mut().expect("the line is open")
    }

    fn write_buffer_unit(
        &mut self,
        buffer_unit: BufferUnitId,
        line: LineId,
        write: Write,
        buffers: &mut Buffers,
    ) {
        let sectors = self.write_buffer.sectors(buffer_unit);
        let start = self.shape.chunk_start(line, write.unit);
        assert!(write.sector >= self.capacity.layout.unit, "data overwrites a head");
        assert!(write.sector + sectors <= self.capacity.layout.data_end(), "data overwrites a tail");
        assert_eq!(write.piece, LineContent::Data, "a buffer unit is written where data does not go");
        assert!(!self.checkpoints.is_held(), "a buffer unit is written while writes are held");
        self.encode_tags(buffer_unit, buffers);
        self.write_buffer.programming(buffer_unit, PhysicalAddress(start.0 + u64::from(write.sector)));
        let open = self.open[line.index()].as_mut().expect("the line is open");
        open.issued(write, sectors, &self.scratch.list);
        self.lines.add_data(line, sectors);
        let slot = self.write_buffer.first_slot(buffer_unit).0;
        let first = Ppa::new(self.shape.chunk(line, write.unit), write.sector);
        let target = Addresses::Run { first, count: sectors };
        let purpose = Purpose::BufferUnit { buffer_unit, line, write };
        self.flight.send(purpose, Op::Write { fua: false }, target, Some(self.ring()), slot);
        self.stats.units_written += u64::from(sectors / self.capacity.layout.unit);
        self.told.is_moved = true;
    }

    /// Makes the tags of a buffer unit's sectors. What was superseded while it waited becomes padding, unless a flush was promised
    /// it in between. What is written was not yet superseded on media when it was sent, which recovery relies on.
    fn encode_tags(&mut self, buffer_unit: BufferUnitId, buffers: &mut Buffers) {
        let first = self.write_buffer.first_slot(buffer_unit).0;
        let count = self.write_buffer.sectors(buffer_unit);
        let copies = self.write_buffer.copies(buffer_unit);
        if copies != 0 {
            self.drop_dead_copies(buffer_unit);
        }
        if copies.count_ones() < self.write_buffer.filled(buffer_unit) {
            for offset in 0..self.write_buffer.filled(buffer_unit) {
                let slot = Slot(first + offset);
                if copies >> offset & 1 == 0 && !self.write_buffer.entry(slot).is_newest {
                    self.keep_needed(slot);
                }
            }
        }
        let (content, oob) = buffers.sectors_mut(self.ring, first, count);
        self.make_tags(buffer_unit, content, oob);
        let sectors = oob.chunks_exact(oob.len() / usize_of(count));
        let list = &mut self.scratch.list;
        list.resize(usize_of(count) * ENTRY_BYTES, 0);
        let (entries, rest) = list.as_chunks_mut::<ENTRY_BYTES>();
        assert!(entries.len() == usize_of(count) && rest.is_empty(), "every sector of a write has a tag");
        for (entry, oob) in entries.iter_mut().zip(sectors) {
            entry.copy_from_slice(&oob[..ENTRY_BYTES]);
        }
    }

    /// Makes the tags that a buffer unit's sectors lack: copies have theirs, and so has what was moved.
    fn make_tags(&self, buffer_unit: BufferUnitId, content: &mut [u8], oob: &mut [u8]) {
        let (count, filled) = (
            usize_of(self.write_buffer.sectors(buffer_unit)),
            usize_of(self.write_buffer.filled(buffer_unit)),
        );
        let (data_bytes, oob_bytes) = (content.len() / count, oob.len() / count);
        let mut make = |at: usize, tag: SectorTag, content: &[u8]| {
            let content = &content[at * data_bytes..][..data_bytes];
            oob[at * oob_bytes..][..TAG_BYTES].copy_from_slice(&tag.encode(content));
        };
        for (at, entry) in self.write_buffer.entries(buffer_unit).filter(|(_, entry)| !entry.is_tag_encoded) {
            make(usize_of(at), entry.tag, content);
        }
        content[filled * data_bytes..].fill(0);
        (filled..count).for_each(|at| make(at, SectorTag::PAD, content));
        if oob_bytes > TAG_BYTES {
            oob.chunks_exact_mut(oob_bytes).for_each(|oob| oob[TAG_BYTES..].fill(0));
        }
    }

    /// Makes padding of a sector that was superseded and that nobody needs any more.
    fn keep_needed(&mut self, slot: Slot) {
        let entry = self.write_buffer.entry(slot);
        assert!(!entry.is_newest, "the newest version of a block is needed");
        if !matches!(entry.tag.kind, Kind::Data | Kind::Lost) {
            return;
        }
        assert!(entry.previous.is_none(), "a superseded sector still holds an older version");
        let is_needed = !entry.from_gc
            && !self.has_canary(Canary::FlushedBecomesPadding)
            && (self.flushes.covers(entry.tag.sequence) || self.gc.has_awaiting())
            && (!self.is_durably_superseded(entry.tag)
                || self.has_canary(Canary::SupersededBehindCheckpoint));
        if !is_needed {
            self.make_padding(slot);
        }
    }

    /// True if what came after a sector is on media, so that nobody can want it back.
    fn is_durably_superseded(&self, tag: SectorTag) -> bool {
        let is_deaf = self.has_canary(Canary::CheckpointAheadOfDiscard);
        let is_discarded =
            || self.keeps_discards() && !is_deaf && self.discards.is_durable(tag.block, tag.sequence);
        match self.l2p.get(tag.block) {
            Mapped::Media(_) => true,
            Mapped::Buffer(newest) => {
                let holder = self.write_buffer.entry(newest);
                let is_older = tag.sequence < holder.previous_sequence;
                self.write_buffer.durable_place(newest).is_some()
                    || is_older && (holder.previous.is_some() || is_discarded())
            }
            Mapped::Nowhere => is_discarded(),
        }
    }

    /// Makes padding of sectors that wait to be written although something newer is on media. A checkpoint has that, and what is
    /// written behind a checkpoint counts as newer: streams go out side by side, and what failed goes out again, so an old
    /// version may be the last to be programmed. Cost: a pass over the buffer.
    pub(super) fn drop_superseded(&mut self) {
        if self.has_canary(Canary::SupersededBehindCheckpoint) {
            return;
        }
        let in_flight = |buffer_unit| self.write_buffer.state(buffer_unit) == BufferUnitState::Programming;
        assert!(
            !(0..self.write_buffer.count()).map(BufferUnitId).any(in_flight),
            "buffer units are written meanwhile"
        );
        let is_gone = |&slot: &Slot| self.is_durably_superseded(self.write_buffer.entry(slot).tag);
        let gone: Vec<Slot> = self.waiting_superseded().filter(is_gone).collect();
        gone.into_iter().for_each(|slot| self.make_padding(slot));
    }

    /// True if a sector waits to be written whose block was discarded, and the discard's record waits as well. What came in
    /// between may be on media, and nothing says so any more. Cost: a pass over the buffer, if a record waits.
    pub(super) fn is_discard_needed(&self) -> bool {
        if self.has_canary(Canary::CheckpointAheadOfDiscard) {
            return false;
        }
        let is_open = |slot: Slot| {
            let tag = self.write_buffer.entry(slot).tag;
            self.l2p.get(tag.block) == Mapped::Nowhere && !self.is_durably_superseded(tag)
        };
        self.discards.oldest_pending().is_some() && self.waiting_superseded().any(is_open)
    }

    /// Sectors in buffer units that wait to be written, and are not the newest of their blocks.
    fn waiting_superseded(&self) -> impl Iterator<Item = Slot> {
        let is_waiting = |&buffer_unit: &BufferUnitId| {
            matches!(self.write_buffer.state(buffer_unit), BufferUnitState::Filling | BufferUnitState::Ready)
        };
        let waiting = (0..self.write_buffer.count()).map(BufferUnitId).filter(is_waiting);
        let entries = waiting.flat_map(|buffer_unit| self.write_buffer.live(buffer_unit));
        let is_superseded = |entry: &Entry| {
            !entry.is_newest && !entry.from_gc && matches!(entry.tag.kind, Kind::Data | Kind::Lost)
        };
        entries.filter(move |&(_, entry)| is_superseded(entry)).map(|(slot, _)| slot)
    }

    fn make_padding(&mut self, slot: Slot) {
        let entry = self.write_buffer.entry_mut(slot);
        assert!(!entry.is_newest && entry.previous.is_none(), "somebody needs what becomes padding");
        (entry.tag, entry.is_tag_encoded) = (SectorTag::PAD, false);
        self.stats.superseded += 1;
    }

    pub(super) fn write_head(
        &mut self,
        stream: Stream,
        line: LineId,
        write: Write,
        buffers: &mut Buffers,
    ) -> bool {
        let Some(buffer) = self.plain.pop() else { return false };
        let &Line { sequence: line_sequence, resets, .. } = self.lines.get(line);
        assert_eq!(write.piece, LineContent::Head, "a head is written where none goes");
        assert!(line_sequence.0 > 0, "line {} is written without a generation", line.0);
        let (instance, blocks) = (self.instance, self.l2p.sectors());
        let head = Head { instance, stream, line: line_sequence, blocks, resets };
        for sector in 0..self.capacity.layout.unit {
            let content = buffers.data_mut(buffer, sector, 1);
            content.fill(0);
            content[..HEAD_BYTES].copy_from_slice(&head.encode());
        }
        let tag = head.tag(self.sequence);
        self.write_meta((line, write), buffer, (0, 0), |_| tag, buffers);
        true
    }

    /// A unit of nothing.
    fn write_padding(&mut self, line: LineId, write: Write, buffers: &mut Buffers) -> bool {
        let Some(buffer) = self.plain.pop() else { return false };
        assert!(self.pad_units_left > 0, "fill was written that nobody asked for");
        self.pad_units_left -= 1;
        buffers.data_mut(buffer, 0, self.capacity.layout.unit).fill(0);
        self.stats.padding(self.capacity.layout.unit);
        self.write_meta((line, write), buffer, (0, 0), |_| SectorTag::PAD, buffers);
        true
    }

    /// Sends a unit of the target's own: tags it, and notes it on the line. `pieces` are those of a checkpoint in it: the
    /// first and how many.
    pub(super) fn write_meta(
        &mut self,
        (line, write): (LineId, Write),
        buffer: BufId,
        pieces: (u32, u32),
        tag_of: impl Fn(u32) -> SectorTag,
        buffers: &mut Buffers,
    ) {
        let sectors = self.meta_sectors(write);
        assert!(!self.lines.is_bad(line, write.unit), "a bad chunk is written");
        assert!(pieces.1 <= sectors, "more pieces than sectors");
        assert!(sectors > 0, "metadata without a sector is written");
        let list = &mut self.scratch.list;
        list.clear();
        let format = buffers.format();
        let (content, oob) = buffers.sectors_mut(buffer, 0, sectors);
        let content = content.chunks_exact(format.data_bytes);
        // Heads and padding are the same sector over and over: what is encoded once is good for the next.
        let mut before: Option<(SectorTag, &[u8], [u8; TAG_BYTES])> = None;
        for ((sector, content), oob) in (0..).zip(content).zip(oob.chunks_exact_mut(format.oob_bytes)) {
            let tag = tag_of(sector);
            let same = before.filter(|&(other, beside, _)| other == tag && beside == content);
            let bytes = same.map_or_else(|| tag.encode(content), |(_, _, bytes)| bytes);
            before = Some((tag, content, bytes));
            list.extend_from_slice(&tag.to_list_entry());
            let (tag, rest) = oob.split_at_mut(TAG_BYTES);
            tag.copy_from_slice(&bytes);
            // Most drives have no more than a tag beside a sector, and a call for nothing costs as much as making one.
            if !rest.is_empty() {
                rest.fill(0);
            }
        }
        let open = self.open[line.index()].as_mut().expect("the line is open");
        open.issued(write, sectors, &self.scratch.list);
        let first = Ppa::new(self.shape.chunk(line, write.unit), write.sector);
        let purpose = Purpose::Meta { buffer, line, write, first_piece: pieces.0, pieces: pieces.1 };
        let addresses = Addresses::Run { first, count: sectors };
        self.flight.send(purpose, Op::Write { fua: false }, addresses, Some(buffer), 0);
        self.stats.meta_written += u64::from(sectors);
    }

    /// Sectors of a write of the target's own.
    pub(super) const fn meta_sectors(&self, write: Write) -> u32 {
        let layout = &self.capacity.layout;
        match write.piece {
            LineContent::Tail => layout.tail,
            LineContent::Padding => layout.data_end() - write.sector,
            LineContent::Head | LineContent::Data => layout.unit,
        }
    }
}
