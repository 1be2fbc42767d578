//! Copies in buffer units: sectors that garbage collection moves, of which no more is kept than where their originals lie.
//!
//! Deliberately not here: what becomes of a copy that was programmed, or whose original died; who makes copies.

use super::{BufferUnitId, Entry, WriteBuffer, low_bits};
use crate::Slot;
use crate::instance_geometry::PhysicalAddress;
use ocssd_base::usize_of;

impl WriteBuffer {
    /// Puts copies of `count` neighbours, the first of them at `origin`, into the next slots of a buffer unit being filled. Content
    /// and tags are the caller's to copy; no flush waits for them, because the originals are on media.
    pub fn push_copies(&mut self, buffer_unit: BufferUnitId, origin: PhysicalAddress, count: u32) -> Slot {
        assert!(
            count > 0 && count <= self.room(buffer_unit),
            "{count} copies do not fit buffer unit {}",
            buffer_unit.0
        );
        let header = &mut self.units[buffer_unit.index()];
        let first = Slot(buffer_unit.0 * self.unit + header.filled);
        header.copies |= low_bits(count) << header.filled;
        header.filled += count;
        let slots = &mut self.origins[usize_of(first.0)..][..usize_of(count)];
        for (slot, place) in slots.iter_mut().zip(origin.0..) {
            *slot = PhysicalAddress(place);
        }
        first
    }

    /// True if a slot holds a copy.
    #[must_use]
    pub fn is_copy(&self, slot: Slot) -> bool {
        let (buffer_unit, offset) = self.per_buffer_unit.div_rem_u32(slot.0);
        self.units[BufferUnitId(buffer_unit).index()].copies >> offset & 1 == 1
    }

    /// The copies in a buffer unit by neighbours: the first slot, where its original lies, and how many follow each other in
    /// both.
    pub fn copy_runs(&self, buffer_unit: BufferUnitId) -> impl Iterator<Item = (Slot, PhysicalAddress, u32)> {
        let first = self.first_slot(buffer_unit).0;
        let mut left = self.units[buffer_unit.index()].copies;
        let origins = &self.origins[usize_of(first)..][..usize_of(self.unit)];
        std::iter::from_fn(move || {
            let from = if left == 0 { return None } else { left.trailing_zeros() };
            let most = (left >> from).trailing_ones();
            let run = &origins[usize_of(from)..usize_of(from + most)];
            let follows = run.windows(2).take_while(|pair| pair[0].0 + 1 == pair[1].0).count();
            let count = 1 + u32::try_from(follows).expect("within a buffer unit");
            left &= !(low_bits(count) << from);
            Some((Slot(first + from), run[0], count))
        })
    }

    /// Makes padding of a copy that nobody needs.
    pub fn drop_copy(&mut self, slot: Slot) {
        assert!(self.is_copy(slot), "slot {} holds no copy", slot.0);
        let (buffer_unit, offset) = self.per_buffer_unit.div_rem_u32(slot.0);
        self.units[BufferUnitId(buffer_unit).index()].copies &= !(1 << offset);
        self.entries[usize_of(slot.0)] = Entry::PAD;
    }

    /// True if a copy of what is at `place` waits to be written, or is being written. Cost: a pass over those.
    #[must_use]
    pub fn has_copy_of(&self, place: PhysicalAddress) -> bool {
        let is_of = |(_, origin, count): (Slot, PhysicalAddress, u32)| {
            (origin.0..origin.0 + u64::from(count)).contains(&place.0)
        };
        self.waiting().any(|buffer_unit| self.copy_runs(buffer_unit).any(is_of))
    }

    /// Makes padding of the copies whose originals are in`places` and were not programmed: these are about to be reset, and what is
    /// written there next is something else. Cost: a pass over the copies that wait.
    pub fn drop_copies_of(&mut self, places: std::ops::Range<u64>) -> u32 {
        let is_of = |slot: &Slot| self.is_copy(*slot) && places.contains(&self.origins[usize_of(slot.0)].0);
        let slots = self
            .waiting()
            .filter(|&buffer_unit| self.units[buffer_unit.index()].copies != 0)
            .flat_map(|buffer_unit| {
                let first = self.first_slot(buffer_unit).0;
                (first..first + self.unit).map(Slot)
            });
        let gone: Vec<Slot> = slots.filter(is_of).collect();
        gone.iter().for_each(|&slot| self.drop_copy(slot));
        u32::try_from(gone.len()).expect("fewer slots than 2^32")
    }

    /// Buffer units whose content is not acknowledged by the media. Cost: a pass over the buffer units.
    pub fn waiting(&self) -> impl Iterator<Item = BufferUnitId> {
        (0..self.count()).map(BufferUnitId).filter(|buffer_unit| self.units[buffer_unit.index()].is_waiting())
    }
}
