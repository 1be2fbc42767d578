//! What was found of a job's rounds: our `steady=`, in the place and with the keys of fio's `steadystate`.
//!
//! Readers of fio's object find `attained` and the means of the last window where they look for them; what only rounds have is
//! under our own key. Deliberately not here: judging.

use super::json::float;
use super::steady::SteadySample;
use crate::job::{SteadyMetric, SteadyRounds};
use crate::run::{RoundsState, Window};
use serde_json::{Value, json};

/// Whether and how a job came to rest.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundsReport {
    /// What was asked for.
    pub asked: SteadyRounds,
    /// How it ended.
    pub state: RoundsState,
    /// The last window, if one was full.
    pub window: Option<Window>,
    /// All rounds, oldest first.
    pub samples: Vec<SteadySample>,
    /// Bytes written in all of them.
    pub written: u64,
}

impl RoundsReport {
    /// True if the rule holds.
    #[must_use]
    pub fn is_attained(&self) -> bool {
        self.state == RoundsState::Steady
    }

    fn word(&self) -> &'static str {
        match self.asked.metric {
            SteadyMetric::Iops => "iops",
            SteadyMetric::Bandwidth => "bw",
            SteadyMetric::Latency => "lat",
        }
    }

    /// The rounds of the last window, or those there are.
    fn last(&self) -> &[SteadySample] {
        &self.samples[self.samples.len().saturating_sub(self.asked.rule.window)..]
    }

    fn mean(&self, of: fn(&SteadySample) -> u64) -> u64 {
        let sum: u128 = self.last().iter().map(|sample| u128::from(of(sample))).sum();
        let count = u128::try_from(self.last().len()).expect("a length");
        u64::try_from(sum.checked_div(count).unwrap_or(0)).expect("a mean is no more than the largest")
    }

    /// fio's object.
    pub(super) fn object(&self) -> Value {
        let rule = &self.asked.rule;
        let window = self.window.unwrap_or_default();
        let seconds = u128::from(self.asked.round.0) * u128::try_from(rule.window).expect("a length");
        let list = |of: fn(&SteadySample) -> u64| self.last().iter().map(of).collect::<Vec<_>>();
        json!({
            "ss": format!("{}_range:{:.6}%+slope:{:.6}%", self.word(), rule.excursion_percent, rule.slope_percent),
            "duration": u64::try_from(seconds.div_ceil(1_000_000_000)).unwrap_or(u64::MAX),
            "attained": u8::from(self.is_attained()),
            "criterion": format!("{:.6}%", window.excursion_percent),
            "max_deviation": float(window.excursion_percent),
            "slope": float(window.slope_percent),
            "data": {
                "bw_mean": self.mean(|sample| sample.bandwidth),
                "iops_mean": self.mean(|sample| sample.iops),
                "iops": list(|sample| sample.iops),
                "bw": list(|sample| sample.bandwidth),
            },
        })
    }

    /// Our own.
    pub(super) fn own_object(&self) -> Value {
        let rule = &self.asked.rule;
        json!({
            "metric": self.word(),
            "round_seconds": self.asked.round.as_secs_f64(),
            "attained": self.is_attained(),
            "window": rule.window,
            "windows": rule.windows,
            "range_percent_max": rule.excursion_percent,
            "slope_percent_max": rule.slope_percent,
            "range_percent": self.window.map(|window| window.excursion_percent),
            "slope_percent": self.window.map(|window| window.slope_percent),
            "floor_bytes": rule.floor_bytes,
            "written_bytes": self.written,
            "rounds_max": rule.rounds_max,
            "rounds": self.samples.iter().map(|sample| sample.metric(self.asked.metric)).collect::<Vec<_>>(),
        })
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let rule = &self.asked.rule;
        let attained = if self.is_attained() { "attained" } else { "not attained" };
        let window = self.window.map_or_else(
            || "no window was full".to_owned(),
            |window| {
                format!(
                    "range {:.1} % of {:.1}, slope {:+.1} % of {:.1}",
                    window.excursion_percent,
                    rule.excursion_percent,
                    window.slope_percent,
                    rule.slope_percent
                )
            },
        );
        format!(
            "steady state {attained} after {} rounds of {}: {} {window}; {} bytes written of {}",
            self.samples.len(),
            self.asked.round,
            self.word(),
            self.written,
            rule.floor_bytes
        )
    }
}
