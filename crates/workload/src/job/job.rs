//! One job, resolved, and what a whole source asks for.

use super::error::Note;
use super::extension::{Extension, Response, RunHints};
use super::job_options::JobOptions;
use super::pattern::{RateProcess, SubmitMode};
use super::program::ProgramOptions;

/// One job. `numjobs` clones of it are the engine's work.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The section's name, or the one `name=` gives. Two jobs may have the same.
    pub name: String,
    /// The settings.
    pub options: JobOptions,
    /// All settings that hold, inherited ones too, by fio's name, as typed with variables replaced; each name once,
    /// in the order last given. An option given alone has an empty value.
    pub given: Vec<(String, String)>,
    /// As `given`, without what `[global]` set: fio's JSON "job options".
    pub own: Vec<(String, String)>,
    /// Settings of this tool.
    pub extension: Extension,
}

impl Job {
    /// From when latency is counted: as given, else from the intended start if `rate_process` was given or threads of their own
    /// submit at a rate, else from the issue.
    #[must_use]
    pub fn response(&self) -> Response {
        let rated = self.given.iter().any(|(name, _)| name == "rate_process")
            || (self.options.submit_mode == SubmitMode::Offload && self.options.is_rated());
        self.extension.response.unwrap_or(if rated { Response::Intended } else { Response::Issued })
    }

    /// Whether I/O starts at times that do not depend on completions.
    #[must_use]
    pub fn is_open_loop(&self) -> bool {
        self.options.rate_process == RateProcess::Poisson
    }
}

/// The result of reading job files or a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The jobs in order; at least one.
    pub jobs: Vec<Job>,
    /// What does less, or something else, than its words suggest.
    pub notes: Vec<Note>,
    /// What the command line asked of the program.
    pub program: ProgramOptions,
    /// What the source asks of the whole run.
    pub run: RunHints,
    /// The settings of all `[global]` sections: fio's JSON "global options".
    pub global: Vec<(String, String)>,
}
