//! Sectors that garbage collection read: what is still current goes through the buffer like a write.
//!
//! A tag says whose its sector is, so no reverse map is needed, and what died meanwhile is dropped. What the media lost is
//! found the long way. Deliberately not here: what is read, and why (`gc`), and the short way that nearly all of it
//! goes (`gc_copy`).

use super::Pblk;
use super::canary::Canary;
use crate::read_again::is_of_media;
use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::{
    Entry, Kind, LineId, Mapped, PhysicalAddress, RelocationRead, SectorTag, Sequence, Slot, Stream,
    is_newest_at,
};
use ocssd_lightnvm::{Buffers, ChunkId, Ppa, Status};

/// Sectors read and not yet in the buffer, which also holds their addresses; with how those that failed did.
pub(super) type GcRead = RelocationRead<Status>;

/// The sectors of a read not looked at yet: where each was read, its content, and the bytes beside it.
pub(super) fn sectors_left<'a>(
    read: &GcRead,
    buffers: &'a Buffers,
) -> impl Iterator<Item = (Ppa, &'a [u8], &'a [u8])> {
    let (format, left) = (buffers.format(), read.count - read.next);
    let places = &buffers.addresses(read.buffer)[usize_of(read.next)..usize_of(read.count)];
    let contents = buffers.data(read.buffer, read.next, left).chunks_exact(format.data_bytes);
    let tags = buffers.oob(read.buffer, read.next, left).chunks_exact(format.oob_bytes);
    places.iter().zip(contents).zip(tags).map(|((&ppa, content), tag)| (ppa, content, tag))
}

/// The tag of a sector that holds a block, and whose content is what was written.
pub(super) fn sound_block(tag: &[u8], content: &[u8]) -> Option<SectorTag> {
    SectorTag::decode(tag, content).ok().filter(|tag| matches!(tag.kind, Kind::Data | Kind::Lost))
}

/// The chunk that sectors were read of.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub chunk: ChunkId,
    pub line: LineId,
    /// Its first place.
    pub start: PhysicalAddress,
}

impl Pblk {
    /// Moves what was read to the buffer, as far as there is room.
    pub(super) fn move_reads(&mut self, now: Nanos, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(mut read) = self.gc.relocator.next_read() {
            if read.next == 0 {
                self.fetch_owners(&read, buffers);
            }
            let mut before: Option<Origin> = None;
            while read.next < read.count {
                let ppa = buffers.addresses(read.buffer)[usize_of(read.next)];
                // Neighbours are of one chunk as a rule: it is looked up once.
                let same = before.filter(|origin| origin.chunk == ppa.chunk);
                let origin = same.unwrap_or_else(|| self.origin(ppa.chunk));
                before = Some(origin);
                let copied =
                    if self.moves_by_copy() { self.copy_run(now, &read, origin, buffers) } else { Some(0) };
                let place = PhysicalAddress(origin.start.0 + u64::from(ppa.sector));
                let moved = match copied {
                    Some(0) => self.move_sector(now, &read, (origin.line, place), buffers).then_some(1),
                    copied => copied,
                };
                let Some(moved) = moved else {
                    self.gc.relocator.put_back(read);
                    return any;
                };
                if read.line.is_none() {
                    self.lines.end_reads(origin.line, moved);
                }
                read.next += moved;
                any = true;
            }
            if let Some(line) = read.line {
                self.lines.end_reads(line, read.count);
            }
            self.gc.relocator.all_moved(&read);
        }
        any
    }

    /// Brings the map's entries of what was read into the cache, before it is looked at sector by sector.
    fn fetch_owners(&self, read: &GcRead, buffers: &Buffers) {
        let tags = buffers.oob(read.buffer, read.next, read.count - read.next);
        let tags = tags.chunks_exact(buffers.format().oob_bytes);
        self.l2p.fetch(tags.filter_map(SectorTag::peek_block));
    }

