//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only in instances with the option `canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/simulate.md`).

use super::options::Options;
use crate::planted::planted_in;

/// A planted bug: what it does, and the mistake it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A table is published before its last units are on media: a file system that renames before it writes.
    PublishedBeforeProgrammed,
    /// An edit is answered when it is logged, not when the log is on media.
    AnsweredBeforeDurable,
    /// Each row of an edit is a transaction, one after the other: outputs of a compaction without the deletion of its inputs.
    EditByRow,
    /// A sync is answered without the bytes that fill no unit.
    TailForgotten,
    /// Chunks of a deleted table are reset before its deletion is on media.
    ResetBeforeDurable,
    /// Attributes of a log are not in checkpoints.
    AttributesForgotten,
    /// A sync is answered when its bytes are in memory.
    SyncUnlogged,
    /// The log is cut to where the new checkpoint starts when that begins, not when it is whole.
    TruncatedTooEarly,
    /// What the last write units hold is not made readable at mount.
    WindowForgotten,
    /// A mount takes the checkpoint for all there is.
    LogNotReplayed,
    /// What can be read is programmed once more, as a collector moves what is alive.
    CopiedWhenReadable,
    /// On extents: how far content goes is guessed from what it looks like, not taken from the catalog.
    ContentGuessed,
}

planted_in!(Options, Canary);

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::PublishedBeforeProgrammed, "published-before-programmed"),
        (Self::AnsweredBeforeDurable, "answered-before-durable"),
        (Self::EditByRow, "edit-by-row"),
        (Self::TailForgotten, "tail-forgotten"),
        (Self::ResetBeforeDurable, "reset-before-durable"),
        (Self::AttributesForgotten, "attributes-forgotten"),
        (Self::SyncUnlogged, "sync-unlogged"),
        (Self::TruncatedTooEarly, "truncated-too-early"),
        (Self::WindowForgotten, "window-forgotten"),
        (Self::LogNotReplayed, "log-not-replayed"),
        (Self::CopiedWhenReadable, "copied-when-readable"),
        (Self::ContentGuessed, "content-guessed"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        assert!(!Options::default().has_canary(Canary::EditByRow));
    }

    #[cfg(not(feature = "canaries"))]
    #[test]
    fn a_build_without_canaries_refuses_the_option() {
        let error = Options::default().set("canary", "edit-by-row").expect_err("no such option");
        assert!(error.starts_with("lightlsm has no option \"canary\""), "{error}");
    }
}
