//! What was found of a job's steady state: fio's `steadystate` object.
//!
//! As in fio the object lists the samples of the last window; unlike fio, a window that was not full is shown with the
//! samples there were, and not with zeroes in place of the others. Deliberately not here: judging.

use ocssd_base::Nanos;
use serde_json::{Map, Value, json};

use super::json::float;
use crate::job::{SteadyCriterion, SteadyMetric};

/// What was done in one check interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadySample {
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bandwidth: u64,
    /// Mean completion latency in nanoseconds; 0 without I/O.
    pub latency_ns: u64,
}

impl SteadySample {
    /// The number that a metric watches.
    #[must_use]
    pub const fn metric(&self, metric: SteadyMetric) -> u64 {
        match metric {
            SteadyMetric::Iops => self.iops,
            SteadyMetric::Bandwidth => self.bandwidth,
            SteadyMetric::Latency => self.latency_ns,
        }
    }
}

/// Whether and how a job became steady.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyReport {
    /// What was asked for.
    pub criterion: SteadyCriterion,
    /// The window.
    pub duration: Nanos,
    /// Whether it was reached.
    pub attained: bool,
    /// The number compared with the limit last, in percent if the limit is; 0 before the window was full.
    pub value: f64,
    /// The largest distance of a sample from the mean; 0 for a slope.
    pub max_deviation: f64,
    /// The slope per sample; 0 for a deviation.
    pub slope: f64,
    /// The last window, oldest first.
    pub samples: Vec<SteadySample>,
}

impl SteadyReport {
    /// The mean of one number over the samples, rounded down; 0 without any.
    #[must_use]
    pub fn mean(&self, of: fn(&SteadySample) -> u64) -> u64 {
        let sum: u128 = self.samples.iter().map(|sample| u128::from(of(sample))).sum();
        let count = u128::try_from(self.samples.len()).expect("a length");
        u64::try_from(sum.checked_div(count).unwrap_or(0)).expect("a mean is no more than the largest")
    }

    /// fio's object.
    pub(super) fn object(&self) -> Value {
        let percent = if self.criterion.is_percent() { "%" } else { "" };
        let list = |of: fn(&SteadySample) -> u64| self.samples.iter().map(of).collect::<Vec<_>>();
        let mut data = Map::new();
        data.insert("bw_mean".into(), self.mean(|sample| sample.bandwidth).into());
        data.insert("iops_mean".into(), self.mean(|sample| sample.iops).into());
        if self.criterion.metric == SteadyMetric::Latency {
            data.insert("lat_mean".into(), self.mean(|sample| sample.latency_ns).into());
            data.insert("lat_ns".into(), list(|sample| sample.latency_ns).into());
        }
        data.insert("iops".into(), list(|sample| sample.iops).into());
        data.insert("bw".into(), list(|sample| sample.bandwidth).into());
        json!({
            "ss": format!("{}:{:.6}{percent}", self.criterion.word(), self.criterion.limit_number()),
            "duration": self.duration.0.div_ceil(1_000_000_000),
            "attained": u8::from(self.attained),
            "criterion": format!("{:.6}{percent}", self.value),
            "max_deviation": float(self.max_deviation),
            "slope": float(self.slope),
            "data": data,
        })
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let percent = if self.criterion.is_percent() { "%" } else { "" };
        let attained = if self.attained { "attained" } else { "not attained" };
        format!(
            "steady state {attained}: {} {:.3}{percent} of {:.3}{percent}, mean {} IOPS, {} KiB/s",
            self.criterion.word(),
            self.value,
            self.criterion.limit_number(),
            self.mean(|sample| sample.iops),
            self.mean(|sample| sample.bandwidth) / 1_024
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_fios_keys_in_fios_order() {
        let sample = |iops| SteadySample { iops, bandwidth: iops * 4_096, latency_ns: 5 };
        let report = SteadyReport {
            criterion: SteadyCriterion::default(),
            duration: Nanos::from_secs(4),
            attained: true,
            value: -0.25,
            max_deviation: 0.0,
            slope: -2.5,
            samples: vec![sample(1_000), sample(1_001)],
        };
        let object = report.object();
        let keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["ss", "duration", "attained", "criterion", "max_deviation", "slope", "data"]);
        assert_eq!(
            (&object["ss"], &object["criterion"]),
            (&json!("iops_slope:0.010000%"), &json!("-0.250000%"))
        );
        assert_eq!(object["data"]["bw"], json!([4_096_000, 4_100_096]));
        assert_eq!((&object["data"]["iops_mean"], &object["attained"]), (&json!(1_000), &json!(1)));
    }

    #[test]
    fn nothing_sampled_is_no_mean() {
        let report = SteadyReport {
            criterion: SteadyCriterion::default(),
            duration: Nanos::from_secs(4),
            attained: false,
            value: 0.0,
            max_deviation: 0.0,
            slope: 0.0,
            samples: Vec::new(),
        };
        assert_eq!((report.mean(|sample| sample.iops), report.line().contains("not attained")), (0, true));
    }
}
