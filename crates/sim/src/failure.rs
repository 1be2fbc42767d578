//! A run that failed: where, and why.
//!
//! Deliberately not here: making it shorter (`shrink`).

use crate::contract::Broken;
use std::fmt;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A promise was broken.
    Broken(Broken),
    /// An assertion failed.
    Panic {
        /// What it said.
        message: String,
        /// Where, as `file:line`.
        place: String,
    },
    /// A target that was there could not be mounted again.
    NotMounted(String),
}

impl Cause {
    /// True if `other` is the same failure as far as one can tell: the same assertion, or the same rule broken.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Panic { place: a, .. }, Self::Panic { place: b, .. }) => a == b,
            (Self::Broken(a), Self::Broken(b)) => a.rule == b.rule,
            (Self::NotMounted(_), Self::NotMounted(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(broken) => broken.fmt(f),
            Self::Panic { message, place } => write!(f, "assertion at {place}: {message}"),
            Self::NotMounted(sentence) => write!(f, "it could not be mounted again: {sentence}"),
        }
    }
}

impl From<Broken> for Cause {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step it failed in.
    pub step: usize,
    /// Why.
    pub cause: Cause,
    /// The target's state in words, if there was a target.
    pub state: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_alike_by_assertion_or_rule_and_not_by_their_words() {
        let broken = |rule, found: &str| Cause::Broken(Broken::new(rule, "block 5 holds write 3", found));
        let panic =
            |place: &str, message: &str| Cause::Panic { message: message.into(), place: place.into() };
        let size = broken("size", "zeroes");
        for (a, b, alike) in [
            (&size, broken("size", "write 2"), true),
            (&size, broken("answered", "zeroes"), false),
            (&size, Cause::NotMounted("too small".into()), false),
            (&panic("a.rs:1", "3 of 2"), panic("a.rs:1", "9 of 2"), true),
            (&panic("a.rs:1", "3 of 2"), panic("a.rs:2", "3 of 2"), false),
        ] {
            assert_eq!((a.is_like(&b), b.is_like(a)), (alike, alike), "{a}; {b}");
        }
    }
}
