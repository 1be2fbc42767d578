//! The part of a target one worker uses.

use std::ops::Range;

/// Blocks `first .. end` of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) first: u64,
    pub(super) end: u64,
}

impl Region {
    pub(super) const fn blocks(self) -> u64 {
        self.end - self.first
    }

    /// The zones it touches.
    pub(super) const fn zones(self, zone_blocks: u64) -> Range<u64> {
        self.first / zone_blocks..self.end.div_ceil(zone_blocks)
    }
}
