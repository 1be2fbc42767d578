//! The `ocssd` command as a library: [`main_with`] is the whole program, with kinds of targets of the caller's own.
//!
//! Arguments in, text or JSON out; every verb is a file of its own. Deliberately not here: anything another program could
//! want to call, but for that one function; and the heap, which is a program's choice.

mod args;
mod conform;
mod drive_facts;
mod drive_failure;
mod experiment;
mod explain;
mod format;
mod inspect;
mod interrupt;
mod kinds;
mod lease;
mod lint;
mod live;
mod open_drive;
mod options;
mod plot;
mod presets;
mod profile;
mod run;
mod serve;
mod shut_down;
mod simulate;
mod split;
mod table;
mod target;
mod targets;
mod workload;

use anyhow::Context;
use args::{Cli, Verb};
use clap::{CommandFactory, FromArgMatches};
use ocssd_targets::registry::Kind;
use std::process::ExitCode;

/// How a verb ended.
enum Outcome {
    /// All well.
    Good,
    /// It ran, and the result is a failure.
    Failed,
    /// A signal ended it, and what there was is kept.
    Interrupted,
}

/// The program `ocssd`, whose verbs know `kinds` beside the project's own: `run`, `simulate`, `serve`, `profile` and `target` take
/// them by name. Reads the process's arguments and says with what status the process is to end.
///
/// # Panics
/// If two kinds have one name.
#[must_use]
pub fn main_with(kinds: Vec<Kind>) -> ExitCode {
    kinds::add(kinds);
    let arguments = split::own_first(&Cli::command(), std::env::args().collect());
    let matches = Cli::command().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match carry_out(cli) {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(interrupt::EXIT_STATUS),
        Err(error) => {
            eprintln!("ocssd: {}", sentence(&error));
            ExitCode::from(2)
        }
    }
}

/// The error and its causes, each told once: some already say what their cause says.
fn sentence(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !told.contains(&cause) {
            told = if told.is_empty() { cause } else { format!("{told}: {cause}") };
        }
    }
    told
}

fn carry_out(cli: Cli) -> anyhow::Result<Outcome> {
    let json = cli.json;
    match cli.command {
        Verb::Run(args) => return run::run(&args, json),
        Verb::Workload(args) => return workload::workload(&args, json),
        Verb::Format(args) => format::format(&args, json)?,
        Verb::Inspect(args) => inspect::inspect(&args, json)?,
        Verb::Target(verb) => target::target(verb, json)?,
        Verb::Presets => presets::presets(json),
        Verb::Targets => targets::targets(json),
        Verb::Explain { status, decimal } => explain::explain(&status, decimal, json)?,
        Verb::Experiment(verb) => return experiment::experiment(verb, json),
        Verb::Simulate(args) => return simulate::simulate(&args, json),
        Verb::Serve(args) => serve::serve(&args, json)?,
        Verb::Plot(args) => plot::plot(&args, json)?,
        Verb::Lint(args) => return lint::lint(&args, json),
        Verb::Profile(args) => return profile::profile(&args, json),
        Verb::Conform(args) => return conform::conform(&args, json),
        Verb::Options => options::options(json),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "ocssd", &mut script);
            table::show(&String::from_utf8_lossy(&script));
        }
        Verb::Man { verb } => table::show(&manual(verb.as_deref())?),
    }
    Ok(Outcome::Good)
}

/// The manual page of the program, or of one verb.
fn manual(verb: Option<&str>) -> anyhow::Result<String> {
    let mut command = Cli::command();
    command.build();
    let page = match verb {
        None => command,
        Some(name) => command.find_subcommand(name).cloned().with_context(|| {
            let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            format!("there is no verb \"{name}\"; the verbs are: {}", verbs.join(", "))
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
