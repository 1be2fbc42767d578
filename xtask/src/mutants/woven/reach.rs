//! Which tests come by which mutants, and how long each test takes.

use super::build::{Build, test_programs};
use crate::{mutants::outcomes::TRACE, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

/// Test programs that judge: whose mutants, of which package, which of its tests, and what the judge is called. Unit tests are
/// asked first, then a simulation: power cuts in tiny worlds, and odd worlds, of each target. A trace is asked last, of what breaks
/// no promise that anybody knows of.
pub const JUDGES: &[Tests] = &[
    Tests { of: "ocssd-ftl", package: "ocssd-ftl", which: &["--lib"], judge: "unit" },
    Tests { of: "ocssd-targets", package: "ocssd-targets", which: &["--tests"], judge: "unit" },
    Tests {
        of: "",
        package: "ocssd-sim",
        which: &[
            "--test=smoke",
            "--test=linux_pblk",
            "--test=eleos",
            "--test=kv",
            "--test=lightlsm",
            "--test=ox_block",
            "--test=zns",
            "--test=disk",
            "--test=stale_reports",
        ],
        judge: "simulation",
    },
    Tests { of: "", package: "ocssd-sim", which: &["--test=traces"], judge: TRACE },
];

/// Test programs of a package.
pub struct Tests {
    /// Whose mutants they judge; empty: everybody's.
    pub of: &'static str,
    pub package: &'static str,
    which: &'static [&'static str],
    pub judge: &'static str,
}

/// A test of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Test {
    /// Index of its judge.
    pub judge: usize,
    pub program: PathBuf,
    pub name: String,
    pub takes: Duration,
}

/// All tests, and which of them come by a mutant, the quickest first.
#[derive(Default, Serialize, Deserialize)]
pub struct Reach {
    pub tests: Vec<Test>,
    by_mutant: BTreeMap<u32, Vec<u32>>,
    /// Those that fail in this build without any mutant, and so judge nothing.
    pub failing: Vec<String>,
}

impl Reach {
    /// Runs each test by itself, two or more at a time, and reads what it came by. What came out is kept for the same programs.
    ///
    /// Errors: a test program does not compile or start.
    pub fn find(workspace: &Workspace, build: &Build, jobs: usize) -> Result<Self> {
        let mut tests = Vec::new();
        for (judge, tests_of) in JUDGES.iter().enumerate() {
            for (_, program) in test_programs(workspace, &build.copy, tests_of.package, tests_of.which)? {
                for name in names(&program, &folder(&build.copy.root, tests_of.package))? {
                    tests.push(Test { judge, program: program.clone(), name, takes: Duration::ZERO });
                }
            }
        }
        let kept = workspace.target.join("mutants/reach.json");
        let stamp = stamp(&tests)?;
        if let Ok(text) = fs::read_to_string(&kept)
            && let Ok((of, reach)) = serde_json::from_str::<(Vec<u128>, Self)>(&text)
            && of == stamp
        {
            return Ok(reach);
        }
        println!("finding which of {} tests come by which mutants", tests.len());
        let reach = Self::record(tests, &build.copy.root, jobs)?;
        fs::write(&kept, serde_json::to_string(&(stamp, &reach))?)
            .context("what was reached could not be kept")?;
        Ok(reach)
    }

    fn record(tests: Vec<Test>, root: &Path, jobs: usize) -> Result<Self> {
        let scratch = tempfile(root)?;
        let (next, reach) = (Mutex::new(tests.into_iter()), Mutex::new(Self::default()));
        let work = |worker: usize| -> Result<()> {
            let file = scratch.join(format!("reached-{worker}"));
            loop {
                let Some(mut test) = next.lock().expect("no worker panics").next() else { return Ok(()) };
                let _ = fs::remove_file(&file);
                let started = Instant::now();
                let mut command = Command::new(&test.program);
                command
                    .args(["--exact", &test.name, "--test-threads=1", "--quiet"])
                    .env("OCSSD_MUTANTS_REACHED", &file);
                command.current_dir(folder(root, JUDGES[test.judge].package));
                let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
                test.takes = started.elapsed();
                let mut reach = reach.lock().expect("no worker panics");
                if !status.success() {
                    reach.failing.push(test.name);
                    continue;
                }
                let number = u32::try_from(reach.tests.len()).expect("few tests");
                for line in fs::read_to_string(&file).unwrap_or_default().lines() {
                    reach.by_mutant.entry(line.parse()?).or_default().push(number);
                }
                reach.tests.push(test);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|worker| scope.spawn(move || work(worker))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
        })?;
        fs::remove_dir_all(&scratch)?;
        let mut reach = reach.into_inner().expect("no worker panics");
        let tests = &reach.tests;
        for list in reach.by_mutant.values_mut() {
            list.sort_by_key(|&number| {
                let Test { judge, program, takes, .. } = &tests[number as usize];
                // Of tests that take about as long, those of one program stand together.
                (*judge, takes.as_millis().max(32).ilog2(), program, *takes, number)
            });
        }
        Ok(reach)
    }

    /// The tests that come by a mutant, judge by judge, the quickest first.
    pub fn of(&self, mutant: u32) -> impl Iterator<Item = &Test> {
        let numbers = self.by_mutant.get(&mutant).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|&number| &self.tests[number as usize])
    }
}

/// Where tests of a package run.
pub fn folder(root: &Path, package: &str) -> PathBuf {
    root.join("crates").join(package.trim_start_matches("ocssd-"))
}

fn tempfile(root: &Path) -> Result<PathBuf> {
    let folder = root.with_file_name("reached");
    fs::create_dir_all(&folder).context("a folder for what is reached could not be made")?;
    Ok(folder)
}

fn names(program: &Path, folder: &Path) -> Result<Vec<String>> {
    let output = Command::new(program).args(["--list", "--format=terse"]).current_dir(folder).output()?;
    ensure!(output.status.success(), "{} does not list its tests", program.display());
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// When each program was compiled, and how many tests there are.
fn stamp(tests: &[Test]) -> Result<Vec<u128>> {
    let mut stamp = vec![tests.len() as u128];
    for same in tests.chunk_by(|a, b| a.program == b.program) {
        let compiled = fs::metadata(&same[0].program)?.modified()?;
        stamp.push(compiled.duration_since(std::time::UNIX_EPOCH)?.as_nanos());
    }
    Ok(stamp)
}
