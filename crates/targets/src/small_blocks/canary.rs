//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only with the option `small_blocks_canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/simulate.md`).

use super::SmallBlocks;

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

    /// The canary of this name.
    ///
    /// # Errors
    /// A sentence, if there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found
            .map(|&(canary, _)| canary)
            .ok_or_else(|| format!("there is no canary \"{name}\" of small blocks"))
    }
}

impl SmallBlocks {
    /// The same with a bug planted in it.
    #[cfg(feature = "canaries")]
    #[must_use]
    pub fn with_canary(mut self, canary: Option<Canary>) -> Self {
        self.canary = canary;
        self
    }

    /// True if this bug is planted.
    #[cfg(feature = "canaries")]
    pub(super) fn has_canary(&self, canary: Canary) -> bool {
        self.canary == Some(canary)
    }

    /// False: no bug is planted in builds that people use.
    #[cfg(not(feature = "canaries"))]
    #[inline]
    #[expect(clippy::unused_self, reason = "the same call does something in builds with canaries")]
    pub(super) const fn has_canary(&self, _: Canary) -> bool {
        false
    }
}

#[cfg(all(test, feature = "canaries"))]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_called_by_its_name_and_no_other() {
        for &(canary, name) in Canary::ALL {
            assert_eq!(Canary::named(name), Ok(canary));
        }
        let error = Canary::named("polly").expect_err("no such canary");
        assert!(error.contains("polly"), "{error}");
    }
}
