//! How long the next I/O is, in blocks of the target.

use crate::job::BlockSizes;
use ocssd_base::Prng;

/// Block sizes of one direction, in target blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    Fixed(u32),
    /// Uniform in steps of the smallest.
    Range {
        min: u32,
        steps: u64,
    },
    /// Cumulative shares in hundredths of a percent.
    Split(Vec<(u64, u32)>),
}

impl Sizes {
    /// In blocks of `block_bytes`.
    ///
    /// # Errors
    /// The size that is no multiple of a block, or too long.
    pub(super) fn new(sizes: &BlockSizes, block_bytes: u32) -> Result<Self, u64> {
        let blocks = |bytes: u64| {
            let whole = bytes.is_multiple_of(u64::from(block_bytes)) && bytes > 0;
            let count = u32::try_from(bytes / u64::from(block_bytes)).ok();
            count.filter(|&count| whole && count <= BLOCKS_MAX).ok_or(bytes)
        };
        Ok(match sizes {
            BlockSizes::Fixed(bytes) => Self::Fixed(blocks(*bytes)?),
            BlockSizes::Range { min_bytes, max_bytes } => {
                let min = blocks(*min_bytes)?;
                Self::Range { min, steps: u64::from(blocks(*max_bytes - *max_bytes % *min_bytes)? / min) }
            }
            BlockSizes::Split(entries) => {
                let mut total = 0;
                let cumulative = |entry: &crate::job::SplitEntry| {
                    total += u64::from(entry.share_basis_points);
                    Ok((total, blocks(entry.bytes)?))
                };
                Self::Split(entries.iter().map(cumulative).collect::<Result<_, u64>>()?)
            }
        })
    }

    #[inline(always)]
    pub(super) fn draw(&self, prng: &mut Prng) -> u32 {
        if let Self::Fixed(count) = self { *count } else { self.draw_varied(prng) }
    }

    #[inline(never)]
    fn draw_varied(&self, prng: &mut Prng) -> u32 {
        match self {
            Self::Fixed(count) => *count,
            Self::Range { min, steps } => {
                let step = u32::try_from(prng.below(*steps)).expect("fewer steps than blocks") + 1;
                min * step
            }
            Self::Split(entries) => {
                let point = prng.below(10_000);
                let entry = entries.iter().find(|(until, _)| point < *until).or(entries.last());
                entry.expect("a split has entries").1
            }
        }
    }

    pub(super) fn min(&self) -> u32 {
        match self {
            Self::Fixed(count) => *count,
            Self::Range { min, .. } => *min,
            Self::Split(entries) => {
                entries.iter().map(|&(_, count)| count).min().expect("a split has entries")
            }
        }
    }

    pub(super) fn max(&self) -> u32 {
        match self {
            Self::Fixed(count) => *count,
            Self::Range { min, steps } => min * u32::try_from(*steps).expect("fewer steps than blocks"),
            Self::Split(entries) => {
                entries.iter().map(|&(_, count)| count).max().expect("a split has entries")
            }
        }
    }

    /// True if every size is a multiple of `unit`.
    pub(super) fn are_multiples_of(&self, unit: u32) -> bool {
        match self {
            Self::Fixed(count) => count.is_multiple_of(unit),
            Self::Range { min, .. } => min.is_multiple_of(unit),
            Self::Split(entries) => entries.iter().all(|(_, count)| count.is_multiple_of(unit)),
        }
    }
}

/// Longest I/O in target blocks: 16 MiB of 4 KiB blocks (chosen; what fits a buffer many times over).
pub(super) const BLOCKS_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::SplitEntry;

    #[test]
    fn shares_are_kept() {
        let entry = |bytes, share| SplitEntry { bytes, share_basis_points: share };
        let split = BlockSizes::Split(vec![entry(4096, 2_500), entry(65536, 7_500)]);
        let sizes = Sizes::new(&split, 4096).expect("multiples of a block");
        let mut prng = Prng::new(9);
        let small = (0..10_000).filter(|_| sizes.draw(&mut prng) == 1).count();
        assert!((2_300..2_700).contains(&small), "seed 9: {small}");
        assert_eq!((sizes.min(), sizes.max()), (1, 16));
        assert!(!sizes.are_multiples_of(16));
    }

    #[test]
    fn what_is_no_multiple_of_a_block_is_named() {
        assert_eq!(Sizes::new(&BlockSizes::Fixed(512), 4096).err(), Some(512));
        assert_eq!(
            Sizes::new(&BlockSizes::Range { min_bytes: 4096, max_bytes: 1 << 40 }, 4096).err(),
            Some(1 << 40)
        );
    }
}
