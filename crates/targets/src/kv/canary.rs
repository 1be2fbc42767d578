//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only in instances with the option `canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/kv.md`).

use super::options::Options;
use crate::planted::planted_in;

/// A planted bug: what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A change that is to be durable at its reply is answered when it is in the write buffer.
    AnsweredBeforeDurable,
    /// A flush does not wait for pieces of long values.
    FlushForgetsLong,
    /// The records of a batch say nothing of each other: a part of it may survive.
    BatchTorn,
    /// Replay takes a long value of which pieces are missing.
    LongWithoutPieces,
    /// A chunk is reset as soon as it is dead, whatever recovery would need of it.
    ResetBeforeDurable,
    /// Replay takes the record in the latest unit, not the one stored last.
    ReplayByUnit,
    /// A deletion leaves no record.
    DeletesForgotten,
    /// Replay begins where the checkpoint ended, not where it began.
    CheckpointTooLate,
    /// What the last write units hold is not made readable at mount.
    WindowForgotten,
    /// Garbage collection copies what it read, though the key holds something else meanwhile.
    StaleCopies,
    /// The pieces of a staged value are forgotten by a checkpoint taken before its store.
    StageForgotten,
    /// Garbage collection copies records of a batch before the rest of it is on media.
    TornCopies,
    /// A page of the index that changed is forgotten on media, though the newest checkpoint names it.
    PageFreedEarly,
    /// A checkpoint is committed before the pages of the index that it names are on media.
    CheckpointBeforePages,
    /// A read passes changes of its own key that wait.
    ReadsPassOwnKey,
    /// A chunk that is emptied for its wear is read from its second unit on: what lives in the first is noted as lost.
    LevelsFromSecondUnit,
    /// No chunk is emptied for its wear.
    WearIgnored,
    /// A mount that replayed records goes on without a checkpoint, as if the one it found had them.
    ReplayedIsCovered,
    /// The write buffer has room for what the drive holds back of one stream of users, where there are two.
    OneWindowHeld,
}

planted_in!(Options, Canary);

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::AnsweredBeforeDurable, "answered-before-durable"),
        (Self::FlushForgetsLong, "flush-forgets-long"),
        (Self::BatchTorn, "batch-torn"),
        (Self::LongWithoutPieces, "long-without-pieces"),
        (Self::ResetBeforeDurable, "reset-before-durable"),
        (Self::ReplayByUnit, "replay-by-unit"),
        (Self::DeletesForgotten, "deletes-forgotten"),
        (Self::CheckpointTooLate, "checkpoint-too-late"),
        (Self::WindowForgotten, "window-forgotten"),
        (Self::StaleCopies, "stale-copies"),
        (Self::StageForgotten, "stage-forgotten"),
        (Self::TornCopies, "torn-copies"),
        (Self::PageFreedEarly, "page-freed-early"),
        (Self::CheckpointBeforePages, "checkpoint-before-pages"),
        (Self::ReadsPassOwnKey, "reads-pass-own-key"),
        (Self::LevelsFromSecondUnit, "levels-from-second-unit"),
        (Self::WearIgnored, "wear-ignored"),
        (Self::ReplayedIsCovered, "replayed-is-covered"),
        (Self::OneWindowHeld, "one-window-held"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        assert!(!Options::default().has_canary(Canary::AnsweredBeforeDurable));
    }

    #[cfg(not(feature = "canaries"))]
    #[test]
    fn a_build_without_canaries_refuses_the_option() {
        let error = Options::default().set("canary", "batch-torn").expect_err("no such option");
        assert!(error.starts_with("kv has no option \"canary\""), "{error}");
    }
}
