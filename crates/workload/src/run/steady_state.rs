//! Judges whether a workload is steady, from samples taken at equal distances: fio's `steadystate`.
//!
//! A rolling window of samples is full first; then, at every sample, either the largest distance of a sample from the
//! window's mean or the slope of its least-squares line must be below a limit. Reads no clock and takes no samples: who
//! owns it says what was done in the interval that has ended.

use crate::job::{SteadyCriterion, SteadyRule};
use crate::results::{SteadyReport, SteadySample};
use ocssd_base::Nanos;
use std::collections::VecDeque;

/// The judge of one workload.
#[derive(Clone, Debug)]
pub struct SteadyState {
    criterion: SteadyCriterion,
    duration: Nanos,
    window: usize,
    samples: VecDeque<SteadySample>,
    attained: bool,
    value: f64,
    deviation: f64,
    slope: f64,
}

#[expect(clippy::cast_precision_loss, reason = "rates and counts are far below 2^53")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

impl SteadyState {
    /// Judges windows of `window` samples, which together last `duration`.
    ///
    /// # Panics
    /// If the window has fewer than two samples: one has neither a slope nor a distance.
    #[must_use]
    pub fn new(criterion: SteadyCriterion, window: usize, duration: Nanos) -> Self {
        assert!(window >= 2, "a window of {window} samples says nothing");
        Self {
            criterion,
            duration,
            window,
            samples: VecDeque::with_capacity(window),
            attained: false,
            value: 0.0,
            deviation: 0.0,
            slope: 0.0,
        }
    }

