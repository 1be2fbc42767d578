//! `cargo xtask mutants`: small bugs are put into `ftl` and `targets` one at a time, and the tests must find each.
//!
//! cargo-mutants makes a mutant (`<` becomes `<=`, a function returns at once, a match arm is gone) and starts tests on it;
//! this says which tests judge, keeps what came of each mutant, and publishes it in `experiments/mutants`. A mutant that
//! survives is killed by a new test, or listed in `equivalent.toml` with the reason why no test can. Deliberately not here:
//! making mutants, and the tests.

mod copy;
mod equivalent;
mod judge;
mod mutant;
mod outcomes;
mod results;
mod select;
mod tool;
mod woven;

use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use clap::Args;
use copy::Copy;
use equivalent::Equivalents;
use mutant::{Key, Mutant};
use outcomes::{Judged, Outcomes, Verdict};
use select::Shard;
use std::collections::BTreeSet;
use tool::TOOL;

/// Folder of everything published, from the root.
const FOLDER: &str = "experiments/mutants";

/// Mutants between two writes of what came of them (chosen: minutes at most are lost when a run is ended).
const MUTANTS_PER_WRITE: usize = 40;

/// What was typed after `cargo xtask mutants`.
#[derive(Args)]
pub struct Options {
    /// Only this module and those below it, as `ftl/l2p` or `targets/pblk`; may be given several times
    #[arg(long, value_name = "MODULE")]
    module: Vec<String>,
    /// Only so many of the mutants that are left, drawn by --seed
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// What the sample is drawn by
    #[arg(long, default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Only the Kth of N parts, counted from 0
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Judge those that survived before, and no others
    #[arg(long, conflicts_with = "again")]
    survivors: bool,
    /// Judge again everything that was judged before
    #[arg(long)]
    again: bool,
    /// Ask only the first judge, the unit tests: what survives is missed until it is judged by all
    #[arg(long)]
    quick: bool,
    /// Compile each by itself: for those that cannot be judged together
    #[arg(long)]
    one_by_one: bool,
    /// How many to judge at a time; as many as there are processors, unless told
    #[arg(long, value_name = "COUNT", conflicts_with = "one_by_one")]
    jobs: Option<usize>,
    /// Run nothing: check equivalent.toml, write the table, and say what is left
    #[arg(long)]
    table: bool,
}

/// All that is known of the mutants of a tree.
struct Known {
    copy: Copy,
    mutants: Vec<Mutant>,
    equivalents: Equivalents,
    outcomes: Outcomes,
}

