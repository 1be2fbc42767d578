//! How many logical sectors share a shard of the map, which takes memory and is written as a whole.
//!
//! Deliberately not here: what is in a shard (`table`).

use std::ops::Range;

/// Bits of the largest shard, and of those that instances have: 65 536 sectors (chosen: 256 KiB of narrow entries, a size the
/// media read and write in a few commands).
const BITS_MAX: u32 = 16;
/// Bits of the smallest: as many entries as are looked at together when a shard is written.
const BITS_MIN: u32 = 5;

/// Logical sectors of a shard, a power of two from 32 to 65 536; the last one of a map has what is left, so that a small
/// instance has a small map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSize {
    bits: u32,
}

impl Default for ShardSize {
    fn default() -> Self {
        Self { bits: BITS_MAX }
    }
}

impl ShardSize {
    /// Entries of the largest shard there is.
    pub(super) const LARGEST: usize = 1 << BITS_MAX;

    /// Shards of `sectors`; `None` if that is no power of two from 32 to 65 536.
    #[must_use]
    pub const fn new(sectors: u32) -> Option<Self> {
        if sectors.is_power_of_two() { Self::of_bits(sectors.trailing_zeros()) } else { None }
    }

    /// Shards of `2^bits` sectors; `None` if that is below 32 or above 65 536.
    #[must_use]
    pub const fn of_bits(bits: u32) -> Option<Self> {
        if BITS_MIN <= bits && bits <= BITS_MAX { Some(Self { bits }) } else { None }
    }

    /// The sectors as a power of two.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// How many they are.
    #[must_use]
    pub const fn sectors(self) -> u64 {
        1 << self.bits
    }

    /// The logical sectors of shard `shard`, in an instance of `sectors`; empty if it has none such.
    #[must_use]
    pub fn sectors_of(self, shard: u64, sectors: u64) -> Range<u64> {
        assert!(shard < 1 << 48, "shard {shard} is beyond any map");
        let first = (shard << self.bits).min(sectors);
        first..(first + self.sectors()).min(sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_powers_of_two_within_bounds_and_the_last_is_cut() {
        for (sectors, fits) in
            [(0, false), (16, false), (32, true), (48, false), (65_536, true), (131_072, false)]
        {
            assert_eq!(ShardSize::new(sectors).is_some(), fits, "{sectors}");
        }
        let shard = ShardSize::new(32).expect("the smallest");
        assert_eq!((shard.bits(), shard.sectors()), (5, 32));
        assert_eq!((shard.sectors_of(0, 40), shard.sectors_of(1, 40)), (0..32, 32..40));
        assert!(shard.sectors_of(2, 40).is_empty());
        assert_eq!(ShardSize::default().sectors(), 65_536);
    }
}
