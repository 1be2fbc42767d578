//! cargo-mutants, the program that makes mutants and runs tests on them.
//!
//! Chosen because it needs neither a change of the code nor a nightly compiler, and is kept: it was first released in 2021 and
//! last this year. What it generates, tests and cannot do is told at <https://mutants.rs>.

use crate::subcommand::Subcommand;

/// In the version whose list of mutants `experiments/mutants` is about: another may make others.
pub const TOOL: Subcommand = Subcommand { package: "cargo-mutants", version: "27.1.0" };
