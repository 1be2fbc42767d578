//! Canaries: bugs planted on purpose, each of which the simulator must find; one that finds nothing is broken.
//!
//! A bug is planted only in builds with the feature `canaries`, which is off by default and which only the simulator's
//! tests ask for, and there only in instances with the option `canary=NAME`. Otherwise `has_canary` is a constant, and
//! nothing of a bug is compiled. Deliberately not here: how soon each is found (`docs/simulate.md`).

use super::options::Options;
use super::state::Pblk;
use crate::planted::planted_in;
use ocssd_ftl::Slot;

/// A planted bug: what it does, and the real defect it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A flush does not wait for buffer units in flight, only for the drive's cache: acknowledged before it is durable.
    FlushTooEarly,
    /// A write with FUA is answered like any other: a flag that is taken and ignored.
    FuaIgnored,
    /// What a flush was promised becomes padding once it is superseded in the buffer, though its successor is not durable:
    /// data that looks dead is dropped.
    FlushedBecomesPadding,
    /// Content and tag of what a user reads are not looked at: no end-to-end check.
    ReadUnchecked,
    /// Pieces of a checkpoint are taken as they are at mount: no checksum of metadata.
    CheckpointUnchecked,
    /// A checkpoint's header is written without waiting for what it names: no barrier before a commit record.
    CheckpointUnordered,
    /// Lines dead by garbage collection or overwriting are reset without a barrier: reset before the copy is durable.
    ResetWithoutBarrier,
    /// A line that died by a discard is reset before the discard's record is on media: an older version comes back.
    ResetBeforeDiscard,
    /// A line is reset although it is being read: no reference count.
    ResetUnderReads,
    /// The durable version of a block dies when the next one enters the buffer, not when that is programmed, as in Linux's pblk.
    OverwrittenTooEarly,
    /// The same of a sector that garbage collection copies: it dies when the copy enters the buffer.
    MovedTooEarly,
    /// Garbage collection maps the sector it moved although a newer one was written meanwhile: a lost update.
    MovesStale,
    /// Sectors are read from media as soon as they are written, within `mw_cunits` of the write pointer.
    WindowIgnored,
    /// A place that was written and reads as blank is taken for one of zeroes: a lost write nobody looks for.
    BlankIsZeroes,
    /// A write or reset that the drive did not carry out is taken for a failure of its chunk: not sent again.
    FailedCommandIsOfChunk,
    /// A write that failed is treated as one that succeeded: a status nobody looks at.
    FailedWriteCommits,
    /// Discards are not written down: as in Linux's pblk, but where they should be durable.
    DiscardUnrecorded,
    /// Discards found at mount take away nothing: replay of one kind of record is missing.
    DiscardNotReplayed,
    /// Of several versions found at mount the oldest wins: replay in the wrong order.
    OldestWins,
    /// Map entries that point to lines reset since the checkpoint are kept at mount: no check of generations.
    StaleGeneration,
    /// No line is moved for its wear: cold data keeps its lines for ever.
    WearIgnored,
    /// Every shard of the map but the first is written to a checkpoint as the first: an index that nobody used.
    ShardMisplaced,
    /// A shard of the map that a checkpoint has is taken as unchanged by the next one, whatever became of it.
    ChangedShardKept,
    /// A discard that finds the table of records full is not written down.
    DiscardsOverflow,
    /// A checkpoint is begun in the middle of a discard whose record says that all of it is gone.
    CheckpointTearsDiscard,
    /// Reads do not ask whether there is a place for one more command: a bound off by one.
    CommandsOverrun,
    /// The instance takes no more writes after the first one the media failed: an error that costs a unit taken for the end.
    ReadOnlyAtFailedWrite,
    /// One sector that cannot be read costs garbage collection all that was read with it: the status of a command taken for that
    /// of each of its sectors.
    LossSpreads,
    /// What garbage collection could not read is moved as zeroes that are valid: loss without an error.
    LostBecomesZeroes,
    /// Data superseded by something durable are written behind a checkpoint, where they count as newer.
    SupersededBehindCheckpoint,
    /// A checkpoint does not wait for the record of a discard that waits with older data of its blocks, and these are written
    /// behind it.
    CheckpointAheadOfDiscard,
    /// What a reset gives back is not told to the limiter: users wait for space that is there.
    SpaceNotGivenBack,
    /// The barrier of one flush answers those behind it too, whose writes are not on media: a queue emptied too far.
    FlushAnswersAll,
    /// The size of an instance is what the options of a mount come to, not what its heads say.
    SizeByOptions,
    /// A timer of garbage collection is due again at once, and nothing comes of it: an instance that never settles.
    NeverSettles,
    /// A sector that garbage collection could not read in the first try is taken for lost.
    FailedReadIsLoss,
    /// Of two places with one version of a block the one in the younger line is taken at mount, whether or not it can be read: a
    /// reset that stayed half done leaves a tail, and not what it names.
    TwinsUnread,
    /// Users are told of blocks on a dead unit that nobody wrote them.
    GoneIsUnwritten,
    /// Chunks are not filled up at mount until what was written last can be read: what is in the window is forgotten.
    WindowForgotten,
    /// What lies behind a write pointer that is reported too low is not looked for.
    LowReportBelieved,
    /// The report of an OPEN chunk is believed once: the drive is not asked to look at it, and one that is written less far than it
    /// said is not filled again.
    ReportBelieved,
    /// A drive that was caught with a report that is not true is believed the others: a chunk that it shows as FREE or OFFLINE is
    /// not written to.
    HiddenReportBelieved,
    /// A drive that fails a write is taken for one that closed the chunk: the buffer unit goes out again, elsewhere, for ever.
    DriveErrorIsEarlyClose,
    /// A barrier that the drive failed counts: what was not synced is said to be durable.
    BarrierUnchecked,
    /// Of neighbours that were copied together the last stays where it was in the map, though its copy is valid: a run that is one
    /// too short in the map.
    RunCutShort,
    /// Of neighbours that die together the last stays valid: a run that is one too short among the valid places.
    PlaceLeftValid,
    /// Garbage collection is not asked to go on when one of its reads ends: a machine whose bit nobody sets.
    GcNotDue,
    /// Padding that the drive failed at mount is not missed: what it was to make readable is forgotten.
    PaddingUnchecked,
}

