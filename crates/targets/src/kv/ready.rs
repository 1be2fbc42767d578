//! What waits to be written, unit by unit: a few writes of each are in flight, so that a read meets no long row of them.
//!
//! A drive carries out what a unit is given in order, and data of all units of a group share its channel. What is given later goes
//! behind reads that came before it. Writes of a unit go out in the order in which they came, so chunks are written in order; units
//! of a group take turns, and so do groups. Deliberately not here: what is written; how many of a group (`write_depth`).

use super::buffer_units::BufferUnitId;
use super::write_depth::{Quickest, WriteDepth};
use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::UnitIndex;
use std::collections::VecDeque;

/// A unit's row.
#[derive(Clone, Debug, Default)]
struct Row {
    group: usize,
    waiting: VecDeque<BufferUnitId>,
    in_flight: usize,
    /// It is among those of its group that take turns.
    has_turn: bool,
}

/// Units that share a channel.
#[derive(Clone, Debug)]
struct Group {
    /// Units that may be given a write, the next one first.
    turns: VecDeque<UnitIndex>,
    in_flight: usize,
    depth: WriteDepth,
    /// It is among those that take turns.
    has_turn: bool,
}

impl Group {
    fn may_write(&self) -> bool {
        self.in_flight < self.depth.now() && !self.turns.is_empty()
    }
}

/// Buffer units that wait to be written.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    rows: Vec<Row>,
    groups: Vec<Group>,
    /// Groups that may be given a write, the next one first.
    turns: VecDeque<usize>,
    waiting: usize,
    /// Writes of a unit in flight at most.
    most: usize,
    quickest: Quickest,
}

impl Ready {
    /// None, on units of these groups, each unit with at most so many in flight; `None` for no bound.
    pub fn new(groups: &[u32], most: Option<u32>) -> Self {
        assert!(most != Some(0), "nothing is ever in flight");
        let rows: Vec<Row> =
            groups.iter().map(|&group| Row { group: usize_of(group), ..Row::default() }).collect();
        let most = most.map_or(usize::MAX, usize_of);
        let last = rows.iter().map(|row| row.group).max().expect("an instance has units");
        let mut units = vec![0_usize; last + 1];
        rows.iter().for_each(|row| units[row.group] += 1);
        let group = |units: usize| {
            let depth = WriteDepth::new(units.max(1).saturating_mul(most));
            Group { turns: VecDeque::new(), in_flight: 0, depth, has_turn: false }
        };
        let groups = units.into_iter().map(group).collect();
        Self { rows, groups, turns: VecDeque::new(), waiting: 0, most, quickest: Quickest::NONE }
    }

    /// A buffer unit waits for its unit.
    pub fn push(&mut self, buffer_unit: BufferUnitId, unit: UnitIndex) {
        self.rows[unit.index()].waiting.push_back(buffer_unit);
        self.waiting += 1;
        self.give_turn(unit);
    }

    /// The next that goes out, if a unit has room for one. It is in flight from then on.
    pub fn next(&mut self) -> Option<BufferUnitId> {
        let place = self.turns.pop_front()?;
        let group = &mut self.groups[place];
        assert!(group.has_turn && group.may_write(), "group {place} has no room: {group:?}");
        group.has_turn = false;
        group.in_flight += 1;
        let unit = group.turns.pop_front().expect("a group with a turn has a unit with one");
        let row = &mut self.rows[unit.index()];
        assert!(row.has_turn && row.in_flight < self.most, "{unit:?} has no room: {row:?}");
        row.has_turn = false;
        row.in_flight += 1;
        let buffer_unit = row.waiting.pop_front().expect("a unit with a turn has a buffer unit that waits");
        self.waiting -= 1;
        self.give_turn(unit);
        Some(buffer_unit)
    }

    /// A write on a unit is over, after so long with the drive.
    pub fn ended(&mut self, unit: UnitIndex, took: Nanos) {
        let row = &mut self.rows[unit.index()];
        assert!(row.in_flight > 0, "a write of {unit:?} ended that was not in flight");
        row.in_flight -= 1;
        let group = &mut self.groups[row.group];
        assert!(group.in_flight > 0, "a write of {group:?} ended that was not in flight");
        group.in_flight -= 1;
        group.depth.on_end(self.quickest.had_row(took));
        self.give_turn(unit);
    }

    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn give_turn(&mut self, unit: UnitIndex) {
        let row = &mut self.rows[unit.index()];
        let group = &mut self.groups[row.group];
        if !row.has_turn && row.in_flight < self.most && !row.waiting.is_empty() {
            row.has_turn = true;
            group.turns.push_back(unit);
        }
        if !group.has_turn && group.may_write() {
            group.has_turn = true;
            self.turns.push_back(row.group);
        }
    }

