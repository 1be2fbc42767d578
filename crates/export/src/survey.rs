//! A question about what holds data, answered a few blocks at a time, so that it holds up nobody.
//!
//! Deliberately not here: who asks, and when it goes on.

use crate::job::Extent;

/// Blocks looked up for one answer (chosen: 16 384 look-ups of 10 to 100 ns; who wants more asks again).
const LOOK_UPS_MAX: u32 = 16 << 10;

/// How far a question is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Blocks that it covers at most.
    count: u32,
    /// Of these, those that were looked up.
    looked: u32,
    extents: Vec<Extent>,
    /// Extents that the answer has at most.
    extents_max: usize,
}

impl Survey {
    /// Of `count` blocks, with an answer of at most `extents_max` extents.
    #[must_use]
    pub fn new(count: u32, extents_max: u32) -> Self {
        assert!(count > 0 && extents_max > 0, "an answer says something");
        let extents_max = usize::try_from(extents_max).expect("32 bits fit an index");
        Self { count: count.min(LOOK_UPS_MAX), looked: 0, extents: Vec::new(), extents_max }
    }

    /// Looks up at most `budget` blocks, by their offset. Returns how many were.
    pub fn go_on(&mut self, budget: u32, is_mapped: impl Fn(u32) -> bool) -> u32 {
        let before = self.looked;
        let end = self.count.min(before.saturating_add(budget));
        while self.looked < end {
            let mapped = is_mapped(self.looked);
            let is_full = self.extents.len() == self.extents_max;
            match self.extents.last_mut() {
                Some(last) if last.mapped == mapped => last.blocks += 1,
                _ if is_full => {
                    // The block that shows where the last extent ends is not part of the answer.
                    self.count = self.looked;
                    return self.looked - before + 1;
                }
                _ => self.extents.push(Extent { blocks: 1, mapped }),
            }
            self.looked += 1;
        }
        self.looked - before
    }

    /// The answer, if there is nothing left to look up.
    pub fn poll_answer(&mut self) -> Option<Vec<Extent>> {
        (self.looked == self.count).then(|| std::mem::take(&mut self.extents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer about blocks that come in runs of `run`, looked up `budget` at a time; and how many look-ups it took.
    fn answer(count: u32, extents_max: u32, run: u32, budget: u32) -> (Vec<Extent>, u32) {
        let mut survey = Survey::new(count, extents_max);
        let mut looked = 0;
        loop {
            let now = survey.go_on(budget, |block| (block / run).is_multiple_of(2));
            assert!(now <= budget, "{now} of {budget}");
            looked += now;
            if let Some(extents) = survey.poll_answer() {
                return (extents, looked);
            }
            assert!(now > 0, "it goes on");
        }
    }

    #[test]
    fn the_answer_is_the_same_however_few_blocks_are_looked_up_at_a_time() {
        let whole = answer(1000, 1024, 7, 1000);
        assert_eq!(whole.0.len(), 143);
        assert_eq!(whole.0.iter().map(|extent| extent.blocks).sum::<u32>(), 1000);
        for budget in [1, 2, 13, 999] {
            assert_eq!(answer(1000, 1024, 7, budget), whole, "{budget} at a time");
        }
    }

    #[test]
    fn nothing_is_looked_up_that_the_answer_has_no_place_for() {
        assert_eq!(answer(1000, 1, 7, 1000), (vec![Extent { blocks: 7, mapped: true }], 8));
        let (extents, looked) = answer(1000, 3, 7, 5);
        assert_eq!((extents.len(), looked), (3, 22));
    }

    #[test]
    fn a_question_about_a_whole_drive_gets_a_short_answer() {
        let (extents, looked) = answer(u32::MAX, 1024, u32::MAX, 4096);
        assert_eq!((extents[0].blocks, extents.len(), looked), (LOOK_UPS_MAX, 1, LOOK_UPS_MAX));
    }
}
