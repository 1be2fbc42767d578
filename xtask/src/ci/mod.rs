//! `cargo xtask test`: everything CI runs, the same on every machine.
//!
//! A table of named steps, run in order, each timed. The first failure stops the run with a sentence; the summary shows
//! what passed, what failed and what was not reached. Deliberately not here: what a step checks; each has its file or
//! is one cargo command.

mod console;
mod fio_plot;
mod fsx;
mod fuzz;
mod guest;
mod histories;
mod kills;
mod linux_pblk;
mod packages;
mod redis;
mod rocksdb;
mod root;
mod served;
mod smoke;
mod summary;
mod systems;
mod ycsb;

use crate::{dist, mutants, process, tidy, workspace::Workspace};
use anyhow::{Result, bail};
use clap::Args;
use std::time::Instant;
use summary::{Line, Outcome};

/// What was typed after `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Also run what takes minutes: every fuzz target for 60 s, and more of the guest
    #[arg(long)]
    long: bool,
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP", value_parser = clap::builder::PossibleValuesParser::new(STEPS.iter().map(|s| s.name)))]
    only: Vec<String>,
}

/// One thing CI does.
struct Step {
    /// What `--only` and the summary call it.
    name: &'static str,
    /// What it shows when it passes.
    shows: &'static str,
    run: fn(&Workspace, &Options) -> Result<Outcome>,
}

/// All steps, cheapest question first among those that need a compiler.
const STEPS: &[Step] = &[
    Step { name: "packages", shows: "the programs the tests drive are installed", run: packages },
    Step { name: "fmt", shows: "the code is formatted", run: fmt },
    Step { name: "tidy", shows: "the project's own rules hold", run: tidy },
    Step { name: "clippy", shows: "the compiler and clippy have nothing to say", run: clippy },
    Step { name: "tests", shows: "every test of the workspace passes", run: tests },
    Step {
        name: "guest",
        shows: "Linux boots from a served drive and uses another by NVMe/TCP (longer, and 6.12, with --long)",
        run: guest,
    },
    Step {
        name: "slot",
        shows: "Linux uses zones, blocks and keys that it finds in a PCI slot, by vfio-user (--long)",
        run: slot,
    },
    Step {
        name: "kills",
        shows: "what was flushed is there after a kill, says fio (200 with --long)",
        run: kills,
    },
    Step {
        name: "histories",
        shows: "transactions of ox-block and kv are whole, in an order, and stay, after kills, says porcupine (300 of each with --long)",
        run: histories,
    },
    Step {
        name: "fsx",
        shows: "what fsx writes to a served drive it reads, over nbdfuse (longer with --long)",
        run: fsx,
    },
    Step {
        name: "redis",
        shows: "clients of Redis are answered, and what they stored is there after a kill (Redis' tests with --long)",
        run: redis,
    },
    Step {
        name: "ycsb",
        shows: "YCSB's own client runs A to F on a served drive, no operation fails, and what it reads is right (--long)",
        run: ycsb,
    },
    Step {
        name: "linux-pblk",
        shows: "Linux 5.10's own LightNVM and pblk run on our drive (--long)",
        run: linux_pblk,
    },
    Step {
        name: "rocksdb",
        shows: "RocksDB's own programs work on a drive, and after a kill (power cuts with --long)",
        run: rocksdb,
    },
    Step {
        name: "object-store",
        shows: "a drive passes the suite of the object_store crate, and SlateDB's restarts after power cuts (--long)",
        run: object_store,
    },
    Step {
        name: "sqlite",
        shows: "SQLite commits by transactions of a drive, and keeps them over power cuts (300 each with --long)",
        run: sqlite,
    },
    Step { name: "smoke", shows: "the same seed gives the same trace, another seed another", run: smoke },
    Step {
        name: "mutants",
        shows: "tests find bugs put into ftl that they found before (more, and targets, with --long)",
        run: mutants,
    },
    Step { name: "dist", shows: "the archive of a release holds a program that runs", run: dist },
    Step { name: "docs", shows: "the documentation builds without a broken link", run: docs },
    Step {
        name: "systems",
        shows: "what is meant for macOS and Windows compiles for them (--long)",
        run: systems,
    },
    Step { name: "fuzz-smoke", shows: "every decoder survives 60 s of fuzzing (--long)", run: fuzz_smoke },
];

/// Runs the steps asked for, prints the summary.
///
/// Errors: the first step that fails, in one sentence with its cause.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let wanted = |step: &&Step| options.only.is_empty() || options.only.iter().any(|name| name == step.name);
    let mut lines = Vec::new();
    let mut failure = None;
    for step in STEPS.iter().filter(wanted) {
        if failure.is_some() {
            lines.push(Line { name: step.name, outcome: Outcome::NotReached, seconds: 0.0 });
            continue;
        }
        println!("==> {}: {}", step.name, step.shows);
        let start = Instant::now();
        let outcome = (step.run)(workspace, options).unwrap_or_else(|error| {
            failure = Some((step.name, error));
            Outcome::Failed
        });
        let seconds = start.elapsed().as_secs_f64();
        println!("<== {}: {outcome} in {seconds:.1} s\n", step.name);
        lines.push(Line { name: step.name, outcome, seconds });
    }
    print!("{}", summary::table(&lines));
    if let Some((name, error)) = failure {
        bail!(
            "step `{name}` failed: {error:#}\nOnce repaired, run it alone with `cargo xtask test --only {name}`."
        );
    }
    Ok(())
}

