//! `cargo xtask bench`: runs the benchmark program several times and compares the runs.
//!
//! The program prints one JSON object per line: `{"bench": "..", "metric": "..", "value": 1.5, "unit": ".."}`. All
//! benchmarks run once before any runs again, so that a slow minute of the machine touches all of them. Deliberately
//! not here: what is measured; that is `ocssd-bench`.

mod machine;
mod samples;
mod saved;

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use clap::Args;
use machine::{LoadAverage, Machine};

/// What was typed after `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    /// How often to run everything
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Write raw values, machine and commit to experiments/bench/
    #[arg(long)]
    save: bool,
    /// Given to ocssd-bench as they are
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Where the benchmark program is and how it is built.
const PROGRAM: &[&str] = &["--release", "--package", "ocssd-cli", "--bin", "ocssd-bench"];

/// Builds, runs, prints the table, and saves when asked.
///
/// Errors: the program fails, prints something that is not a sample, or the runs do not measure the same things.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    process::run(workspace.cargo().arg("build").args(PROGRAM))?;
    let load_before = LoadAverage::now()?;
    let mut command = workspace.cargo();
    command.args(["run", "--quiet"]).args(PROGRAM).arg("--").args(&options.arguments);
    let shown = process::line(&command);
    let mut runs = Vec::new();
    for number in 1..=options.runs {
        eprintln!("run {number} of {}: {shown}", options.runs);
        let printed = process::output(&mut command)?;
        runs.push(samples::parse(&printed).with_context(|| format!("run {number} of `{shown}`"))?);
    }
    let rows = samples::rows(&runs)?;
    print!("{}", samples::table(&rows));
    let machine = Machine::read(workspace, load_before)?;
    println!("{} runs on {machine}", options.runs);
    if options.save {
        let path = saved::write(workspace, &machine, &shown, &runs)?;
        println!("saved as {path}");
    }
    Ok(())
}