    /// Takes the sample of the interval that has just ended; true once the workload is steady, which it then stays.
    /// Cost: one pass over the window.
    pub fn observe(&mut self, sample: SteadySample) -> bool {
        if self.attained {
            return true;
        }
        if self.samples.len() == self.window {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        if self.samples.len() == self.window {
            self.attained = self.judge();
        }
        self.attained
    }

    /// True once it was steady.
    #[must_use]
    pub const fn is_attained(&self) -> bool {
        self.attained
    }

    fn judge(&mut self) -> bool {
        let mean = self.values().sum::<f64>() / as_f64(self.samples.len() as u64);
        let number = match self.criterion.rule {
            SteadyRule::Deviation => {
                self.deviation = self.values().map(|value| (value - mean).abs()).fold(0.0, f64::max);
                self.deviation
            }
            SteadyRule::Slope => {
                self.slope = self.slope_around(mean);
                self.slope
            }
        };
        if self.criterion.is_percent() && mean <= 0.0 {
            // Nothing was done in the whole window: no share of nothing is steady, as in fio.
            self.value = 0.0;
            return false;
        }
        self.value = if self.criterion.is_percent() { 100.0 * number / mean } else { number };
        self.value.abs() < self.criterion.limit_number()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let metric = self.criterion.metric;
        self.samples.iter().map(move |sample| as_f64(sample.metric(metric)))
    }

    /// The slope of the least-squares line, per sample: `sum((x - x̄)(y - ȳ)) / sum((x - x̄)²)`.
    fn slope_around(&self, mean: f64) -> f64 {
        let middle = (as_f64(self.samples.len() as u64) - 1.0) / 2.0;
        let (mut products, mut squares) = (0.0, 0.0);
        for (place, value) in (0_u32..).zip(self.values()) {
            let distance = f64::from(place) - middle;
            products += distance * (value - mean);
            squares += distance * distance;
        }
        products / squares
    }

    /// What was found.
    #[must_use]
    pub fn report(&self) -> SteadyReport {
        SteadyReport {
            criterion: self.criterion,
            duration: self.duration,
            attained: self.attained,
            value: self.value,
            max_deviation: self.deviation,
            slope: self.slope,
            samples: self.samples.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{SteadyLimit, SteadyMetric};
    use ocssd_base::Prng;

    fn judge(rule: SteadyRule, limit: SteadyLimit, window: usize) -> SteadyState {
        let criterion = SteadyCriterion { metric: SteadyMetric::Iops, rule, limit };
        SteadyState::new(criterion, window, Nanos::from_secs(window as u64))
    }

    fn sample(iops: u64) -> SteadySample {
        SteadySample { iops, bandwidth: iops * 4_096, latency_ns: 1_000_000 / iops.max(1) }
    }

    /// How many samples it takes until steady; `None` if it never is.
    fn steps(state: &mut SteadyState, values: impl IntoIterator<Item = u64>) -> Option<usize> {
        values.into_iter().position(|value| state.observe(sample(value))).map(|place| place + 1)
    }

    #[test]
    fn a_window_is_judged_only_when_full() {
        for rule in [SteadyRule::Deviation, SteadyRule::Slope] {
            let mut state = judge(rule, SteadyLimit::Percent(1.0), 5);
            assert_eq!(steps(&mut state, [100; 9]), Some(5), "{rule:?}");
            assert!(state.observe(sample(1)), "it stays attained");
            assert_eq!(state.report().samples.len(), 5);
        }
    }

    #[test]
    fn a_deviation_is_the_largest_distance_from_the_mean() {
        let mut state = judge(SteadyRule::Deviation, SteadyLimit::Absolute(5.0), 4);
        assert_eq!(steps(&mut state, [100, 110, 100, 110]), None, "a distance of 5 is not below 5");
        assert!((state.report().max_deviation - 5.0).abs() < 1e-9);
        assert_eq!(steps(&mut state, [106, 108, 107]), Some(3), "110, 106, 108, 107 lie within 2.25");
    }

    #[test]
    fn a_slope_is_that_of_the_least_squares_line() {
        let mut state = judge(SteadyRule::Slope, SteadyLimit::Percent(1.0), 4);
        assert_eq!(steps(&mut state, [100, 110, 120, 130]), None);
        let report = state.report();
        assert!((report.slope - 10.0).abs() < 1e-9 && (report.value - 1_000.0 / 115.0).abs() < 1e-9);
        // A fall is as far from steady as a rise; a see-saw without slope is steady.
        let mut state = judge(SteadyRule::Slope, SteadyLimit::Percent(1.0), 4);
        assert_eq!(steps(&mut state, [130, 120, 110, 100]), None);
        assert_eq!(
            steps(&mut judge(SteadyRule::Slope, SteadyLimit::Percent(1.0), 4), [90, 110, 110, 90]),
            Some(4)
        );
    }

    #[test]
    fn an_old_transient_rolls_out_of_the_window() {
        let values = [1_000, 500, 250].into_iter().chain(std::iter::repeat_n(100, 10));
        let mut state = judge(SteadyRule::Deviation, SteadyLimit::Percent(5.0), 4);
        assert_eq!(steps(&mut state, values), Some(7));
    }

    #[test]
    fn each_metric_watches_its_own_number() {
        let observe = |metric, samples: [SteadySample; 2]| {
            let criterion =
                SteadyCriterion { metric, rule: SteadyRule::Deviation, limit: SteadyLimit::Percent(1.0) };
            let mut state = SteadyState::new(criterion, 2, Nanos::from_secs(2));
            samples.into_iter().any(|sample| state.observe(sample))
        };
        let base = SteadySample { iops: 100, bandwidth: 100, latency_ns: 100 };
        for (metric, other) in [
            (SteadyMetric::Iops, SteadySample { iops: 200, ..base }),
            (SteadyMetric::Bandwidth, SteadySample { bandwidth: 200, ..base }),
            (SteadyMetric::Latency, SteadySample { latency_ns: 200, ..base }),
        ] {
            assert!(!observe(metric, [base, other]), "{metric:?}");
            let unmoved = [SteadyMetric::Iops, SteadyMetric::Bandwidth, SteadyMetric::Latency];
            assert!(unmoved.iter().filter(|&&each| each != metric).all(|&each| observe(each, [base, other])));
        }
    }

    #[test]
    fn nothing_done_is_never_a_steady_share() {
        for rule in [SteadyRule::Deviation, SteadyRule::Slope] {
            let mut state = judge(rule, SteadyLimit::Percent(50.0), 3);
            assert_eq!(steps(&mut state, [0; 20]), None, "{rule:?}");
            assert!(state.report().value.is_finite());
        }
    }

    /// Goal: the rolling judgement is that of the naive one. Method: random samples, judged again from scratch.
    #[test]
    fn a_rolling_window_is_judged_like_a_fresh_one() {
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let values: Vec<u64> = (0..60).map(|_| 900 + prng.below(200)).collect();
            for rule in [SteadyRule::Deviation, SteadyRule::Slope] {
                let limit = SteadyLimit::Percent(6.0);
                let rolling = steps(&mut judge(rule, limit, 6), values.iter().copied());
                let fresh = values
                    .windows(6)
                    .position(|window| steps(&mut judge(rule, limit, 6), window.iter().copied()).is_some());
                assert_eq!(rolling, fresh.map(|first| first + 6), "seed {seed} {rule:?}");
            }
        }
    }
}
