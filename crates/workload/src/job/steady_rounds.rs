//! When a job counts as steady by the SNIA's rule: our own `steady=`, which fio has no word for.
//!
//! `;ocssd: steady=snia:round=10s` judges rounds of ten seconds. fio's `steadystate` tests slope *or* deviation, and its slope is
//! per sample; the rule of the Performance Test Specification tests both, over a window of rounds. Deliberately not here: judging
//! (`run::Rounds`), and taking rounds.

use super::number::{KbBase, TimeUnit, parse_integer, parse_time};
use super::steady::SteadyMetric;
use super::suggest::did_you_mean;
use super::word::choose;
use ocssd_base::Nanos;

/// When rounds count as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRule {
    /// Rounds that are judged together, at least two.
    pub window: usize,
    /// Largest difference between two rounds of a window, in percent of its mean.
    pub excursion_percent: f64,
    /// Largest change along the least-squares line over the window, in percent of its mean.
    pub slope_percent: f64,
    /// So many windows in a row must pass, none of them twice: a window moves on by one round.
    pub windows: usize,
    /// Bytes that must have been written in all.
    pub floor_bytes: u64,
    /// Rounds after which nobody waits any longer.
    pub rounds_max: usize,
}

impl RoundRule {
    /// SNIA PTS 2.0: five rounds within 20 %, their line within 10 %, given up after 25.
    #[must_use]
    pub const fn snia(floor_bytes: u64) -> Self {
        Self {
            window: 5,
            excursion_percent: 20.0,
            slope_percent: 10.0,
            windows: 1,
            floor_bytes,
            rounds_max: 25,
        }
    }

    /// Stricter, for numbers others rely on (chosen: on a decay with a constant of four rounds 2 % are left, not 10).
    #[must_use]
    pub const fn contract(floor_bytes: u64) -> Self {
        Self {
            window: 5,
            excursion_percent: 10.0,
            slope_percent: 3.0,
            windows: 2,
            floor_bytes,
            rounds_max: 60,
        }
    }
}

/// What `steady=` asks of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyRounds {
    /// What is judged.
    pub metric: SteadyMetric,
    /// Length of a round, above zero.
    pub round: Nanos,
    /// The rule.
    pub rule: RoundRule,
}

/// SNIA's round.
const ROUND: Nanos = Nanos::from_secs(60);
/// Most rounds, and most rounds of a window (chosen: a week of rounds of a minute; a window is looked at after each).
const ROUNDS_MAX: u64 = 10_000;
const WINDOW_MAX: u64 = 1_000;
const OPTIONS: [&str; 8] = ["round", "metric", "window", "range", "slope", "windows", "floor", "rounds"];

impl SteadyRounds {
    /// Reads `snia` or `contract`, and after a colon what is to be different: `snia:round=10s,metric=bw,floor=2g`.
    ///
    /// # Errors
    /// A sentence naming what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, options) = text.split_once(':').map_or((text, ""), |(word, options)| (word, options));
        let rule = choose(word, &[("snia", RoundRule::snia(0)), ("contract", RoundRule::contract(0))])?;
        let mut found = Self { metric: SteadyMetric::Iops, round: ROUND, rule };
        let options = options.split(',').filter(|_| text.contains(':'));
        for option in options {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| format!("expected steady=snia:NAME=VALUE,.., but found `{option}`"))?;
            found.set(name, value).map_err(|sentence| format!("{name}: {sentence}"))?;
        }
        if found.rule.rounds_max < found.rule.window {
            return Err(format!(
                "expected at least as many rounds as a window has ({}), but it is {}",
                found.rule.window, found.rule.rounds_max
            ));
        }
        Ok(found)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "round" => {
                self.round = parse_time(value, TimeUnit::Seconds)?;
                if self.round == Nanos::ZERO {
                    return Err("expected a time above 0".to_owned());
                }
            }
            "metric" => {
                let words = [
                    ("iops", SteadyMetric::Iops),
                    ("bw", SteadyMetric::Bandwidth),
                    ("lat", SteadyMetric::Latency),
                ];
                self.metric = choose(value, &words)?;
            }
            "window" => self.rule.window = count(value, 2, WINDOW_MAX)?,
            "range" => self.rule.excursion_percent = percent(value)?,
            "slope" => self.rule.slope_percent = percent(value)?,
            "windows" => self.rule.windows = count(value, 1, ROUNDS_MAX)?,
            "floor" => self.rule.floor_bytes = parse_integer(value, KbBase::Binary)?,
            "rounds" => self.rule.rounds_max = count(value, 2, ROUNDS_MAX)?,
            _ => {
                let nearest = did_you_mean(name, OPTIONS.into_iter());
                return Err(format!("expected one of {}{nearest}", OPTIONS.join(", ")));
            }
        }
        Ok(())
    }
}

fn count(text: &str, least: u64, most: u64) -> Result<usize, String> {
    let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
    let number =
        number.ok_or_else(|| format!("expected a number from {least} to {most}, but found `{text}`"))?;
    usize::try_from(number).map_err(|error| error.to_string())
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("expected a percentage such as 20%, but found `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_word_and_what_is_different() {
        let snia = SteadyRounds { metric: SteadyMetric::Iops, round: ROUND, rule: RoundRule::snia(0) };
        assert_eq!(SteadyRounds::parse("snia"), Ok(snia));
        assert_eq!(SteadyRounds::parse("contract").map(|found| found.rule), Ok(RoundRule::contract(0)));
        let text = "snia:round=500ms,metric=bw,window=3,range=15%,slope=5,windows=2,floor=2g,rounds=9";
        let rule = RoundRule {
            window: 3,
            excursion_percent: 15.0,
            slope_percent: 5.0,
            windows: 2,
            floor_bytes: 2 << 30,
            rounds_max: 9,
        };
        let expected = SteadyRounds { metric: SteadyMetric::Bandwidth, round: Nanos::from_millis(500), rule };
        assert_eq!(SteadyRounds::parse(text), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("sina", "did you mean `snia`?"),
            ("snia:", "NAME=VALUE"),
            ("snia:round", "NAME=VALUE"),
            ("snia:round=0", "a time above 0"),
            ("snia:round=x", "round: "),
            ("snia:widnow=5", "did you mean `window`?"),
            ("snia:window=1", "from 2 to 1000"),
            ("snia:rounds=4", "at least as many rounds"),
            ("snia:slope=-1%", "a percentage"),
            ("snia:slope=nan", "a percentage"),
            ("snia:metric=speed", "iops, bw, lat"),
            ("snia:floor=x", "floor: "),
        ];
        for (text, expected) in cases {
            let message = SteadyRounds::parse(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
