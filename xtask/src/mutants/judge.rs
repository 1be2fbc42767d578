//! Which tests judge the mutants of a package, and asking them.
//!
//! Judges are asked one after the other, cheapest first, and a mutant that one finds is not shown to the next. Each must be
//! content with the tree without a mutant first. A test that takes ten times its processor time, or 4 GiB, is ended: a loop
//! that does not end, on a machine that others use too. That is counted in processor time because a busy machine is no bug.

use super::{
    copy::Copy,
    mutant::Mutant,
    outcomes::{Judged, TRACE, Verdict},
    tool::TOOL,
};
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::{collections::BTreeMap, collections::BTreeSet, fs, path::PathBuf, process::Command};

/// Tests that judge.
#[derive(Debug)]
struct Judge {
    name: &'static str,
    /// Whose mutants.
    of: &'static str,
    /// Whose tests.
    tests_of: &'static str,
    /// Which of them.
    tests: Tests,
    /// Processor time a test program may take: ten times what it takes, rounded up.
    cpu_seconds: u32,
}

/// Tests of a package, as `cargo test` has them.
#[derive(Debug)]
enum Tests {
    /// These.
    Of(&'static [&'static str]),
    /// Those in the modules, and the test program called as the mutant's outermost module; all, if there is none.
    OwnOf(&'static [&'static str]),
}

impl Tests {
    /// The arguments for a mutant.
    fn arguments(&self, mutant: &Mutant) -> Vec<String> {
        match self {
            Self::Of(arguments) => arguments.iter().map(ToString::to_string).collect(),
            Self::OwnOf(programs) => {
                let own = mutant.key.module_words().first().filter(|word| programs.contains(word)).copied();
                own.map_or(vec!["--tests".to_owned()], |own| {
                    vec!["--lib".to_owned(), format!("--test={own}")]
                })
            }
        }
    }
}

/// All judges, each package's in the order they are asked: unit tests, a simulation (power cuts in tiny worlds, and odd worlds),
/// and at last traces, which only say that something is done otherwise.
const JUDGES: &[Judge] = &[
    Judge {
        name: "unit",
        of: "ocssd-ftl",
        tests_of: "ocssd-ftl",
        tests: Tests::Of(&["--lib"]),
        cpu_seconds: 20,
    },
    Judge {
        name: "simulation",
        of: "ocssd-ftl",
        tests_of: "ocssd-sim",
        tests: Tests::Of(&["--test=smoke"]),
        cpu_seconds: 120,
    },
    Judge {
        name: TRACE,
        of: "ocssd-ftl",
        tests_of: "ocssd-sim",
        tests: Tests::Of(&["--test=traces"]),
        cpu_seconds: 200,
    },
    Judge {
        name: "unit",
        of: "ocssd-targets",
        tests_of: "ocssd-targets",
        tests: Tests::OwnOf(&["pblk", "linux_pblk", "linear", "small_blocks"]),
        cpu_seconds: 300,
    },
    Judge {
        name: "simulation",
        of: "ocssd-targets",
        tests_of: "ocssd-sim",
        tests: Tests::Of(&["--test=smoke", "--test=linux_pblk"]),
        cpu_seconds: 120,
    },
    Judge {
        name: TRACE,
        of: "ocssd-targets",
        tests_of: "ocssd-sim",
        tests: Tests::Of(&["--test=traces"]),
        cpu_seconds: 200,
    },
];

/// Memory a test program may take (chosen: ten times what any takes).
pub const MEMORY_BYTES: u64 = 4 << 30;

/// Seconds after which a test that neither ends nor computes is ended (chosen: far beyond any test, on any machine).
const SECONDS_MAX: &str = "3600";

/// What cargo-mutants says of a run.
#[derive(Deserialize)]
struct Report {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: String,
    log_path: PathBuf,
}

/// There is no other: without a mutant the judge is asked here.
#[derive(Deserialize)]
enum Scenario {
    Mutant(Named),
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// The judges, and who of them was content with the tree without a mutant.
pub struct Court<'a> {
    workspace: &'a Workspace,
    copy: &'a Copy,
    /// Nobody but the first judge is asked.
    is_quick: bool,
    content: BTreeSet<(&'static str, Vec<String>)>,
}

impl<'a> Court<'a> {
    /// Nobody was asked yet.
    pub fn new(workspace: &'a Workspace, copy: &'a Copy, is_quick: bool) -> Self {
        Self { workspace, copy, is_quick, content: BTreeSet::new() }
    }

