//! What a rule says of one cell.

use std::fmt;
use std::str::FromStr;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The number may be shown, but only with this said beside it.
    Label,
    /// Look at it before using the number.
    Warn,
    /// The number is not what it says it is.
    Fail,
}

impl Severity {
    /// The word for people and programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Severity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Label, Self::Warn, Self::Fail]
            .into_iter()
            .find(|level| level.word() == text)
            .ok_or_else(|| format!("expected label, warn or fail, but found `{text}`"))
    }
}

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The rule holds.
    Pass,
    /// It does not; the sentence gives the numbers.
    Finding(Severity, String),
    /// It may or may not hold: this is missing.
    NotJudged(String),
    /// The rule is about something else, and why.
    NotApplicable(String),
}

impl Judgement {
    /// A finding.
    pub(super) fn fail(sentence: impl Into<String>) -> Self {
        Self::Finding(Severity::Fail, sentence.into())
    }

    /// A finding.
    pub(super) fn warn(sentence: impl Into<String>) -> Self {
        Self::Finding(Severity::Warn, sentence.into())
    }

    /// A finding.
    pub(super) fn label(sentence: impl Into<String>) -> Self {
        Self::Finding(Severity::Label, sentence.into())
    }

    /// What is missing.
    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::NotJudged(what.into())
    }

    /// Why the rule has nothing to say.
    pub(super) fn not_about(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }
}
