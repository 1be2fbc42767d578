//! What is wrong with settings, one sentence each, with the place they were written at.

use ocssd_base::Problem;
use std::fmt;

/// One setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// `file:line:column`, or the argument, or the file alone if the setting was not written there.
    pub place: String,
    /// The sentence.
    pub sentence: String,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.sentence)
    }
}

/// Every setting of one source that cannot be used; never empty. Shown one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSettings(pub Vec<BadSetting>);

impl BadSettings {
    pub(super) fn one(place: &str, sentence: impl fmt::Display) -> Self {
        Self(vec![BadSetting { place: place.to_owned(), sentence: sentence.to_string() }])
    }

    /// `problems`, each at the place that `place_of` knows for its field.
    pub(super) fn of(problems: &[Problem], place_of: impl Fn(&str) -> String) -> Self {
        let bad =
            |problem: &Problem| BadSetting { place: place_of(&problem.field), sentence: problem.to_string() };
        Self(problems.iter().map(bad).collect())
    }
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, bad) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{bad}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BadSettings {}
