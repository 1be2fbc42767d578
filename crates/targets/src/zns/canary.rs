//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only in instances with the option `canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/simulate.md`).

use super::options::Options;
use crate::planted::planted_in;

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A flush is answered though the part of a unit that no unit was written for is in memory only.
    FlushForgetsTail,
    /// A flush does not wait for the log to say which chunks a zone has.
    FlushForgetsLog,
    /// A reset is answered before the log has it.
    ResetNotLogged,
    /// Chunks of a reset zone are reset before the log says so.
    ResetBeforeDurable,
    /// A zone that was finished is not logged as full.
    FinishNotLogged,
    /// Tails of a zone's earlier life are taken for its own at a mount.
    StaleTail,
    /// What the last write units hold is not made readable at a mount.
    WindowForgotten,
    /// A mount takes the longest column for the end of a zone, not the shortest.
    LongestColumn,
    /// The log is truncated to where a new checkpoint starts when that begins, not when it is whole.
    TruncatedTooEarly,
    /// A reset of all zones leaves those that are full.
    ResetAllSkipsFull,
    /// The extension of a zone is answered, and never logged.
    ExtensionNotLogged,
    /// A checkpoint has no extensions of zones.
    ExtensionNotInCheckpoint,
    /// A tail of a zone does not wait for the log to have the zone's extension.
    TailBeforeExtension,
    /// What follows a block of an area that was never written is taken for unwritten, too, when both are committed.
    HoleSpreads,
    /// A commit is answered before what it commits is on media.
    CommitTooEarly,
    /// A block of an area that is written over while it is on its way to tails is taken for durable when that was programmed.
    TailCoversOverwrite,
    /// A mount takes the oldest version of a block of an area, not the youngest.
    OldestOfArea,
    /// A zone that is reset or full keeps its area.
    AreaKept,
    /// The chunk that content was moved from is reset before the log says where it is now.
    MovedBeforeLogged,
    /// Nothing is moved for the wear of its chunk.
    WearIgnored,
    /// Whoever looks for chunks that lag looks at the first half of the zones.
    WearLooksAtHalf,
    /// A mount takes the checkpoint in the first lines, though pages lie anywhere and a newer one may be elsewhere.
    MetadataElsewhere,
}

planted_in!(Options, Canary);

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::FlushForgetsTail, "flush-forgets-tail"),
        (Self::FlushForgetsLog, "flush-forgets-log"),
        (Self::ResetNotLogged, "reset-not-logged"),
        (Self::ResetBeforeDurable, "reset-before-durable"),
        (Self::FinishNotLogged, "finish-not-logged"),
        (Self::StaleTail, "stale-tail"),
        (Self::WindowForgotten, "window-forgotten"),
        (Self::LongestColumn, "longest-column"),
        (Self::TruncatedTooEarly, "truncated-too-early"),
        (Self::ResetAllSkipsFull, "reset-all-skips-full"),
        (Self::ExtensionNotLogged, "extension-not-logged"),
        (Self::ExtensionNotInCheckpoint, "extension-not-in-checkpoint"),
        (Self::TailBeforeExtension, "tail-before-extension"),
        (Self::HoleSpreads, "hole-spreads"),
        (Self::CommitTooEarly, "commit-too-early"),
        (Self::TailCoversOverwrite, "tail-covers-overwrite"),
        (Self::OldestOfArea, "oldest-of-area"),
        (Self::AreaKept, "area-kept"),
        (Self::MovedBeforeLogged, "moved-before-logged"),
        (Self::WearIgnored, "wear-ignored"),
        (Self::WearLooksAtHalf, "wear-looks-at-half"),
        (Self::MetadataElsewhere, "metadata-elsewhere"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        assert!(!Options::default().has_canary(Canary::FlushForgetsTail));
    }

    #[cfg(not(feature = "canaries"))]
    #[test]
    fn a_build_without_canaries_refuses_the_option() {
        let error = Options::default().set("canary", "stale-tail").expect_err("no such option");
        assert!(error.starts_with("zns has no option \"canary\""), "{error}");
    }
}
