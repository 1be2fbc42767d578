//! Building the copy into which all mutants are woven: those that do not compile there are left out, round by round.

use super::{
    change::{Change, Genre},
    weave::{Woven, weave},
};
use crate::{
    mutants::{
        copy::Copy,
        mutant::{Key, Mutant},
    },
    process,
    workspace::Workspace,
};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::PathBuf,
    process::{Command, Stdio},
};

/// The function that tells which mutant is shown, put into the crate that all others know.
const SWITCH: &str = include_str!("switch.rs");
const SWITCH_IN: &str = "crates/base/src/mutant_switch.rs";
const KNOWN_BY: &str = "crates/base/src/lib.rs";

/// Rounds of compiling at most (chosen: types, borrows and constants are complained of one after the other, crate by crate).
const ROUNDS_MAX: u32 = 40;

/// Why a mutant is not in the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftOut {
    /// It would not compile by itself, either.
    Unviable,
    /// Only as a choice it does not compile, or there is none at its place.
    NotWoven,
}

/// What earlier rounds found; kept, so that the next run compiles once.
#[derive(Default, Serialize, Deserialize)]
struct Found {
    left_out: Vec<(Key, LeftOut)>,
    kept_const: BTreeSet<String>,
}

/// The copy with mutants in it, compiled.
pub struct Build {
    pub copy: Copy,
    /// Mutants that are not in it, by number.
    pub left_out: BTreeMap<u32, LeftOut>,
}

/// One line of what cargo says with `--message-format=json`.
#[derive(Deserialize)]
struct Message {
    message: Option<Complaint>,
}

