//! The whole program, twice per seed: the same seed must give the same trace hash, and another seed another.
//!
//! The second half keeps the first honest: a hash that never changes would pass it too.

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Seeds to run. Chosen: few, small and different in several bits.
const SEEDS: &[u64] = &[1, 2, 3, 1_000_003, u64::MAX];

/// The job every seed runs; it draws random offsets, so that the seed matters.
const JOB: &str = "examples/smoke.fio";

/// What stands before the hash on its line.
const HASH_LINE: &str = "trace hash ";

/// Builds the program as the tests do, so that it is there already, runs every seed twice and compares. The release profile
/// has the same checks and gives the same hashes, and takes minutes to build.
///
/// Errors: a run fails or prints no hash, one seed gives two hashes, or two seeds give the same.
pub fn run(workspace: &Workspace) -> Result<()> {
    ensure!(workspace.root.join(JOB).is_file(), "expected the job {JOB} in the repository, found none");
    let program = workspace.program()?;
    let mut hashes = Vec::new();
    for &seed in SEEDS {
        let twice = [hash_of(workspace, &program, seed)?, hash_of(workspace, &program, seed)?];
        println!("seed {seed}: trace hash {} {}", twice[0], twice[1]);
        hashes.push((seed, twice));
    }
    judge(&hashes)
}

fn hash_of(workspace: &Workspace, program: &Path, seed: u64) -> Result<String> {
    let mut command = command(workspace, program, seed);
    let printed = process::output(&mut command)?;
    parse(&printed).with_context(|| format!("`{}` printed:\n{printed}", process::line(&command)))
}

fn command(workspace: &Workspace, program: &Path, seed: u64) -> Command {
    let mut command = Command::new(program);
    command.current_dir(&workspace.root).args(["run", JOB]);
    command.args(["--clock", "virtual", "--seed", &seed.to_string(), "--print", "hash"]);
    command
}

/// Finds the one line `trace hash 0123456789abcdef`.
fn parse(printed: &str) -> Result<String> {
    let mut lines = printed.lines().filter_map(|line| line.strip_prefix(HASH_LINE));
    let hash =
        lines.next().with_context(|| format!("expected a line `{HASH_LINE}` and 16 digits, found none"))?;
    ensure!(lines.next().is_none(), "expected one line `{HASH_LINE}..`, found several");
    let is_hash = hash.len() == 16 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    ensure!(is_hash, "expected 16 lower-case hexadecimal digits after `{HASH_LINE}`, found `{hash}`");
    Ok(hash.to_string())
}

fn judge(hashes: &[(u64, [String; 2])]) -> Result<()> {
    for (index, (seed, [first, second])) in hashes.iter().enumerate() {
        if first != second {
            bail!(
                "seed {seed} gave the trace hashes {first} and {second}: something read the machine, not the seed"
            );
        }
        if let Some((other, _)) = hashes[..index].iter().find(|(_, [earlier, _])| earlier == first) {
            bail!(
                "seeds {other} and {seed} gave the same trace hash {first}: the hash does not cover what the seed changes"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_found_among_other_lines() {
        assert_eq!(parse("a\ntrace hash 0123456789abcdef\nb\n").unwrap(), "0123456789abcdef");
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        for printed in ["", "trace hash 0123", "trace hash 0123456789ABCDEF", " trace hash 0123456789abcdef"]
        {
            assert!(parse(printed).is_err(), "{printed}");
        }
        let twice = "trace hash 0123456789abcdef\n".repeat(2);
        assert!(parse(&twice).unwrap_err().to_string().contains("several"));
    }

    #[test]
    fn seeds_must_repeat_and_differ() {
        let runs = |hashes: &[(u64, &str, &str)]| {
            hashes.iter().map(|&(seed, a, b)| (seed, [a.to_string(), b.to_string()])).collect::<Vec<_>>()
        };
        assert!(judge(&runs(&[(1, "a", "a"), (2, "b", "b")])).is_ok());
        let error = judge(&runs(&[(1, "a", "a"), (2, "b", "c")])).unwrap_err().to_string();
        assert!(error.contains("seed 2"), "{error}");
        let error = judge(&runs(&[(1, "a", "a"), (2, "a", "a")])).unwrap_err().to_string();
        assert!(error.contains("seeds 1 and 2"), "{error}");
    }
}
