//! Packages of other Debian releases: fetched and checked by apt in folders of their own, unpacked, never installed.
//!
//! apt keeps its lists, its packages and its idea of what is installed (nothing) in the cache, so the machine's own
//! package system does not notice, and no rights are needed. Signatures are checked against Debian's keyring.

use super::sources::{self, Archives};
use crate::process;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Keys of Debian's archive; package `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Releases of Debian that something is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// 11 with its security updates: Linux 5.10.
    Bullseye,
    /// 13 with its backports: a QEMU with `vfio-user-pci`.
    TrixieBackports,
}

impl Release {
    const fn name(self) -> &'static str {
        match self {
            Self::Bullseye => "bullseye",
            Self::TrixieBackports => "trixie",
        }
    }

    /// What apt prefers packages of.
    const fn preferred(self) -> &'static str {
        match self {
            Self::Bullseye => "bullseye",
            Self::TrixieBackports => "trixie-backports",
        }
    }

    /// The lines of its `sources.list`.
    fn list(self, archives: &Archives) -> String {
        let line = |address: &str, suite: &str| format!("deb [signed-by={KEYRING}] {address} {suite} main\n");
        let text = line(&archives.main, self.name());
        text + &match self {
            Self::Bullseye => {
                archives.security.as_deref().map_or(String::new(), |at| line(at, "bullseye-security"))
            }
            Self::TrixieBackports => line(&archives.main, "trixie-backports"),
        }
    }
}

/// apt for one release.
pub struct Apt {
    folder: PathBuf,
    release: Release,
}

impl Apt {
    /// With fresh lists.
    ///
    /// Errors: the machine's apt names no archive, the archive cannot be reached, or it no longer has the release.
    pub fn new(cache: &Path, release: Release) -> Result<Self> {
        ensure!(
            Path::new(KEYRING).exists(),
            "Debian's keys are not at {KEYRING}: `apt-get install debian-archive-keyring`"
        );
        let folder = cache.join("apt").join(release.name());
        for place in ["lists/partial", "cache/archives/partial", "none"] {
            let place = folder.join(place);
            fs::create_dir_all(&place).with_context(|| format!("{} could not be made", place.display()))?;
        }
        // Nothing is installed: everything that a package depends on is fetched.
        fs::write(folder.join("status"), "")?;
        fs::write(folder.join("sources.list"), release.list(&sources::find()?))?;
        let apt = Self { folder, release };
        println!("fetching the package lists of {}", release.preferred());
        let updated = quietly(apt.command("apt-get").arg("update"));
        updated.with_context(|| format!("the package lists of {} could not be fetched", release.name()))?;
        Ok(apt)
    }

    /// The version it would fetch.
    ///
    /// Errors: the release has no such package.
    pub fn version(&self, package: &str) -> Result<String> {
        let said = quietly(self.command("apt-cache").args(["policy", package]))?;
        candidate(&said).with_context(|| format!("{} has no package {package}", self.release.name()))
    }

    /// The package and all it depends on, unpacked over each other below `root`.
    ///
    /// Errors: a package cannot be fetched, its signature is wrong, or the disk is full.
    pub fn unpack_with_dependencies(&self, package: &str, root: &Path) -> Result<()> {
        let mut fetch = self.command("apt-get");
        fetch.args([
            "install",
            "-y",
            "--no-install-recommends",
            "--download-only",
            "-t",
            self.release.preferred(),
        ]);
        quietly(fetch.arg(package)).with_context(|| format!("{package} could not be fetched"))?;
        let fetched = self.folder.join("cache/archives");
        self.unpack(&fetched, root)
    }

    /// The package alone, unpacked below `root`.
    ///
    /// Errors: as for [`Self::unpack_with_dependencies`].
    pub fn unpack_alone(&self, package: &str, root: &Path) -> Result<()> {
        let fetched = self.folder.join("alone");
        fs::create_dir_all(&fetched)?;
        quietly(self.command("apt-get").current_dir(&fetched).args(["download", package]))
            .with_context(|| format!("{package} could not be fetched"))?;
        self.unpack(&fetched, root)
    }

    /// Unpacks every package of a folder, then removes them: apt fetches them again if they are needed.
    fn unpack(&self, fetched: &Path, root: &Path) -> Result<()> {
        let mut count = 0;
        for entry in fs::read_dir(fetched)? {
            let path = entry?.path();
            if path.extension().is_some_and(|name| name == "deb") {
                process::run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(root))?;
                fs::remove_file(&path)?;
                count += 1;
            }
        }
        ensure!(count > 0, "apt fetched nothing to {}", fetched.display());
        println!("unpacked {count} packages of {}", self.release.name());
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let places = [
            ("Dir::State", ""),
            ("Dir::State::lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "none"),
            ("Dir::Etc::preferences", "none/preferences"),
            ("Dir::Etc::preferencesparts", "none"),
        ];
        for (option, place) in places {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(place).display()));
        }
        // Its own user for fetching cannot read a cache in somebody's home.
        command
            .args(["-o", "APT::Sandbox::User="])
            .env("LC_ALL", "C.UTF-8")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

impl Drop for Apt {
    fn drop(&mut self) {
        // Its lists and their names say where packages come from. What is left after a failure is replaced the next time.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs without a word, because apt says where it fetches from; what it said on failure is told without addresses.
fn quietly(command: &mut Command) -> Result<String> {
    let done = command.output().context("apt could not be started")?;
    let said = [&done.stdout[..], &done.stderr[..]].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    ensure!(done.status.success(), "apt said:\n{}", without_addresses(&said.concat()));
    Ok(said[0].clone())
}

/// Every word with an address in it replaced.
fn without_addresses(text: &str) -> String {
    let word = |word: &str| if word.contains("://") { "ARCHIVE".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The version in what `apt-cache policy` says.
fn candidate(said: &str) -> Option<String> {
    let version = said.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    (version != "(none)").then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_candidate() {
        let said = "linux-source-5.10:\n  Installed: (none)\n  Candidate: 5.10.262-1\n  Version table:\n";
        assert_eq!(candidate(said).as_deref(), Some("5.10.262-1"));
        assert_eq!(candidate("x:\n  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
    }

    #[test]
    fn addresses_are_not_told() {
        let told = without_addresses("E: Failed to fetch http://mirror.example/debian/x  404\nsecond");
        assert_eq!(told, "E: Failed to fetch ARCHIVE  404\nsecond");
    }

    #[test]
    fn a_release_has_its_updates() {
        let archives = Archives { main: "m".into(), security: Some("s".into()) };
        assert!(Release::Bullseye.list(&archives).ends_with("s bullseye-security main\n"));
        assert!(Release::TrixieBackports.list(&archives).ends_with("m trixie-backports main\n"));
        let bare = Archives { main: "m".into(), security: None };
        assert_eq!(Release::Bullseye.list(&bare).lines().count(), 1);
    }
}