    /// Judges mutants of one file.
    ///
    /// Errors: a judge is not content with the tree as it is, or cargo-mutants fails.
    pub fn judge<'m>(&mut self, mutants: &[&'m Mutant]) -> Result<Vec<(&'m Mutant, Judged)>> {
        let commit = process::output(self.workspace.git().args(["rev-parse", "--short", "HEAD"]))?;
        let (mut left, mut done) = (mutants.to_vec(), Vec::new());
        let package = mutants.first().map_or("", |mutant| mutant.package.as_str());
        let mut judges = JUDGES.iter().filter(|judge| judge.of == package).peekable();
        while let Some(judge) = judges.next() {
            if left.is_empty() {
                break;
            }
            self.satisfy(judge, left[0])?;
            let verdicts = self.ask(judge, &left)?;
            for mutant in std::mem::take(&mut left) {
                let verdict = *verdicts
                    .get(&mutant.name)
                    .with_context(|| format!("cargo-mutants did not judge `{}`", mutant.name))?;
                if verdict == Verdict::Missed && judges.peek().is_some() && !self.is_quick {
                    left.push(mutant);
                } else {
                    let (by, commit) = (judge.name.to_owned(), commit.trim().to_owned());
                    done.push((mutant, Judged { verdict, by, commit }));
                }
            }
        }
        Ok(done)
    }

    /// Sees to it that the tests of a mutant pass without it, once.
    fn satisfy(&mut self, judge: &Judge, mutant: &Mutant) -> Result<()> {
        let tests = judge.tests.arguments(mutant);
        if self.content.insert((judge.tests_of, tests.clone())) {
            let mut command = self.copy.prepare(self.workspace.cargo());
            command.args(["test", "--quiet", "--package", judge.tests_of]).args(tests);
            command.args(["--config", &runner(judge, &[])]);
            process::run(&mut command).context("tests fail without any mutant")?;
        }
        Ok(())
    }

    fn ask(&self, judge: &Judge, mutants: &[&Mutant]) -> Result<BTreeMap<String, Verdict>> {
        let folder = self.copy.root.parent().context("the copy lies in a folder")?;
        let config = folder.join("wanted.toml");
        fs::write(&config, only(mutants)).context("the list of mutants could not be written")?;
        let mut command = self.copy.prepare(TOOL.command(self.workspace));
        command.args(["--in-place", "--baseline=skip", "--no-times", "--colors=never"]);
        command.args(["--timeout", SECONDS_MAX, "--build-timeout", SECONDS_MAX]);
        command.args(["--package", judge.of, "--test-package", judge.tests_of]);
        // Mutants that leave a field out are made whatever the list says (cargo-mutants 27.1): of this file only, then.
        command.args(mutants.first().iter().flat_map(|mutant| ["--file", mutant.key.file.as_str()]));
        command.arg("--config").arg(&config).arg("--output").arg(folder);
        let tests = mutants.first().map_or(Vec::new(), |mutant| judge.tests.arguments(mutant));
        command.args(tests.iter().map(|tests| format!("--cargo-arg={tests}")));
        let first: Vec<&str> = mutants.first().map_or(Vec::new(), |mutant| mutant.key.module_words());
        command.args(["--cargo-arg=--config".to_owned(), format!("--cargo-arg={}", runner(judge, &first))]);
        self.run(&mut command)?;
        let results = folder.join("mutants.out");
        let text =
            fs::read_to_string(results.join("outcomes.json")).context("cargo-mutants left no outcomes")?;
        let report: Report = serde_json::from_str(&text).context("outcomes.json is not as expected")?;
        let mut verdicts = BTreeMap::new();
        for Outcome { scenario: Scenario::Mutant(Named { name }), summary, log_path } in report.outcomes {
            let log = || fs::read_to_string(results.join(&log_path)).unwrap_or_default();
            verdicts.insert(name, verdict_of(&summary, log)?);
        }
        Ok(verdicts)
    }

    /// Starts cargo-mutants. It says by its exit code that mutants were missed (2) or timed out (3).
    fn run(&self, command: &mut Command) -> Result<()> {
        let status = command.status().context("cargo-mutants could not be started")?;
        let is_done = status.code().is_some_and(|code| matches!(code, 0 | 2 | 3));
        ensure!(is_done, "`{}` ended with {status}", process::line(command));
        Ok(())
    }
}