    /// Asserts that whatever may go out has its turn.
    pub fn check(&self) {
        let waiting: usize = self.rows.iter().map(|row| row.waiting.len()).sum();
        assert_eq!(waiting, self.waiting, "buffer units that wait are counted wrong");
        let turns = self.rows.iter().filter(|row| row.has_turn).count();
        let of_groups: usize = self.groups.iter().map(|group| group.turns.len()).sum();
        assert_eq!(turns, of_groups, "a unit takes two turns or none");
        let groups = self.groups.iter().filter(|group| group.has_turn).count();
        assert_eq!(groups, self.turns.len(), "a group takes two turns or none");
        let is_stuck = |row: &&Row| !row.has_turn && row.in_flight < self.most && !row.waiting.is_empty();
        assert!(self.rows.iter().find(is_stuck).is_none(), "a unit with room is passed over: {self:?}");
        assert!(
            self.groups.iter().all(|group| group.has_turn == group.may_write()),
            "a group with room is passed over, or one without has a turn: {self:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Nanos = Nanos::from_micros(10);
    /// So long that others were before it.
    const LONG: Nanos = Nanos::from_millis(10);

    #[test]
    fn units_take_turns_and_each_has_few_in_flight_in_order() {
        let mut ready = Ready::new(&[0, 0, 0], Some(2));
        let (busy, other) = (UnitIndex(0), UnitIndex(2));
        (0..4).for_each(|buffer_unit| ready.push(BufferUnitId(buffer_unit), busy));
        ready.push(BufferUnitId(9), other);
        let next = |ready: &mut Ready| {
            let found: Vec<u32> =
                std::iter::from_fn(|| ready.next().map(|buffer_unit| buffer_unit.0)).collect();
            ready.check();
            found
        };
        assert_eq!((next(&mut ready), ready.is_empty()), (vec![0, 9, 1], false), "two of one unit, in turns");
        ready.ended(other, QUICK);
        assert_eq!(next(&mut ready), [0; 0], "nothing waits for that unit");
        ready.ended(busy, QUICK);
        assert_eq!(next(&mut ready), [2]);
        ready.push(BufferUnitId(7), other);
        assert_eq!(next(&mut ready), [7], "a busy unit holds up no other");
        ready.ended(busy, QUICK);
        assert_eq!((next(&mut ready), ready.is_empty()), (vec![3], true));
    }

    #[test]
    fn without_a_bound_all_go_out_in_the_order_in_which_they_came() {
        let mut ready = Ready::new(&[0], None);
        (0..50).for_each(|buffer_unit| ready.push(BufferUnitId(buffer_unit), UnitIndex(0)));
        let found: Vec<u32> = std::iter::from_fn(|| ready.next().map(|buffer_unit| buffer_unit.0)).collect();
        assert_eq!((found, ready.is_empty()), ((0..50).collect(), true));
        ready.check();
    }

    #[test]
    fn a_group_whose_writes_take_long_has_fewer_in_flight_and_holds_up_no_other() {
        let mut ready = Ready::new(&[0, 0, 0, 3], Some(2));
        let units = [0, 1, 2, 3].map(UnitIndex);
        let next = |ready: &mut Ready| {
            let count = std::iter::from_fn(|| ready.next()).count();
            ready.check();
            count
        };
        (0..40)
            .for_each(|buffer_unit| ready.push(BufferUnitId(buffer_unit), units[buffer_unit as usize % 4]));
        assert_eq!(next(&mut ready), 8, "two of each unit");
        ready.ended(units[3], QUICK);
        assert_eq!(next(&mut ready), 1);
        for (unit, gone_out) in [(0, 0), (1, 0), (2, 0), (0, 0), (1, 1)] {
            ready.ended(units[unit], LONG);
            assert_eq!(next(&mut ready), gone_out, "two of the group at least");
        }
        ready.ended(units[2], QUICK);
        assert_eq!(next(&mut ready), 2, "one more, since the last was quick");
        ready.ended(units[3], LONG);
        assert_eq!(next(&mut ready), 1, "its own two");
    }
}
