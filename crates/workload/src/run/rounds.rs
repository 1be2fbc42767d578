//! Judges whether rounds of a workload have come to a steady state: the rule of the SNIA's Performance Test Specification,
//! with a floor for what was written, and a stricter grade.
//!
//! A round is a minute there, and whatever the caller chooses here. The judge is given each round's number (IOPS or bytes per
//! second) and what was written in it. The rule passes early on slow decays: of an exponential decay with a constant of four
//! rounds 10 % are left, of sixteen rounds 64 % (tested below). That is why there is the other grade.
//!
//! Deliberately not here: running rounds (`round_watch` does it for jobs); and fio's `steadystate`, which judges slope *or*
//! deviation (`SteadyState`).

use crate::job::RoundRule;
use std::collections::VecDeque;

/// What is known after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundsState {
    /// Go on.
    #[default]
    More,
    /// Steady.
    Steady,
    /// Not steady after the most rounds there may be.
    GivenUp,
}

/// How a window looked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Its mean.
    pub mean: f64,
    /// Largest difference between two of its rounds, in percent of the mean.
    pub excursion_percent: f64,
    /// Change along its least-squares line, in percent of the mean; negative if it falls.
    pub slope_percent: f64,
}

/// The judge.
#[derive(Clone, Debug)]
pub struct Rounds {
    rule: RoundRule,
    values: Vec<f64>,
    recent: VecDeque<f64>,
    written: u64,
    passed: usize,
    state: RoundsState,
}

impl Rounds {
    /// Judges by `rule`.
    ///
    /// # Panics
    /// If the window has fewer than two rounds.
    #[must_use]
    pub fn new(rule: RoundRule) -> Self {
        assert!(rule.window >= 2, "a window of {} rounds says nothing", rule.window);
        let recent = VecDeque::with_capacity(rule.window);
        Self { rule, values: Vec::new(), recent, written: 0, passed: 0, state: RoundsState::More }
    }

    /// Takes a round's number and the bytes written in it. Once steady, it stays so.
    pub fn observe(&mut self, value: f64, written: u64) -> RoundsState {
        if self.state != RoundsState::More {
            return self.state;
        }
        self.values.push(value);
        if self.recent.len() == self.rule.window {
            self.recent.pop_front();
        }
        self.recent.push_back(value);
        self.written = self.written.saturating_add(written);
        let passes = self.window().is_some_and(|window| {
            window.excursion_percent <= self.rule.excursion_percent
                && window.slope_percent.abs() <= self.rule.slope_percent
        });
        self.passed = if passes { self.passed + 1 } else { 0 };
        if self.passed >= self.rule.windows && self.written >= self.rule.floor_bytes {
            self.state = RoundsState::Steady;
        } else if self.values.len() >= self.rule.rounds_max {
            self.state = RoundsState::GivenUp;
        }
        self.state
    }

