//! How full the buffer is, and that its lists agree with its units.
//!
//! Deliberately not here: what the buffer does on the way of an I/O.

use super::{BufferUnit, BufferUnitId, BufferUnitState, Occupancy, WriteBuffer, low_bits};
use ocssd_base::usize_of;

impl WriteBuffer {
    /// How full the buffer is. Cost: a pass over the buffer units.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        let mut occupancy = Occupancy::default();
        for buffer_unit in &self.units {
            match buffer_unit.state {
                BufferUnitState::Free => occupancy.free += 1,
                BufferUnitState::Filling | BufferUnitState::Ready | BufferUnitState::Programming => {
                    occupancy.unwritten += 1
                }
                BufferUnitState::Written => occupancy.written += 1,
                BufferUnitState::Evictable => occupancy.evictable += 1,
            }
        }
        occupancy
    }

    /// Entries that hold the newest version of a block. Cost: a pass over the entries.
    #[must_use]
    pub fn count_newest(&self) -> usize {
        let in_use = |buffer_unit: &BufferUnitId| self.state(*buffer_unit) != BufferUnitState::Free;
        let units = (0..self.count()).map(BufferUnitId).filter(in_use);
        units.flat_map(|unit| self.live(unit)).filter(|(_, entry)| entry.is_newest).count()
    }

    /// Asserts that every list agrees with the states.
    pub fn check(&self) {
        let occupancy = self.occupancy();
        assert_eq!(usize_of(occupancy.free), self.free.len(), "free buffer units and their list disagree");
        assert_eq!(
            usize_of(occupancy.evictable),
            self.evictable.len(),
            "evictable buffer units and their list disagree"
        );
        assert_eq!(occupancy.unwritten, self.in_use, "buffer units in use and their count disagree");
        for &(oldest, buffer_unit) in &self.unwritten {
            let header = &self.units[buffer_unit.index()];
            assert_eq!(header.oldest, oldest, "buffer unit {} is awaited for another sector", buffer_unit.0);
            assert!(header.filled > 0, "an empty buffer unit is awaited");
        }
        for buffer_unit in self.evictable.iter() {
            assert_eq!(
                self.state(*buffer_unit),
                BufferUnitState::Evictable,
                "buffer unit {} is not evictable",
                buffer_unit.0
            );
        }
        assert!(
            self.units.iter().all(|buffer_unit| buffer_unit.filled <= self.unit),
            "a buffer unit is overfull"
        );
        let is_filled = |buffer_unit: &BufferUnit| buffer_unit.copies & !low_bits(buffer_unit.filled) == 0;
        assert!(self.units.iter().all(is_filled), "a copy lies where nothing was filled");
    }
}
