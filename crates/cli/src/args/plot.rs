//! What `ocssd plot` is asked for.

use clap::Args;
use std::path::PathBuf;

/// What stands below its options.
pub const PLOT_HELP: &str = "\
A line is a job; a percentile is drawn that rests on ten I/Os beyond it or more.

Examples:
  ocssd run
  ocssd plot ocssd-results/quickstart.json
  ocssd plot ocssd-results/quickstart.json --job reader --out reader.png";

/// `ocssd plot`.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// Results: of `ocssd run`, or of fio as json+
    #[arg(value_name = "RESULT", required = true)]
    pub results: Vec<PathBuf>,
    /// Draw this job only; may be repeated
    #[arg(long, value_name = "NAME")]
    pub job: Vec<String>,
    /// The picture: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", default_value = "latency.svg")]
    pub out: PathBuf,
    /// What stands above it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// What stands below the title
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub subtitle: String,
}
