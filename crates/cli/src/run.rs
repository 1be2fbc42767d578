//! `ocssd run`: fio jobs on a drive, and workloads of other interfaces beside them.
//!
//! Jobs are read, the drive opened, its units leased to targets, what will be read is laid out, and the jobs run under
//! the chosen clock; then the result is judged, shown and kept. Each step is a file.

mod assemble;
mod beside;
mod buffered;
mod execute;
mod host_target;
mod jobs;
mod judge;
mod lay_out;
mod limit;
pub mod metrics;
mod present;
mod progress;
mod slice;
pub mod tail;

pub use assemble::{HOST_CPU_DEFAULT, Processors, behind, processors};

pub use progress::Bar;
pub use slice::Slice;

use crate::args::{ClockArg, RunArgs};
use crate::{Outcome, table};
use ocssd_workload::job::{Parsed, RunClock};
use ocssd_workload::results::ClockKind;
use serde_json::json;

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
        if as_json {
            table::print_json(&json!({ "jobs": parsed.jobs.len() }));
        } else {
            table::line(&format!("jobs: {}, nothing wrong with them", parsed.jobs.len()));
        }
        return Ok(Outcome::Good);
    }
    if parsed.program.showcmd {
        let commands: Vec<String> = parsed.jobs.iter().map(ocssd_workload::job::equivalent_command).collect();
        if as_json {
            table::print_json(&json!(commands));
        } else {
            table::line(&commands.join("\n"));
        }
        return Ok(Outcome::Good);
    }
    let choice = choose(args, parsed);
    let mounted = assemble::assemble(args, &choice, parsed)?;
    present::prepare(args, &request)?;
    let finished = if args.beside.is_empty() {
        execute::execute(args, &choice, mounted.with_blocks())?
    } else {
        execute::execute(args, &choice, mounted.with_any())?
    };
    let result = judge::result(args, &choice, &request, &finished);
    present::present(args, &request, &result, &finished, as_json)
}
