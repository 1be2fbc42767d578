//! The honesty linter: seventeen rules that need no knowledge of the device that was measured.
//!
//! [`read`] makes [`Evidence`] of a text, [`lint`] holds the rules against it. What a format does not say is unknown, and
//! unknown is not wrong: a rule that cannot be judged says what is missing. `docs/lint.md` explains every rule.
//!
//! Deliberately not here: files, terminals, and the papers' numbers.

#![forbid(unsafe_code)]

mod evidence;
mod judgement;
mod read;
mod report;
mod rule;
mod settings;

pub use evidence::{
    Attested, Cell, Clock, DiskCounters, Evidence, Format, Latency, Moved, Order, OwnProfile, OwnRun,
    Percentiles, Side, SideKind, Steady, SyncWork,
};
pub use judgement::{Judgement, Severity};
pub use read::{MEDIA_READ_ROW, ReadError, ReadProblem, read};
pub use report::{Judged, Report, lint};
pub use rule::{RULES, Rule, find_rule};
pub use settings::{Media, Selection, Settings};
