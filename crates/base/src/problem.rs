//! What is wrong with a setting, in words: the field, the value found, and what would be valid.
//!
//! Deliberately not here: reading settings. Whoever reads them collects these and shows all at once.

use std::fmt;

/// One setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The setting's name as the user writes it.
    pub field: String,
    /// The value found.
    pub found: String,
    /// What would be valid.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, but {}", self.field, self.found, self.expected)
    }
}

/// Every unusable setting of one source, never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Notes a problem unless `holds`.
    pub fn require(&mut self, holds: bool, field: &str, found: impl fmt::Display, expected: &str) {
        if !holds {
            let (field, found, expected) = (field.to_owned(), found.to_string(), expected.to_owned());
            self.0.push(Problem { field, found, expected });
        }
    }

    /// Nothing if no problem was noted.
    ///
    /// # Errors
    /// All the problems, in the order they were found.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
