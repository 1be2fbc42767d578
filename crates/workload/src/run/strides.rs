//! I/O that stays in one part of the region until enough was transferred: fio's `zonemode=strided`.
//!
//! ```text
//!   region  |--zonerange--|skip|--zonerange--|skip|--zonerange--|
//!            zonesize blocks    then the same here      and at the end again from the start
//! ```
//! With a `zonesize` below `zonerange` only the first part of each is used by a sequential job; above it, each is gone
//! through more than once. Source: HOWTO, `zonemode`, and offsets compared with those fio 3.33 records. Unlike fio, which
//! goes on behind the region to the end of the file, the strides stay inside the region.

use super::offsets::Offsets;
use super::region::Region;
use ocssd_base::Prng;

/// Sizes of the parts, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StridePlan {
    /// Transferred in a part before the next (`zonesize`), at least 1.
    pub(super) transfer: u64,
    /// Length of a part (`zonerange`), at least 1.
    pub(super) range: u64,
    /// Left out between parts (`zoneskip`).
    pub(super) skip: u64,
}

impl StridePlan {
    /// Blocks transferred in one pass over a region of `blocks`, no more than the region has.
    pub(super) fn blocks_per_pass(&self, blocks: u64) -> u64 {
        let step = self.range + self.skip;
        let (whole, rest) = (blocks / step, blocks % step);
        let (whole, cut) = if rest >= self.range { (whole + 1, 0) } else { (whole, rest) };
        whole.saturating_mul(self.transfer).saturating_add(cut.min(self.transfer)).min(blocks)
    }
}

/// Where a worker is in its strides.
#[derive(Clone, Debug)]
pub(super) struct Strides {
    plan: StridePlan,
    blocks: u64,
    /// Where the part starts, from the region's start.
    start: u64,
    /// Blocks transferred in it.
    done: u64,
}

impl Strides {
    pub(super) const fn new(plan: StridePlan, region: Region) -> Self {
        Self { plan, blocks: region.blocks(), start: 0, done: 0 }
    }

    /// Blocks of the part: fewer at the region's end.
    fn length(&self) -> u64 {
        self.plan.range.min(self.blocks - self.start)
    }

    /// Goes to the next part if this one had enough, or has no room for `count` blocks; true if it did.
    pub(super) fn advance(&mut self, count: u32) -> bool {
        let cut = self.length() < self.plan.range && self.done >= self.length();
        let mut moved = self.done >= self.plan.transfer || cut;
        if moved {
            self.next_part();
        }
        while self.length() < u64::from(count) {
            self.next_part();
            moved = true;
        }
        moved
    }

    fn next_part(&mut self) {
        let next = self.start + self.plan.range + self.plan.skip;
        self.start = if next >= self.blocks { 0 } else { next };
        self.done = 0;
    }

    /// Where the next `count` blocks lie, from the region's start. `align` and `step` are as for the offsets.
    pub(super) fn place(
        &mut self,
        offsets: &mut Offsets,
        align: u64,
        step: u64,
        count: u32,
        prng: &mut Prng,
    ) -> u64 {
        let (length, count) = (self.length(), u64::from(count));
        assert!(count <= length, "an I/O is no longer than the part it goes to");
        let drawn = offsets.next(step, prng).map(|place| place * align).filter(|at| at + count <= length);
        let within = drawn.unwrap_or_else(|| {
            // At the end of the part, or behind a part that the region cuts: from its start again.
            offsets.rewind(prng);
            let place = offsets.next(step, prng).expect("a part has at least one place");
            let at = place * align;
            if at + count <= length { at } else { at % (length - count + 1) / align * align }
        });
        self.done += count;
        self.start + within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(transfer: u64, range: u64, skip: u64, blocks: u64, ios: usize) -> Vec<u64> {
        let plan = StridePlan { transfer, range, skip };
        let mut strides = Strides::new(plan, Region { first: 100, end: 100 + blocks });
        let (mut offsets, mut prng) = (Offsets::sequential(range), Prng::new(1));
        let mut next = || {
            if strides.advance(1) {
                offsets.rewind(&mut prng);
            }
            strides.place(&mut offsets, 1, 1, 1, &mut prng)
        };
        (0..ios).map(|_| next()).collect()
    }

    /// The offsets are those that fio 3.33 recorded for 4 KiB blocks and a file of 64 KiB.
    #[test]
    fn offsets_are_those_of_fio() {
        assert_eq!(walk(2, 4, 1, 16, 7), [0, 1, 5, 6, 10, 11, 15]);
        let twice = [0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 4, 5, 8, 9, 10, 11];
        assert_eq!(walk(6, 4, 0, 16, 16), twice);
        assert_eq!(walk(2, 2, 0, 16, 17), (0..16).chain([0]).collect::<Vec<_>>());
    }

    #[test]
    fn a_pass_counts_what_is_transferred_in_it() {
        let pass = |transfer, range, skip| StridePlan { transfer, range, skip }.blocks_per_pass(16);
        assert_eq!((pass(2, 4, 1), pass(6, 4, 0), pass(2, 2, 0)), (7, 16, 16));
        assert_eq!((pass(4, 4, 1), pass(1, 4, 100), pass(1, 1, 1)), (13, 1, 8));
    }

    #[test]
    fn drawn_places_stay_inside_their_part() {
        use super::super::offsets::DrawOptions;
        use crate::job::Distribution;
        let plan = StridePlan { transfer: 9, range: 10, skip: 3 };
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let draw = DrawOptions {
                distribution: Distribution::Uniform,
                no_map: seed % 2 == 0,
                ios_per_offset: 1,
                percent_random: 100,
            };
            let mut offsets = Offsets::random(10, &draw, &mut prng);
            let mut strides = Strides::new(plan, Region { first: 0, end: 58 });
            for io in 0..400 {
                let count = 1 + u32::try_from(prng.below(3)).expect("small");
                if strides.advance(count) {
                    offsets.rewind(&mut prng);
                }
                let at = strides.place(&mut offsets, 1, u64::from(count), count, &mut prng);
                assert!(at % 13 < 10 && at + u64::from(count) <= 58, "seed {seed} io {io}: {at}");
                assert!((at % 13) + u64::from(count) <= 10, "seed {seed} io {io}: {at}");
            }
        }
    }
}