#[derive(Deserialize)]
struct Complaint {
    level: String,
    message: String,
    code: Option<Code>,
    spans: Vec<Place>,
    rendered: Option<String>,
    children: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    spans: Vec<Place>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Place {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

impl Build {
    /// Weaves all mutants, whose numbers are their indices, and compiles what comes out until nothing is complained of.
    ///
    /// Errors: the compiler complains of what no mutant has to do with, or files cannot be written.
    pub fn make(workspace: &Workspace, mutants: &[Mutant]) -> Result<Self> {
        let kept = workspace.target.join("mutants/woven.json");
        let mut found: Found = fs::read_to_string(&kept)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let numbers: BTreeMap<&Key, u32> =
            (0..).zip(mutants).map(|(number, mutant)| (&mutant.key, number)).collect();
        let mut left_out: BTreeMap<u32, LeftOut> =
            found.left_out.iter().filter_map(|(key, why)| Some((*numbers.get(key)?, *why))).collect();
        for round in 1..=ROUNDS_MAX {
            let files = weave_all(workspace, mutants, &mut left_out, &found.kept_const)?;
            let texts = files.iter().map(|(file, woven)| (file.clone(), woven.text.clone()));
            let copy = Copy::refresh_with(workspace, "woven", &texts.chain(switch(workspace)?).collect())?;
            let complaints = complaints(workspace, &copy)?;
            println!(
                "round {round}: {} complaints, {} of {} mutants left out",
                complaints.len(),
                left_out.len(),
                mutants.len()
            );
            found.left_out =
                left_out.iter().map(|(&id, &why)| (mutants[id as usize].key.clone(), why)).collect();
            fs::write(&kept, serde_json::to_string(&found)?)
                .context("what was left out could not be kept")?;
            if complaints.is_empty() {
                return Ok(Self { copy, left_out });
            }
            let before = (left_out.len(), found.kept_const.len());
            for complaint in &complaints {
                blame(complaint, &files, &mut left_out, &mut found.kept_const)?;
            }
            ensure!(
                before != (left_out.len(), found.kept_const.len()),
                "the compiler refuses what no mutant has to do with:\n{}",
                complaints[0].rendered.as_deref().unwrap_or(&complaints[0].message)
            );
        }
        anyhow::bail!("after {ROUNDS_MAX} rounds the compiler still complains")
    }
}

fn weave_all(
    workspace: &Workspace,
    mutants: &[Mutant],
    left_out: &mut BTreeMap<u32, LeftOut>,
    kept_const: &BTreeSet<String>,
) -> Result<BTreeMap<String, Woven>> {
    let mut by_file = BTreeMap::<&str, Vec<(u32, &Change)>>::new();
    // Where the type is told by what is returned, a choice between two types does not compile, where either alone would.
    let is_opaque =
        |mutant: &Mutant| mutant.change.genre == Genre::FnValue && mutant.key.mutant.contains("-> impl ");
    let opaque = (0..).zip(mutants).filter(|(_, mutant)| is_opaque(mutant));
    left_out.extend(opaque.map(|(number, _)| (number, LeftOut::NotWoven)));
    for (number, mutant) in (0..).zip(mutants).filter(|(number, _)| !left_out.contains_key(number)) {
        by_file.entry(&mutant.key.file).or_default().push((number, &mutant.change));
    }
    let mut files = BTreeMap::new();
    for (file, changes) in by_file {
        let text = fs::read_to_string(workspace.root.join(file))?;
        let woven = weave(&text, &changes, kept_const).with_context(|| file.to_owned())?;
        let placed: BTreeSet<u32> = woven.at.iter().map(|&(_, id)| id).collect();
        let missing = changes.iter().filter(|(id, _)| !placed.contains(id));
        left_out.extend(missing.map(|&(id, _)| (id, LeftOut::NotWoven)));
        files.insert(file.to_owned(), woven);
    }
    Ok(files)
}

fn switch(workspace: &Workspace) -> Result<[(String, String); 2]> {
    let known_by = fs::read_to_string(workspace.root.join(KNOWN_BY))?;
    let module = "\n/// Which mutant is shown.\npub mod mutant_switch;\n";
    Ok([(SWITCH_IN.to_owned(), SWITCH.to_owned()), (KNOWN_BY.to_owned(), known_by + module)])
}

/// Errors that the compiler finds in the copy.
fn complaints(workspace: &Workspace, copy: &Copy) -> Result<Vec<Complaint>> {
    let mut command = prepare(copy, workspace.cargo());
    command.args(["check", "--quiet", "--message-format=json", "--keep-going"]);
    // The simulation, too: what it calls in a constant must stay `const`.
    command.args(["--package=ocssd-ftl", "--package=ocssd-targets", "--package=ocssd-sim", "--tests"]);
    let output = command.stderr(Stdio::inherit()).output().context("cargo could not be started")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages = lines.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let errors = messages.filter_map(|message| message.message).filter(|of| of.level == "error");
    let errors: Vec<Complaint> = errors.filter(|of| !of.spans.is_empty()).collect();
    ensure!(
        output.status.success() || !errors.is_empty(),
        "`{}` ended with {}",
        process::line(&command),
        output.status
    );
    Ok(errors)
}

/// A command of cargo on the copy: what a mutant makes needless or impossible is no reason to refuse it.
pub fn prepare(copy: &Copy, command: Command) -> Command {
    let mut command = copy.prepare(command);
    command.env("RUSTFLAGS", "--cap-lints=allow").env("CARGO_INCREMENTAL", "0");
    command
}

/// Finds whose fault a complaint is, and leaves it out.
fn blame(
    complaint: &Complaint,
    files: &BTreeMap<String, Woven>,
    left_out: &mut BTreeMap<u32, LeftOut>,
    kept_const: &mut BTreeSet<String>,
) -> Result<()> {
    let code = complaint.code.as_ref().map_or("", |code| code.code.as_str());
    if code == "E0015" && !complaint.message.contains("is_shown") {
        // "cannot call non-const associated function `T::new` in constants": so that one stays `const`.
        let name = complaint.message.split('`').nth(1).context("E0015 names a function")?;
        let name = name.split("::<").next().unwrap_or(name);
        kept_const.insert(name.rsplit("::").next().unwrap_or(name).to_owned());
        return Ok(());
    }
    let at = |place: &Place| {
        let range: Range<usize> = place.byte_start..place.byte_end;
        let woven = files.iter().find(|(file, _)| place.file_name.ends_with(file.as_str()));
        woven.map_or(Vec::new(), |(_, woven)| woven.mutants_at(&range))
    };
    let primary = complaint.spans.iter().filter(|place| place.is_primary).flat_map(at);
    let mut blamed: BTreeSet<u32> = primary.collect();
    if blamed.is_empty() {
        let children = complaint.children.iter().flat_map(|child| &child.spans);
        blamed = complaint.spans.iter().chain(children).flat_map(at).collect();
    }
    // What only a choice is refused for: what both sides borrow or move, and what constants cannot call.
    let is_of_choice =
        code.starts_with("E05") || code.starts_with("E07") || matches!(code, "E0381" | "E0382" | "E0015");
    let why = if is_of_choice { LeftOut::NotWoven } else { LeftOut::Unviable };
    for id in blamed {
        left_out.entry(id).or_insert(why);
    }
    Ok(())
}

/// Test programs of a package, compiled: name and path.
pub fn test_programs(
    workspace: &Workspace,
    copy: &Copy,
    package: &str,
    which: &[&str],
) -> Result<Vec<(String, PathBuf)>> {
    #[derive(Deserialize)]
    struct Artifact {
        executable: Option<PathBuf>,
        target: Option<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    let mut command = prepare(copy, workspace.cargo());
    command.args(["test", "--no-run", "--quiet", "--message-format=json", "--package", package]).args(which);
    let text = process::output(&mut command)?;
    let artifacts = text.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    Ok(artifacts.filter_map(|artifact| Some((artifact.target?.name, artifact.executable?))).collect())
}
