//! Choosing the line that is collected next.
//!
//! | policy | choice | source |
//! |---|---|---|
//! | greedy | fewest valid sectors, then the oldest | pblk (`pblk_gc_get_victim_line`) |
//! | cost-benefit | largest `(1 - u) * age / 2u`, `u` the valid fraction | Kawaguchi et al., USENIX 1995 |
//! | d-choices | fewest valid sectors among `d` lines drawn at random | Van Houdt, SIGMETRICS 2013 |
//!
//! The cost `2u` is reading and writing back the valid sectors. LFS (Rosenblum and Ousterhout, SOSP 1991) has `1 + u`
//! instead, because its cleaner reads whole segments; a drive reads only what is valid. Every choice is exact integer
//! arithmetic. The caller owns the candidates and keeps back lines that must not be collected (open ones, and ones
//! with sectors still in the write buffer). Deliberately not here: when to collect (`rate_limiter`), how (`targets`).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use ocssd_base::Prng;

use crate::LineId;

/// Most lines of one d-choices draw. Chosen: with 10 it is already as good as greedy (Van Houdt 2013).
pub const D_MAX: u32 = 1_000;

/// How the line collected next is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// The line with the fewest valid sectors.
    Greedy,
    /// The line with the best ratio of what is gained, for how long, to what it costs.
    CostBenefit,
    /// The line with the fewest valid sectors of some drawn at random.
    DChoices {
        /// Lines drawn, each at most once: 1 to [`D_MAX`].
        d: u32,
    },
}

/// A line that may be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The line.
    pub line: LineId,
    /// Data sectors of the line that are valid.
    pub valid: u64,
    /// Data sectors of the line, valid or not: at least 1, below 2^32.
    pub sectors: u64,
    /// Time since the line was last closed or lost a valid sector, in any unit that is the same for all.
    pub age: u64,
}

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimPolicyError {
    /// The text.
    pub found: String,
}

impl fmt::Display for VictimPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the victim policy is \"{}\", but only greedy, cost-benefit and d-choices:N with N from 1 to {D_MAX} exist",
            self.found
        )
    }
}

impl std::error::Error for VictimPolicyError {}

impl FromStr for VictimPolicy {
    type Err = VictimPolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || VictimPolicyError { found: text.to_owned() };
        match text {
            "greedy" => Ok(Self::Greedy),
            "cost-benefit" => Ok(Self::CostBenefit),
            _ => {
                let d = text.strip_prefix("d-choices:").and_then(|d| d.parse().ok());
                let d = d.filter(|d| (1..=D_MAX).contains(d)).ok_or_else(unknown)?;
                Ok(Self::DChoices { d })
            }
        }
    }
}

impl fmt::Display for VictimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greedy => f.write_str("greedy"),
            Self::CostBenefit => f.write_str("cost-benefit"),
            Self::DChoices { d } => write!(f, "d-choices:{d}"),
        }
    }
}

impl Candidate {
    /// Whether collecting the line gains a sector.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        assert!((1..1 << 32).contains(&self.sectors), "{self:?} has no sectors, or too many to compare");
        assert!(self.valid <= self.sectors, "{self:?} has more valid sectors than sectors");
        self.valid < self.sectors
    }

    /// `Less` is the better one for greedy. Total, because lines differ in their numbers.
    fn by_valid(&self, other: &Self) -> Ordering {
        self.valid.cmp(&other.valid).then(other.age.cmp(&self.age)).then(self.line.cmp(&other.line))
    }

    /// `Less` is the better one for cost-benefit: the larger `(sectors - valid) * age / valid`.
    ///
    /// Compared as products across, below 2^32 * 2^64 * 2^32. A line without valid sectors costs nothing, so it is
    /// better than any with some. An age of zero counts as one, or all fresh lines would be equally good.
    fn by_benefit(&self, other: &Self) -> Ordering {
        let product = |gain: &Self, cost: &Self| {
            u128::from(gain.sectors - gain.valid) * u128::from(gain.age.max(1)) * u128::from(cost.valid)
        };
        product(other, self).cmp(&product(self, other)).then(self.line.cmp(&other.line))
    }
}

