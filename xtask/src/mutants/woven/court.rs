//! Showing a mutant to the tests that come by it, until one finds it.

use super::{
    build::{Build, LeftOut},
    reach::{JUDGES, Reach, Test, folder},
};
use crate::{
    mutants::{
        judge::MEMORY_BYTES,
        mutant::Mutant,
        outcomes::{Judged, Verdict},
    },
    process,
    workspace::Workspace,
};
use anyhow::{Context, Result};
use std::{
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Tests that are shown a mutant at once take so long together, without it (chosen: most mutants are found by the first of them,
/// and a process costs a few milliseconds).
const AT_ONCE: Duration = Duration::from_millis(300);

/// Times what it takes without a mutant, and this, is the processor time a test program gets.
const PATIENCE: u32 = 10;

/// Seconds of processor time that any gets (chosen: a busy machine, and tests that take next to nothing).
const CPU_SECONDS_MIN: u64 = 3;

/// Judges of a build.
pub struct Court<'a> {
    build: &'a Build,
    reach: &'a Reach,
    commit: String,
    jobs: usize,
    is_quick: bool,
}

/// What tests said.
enum Said {
    Passed,
    Failed,
    TookTooLong,
}

impl<'a> Court<'a> {
    /// Nobody was asked yet.
    ///
    /// Errors: git does not say which commit this is.
    pub fn new(
        workspace: &Workspace,
        build: &'a Build,
        reach: &'a Reach,
        jobs: usize,
        is_quick: bool,
    ) -> Result<Self> {
        let commit =
            process::output(workspace.git().args(["rev-parse", "--short", "HEAD"]))?.trim().to_owned();
        Ok(Self { build, reach, commit, jobs, is_quick })
    }

    /// Judges mutants, given with their numbers, and tells `each` of one after the other. Those that are not in the build are
    /// passed over, but for those known not to compile.
    ///
    /// Errors: a test program cannot be started, or `each` fails.
    pub fn judge(
        &self,
        mutants: &[(u32, &Mutant)],
        each: impl FnMut(&Mutant, Judged) -> Result<()> + Send,
    ) -> Result<()> {
        let (next, each) = (AtomicUsize::new(0), Mutex::new(each));
        let work = || -> Result<()> {
            loop {
                let Some(&(number, mutant)) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return Ok(());
                };
                if let Some(judged) = self.judge_one(number, mutant)? {
                    each.lock().expect("no worker panics")(mutant, judged)?;
                }
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
        })
    }

    fn judge_one(&self, number: u32, mutant: &Mutant) -> Result<Option<Judged>> {
        let judged = |verdict, by: &str| Judged { verdict, by: by.to_owned(), commit: self.commit.clone() };
        match self.build.left_out.get(&number) {
            Some(LeftOut::NotWoven) => return Ok(None),
            Some(LeftOut::Unviable) => return Ok(Some(judged(Verdict::Unviable, "compiler"))),
            None => {}
        }
        let is_judge = |test: &&Test| {
            let tests = &JUDGES[test.judge];
            (tests.of.is_empty() && !self.is_quick) || tests.of == mutant.package
        };
        let tests: Vec<&Test> = self.reach.of(number).filter(is_judge).collect();
        for batch in batches(&tests) {
            match self.ask(number, batch)? {
                Said::Passed => {}
                Said::Failed => return Ok(Some(judged(Verdict::Caught, JUDGES[batch[0].judge].judge))),
                Said::TookTooLong => return Ok(Some(judged(Verdict::Timeout, JUDGES[batch[0].judge].judge))),
            }
        }
        let by = tests.last().map_or("nobody", |test| JUDGES[test.judge].judge);
        Ok(Some(judged(Verdict::Missed, by)))
    }

    /// Runs tests of one program, with bounds of time and memory. The first failure ends all: only nightly compilers' test programs
    /// can do so, and those that a variable tells to be one.
    fn ask(&self, number: u32, tests: &[&Test]) -> Result<Said> {
        let takes: Duration = tests.iter().map(|test| test.takes).sum();
        let seconds = CPU_SECONDS_MIN + (takes * PATIENCE).as_secs();
        let bounds = format!(
            "ulimit -c 0; ulimit -t {seconds}; ulimit -v {}; exec \"$0\" \"$@\"",
            MEMORY_BYTES / 1024
        );
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", &format!("{}", 60 + 10 * seconds), "sh", "-c", &bounds]);
        command.arg(&tests[0].program).args([
            "--exact",
            "--test-threads=1",
            "--quiet",
            "-Zunstable-options",
            "--fail-fast",
        ]);
        command.args(tests.iter().map(|test| &test.name));
        command.current_dir(folder(&self.build.copy.root, JUDGES[tests[0].judge].package));
        command
            .env("OCSSD_MUTANT", number.to_string())
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUST_BACKTRACE", "0");
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let status = status.context("`timeout` could not be started")?;
        // 152: ended for its processor time (SIGXCPU), 137: or killed for its wall time.
        Ok(match exit(status) {
            0 => Said::Passed,
            137 | 152 => Said::TookTooLong,
            _ => Said::Failed,
        })
    }
}

/// The code as a shell would tell it.
fn exit(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1)
}

/// Tests in parts that are asked at once: of one program, and short; their order stays.
fn batches<'t, 'a>(tests: &'t [&'a Test]) -> Vec<&'t [&'a Test]> {
    let (mut batches, mut from, mut takes) = (Vec::new(), 0, Duration::ZERO);
    for (at, test) in tests.iter().enumerate() {
        let is_other = at > from && (test.program != tests[from].program || takes + test.takes > AT_ONCE);
        if is_other {
            batches.push(&tests[from..at]);
            (from, takes) = (at, Duration::ZERO);
        }
        takes += test.takes;
    }
    if from < tests.len() {
        batches.push(&tests[from..]);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_asked_at_once_are_short_together_and_of_one_program() {
        let test = |program: &str, name: &str, millis| Test {
            judge: 0,
            program: program.into(),
            name: name.to_owned(),
            takes: Duration::from_millis(millis),
        };
        let all = [
            test("a", "1", 100),
            test("a", "2", 200),
            test("a", "3", 1),
            test("b", "4", 1),
            test("b", "5", 999),
        ];
        let tests: Vec<&Test> = all.iter().collect();
        let names = |batch: &&[&Test]| batch.iter().map(|test| test.name.clone()).collect::<String>();
        assert_eq!(batches(&tests).iter().map(names).collect::<Vec<_>>(), ["12", "3", "4", "5"]);
        assert!(batches(&[]).is_empty(), "a mutant that no test comes by is shown to none");
    }
}
