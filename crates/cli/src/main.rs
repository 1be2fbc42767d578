//! The `ocssd` command.
//!
//! Arguments in, text or JSON out; every verb is a file of its own. Deliberately not here: anything another program could
//! want to call.

mod args;
mod explain;
mod format;
mod inspect;
mod options;
mod presets;
mod run;
mod split;
mod table;
mod target;

use args::{Cli, Verb};
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

/// How a verb ended.
pub enum Outcome {
    /// All well.
    Good,
    /// It ran, and the result is a failure.
    Failed,
}

fn main() -> ExitCode {
    let arguments = split::own_first(&Cli::command(), std::env::args().collect());
    let matches = Cli::command().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match carry_out(cli) {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("ocssd: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn carry_out(cli: Cli) -> anyhow::Result<Outcome> {
    let json = cli.json;
    match cli.command {
        Verb::Run(args) => return run::run(&args, json),
        Verb::Format(args) => format::format(&args, json)?,
        Verb::Inspect(args) => inspect::inspect(&args, json)?,
        Verb::Target(verb) => target::target(verb, json)?,
        Verb::Presets => presets::presets(json),
        Verb::Explain { status, decimal } => explain::explain(&status, decimal, json)?,
        Verb::Options => options::options(json),
        Verb::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "ocssd", &mut std::io::stdout());
        }
        Verb::Man => clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?,
    }
    Ok(Outcome::Good)
}
