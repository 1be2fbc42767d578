//! The write buffer: buffer units of a write unit each, which zones fill block by block.
//!
//! A buffer unit belongs to one unit of one zone from its first block until that unit can be read from media. Blocks come in
//! order, or anywhere in it if the zone has a random write area. Deliberately not here: which zone has which buffer unit
//! (`writer`).

use super::segments::UnitOfZone;
use ocssd_base::usize_of;
use ocssd_lightnvm::{BufId, Buffers};

/// A buffer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BufferUnitId(pub u32);

#[derive(Clone, Debug)]
struct BufferUnit {
    buffer: BufId,
    unit: UnitOfZone,
    /// Blocks before this one are in it.
    filled: u32,
    /// Blocks that were placed in it, out of order; all of them `false` of others.
    placed: Vec<bool>,
    /// Blocks before the end that were never written.
    holes: u32,
    is_free: bool,
    /// The media failed it once.
    is_again: bool,
}

/// All buffer units of an instance.
#[derive(Clone, Debug)]
pub struct BufferUnits {
    /// Sectors of a buffer unit.
    unit: u32,
    buffer_units: Vec<BufferUnit>,
    free: Vec<BufferUnitId>,
}

impl BufferUnits {
    /// `count` free buffer units of `unit` sectors, whose buffers are taken now.
    pub fn new(count: u32, unit: u32, buffers: &mut Buffers) -> Self {
        assert!(count > 0 && unit > 0, "{count} buffer units of {unit} sectors");
        let buffer_unit = |_| BufferUnit {
            buffer: buffers.take(unit),
            unit: 0,
            filled: 0,
            placed: vec![false; usize_of(unit)],
            holes: 0,
            is_free: true,
            is_again: false,
        };
        Self {
            unit,
            buffer_units: (0..count).map(buffer_unit).collect(),
            free: (0..count).rev().map(BufferUnitId).collect(),
        }
    }

    fn get(&self, buffer_unit: BufferUnitId) -> &BufferUnit {
        &self.buffer_units[usize_of(buffer_unit.0)]
    }

    fn get_mut(&mut self, buffer_unit: BufferUnitId) -> &mut BufferUnit {
        &mut self.buffer_units[usize_of(buffer_unit.0)]
    }

    /// A free buffer unit, for a unit of a zone.
    pub fn take(&mut self, unit: UnitOfZone) -> Option<BufferUnitId> {
        let buffer_unit = self.free.pop()?;
        let entry = self.get_mut(buffer_unit);
        assert!(entry.is_free && entry.filled == 0, "{buffer_unit:?} is not free");
        (entry.is_free, entry.unit, entry.is_again, entry.holes) = (false, unit, false, 0);
        entry.placed.fill(false);
        Some(buffer_unit)
    }

    /// Blocks are placed in a buffer unit, over what was there: gives its buffer.
    pub fn place(&mut self, buffer_unit: BufferUnitId, at: u32, blocks: u32) -> BufId {
        let entry = self.get_mut(buffer_unit);
        assert!(blocks > 0 && entry.filled == 0, "{buffer_unit:?} takes no blocks out of order");
        assert!(!entry.is_free, "blocks are placed in {buffer_unit:?}, which is free");
        entry.placed[usize_of(at)..usize_of(at + blocks)].fill(true);
        entry.buffer
    }

    /// True if a buffer unit has a block.
    pub fn has(&self, buffer_unit: BufferUnitId, at: u32) -> bool {
        let entry = self.get(buffer_unit);
        at < entry.filled || entry.placed[usize_of(at)]
    }

    /// Where the last block placed in a buffer unit ends.
    pub fn end(&self, buffer_unit: BufferUnitId) -> u32 {
        let last = self.get(buffer_unit).placed.iter().rposition(|&is_there| is_there);
        last.map_or(0, |last| u32::try_from(last + 1).expect("within a unit"))
    }

    /// What a buffer unit lacked of its first `blocks` was filled: it takes no more out of order.
    pub fn complete(&mut self, buffer_unit: BufferUnitId, blocks: u32) {
        let entry = self.get_mut(buffer_unit);
        assert!(!entry.is_free && entry.filled == 0, "{buffer_unit:?} is complete already");
        let there = entry.placed[..usize_of(blocks)].iter().filter(|&&is_there| is_there).count();
        entry.holes = blocks - u32::try_from(there).expect("within a unit");
        entry.filled = blocks;
    }

