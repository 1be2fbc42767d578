//! fio job files and fio command lines as input: text in, typed and resolved jobs out.
//!
//! [`parse_job_file`] and [`parse_command_line`] are the two ways in; files and the environment come by callback.
//! Every option of fio 3.33 is one row of one table ([`option_table`]): carried out, accepted with a printed note, or
//! refused by name; an unknown one is an error with the nearest name. All errors of a source are returned together.
//!
//! Deliberately not here: running a job, cloning it `numjobs` times, and anything that needs the target's size.

mod apply;
mod check;
mod conflict;
mod document;
mod draft;
mod effect;
mod equivalent;
mod error;
mod expression;
mod extension;
mod file_name;
mod fuzz;
mod ioengine;
mod iolog;
#[expect(clippy::module_inception, reason = "the file is named by the type in it")]
mod job;
mod job_options;
mod list;
mod number;
mod parse;
mod pattern;
mod priority;
mod program;
mod resolve;
mod section;
mod seed;
mod steady;
mod steady_rounds;
mod suggest;
mod table;
#[cfg(test)]
mod tests;
mod variable;
mod word;

pub use check::{Checksum, ContinueOnError, SyncMode, Verify, VerifyContent};
pub use document::option_markdown;
pub use equivalent::{equivalent_arguments, equivalent_command};
pub use error::{JobError, JobErrors, Note, Place};
pub use extension::{Extension, IndexRange, Layout, Placement, Response, RunClock, RunHints};
pub use fuzz::fuzz_parse;
pub use ioengine::IoEngine;
pub use iolog::{IologAction, IologError, IologOp, ReplayOptions, parse_iolog};
pub use job::{Job, Parsed};
pub use job_options::{
    CompressOptions, DEFAULT_PERCENTILES, ExitOptions, FileNames, FlowOptions, JobOptions,
    LatencyTargetOptions, Logs, PercentileChoice, RateFloor, Replays, ResetRule,
};
pub(crate) use number::{KbBase, parse_integer};
pub use parse::{names_nothing, parse_command_line, parse_job_file};
pub use pattern::{
    Amount, BlockSizes, ByDirection, Distribution, ExitWhat, FileOrder, FileSet, Operations, Order, Pattern,
    RateProcess, SplitEntry, SubmitMode, ThinkTime, ZONE_SHARES_MAX, ZoneMode, ZoneShare, ZoneShares,
};
pub use priority::{IoPriority, PriorityOptions, PriorityShare};
pub use program::{Eta, OutputFormat, ProgramClass, ProgramOptions, ProgramRow, program_table};
pub use steady::{SteadyCriterion, SteadyLimit, SteadyMetric, SteadyOptions, SteadyRule};
pub use steady_rounds::{RoundRule, SteadyRounds};
pub(crate) use suggest::did_you_mean;
pub use table::{Class, OptionRow, Shape, find_option, option_table};
