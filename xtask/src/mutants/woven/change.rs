//! What a mutant changes: a place of a file, and what is put there instead.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Kinds of changes, in the words of cargo-mutants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Genre {
    /// A function returns a value at once.
    FnValue,
    /// An operator with two operands is another one.
    BinaryOperator,
    /// An operator with one operand is gone.
    UnaryOperator,
    /// An arm of a `match` is gone.
    MatchArm,
    /// The guard of an arm is always true, or never.
    MatchArmGuard,
    /// A field of a struct comes from its base.
    StructField,
}

/// A place, as editors count: lines and columns from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// From the first character to the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub start: Position,
    pub end: Position,
}

/// What a mutant changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub genre: Genre,
    pub span: Span,
    pub replacement: String,
}

impl Change {
    /// Its place in bytes; `lines` are the beginnings of the lines of the text.
    pub fn bytes(&self, text: &str, lines: &[usize]) -> Option<Range<usize>> {
        let byte = |position: Position| {
            let start = *lines.get(position.line.checked_sub(1)?)?;
            let column = position.column.checked_sub(1)?;
            text[start..].char_indices().map(|(at, _)| start + at).chain([text.len()]).nth(column)
        };
        Some(byte(self.span.start)?..byte(self.span.end)?)
    }
}