impl VictimPolicy {
    /// The line to collect, or `None` if collecting any of them gains nothing.
    ///
    /// Lines that are all valid are never chosen, nor drawn. Candidates name each line once, in an order that is the
    /// same from run to run (it decides what is drawn). `prng` is used by d-choices only. Cost: one or two passes over
    /// the candidates, no memory.
    ///
    /// # Panics
    /// If a candidate has no sectors, 2^32 or more, or more valid ones than sectors; or if `d` is out of bounds.
    #[must_use]
    pub fn pick(&self, prng: &mut Prng, candidates: &[Candidate]) -> Option<LineId> {
        let worthwhile = || candidates.iter().filter(|candidate| candidate.is_worth_it());
        let picked = match *self {
            Self::Greedy => worthwhile().min_by(|a, b| a.by_valid(b)),
            Self::CostBenefit => worthwhile().min_by(|a, b| a.by_benefit(b)),
            Self::DChoices { d } => {
                assert!((1..=D_MAX).contains(&d), "{d} choices");
                let left = u64::try_from(worthwhile().count()).expect("an index");
                let mut draw = Draw { left, wanted: u64::from(d) };
                worthwhile().filter(|_| draw.takes_next(prng)).min_by(|a, b| a.by_valid(b))
            }
        };
        assert!(picked.is_none_or(|victim| victim.valid < victim.sectors), "{picked:?} gains nothing");
        assert!(picked.is_some() || worthwhile().next().is_none(), "a victim was passed over");
        picked.map(|victim| victim.line)
    }
}

/// A draw without repetition in one pass (selection sampling; Knuth volume 2, 3.4.2, algorithm S).
struct Draw {
    /// Things still to be looked at.
    left: u64,
    /// Things still to be drawn.
    wanted: u64,
}

