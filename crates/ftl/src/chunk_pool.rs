//! Which chunks of an instance are free, written, being reset or bad, and which to open next.
//!
//! Free chunks are reset. A chunk is taken from the unit that has the most, the one that became free first, so that wear
//! spreads and units fill alike. Groups are counted apart, because garbage collection that stays in a group needs chunks
//! there. A chunk costs four bytes (`chunk_slots`). Deliberately not here: what is in a chunk, who may take the last ones.

use crate::chunk_slots::ChunkSlots;
use crate::instance_geometry::{ChunkIndex, InstanceGeometry, UnitIndex};

/// What a chunk is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkUse {
    /// Nothing: it is reset.
    Free,
    /// It is being written.
    Open,
    /// It is written.
    Closed,
    /// It holds nothing, and is to be reset.
    Dead,
    /// It cannot be used any more.
    Bad,
}

/// All chunks of an instance.
#[derive(Clone, Debug)]
pub struct ChunkPool {
    /// The group of each unit, counted densely.
    group_of: Vec<u32>,
    slots: ChunkSlots,
    free_total: u32,
    good: u32,
    free_of_group: Vec<u32>,
}

impl ChunkPool {
    /// The chunks of a shape, each used as `uses` says. `group_of` names the group of each unit, from 0 without a gap.
    ///
    /// # Panics
    /// If a unit has no group.
    #[must_use]
    pub fn new(shape: &InstanceGeometry, group_of: &[u32], uses: impl Fn(ChunkIndex) -> ChunkUse) -> Self {
        assert_eq!(u32::try_from(group_of.len()), Ok(shape.units()), "every unit is in a group");
        Self::of_lines(shape.lines(), group_of, uses)
    }

    /// The chunks of the first `lines` of an instance with a unit for each group in `group_of`.
    ///
    /// # Panics
    /// If there are 2^32 chunks or more, or 2^27 - 1 lines.
    #[must_use]
    pub fn of_lines(lines: u32, group_of: &[u32], uses: impl Fn(ChunkIndex) -> ChunkUse) -> Self {
        let units = u32::try_from(group_of.len()).expect("fewer units than 2^32");
        let groups = group_of.iter().max().map_or(0, |&last| last + 1);
        let slots = ChunkSlots::new(lines, units, uses);
        let count = |of| u32::try_from(slots.iter().filter(|&(_, one)| one == of).count());
        let bad = count(ChunkUse::Bad).expect("no more than there are");
        let mut pool = Self {
            group_of: group_of.to_vec(),
            free_total: 0,
            good: slots.chunks() - bad,
            free_of_group: vec![0; usize::try_from(groups).expect("32 bits fit an index")],
            slots,
        };
        for unit in (0..units).map(UnitIndex) {
            let group = pool.group_index(unit);
            pool.free_of_group[group] += pool.free_of_unit(unit);
            pool.free_total += pool.free_of_unit(unit);
        }
        pool
    }

    /// A chunk that was in use is free.
    fn free_again(&mut self, chunk: ChunkIndex) {
        self.slots.push(chunk);
        self.free_total += 1;
        let group = self.group_index(self.slots.unit_of(chunk));
        self.free_of_group[group] += 1;
    }

    /// Takes the free chunk of a unit that has `nth` others before it.
    fn take(&mut self, unit: UnitIndex, nth: u32) -> ChunkIndex {
        let chunk = self.slots.take(unit, nth).expect("the unit has so many free chunks");
        let group = self.group_index(unit);
        self.free_total -= 1;
        self.free_of_group[group] -= 1;
        chunk
    }

    fn group_index(&self, unit: UnitIndex) -> usize {
        usize::try_from(self.group_of[unit.index()]).expect("32 bits fit an index")
    }

    /// The group of a chunk.
    #[must_use]
    pub fn group_of(&self, chunk: ChunkIndex) -> u32 {
        self.group_of[self.slots.unit_of(chunk).index()]
    }

    /// Groups there are.
    #[must_use]
    pub fn groups(&self) -> u32 {
        u32::try_from(self.free_of_group.len()).expect("fewer groups than 2^32")
    }

    /// What a chunk is used for.
    #[must_use]
    pub fn get(&self, chunk: ChunkIndex) -> ChunkUse {
        self.slots.get(chunk)
    }

    /// The label that its owner gave a chunk: 0 at first, and kept whatever becomes of the chunk.
    #[must_use]
    pub fn label(&self, chunk: ChunkIndex) -> u8 {
        self.slots.label(chunk)
    }

    /// A chunk has a label from now on, of which there are four.
    ///
    /// # Panics
    /// If the label is above 3.
    pub fn set_label(&mut self, chunk: ChunkIndex, label: u8) {
        self.slots.set_label(chunk, label);
    }

