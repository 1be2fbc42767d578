//! Where a sector of an instance lies: lines, units and sectors, counted densely over the units leased to it.
//!
//! A line is the chunks with the same index on every unit (LightNVM paper section 4.2.1). A [`PhysicalAddress`] counts sectors
//! line by line, in a line unit by unit, so that a chunk is a run of places and a map entry needs no address format.
//! Deliberately not here: the order in which a line is written (`provision`).

use ocssd_base::{Divisor, usize_of};
use ocssd_lightnvm::{ChunkId, Geometry, Ppa, PuId};

/// A unit of the drive that is none of the instance's.
const NO_UNIT: u32 = u32::MAX;

/// A line of an instance, from 0: the index of its chunks in their units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u32);

/// A unit of an instance, from 0, in the order the lease names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitIndex(pub u32);

/// A sector of an instance: `(line * units + unit) * sectors_per_chunk + sector`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalAddress(pub u64);

/// A chunk of an instance, from 0: `line * units + unit`, so that its places are a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkIndex(pub u32);

impl ChunkIndex {
    /// As an index.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

impl LineId {
    /// As an index.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

impl UnitIndex {
    /// As an index.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

/// The shape of an instance: its units, and how places and the drive's addresses turn into each other.
#[derive(Clone, Debug)]
pub struct InstanceGeometry {
    units: Vec<PuId>,
    /// By unit of the drive: which of the instance's it is.
    by_name: Vec<u32>,
    per_unit: Divisor,
    lines: u32,
    chunks_per_pu: u32,
    sectors_per_chunk: u32,
    per_chunk: Divisor,
    per_line: Divisor,
}

impl InstanceGeometry {
    /// The shape of an instance on `units` of a drive.
    ///
    /// # Panics
    /// If no unit is named or one does not exist: the media manager leases none such.
    #[must_use]
    pub fn new(geometry: &Geometry, units: &[PuId]) -> Self {
        assert!(!units.is_empty(), "an instance has at least one unit");
        assert!(units.iter().all(|unit| unit.0 < geometry.pu_count()), "a unit beyond the drive was leased");
        let unit_count = u32::try_from(units.len()).expect("fewer units than 2^32");
        let mut by_name = vec![NO_UNIT; usize_of(geometry.pu_count())];
        for (&unit, index) in units.iter().zip(0..) {
            by_name[usize_of(unit.0)] = index;
        }
        Self {
            by_name,
            per_unit: Divisor::new(u64::from(geometry.chunks_per_pu)),
            units: units.to_vec(),
            lines: geometry.chunks_per_pu,
            chunks_per_pu: geometry.chunks_per_pu,
            sectors_per_chunk: geometry.sectors_per_chunk,
            per_chunk: Divisor::new(u64::from(geometry.sectors_per_chunk)),
            per_line: Divisor::new(u64::from(unit_count)),
        }
    }

    /// Lines, good and bad.
    #[must_use]
    pub const fn lines(&self) -> u32 {
        self.lines
    }

    /// Units.
    #[must_use]
    #[inline]
    pub fn units(&self) -> u32 {
        u32::try_from(self.units.len()).expect("fewer units than 2^32")
    }

    /// Sectors of a chunk.
    #[must_use]
    pub const fn sectors_per_chunk(&self) -> u32 {
        self.sectors_per_chunk
    }

    /// Sectors of a line with all its chunks.
    #[must_use]
    pub fn sectors_per_line(&self) -> u64 {
        u64::from(self.units()) * u64::from(self.sectors_per_chunk)
    }

    /// All places, good and bad.
    #[must_use]
    pub fn places(&self) -> u64 {
        u64::from(self.lines) * self.sectors_per_line()
    }

    /// The first place of a line's chunk on a unit.
    #[must_use]
    pub fn chunk_start(&self, line: LineId, unit: UnitIndex) -> PhysicalAddress {
        assert!(line.0 < self.lines && unit.0 < self.units(), "a chunk beyond the instance");
        let chunk = u64::from(line.0) * u64::from(self.units()) + u64::from(unit.0);
        PhysicalAddress(chunk * u64::from(self.sectors_per_chunk))
    }

    /// The drive's name for a line's chunk on a unit.
    #[must_use]
    #[inline]
    pub fn chunk(&self, line: LineId, unit: UnitIndex) -> ChunkId {
        assert!(line.0 < self.lines, "a line beyond the instance");
        ChunkId(self.units[unit.index()].0 * self.chunks_per_pu + line.0)
    }

    /// A unit's name in the drive.
    #[must_use]
    pub fn pu(&self, unit: UnitIndex) -> PuId {
        self.units[unit.index()]
    }

    /// A place by line, unit and sector.
    #[must_use]
    #[inline]
    pub fn split(&self, place: PhysicalAddress) -> (LineId, UnitIndex, u32) {
        let (chunk, sector) = self.per_chunk.div_rem(place.0);
        let (line, unit) = self.per_line.div_rem(chunk);
        let narrow = |value: u64| u32::try_from(value).expect("a place of the instance has 32-bit parts");
        (LineId(narrow(line)), UnitIndex(narrow(unit)), narrow(sector))
    }

