//! What a mount does where the media lost pages of the log that were durable.
//!
//! Requests were answered by what those pages said, and by what stands behind them. Deliberately not here: how the loss is
//! noticed ([`ocssd_ftl::log::Replayed::lost_before`]).

use crate::mount_error::MountError;
use crate::option_value::word;
use ocssd_ftl::log::Lsn;
use std::fmt;

/// What a mount does then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostLog {
    /// It fails, and says what is lost.
    #[default]
    Refuse,
    /// It goes on with what the log says before the first page that is lost: what was answered after that is gone, and blocks
    /// that were moved or written after it are zero, for their old places were reset.
    Drop,
}

impl fmt::Display for LostLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refuse => "refuse",
            Self::Drop => "drop",
        })
    }
}

impl std::str::FromStr for LostLog {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        word("lost_log", text, &[("refuse", Self::Refuse), ("drop", Self::Drop)])
    }
}

impl LostLog {
    /// Whether a mount goes on with a log that ends before `end`, of which all pages before `lost_before` were durable. `asked`
    /// is `None` for targets that cannot.
    ///
    /// # Errors
    /// [`MountError::LogLost`], if pages are lost and it does not.
    pub fn judge(asked: Option<Self>, end: Lsn, lost_before: Option<Lsn>) -> Result<(), MountError> {
        match lost_before.filter(|_| asked != Some(Self::Drop)) {
            Some(before) => {
                let can_drop = asked.is_some();
                Err(MountError::LogLost { first: end.0, last: before.0 - 1, can_drop })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_refused_in_words_unless_it_is_accepted() {
        assert_eq!("drop".parse(), Ok(LostLog::Drop));
        assert_eq!(LostLog::default().to_string().parse(), Ok(LostLog::Refuse));
        assert!("keep".parse::<LostLog>().is_err_and(|why| why.contains("\"refuse\" or \"drop\"")));
        let judge = |asked, lost_before| LostLog::judge(asked, Lsn(7), lost_before);
        assert_eq!(judge(Some(LostLog::Refuse), None), Ok(()));
        assert_eq!(judge(Some(LostLog::Drop), Some(Lsn(9))), Ok(()));
        for (asked, offers) in [(Some(LostLog::Refuse), true), (None, false)] {
            let words = judge(asked, Some(Lsn(9))).expect_err("pages 7 and 8 are lost").to_string();
            assert!(words.contains("page 7 of the log cannot be read"), "{words}");
            assert!(words.contains("to page 8") && words.contains("lost_log=drop") == offers, "{words}");
        }
    }
}
