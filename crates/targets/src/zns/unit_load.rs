//! Where open zones are written: columns on each unit, and in its group, so that narrow zones lie apart.
//!
//! Counted anew for each segment that is planned: there are few open zones, and a segment is a chunk long. Deliberately not here:
//! which zones are open (`state`), free chunks (`space`).

use ocssd_base::usize_of;
use ocssd_ftl::UnitIndex;

/// Columns by unit and by group.
#[derive(Clone, Debug)]
pub struct UnitLoad {
    /// The drive's group of each unit.
    groups: Vec<u32>,
    of_unit: Vec<u32>,
    of_group: Vec<u32>,
}

impl UnitLoad {
    /// None, of units in these groups.
    pub fn new(groups: Vec<u32>) -> Self {
        let last = groups.iter().copied().max().expect("an instance has a unit");
        let of_group = vec![0; usize_of(last) + 1];
        Self { of_unit: vec![0; groups.len()], of_group, groups }
    }

    /// The group of a unit.
    pub fn group_of(&self, unit: UnitIndex) -> u32 {
        self.groups[unit.index()]
    }

    /// A column is on a unit.
    pub fn add(&mut self, unit: UnitIndex) {
        let group = usize_of(self.group_of(unit));
        self.of_unit[unit.index()] += 1;
        self.of_group[group] += 1;
        assert!(self.of_unit[unit.index()] <= self.of_group[group], "unit {} is in two groups", unit.0);
    }

    /// What a column on a unit would meet: columns there, and on units of its group, whose channel they share.
    pub fn of(&self, unit: UnitIndex) -> (u32, u32) {
        (self.of_unit[unit.index()], self.of_group[usize_of(self.group_of(unit))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_counts_before_its_group() {
        let mut load = UnitLoad::new(vec![3, 3, 0, 0]);
        [0, 2, 2].into_iter().for_each(|unit| load.add(UnitIndex(unit)));
        let all: Vec<(u32, u32)> = (0..4).map(|unit| load.of(UnitIndex(unit))).collect();
        assert_eq!(all, [(1, 1), (0, 1), (2, 2), (0, 2)]);
    }
}