planted_in!(Options, Canary);

impl Pblk {
    /// True if this bug is planted in the instance.
    #[inline]
    pub(super) fn has_canary(&self, canary: Canary) -> bool {
        self.options.has_canary(canary)
    }

    /// Where `canary` is planted, the durable version of the block in `slot` is let go of before there is another.
    #[inline]
    pub(super) fn let_go_early(&mut self, canary: Canary, slot: Slot) {
        if self.has_canary(canary)
            && let Some(previous) = self.write_buffer.entry_mut(slot).previous.take()
        {
            self.invalidate(previous);
        }
    }
}

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::FlushTooEarly, "flush-too-early"),
        (Self::FuaIgnored, "fua-ignored"),
        (Self::FlushedBecomesPadding, "flushed-becomes-padding"),
        (Self::ReadUnchecked, "read-unchecked"),
        (Self::CheckpointUnchecked, "checkpoint-unchecked"),
        (Self::CheckpointUnordered, "checkpoint-unordered"),
        (Self::ResetWithoutBarrier, "reset-without-barrier"),
        (Self::ResetBeforeDiscard, "reset-before-discard"),
        (Self::ResetUnderReads, "reset-under-reads"),
        (Self::OverwrittenTooEarly, "overwritten-too-early"),
        (Self::MovedTooEarly, "moved-too-early"),
        (Self::MovesStale, "moves-stale"),
        (Self::WindowIgnored, "window-ignored"),
        (Self::FailedWriteCommits, "failed-write-commits"),
        (Self::DiscardUnrecorded, "discard-unrecorded"),
        (Self::DiscardNotReplayed, "discard-not-replayed"),
        (Self::OldestWins, "oldest-wins"),
        (Self::StaleGeneration, "stale-generation"),
        (Self::WearIgnored, "wear-ignored"),
        (Self::WindowForgotten, "window-forgotten"),
        (Self::LowReportBelieved, "low-report-believed"),
        (Self::ReportBelieved, "report-believed"),
        (Self::HiddenReportBelieved, "hidden-report-believed"),
        (Self::ShardMisplaced, "shard-misplaced"),
        (Self::ChangedShardKept, "changed-shard-kept"),
        (Self::DiscardsOverflow, "discards-overflow"),
        (Self::CheckpointTearsDiscard, "checkpoint-tears-discard"),
        (Self::CommandsOverrun, "commands-overrun"),
        (Self::DriveErrorIsEarlyClose, "drive-error-is-early-close"),
        (Self::BarrierUnchecked, "barrier-unchecked"),
        (Self::PaddingUnchecked, "padding-unchecked"),
        (Self::ReadOnlyAtFailedWrite, "read-only-at-failed-write"),
        (Self::LossSpreads, "loss-spreads"),
        (Self::LostBecomesZeroes, "lost-becomes-zeroes"),
        (Self::SupersededBehindCheckpoint, "superseded-behind-checkpoint"),
        (Self::CheckpointAheadOfDiscard, "checkpoint-ahead-of-discard"),
        (Self::SpaceNotGivenBack, "space-not-given-back"),
        (Self::FlushAnswersAll, "flush-answers-all"),
        (Self::SizeByOptions, "size-by-options"),
        (Self::NeverSettles, "never-settles"),
        (Self::BlankIsZeroes, "blank-is-zeroes"),
        (Self::FailedCommandIsOfChunk, "failed-command-is-of-chunk"),
        (Self::FailedReadIsLoss, "failed-read-is-loss"),
        (Self::TwinsUnread, "twins-unread"),
        (Self::GoneIsUnwritten, "gone-is-unwritten"),
        (Self::GcNotDue, "gc-not-due"),
        (Self::RunCutShort, "run-cut-short"),
        (Self::PlaceLeftValid, "place-left-valid"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        let options = Options::default();
        assert!(!options.has_canary(Canary::FlushTooEarly));
    }

    #[cfg(not(feature = "canaries"))]
    #[test]
    fn a_build_without_canaries_refuses_the_option() {
        let error = Options::default().set("canary", "flush-too-early").expect_err("no such option");
        assert!(error.starts_with("pblk has no option \"canary\""), "{error}");
    }

    #[cfg(feature = "canaries")]
    #[test]
    fn every_canary_is_called_by_its_name_and_no_other() {
        let mut options = Options::default();
        for &(canary, name) in Canary::ALL {
            assert_eq!(options.set("canary", name), Ok(()));
            for &(other, _) in Canary::ALL {
                assert_eq!(options.has_canary(other), other == canary, "{name}");
            }
        }
        let error = options.set("canary", "polly").expect_err("no such canary");
        assert!(error.contains("fua-ignored"), "{error}");
    }
}
