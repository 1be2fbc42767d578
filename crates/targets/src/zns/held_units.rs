//! Which buffer unit holds which unit of a zone, in the order of units.
//!
//! Units come nearly always behind all others and leave near the front, so they are kept in a row (a tree took 2 % of a sequential
//! write). Deliberately not here: what buffer units hold.

use super::buffer_units::BufferUnitId;
use super::segments::UnitOfZone;
use std::collections::VecDeque;

/// Buffer units of a zone, each by its unit.
#[derive(Clone, Debug, Default)]
pub struct HeldUnits {
    /// By unit, ascending.
    row: VecDeque<(UnitOfZone, BufferUnitId)>,
}

impl HeldUnits {
    /// Where a unit is, or would be.
    fn find(&self, at: UnitOfZone) -> Result<usize, usize> {
        match self.row.back() {
            Some(&(last, _)) if last >= at => self.row.binary_search_by_key(&at, |&(unit, _)| unit),
            _ => Err(self.row.len()),
        }
    }

    /// The buffer unit that holds a unit.
    pub fn get(&self, at: UnitOfZone) -> Option<BufferUnitId> {
        self.find(at).ok().map(|nth| self.row[nth].1)
    }

    /// A buffer unit holds a unit that none held. Cost: the units behind it are moved by one.
    pub fn insert(&mut self, at: UnitOfZone, buffer_unit: BufferUnitId) {
        let nth = self.find(at).unwrap_or_else(|nth| nth);
        assert!(self.row.get(nth).is_none_or(|&(unit, _)| unit != at), "unit {at} is held twice");
        self.row.insert(nth, (at, buffer_unit));
    }

    /// A unit is not held any more; returns what held it. Cost: the fewer of the units before it and behind are moved by one.
    pub fn remove(&mut self, at: UnitOfZone) -> Option<BufferUnitId> {
        let nth = self.find(at).ok()?;
        self.row.remove(nth).map(|(_, buffer_unit)| buffer_unit)
    }

    /// Units that are held, from one on, in order.
    pub fn from(&self, at: UnitOfZone) -> impl DoubleEndedIterator<Item = (UnitOfZone, BufferUnitId)> {
        let nth = self.find(at).unwrap_or_else(|nth| nth);
        self.row.range(nth..).copied()
    }

    /// Takes all units from one on; returns what held them.
    pub fn split_off(&mut self, at: UnitOfZone) -> Vec<BufferUnitId> {
        let nth = self.find(at).unwrap_or_else(|nth| nth);
        self.row.drain(nth..).map(|(_, buffer_unit)| buffer_unit).collect()
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// None is.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Asserts that units are in order. Cost: each is looked at.
    pub fn check(&self) {
        let is_ascending = self.row.iter().zip(self.row.iter().skip(1)).all(|(one, next)| one.0 < next.0);
        assert!(is_ascending, "units are held out of order: {:?}", self.row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_a_map_in_the_order_of_units() {
        for seed in 0..50 {
            let (mut random, mut held, mut model) = (Prng::new(seed), HeldUnits::default(), BTreeMap::new());
            let mut below = |most: u64| u32::try_from(random.below(most)).expect("small");
            for name in 0..300 {
                let (at, buffer_unit) = (below(40), BufferUnitId(name));
                match below(4) {
                    0 => assert_eq!(held.remove(at), model.remove(&at), "seed {seed}"),
                    1 if below(8) == 0 => {
                        let lost: Vec<_> = model.split_off(&at).into_values().collect();
                        assert_eq!(held.split_off(at), lost, "seed {seed}");
                    }
                    _ if !model.contains_key(&at) => {
                        held.insert(at, buffer_unit);
                        model.insert(at, buffer_unit);
                    }
                    _ => assert_eq!(held.get(at), model.get(&at).copied(), "seed {seed}"),
                }
                held.check();
                let from: Vec<_> = model.range(at..).map(|(&at, &held)| (at, held)).collect();
                assert_eq!(held.from(at).collect::<Vec<_>>(), from, "seed {seed}");
                assert_eq!((held.len(), held.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }
}