    /// Blocks of a buffer unit that were never written, and are in it as such.
    pub fn holes(&self, buffer_unit: BufferUnitId) -> u32 {
        self.get(buffer_unit).holes
    }

    /// Blocks more are in a buffer unit: gives its buffer, and where in it they begin.
    pub fn push(&mut self, buffer_unit: BufferUnitId, blocks: u32) -> (BufId, u32) {
        assert!(blocks > 0, "no block goes to {buffer_unit:?}");
        let unit = self.unit;
        let entry = self.get_mut(buffer_unit);
        let at = entry.filled;
        entry.filled += blocks;
        assert!(
            !entry.is_free && entry.filled <= unit,
            "{buffer_unit:?} takes no more: {} sectors",
            entry.filled
        );
        (entry.buffer, at)
    }

    /// A buffer unit is not needed any more.
    pub fn release(&mut self, buffer_unit: BufferUnitId) {
        let entry = self.get_mut(buffer_unit);
        assert!(!entry.is_free, "{buffer_unit:?} is free already");
        (entry.is_free, entry.filled) = (true, 0);
        self.free.push(buffer_unit);
        assert!(self.free.len() <= self.buffer_units.len(), "more buffer units are free than there are");
    }

    /// Where its content is.
    pub fn buffer(&self, buffer_unit: BufferUnitId) -> BufId {
        self.get(buffer_unit).buffer
    }

    /// Blocks in it.
    pub fn filled(&self, buffer_unit: BufferUnitId) -> u32 {
        self.get(buffer_unit).filled
    }

    /// Blocks it still takes.
    pub fn room(&self, buffer_unit: BufferUnitId) -> u32 {
        self.unit - self.get(buffer_unit).filled
    }

    /// The unit it is for.
    pub fn unit(&self, buffer_unit: BufferUnitId) -> UnitOfZone {
        assert!(!self.get(buffer_unit).is_free, "{buffer_unit:?} is of no unit");
        self.get(buffer_unit).unit
    }

    /// The media failed it; says whether they had before.
    pub fn failed(&mut self, buffer_unit: BufferUnitId) -> bool {
        assert!(self.get(buffer_unit).filled > 0, "{buffer_unit:?} failed with nothing in it");
        std::mem::replace(&mut self.get_mut(buffer_unit).is_again, true)
    }

    /// True of a buffer unit that the media failed before.
    pub fn is_again(&self, buffer_unit: BufferUnitId) -> bool {
        self.get(buffer_unit).is_again
    }

    /// Buffer units in use.
    pub fn in_use(&self) -> usize {
        self.buffer_units.len() - self.free.len()
    }

    /// Asserts that no buffer unit was lost.
    pub fn check(&self) {
        let free = self.buffer_units.iter().filter(|buffer_unit| buffer_unit.is_free).count();
        assert_eq!(free, self.free.len(), "a free buffer unit is not listed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn blocks_are_placed_anywhere_until_the_buffer_unit_is_complete() {
        let geometry = Geometry::example(1, 1, 4, 24, 4);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let mut buffer_units = BufferUnits::new(2, 8, &mut buffers);
        let buffer_unit = buffer_units.take(3).expect("free");
        let buffer = buffer_units.place(buffer_unit, 5, 2);
        assert_eq!(buffer_units.place(buffer_unit, 1, 1), buffer);
        buffer_units.place(buffer_unit, 5, 1);
        let there: Vec<u32> = (0..8).filter(|&at| buffer_units.has(buffer_unit, at)).collect();
        assert_eq!(
            (there, buffer_units.end(buffer_unit), buffer_units.filled(buffer_unit)),
            (vec![1, 5, 6], 7, 0)
        );
        buffer_units.complete(buffer_unit, 7);
        assert_eq!(
            (
                buffer_units.holes(buffer_unit),
                buffer_units.filled(buffer_unit),
                buffer_units.has(buffer_unit, 0)
            ),
            (4, 7, true)
        );
        buffer_units.release(buffer_unit);
        let again = buffer_units.take(4).expect("free");
        assert_eq!(
            (again, buffer_units.holes(again), buffer_units.end(again)),
            (buffer_unit, 0, 0),
            "nothing is left in it"
        );
        buffer_units.check();
    }
}
