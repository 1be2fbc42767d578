//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only in instances with the option `canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/simulate.md`).

use super::options::Options;
use crate::planted::planted_in;

/// A planted bug: what it does, and the real defect it stands for (numbers are of the table of defects in docs/ox-block.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A request is answered when its data are on media, though its commit is not: acknowledged before it is durable.
    AnsweredBeforeCommit,
    /// Every buffer unit that is programmed commits its part of a transaction: a request larger than a write unit is torn (defect
    /// 2).
    CommitByPart,
    /// A move of garbage collection is applied at mount whatever was written meanwhile: no expected old address (defect 5).
    MovesStale,
    /// A chunk is reset as soon as it is empty, though what emptied it is not on media (`durability=flush`; nothing becomes true
    /// before it is on media otherwise).
    ResetBeforeDurable,
    /// The log is truncated to where the new checkpoint starts when that begins, not when it is whole (defect 1).
    TruncatedTooEarly,
    /// Every block of a transaction over several requests is committed for itself once it was programmed (defect 2): the
    /// transaction is seen before its commit, and torn.
    TransactionByPart,
    /// A transaction over several requests that gives way for want of chunks leaves what had been programmed of it.
    GivesWayInPart,
    /// A mount goes on without pages of the log that the media lost, and tells nobody.
    LossUnnoticed,
    /// What the last write units hold is not made readable at mount: the newest log pages are not found.
    WindowForgotten,
    /// Both copies of a page of the log are written behind at once: a power cut takes both where cells are shared.
    CopiesAtRisk,
    /// A checkpoint has pages of the map that changed in memory, and not those that are on their way to media.
    PageLeftOut,
    /// A unit is taken for readable as soon as it is programmed, within `mw_cunits` of the write pointer.
    WindowIgnored,
    /// A page of the map that the media lost reads as if its blocks had never been written.
    LostPageAsZeroes,
    /// What a page of the map leaves is let go of when it was programmed elsewhere, before the log says so.
    PageFreedEarly,
}

planted_in!(Options, Canary);

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::AnsweredBeforeCommit, "answered-before-commit"),
        (Self::CommitByPart, "commit-by-part"),
        (Self::MovesStale, "moves-stale"),
        (Self::ResetBeforeDurable, "reset-before-durable"),
        (Self::TruncatedTooEarly, "truncated-too-early"),
        (Self::TransactionByPart, "transaction-by-part"),
        (Self::GivesWayInPart, "gives-way-in-part"),
        (Self::LossUnnoticed, "loss-unnoticed"),
        (Self::WindowForgotten, "window-forgotten"),
        (Self::WindowIgnored, "window-ignored"),
        (Self::CopiesAtRisk, "copies-at-risk"),
        (Self::PageLeftOut, "page-left-out"),
        (Self::LostPageAsZeroes, "lost-page-as-zeroes"),
        (Self::PageFreedEarly, "page-freed-early"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        assert!(!Options::default().has_canary(Canary::AnsweredBeforeCommit));
    }
}
