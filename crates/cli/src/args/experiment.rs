//! The command line of `ocssd experiment`.
//!
//! Deliberately not here: what an experiment is (`crate::experiment`).

use clap::Subcommand;
use std::path::PathBuf;

/// `ocssd experiment`.
#[derive(Debug, Subcommand)]
pub enum ExperimentVerb {
    /// List the experiments
    List,
    /// Run one, and report it
    Run {
        /// Its name, as fast17-f8
        id: String,
        /// Few points and short times
        #[arg(long)]
        small: bool,
        /// Seed of all randomness
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Folder for rows, page and pictures [default: ocssd-results/experiments/ID]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// No progress
        #[arg(long)]
        quiet: bool,
    },
    /// Say of every claim what kept rows say, as a table in Markdown
    Claims {
        /// Folder with a folder of each experiment
        #[arg(long, value_name = "DIR", default_value = "experiments")]
        folder: PathBuf,
        /// Put the table into this document, between its marks
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// Report again what a run kept, without running
    Report {
        /// Its name
        id: String,
        /// Folder of the run [default: ocssd-results/experiments/ID]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}
