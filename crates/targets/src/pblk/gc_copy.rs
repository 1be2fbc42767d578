//! Copies: the way of nearly all that garbage collection moves, in the improved mode.
//!
//! A sector that was read goes into a buffer unit with the tag it was read with, and nothing else changes: the map goes on naming
//! the original, which stays valid and is read, until the copy is on media. Then the map's entry is exchanged, if it still
//! names the original; what a user wrote or discarded meanwhile makes the exchange fail, and the copy is dead. The map is looked
//! at when a sector is copied and changed once, and the buffer keeps no more of it than where it came from. A copy that was
//! programmed within MW_CUNITS of a chunk's pointer is found in its buffer unit through the open line.
//!
//! A copy whose original died before it was sent is not written: a checkpoint may have begun in between, and what is written
//! behind a checkpoint counts as newer (`checkpoint`). One whose original is reset before it is programmed must not take the place
//! of what is written there next, which may be the same block again. Deliberately not here: what is no plain block, what cannot
//! be read, and all that the faithful mode moves (`gc_read`): that enters the buffer as a write does.

use super::Pblk;
use super::canary::Canary;
use super::gc_read::{GcRead, Origin, sectors_left, sound_block};
use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::{
    BufferUnitId, LineId, LineState, Mapped, PhysicalAddress, SectorTag, Slot, Stream, UnitIndex,
};
use ocssd_lightnvm::Buffers;

/// The place `count` behind another.
fn behind(place: PhysicalAddress, count: usize) -> PhysicalAddress {
    PhysicalAddress(place.0 + u64::try_from(count).expect("an index"))
}

impl Pblk {
    /// Whether what is moved is copied; else it enters the buffer, as pblk had it.
    pub(super) fn moves_by_copy(&self) -> bool {
        !self.is_faithful() && !self.has_canary(Canary::MovedTooEarly) && !self.has_canary(Canary::MovesStale)
    }

    /// Copies what comes next of what was read, as far as it is neighbours of one stream, sound and valid. How many sectors: if
    /// none, the next one goes the long way. `None` if there is no room.
    pub(super) fn copy_run(
        &mut self,
        now: Nanos,
        read: &GcRead,
        origin: Origin,
        buffers: &mut Buffers,
    ) -> Option<u32> {
        if !read.with.has_data() {
            return Some(0);
        }
        let Some((place, stream, found)) = self.next_run(read, origin, buffers) else { return Some(0) };
        if !self.limiter.may_insert_gc(now) {
            return None;
        }
        // Before a buffer unit is taken: one that nothing goes into would stay empty.
        let valid = self.count_valid(place, found);
        if valid == 0 {
            return Some(0);
        }
        let buffer_unit = self.filling_buffer_unit(stream, true)?;
        let count = valid.min(self.write_buffer.room(buffer_unit));
        let slot = self.write_buffer.push_copies(buffer_unit, place, count);
        buffers.copy_sectors(read.buffer, read.next, self.ring, slot.0, count);
        self.limiter.on_gc_inserted(count);
        self.stats.gc_written += u64::from(count);
        self.close_if_full(buffer_unit);
        Some(count)
    }

    /// The neighbours that come next of what was read: where the first lies, to which stream they go, and how many of them are
    /// sound blocks and the newest versions. An older one is valid here if its write went astray and took the place of another
    /// block; behind a checkpoint its copy would count as newer than what the checkpoint names.
    fn next_run(
        &self,
        read: &GcRead,
        origin: Origin,
        buffers: &Buffers,
    ) -> Option<(PhysicalAddress, Stream, u32)> {
        let from = self.lines.get(origin.line).stream;
        let (mut first, mut stream, mut count) = (0, None, 0);
        for (ppa, content, tag) in sectors_left(read, buffers) {
            if stream.is_some() && (ppa.chunk != origin.chunk || ppa.sector != first + count) {
                break;
            }
            let Some(tag) = sound_block(tag, content) else { break };
            if !self.is_newest(tag.block, PhysicalAddress(origin.start.0 + u64::from(ppa.sector))) {
                break;
            }
            let to = self.classifier.gc_stream(from, self.sequence.0, Some(tag.sequence.0));
            if *stream.get_or_insert(to) != to {
                break;
            }
            if count == 0 {
                first = ppa.sector;
            }
            count += 1;
        }
        stream.map(|stream| (PhysicalAddress(origin.start.0 + u64::from(first)), stream, count))
    }

    /// How many of `count` neighbours are valid, up to the first that is not.
    fn count_valid(&self, first: PhysicalAddress, count: u32) -> u32 {
        if self.valid.is_valid_run(first, u64::from(count)) {
            return count;
        }
        let is_valid = |&at: &u32| self.valid.is_valid(PhysicalAddress(first.0 + u64::from(at)));
        let count = (0..count).take_while(is_valid).count();
        u32::try_from(count).expect("within a buffer unit")
    }

