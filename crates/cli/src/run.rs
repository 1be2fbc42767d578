//! `ocssd run`: fio jobs on a drive.
//!
//! Jobs are read, the drive opened, its units leased to targets, what will be read is laid out, and the jobs run under
//! the chosen clock; then the result is judged, shown and kept. Each step is a file.

mod assemble;
mod execute;
mod jobs;
mod judge;
mod present;
mod progress;

use crate::Outcome;
use crate::args::{ClockArg, RunArgs};
use ocssd_workload::job::{OutputFormat, Parsed, RunClock};
use ocssd_workload::results::ClockKind;

/// The drive and the clock of a run: the command line's choice, else the job file's, else the default.
pub struct Choice {
    drive: String,
    clock: ClockKind,
}

fn choose(args: &RunArgs, parsed: &Parsed) -> Choice {
    let drive = args.drive.clone().or_else(|| parsed.run.drive.clone());
    let clock = match (args.clock, parsed.run.clock) {
        (Some(ClockArg::Wall), _) | (None, Some(RunClock::Wall)) => ClockKind::Wall,
        (Some(ClockArg::Virtual), _) | (None, Some(RunClock::Virtual) | None) => ClockKind::Virtual,
    };
    Choice { drive: drive.unwrap_or_else(|| ocssd_flash::presets::DEFAULT.to_owned()), clock }
}

/// Runs what was asked for.
pub fn run(args: &RunArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let request = jobs::read(&args.fio)?;
    let parsed = &request.parsed;
    if parsed.program.parse_only {
        println!("{} jobs, nothing wrong with them.", parsed.jobs.len());
        return Ok(Outcome::Good);
    }
    if parsed.program.showcmd {
        for job in &parsed.jobs {
            println!("{}", ocssd_workload::job::equivalent_command(job));
        }
        return Ok(Outcome::Good);
    }
    let choice = choose(args, parsed);
    let assembled = assemble::assemble(args, &choice, parsed)?;
    let finished = execute::execute(args, &choice, assembled)?;
    let result = judge::result(args, &choice, &request, &finished);
    let formats = if as_json { vec![OutputFormat::JsonPlus] } else { parsed.program.output_formats.clone() };
    present::present(args, &request, &result, &finished, &formats)
}
