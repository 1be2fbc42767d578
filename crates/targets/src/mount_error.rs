//! Why a target that keeps itself on media cannot be mounted: the same words for each.

use crate::read_again::is_of_media;
use ocssd_lightnvm::{ChunkDescriptor, Completion, PowerCut, Status};
use std::fmt;

/// Why there is no instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountError {
    /// The units or the options cannot carry one: the sentence says what would.
    DoesNotFit(String),
    /// There is none on the units, and none was to be made: the sentence says what to do.
    NotThere(&'static str),
    /// What is there cannot be read by this program: the sentence says why.
    Unreadable(String),
    /// The media lost pages of the log, from this to that one, that were durable.
    LogLost {
        /// The first that is missing.
        first: u64,
        /// The last that is known to have been durable.
        last: u64,
        /// The target can go on without them, if it is asked to.
        can_drop: bool,
    },
    /// The drive itself failed what the mount asked. To go on would be to lose what it could not read or make readable.
    Drive {
        /// What was asked: "a read".
        what: &'static str,
        /// How it ended.
        status: Status,
    },
    /// What the drive reports of a chunk cannot be true, also after it was told to write there.
    Report {
        /// What it reports.
        report: ChunkDescriptor,
        /// Why that cannot be: "there is content behind its write pointer".
        why: &'static str,
    },
    /// The power went.
    PowerCut(PowerCut),
}

/// Looks whether the drive itself failed one of the commands that a mount sent.
///
/// # Errors
/// [`MountError::Drive`], if it did: `what` the commands were, and the first such status.
pub fn look_at_drive(what: &'static str, completions: &[Completion]) -> Result<(), MountError> {
    let failed =
        completions.iter().map(|completion| completion.status).find(|status| status.is_drive_failure());
    assert!(failed.is_none_or(|status| !status.has_data()), "a command failed and has data");
    failed.map_or(Ok(()), |status| Err(MountError::Drive { what, status }))
}

/// Looks whether the media could be asked for what a mount wanted to read.
///
/// # Errors
/// [`MountError::Drive`], if a read failed in every try, and nobody knows whether the media have it.
pub fn look_at_reads(completions: &[Completion]) -> Result<(), MountError> {
    let failed = completions.iter().map(|completion| completion.status).find(|&status| !is_of_media(status));
    failed.map_or(Ok(()), |status| Err(MountError::Drive { what: "a read", status }))
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit(sentence) | Self::Unreadable(sentence) => f.write_str(sentence),
            Self::NotThere(sentence) => f.write_str(sentence),
            Self::LogLost { first, last, can_drop } => {
                write!(
                    f,
                    "page {first} of the log cannot be read, though the log was written up to page {last}: to go on would be to \
                     forget what was answered since, without a word; "
                )?;
                f.write_str(if *can_drop {
                    "mount with lost_log=drop to do so: blocks that were moved or written since then are older, or errors"
                } else {
                    "nothing was taken away, and to use the units anew the target must be removed and its chunks reset"
                })
            }
            Self::Drive { what, status } => write!(
                f,
                "the drive failed {what} with {status}, and without it the mount would miss what was written; nothing is lost, \
                 mount again once the drive works"
            ),
            Self::Report { report: ChunkDescriptor { state, first, sectors, write_pointer, .. }, why } => {
                write!(
                    f,
                    "the drive reports of the chunk of {sectors} sectors at {:#x} that it is {state}, ",
                    first.0
                )?;
                match write_pointer {
                    Some(at) => write!(f, "with its write pointer at {at}, ")?,
                    None => f.write_str("without a write pointer, ")?,
                }
                write!(
                    f,
                    "but {why}; nothing was lost by this mount, and another after a power cycle may find better reports"
                )
            }
            Self::PowerCut(cut) => cut.fmt(f),
        }
    }
}

impl std::error::Error for MountError {}

impl From<PowerCut> for MountError {
    fn from(cut: PowerCut) -> Self {
        Self::PowerCut(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_its_own_sentence() {
        let cut = PowerCut { at: ocssd_base::Nanos::from_secs(3) };
        assert_eq!(MountError::from(cut), MountError::PowerCut(cut));
        for (error, sentence) in [
            (MountError::DoesNotFit("a".to_owned()), "a".to_owned()),
            (MountError::Unreadable("b".to_owned()), "b".to_owned()),
            (MountError::NotThere("c"), "c".to_owned()),
            (MountError::PowerCut(cut), cut.to_string()),
        ] {
            assert_eq!(error.to_string(), sentence);
        }
    }
}
