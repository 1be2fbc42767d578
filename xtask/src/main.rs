//! `cargo xtask`: the project's own commands.
//!
//! `test` runs everything CI runs, `tidy` is the project's linter, `bench` measures and records, `mutants` asks the tests what
//! they find, `c-header` and `install-c` are for the C library, `dist` packs a release.
//! Nothing here ships to users, and no crate depends on it.
//! Deliberately not here: what the tested programs do. This crate only starts them and judges their output.

mod bench;
mod c_library;
mod ci;
mod dist;
mod mutants;
mod process;
mod subcommand;
mod tidy;
mod workspace;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use workspace::Workspace;

/// What was typed after `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run everything CI runs, step by step, and stop at the first failure
    Test(ci::Options),
    /// Check the rules of STYLE.md that a program can check
    Tidy,
    /// Run the benchmarks several times and print median, minimum and maximum
    Bench(bench::Options),
    /// Put small bugs into ftl and targets one at a time, and see whether the tests find them
    Mutants(mutants::Options),
    /// Write the C library's header and manual page from its source
    CHeader,
    /// Build the C library and install it with header, pkg-config file and manual page
    InstallC(c_library::InstallOptions),
    /// Pack program, completions, manual pages, C library and documentation into one archive
    Dist(dist::Options),
}

fn main() -> ExitCode {
    // Printed by hand: a person reads the sentence, not the backtrace anyhow adds when the environment asks for one.
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    let workspace = Workspace::find()?;
    match verb {
        Verb::Test(options) => ci::run(&workspace, &options),
        Verb::Tidy => tidy::run(&workspace),
        Verb::Bench(options) => bench::run(&workspace, &options),
        Verb::Mutants(options) => mutants::run(&workspace, &options),
        Verb::CHeader => c_library::write(&workspace),
        Verb::Dist(options) => dist::run(&workspace, &options).map(drop),
        Verb::InstallC(options) => c_library::install(&workspace, &options),
    }
}
