//! Settings of this tool in a job file that real fio reads too: `;ocssd: place=pu:0-3 layout=striped`.
//!
//! To fio such a line is a comment. In a job it is for that job; before the first section or in `[global]` it is for
//! all jobs after it, and only there may `drive` and `clock` stand. Deliberately not here: whether a drive has such
//! parallel units, or a target such a name; the engine knows.

use super::steady_rounds::SteadyRounds;
use super::suggest::did_you_mean;
use super::word::choose;
use crate::host_cpu::HostCpuConfig;

/// The most ranges of one placement (chosen; a drive has at most 65 536 parallel units, and ranges join them).
const RANGES_MAX: usize = 1024;

/// A range of numbers, both ends included; `first <= last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

/// Which parallel units a job uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// All of them.
    #[default]
    All,
    /// These, numbered through all groups (`pu:0-3,8`).
    ParallelUnits(Vec<IndexRange>),
    /// Those of these groups (`group:1`).
    Groups(Vec<IndexRange>),
}

/// How a job's addresses are laid over its parallel units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Write units go round all parallel units.
    #[default]
    Striped,
    /// A chunk is filled before the next parallel unit is used.
    Chunk,
}

/// From when the latency of rated I/O is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// From the start the rate intended, so that waiting for a late start counts.
    Intended,
    /// From the moment it was issued, as fio does.
    Issued,
}

/// Which clock drives the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClock {
    /// Simulated time; the same result in every run.
    Virtual,
    /// The machine's time.
    Wall,
}

/// The extension settings of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// Which parallel units.
    pub place: Placement,
    /// In which order.
    pub layout: Layout,
    /// The host-side target by its name, with its options after a colon; or the run's own choice.
    pub target: Option<String>,
    /// The host's CPUs, as [`HostCpuConfig::parse_text`] reads them, sound; or the run's own choice.
    pub host_cpu: Option<String>,
    /// As given; see [`Job::response`](super::Job::response) for what holds.
    pub response: Option<Response>,
    /// When the job is steady by rounds, and ends, as [`SteadyRounds::parse`] reads it, sound.
    pub steady: Option<String>,
    /// The settings as given, in order, the last of a name only.
    pub given: Vec<(String, String)>,
}

/// What a file asks of the whole run; whoever starts the run may decide otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHints {
    /// The drive's preset by its name.
    pub drive: Option<String>,
    /// The clock.
    pub clock: Option<RunClock>,
}

const KEYS: [&str; 8] = ["place", "layout", "target", "host_cpu", "response", "steady", "drive", "clock"];

/// Reads one setting into a job's extension, or into the run's hints when `run` is given (a global place).
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn apply_extension(
    name: &str,
    value: Option<&str>,
    extension: &mut Extension,
    run: Option<&mut RunHints>,
) -> Result<(), String> {
    if !KEYS.contains(&name) {
        let nearest = did_you_mean(name, KEYS.into_iter());
        return Err(format!("expected one of the extension's keys {}{nearest}", KEYS.join(", ")));
    }
    let value =
        value.filter(|value| !value.is_empty()).ok_or_else(|| format!("expected a value, as {name}=.."))?;
    match name {
        "place" => extension.place = parse_placement(value)?,
        "layout" => {
            extension.layout = choose(value, &[("striped", Layout::Striped), ("chunk", Layout::Chunk)])?
        }
        "target" => extension.target = Some(parse_target(value)?),
        "host_cpu" => {
            HostCpuConfig::parse_text(value).map_err(|problems| problems.to_string())?;
            extension.host_cpu = Some(value.to_owned());
        }
        "response" => {
            let words = [("intended", Response::Intended), ("issued", Response::Issued)];
            extension.response = Some(choose(value, &words)?);
        }
        "steady" => {
            SteadyRounds::parse(value)?;
            extension.steady = Some(value.to_owned());
        }
        _ => {
            let run =
                run.ok_or_else(|| format!("{name} is for the whole run; write it before the first section"))?;
            if name == "drive" {
                run.drive = Some(parse_identifier(value)?);
            } else {
                run.clock = Some(choose(value, &[("virtual", RunClock::Virtual), ("wall", RunClock::Wall)])?);
            }
            return Ok(());
        }
    }
    extension.given.retain(|(known, _)| known != name);
    extension.given.push((name.to_owned(), value.to_owned()));
    Ok(())
}