    /// The last window, once it is full; `None` too if nothing was done in it.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        if self.recent.len() < self.rule.window {
            return None;
        }
        let count = f64::from(u32::try_from(self.recent.len()).expect("a window of few rounds"));
        let mean = self.recent.iter().sum::<f64>() / count;
        if mean <= 0.0 {
            return None;
        }
        let high = self.recent.iter().copied().fold(f64::MIN, f64::max);
        let low = self.recent.iter().copied().fold(f64::MAX, f64::min);
        let middle = (count - 1.0) / 2.0;
        let (mut products, mut squares) = (0.0, 0.0);
        for (place, value) in (0_u32..).zip(&self.recent) {
            let distance = f64::from(place) - middle;
            products += distance * (value - mean);
            squares += distance * distance;
        }
        let along = products / squares * (count - 1.0);
        Some(Window {
            mean,
            excursion_percent: 100.0 * (high - low) / mean,
            slope_percent: 100.0 * along / mean,
        })
    }

    /// What is known.
    #[must_use]
    pub const fn state(&self) -> RoundsState {
        self.state
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &RoundRule {
        &self.rule
    }

    /// Every round's number, oldest first.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Bytes written in all rounds.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many rounds it takes, and how far the window's mean is above what remains, in percent.
    fn decay(rule: RoundRule, constant: f64) -> (usize, f64) {
        let (floor, mut rounds) = (0.35, Rounds::new(rule));
        for round in 0..200_u32 {
            let value = floor + (1.0 - floor) * (-f64::from(round) / constant).exp();
            if rounds.observe(value, 1) != RoundsState::More {
                break;
            }
        }
        let mean = rounds.window().expect("five rounds at least").mean;
        (rounds.values().len(), 100.0 * (mean / floor - 1.0))
    }

    #[test]
    fn decays_pass_when_they_are_computed_to() {
        // Constant in rounds, round of passing, what is left in percent; computed apart, with the floor at 35 %.
        let cases = [(2.0, 11, 4.0), (4.0, 15, 10.0), (8.0, 20, 23.0), (16.0, 20, 64.0)];
        for (constant, expected, bias) in cases {
            let (rounds, left) = decay(RoundRule::snia(0), constant);
            assert_eq!(rounds, expected, "{constant}");
            assert!((left - bias).abs() < 1.0, "{constant}: {left} %");
        }
        for (constant, expected, bias) in [(2.0, 14, 1.0), (4.0, 21, 2.0), (8.0, 32, 5.0), (16.0, 46, 13.0)] {
            let (rounds, left) = decay(RoundRule::contract(0), constant);
            assert_eq!(rounds, expected, "{constant}");
            assert!((left - bias).abs() < 1.0, "{constant}: {left} %");
        }
    }

    #[test]
    fn a_window_is_its_range_and_its_line() {
        let mut rounds = Rounds::new(RoundRule::snia(0));
        for value in [100.0, 110.0, 120.0, 130.0] {
            assert_eq!(rounds.observe(value, 0), RoundsState::More);
            assert_eq!(rounds.window(), None);
        }
        // Mean 120, range 40, slope 10 a round over four steps.
        assert_eq!(rounds.observe(140.0, 0), RoundsState::More);
        let window = rounds.window().expect("it is full");
        assert!((window.mean - 120.0).abs() < 1e-9);
        assert!((window.excursion_percent - 100.0 / 3.0).abs() < 1e-9, "{window:?}");
        assert!((window.slope_percent - 100.0 / 3.0).abs() < 1e-9, "{window:?}");
    }

    #[test]
    fn range_and_line_must_both_hold() {
        let steady = |values: [f64; 5]| {
            let mut rounds = Rounds::new(RoundRule::snia(0));
            values.into_iter().map(|value| rounds.observe(value, 0)).last()
        };
        assert_eq!(steady([100.0, 109.0, 91.0, 109.0, 91.0]), Some(RoundsState::Steady));
        assert_eq!(steady([100.0, 111.0, 89.0, 111.0, 89.0]), Some(RoundsState::More), "a range of 22 %");
        assert_eq!(steady([106.0, 103.0, 100.0, 97.0, 94.0]), Some(RoundsState::More), "a line of -12 %");
    }

    #[test]
    fn too_little_written_is_not_steady_yet_and_patience_ends() {
        let mut rounds = Rounds::new(RoundRule::snia(700));
        let states: Vec<RoundsState> = (0..8).map(|_| rounds.observe(5.0, 100)).collect();
        assert_eq!(states.iter().position(|state| *state == RoundsState::Steady), Some(6));
        assert_eq!(rounds.observe(900.0, 0), RoundsState::Steady, "it stays so");
        let mut rounds = Rounds::new(RoundRule::snia(u64::MAX));
        let last = (0..25).map(|_| rounds.observe(5.0, 100)).last();
        assert_eq!((last, rounds.values().len()), (Some(RoundsState::GivenUp), 25));
        let mut nothing = Rounds::new(RoundRule::snia(0));
        assert_eq!(
            (0..6).map(|_| nothing.observe(0.0, 0)).last(),
            Some(RoundsState::More),
            "nothing was done"
        );
    }
}