/// A setting of cargo: what starts a test program, with bounds of time and memory. Tests whose names have one of the words
/// `first` run first, and the first failure ends all.
///
/// Only nightly compilers' test programs can end so, and those that a variable tells to be one; they are compiled without it.
fn runner(judge: &Judge, first: &[&str]) -> String {
    let (cpu, kib) = (judge.cpu_seconds, MEMORY_BYTES / 1024);
    let run = r#""$0" -Zunstable-options --fail-fast "$@""#;
    let own = if first.is_empty() { String::new() } else { format!("{run} {} && ", first.join(" ")) };
    let script =
        format!("ulimit -c 0; ulimit -t {cpu}; ulimit -v {kib}; export RUSTC_BOOTSTRAP=1; {own}exec {run}");
    format!("target.'cfg(unix)'.runner = ['sh', '-c', '{script}']")
}

/// A configuration by which cargo-mutants makes these mutants and no others.
fn only(mutants: &[&Mutant]) -> String {
    let escaped = |name: &str| {
        let escape =
            |c: char| if r"\.+*?()|[]{}^$#&-~".contains(c) { format!("\\{c}") } else { c.to_string() };
        toml::Value::String(format!("^{}$", name.chars().map(escape).collect::<String>())).to_string()
    };
    let names: Vec<String> = mutants.iter().map(|mutant| escaped(&mutant.name)).collect();
    format!("examine_re = [\n{}\n]\n", names.join(",\n"))
}

/// What cargo-mutants' word means; `log` is what the tests printed.
fn verdict_of(summary: &str, log: impl Fn() -> String) -> Result<Verdict> {
    Ok(match summary {
        "CaughtMutant" if log().contains("SIGXCPU") => Verdict::Timeout,
        "CaughtMutant" => Verdict::Caught,
        "MissedMutant" => Verdict::Missed,
        "Timeout" => Verdict::Timeout,
        "Unviable" => Verdict::Unviable,
        other => anyhow::bail!("cargo-mutants' outcome `{other}` is not known"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::mutant::{Key, PACKAGES};
    use super::*;

    #[test]
    fn every_package_is_judged_by_what_says_more_before_what_says_less() {
        for package in PACKAGES {
            let judges = JUDGES.iter().filter(|judge| judge.of == *package).map(|judge| judge.name);
            assert_eq!(judges.collect::<Vec<_>>(), ["unit", "simulation", TRACE], "{package}");
        }
    }

    #[test]
    fn a_mutant_is_judged_by_the_tests_of_its_outermost_module() {
        let own = Tests::OwnOf(&["pblk"]);
        for (file, tests) in [
            ("crates/targets/src/pblk/mount/load.rs", &["--lib", "--test=pblk"][..]),
            ("crates/targets/src/pblk/mod.rs", &["--lib", "--test=pblk"]),
            ("crates/targets/src/flight.rs", &["--tests"]),
        ] {
            let key = Key { file: file.to_owned(), mutant: String::new(), at: String::new(), nth: 1 };
            let mutant = Mutant::made_up(key, "");
            assert_eq!(own.arguments(&mutant), tests, "{file}");
        }
    }

    #[test]
    fn the_list_for_cargo_mutants_is_toml_of_exact_names() {
        let name = "crates/a.rs:1:2: replace <impl X for Y>::f -> [u8; 2] with [\"x\"] | ^";
        let key = Key { file: String::new(), mutant: String::new(), at: String::new(), nth: 1 };
        let mutant = Mutant::made_up(key, name);
        let table: toml::Table = only(&[&mutant]).parse().unwrap();
        assert_eq!(
            table["examine_re"].as_array().unwrap()[0].as_str().unwrap(),
            r#"^crates/a\.rs:1:2: replace <impl X for Y>::f \-> \[u8; 2\] with \["x"\] \| \^$"#
        );
    }

    #[test]
    fn a_test_that_ran_out_of_processor_time_is_a_timeout() {
        let log = |text: &'static str| move || text.to_owned();
        assert_eq!(verdict_of("CaughtMutant", log("signal: 24, SIGXCPU: CPU")).unwrap(), Verdict::Timeout);
        assert_eq!(verdict_of("CaughtMutant", log("FAILED")).unwrap(), Verdict::Caught);
        assert_eq!(verdict_of("MissedMutant", log("")).unwrap(), Verdict::Missed);
        assert!(verdict_of("Other", log("")).is_err());
    }
}
