//! What a profile is compared with: a datasheet, a saved result, or a virtual drive that is profiled the same way.

use super::wait::Waiting;
use super::{measure, subject};
use crate::args::ProfileArgs;
use anyhow::{Context, anyhow, bail};
use ocssd_measure::profile::{
    Comparison, Datasheet, Profile, Saved, find_datasheet, read_saved, with_datasheet, with_saved,
};
use std::path::Path;

/// The other side.
pub enum Against {
    /// A vendor's numbers.
    Sheet(Datasheet),
    /// A result that was kept.
    Saved(Saved),
    /// A virtual drive by name.
    Emulated(String),
}

/// Finds what is named; everything that can be wrong with it is said now.
pub fn find(names: &[String]) -> anyhow::Result<Vec<Against>> {
    names.iter().map(|name| one(name)).collect()
}

fn one(name: &str) -> anyhow::Result<Against> {
    if let Some(drive) = name.strip_prefix("emulated:") {
        ocssd_drive::Source::named(drive)?;
        return Ok(Against::Emulated(drive.to_owned()));
    }
    if Path::new(name).is_file() {
        return kept(Path::new(name)).map(Against::Saved);
    }
    find_datasheet(name).map(Against::Sheet).map_err(|sentence| {
        anyhow!("{sentence}; or give the path of a saved result.json, or emulated:DRIVE for a virtual drive")
    })
}

/// A result that was kept.
pub fn kept(path: &Path) -> anyhow::Result<Saved> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
    read_saved(&name, &text).map_err(anyhow::Error::msg)
}

/// Puts the profile beside it.
pub fn compare(
    args: &ProfileArgs,
    profile: &Profile,
    other: &Against,
    waiting: &mut Waiting,
) -> anyhow::Result<Comparison> {
    let ours = Saved::of("this profile", profile);
    match other {
        Against::Emulated(drive) => {
            let mut device =
                subject::virtual_drive(drive, &args.ftl, Some(profile.bytes), super::host(args)?)?;
            let theirs = measure(args, device.as_mut(), waiting, true);
            Ok(with_saved(&ours, &Saved::of(&format!("the virtual drive {drive}"), &theirs)))
        }
        other => compare_kept(&ours, other),
    }
}

/// Puts a kept profile beside what needs no measuring.
pub fn compare_kept(ours: &Saved, other: &Against) -> anyhow::Result<Comparison> {
    match other {
        Against::Sheet(sheet) => Ok(with_datasheet(ours, sheet)),
        Against::Saved(saved) => Ok(with_saved(ours, saved)),
        Against::Emulated(drive) => {
            bail!(
                "--saved measures nothing, so emulated:{drive} cannot be profiled beside it; profile that drive first, and give its \
                 result.json"
            )
        }
    }
}