    /// Chunks, good and bad.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.lines * self.units()
    }

    /// The chunk a place is in, and the sector there. Cost: a multiplication.
    #[must_use]
    #[inline]
    pub fn chunk_of(&self, place: PhysicalAddress) -> (ChunkIndex, u32) {
        let (chunk, sector) = self.per_chunk.div_rem(place.0);
        let narrow = |value: u64| u32::try_from(value).expect("a place of the instance has 32-bit parts");
        (ChunkIndex(narrow(chunk)), narrow(sector))
    }

    /// The first place of a chunk.
    #[must_use]
    pub fn first_place(&self, chunk: ChunkIndex) -> PhysicalAddress {
        assert!(chunk.0 < self.chunks(), "chunk {} is beyond the instance", chunk.0);
        PhysicalAddress(u64::from(chunk.0) * u64::from(self.sectors_per_chunk))
    }

    /// The line and the unit of a chunk.
    #[must_use]
    #[inline]
    pub fn split_chunk(&self, chunk: ChunkIndex) -> (LineId, UnitIndex) {
        let (line, unit) = self.per_line.div_rem(u64::from(chunk.0));
        let narrow = |value: u64| u32::try_from(value).expect("a chunk of the instance has 32-bit parts");
        (LineId(narrow(line)), UnitIndex(narrow(unit)))
    }

    /// The drive's name of a chunk.
    #[must_use]
    #[inline]
    pub fn chunk_id(&self, chunk: ChunkIndex) -> ChunkId {
        let (line, unit) = self.split_chunk(chunk);
        self.chunk(line, unit)
    }

    /// The chunk that the drive calls so; `None` if it is on no unit of the instance. Cost: a multiplication.
    #[must_use]
    #[inline]
    pub fn find_chunk(&self, chunk: ChunkId) -> Option<ChunkIndex> {
        let (pu, line) = self.per_unit.div_rem(u64::from(chunk.0));
        let narrow = |value: u64| u32::try_from(value).expect("a chunk of the drive has 32-bit parts");
        let unit = *self.by_name.get(usize_of(narrow(pu)))?;
        (unit != NO_UNIT).then(|| ChunkIndex(narrow(line) * self.units() + unit))
    }

    /// The line a place is in.
    #[must_use]
    pub fn line_of(&self, place: PhysicalAddress) -> LineId {
        self.split(place).0
    }

    /// Whether two places lie in one line. Cost: two multiplications.
    #[must_use]
    pub fn is_same_line(&self, one: PhysicalAddress, other: PhysicalAddress) -> bool {
        self.line_of(one) == self.line_of(other)
    }

    /// The drive's address of a place.
    ///
    /// # Panics
    /// If the place is beyond the instance.
    #[must_use]
    #[inline]
    pub fn ppa(&self, place: PhysicalAddress) -> Ppa {
        let (line, unit, sector) = self.split(place);
        Ppa::new(self.chunk(line, unit), sector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_splits_and_joins_on_an_odd_shape() {
        let geometry = Geometry::example(3, 2, 5, 48, 24);
        let shape = InstanceGeometry::new(&geometry, &[PuId(1), PuId(4), PuId(5)]);
        assert_eq!((shape.lines(), shape.units(), shape.places()), (5, 3, 5 * 3 * 48));
        for place in (0..shape.places()).map(PhysicalAddress) {
            let (line, unit, sector) = shape.split(place);
            assert_eq!(shape.chunk_start(line, unit).0 + u64::from(sector), place.0);
            assert_eq!(shape.ppa(place), Ppa::new(ChunkId(shape.pu(unit).0 * 5 + line.0), sector));
            assert_eq!((shape.line_of(place), shape.chunk(line, unit)), (line, shape.ppa(place).chunk));
            let (chunk, in_chunk) = shape.chunk_of(place);
            assert_eq!((in_chunk, shape.split_chunk(chunk)), (sector, (line, unit)));
            assert_eq!(shape.first_place(chunk).0 + u64::from(sector), place.0);
            assert_eq!(shape.find_chunk(shape.chunk_id(chunk)), Some(chunk));
            let parts = (line.index() * 3 + unit.index()) * 48 + usize::try_from(sector).unwrap();
            assert_eq!(u64::try_from(parts).unwrap(), place.0);
        }
        assert_eq!((shape.sectors_per_chunk(), shape.sectors_per_line()), (48, 144));
        assert_eq!([0, 1, 2].map(|unit| shape.pu(UnitIndex(unit))), [PuId(1), PuId(4), PuId(5)]);
    }

    #[test]
    fn places_of_a_line_are_neighbours() {
        let shape = InstanceGeometry::new(&Geometry::example(2, 1, 3, 10, 1), &[PuId(0), PuId(1)]);
        for (one, other, is_same) in [(0, 19, true), (19, 20, false), (20, 39, true), (0, 59, false)] {
            assert_eq!(
                shape.is_same_line(PhysicalAddress(one), PhysicalAddress(other)),
                is_same,
                "{one} and {other}"
            );
        }
    }
}