    /// Free chunks.
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.free_total
    }

    /// Free chunks of a group.
    #[must_use]
    pub fn free_of_group(&self, group: u32) -> u32 {
        self.free_of_group[usize::try_from(group).expect("32 bits fit an index")]
    }

    /// Free chunks of a unit.
    #[must_use]
    pub fn free_of_unit(&self, unit: UnitIndex) -> u32 {
        self.slots.free_of_unit(unit)
    }

    /// Chunks, good and bad.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.slots.chunks()
    }

    /// Chunks that are not bad.
    #[must_use]
    pub const fn good(&self) -> u32 {
        self.good
    }

    /// Opens a free chunk on one of these units for which `may` holds: on the one that has the most.
    pub fn open(
        &mut self,
        units: &[UnitIndex],
        may: impl Fn(&Self, UnitIndex) -> bool,
    ) -> Option<ChunkIndex> {
        self.open_ranked(units, |pool, unit| may(pool, unit).then_some(()))
    }

    /// Opens a free chunk on one of these units that has a rank: on the one of the least rank, of equals on the one that has the
    /// most.
    pub fn open_ranked<R: Ord>(
        &mut self,
        units: &[UnitIndex],
        rank: impl Fn(&Self, UnitIndex) -> Option<R>,
    ) -> Option<ChunkIndex> {
        let has = |&&unit: &&UnitIndex| self.free_of_unit(unit) > 0;
        let ranked = |&unit: &UnitIndex| Some((rank(self, unit)?, unit));
        // The first of those with the most, so that the same state opens the same chunk.
        let (_, unit) =
            units.iter().filter(has).filter_map(ranked).min_by(|(rank, unit), (other_rank, other)| {
                let most = self.free_of_unit(*other).cmp(&self.free_of_unit(*unit));
                rank.cmp(other_rank).then(most).then(unit.cmp(other))
            })?;
        Some(self.take(unit, 0))
    }

    /// Opens the free chunk of these units that is worth most to the caller, of those that are worth anything; of equals that of
    /// the first unit. Cost: the free chunks of these units.
    pub fn open_worth_most(
        &mut self,
        units: &[UnitIndex],
        worth: impl Fn(ChunkIndex) -> Option<u32>,
    ) -> Option<ChunkIndex> {
        let mut best: Option<(u32, UnitIndex, u32)> = None;
        for &unit in units {
            for (nth, chunk) in (0..).zip(self.slots.free(unit)) {
                if let Some(found) = worth(chunk).filter(|&found| best.is_none_or(|(most, ..)| found > most))
                {
                    best = Some((found, unit, nth));
                }
            }
        }
        let (_, unit, nth) = best?;
        Some(self.take(unit, nth))
    }

    /// An open chunk was not written after all: it is free as before.
    pub fn give_back(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.get(chunk), ChunkUse::Open, "chunk {} is given back, but was not open", chunk.0);
        self.free_again(chunk);
    }

    /// A chunk that was being written takes no more.
    pub fn close(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.get(chunk), ChunkUse::Open, "chunk {} is closed, but was not open", chunk.0);
        self.slots.set(chunk, ChunkUse::Closed);
    }

    /// Nothing in a closed chunk is needed any more.
    pub fn died(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.get(chunk), ChunkUse::Closed, "chunk {} died, but was not closed", chunk.0);
        self.slots.set(chunk, ChunkUse::Dead);
    }

    /// A dead chunk was reset.
    pub fn freed(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.get(chunk), ChunkUse::Dead, "chunk {} was reset, but was not dead", chunk.0);
        self.free_again(chunk);
    }

    /// A dead chunk could not be reset: it is never used again.
    pub fn mark_bad(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.get(chunk), ChunkUse::Dead, "chunk {} went bad, but was not dead", chunk.0);
        assert!(self.good > 0, "more chunks are bad than there are");
        self.slots.set(chunk, ChunkUse::Bad);
        self.good -= 1;
    }

    /// All chunks and what they are used for.
    pub fn iter(&self) -> impl Iterator<Item = (ChunkIndex, ChunkUse)> {
        self.slots.iter()
    }

    /// Asserts that counts and lists agree. Cost: all chunks.
    pub fn check(&self) {
        self.slots.check();
        let count = |of: ChunkUse| u32::try_from(self.iter().filter(|&(_, one)| one == of).count());
        assert_eq!(count(ChunkUse::Free), Ok(self.free_total), "free chunks are counted wrong");
        assert_eq!(count(ChunkUse::Bad), Ok(self.chunks() - self.good), "bad chunks are counted wrong");
        assert_eq!(self.free_of_group.iter().sum::<u32>(), self.free_total, "groups are counted wrong");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use ocssd_lightnvm::{Geometry, PuId};

    fn shape() -> InstanceGeometry {
        let units: Vec<PuId> = (0..4).map(PuId).collect();
        InstanceGeometry::new(&Geometry::example(2, 2, 6, 8, 4), &units)
    }

    const GROUPS: [u32; 4] = [0, 0, 1, 1];

    /// Random steps against a plain list of states.
    #[test]
    fn the_pool_counts_as_a_plain_list_does() {
        for seed in 0..100 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let bad = u32::try_from(prng.below(24)).expect("small");
            let uses = |chunk: ChunkIndex| if chunk.0 == bad { ChunkUse::Bad } else { ChunkUse::Free };
            let mut pool = ChunkPool::new(&shape(), &GROUPS, uses);
            let mut model: Vec<ChunkUse> = (0..24).map(|chunk| uses(ChunkIndex(chunk))).collect();
            for _ in 0..300 {
                step(&mut prng, &mut pool, &mut model);
                pool.check();
                let free = model.iter().filter(|&&of| of == ChunkUse::Free).count();
                assert_eq!(u32::try_from(free), Ok(pool.free()));
                assert!(pool.iter().map(|(_, of)| of).eq(model.iter().copied()));
            }
        }
    }

    fn step(prng: &mut Prng, pool: &mut ChunkPool, model: &mut [ChunkUse]) {
        let unit = UnitIndex(u32::try_from(prng.below(4)).expect("small"));
        if prng.below(2) == 0 {
            let before = pool.free_of_unit(unit);
            if let Some(chunk) = pool.open(&[unit], |_, _| true) {
                assert_eq!(model[chunk.index()], ChunkUse::Free);
                model[chunk.index()] = ChunkUse::Open;
                assert_eq!(pool.free_of_unit(unit) + 1, before);
            } else {
                assert_eq!(before, 0);
            }
            return;
        }
        let chunk = ChunkIndex(u32::try_from(prng.below(24)).expect("small"));
        model[chunk.index()] = match model[chunk.index()] {
            ChunkUse::Open if prng.below(4) == 0 => {
                pool.give_back(chunk);
                ChunkUse::Free
            }
            ChunkUse::Open => {
                pool.close(chunk);
                ChunkUse::Closed
            }
            ChunkUse::Closed => {
                pool.died(chunk);
                ChunkUse::Dead
            }
            ChunkUse::Dead if prng.below(8) == 0 => {
                pool.mark_bad(chunk);
                ChunkUse::Bad
            }
            ChunkUse::Dead => {
                pool.freed(chunk);
                ChunkUse::Free
            }
            other => other,
        };
    }

    #[test]
    fn a_chunk_is_taken_where_most_are_free_and_only_where_it_may() {
        let mut pool = ChunkPool::new(&shape(), &GROUPS, |_| ChunkUse::Free);
        let all: Vec<UnitIndex> = (0..4).map(UnitIndex).collect();
        let taken: Vec<u32> = (0..5).map(|_| pool.open(&all, |_, _| true).expect("free").0).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4], "units take turns");
        assert_eq!((pool.free(), pool.free_of_group(0), pool.free_of_group(1)), (19, 9, 10));
        let second =
            pool.open(&all, |pool, unit| pool.group_of[unit.index()] == 1).expect("group 1 has some");
        assert_eq!(pool.group_of(second), 1);
        assert_eq!(pool.open(&all, |_, _| false), None);
    }

    #[test]
    fn a_chunk_is_taken_where_the_rank_is_least_and_of_equals_where_most_are_free() {
        let mut pool = ChunkPool::new(&shape(), &GROUPS, |_| ChunkUse::Free);
        let all: Vec<UnitIndex> = (0..4).map(UnitIndex).collect();
        let rank = |_: &ChunkPool, unit: UnitIndex| [None, Some(7), Some(3), Some(3)][unit.index()];
        let taken: Vec<Option<u32>> =
            (0..14).map(|_| pool.open_ranked(&all, rank).map(|chunk| chunk.0 % 4)).collect();
        let apart: Vec<Option<u32>> =
            (0..14).map(|nth| Some(if nth < 12 { 2 + nth % 2 } else { 1 })).collect();
        assert_eq!(taken, apart, "units 2 and 3 by turns, then unit 1");
        let rest = (0..4).filter(|_| pool.open_ranked(&all, rank).is_some()).count();
        assert_eq!(rest, 4, "what is left of unit 1");
        assert_eq!((pool.open_ranked(&all, rank), pool.free()), (None, 6), "unit 0 has no rank");
        pool.check();
    }

    #[test]
    fn the_chunk_that_is_worth_most_is_taken_wherever_it_stands() {
        let mut pool = ChunkPool::new(&shape(), &GROUPS, |_| ChunkUse::Free);
        let worth = |chunk: ChunkIndex| (chunk.0 != 13).then_some(if chunk.0 % 4 == 1 { chunk.0 } else { 0 });
        let taken: Vec<Option<u32>> =
            (0..3).map(|_| pool.open_worth_most(&[UnitIndex(1)], worth).map(|chunk| chunk.0)).collect();
        assert_eq!(taken, [Some(21), Some(17), Some(9)], "13 is worth nothing");
        assert_eq!((pool.free(), pool.free_of_unit(UnitIndex(1)), pool.free_of_group(0)), (21, 3, 9));
        assert_eq!(
            pool.open_worth_most(&[UnitIndex(0)], |_| Some(7)),
            Some(ChunkIndex(0)),
            "the first of equals"
        );
        assert_eq!(pool.open_worth_most(&[UnitIndex(0)], |_| None), None);
        pool.check();
    }
}