    fn origin(&self, chunk: ChunkId) -> Origin {
        let first = Ppa::new(chunk, 0);
        Origin { chunk, line: self.line_of_chunk(first), start: self.place_of(first) }
    }

    /// Moves the sector of `line` at `place` into the buffer if it is still current; false if there is no room.
    fn move_sector(
        &mut self,
        now: Nanos,
        read: &GcRead,
        (line, place): (LineId, PhysicalAddress),
        buffers: &mut Buffers,
    ) -> bool {
        let index = read.next;
        assert!(index < read.count, "a sector is moved that was not read");
        if !self.valid.is_valid(place) {
            self.stats.gc_dead += 1;
            return true;
        }
        let failed = read.failed >> index & 1 == 1 || self.has_canary(Canary::LossSpreads);
        let status = if failed { read.with } else { Status::SUCCESS };
        let content = buffers.data(read.buffer, index, 1);
        let tag = SectorTag::decode(buffers.oob(read.buffer, index, 1), content);
        let tag = match tag {
            Ok(tag) if status.has_data() => tag,
            // What could not be asked for is not lost: the line stays as it is, and is collected again.
            _ if failed && !is_of_media(status) && !self.has_canary(Canary::FailedReadIsLoss) => return true,
            _ => return self.move_lost(now, place, buffers),
        };
        if self.gc.is_again(read.line) && self.is_misplaced(&tag, place) {
            return self.move_lost(now, place, buffers);
        }
        match tag.kind {
            Kind::Data | Kind::Lost if self.is_newest(tag.block, place) => {}
            Kind::Data | Kind::Lost if self.has_canary(Canary::MovesStale) => {}
            Kind::Discard if self.discards.needs(tag.sequence, place) => {}
            // Superseded in the buffer: it stays valid until its successor is durable.
            _ => {
                self.stats.gc_dead += 1;
                return true;
            }
        }
        let from = self.lines.get(line).stream;
        let stream = self.classifier.gc_stream(from, self.sequence.0, Some(tag.sequence.0));
        let Some(slot) = self.gc_slot(now, stream, tag, place) else { return false };
        buffers.copy_sectors(read.buffer, index, self.ring, slot.0, 1);
        self.write_buffer.entry_mut(slot).is_tag_encoded = true;
        self.close_if_full(self.write_buffer.unit_of(slot));
        true
    }

    /// True if `place` holds the newest version of a block, whether the map points there or still to the buffer.
    pub(super) fn is_newest(&self, block: u64, place: PhysicalAddress) -> bool {
        is_newest_at(&self.l2p, &self.write_buffer, block, place)
    }

