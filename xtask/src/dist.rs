//! `cargo xtask dist`: what somebody without a compiler needs, as one archive.
//!
//! The program without its debug information, its completions and manual pages, the C library with header and pkg-config file,
//! documentation and examples, laid out so that `tar -C /usr/local --strip-components=1 -xf` installs them. The same commit and
//! compiler give the same archive. Deliberately not here: how libraries are installed (`c_library`), and what verbs there are
//! (the program says it).

use crate::c_library::{self, InstallOptions};
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was typed after `cargo xtask dist`.
#[derive(Args)]
pub struct Options {
    /// Folder that gets the archive [default: dist in the build directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Cargo's profile to build with; tests take `dev`
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
}

impl Options {
    /// As CI asks: quickly built, and out of the way of a real archive.
    pub fn for_tests(workspace: &Workspace) -> Self {
        Self { out: Some(workspace.target.join("dist-test")), profile: "dev".to_owned() }
    }
}

/// Shells with the place where each looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/ocssd"),
    ("zsh", "share/zsh/site-functions/_ocssd"),
    ("fish", "share/fish/vendor_completions.d/ocssd.fish"),
];

/// Files and folders of the repository that users read.
const DOCUMENTS: [&str; 6] =
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs", "examples"];

/// Builds everything and packs it; returns the archive.
///
/// Errors: a build fails, a program that is needed (`strip`, `tar`) is missing, or the folder cannot be written to.
pub fn run(workspace: &Workspace, options: &Options) -> Result<PathBuf> {
    let out = options.out.clone().unwrap_or_else(|| workspace.target.join("dist"));
    let name =
        format!("ocssd-{}-{}-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS);
    let stage = out.join(&name);
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("{} could not be emptied", stage.display()))?;
    }
    let program = stage.join("bin/ocssd");
    copy(&build(workspace, &options.profile)?, &program)?;
    c_library::install(workspace, &InstallOptions::new(stage.clone(), options.profile.clone()))?;
    strip(&program, "--strip-all")?;
    strip(&stage.join(format!("lib/libocssd.so.{}", env!("CARGO_PKG_VERSION"))), "--strip-unneeded")?;
    strip(&stage.join("lib/libocssd.a"), "--strip-debug")?;
    write_pages(&program, &stage)?;
    write_documents(workspace, &stage)?;
    let archive = out.join(format!("{name}.tar.gz"));
    pack(workspace, &out, &name, &archive)?;
    let bytes = fs::metadata(&archive)?.len();
    println!("packed {} ({:.1} MB)", archive.display(), f64::from(u32::try_from(bytes)?) / 1e6);
    Ok(archive)
}

/// Packs an archive, unpacks it elsewhere, and runs what it holds.
///
/// Errors: as [`run`], or the program that was unpacked does not run.
pub fn check(workspace: &Workspace) -> Result<()> {
    let archive = run(workspace, &Options::for_tests(workspace))?;
    let prefix = archive.with_file_name("unpacked");
    if prefix.exists() {
        fs::remove_dir_all(&prefix)?;
    }
    fs::create_dir_all(&prefix)?;
    process::run(
        Command::new("tar").arg("--strip-components=1").arg("-C").arg(&prefix).arg("-xf").arg(&archive),
    )?;
    let run = ["run", "--quiet", "--print", "hash", "--name=a", "--rw=randread", "--bs=4k", "--size=1m"];
    let said = process::output(Command::new(prefix.join("bin/ocssd")).args(run))?;
    ensure!(said.starts_with("trace hash "), "expected a trace hash of the unpacked program, found: {said}");
    for path in
        ["share/man/man1/ocssd-run.1", "share/man/man3/ocssd.3", "lib/pkgconfig/ocssd.pc", "include/ocssd.h"]
            .into_iter()
            .chain(COMPLETIONS.map(|(_, path)| path))
    {
        ensure!(prefix.join(path).is_file(), "expected {path} in {}, found none", archive.display());
    }
    Ok(())
}

/// The program of a profile; that of `dev` is the one that tests use.
fn build(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    if profile == "dev" {
        return workspace.program();
    }
    let arguments = ["build", "--locked", "--package", "ocssd-cli", "--bin", "ocssd", "--profile", profile];
    process::run(workspace.cargo().args(arguments))?;
    Ok(workspace.target.join(profile).join("ocssd"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("the target has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    fs::copy(from, to)
        .with_context(|| format!("{} could not be copied to {}", from.display(), to.display()))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("the file has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
}

fn strip(path: &Path, how: &str) -> Result<()> {
    process::run(Command::new("strip").arg(how).arg(path))
        .context("`strip` comes with binutils, as the linker does")
}

/// Completions and manual pages, by the program that they are of.
fn write_pages(program: &Path, stage: &Path) -> Result<()> {
    for (shell, place) in COMPLETIONS {
        write(&stage.join(place), &process::output(Command::new(program).args(["completions", shell]))?)?;
    }
    let manual = stage.join("share/man/man1");
    write(&manual.join("ocssd.1"), &process::output(Command::new(program).arg("man"))?)?;
    let help = process::output(Command::new(program).arg("--help"))?;
    for verb in verbs(&help) {
        let page = process::output(Command::new(program).args(["man", verb]))?;
        write(&manual.join(format!("ocssd-{verb}.1")), &page)?;
    }
    Ok(())
}

/// The verbs that a help lists: words two blanks from the left below `Commands:`.
fn verbs(help: &str) -> Vec<&str> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

fn write_documents(workspace: &Workspace, stage: &Path) -> Result<()> {
    let place = stage.join("share/doc/ocssd");
    for path in workspace.tracked_files()? {
        let is_wanted = |name: &&str| path == **name || path.starts_with(&format!("{name}/"));
        if DOCUMENTS.iter().any(is_wanted) {
            copy(&workspace.root.join(&path), &place.join(&path))?;
        }
    }
    Ok(())
}

/// Packs a folder so that the same files give the same bytes; their time is that of the commit.
fn pack(workspace: &Workspace, folder: &Path, name: &str, archive: &Path) -> Result<()> {
    let time = process::output(workspace.git().args(["log", "-1", "--format=%ct"]))?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=go=u,go-w",
    ]);
    tar.arg(format!("--mtime=@{}", time.trim())).arg("-czf").arg(archive).arg(name);
    process::run(&mut tar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_read_from_the_help() {
        let help =
            "About\n\nCommands:\n  run      Run jobs\n           and more\n  format\n\nOptions:\n  --json\n";
        assert_eq!(verbs(help), ["run", "format"]);
        assert!(verbs("nothing").is_empty());
    }
}
