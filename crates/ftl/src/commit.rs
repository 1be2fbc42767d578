//! How the map and the write buffer change together: a block enters the buffer, what was written is committed, a copy takes the
//! place of its original if the map still names that, and a slot is given to another block.
//!
//! Of each block there is a newest version, which the map names, and a newest durable one, whose place is valid. While the newest
//! is in the buffer and not durable its slot holds the durable one (`Entry::previous`), so that a power cut leaves a block old or
//! new and never empty; pblk let go of the older version when the newer one entered the ring. Units are programmed in any order
//! and a version may be superseded while it is: it is then the newest durable one if it is newer than what the slot of the newest
//! holds. Copies are exchanged by runs: neighbours at neighbouring places, up to the first that is elsewhere by now.
//! Deliberately not here: valid bits (what became valid, and what is no longer, is said), commands, and who waits.

use crate::{BufferUnitId, Entry, Kind, L2p, Mapped, PhysicalAddress, Sequence, Slot, Stream, WriteBuffer};

/// The map of an instance and its write buffer.
#[derive(Debug)]
pub struct Versions<'a> {
    /// Where the newest versions are.
    pub map: &'a mut L2p,
    /// Where those are that are not on media, or cannot be read there.
    pub buffer: &'a mut WriteBuffer,
}

/// What the end of a slot's program changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The newest version of its block is durable: its place is valid, and that of the version before is not.
    Newest {
        /// Where that is.
        gone: Option<PhysicalAddress>,
    },
    /// Superseded while it was written, it is the newest durable version: its place is valid, and that of the version before is
    /// not.
    Superseded {
        /// Where that is.
        gone: Option<PhysicalAddress>,
    },
    /// A newer version is durable, or the block was discarded: its place was never valid.
    Dead,
}

impl Versions<'_> {
    /// Maps a block, and says where it was; a slot it was in is told that it is not the newest. Cost: as [`L2p::set`].
    ///
    /// # Panics
    /// If the block is there already, or its slot holds another.
    #[inline]
    pub fn remap(&mut self, block: u64, to: Mapped) -> Mapped {
        let old = self.map.set(block, to);
        assert!(old != to || to == Mapped::Nowhere, "block {block} is mapped to where it is already");
        if let Mapped::Buffer(slot) = old {
            assert_eq!(self.buffer.entry(slot).tag.block, block, "slot {} holds another block", slot.0);
            self.buffer.supersede(slot);
        }
        old
    }

    /// The newest durable version of a block that was mapped to `old`, out of the hands of whoever held it, and since when it is.
    /// Where no slot had it that is `before`, the write before this one: what is older and programmed late is not the version
    /// before this, for all before it were discarded, or are older than the one on media.
    #[inline]
    pub fn take_durable(&mut self, old: Mapped, before: Sequence) -> (Option<PhysicalAddress>, Sequence) {
        match old {
            Mapped::Nowhere => (None, before),
            Mapped::Media(place) => (Some(place), before),
            Mapped::Buffer(slot) => self.buffer.take_durable(slot),
        }
    }

    /// The block in `slot` is durable at `place`.
    ///
    /// # Panics
    /// If the slot holds no block, or was not programmed.
    #[inline]
    pub fn commit(&mut self, slot: Slot, place: PhysicalAddress) -> Committed {
        let entry = self.buffer.entry_mut(slot);
        assert!(matches!(entry.tag.kind, Kind::Data | Kind::Lost), "{:?} is committed as a block", entry.tag);
        if entry.is_newest {
            let gone = entry.previous.take();
            assert!(gone != Some(place), "block {} is programmed where it is already", entry.tag.block);
            return Committed::Newest { gone };
        }
        self.commit_superseded(slot, place)
    }

    fn commit_superseded(&mut self, slot: Slot, place: PhysicalAddress) -> Committed {
        let tag = self.buffer.entry(slot).tag;
        let Mapped::Buffer(newest) = self.map.get(tag.block) else { return Committed::Dead };
        if self.buffer.durable_place(newest).is_some() {
            return Committed::Dead;
        }
        let holder = self.buffer.entry_mut(newest);
        assert_eq!(holder.tag.block, tag.block, "slot {} holds another block", newest.0);
        if holder.previous_sequence >= tag.sequence {
            return Committed::Dead;
        }
        holder.previous_sequence = tag.sequence;
        let gone = holder.previous.replace(place);
        assert!(gone != Some(place), "block {} is programmed where it is already", tag.block);
        Committed::Superseded { gone }
    }

    /// Lets the map name the copies of neighbours from `copy` on, if it named their originals from `origin` on: on media, or in the
    /// buffer they were written from. How many are before the first that is dead. Cost: as [`L2p::move_run`].
    pub fn exchange(&mut self, blocks: &[u64], origin: PhysicalAddress, copy: PhysicalAddress) -> usize {
        let mut done = 0;
        loop {
            done += self.map.move_run(&blocks[done..], behind(origin, done), behind(copy, done));
            let Some(&block) = blocks.get(done) else { return done };
            let Mapped::Buffer(slot) = self.map.get(block) else { return done };
            if self.buffer.durable_place(slot) != Some(behind(origin, done)) {
                return done;
            }
            self.remap(block, Mapped::Media(behind(copy, done)));
            done += 1;
        }
    }

    /// Takes a buffer unit to fill. The map names media for what was in it, and `evicted` is told of each entry. Cost: as
    /// [`WriteBuffer::take`], with the misses of the map overlapped.
    pub fn take_unit(&mut self, stream: Stream, mut evicted: impl FnMut(&Entry)) -> Option<BufferUnitId> {
        let Self { map, buffer } = self;
        if let Some(emptied) = buffer.next_emptied() {
            let newest = buffer.live(emptied).filter(|(_, entry)| entry.is_newest);
            map.fetch(newest.map(|(_, entry)| entry.tag.block));
        }
        buffer.take(stream, |slot, entry, place| {
            evicted(entry);
            evict(map, slot, entry, place);
        })
    }

    /// Empties the oldest buffer unit that is kept as a cache, as [`Versions::take_unit`] does.
    pub fn evict_oldest(&mut self, mut evicted: impl FnMut(&Entry)) {
        let Self { map, buffer } = self;
        buffer.evict_oldest(|slot, entry, place| {
            evicted(entry);
            evict(map, slot, entry, place);
        });
    }
}

/// True if `place` holds the newest version of a block, whether the map names media or still the buffer.
#[must_use]
pub fn is_newest_at(map: &L2p, buffer: &WriteBuffer, block: u64, place: PhysicalAddress) -> bool {
    match map.get(block) {
        Mapped::Media(newest) => newest == place,
        Mapped::Buffer(slot) => buffer.durable_place(slot) == Some(place),
        Mapped::Nowhere => false,
    }
}

/// A slot is given to another block: the map names media for what was in it.
fn evict(map: &mut L2p, slot: Slot, entry: &Entry, place: PhysicalAddress) {
    if entry.is_newest {
        assert!(matches!(entry.tag.kind, Kind::Data | Kind::Lost), "the map names what is no block");
        let moved = map.move_if(entry.tag.block, Mapped::Buffer(slot), Mapped::Media(place));
        assert!(moved, "block {} is not in slot {}", entry.tag.block, slot.0);
    }
}

/// The place `count` behind another.
fn behind(place: PhysicalAddress, count: usize) -> PhysicalAddress {
    PhysicalAddress(place.0 + u64::try_from(count).expect("an index"))
}

#[cfg(test)]
mod tests;
