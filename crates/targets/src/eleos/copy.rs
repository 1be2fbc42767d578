//! Garbage collection of pages: the parts that a victim still has are read buffer unit by buffer unit, and copied to buffer units
//! of its group.
//!
//! Which parts a chunk has, the pages on its list say. What cannot be read stays where it is, and its chunk is left alone until
//! the page is written anew or deleted. Deliberately not here: which chunk is chosen, and when (`ox::collect`).

use super::change::Source;
use super::entry::Entry;
use super::extent::{Extent, GRAIN_BYTES, Spot, index};
use super::store::{Eleos, Owner, Slot};
use crate::ox::write_buffer::BufferUnitId;
use ocssd_ftl::{ChunkIndex, PhysicalAddress};
use ocssd_lightnvm::interface::log_structured::PageId;
use ocssd_lightnvm::{BufId, Buffers};

impl Eleos {
    /// The parts that lie in a chunk, in order.
    fn parts_in(&self, chunk: ChunkIndex) -> Vec<(PageId, Extent)> {
        let mut found = Vec::new();
        for page in self.space.live.residents(chunk) {
            let here = self.store.map.parts(page).filter(|part| self.grid().chunk(part.spot) == chunk);
            found.extend(here.map(|part| (page, part)));
        }
        found.sort_unstable_by_key(|&(_, part)| part);
        found
    }

    /// The next sectors of a victim with parts that are still needed, all of one buffer unit.
    pub(super) fn next_run_of_victim(
        &mut self,
        chunk: ChunkIndex,
        from: PhysicalAddress,
        most: u32,
    ) -> Option<(PhysicalAddress, u32)> {
        if from == self.space.shape.first_place(chunk) {
            let parts = self.parts_in(chunk);
            self.store.victims.insert(chunk, parts);
        }
        let (grid, start) = (self.grid(), self.space.shape.first_place(chunk));
        let parts = self.store.victims.get(&chunk)?;
        let behind = parts.partition_point(|(_, part)| grid.place(part.spot).0 < from);
        let mut run: Option<(PhysicalAddress, PhysicalAddress)> = None;
        for &(page, part) in &parts[behind..] {
            if !self.store.map.parts(page).any(|now| now == part) {
                continue;
            }
            let (first, byte) = grid.place(part.spot);
            let end = PhysicalAddress(first.0 + u64::from(grid.sectors(byte, part.bytes)));
            let buffer_unit_of = |place: PhysicalAddress| (place.0 - start.0) / u64::from(most);
            match run {
                None => run = Some((first, end)),
                Some((begin, last)) if buffer_unit_of(first) == buffer_unit_of(begin) => {
                    run = Some((begin, last.max(end)))
                }
                Some(_) => break,
            }
        }
        let (first, end) = run?;
        assert!(from <= first && first < end, "a run goes back: {first:?} after {from:?}");
        let count = u32::try_from(end.0 - first.0).expect("a buffer unit is short");
        assert!(count <= most, "parts of {count} sectors leave their buffer unit");
        Some((first, count))
    }

    /// Copies what was read of a victim, as far as it is still needed.
    pub(super) fn copy_parts(
        &mut self,
        (first, count): (PhysicalAddress, u32),
        (buffer, lost): (BufId, u64),
        buffers: &mut Buffers,
    ) {
        let (chunk, _) = self.space.shape.chunk_of(first);
        let grid = self.grid();
        let end = PhysicalAddress(first.0 + u64::from(count));
        let Some(parts) = self.store.victims.get(&chunk) else { return };
        let here = |part: &Extent| (first..end).contains(&grid.place(part.spot).0);
        let parts: Vec<(PageId, Extent)> = parts.iter().filter(|(_, part)| here(part)).copied().collect();
        for (page, part) in parts {
            if !self.store.map.parts(page).any(|now| now == part) {
                continue;
            }
            let (place, byte) = grid.place(part.spot);
            let sector = u32::try_from(place.0 - first.0).expect("within the run");
            let sectors = sector..sector + grid.sectors(byte, part.bytes);
            if sectors.clone().any(|sector| lost >> sector & 1 == 1) {
                self.space.set_stuck(chunk);
                continue;
            }
            let at = index(sector * self.sector_bytes + byte);
            let content = buffers.whole(buffer, 0, count)[at..at + index(part.bytes)].to_vec();
            self.copy_part(chunk, (page, part), &content, buffers);
        }
    }

    fn copy_part(
        &mut self,
        chunk: ChunkIndex,
        (page, part): (PageId, Extent),
        content: &[u8],
        buffers: &mut Buffers,
    ) {
        assert_eq!(index(part.bytes), content.len(), "page {} is copied with other bytes", page.0);
        assert_eq!(self.grid().chunk(part.spot), chunk, "page {} lies in another chunk", page.0);
        let stream = self.copies_of(chunk);
        let mut done = 0;
        while done < part.bytes {
            let room = self.room_for(stream, part.bytes - done);
            let (at, bytes) = room.expect("buffer units were counted before it was read");
            let from = Spot(part.spot.0 + u64::from(done / GRAIN_BYTES));
            let slot = Slot { page, at, bytes, owner: Owner::Copy(from) };
            self.copy_begun(chunk);
            self.put(stream, slot, Source::Bytes(&content[index(done)..index(done + bytes)]), buffers);
            done += bytes;
        }
        assert_eq!(done, part.bytes, "a part was copied beyond its end");
    }

    /// What makes the copies of a buffer unit at `place` true.
    pub(super) fn moved_entries(&mut self, buffer_unit: BufferUnitId, place: PhysicalAddress) -> Vec<Entry> {
        let slots = self.buffer.slots(buffer_unit).to_vec();
        let entry = |slot: &Slot| {
            let Owner::Copy(from) = slot.owner else {
                unreachable!("a buffer unit of copies holds {slot:?}")
            };
            self.copy_ended(self.grid().chunk(from));
            let from = Extent { spot: from, bytes: slot.bytes };
            Entry::Moved(slot.page, from, self.grid().spot(place, slot.at))
        };
        slots.iter().map(entry).collect()
    }
}
