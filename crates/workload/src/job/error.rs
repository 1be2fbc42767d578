//! What is wrong with a job file or command line, and what the user should know although nothing is wrong.
//!
//! All errors of one source are collected and shown together. Deliberately not here: finding them.

use std::fmt;

/// Where a setting was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The job file's name, or `command line`.
    pub file: String,
    /// The line, or the argument on a command line, counted from 1; 0 when none is meant.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        Ok(())
    }
}

/// One setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// Where it was written.
    pub place: Place,
    /// The section (job name or `global`); empty outside of any.
    pub section: String,
    /// The option's name as written; empty when the error is not about one option.
    pub option: String,
    /// The value found; empty if none was given.
    pub value: String,
    /// One sentence without its final stop: what is valid, and what to change.
    pub message: String,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.section.is_empty() {
            write!(f, "[{}] ", self.section)?;
        }
        if !self.option.is_empty() {
            f.write_str(&self.option)?;
            if !self.value.is_empty() {
                write!(f, "={}", self.value)?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for JobError {}

/// Every error of one source in the order found; never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobErrors(pub Vec<JobError>);

impl JobErrors {
    /// Adds an error unless the same one is known (a `[global]` setting is tried for every job).
    pub(super) fn push(&mut self, error: JobError) {
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    /// Adds an error that is about no single option.
    pub(super) fn push_general(&mut self, place: &Place, section: &str, message: impl Into<String>) {
        self.push(JobError {
            place: place.clone(),
            section: section.to_owned(),
            option: String::new(),
            value: String::new(),
            message: message.into(),
        });
    }
}

impl fmt::Display for JobErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobErrors {}

/// Something accepted that does less, or something else, than its words suggest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The section it was given in (job name or `global`).
    pub job: String,
    /// fio's name of the option.
    pub option: String,
    /// The value, empty if none was given.
    pub value: String,
    /// What happens instead, one sentence without its final stop.
    pub sentence: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.job, self.option)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ": {}", self.sentence)
    }
}
