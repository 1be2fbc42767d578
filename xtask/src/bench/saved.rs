//! A saved benchmark run: everything needed to judge its numbers and to run it again.

use super::{machine::Machine, samples::Sample};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use time::OffsetDateTime;

/// Folder of saved runs, from the root.
const FOLDER: &str = "experiments/bench";

/// Digits of the commit in the file's name; as many as git shows.
const COMMIT_DIGITS: usize = 7;

#[derive(Serialize)]
struct Saved<'a> {
    /// Day the runs ended, UTC.
    date: String,
    /// What was run, as a person would type it.
    command: &'a str,
    machine: &'a Machine,
    /// All samples, one list per run, in the order they were printed.
    runs: &'a [Vec<Sample>],
}

/// Writes `experiments/bench/<date>-<commit>.json` and returns its path from the root.
///
/// A second run of the same day and commit gets `-2` at the end: raw data is never overwritten.
/// Errors: the file cannot be written.
pub fn write(
    workspace: &Workspace,
    machine: &Machine,
    command: &str,
    runs: &[Vec<Sample>],
) -> Result<String> {
    let date = OffsetDateTime::now_utc().date().to_string();
    let commit = machine.commit.get(..COMMIT_DIGITS).unwrap_or(&machine.commit);
    let path = free_path(&date, commit, |path| workspace.root.join(path).exists());
    let saved = Saved { date, command, machine, runs };
    let text = serde_json::to_string_pretty(&saved).context("the runs could not be written as JSON")? + "\n";
    fs::create_dir_all(workspace.root.join(FOLDER)).with_context(|| format!("{FOLDER} could not be made"))?;
    fs::write(workspace.root.join(&path), text).with_context(|| format!("{path} could not be written"))?;
    Ok(path)
}

/// The first path of the day and commit that is not taken.
fn free_path(date: &str, commit: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let first = format!("{FOLDER}/{date}-{commit}.json");
    if !is_taken(&first) {
        return first;
    }
    let later = |number: u32| format!("{FOLDER}/{date}-{commit}-{number}.json");
    (2..).map(later).find(|path| !is_taken(path)).expect("nobody saves four billion runs a day")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_runs_are_never_overwritten() {
        let path = free_path("2030-01-02", "abcdef0", |_| false);
        assert_eq!(path, "experiments/bench/2030-01-02-abcdef0.json");
        let taken =
            ["experiments/bench/2030-01-02-abcdef0.json", "experiments/bench/2030-01-02-abcdef0-2.json"];
        let path = free_path("2030-01-02", "abcdef0", |path| taken.contains(&path));
        assert_eq!(path, "experiments/bench/2030-01-02-abcdef0-3.json");
    }

    #[test]
    fn the_day_is_written_as_year_month_day() {
        assert_eq!(OffsetDateTime::UNIX_EPOCH.date().to_string(), "1970-01-01");
    }
}
