//! The slowest I/Os of a run, so that somebody can say what each of them waited for.
//!
//! Deliberately not here: what it was, which only the drive knows.

use super::slots::{Purpose, Slot};
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
#[derive(Debug, Default)]
pub(super) struct Slowest {
    reads: Kept,
    writes: Kept,
}

#[derive(Debug, Default)]
struct Kept {
    /// The least slow first.
    heap: BinaryHeap<Reverse<SlowIo>>,
    /// What is no slower is not kept.
    floor: Nanos,
}

impl Slowest {
    /// A measured I/O ended.
    #[inline(always)]
    pub(super) fn offer(&mut self, purpose: Purpose, slot: &Slot, latency: Nanos) {
        let kept = match purpose {
            Purpose::Read => &mut self.reads,
            Purpose::Write => &mut self.writes,
            Purpose::Trim | Purpose::Reset | Purpose::Flush | Purpose::Verify => return,
        };
        if latency > kept.floor {
            kept.keep(SlowIo { latency, issued: slot.issued, buffer: slot.buffer });
        }
    }

    /// The slowest of a direction, the slowest first.
    pub(super) fn of(&self, direction: Direction) -> Vec<SlowIo> {
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
            let slot = Slot {
                worker: 0,
                purpose: Purpose::Read,
                block: 0,
                count: 1,
                issued: Nanos::ZERO,
                intended: Nanos::ZERO,
                sequence: 0,
                buffer: BufId(number),
            };
            slowest.offer(Purpose::Read, &slot, latency);
            slowest.offer(Purpose::Flush, &slot, Nanos::MAX);
        }
        let mut expected: Vec<u64> = (1..=1_000_u64).map(|number| number * 7 % 1_009).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let kept: Vec<u64> = slowest.of(Direction::Read).iter().map(|io| io.latency.0).collect();
        assert_eq!(kept, expected[..SLOW_MAX]);
        assert!(slowest.of(Direction::Write).is_empty());
    }
}
