//! What is asked for: which target, which seeds, how long.
//!
//! Deliberately not here: lists of steps (`steps`).

use crate::args::SizeArg;
use ocssd_sim::swarm::Size;
use ocssd_targets::registry::{self, Kind, TargetOptions};
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

/// How long seeds without an end are run (chosen: long enough to look at, short enough to wait for).
const TIME_DEFAULT: Duration = Duration::from_secs(60);

/// Seeds from the first to before the end; without an end, as many as the time allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    end: Option<u64>,
}

impl Seeds {
    /// The same as a range.
    pub fn range(self) -> Range<u64> {
        self.first..self.end.unwrap_or(u64::MAX)
    }

    /// How long they are run, if `time` was asked for or nothing was.
    pub fn time(self, time: Option<Duration>) -> Option<Duration> {
        time.or(if self.end.is_some() { None } else { Some(TIME_DEFAULT) })
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "seeds are two numbers, the second not run itself, as 0..1000, or one, as 500..; \"{text}\" was given"
            )
        };
        let (first, end) = text.split_once("..").ok_or_else(wrong)?;
        let first = first.parse().map_err(|_| wrong())?;
        let end = if end.is_empty() { None } else { Some(end.parse().map_err(|_| wrong())?) };
        if end.is_some_and(|end| end <= first) {
            return Err(format!("{text} are no seeds: the second number must be larger than the first"));
        }
        Ok(Self { first, end })
    }
}

/// A time as `30s`, `10min` or `2h`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => {
            Err(format!("a time is a number above 0 with a unit, as 30s, 10min or 2h; \"{text}\" was given"))
        }
    }
}

/// The size in the simulator's words.
pub const fn size(size: SizeArg) -> Size {
    match size {
        SizeArg::Tiny => Size::Tiny,
        SizeArg::Any => Size::Any,
    }
}

/// The size as it is given on the command line.
pub const fn size_name(size: SizeArg) -> &'static str {
    match size {
        SizeArg::Tiny => "tiny",
        SizeArg::Any => "any",
    }
}

/// The kind of target, if there is a contract for it, and the options it is held at, as `pblk:mode=faithful`.
pub fn target(text: &str) -> anyhow::Result<(&'static Kind, TargetOptions)> {
    let (name, fixed) = registry::parse(text).map_err(anyhow::Error::msg)?;
    let why_not = match name {
        "linear" => "takes writes only in order, zone by zone",
        "null" => "keeps nothing",
        _ => return Ok((crate::kinds::find(name).map_err(anyhow::Error::msg)?, fixed)),
    };
    anyhow::bail!(
        "the target \"{name}\" {why_not}, but the contract that is simulated for blocks is that of a device written in any \
         order; choose --target pblk"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_with_or_without_an_end() {
        for (text, range, time) in [("0..7", 0..7, None), ("5..", 5..u64::MAX, Some(TIME_DEFAULT))] {
            let seeds: Seeds = text.parse().expect(text);
            assert_eq!((seeds.range(), seeds.time(None)), (range, time), "{text}");
            let asked = Some(Duration::from_secs(9));
            assert_eq!(seeds.time(asked), asked, "{text}");
        }
        for wrong in
            ["", "..", "7", "..7", "1..1", "9..3", "a..b", "-1..3", "1...3", "1..99999999999999999999"]
        {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn a_time_has_a_unit_and_is_not_nothing() {
        for (text, seconds) in [("30s", 30), ("10min", 600), ("2h", 7200), ("1h 30s", 3630)] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "30", "0s", "s", "-3s", "2 fortnights", "99999999999999999999h"] {
            let sentence = parse_time(wrong).expect_err(wrong);
            assert!(sentence.contains("10min"), "{sentence}");
        }
    }

    #[test]
    fn only_targets_with_a_contract_are_simulated() {
        let (kind, fixed) = target("pblk:mode=faithful").expect("there is a contract");
        assert_eq!((kind.name, fixed), ("pblk", vec![("mode".to_owned(), "faithful".to_owned())]));
        for (name, words) in [("linear", "in order"), ("null", "keeps nothing"), ("nope", "the targets are")]
        {
            let Err(error) = target(name) else { panic!("{name} was taken") };
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