impl Known {
    fn find(workspace: &Workspace, packages: &[&'static str]) -> Result<Self> {
        TOOL.ensure_installed(workspace)?;
        let copy = Copy::refresh(workspace)?;
        let mutants = mutant::list(workspace, &copy, packages)?;
        let equivalents = Equivalents::read(workspace, &mutants)?;
        let outcomes = Outcomes::read(workspace, &mutants)?;
        Ok(Self { copy, mutants, equivalents, outcomes })
    }

    /// Judges mutants, a group at a time, and tells `each` what came of a group.
    fn judge(
        &self,
        workspace: &Workspace,
        wanted: &[&Mutant],
        is_quick: bool,
        mut each: impl FnMut(&[(&Mutant, Judged)]) -> Result<()>,
    ) -> Result<()> {
        let mut court = judge::Court::new(workspace, &self.copy, is_quick);
        let mut done = 0;
        for same_file in wanted.chunk_by(|a, b| a.key.file == b.key.file) {
            for group in same_file.chunks(MUTANTS_PER_WRITE) {
                let judged = court.judge(group)?;
                done += group.len();
                println!("judged {done} of {}", wanted.len());
                each(&judged)?;
            }
        }
        Ok(())
    }
}

impl Known {
    /// Judges mutants in one build of all.
    fn judge_together(
        &self,
        workspace: &Workspace,
        wanted: &[&Mutant],
        options: &Options,
        outcomes: &mut Outcomes,
    ) -> Result<()> {
        let jobs =
            options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let build = woven::Build::make(workspace, &self.mutants)?;
        let reach = woven::Reach::find(workspace, &build, jobs)?;
        for test in &reach.failing {
            println!("judges nothing, for it fails without any mutant in this build: {test}");
        }
        let court = woven::Court::new(workspace, &build, &reach, jobs, options.quick)?;
        let is_wanted: BTreeSet<&Key> = wanted.iter().map(|mutant| &mutant.key).collect();
        let all = (0..).zip(&self.mutants).filter(|(_, mutant)| is_wanted.contains(&mutant.key));
        let numbered: Vec<(u32, &Mutant)> = all.collect();
        let mut done = 0;
        court.judge(&numbered, |mutant, judged| {
            outcomes.note(mutant, judged);
            done += 1;
            if done % MUTANTS_PER_WRITE == 0 {
                println!("judged {done} of {}", numbered.len());
                outcomes.write(workspace, &self.mutants)?;
            }
            Ok(())
        })?;
        println!("judged {done} of {}; the others need --one-by-one", numbered.len());
        Ok(())
    }
}

/// Judges the mutants asked for that were not judged before, and publishes.
///
/// Errors: cargo-mutants cannot be installed, tests fail without a mutant, `equivalent.toml` names mutants that do not exist.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let mut known = Known::find(workspace, mutant::PACKAGES)?;
    let modules = select::modules(&known.mutants);
    for module in &options.module {
        ensure!(
            modules.iter().any(|name| select::is_within(name, module)),
            "expected a module, found `{module}`: there are {}",
            modules.join(", ")
        );
    }
    let wanted: Vec<Mutant> = if options.table {
        Vec::new()
    } else {
        select::wanted(&known, options).into_iter().cloned().collect()
    };
    let wanted: Vec<&Mutant> = wanted.iter().collect();
    println!("{} of {} mutants are to be judged", wanted.len(), known.mutants.len());
    let mut outcomes = std::mem::take(&mut known.outcomes);
    if options.one_by_one {
        known.judge(workspace, &wanted, options.quick, |judged| {
            for (mutant, judged) in judged {
                outcomes.note(mutant, judged.clone());
            }
            outcomes.write(workspace, &known.mutants)
        })?;
    } else if !wanted.is_empty() {
        known.judge_together(workspace, &wanted, options, &mut outcomes)?;
    }
    outcomes.write(workspace, &known.mutants)?;
    let text = results::text(&known.mutants, &known.equivalents, &outcomes);
    let path = format!("{FOLDER}/results.md");
    std::fs::write(workspace.root.join(&path), &text)
        .with_context(|| format!("{path} could not be written"))?;
    print!("{}", results::table(&known.mutants, &known.equivalents, &outcomes));
    println!("written to {path}");
    Ok(())
}

/// Mutants of `ftl` that a run of all checks judges again (chosen: half a minute, most of it compiling).
const SAMPLE: usize = 10;

/// Mutants of each package that a long run judges again (chosen: half an hour).
const SAMPLE_LONG: usize = 100;

/// Judges again some mutants that were found before, drawn by the commit; nothing is published. Without `is_long` a few of
/// `ftl`: the tests of `targets` have a whole drive below them to compile.
///
/// Errors: as [`run`]; or one of them is not found any more.
pub fn check_sample(workspace: &Workspace, is_long: bool) -> Result<()> {
    let (packages, count) =
        if is_long { (mutant::PACKAGES, SAMPLE_LONG) } else { (&mutant::PACKAGES[..1], SAMPLE) };
    let known = Known::find(workspace, packages)?;
    let commit = process::output(workspace.git().args(["rev-parse", "--short", "HEAD"]))?;
    let commit = commit.trim();
    let wanted = select::found_before(&known, packages, count, select::seed_of(commit));
    let mut lost = Vec::new();
    // Whoever found a mutant before finds it again: a simulation is asked only for what it alone found.
    known.judge(workspace, &wanted, false, |judged| {
        let missed = judged.iter().filter(|(_, judged)| judged.verdict == Verdict::Missed);
        lost.extend(missed.map(|(mutant, _)| mutant.name.clone()));
        Ok(())
    })?;
    ensure!(
        lost.is_empty(),
        "tests found these mutants before and do not any more; put back the test that did, or judge their modules with \
         `cargo xtask mutants --again --module MODULE` and say in the commit why they may live:\n{}",
        lost.join("\n")
    );
    println!("{} mutants that were found before, drawn by commit {commit}: all found again", wanted.len());
    Ok(())
}
