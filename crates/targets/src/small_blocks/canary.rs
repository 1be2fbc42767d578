//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only with the option `small_blocks_canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/simulate.md`).

use super::SmallBlocks;
use crate::planted::planted_in;

/// A planted bug: what it does, and the real defect it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// What a merge read of its sector's other blocks is not kept: they become zeroes.
    MergeLosesNeighbour,
    /// Changes of a sector begin as they come: what one merge wrote, another that read before it takes away.
    OrderIgnored,
}

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name.
    pub const ALL: &[(Self, &str)] =
        &[(Self::MergeLosesNeighbour, "merge-loses-neighbour"), (Self::OrderIgnored, "order-ignored")];
}

planted_in!(SmallBlocks, Canary);

impl SmallBlocks {
    /// The same with a bug planted in it.
    #[cfg(feature = "canaries")]
    #[must_use]
    pub fn with_canary(mut self, canary: Option<Canary>) -> Self {
        self.canary = canary;
        self
    }
}

#[cfg(all(test, feature = "canaries"))]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_called_by_its_name_and_no_other() {
        for &(canary, name) in Canary::ALL {
            assert_eq!(name.parse(), Ok(canary));
        }
        let error = "polly".parse::<Canary>().expect_err("no such canary");
        assert!(error.contains("polly"), "{error}");
    }
}