    /// Sectors of a line that is read once more, by bits, that are not whose the map says they are. A read that went astray shows
    /// another sector, too, and must not be taken for a loss: these are asked for again.
    pub(super) fn astray(&self, read: &GcRead, buffers: &Buffers) -> u64 {
        if !self.gc.is_again(read.line) {
            return 0;
        }
        let failed = |index: u32| read.failed >> index & 1 == 1;
        let sectors = (0..).zip(sectors_left(read, buffers)).filter(|&(index, _)| !failed(index));
        let astray = sectors.filter(|&(_, (ppa, content, tag))| self.is_astray(ppa, content, tag));
        astray.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// True if what was read of a sector that is needed is sound, and another's.
    pub(super) fn is_astray(&self, ppa: Ppa, content: &[u8], tag: &[u8]) -> bool {
        let place = self.place_of(ppa);
        let found = SectorTag::decode(tag, content);
        self.valid.is_valid(place) && found.is_ok_and(|tag| self.is_misplaced(&tag, place))
    }

    /// True if a sound sector is not whose the map says it is: a write went astray, and took its place. Nothing would ever
    /// supersede it here, so its line would be moved for ever. Looks through the map, but only for what is nobody's by its tag.
    fn is_misplaced(&self, tag: &SectorTag, place: PhysicalAddress) -> bool {
        let is_elsewhere = match tag.kind {
            Kind::Data | Kind::Lost => match self.l2p.get(tag.block) {
                Mapped::Buffer(_) => false,
                Mapped::Media(newest) => newest != place,
                Mapped::Nowhere => true,
            },
            Kind::Discard => !self.discards.needs(tag.sequence, place),
            _ => true,
        };
        let is_of_another = || self.discards.at(place).is_some() || self.l2p.find(place).is_some();
        is_elsewhere && is_of_another()
    }

    /// A slot for a sector that is moved, entered in the map; the content is the caller's.
    fn gc_slot(
        &mut self,
        now: Nanos,
        stream: Stream,
        tag: SectorTag,
        place: PhysicalAddress,
    ) -> Option<Slot> {
        assert!(self.valid.is_valid(place), "place {} is moved, but nobody needs it", place.0);
        assert!(u32::from(stream.0) < self.streams_count(), "data is moved to no stream of data");
        if !self.limiter.may_insert_gc(now) {
            return None;
        }
        let buffer_unit = self.filling_buffer_unit(stream, true)?;
        let (previous, previous_sequence) = (Some(place), tag.sequence);
        let is_newest = tag.kind != Kind::Discard;
        let entry =
            Entry { tag, previous, previous_sequence, from_gc: true, is_tag_encoded: false, is_newest };
        let slot = self.write_buffer.push(buffer_unit, entry, false);
        if is_newest {
            self.versions().remap(tag.block, Mapped::Buffer(slot));
            self.let_go_early(Canary::MovedTooEarly, slot);
        }
        self.limiter.on_gc_inserted(1);
        self.stats.gc_written += 1;
        Some(slot)
    }

    /// A sector that cannot be read any more: who had it is found the long way, and remembers that it is lost.
    fn move_lost(&mut self, now: Nanos, place: PhysicalAddress, buffers: &mut Buffers) -> bool {
        self.stats.read_failed_gc += 1;
        if self.write_buffer.has_copy_of(place) {
            // It was read before, and is about to be programmed.
            return true;
        }
        if let Some(cached) = self.write_buffer.slot_at(place)
            && let tag = self.tag_in(cached, buffers)
            && self.is_newest(tag.block, place)
            && tag.kind != Kind::Discard
        {
            let stream = self.classifier.gc_stream(Stream(0), self.sequence.0, Some(tag.sequence.0));
            let Some(slot) = self.gc_slot(now, stream, tag, place) else { return false };
            // The buffer unit it was cached in may be the one just emptied for it.
            if slot != cached {
                buffers.copy_data(self.ring, cached.0, self.ring, slot.0, 1);
            }
            self.close_if_full(self.write_buffer.unit_of(slot));
            return true;
        }
        if let Some((sequence, range)) = self.discards.at(place) {
            let tag = SectorTag { kind: Kind::Discard, block: 0, sequence };
            let stream = self.classifier.gc_stream(Stream(0), self.sequence.0, Some(sequence.0));
            let Some(slot) = self.gc_slot(now, stream, tag, place) else { return false };
            range.encode(buffers.data_mut(self.ring, slot.0, 1));
            self.close_if_full(self.write_buffer.unit_of(slot));
            return true;
        }
        if let Some(block) = self.l2p.find(place) {
            let sequence = Sequence(self.sequence.0 + 1);
            let is_hidden = self.has_canary(Canary::LostBecomesZeroes);
            let kind = if is_hidden { Kind::Data } else { Kind::Lost };
            let tag = SectorTag { kind, block, sequence };
            let stream = self.classifier.gc_stream(Stream(0), sequence.0, Some(sequence.0));
            let Some(slot) = self.gc_slot(now, stream, tag, place) else { return false };
            self.sequence = sequence;
            buffers.data_mut(self.ring, slot.0, 1).fill(0);
            self.close_if_full(self.write_buffer.unit_of(slot));
            return true;
        }
        // Only the version before one in the buffer: the media lost it, and nothing waits for it any more.
        if self.write_buffer.drop_previous(place) {
            self.invalidate(place);
        }
        true
    }
}
