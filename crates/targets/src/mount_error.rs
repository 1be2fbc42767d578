//! Why a target that keeps itself on media cannot be mounted: the same words for each.

use ocssd_lightnvm::PowerCut;
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
    /// The power went.
    PowerCut(PowerCut),
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit(sentence) | Self::Unreadable(sentence) => f.write_str(sentence),
            Self::NotThere(sentence) => f.write_str(sentence),
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
