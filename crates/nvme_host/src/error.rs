//! Why a served drive cannot be used, in words.

use std::fmt;

/// What a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostErrorKind {
    /// Nobody answers there, or there is no such drive.
    NotFound,
    /// Another host has the drive.
    Busy,
    /// The name, or what is served there, is not what is needed.
    Invalid,
    /// The connection ended, or the server said what it may not.
    Io,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// What a program can act on.
    pub kind: HostErrorKind,
    /// What happened, and what to change.
    pub sentence: String,
}

impl HostError {
    pub(crate) fn new(kind: HostErrorKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    /// The server, or what lies between, broke a rule.
    pub(crate) fn broken(sentence: impl Into<String>) -> Self {
        Self::new(HostErrorKind::Io, sentence)
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for HostError {}
