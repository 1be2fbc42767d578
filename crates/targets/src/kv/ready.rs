//! What waits to be written, unit by unit: a few writes of each are in flight, so that a read meets no long row of them.
//!
//! A drive carries out what a unit is given in order. What is given later goes behind reads that came before it. Those of a unit
//! go out in the order in which they came, so chunks are written in order; units take turns. Deliberately not here: what is
//! written.

use super::buffer_units::BufferUnitId;
use ocssd_base::usize_of;
use ocssd_ftl::UnitIndex;
use std::collections::VecDeque;

/// A unit's row.
#[derive(Clone, Debug, Default)]
struct Row {
    waiting: VecDeque<BufferUnitId>,
    in_flight: usize,
    /// It is among those that take turns.
    has_turn: bool,
}

/// Buffer units that wait to be written.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    rows: Vec<Row>,
    /// Units that may be given a write, the next one first.
    turns: VecDeque<UnitIndex>,
    waiting: usize,
    /// Writes of a unit in flight at most.
    most: usize,
}

impl Ready {
    /// None, on so many units, each with at most so many in flight; `None` for no bound.
    pub fn new(units: u32, most: Option<u32>) -> Self {
        assert!(most != Some(0), "nothing is ever in flight");
        let rows = (0..units).map(|_| Row::default()).collect();
        Self { rows, turns: VecDeque::new(), waiting: 0, most: most.map_or(usize::MAX, usize_of) }
    }

    /// A buffer unit waits for its unit.
    pub fn push(&mut self, buffer_unit: BufferUnitId, unit: UnitIndex) {
        self.rows[unit.index()].waiting.push_back(buffer_unit);
        self.waiting += 1;
        self.give_turn(unit);
    }

    /// The next that goes out, if a unit has room for one. It is in flight from then on.
    pub fn next(&mut self) -> Option<BufferUnitId> {
        let unit = self.turns.pop_front()?;
        let row = &mut self.rows[unit.index()];
        assert!(row.has_turn && row.in_flight < self.most, "{unit:?} has no room: {row:?}");
        row.has_turn = false;
        row.in_flight += 1;
        let buffer_unit = row.waiting.pop_front().expect("a unit with a turn has a buffer unit that waits");
        self.waiting -= 1;
        self.give_turn(unit);
        Some(buffer_unit)
    }

    /// A write on a unit is over.
    pub fn ended(&mut self, unit: UnitIndex) {
        let row = &mut self.rows[unit.index()];
        assert!(row.in_flight > 0, "a write of {unit:?} ended that was not in flight");
        row.in_flight -= 1;
        self.give_turn(unit);
    }

    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn give_turn(&mut self, unit: UnitIndex) {
        let row = &mut self.rows[unit.index()];
        if !row.has_turn && row.in_flight < self.most && !row.waiting.is_empty() {
            row.has_turn = true;
            self.turns.push_back(unit);
        }
    }

    /// Asserts that whatever may go out has its turn.
    pub fn check(&self) {
        let waiting: usize = self.rows.iter().map(|row| row.waiting.len()).sum();
        assert_eq!(waiting, self.waiting, "buffer units that wait are counted wrong");
        let turns = self.rows.iter().filter(|row| row.has_turn).count();
        assert_eq!(turns, self.turns.len(), "a unit takes two turns or none");
        let is_stuck = |row: &&Row| !row.has_turn && row.in_flight < self.most && !row.waiting.is_empty();
        assert!(self.rows.iter().find(is_stuck).is_none(), "a unit with room is passed over: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_take_turns_and_each_has_few_in_flight_in_order() {
        let mut ready = Ready::new(3, Some(2));
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
        ready.ended(other);
        assert_eq!(next(&mut ready), [0; 0], "nothing waits for that unit");
        ready.ended(busy);
        assert_eq!(next(&mut ready), [2]);
        ready.push(BufferUnitId(7), other);
        assert_eq!(next(&mut ready), [7], "a busy unit holds up no other");
        ready.ended(busy);
        assert_eq!((next(&mut ready), ready.is_empty()), (vec![3], true));
    }

    #[test]
    fn without_a_bound_all_go_out_in_the_order_in_which_they_came() {
        let mut ready = Ready::new(1, None);
        (0..50).for_each(|buffer_unit| ready.push(BufferUnitId(buffer_unit), UnitIndex(0)));
        let found: Vec<u32> = std::iter::from_fn(|| ready.next().map(|buffer_unit| buffer_unit.0)).collect();
        assert_eq!((found, ready.is_empty()), ((0..50).collect(), true));
        ready.check();
    }
}