fn packages(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    packages::ensure_installed(packages::PACKAGES)?;
    fio_plot::ensure_installed(workspace)?;
    Ok(Outcome::Passed)
}

fn fmt(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    process::run(workspace.cargo().args(["fmt", "--all", "--check"]))?;
    // These are workspaces of their own and are not reached by `--all`.
    process::run(workspace.cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    for manifest in ["plugins/rocksdb/Cargo.toml", "plugins/sqlite/Cargo.toml"] {
        process::run(workspace.cargo().args(["fmt", "--manifest-path", manifest, "--check"]))?;
    }
    Ok(Outcome::Passed)
}

fn clippy(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    process::run(workspace.cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(Outcome::Passed)
}

fn tidy(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    tidy::run(workspace)?;
    Ok(Outcome::Passed)
}

fn tests(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    let mut command = workspace.cargo();
    // All failures at once: on a slow machine a second run costs more than the rest of this one.
    command.args(["test", "--workspace", "--no-fail-fast"]);
    match fio_plot::installed(workspace) {
        Some(program) => drop(command.env(fio_plot::VARIABLE, program)),
        None => println!("{} is not set: `cargo xtask test --only packages` prepares it", fio_plot::VARIABLE),
    }
    process::run(&mut command)?;
    Ok(Outcome::Passed)
}

fn fsx(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    fsx::run(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn guest(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    guest::run(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn slot(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !options.long && options.only.is_empty() {
        return Ok(Outcome::NotAsked("needs --long, and a QEMU that is fetched the first time"));
    }
    guest::slot::run(workspace)?;
    Ok(Outcome::Passed)
}

fn kills(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    kills::run(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn histories(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    histories::run(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn redis(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    redis::run(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn ycsb(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !options.long && options.only.is_empty() {
        return Ok(Outcome::NotAsked("needs --long, a JDK, and YCSB's core"));
    }
    ycsb::run(workspace)?;
    Ok(Outcome::Passed)
}

fn linux_pblk(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !options.long && options.only.is_empty() {
        return Ok(Outcome::NotAsked("needs --long, and a kernel that is built the first time"));
    }
    packages::ensure_installed(packages::KERNEL_BUILD)?;
    linux_pblk::run(workspace)?;
    Ok(Outcome::Passed)
}

fn rocksdb(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    rocksdb::run(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn object_store(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !options.long && options.only.is_empty() {
        return Ok(Outcome::NotAsked("needs --long, and some hundred crates"));
    }
    for manifest in ["plugins/object_store/Cargo.toml", "plugins/slatedb/Cargo.toml"] {
        let mut command = workspace.cargo();
        command.args(["test", "--locked", "--manifest-path", manifest, "--target-dir"]);
        process::run(command.arg(&workspace.target))?;
    }
    Ok(Outcome::Passed)
}

fn sqlite(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    let mut command = workspace.cargo();
    // What plugins/sqlite/.cargo/config.toml says, which Cargo reads only below that folder.
    command.env("LIBSQLITE3_FLAGS", "-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE");
    command.env("OCSSD_SQLITE_CUTS", if options.long { "300" } else { "10" });
    command.args(["test", "--locked", "--manifest-path", "plugins/sqlite/Cargo.toml", "--target-dir"]);
    process::run(command.arg(&workspace.target))?;
    Ok(Outcome::Passed)
}

fn smoke(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    smoke::run(workspace)?;
    Ok(Outcome::Passed)
}

fn dist(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    dist::check(workspace)?;
    Ok(Outcome::Passed)
}

fn mutants(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    mutants::check_sample(workspace, options.long)?;
    Ok(Outcome::Passed)
}

fn docs(workspace: &Workspace, _: &Options) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.env("RUSTDOCFLAGS", "-Dwarnings").args(["doc", "--workspace", "--no-deps"]);
    process::run(&mut command)?;
    Ok(Outcome::Passed)
}

fn systems(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !options.long && options.only.is_empty() {
        return Ok(Outcome::NotAsked("needs --long, and the standard library of other systems"));
    }
    systems::run(workspace)?;
    Ok(Outcome::Passed)
}

fn fuzz_smoke(workspace: &Workspace, options: &Options) -> Result<Outcome> {
    if !options.long {
        return Ok(Outcome::NotAsked("needs --long; the decoders' seeded tests are part of `tests`"));
    }
    fuzz::run(workspace)?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn only_takes_names_of_steps_and_refuses_others() {
        let line = Line::try_parse_from(["test", "--only", "fmt", "--only", "docs"]).unwrap();
        assert_eq!(line.options.only, ["fmt", "docs"]);
        let error = Line::try_parse_from(["test", "--only", "fnt"]).err().unwrap().to_string();
        assert!(error.contains("fnt") && error.contains("fuzz-smoke"), "{error}");
    }

    #[test]
    fn step_names_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|earlier| earlier.name != step.name), "{}", step.name);
        }
    }
}
