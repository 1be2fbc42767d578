//! Where the jobs come from: files, fio options, or the built-in quickstart.

use anyhow::Context;
use ocssd_workload::job::{Parsed, names_nothing, parse_command_line};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

/// The job that runs when none is named: the same file a reader finds among the examples.
const QUICKSTART: &str = include_str!("../../../../examples/quickstart.fio");
const QUICKSTART_NAME: &str = "examples/quickstart.fio";

/// What to run, and what to call it.
pub struct Request {
    /// The jobs.
    pub parsed: Parsed,
    /// The name of the result.
    pub name: String,
}

/// A number that is another in every run: the standard library keys its hash tables from the system's randomness.
fn fresh_seed() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// Reads the jobs.
pub fn read(fio: &[String]) -> anyhow::Result<Request> {
    let names_jobs = !names_nothing(fio);
    let mut arguments = fio.to_vec();
    if !names_jobs {
        arguments.push(QUICKSTART_NAME.to_owned());
    }
    let parsed = parse_command_line(&arguments, &|name| std::env::var(name).ok(), &|path| {
        if path == QUICKSTART_NAME && !Path::new(path).exists() {
            return Ok(QUICKSTART.to_owned());
        }
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    });
    let mut parsed = parsed.context("these jobs cannot be run")?;
    parsed.draw_seeds(fresh_seed);
    let file = arguments.iter().find(|argument| !argument.starts_with("--")).map(Path::new);
    let stem = file.filter(|file| file.exists() || !names_jobs).and_then(Path::file_stem);
    let name = stem.map_or_else(|| parsed.jobs[0].name.clone(), |stem| stem.to_string_lossy().into_owned());
    Ok(Request { parsed, name })
}