/// A name, and after a colon options of that kind of target: `pblk:mode=faithful,seed=3`.
fn parse_target(text: &str) -> Result<String, String> {
    let (name, options) = text.split_once(':').map_or((text, None), |(name, options)| (name, Some(options)));
    parse_identifier(name)?;
    let sound = |option: &str| {
        option.split_once('=').is_some_and(|(name, value)| !name.is_empty() && !value.is_empty())
    };
    if options.is_some_and(|options| !options.split(',').all(sound)) {
        return Err("expected target=NAME or target=NAME:OPTION=VALUE,OPTION=VALUE".to_owned());
    }
    Ok(text.to_owned())
}

fn parse_identifier(text: &str) -> Result<String, String> {
    let valid = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    valid.then(|| text.to_owned()).ok_or_else(|| "expected a name of letters, digits, _, - and .".to_owned())
}

fn parse_placement(text: &str) -> Result<Placement, String> {
    match text.split_once(':') {
        None if text == "all" => Ok(Placement::All),
        Some(("pu", list)) => parse_ranges(list).map(Placement::ParallelUnits),
        Some(("group", list)) => parse_ranges(list).map(Placement::Groups),
        _ => Err("expected place=all, place=pu:0-3,8 or place=group:1".to_owned()),
    }
}

fn parse_ranges(list: &str) -> Result<Vec<IndexRange>, String> {
    let mut ranges = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => IndexRange { first, last },
            _ => return Err(format!("expected numbers and ranges such as 0-3,8, but found `{part}`")),
        };
        if ranges.iter().any(|known: &IndexRange| known.first <= range.last && range.first <= known.last) {
            return Err(format!("expected each number once, but `{part}` repeats one"));
        }
        ranges.push(range);
        if ranges.len() > RANGES_MAX {
            return Err(format!("expected at most {RANGES_MAX} ranges"));
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(setting: &str) -> Result<(Extension, RunHints), String> {
        let (mut extension, mut run) = (Extension::default(), RunHints::default());
        let (name, value) =
            setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)));
        apply_extension(name, value, &mut extension, Some(&mut run)).map(|()| (extension, run))
    }

    #[test]
    fn every_key_has_its_type() {
        let range = |first, last| IndexRange { first, last };
        let place = |text| read(text).map(|found| found.0.place);
        assert_eq!(place("place=all"), Ok(Placement::All));
        assert_eq!(place("place=pu:0-3,8"), Ok(Placement::ParallelUnits(vec![range(0, 3), range(8, 8)])));
        assert_eq!(place("place=group:1"), Ok(Placement::Groups(vec![range(1, 1)])));
        assert_eq!(read("layout=chunk").map(|found| found.0.layout), Ok(Layout::Chunk));
        assert_eq!(read("target=linear").map(|found| found.0.target), Ok(Some("linear".to_owned())));
        let host = read("host_cpu=e7-8870v3-x4:cores=4").map(|found| found.0.host_cpu);
        assert_eq!(host, Ok(Some("e7-8870v3-x4:cores=4".to_owned())));
        assert_eq!(read("response=issued").map(|found| found.0.response), Ok(Some(Response::Issued)));
        let steady = read("steady=snia:round=1s").map(|found| found.0.steady);
        assert_eq!(steady, Ok(Some("snia:round=1s".to_owned())));
        assert_eq!(read("drive=westlake").map(|found| found.1.drive), Ok(Some("westlake".to_owned())));
        assert_eq!(read("clock=wall").map(|found| found.1.clock), Ok(Some(RunClock::Wall)));
    }

    #[test]
    fn bad_settings_say_what_is_valid() {
        let many: Vec<String> = (0..1025).map(|pu| pu.to_string()).collect();
        let many = format!("place=pu:{}", many.join(","));
        let cases = [
            ("plaice=all", "did you mean `place`?"),
            ("place", "expected a value"),
            ("place=", "expected a value"),
            ("place=everywhere", "place=all"),
            ("place=pu:", "numbers and ranges"),
            ("place=pu:3-0", "numbers and ranges"),
            ("place=pu:0-3,2", "repeats one"),
            ("place=lun:0", "place=group:1"),
            ("layout=stripped", "did you mean `striped`?"),
            ("response=late", "intended, issued"),
            ("clock=sun", "virtual, wall"),
            ("drive=a/b", "a name of letters"),
            ("target=pblk:mode", "OPTION=VALUE"),
            ("steady=iops", "snia, contract"),
            ("host_cpu=xeon", "e7-8870v3-x4, free or none"),
            ("host_cpu=free:cores=many", "whole number"),
            (&many, "at most 1024"),
        ];
        for (setting, expected) in cases {
            let message = read(setting).expect_err(setting);
            assert!(message.contains(expected), "{setting}: {message}");
        }
        let message =
            apply_extension("clock", Some("wall"), &mut Extension::default(), None).expect_err("in a job");
        assert!(message.contains("before the first section"), "{message}");
    }
}