    /// Makes padding of the copies in a buffer unit about to be sent whose originals nobody needs any more.
    pub(super) fn drop_dead_copies(&mut self, buffer_unit: BufferUnitId) {
        let Self { write_buffer, valid, .. } = self;
        let is_whole =
            |(_, origin, count): (Slot, PhysicalAddress, u32)| valid.is_valid_run(origin, u64::from(count));
        if write_buffer.copy_runs(buffer_unit).all(is_whole) {
            return;
        }
        let each = write_buffer.copy_runs(buffer_unit).flat_map(|(slot, origin, count)| {
            (0..count).map(move |at| (Slot(slot.0 + at), PhysicalAddress(origin.0 + u64::from(at))))
        });
        let dead: Vec<Slot> =
            each.filter(|&(_, origin)| !valid.is_valid(origin)).map(|(slot, _)| slot).collect();
        assert!(!dead.is_empty(), "a run of copies is dead, but none of them");
        for slot in dead {
            self.write_buffer.drop_copy(slot);
            self.stats.superseded += 1;
        }
    }

    /// The copies in a buffer unit are on media: each takes the place of its original, unless that was superseded.
    pub(super) fn commit_copies(&mut self, buffer_unit: BufferUnitId, buffers: &Buffers) {
        let (first, start) =
            (self.write_buffer.first_slot(buffer_unit), self.write_buffer.place(buffer_unit));
        let oob_bytes = buffers.format().oob_bytes;
        let tags = buffers.oob(self.ring, first.0, self.write_buffer.filled(buffer_unit));
        let block = |slot: Slot| {
            let tag = &tags[usize_of(slot.0 - first.0) * oob_bytes..];
            SectorTag::peek_block(tag).expect("a sector has room for its tag")
        };
        let mut runs = std::mem::take(&mut self.scratch.runs);
        let mut blocks = std::mem::take(&mut self.scratch.blocks);
        runs.clear();
        blocks.clear();
        for run in self.write_buffer.copy_runs(buffer_unit) {
            runs.push(run);
            blocks.extend((run.0.0..run.0.0 + run.2).map(|slot| block(Slot(slot))));
        }
        self.l2p.fetch(blocks.iter().copied());
        self.valid.fetch(runs.iter().map(|&(_, origin, _)| origin));
        let mut rest = blocks.as_slice();
        for &(slot, origin, count) in &runs {
            let (run, others) = rest.split_at(usize_of(count));
            self.commit_run(run, origin, PhysicalAddress(start.0 + u64::from(slot.0 - first.0)));
            rest = others;
        }
        assert!(rest.is_empty(), "{} copies were programmed in no run", rest.len());
        (self.scratch.runs, self.scratch.blocks) = (runs, blocks);
    }

    /// Neighbours at `origin`, which hold `blocks`, were copied to `place`.
    fn commit_run(&mut self, blocks: &[u64], origin: PhysicalAddress, place: PhysicalAddress) {
        let mut from = 0;
        while from < blocks.len() {
            let (first, copy) = (behind(origin, from), behind(place, from));
            let moved = self.versions().exchange(&blocks[from..], first, copy);
            if moved > 1 && self.has_canary(Canary::RunCutShort) {
                let last = behind(first, moved - 1);
                self.versions().remap(blocks[from + moved - 1], Mapped::Media(last));
            }
            if moved > 0 {
                let count = behind(PhysicalAddress(0), moved).0;
                self.valid.set_run(copy, count);
                self.invalidate_run(first, count);
            }
            // The one that stopped it is dead.
            from += moved + 1;
        }
    }

    /// Where in the buffer a sector is that was programmed and cannot be read yet. In the faithful mode the map names what is in
    /// the buffer, which lets go of buffer units whether or not their media can be read.
    #[inline]
    pub(super) fn slot_of_unreadable(&self, place: PhysicalAddress) -> Option<Slot> {
        if self.is_faithful() {
            return None;
        }
        let (line, unit, sector) = self.shape.split(place);
        let (buffer_unit, offset) = self.open[line.index()].as_ref()?.unreadable(unit, sector)?;
        Some(Slot(self.write_buffer.first_slot(buffer_unit).0 + offset))
    }

    /// What the tag of a sector in the buffer says.
    pub(super) fn tag_in(&self, slot: Slot, buffers: &Buffers) -> SectorTag {
        if !self.write_buffer.is_copy(slot) {
            return self.write_buffer.entry(slot).tag;
        }
        let tag = SectorTag::decode(buffers.oob(self.ring, slot.0, 1), buffers.data(self.ring, slot.0, 1));
        tag.expect("a copy was found sound when it was read")
    }

    /// A line is reset: its dead copies are forgotten.
    pub(super) fn forget_copies(&mut self, line: LineId) {
        let start = self.shape.chunk_start(line, UnitIndex(0)).0;
        let gone = self.write_buffer.drop_copies_of(start..start + self.shape.sectors_per_line());
        self.stats.superseded += u64::from(gone);
    }

    /// Asserts that originals of copies are where they can be read.
    pub(super) fn check_copies(&self) {
        for buffer_unit in self.write_buffer.waiting() {
            for (_, origin, count) in self.write_buffer.copy_runs(buffer_unit) {
                let line = self.shape.line_of(origin);
                let state = self.lines.get(line).state;
                assert!(
                    matches!(state, LineState::Open | LineState::Closed),
                    "{count} copies of line {} wait, which is {state:?}",
                    line.0
                );
            }
        }
    }
}