impl Draw {
    /// Whether the next thing is drawn. Every subset of the size wanted is equally likely.
    fn takes_next(&mut self, prng: &mut Prng) -> bool {
        assert!(self.left > 0, "more things passed than were counted");
        let takes = prng.below(self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= u64::from(takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(line: u32, valid: u64, age: u64) -> Candidate {
        Candidate { line: LineId(line), valid, sectors: 100, age }
    }

    fn pick(policy: VictimPolicy, candidates: &[Candidate]) -> Option<u32> {
        policy.pick(&mut Prng::new(1), candidates).map(|line| line.0)
    }

    #[test]
    fn each_policy_picks_what_it_says() {
        let all = VictimPolicy::DChoices { d: 9 };
        let (greedy, benefit) = (VictimPolicy::Greedy, VictimPolicy::CostBenefit);
        type Lines = &'static [(u32, u64, u64)];
        let cases: [(VictimPolicy, Lines, Option<u32>); 16] = [
            (greedy, &[], None),
            (greedy, &[(0, 50, 1), (1, 40, 1), (2, 60, 9)], Some(1)),
            (greedy, &[(0, 40, 1), (1, 40, 3), (2, 40, 2)], Some(1)),
            (greedy, &[(2, 40, 3), (1, 40, 3)], Some(1)),
            (greedy, &[(0, 100, 9), (1, 100, 9)], None),
            (benefit, &[], None),
            (benefit, &[(0, 100, u64::MAX)], None),
            // 50/50 * 1 = 1 against 20/80 * 5 = 1.25: age decides where greedy looks at sectors alone.
            (benefit, &[(0, 50, 1), (1, 80, 5)], Some(1)),
            (benefit, &[(0, 50, 2), (1, 80, 5)], Some(0)),
            (benefit, &[(1, 50, 1), (0, 80, 4)], Some(0)),
            (benefit, &[(0, 1, u64::MAX), (1, 0, 0)], Some(1)),
            (benefit, &[(3, 0, 1), (2, 0, 0), (4, 0, 9)], Some(2)),
            (benefit, &[(0, 90, 0), (1, 10, 0), (2, 50, 1)], Some(1)),
            (all, &[(0, 50, 1), (1, 40, 1), (2, 100, 9)], Some(1)),
            (all, &[(0, 100, 1)], None),
            (VictimPolicy::DChoices { d: 1 }, &[(0, 100, 1), (1, 99, 1), (2, 100, 1)], Some(1)),
        ];
        for (policy, lines, expected) in cases {
            let candidates: Vec<_> = lines.iter().map(|&(l, v, a)| candidate(l, v, a)).collect();
            assert_eq!(pick(policy, &candidates), expected, "{policy}: {lines:?}");
        }
    }

    #[test]
    fn the_largest_numbers_compare_without_overflow() {
        let sectors = u64::from(u32::MAX);
        let line = |line, valid| Candidate { line: LineId(line), valid, sectors, age: u64::MAX };
        let lines = [line(0, sectors - 1), line(1, sectors / 2), line(2, 1)];
        assert_eq!(pick(VictimPolicy::CostBenefit, &lines), Some(2));
        assert_eq!(pick(VictimPolicy::CostBenefit, &lines[..2]), Some(1));
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "the naive model has small numbers")]
    fn cost_benefit_is_the_formula() {
        let mut prng = Prng::new(2);
        for round in 0..2_000 {
            let lines: Vec<_> = (0..1 + prng.below(20))
                .map(|line| {
                    candidate(u32::try_from(line).unwrap(), 1 + prng.below(100), 1 + prng.below(1_000))
                })
                .collect();
            let score = |c: &Candidate| {
                let u = c.valid as f64 / c.sectors as f64;
                (1.0 - u) * c.age as f64 / (2.0 * u)
            };
            let best = lines.iter().map(score).fold(0.0, f64::max);
            let picked = pick(VictimPolicy::CostBenefit, &lines);
            let scored = picked.map_or(0.0, |line| score(&lines[usize::try_from(line).unwrap()]));
            assert!((scored - best).abs() <= best * 1e-12, "seed 2, round {round}: {scored} of {best}");
            assert_eq!(picked.is_none(), best == 0.0, "seed 2, round {round}");
        }
    }

    #[test]
    fn d_choices_draws_each_worthwhile_line_equally_often() {
        // Line 0 is all valid. Of lines 1..=5 two are drawn and the emptier wins: line 1 in 4 of 10 pairs, 2 in 3, ...
        // The emptiest comes last, so that a draw of too many would make it win too often.
        let lines: Vec<_> = (0..6)
            .rev()
            .map(|line| candidate(line, if line == 0 { 100 } else { u64::from(line) }, 1))
            .collect();
        let (mut prng, mut wins) = (Prng::new(3), [0u32; 6]);
        for _ in 0..10_000 {
            let line = VictimPolicy::DChoices { d: 2 }.pick(&mut prng, &lines).unwrap();
            wins[line.index()] += 1;
        }
        for (line, expected) in [0, 4_000, 3_000, 2_000, 1_000, 0].into_iter().enumerate() {
            assert!(wins[line].abs_diff(expected) < 200, "seed 3: line {line} won {} times", wins[line]);
        }
    }

    #[test]
    fn policies_are_read_from_their_own_names_and_nothing_else() {
        for text in ["greedy", "cost-benefit", "d-choices:1", "d-choices:10", "d-choices:1000"] {
            assert_eq!(text.parse::<VictimPolicy>().map(|policy| policy.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "Greedy", "fifo", "d-choices", "d-choices:", "d-choices:0", "d-choices:1001", "d-choices:-1"]
        {
            let error = text.parse::<VictimPolicy>().unwrap_err();
            assert_eq!(error, VictimPolicyError { found: text.to_owned() });
            assert!(
                error.to_string().starts_with(&format!("the victim policy is \"{text}\", but")),
                "{error}"
            );
        }
    }
}
