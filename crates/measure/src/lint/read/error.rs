//! Why a file is no result.

use thiserror::Error;

/// What is wrong with a file, and with which.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: {problem}")]
pub struct ReadError {
    /// The file.
    pub name: String,
    /// What is wrong.
    pub problem: ReadProblem,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadProblem {
    /// Bytes that are no text.
    #[error("expected text, but byte {0} is not UTF-8; give the result itself, not an archive of it")]
    NotText(usize),
    /// Neither JSON nor a table.
    #[error(
        "expected JSON (of `fio --output-format=json+` or `ocssd run`) or a CSV table with a column `name`, but found {0}"
    )]
    NotAResult(String),
    /// JSON that ends early or is broken.
    #[error("expected JSON to its end, but found {0}; the file may be cut short: copy it again")]
    BrokenJson(String),
    /// JSON of something else.
    #[error("expected the key `jobs` of fio's JSON or a list of rows, but found {0}")]
    OtherJson(String),
    /// A result of nothing.
    #[error("expected at least one job, but `jobs` is empty; fio may have stopped before it ran any")]
    NoJobs,
    /// A job without its numbers.
    #[error("expected an object with `read` or `write` as job {index} of `jobs`, but found {found}")]
    NotAJob {
        /// Its index.
        index: usize,
        /// What it is.
        found: String,
    },
    /// A table with a wrong header.
    #[error("expected columns out of {known}, but found the column `{found}`; remove or rename it")]
    UnknownColumn {
        /// The column.
        found: String,
        /// Those there are.
        known: String,
    },
    /// A table with a wrong value.
    #[error("row {row}, column `{column}`: expected {expected}, but found `{found}`")]
    BadValue {
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// What may stand there.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// A table that cannot be taken apart.
    #[error("expected a table with as many fields in each row as in its header, but found: {0}")]
    BrokenTable(String),
    /// A table of nothing.
    #[error("expected at least one row below the header, but found none")]
    NoRows,
}
