//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only with the option `block_canary=NAME`; `canary=NAME` plants one of what
//! stands on the extents.
//! Deliberately not here: how soon each is found (`docs/simulate.md`).

use super::options::BlockOptions;
use crate::planted::planted_in;

/// A planted bug: what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// Writes that ask for FUA go without: what the block target's cache holds counts as durable.
    FuaForgotten,
    /// The last unit of an extent that is not full is not found at mount, and is written over.
    TailForgotten,
    /// A discard takes the first unit of the next extent with it.
    DiscardTooLong,
}

planted_in!(BlockOptions, Canary);

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `block_canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::FuaForgotten, "fua-forgotten"),
        (Self::TailForgotten, "tail-forgotten"),
        (Self::DiscardTooLong, "discard-too-long"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        assert!(!BlockOptions::default().has_canary(Canary::FuaForgotten));
    }
}
