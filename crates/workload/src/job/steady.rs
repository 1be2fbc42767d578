//! When a job counts as steady: fio's `steadystate` and its companions, as plain data.
//!
//! Deliberately not here: judging samples (see `run::SteadyState`), and taking them.

use ocssd_base::Nanos;

use super::number::{KbBase, TimeUnit, parse_integer, parse_time};
use super::word::choose;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyMetric {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean completion latency of a sample, in nanoseconds (fio 3.39 and later).
    Latency,
}

/// How the samples of a window are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyRule {
    /// By the largest distance of a sample from the mean.
    Deviation,
    /// By the slope of the least-squares line, per sample.
    Slope,
}

/// What the judged number must stay below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyLimit {
    /// A number in the metric's own unit.
    Absolute(f64),
    /// Percent of the window's mean.
    Percent(f64),
}

/// fio `steadystate=iops_slope:0.3%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyCriterion {
    /// What is watched.
    pub metric: SteadyMetric,
    /// How it is judged.
    pub rule: SteadyRule,
    /// The threshold.
    pub limit: SteadyLimit,
}

/// fio's default of `steadystate`, as `fio --cmdhelp=steadystate` prints it.
impl Default for SteadyCriterion {
    fn default() -> Self {
        Self { metric: SteadyMetric::Iops, rule: SteadyRule::Slope, limit: SteadyLimit::Percent(0.01) }
    }
}

const WORDS: [(&str, (SteadyMetric, SteadyRule)); 6] = [
    ("iops", (SteadyMetric::Iops, SteadyRule::Deviation)),
    ("iops_slope", (SteadyMetric::Iops, SteadyRule::Slope)),
    ("bw", (SteadyMetric::Bandwidth, SteadyRule::Deviation)),
    ("bw_slope", (SteadyMetric::Bandwidth, SteadyRule::Slope)),
    ("lat", (SteadyMetric::Latency, SteadyRule::Deviation)),
    ("lat_slope", (SteadyMetric::Latency, SteadyRule::Slope)),
];

impl SteadyCriterion {
    /// fio's word: `iops_slope`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        let found = WORDS.iter().find(|(_, pair)| *pair == (self.metric, self.rule));
        found.expect("every pair has a word").0
    }

    /// True if the limit is a share of the mean.
    #[must_use]
    pub const fn is_percent(&self) -> bool {
        matches!(self.limit, SteadyLimit::Percent(_))
    }

    /// The limit's number, in percent or in the metric's unit.
    #[must_use]
    pub const fn limit_number(&self) -> f64 {
        match self.limit {
            SteadyLimit::Absolute(number) | SteadyLimit::Percent(number) => number,
        }
    }
}

/// All of a job's steady-state settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyOptions {
    /// The criterion.
    pub criterion: SteadyCriterion,
    /// The rolling window; zero: steady state is not judged (`steadystate_duration`).
    pub duration: Nanos,
    /// How long no samples are taken at first (`steadystate_ramp_time`).
    pub ramp_time: Nanos,
    /// Time between samples, above zero, default 1 s (`steadystate_check_interval`).
    pub check_interval: Nanos,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        Self {
            criterion: SteadyCriterion::default(),
            duration: Nanos::ZERO,
            ramp_time: Nanos::ZERO,
            check_interval: Nanos::from_secs(1),
        }
    }
}

impl SteadyOptions {
    /// True if steady state is judged at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.duration > Nanos::ZERO
    }

    /// Samples of the rolling window.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.duration.0 / self.check_interval.0
    }
}

/// fio `steadystate`: a word, a colon and a limit.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_steadystate(text: &str, kb_base: KbBase) -> Result<SteadyCriterion, String> {
    let (word, limit) = text.split_once(':').ok_or("expected a criterion and a limit, as iops_slope:0.3%")?;
    let (metric, rule) = choose(word, &WORDS)?;
    let limit = match (limit.strip_suffix('%'), metric) {
        (Some(percent), _) => SteadyLimit::Percent(positive(percent)?),
        (None, SteadyMetric::Iops) => SteadyLimit::Absolute(positive(limit)?),
        (None, SteadyMetric::Bandwidth) => SteadyLimit::Absolute(as_f64(parse_integer(limit, kb_base)?)),
        (None, SteadyMetric::Latency) => {
            SteadyLimit::Absolute(as_f64(parse_time(limit, TimeUnit::Micros)?.0))
        }
    };
    Ok(SteadyCriterion { metric, rule, limit })
}

/// A finite number of at least zero.
fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("expected a limit such as 0.3% or 500, but found `{text}`"))
}

#[expect(clippy::cast_precision_loss, reason = "a limit of 15 digits")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_is_a_word_and_a_limit() {
        use SteadyLimit::{Absolute, Percent};
        let cases = [
            ("iops:5%", "iops", Percent(5.0)),
            ("iops_slope:0.3%", "iops_slope", Percent(0.3)),
            ("iops:250.5", "iops", Absolute(250.5)),
            ("bw:4k", "bw", Absolute(4096.0)),
            ("bw_slope:1%", "bw_slope", Percent(1.0)),
            ("lat:20us", "lat", Absolute(20_000.0)),
            ("lat_slope:20", "lat_slope", Absolute(20_000.0)),
        ];
        for (text, word, limit) in cases {
            let found = parse_steadystate(text, KbBase::Binary).expect(text);
            assert_eq!((found.word(), found.limit), (word, limit), "{text}");
        }
        for text in ["iops", "iops:", "iops:x%", "iops:-1%", "iosp:1%", "bw:1.5", "lat:1x", "iops:nan"] {
            assert!(parse_steadystate(text, KbBase::Binary).is_err(), "{text}");
        }
    }
}
