//! The slowest I/Os of a run or of a server, so that somebody can say what each of them waited for.
//!
//! Deliberately not here: what it was, which only the drive knows.

use crate::results::Direction;
use ocssd_base::Nanos;
use ocssd_lightnvm::BufId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slow I/Os kept of a direction: of any number of I/Os, those beyond the highest percentile with ten or more beyond it are
/// fewer than this (rule L11: a percentile rests on ten).
pub(super) const SLOW_MAX: usize = 100;

/// An I/O that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlowIo {
    /// How long.
    pub latency: Nanos,
    /// When it was issued.
    pub issued: Nanos,
    /// Where its data were.
    pub buffer: BufId,
}

/// The slowest reads, and the slowest writes.
#[derive(Clone, Debug, Default)]
pub struct Slowest {
    reads: Kept,
    writes: Kept,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    /// The least slow first.
    heap: BinaryHeap<Reverse<SlowIo>>,
    /// What is no slower is not kept.
    floor: Nanos,
}

impl Slowest {
    /// A read or a write ended; trims are not kept.
    #[inline(always)]
    pub fn offer(&mut self, direction: Direction, io: SlowIo) {
        let kept = match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
            Direction::Trim => return,
        };
        if io.latency > kept.floor {
            kept.keep(io);
        }
    }

    /// The slowest of a direction, the slowest first: at most 100. None of trims.
    #[must_use]
    pub fn of(&self, direction: Direction) -> Vec<SlowIo> {
        let kept = match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
            Direction::Trim => return Vec::new(),
        };
        let mut all: Vec<SlowIo> = kept.heap.iter().map(|Reverse(io)| *io).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all
    }
}

impl Kept {
    #[inline(never)]
    fn keep(&mut self, io: SlowIo) {
        if self.heap.len() == SLOW_MAX {
            self.heap.pop();
        }
        self.heap.push(Reverse(io));
        assert!(self.heap.len() <= SLOW_MAX, "more slow I/Os are kept than there is room for");
        if self.heap.len() == SLOW_MAX {
            self.floor = self.heap.peek().map_or(Nanos::ZERO, |Reverse(least)| least.latency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_kept_and_come_slowest_first() {
        let mut slowest = Slowest::default();
        for number in 1..=1_000_u32 {
            // Each latency once, in an order of its own: 7 and 1009 have no common divisor.
            let latency = Nanos(u64::from(number * 7 % 1_009));
            let io = SlowIo { latency, issued: Nanos::ZERO, buffer: BufId(number) };
            slowest.offer(Direction::Read, io);
            slowest.offer(Direction::Trim, SlowIo { latency: Nanos::MAX, ..io });
        }
        let mut expected: Vec<u64> = (1..=1_000_u64).map(|number| number * 7 % 1_009).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let kept: Vec<u64> = slowest.of(Direction::Read).iter().map(|io| io.latency.0).collect();
        assert_eq!(kept, expected[..SLOW_MAX]);
        assert!(slowest.of(Direction::Write).is_empty());
    }
}
